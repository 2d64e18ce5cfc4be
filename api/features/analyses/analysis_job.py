"""One analysis performed: reserved, begun, run, stored, settled, in whichever process.

An analysis under way in this process, and what another needs to go on with it.

A report is stored, and what its places say is gone goes from what was stored before.

A report that was kept, for whoever wants to go on with it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

from pydantic import TypeAdapter

from api.core.context import Caller
from api.core.progress import Event, Listener, SourceFetched
from api.core.text import clean, one_line
from api.core.work import ProcessStopping, SharedTask, StepRunner, WorkLease
from api.errors import Conflict, ListenpostError, NotFound, StoreUnavailable, UsageError
from api.features.analyses.api_keys import Tenant
from api.features.analyses.limits import Limits, Slot, Spending
from api.features.analyses.store_ports import State, Store, StoredAnalysis
from api.pipeline.gate.drop_reasons import REMOVED
from api.reports.report import Report
from api.services.product import Ask


@dataclass(frozen=True, slots=True)
class WorkOrder:
    """What a process needs to go on with an analysis that another began."""

    analysis_id: str
    tenant: str
    ask: Ask
    trace_id: str
    """Of the trace to which what is done later belongs too."""
    caller: Caller

    @property
    def written(self) -> str:
        """As JSON."""
        return _REQUEST.dump_json(self).decode()

    @classmethod
    def read(cls, text: str) -> WorkOrder:
        """From JSON."""
        return _REQUEST.validate_json(text)


_REQUEST = TypeAdapter(WorkOrder)


@dataclass(slots=True, eq=False, kw_only=True)
class AnalysisTask(SharedTask[Report]):
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
    resumed: bool = False
    """Another process began it, or left it in the queue."""
    abandoned: bool = False
    """Another process goes on with it."""
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    """It is known whether it may begin."""
    work: asyncio.Task[Report] | None = None

    @property
    def query(self) -> str:
        """What is asked."""
        return self.ask.query

    def cancel(self) -> None:
        """End the work; what became of it is still noted."""
        self.cancelled = True
        if self.work is not None:
            self.work.cancel()

    def abandon(self) -> None:
        """Work at it no longer, so that another process goes on."""
        self.abandoned = True
        if self.work is not None:
            self.work.cancel()


Analyze = Callable[[Tenant, Ask, Listener, str, StepRunner], Coroutine[Any, Any, Report]]
"""The report of a question under the id that is given."""
Estimate = Callable[[Ask], Coroutine[Any, Any, float]]
"""USD that an analysis may cost at most; raises `UsageError` for what cannot be asked."""
Tenants = Callable[[str], Coroutine[Any, Any, Tenant | None]]
"""The tenant of an id; None of a key that is no longer valid."""
Begin = Callable[[Tenant, Ask, str], Coroutine[Any, Any, "AnalysisTask | StoredAnalysis"]]
"""Begins a question under an id: here, or wherever there is room."""
Ended = Callable[[Report | None, str], None]
"""Told at the end: the report, or None and why there is none."""


async def nobody(tenant: str) -> Tenant | None:
    """Nobody is known: no work of other processes is gone on with."""
    return None


async def keep_report(store: Store, tenant: str, report: Report) -> None:
    """Store a report, after forgetting the words of items that it met as removed.

    Raises:
        StoreUnavailable: the database cannot be used.
    """
    if gone := set(_gone(report)):
        stored = await store.facts(tenant, gone)
        # the rest holds nothing that could be forgotten; looking for it costs cached pages
        worded = [key for key, item in stored.items() if item.title or item.body or item.comments]
        if worded:
            await store.forget(worded)
    await store.finish(tenant, report)


def _gone(report: Report) -> Iterator[str]:
    """Keys of what a place said is removed; the sample world says so of nothing real."""
    if report.sample:
        return
    parts = [report.dropped, *(source.dropped for source in report.sources.values())]
    for entry in (entry for part in parts for entry in part):
        if entry.dropped_by == "unfit" and entry.reason == REMOVED:
            yield entry.key


CANCELLED = "cancelled"
"""Why an analysis has no report that somebody ended."""
UNKEPT = "this report could not be stored and is lost when the server stops"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class AnalysisJob:
    """Performs analyses, whoever waits for them."""

    store: Store
    limits: Limits
    analyze: Analyze
    estimate: Estimate
    ended: list[Ended] = field(default_factory=list)
    """Who is told of each that ends."""
    unstored: dict[str, StoredAnalysis] = field(default_factory=dict)
    """How those ended that could not be stored: while the store fails nothing is begun, so these
    are no more than were under way."""

    async def perform(self, task: AnalysisTask, lease: WorkLease) -> Report:
        """The report, kept; what it may cost is reserved before, and settled after it.

        Raises:
            Conflict: it was cancelled.
            LimitReached: it may not be begun.
            ListenpostError: it failed; the store says why.
            StoreUnavailable: it could not be noted, so it was not begun.
            UsageError: it cannot be asked.
        """
        usd, tenant = await self.estimate(task.ask), task.tenant
        with self.limits.queue.joined(tenant, always=task.resumed) as slot:
            async with self.limits.spending(
                tenant, usd=usd, analyses=1, work_id=lease.work_id
            ) as spent:
                task.began = await self.store.begin(
                    tenant.id, task.id, task.ask.query, lease.work_id, task.ask.digest
                )
                self.unstored.pop(task.id, None)
                return await self._landed(task, slot, spent, lease)

    async def _landed(
        self, task: AnalysisTask, slot: Slot, spent: Spending, lease: WorkLease
    ) -> Report:
        def hear(event: Event) -> None:
            if isinstance(event, SourceFetched):
                spent.counts = True

        async def worked() -> Report:
            task.listen(hear)
            await slot.wait()
            tell = lease.recorded(task.publish)
            report = await self.analyze(task.tenant, task.ask, tell, task.id, lease.run_step)
            if not await lease.run_step("store", bool, partial(self._stored, task, report)):
                notes = (*report.quality_notes, UNKEPT)
                report = report.model_copy(update={"quality_notes": notes})
                self._note(task, report)
            return report

        work = task.work = asyncio.create_task(worked())
        if task.cancelled or task.abandoned:
            work.cancel()
        task.begun.set()
        await asyncio.wait([work])
        if work.cancelled():
            if task.abandoned and not task.cancelled and lease.work_id:
                spent.continued = True
                raise asyncio.CancelledError
            await self._failed(task, CANCELLED)
            raise Conflict(f"the analysis `{task.id}` was cancelled")
        if (error := _single(work.exception())) is not None:
            if isinstance(error, ProcessStopping):
                spent.continued = True
                raise asyncio.CancelledError
            if isinstance(error, ListenpostError):
                await self._failed(task, str(error))
                raise error
            _log.error("the analysis %s failed", task.id, exc_info=error)
            await self._failed(task, "internal error")
            raise ListenpostError("internal error")
        report = work.result()
        spent.counts, spent.usd = bool(report.cost.tokens), report.cost.usd
        for ended in self.ended:
            ended(report, "")
        return report

    async def _stored(self, task: AnalysisTask, report: Report) -> bool:
        try:
            await keep_report(self.store, task.tenant.id, report)
        except StoreUnavailable as failure:
            _log.warning("the analysis %s could not be stored: %s", task.id, failure)
            return False
        return True

    def _note(self, task: AnalysisTask, report: Report | None, reason: str = "") -> None:
        """Remember how one ended of which the store knows only that it ran."""
        state: State = "failed" if report is None else "done"
        self.unstored[task.id] = StoredAnalysis(
            task.id, task.tenant.id, state, task.began, task.query, report, reason or None
        )

    async def _failed(self, task: AnalysisTask, reason: str) -> None:
        try:
            await self.store.fail(task.tenant.id, task.id, reason)
        except StoreUnavailable as error:
            _log.warning("the analysis %s could not be marked failed: %s", task.id, error)
            self._note(task, None, reason)
        for ended in self.ended:
            ended(None, reason)


def _single(error: BaseException | None) -> BaseException | None:
    """The first of errors of ours that came together: all sources hear at once of an end."""
    if isinstance(error, BaseExceptionGroup) and error.split(ListenpostError)[1] is None:
        return _single(error.exceptions[0])
    return error


async def stored_report(store: Store, tenant: str, report_id: str) -> Report:
    """A report that the tenant keeps.

    Raises:
        NotFound: there is none of that id.
        UsageError: the analysis is not done, or failed.
        StoreUnavailable: the database cannot be used.
    """
    possible = report_id.isascii() and report_id.isalnum()  # some databases refuse other signs
    kept = await store.get(tenant, report_id) if possible else None
    if kept is None:
        raise missing(report_id)
    if kept.report is None:
        raise UsageError(kept.why_none)
    return kept.report


def missing(report_id: str) -> NotFound:
    """That the tenant keeps no report of that id."""
    return NotFound(f"there is no report `{one_line(clean(report_id))[:60]}`")
