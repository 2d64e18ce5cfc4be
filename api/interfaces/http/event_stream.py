"""Server-sent events of an analysis or a chat turn; a client that disconnects is noticed at once and ends its work."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from email.message import Message
from hashlib import sha256
from typing import Any, TypeVar

from fastapi.responses import Response
from fastapi.sse import format_sse_event
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from api.core.progress import Event
from api.errors import ListenpostError, UsageError
from api.features.analyses.analysis_job import AnalysisTask
from api.features.analyses.runner import Runner
from api.features.analyses.store_ports import State, StoredAnalysis
from api.features.chat.chat_turn import ChatEvent
from api.interfaces.http.errors_json import described, trace_id_of
from api.interfaces.http.schemas import Pending

T = TypeVar("T")
MEDIA_TYPE = "text/event-stream"
KINDS = frozenset(
    f"source.{step}" for step in ("started", "fetched", "judged", "refetching", "looked_again", "kept", "gathered")
) | {"graded", "writing"}
"""Events on the way, after `begun`; `report` or `error` is the last event."""
EVENT_SCHEMA = {
    "type": "object",
    "properties": {
        "event": {"type": "string"},
        "data": {"type": "string"},
        "id": {"type": "string"},
    },
    "required": ["data"],
}
"""OpenAPI schema of one event."""
# Keeps a connection open. No blank line follows: httpx-sse would take that for an empty event.
_COMMENT = b": ping\n"
RETRY = 1_000
"""Milliseconds after which a client that lost the connection should reconnect."""
HEADERS = {"cache-control": "no-cache", "x-accel-buffering": "no"}
"""Headers of every stream: proxies may neither store nor buffer it."""
GONE = 499
"""Status of an answer whose client has disconnected."""


async def unless_gone(receive: Receive, work: Coroutine[Any, Any, T]) -> T | None:
    """The result of `work`; None when the client disconnects, which cancels it."""

    async def gone() -> None:
        while (await receive())["type"] != "http.disconnect":
            continue

    working = asyncio.create_task(work)
    watching = asyncio.create_task(gone())
    try:
        await asyncio.wait({working, watching}, return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else None
    finally:
        for task in (working, watching):
            task.cancel()
        await asyncio.wait({working, watching})


async def pour(send: Send, headers: list[tuple[bytes, bytes]], frames: AsyncGenerator[bytes], keepalive: float) -> None:
    """Send a stream, each frame a whole event; with a comment every `keepalive` seconds."""

    async def commenting() -> None:
        while True:
            await asyncio.sleep(keepalive)
            await send({"type": "http.response.body", "body": _COMMENT, "more_body": True})

    await send({"type": "http.response.start", "status": 200, "headers": headers})
    comments = asyncio.create_task(commenting())
    try:
        async with aclosing(frames):
            async for each in frames:
                await send({"type": "http.response.body", "body": each, "more_body": True})
    finally:
        comments.cancel()
        await asyncio.wait({comments})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


@dataclass(frozen=True, slots=True)
class LastSeen:
    """The event after which a client lost the stream, from the `Last-Event-ID` that it sends."""

    analysis_id: str
    number: int | None
    """None: it was the last one."""
    ended: State | None = None
    """How the analysis had ended at this event, if it was the last; a failed analysis may run again."""

    @classmethod
    def read(cls, header: str) -> LastSeen | None:
        """The parsed id; None when there is none, or it was not made here."""
        # `8c1f0a...:1764338400000012`; `8c1f0a...:end` behind a report, `8c1f0a...:failed` an error
        parts = re.fullmatch(r"([0-9a-f]{32}):(?:([0-9]{1,20})|end|(failed))", header)
        if parts is None:
            return None
        if parts[2] is not None:
            return cls(parts[1], int(parts[2]))
        return cls(parts[1], None, "failed" if parts[3] else "done")

    @classmethod
    def required(cls, header: str) -> LastSeen | None:
        """The parsed id; None when there is none.

        Raises:
            UsageError: it is no id of ours.
        """
        last_seen = cls.read(header)
        if header and last_seen is None:
            raise UsageError(
                "`Last-Event-ID` must be the `id` of an event as it came, `ANALYSIS:NUMBER`, "
                "`ANALYSIS:end` or `ANALYSIS:failed`; leave it out to begin an analysis"
            )
        return last_seen


class EventStream(Response):
    """Events of an analysis, then its report; a client that disconnects leaves the analysis."""

    media_type = MEDIA_TYPE

    def __init__(
        self,
        runner: Runner,
        analysis: AnalysisTask | StoredAnalysis,
        last_seen: LastSeen | None,
        keepalive: float,
        headers: Mapping[str, str],
    ) -> None:
        """The analysis has been joined already; the stream leaves it at its end."""
        super().__init__(headers={**headers, **HEADERS})
        del self.headers["content-length"]
        self._runner, self._analysis, self._keepalive = runner, analysis, keepalive
        self._after = -1 if last_seen is None or last_seen.number is None else last_seen.number

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until there is a report or the client disconnects."""

        async def sending() -> bool:
            await pour(send, self.raw_headers, self._frames(trace_id_of(scope)), self._keepalive)
            return True

        sent = None
        try:
            sent = await unless_gone(receive, sending())
        finally:
            if isinstance(self._analysis, AnalysisTask):
                self._runner.leave(self._analysis, lost=sent is None)

    async def _frames(self, trace_id: str) -> AsyncGenerator[bytes]:
        try:
            if isinstance(self._analysis, StoredAnalysis):
                # what another process runs may come here, when that one dies
                self._analysis = await self._runner.awaited(self._analysis)
            if isinstance(self._analysis, StoredAnalysis):
                result = self._runner.outcome(self._analysis)
            else:
                async for each in self._progress(self._analysis):
                    yield each
                result = self._analysis.result()
            yield frame("report", (await result).model_dump(mode="json"), f"{self._analysis.id}:end")
        except ListenpostError as error:
            yield frame("error", described(error, trace_id), f"{self._analysis.id}:failed")

    async def _progress(self, task: AnalysisTask) -> AsyncGenerator[bytes]:
        """Each moment under its number; `begun` has the first of the analysis."""
        frames: asyncio.Queue[bytes | None] = asyncio.Queue()
        # a number that the analysis has not reached was never sent
        after = self._after if self._after <= task.first + task.event_count else -1
        number = task.first + task.lost_events

        def hear(event: Event) -> None:
            nonlocal number
            number += 1
            if number > after and event.kind in KINDS:
                source = {} if event.source is None else {"source": event.source}
                data = {**source, **event.data}
                frames.put_nowait(frame(event.kind, data, f"{task.id}:{number}"))

        if after < task.first:
            begun = Pending.of(task).model_dump(mode="json")
            yield frame("begun", begun, f"{task.id}:{task.first}", RETRY)
        task.listen(hear)
        task.on_end(lambda: frames.put_nowait(None))
        while (each := await frames.get()) is not None:
            yield each


