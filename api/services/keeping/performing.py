"""One analysis performed: reserved, begun, run, stored, settled, in whichever process."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from functools import partial

from api.errors import Conflict, ListenpostError, StoreUnavailable
from api.services.durable import Life, Stopping
from api.services.keeping.analysis_flight import AnalysisFlight, Analyze, Ended, Estimate
from api.services.keeping.forgetting import keep_report
from api.services.keeping.limits import Limits, Spending
from api.services.keeping.storage import Kept, State, Store
from api.services.keeping.turns import Seat
from api.services.progress import Event, SourceFetched
from api.services.reporting.report import Report

CANCELLED = "cancelled"
"""Why an analysis has no report that somebody ended."""
UNKEPT = "this report could not be stored and is lost when the server stops"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Performance:
    """Performs analyses, whoever waits for them."""

    store: Store
    limits: Limits
    analyze: Analyze
    estimate: Estimate
    ended: list[Ended] = field(default_factory=list)
    """Who is told of each that ends."""
    unstored: dict[str, Kept] = field(default_factory=dict)
    """How those ended that could not be stored: while the store fails nothing is begun, so these
    are no more than were under way."""

    async def perform(self, flight: AnalysisFlight, life: Life) -> Report:
        """The report, kept; what it may cost is reserved before, and settled after it.

        Raises:
            Conflict: it was cancelled.
            LimitReached: it may not be begun.
            ListenpostError: it failed; the store says why.
            StoreUnavailable: it could not be noted, so it was not begun.
            UsageError: it cannot be asked.
        """
        usd, tenant = await self.estimate(flight.ask), flight.tenant
        with self.limits.turns.seat(tenant, always=flight.resumed) as seat:
            async with self.limits.spending(
                tenant, usd=usd, analyses=1, work_id=life.work_id
            ) as spent:
                flight.began = await self.store.begin(
                    tenant.id, flight.id, flight.ask.query, life.work_id, flight.ask.digest
                )
                self.unstored.pop(flight.id, None)
                return await self._landed(flight, seat, spent, life)

    async def _landed(
        self, flight: AnalysisFlight, seat: Seat, spent: Spending, life: Life
    ) -> Report:
        def hear(event: Event) -> None:
            if isinstance(event, SourceFetched):
                spent.counts = True

        async def worked() -> Report:
            flight.listen(hear)
            await seat.turn()
            tell = life.heard(flight.tell)
            report = await self.analyze(flight.tenant, flight.ask, tell, flight.id, life.keep)
            if not await life.keep("store", bool, partial(self._stored, flight, report)):
                notes = (*report.quality_notes, UNKEPT)
                report = report.model_copy(update={"quality_notes": notes})
                self._note(flight, report)
            return report

        work = flight.work = asyncio.create_task(worked())
        if flight.cancelled or flight.abandoned:
            work.cancel()
        flight.begun.set()
        await asyncio.wait([work])
        if work.cancelled():
            if flight.abandoned and not flight.cancelled and life.work_id:
                spent.goes_on = True
                raise asyncio.CancelledError
            await self._failed(flight, CANCELLED)
            raise Conflict(f"the analysis `{flight.id}` was cancelled")
        if (error := _single(work.exception())) is not None:
            if isinstance(error, Stopping):
                spent.goes_on = True
                raise asyncio.CancelledError
            if isinstance(error, ListenpostError):
                await self._failed(flight, str(error))
                raise error
            _log.error("the analysis %s failed", flight.id, exc_info=error)
            await self._failed(flight, "internal error")
            raise ListenpostError("internal error")
        report = work.result()
        spent.counts, spent.usd = bool(report.cost.tokens), report.cost.usd
        for ended in self.ended:
            ended(report, "")
        return report

    async def _stored(self, flight: AnalysisFlight, report: Report) -> bool:
        try:
            await keep_report(self.store, flight.tenant.id, report)
        except StoreUnavailable as failure:
            _log.warning("the analysis %s could not be stored: %s", flight.id, failure)
            return False
        return True

    def _note(self, flight: AnalysisFlight, report: Report | None, reason: str = "") -> None:
        """Remember how one ended of which the store knows only that it ran."""
        state: State = "failed" if report is None else "done"
        self.unstored[flight.id] = Kept(
            flight.id, flight.tenant.id, state, flight.began, flight.query, report, reason or None
        )

    async def _failed(self, flight: AnalysisFlight, reason: str) -> None:
        try:
            await self.store.fail(flight.tenant.id, flight.id, reason)
        except StoreUnavailable as error:
            _log.warning("the analysis %s could not be marked failed: %s", flight.id, error)
            self._note(flight, None, reason)
        for ended in self.ended:
            ended(None, reason)


def _single(error: BaseException | None) -> BaseException | None:
    """The first of errors of ours that came together: all sources hear at once of an end."""
    if isinstance(error, BaseExceptionGroup) and error.split(ListenpostError)[1] is None:
        return _single(error.exceptions[0])
    return error
