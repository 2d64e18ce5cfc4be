"""One analysis from its beginning to what is kept of it, whoever waits for it.

Identical requests of one tenant share one flight; it is cancelled when the last who waits for it
leaves, unless it was detached to run on its own.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import uuid
from collections.abc import Callable, Coroutine
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from api.errors import Conflict, ListenpostError, StoreUnavailable, UsageError
from api.services.flights import Flight
from api.services.keeping.keys import Tenant
from api.services.keeping.limits import Limits, Spending
from api.services.keeping.storage import Kept, Store
from api.services.keeping.turns import Seat
from api.services.listening import Ask
from api.services.progress import Listener, SourceFetched, silent
from api.services.reporting.report import Report

_log = logging.getLogger(__name__)
Analyze = Callable[[Ask, Listener, str], Coroutine[Any, Any, Report]]
"""The report of a question under the id that is given."""
Estimate = Callable[[Ask], Coroutine[Any, Any, float]]
"""USD that an analysis may cost at most; raises `UsageError` for what cannot be asked."""
Ended = Callable[[Report | None, str], None]
"""Told at the end: the report, or None and why there is none."""
UNKEPT = "this report could not be stored and cannot be asked for again"


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
    _begun: asyncio.Event = field(default_factory=asyncio.Event)
    _work: asyncio.Task[Report] | None = None

    def cancel(self) -> None:
        """End the work; what became of it is still noted."""
        self.cancelled = True
        if self._work is not None:
            self._work.cancel()

    @property
    def _fetched(self) -> bool:
        return any(isinstance(event, SourceFetched) for event in self._events)


class Runner:
    """Begins analyses, shares them, keeps what came of them; one per process and event loop."""

    def __init__(self, store: Store, limits: Limits, analyze: Analyze, estimate: Estimate) -> None:
        """Nothing runs yet."""
        self._store, self._limits = store, limits
        self._analyze, self._estimate = analyze, estimate
        self._flights: dict[str, AnalysisFlight] = {}
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

    def leave(self, flight: AnalysisFlight) -> None:
        """Wait no longer; the last to leave a flight that is not detached cancels it."""
        flight.leave()

    async def delete(self, tenant: Tenant, analysis_id: str) -> bool:
        """Delete an analysis, cancelling it first if it runs here; False when there is none."""
        flight = self._flights.get(analysis_id)
        if flight is not None and flight.tenant.id == tenant.id:
            await self._stop(flight)
        return await self._store.delete(tenant.id, analysis_id)

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
        request = json.dumps(asdict(ask), sort_keys=True, default=list)
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
            kept = await self._store.get(tenant.id, owner)
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
                    return await self._landed(flight, seat, spent)
        finally:
            del self._flights[flight.id]
            flight._begun.set()

    async def _landed(self, flight: AnalysisFlight, seat: Seat, spent: Spending) -> Report:
        async def worked() -> Report:
            await seat.turn()
            return await self._analyze(flight.ask, flight.tell, flight.id)

        work = flight._work = asyncio.create_task(worked())
        if flight.cancelled:
            work.cancel()
        flight._begun.set()
        await asyncio.wait([work])
        if work.cancelled():
            spent.counts = flight._fetched
            await self._failed(flight, "cancelled")
            raise Conflict(f"the analysis `{flight.id}` was cancelled")
        if (error := work.exception()) is not None:
            spent.counts = flight._fetched
            if isinstance(error, ListenpostError):
                await self._failed(flight, str(error))
                raise error
            _log.error("the analysis %s failed", flight.id, exc_info=error)
            await self._failed(flight, "internal error")
            raise ListenpostError("internal error")
        report = work.result()
        spent.counts, spent.usd = bool(report.cost.tokens), report.cost.usd
        try:
            await self._store.finish(flight.tenant.id, report)
        except StoreUnavailable as failure:
            _log.warning("the analysis %s could not be stored: %s", flight.id, failure)
            notes = (*report.quality_notes, UNKEPT)
            report = report.model_copy(update={"quality_notes": notes})
        for ended in self._ended:
            ended(report, "")
        return report

    async def _failed(self, flight: AnalysisFlight, reason: str) -> None:
        try:
            await self._store.fail(flight.tenant.id, flight.id, reason)
        except StoreUnavailable as error:
            _log.warning("the analysis %s could not be marked failed: %s", flight.id, error)
        for ended in self._ended:
            ended(None, reason)


def _new_id() -> str:
    return uuid.uuid4().hex
