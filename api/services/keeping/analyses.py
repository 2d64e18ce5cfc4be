"""One analysis from its beginning to what is kept of it, whoever waits for it.

Identical requests of one tenant share one flight; it is cancelled when the last who waits for it
leaves, unless it was detached to run on its own. Whoever loses the connection to it may come back
and follow it: that never begins another.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import time
import uuid
from collections.abc import Callable, Coroutine
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from api.errors import Conflict, ListenpostError, StoreUnavailable, UsageError
from api.services.flights import Flight
from api.services.keeping.forgetting import keep_report
from api.services.keeping.keys import Tenant
from api.services.keeping.limits import Limits, Spending
from api.services.keeping.storage import Kept, State, Store
from api.services.keeping.turns import Seat
from api.services.listening import Ask
from api.services.progress import Event, Listener, SourceFetched, silent
from api.services.reporting.report import Report

_log = logging.getLogger(__name__)
Analyze = Callable[[Tenant, Ask, Listener, str], Coroutine[Any, Any, Report]]
"""The report of a question under the id that is given."""
Estimate = Callable[[Ask], Coroutine[Any, Any, float]]
"""USD that an analysis may cost at most; raises `UsageError` for what cannot be asked."""
Ended = Callable[[Report | None, str], None]
"""Told at the end: the report, or None and why there is none."""
PAUSE = 1.0
"""Seconds between two looks at an analysis that another process runs."""
UNKEPT = "this report could not be stored and is lost when the server stops"


@dataclass(slots=True, eq=False, kw_only=True)
class AnalysisFlight(Flight[Report]):
    """An analysis under way in this process; `result` is its finished report.

    Raises:
        Conflict: it was cancelled.
        LimitReached: it may not be begun.
        ListenpostError: it failed, code `error`.
    """

    id: str
    tenant: Tenant
    ask: Ask
    began: datetime = field(init=False)
    """As it is stored; known once `join` has returned it."""
    first: int = field(default_factory=lambda: time.time_ns() // 1_000)
    """Number of its first event: microseconds since 1970, which a later run under the same id, in
    whatever process, has more of than this one will have numbers."""
    _begun: asyncio.Event = field(default_factory=asyncio.Event)
    _work: asyncio.Task[Report] | None = None

    @property
    def query(self) -> str:
        """What is asked."""
        return self.ask.query

    def cancel(self) -> None:
        """End the work; what became of it is still noted."""
        self.cancelled = True
        if self._work is not None:
            self._work.cancel()


class Runner:
    """Begins analyses, shares them, keeps what came of them; one per process and event loop."""

    def __init__(
        self,
        store: Store,
        limits: Limits,
        analyze: Analyze,
        estimate: Estimate,
        grace: float = 0.0,
        pause: float = PAUSE,
    ) -> None:
        """Nothing runs yet; `grace` is how many seconds a lost connection still counts as one."""
        self._store, self._limits = store, limits
        self._analyze, self._estimate = analyze, estimate
        self._grace, self._pause = grace, pause
        self._flights: dict[str, AnalysisFlight] = {}
        # while the store fails nothing is begun, so these are no more than were under way
        self._unstored: dict[str, Kept] = {}
        self._claiming = asyncio.Lock()
        self._ended: list[Ended] = []

    def on_end(self, ended: Ended) -> None:
        """Tell `ended` about every analysis that ends."""
        self._ended.append(ended)

    async def run(
        self, tenant: Tenant, ask: Ask, listener: Listener = silent, key: str | None = None
    ) -> Report:
        """A finished report; cancelling the caller cancels the work nobody else waits for.

        Raises:
            Conflict: the key was used for another request, or it runs in another process.
            LimitReached: the tenant may begin none now.
            StoreUnavailable: it could not be kept, so it was not begun.
            UsageError: it cannot be asked.
        """
        flight = await self.join(tenant, ask, key)
        if isinstance(flight, Kept):
            if flight.report is None:
                raise Conflict(f"the analysis `{flight.id}` runs in another process; ask for it")
            return flight.report
        try:
            flight.listen(listener)
            return await flight.result()
        finally:
            self.leave(flight)

    async def join(self, tenant: Tenant, ask: Ask, key: str | None = None) -> AnalysisFlight | Kept:
        """The flight for a request, begun or shared; call `leave` when done with it.

        With an idempotency key that was used before it is that request's flight, or what is kept of
        it: a report, or one that runs in another process. One that failed is begun again.

        Raises:
            Conflict: the key was used for another request.
            LimitReached: the tenant may begin none now.
            StoreUnavailable: it could not be kept, so it was not begun.
        """
        if key is None:
            flight: AnalysisFlight | Kept = self._same(tenant, ask) or self._launch(
                tenant, ask, _new_id()
            )
        else:
            async with self._claiming:
                flight = await self._claimed(tenant, ask, key)
        if isinstance(flight, Kept):
            return flight
        flight.waiting += 1
        boarded = False
        try:
            await flight._begun.wait()
            flight.check()
            boarded = True
        finally:
            if not boarded:
                self.leave(flight)
        return flight

    async def kept(self, tenant: str, analysis_id: str) -> Kept | None:
        """One analysis of this tenant as it is stored, or as it ended if that could not be."""
        unstored = self._unstored.get(analysis_id)
        if unstored is not None and unstored.tenant == tenant:
            return unstored
        return await self._store.get(tenant, analysis_id)

    async def follow(self, tenant: Tenant, analysis_id: str) -> AnalysisFlight | Kept | None:
        """One that was begun before, and None when there is none; nothing is begun.

        Its flight while it runs here, call `leave` when done with that; else what is kept of it.
        """
        flight = self._flights.get(analysis_id)
        if flight is not None and flight.tenant.id == tenant.id and flight._begun.is_set():
            flight.waiting += 1
            return flight
        return await self.kept(tenant.id, analysis_id)

    async def outcome(self, kept: Kept) -> Report:
        """The report of what is kept; while another process works on it, it is waited for.

        Raises:
            Conflict: it has failed, or was deleted meanwhile.
        """
        shown: Kept | None = kept
        while shown is not None and shown.state == "running":
            await asyncio.sleep(self._pause)
            shown = await self.kept(kept.tenant, kept.id)
        if shown is None or shown.report is None:
            reason = "it was deleted" if shown is None else shown.reason or shown.state
            raise Conflict(f"the analysis `{kept.id}` has no report: {reason}")
        return shown.report

    def leave(self, flight: AnalysisFlight, *, lost: bool = False) -> None:
        """Wait no longer; the last to leave a flight that is not detached cancels it.

        Who did not mean to, since the connection was `lost`, has the grace to come back: until it
        is over the flight runs as if somebody waited.
        """
        if lost and self._grace:
            asyncio.get_running_loop().call_later(self._grace, flight.leave)
        else:
            flight.leave()

    async def delete(self, tenant: Tenant, analysis_id: str) -> bool:
        """Delete an analysis, cancelling it first if it runs here; False when there is none."""
        flight = self._flights.get(analysis_id)
        if flight is not None and flight.tenant.id == tenant.id:
            await self._stop(flight)
        deleted = await self._store.delete(tenant.id, analysis_id)
        if deleted:
            self._unstored.pop(analysis_id, None)
        return deleted

    async def aclose(self) -> None:
        """Cancel everything under way and note it as failed."""
        await asyncio.gather(*(self._stop(flight) for flight in self._flights.values()))

    async def _stop(self, flight: AnalysisFlight) -> None:
        flight.cancel()
        await flight.over()

    def _same(self, tenant: Tenant, ask: Ask) -> AnalysisFlight | None:
        for flight in self._flights.values():
            if flight.tenant.id == tenant.id and flight.ask == ask and not flight.cancelled:
                return flight
        return None

    async def _claimed(self, tenant: Tenant, ask: Ask, key: str) -> AnalysisFlight | Kept:
        same = self._same(tenant, ask)
        wanted = same.id if same else _new_id()
        request = json.dumps(asdict(ask), sort_keys=True)
        digest = hashlib.sha256(request.encode()).hexdigest()
        try:
            owner, mine = await self._store.claim(tenant.id, key, digest, wanted)
        except UsageError as error:
            raise Conflict(str(error)) from None
        flight = self._flights.get(owner)
        if flight is not None and flight.cancelled:
            await self._stop(flight)
        elif flight is not None:
            return flight
        if same is not None or not mine:
            kept = await self.kept(tenant.id, owner)
            if kept is not None and kept.state != "failed":
                return kept
        return self._launch(tenant, ask, owner)

    def _launch(self, tenant: Tenant, ask: Ask, analysis_id: str) -> AnalysisFlight:
        flight = AnalysisFlight(id=analysis_id, tenant=tenant, ask=ask)
        self._flights[analysis_id] = flight
        flight.begin(self._fly(flight), f"analysis {analysis_id}")
        return flight

    async def _fly(self, flight: AnalysisFlight) -> Report:
        try:
            usd, limits, tenant = await self._estimate(flight.ask), self._limits, flight.tenant
            with limits.turns.seat(tenant) as seat:
                async with limits.spending(tenant, usd=usd, analyses=1) as spent:
                    flight.began = await self._store.begin(tenant.id, flight.id, flight.ask.query)
                    self._unstored.pop(flight.id, None)
                    return await self._landed(flight, seat, spent)
        finally:
            del self._flights[flight.id]
            flight._begun.set()

    async def _landed(self, flight: AnalysisFlight, seat: Seat, spent: Spending) -> Report:
        def hear(event: Event) -> None:
            if isinstance(event, SourceFetched):
                spent.counts = True

        async def worked() -> Report:
            flight.listen(hear)
            await seat.turn()
            return await self._analyze(flight.tenant, flight.ask, flight.tell, flight.id)

        work = flight._work = asyncio.create_task(worked())
        if flight.cancelled:
            work.cancel()
        flight._begun.set()
        await asyncio.wait([work])
        if work.cancelled():
            await self._failed(flight, "cancelled")
            raise Conflict(f"the analysis `{flight.id}` was cancelled")
        if (error := work.exception()) is not None:
            if isinstance(error, ListenpostError):
                await self._failed(flight, str(error))
                raise error
            _log.error("the analysis %s failed", flight.id, exc_info=error)
            await self._failed(flight, "internal error")
            raise ListenpostError("internal error")
        report = work.result()
        spent.counts, spent.usd = bool(report.cost.tokens), report.cost.usd
        try:
            await keep_report(self._store, flight.tenant.id, report)
        except StoreUnavailable as failure:
            _log.warning("the analysis %s could not be stored: %s", flight.id, failure)
            notes = (*report.quality_notes, UNKEPT)
            report = report.model_copy(update={"quality_notes": notes})
            self._note(flight, report)
        for ended in self._ended:
            ended(report, "")
        return report

    def _note(self, flight: AnalysisFlight, report: Report | None, reason: str = "") -> None:
        """Remember how one ended of which the store knows only that it ran."""
        state: State = "failed" if report is None else "done"
        self._unstored[flight.id] = Kept(
            flight.id, flight.tenant.id, state, flight.began, flight.query, report, reason or None
        )

    async def _failed(self, flight: AnalysisFlight, reason: str) -> None:
        try:
            await self._store.fail(flight.tenant.id, flight.id, reason)
        except StoreUnavailable as error:
            _log.warning("the analysis %s could not be marked failed: %s", flight.id, error)
            self._note(flight, None, reason)
        for ended in self._ended:
            ended(None, reason)


def _new_id() -> str:
    return uuid.uuid4().hex