def frame(kind: str, data: Mapping[str, Any], mark: str, retry: int | None = None) -> bytes:
    """One event in the stream's format; `mark` is its id."""
    return format_sse_event(event=kind, data_str=json.dumps(data), id=mark, retry=retry)


@dataclass(frozen=True, slots=True)
class TurnWire:
    """Format in which a turn is sent to its reader."""

    media_type: str
    frames: Callable[[AsyncIterator[ChatEvent]], AsyncGenerator[bytes]]
    """Each a whole event; an error of ours is the last one."""
    headers: Mapping[str, str] = field(default_factory=dict)


class TurnStream(Response):
    """The response that streams the events of a chat's turn, in the format of its `TurnWire`."""

    def __init__(
        self,
        moments: AsyncGenerator[ChatEvent],
        first: asyncio.Future[ChatEvent],
        wire: TurnWire,
        keepalive: float,
    ) -> None:
        """`first` is being read already, so that what fails soon is an error of its own."""
        super().__init__(media_type=wire.media_type)
        del self.headers["content-length"]
        self.headers.update({**HEADERS, **wire.headers})
        self._moments, self._first, self._wire = moments, first, wire
        self._keepalive = keepalive

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until the turn is over or the client disconnects."""
        async with aclosing(self._moments):
            frames = self._wire.frames(self._all())
            try:
                await unless_gone(receive, pour(send, self.raw_headers, frames, self._keepalive))
            finally:
                self._first.cancel()
                await asyncio.wait({self._first})

    async def _all(self) -> AsyncIterator[ChatEvent]:
        yield await self._first
        async for moment in self._moments:
            yield moment


async def turn_stream(moments: AsyncGenerator[ChatEvent], wire: TurnWire, keepalive: float) -> TurnStream:
    """A response that begins once the turn has: what fails before is an error with a status.

    A turn that is silent for longer than a connection may be begins without its first moment.
    """
    first = asyncio.ensure_future(anext(moments))
    try:
        await asyncio.wait({first}, timeout=keepalive)
        if first.done():
            first.result()
    except asyncio.CancelledError:
        first.cancel()
        await asyncio.wait({first})
        raise
    return TurnStream(moments, first, wire, keepalive)


def accepted(accept: str) -> dict[str, float]:
    """Media types that an `Accept` header names with their q-values, the best liked first.

    What is refused (`q=0`) is not among them; a q-value that is none counts as 1.
    """
    liked: dict[str, float] = {}
    for part in accept.split(","):
        message = Message()
        message["content-type"] = part.strip()
        try:
            quality = float(str(message.get_param("q", "1")))
        except ValueError:
            quality = 1.0
        liked[part.partition(";")[0].strip().lower()] = quality
    ranked = sorted(liked.items(), key=lambda pair: -pair[1])
    return {media: quality for media, quality in ranked if quality > 0}


def wants_events(accept: str) -> bool:
    """Whether a stream is named, and JSON is not liked better."""
    liked = accepted(accept)
    return liked.get(MEDIA_TYPE, 0) >= liked.get("application/json", 0) and MEDIA_TYPE in liked


def wants_page(accept: str) -> bool:
    """Whether a browser shows the answer to a person: HTML is named, and liked better than JSON."""
    liked = accepted(accept)
    return liked.get("text/html", 0) > liked.get("application/json", 0)


def unless_kept(request: Request, answer: Response) -> Response:
    """The answer with its `ETag`; 304 without a body when `If-None-Match` names it.

    The tag is weak: it stands for what is said, compressed or not. A copy is asked about before it
    is shown, since what it is of may have been deleted.
    """
    tag = f'"{sha256(bytes(answer.body)).hexdigest()[:32]}"'
    answer.headers["ETag"] = f"W/{tag}"
    answer.headers["Cache-Control"] = "private, no-cache"
    answer.headers["Vary"] = "Accept"
    kept = request.headers.get("if-none-match", "")
    names = {name.strip().removeprefix("W/") for name in kept.split(",")}
    if not names & {tag, "*"}:
        return answer
    for name in ("content-length", "content-type", "content-disposition"):
        if name in answer.headers:
            del answer.headers[name]
    return Response(status_code=304, headers=answer.headers)
