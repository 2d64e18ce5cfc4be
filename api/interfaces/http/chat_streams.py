"""Chat turns in the protocols of front ends: pydantic-ai's event streams, made of our turn's events.

Only what is already checked is sent, and the text of an error is never an exception's.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, AsyncIterator
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

from api.errors import ListenpostError
from api.features.chat.chat_turn import AnswerPiece, ChatEvent, LookupEnded, LookupStarted, Turn
from api.interfaces.http.event_stream import TurnWire

_log = logging.getLogger(__name__)


@dataclass(kw_only=True)
class TurnEvent(CustomEvent, name="turn"):
    """The finished turn: `data-turn` in the Vercel protocol, a custom event `turn` in AG-UI."""

    turn: Turn

    def to_payload(self) -> Any:
        """The turn as the JSON of a data event."""
        return self.turn.json()


def _safe(error: Exception) -> Exception:
    """An error whose text may be sent."""
    if isinstance(error, ListenpostError) and type(error) is not ListenpostError:
        _log.warning("a chat turn failed: %s", error)
        return ListenpostError(error.public)
    _log.error("a chat turn failed", exc_info=error)
    return ListenpostError("internal error")


class Vercel(VercelAIEventStream[Any, Any]):
    """The Vercel AI data stream; cited items are its sources."""

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
    """The events of a turn in the AG-UI protocol."""

    async def on_error(self, error: Exception) -> AsyncIterator[Any]:
        """A RUN_ERROR with words that may be read."""
        async for event in super().on_error(_safe(error)):
            yield event


def vercel() -> TurnWire:
    """The stream of a turn for clients of Vercel's AI SDK, such as `useChat`."""
    return _wire(Vercel())


def ag_ui(thread_id: str, run_id: str, accept: str) -> TurnWire:
    """The stream of a turn for clients of the AG-UI protocol."""
    return _wire(AgUi(accept=accept, thread_id=thread_id, run_id=run_id))


def _wire(stream: UIEventStream[Any, Any, Any, Any]) -> TurnWire:
    async def frames(moments: AsyncIterator[ChatEvent]) -> AsyncGenerator[bytes]:
        events = stream.transform_stream(native(moments))
        async for frame in stream.encode_stream(events):
            yield frame.encode()

    return TurnWire(stream.content_type, frames, stream.response_headers or {})


async def native(moments: AsyncIterator[ChatEvent]) -> AsyncGenerator[NativeEvent]:
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
