"""Turns on the wire of chat front ends: pydantic-ai's event streams, fed with our moments.

Only what is already checked is sent, and the text of an error is never an exception's.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from pydantic_ai.messages import (
    CustomEvent,
    FunctionToolCallEvent,
    FunctionToolResultEvent,
    PartDeltaEvent,
    PartEndEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.ui import NativeEvent, UIEventStream
from pydantic_ai.ui.ag_ui import AGUIEventStream
from pydantic_ai.ui.vercel_ai import VercelAIEventStream
from pydantic_ai.ui.vercel_ai.response_types import BaseChunk, SourceUrlChunk
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from api.errors import ListenpostError
from api.faces.web.events import HEADERS, pour, unless_gone
from api.services.chatting.turns import AnswerPiece, LookupEnded, LookupStarted, Moment, Turn

_log = logging.getLogger(__name__)
Stream = UIEventStream[Any, Any, Any, Any]


@dataclass(kw_only=True)
class TurnEvent(CustomEvent, name="turn"):
    """The finished turn: `data-turn` in the Vercel protocol, a custom event `turn` in AG-UI."""

    turn: Turn

    def to_payload(self) -> Any:
        """The turn as JSON."""
        return self.turn.json()


def _safe(error: Exception) -> Exception:
    """An error whose text may be sent."""
    if isinstance(error, ListenpostError) and type(error) is not ListenpostError:
        _log.warning("a chat turn failed: %s", error)
        return ListenpostError(error.public)
    _log.error("a chat turn failed", exc_info=error)
    return ListenpostError("internal error")


class Vercel(VercelAIEventStream[Any, Any]):
    """The Vercel AI data stream; what an answer cites are its sources."""

    async def handle_custom_event(self, event: CustomEvent) -> AsyncIterator[BaseChunk]:
        """The turn's citations as sources, then the turn as data."""
        if isinstance(event, TurnEvent):
            for citation in event.turn.citations:
                if citation.url:
                    by = f", by {citation.credit}" if citation.credit else ""
                    title = f"{citation.label}: {citation.title}{by}"
                    yield SourceUrlChunk(source_id=citation.label, url=citation.url, title=title)
        async for chunk in super().handle_custom_event(event):
            yield chunk

    async def on_error(self, error: Exception) -> AsyncIterator[BaseChunk]:
        """An error chunk with words that may be read."""
        async for chunk in super().on_error(_safe(error)):
            yield chunk


class AgUi(AGUIEventStream[Any, Any]):
    """The AG-UI protocol."""

    async def on_error(self, error: Exception) -> AsyncIterator[Any]:
        """A RUN_ERROR with words that may be read."""
        async for event in super().on_error(_safe(error)):
            yield event


def vercel() -> Stream:
    """A stream for `useChat` and the like."""
    return Vercel()


def ag_ui(thread_id: str, run_id: str, accept: str) -> Stream:
    """A stream for AG-UI clients."""
    return AgUi(accept=accept, thread_id=thread_id, run_id=run_id)


async def native(moments: AsyncIterator[Moment]) -> AsyncGenerator[NativeEvent]:
    """Our moments as the events of an agent's run."""
    text, index = "", 0
    async for moment in moments:
        if text and isinstance(moment, LookupStarted | Turn):
            yield PartEndEvent(index=index, part=TextPart(text))
            text, index = "", index + 1
        match moment:
            case AnswerPiece(piece) if text:
                yield PartDeltaEvent(index=index, delta=TextPartDelta(content_delta=piece))
                text += piece
            case AnswerPiece(piece):
                yield PartStartEvent(index=index, part=TextPart(piece))
                text = piece
            case LookupStarted(call, tool, arguments):
                part = ToolCallPart(tool, dict(arguments), call)
                yield PartStartEvent(index=index, part=part)
                yield PartEndEvent(index=index, part=part)
                yield FunctionToolCallEvent(part, args_valid=True)
                index += 1
            case LookupEnded(call, tool, line):
                yield FunctionToolResultEvent(ToolReturnPart(tool, line, call))
            case Turn():
                yield TurnEvent(turn=moment)


class TurnStream(Response):
    """A turn as it happens; hanging up ends its work."""

    def __init__(
        self,
        moments: AsyncGenerator[Moment],
        first: asyncio.Future[Moment],
        stream: Stream,
        keepalive: float,
    ) -> None:
        """`first` is being read already, so that what fails soon is an error of its own."""
        super().__init__(media_type=stream.content_type)
        del self.headers["content-length"]
        headers: Mapping[str, str] = stream.response_headers or {}
        self.headers.update({**HEADERS, **headers})
        self._moments, self._first, self._stream = moments, first, stream
        self._keepalive = keepalive

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until the turn is over or nobody reads."""
        async with aclosing(self._moments):
            frames = self._frames()
            try:
                await unless_gone(receive, pour(send, self.raw_headers, frames, self._keepalive))
            finally:
                self._first.cancel()
                await asyncio.wait({self._first})

    async def _frames(self) -> AsyncGenerator[bytes]:
        async def moments() -> AsyncIterator[Moment]:
            yield await self._first
            async for moment in self._moments:
                yield moment

        events = self._stream.transform_stream(native(moments()))
        async for frame in self._stream.encode_stream(events):
            yield frame.encode()
