"""The lanes of an analysis as server-sent events: what a page shows while it waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress

from fastapi.responses import Response
from starlette.types import Receive, Scope, Send

from api.errors import ListenpostError
from api.faces.web.events import HEADERS, MEDIA_TYPE, RETRY, frame, pour, unless_gone
from api.faces.web.pages.lanes import Lanes
from api.faces.web.pages.rendering import rendered
from api.services.keeping.analysis_flight import AnalysisFlight
from api.services.keeping.storage import Kept
from api.services.progress import Event
from api.wiring.serving import House


class LaneStream(Response):
    """Each event holds all lanes as markup; `over` is the last. Who hangs up stops nothing."""

    media_type = MEDIA_TYPE

    def __init__(self, house: House, analysis: AnalysisFlight | Kept) -> None:
        """A flight was joined and is left at the end."""
        super().__init__(headers=HEADERS)
        del self.headers["content-length"]
        self._house, self._analysis = house, analysis

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until it is over or nobody reads."""
        keepalive = self._house.settings.streams.keepalive
        try:
            await unless_gone(receive, pour(send, self.raw_headers, self._frames(), keepalive))
        finally:
            if isinstance(self._analysis, AnalysisFlight):
                self._house.runner.leave(self._analysis, lost=True)

    async def _frames(self) -> AsyncGenerator[bytes]:
        if isinstance(self._analysis, Kept):
            # what another process runs; one that is deleted meanwhile is over, too
            with suppress(ListenpostError):
                self._analysis = await self._house.runner.awaited(self._analysis)
        if isinstance(self._analysis, AnalysisFlight):
            async for each in self._moments(self._analysis):
                yield each
        yield frame("over", {}, "over")

    async def _moments(self, flight: AnalysisFlight) -> AsyncGenerator[bytes]:
        """All lanes after each moment; those that come at once are shown once."""
        lanes, changed, over = Lanes.of(self._house, flight), asyncio.Event(), asyncio.Event()

        def hear(event: Event) -> None:
            lanes.hear(event)
            changed.set()

        def end() -> None:
            over.set()
            changed.set()

        flight.listen(hear)
        flight.when_over(end)
        while not over.is_set():
            changed.clear()
            html = rendered("lanes.html", **lanes.values)
            yield frame("lanes", {"html": html}, str(flight.moments), RETRY)
            await changed.wait()
