"""Progress as server-sent events, and noticing at once that a client is gone."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Coroutine, Mapping
from typing import Any, TypeVar

from fastapi.responses import Response
from fastapi.sse import KEEPALIVE_COMMENT, format_sse_event
from starlette.types import Receive, Scope, Send

from api.errors import ListenpostError
from api.faces.web.errors import described, trace_id_of
from api.services.keeping.analyses import AnalysisFlight, Runner
from api.services.progress import Event
from api.services.reporting.report import Report

T = TypeVar("T")
MEDIA_TYPE = "text/event-stream"
KINDS = frozenset(
    f"source.{step}"
    for step in ("started", "fetched", "judged", "refetching", "looked_again", "kept")
) | {"graded", "writing"}
"""What is told on the way; `report` or `error` is the last event."""
EVENT_SCHEMA = {
    "type": "object",
    "properties": {"event": {"type": "string"}, "data": {"type": "string"}},
    "required": ["data"],
}
"""One event, as OpenAPI describes it."""
PING_SECONDS = 15.0
GONE = 499
"""The status of an answer that nobody is there to read."""


async def unless_gone(receive: Receive, work: Coroutine[Any, Any, T]) -> T | None:
    """What `work` gives; it is cancelled, and there is nothing, when the client hangs up."""

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


class EventStream(Response):
    """The progress of a flight, then its report; hanging up leaves the flight."""

    media_type = MEDIA_TYPE

    def __init__(self, runner: Runner, flight: AnalysisFlight, headers: Mapping[str, str]) -> None:
        """`flight` was joined and is left at the end."""
        super().__init__(headers={**headers, **_HEADERS})
        del self.headers["content-length"]
        self._runner, self._flight = runner, flight

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until there is a report or nobody to read it."""

        async def sending() -> None:
            start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
            await send(start)
            async for frame in self._frames(trace_id_of(scope)):
                await send({"type": "http.response.body", "body": frame, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})

        try:
            await unless_gone(receive, sending())
        finally:
            self._runner.leave(self._flight)

    async def _frames(self, trace_id: str) -> AsyncIterator[bytes]:
        events: asyncio.Queue[Event | None] = asyncio.Queue()
        self._flight.listen(events.put_nowait)
        self._flight.when_over(lambda: events.put_nowait(None))
        while True:
            try:
                event = await asyncio.wait_for(events.get(), PING_SECONDS)
            except TimeoutError:
                yield KEEPALIVE_COMMENT
                continue
            if event is None:
                break
            if event.kind in KINDS:
                source = {} if event.source is None else {"source": event.source}
                yield frame(event.kind, {**source, **event.data})
        try:
            yield _report(await self._flight.result())
        except ListenpostError as error:
            yield frame("error", described(error, trace_id))


_HEADERS = {"cache-control": "no-cache", "x-accel-buffering": "no"}


def replayed(report: Report, headers: Mapping[str, str]) -> Response:
    """A report that was there already, as the only event."""
    return Response(_report(report), 200, {**headers, **_HEADERS}, MEDIA_TYPE)


def _report(report: Report) -> bytes:
    return frame("report", report.model_dump(mode="json"))


def frame(kind: str, data: Mapping[str, Any]) -> bytes:
    """One event on the wire."""
    return format_sse_event(event=kind, data_str=json.dumps(data))
