"""Runs one analysis in any process: reserve its cost, run it, store the report, settle the cost."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

from pydantic import TypeAdapter

from api.core.context import Caller
from api.core.domain import REMOVED
from api.core.progress import Event, Listener, SourceFetched
from api.core.text import clean, one_line
from api.core.work import ProcessStopping, SharedTask, StepRunner, WorkLease
from api.errors import Conflict, ListenpostError, NotFound, StoreUnavailable, UsageError
from api.features.analyses.api_keys import Tenant
from api.features.analyses.limits import Limits, Slot, Spending
from api.features.analyses.store_ports import State, Store, StoredAnalysis
from api.reports.report import Report
from api.services.product import Ask

CANCELLED = "cancelled"
"""Reason of an analysis that was cancelled."""
UNKEPT = "this report could not be stored and is lost when the server stops"
_log = logging.getLogger(__name__)
Analyze = Callable[[Tenant, Ask, Listener, str, StepRunner], Coroutine[Any, Any, Report]]
"""Makes the report of a question under the given id."""
Estimate = Callable[[Ask], Coroutine[Any, Any, float]]
"""USD that an analysis may cost at most; raises `UsageError` for what cannot be asked."""
Tenants = Callable[[str], Coroutine[Any, Any, Tenant | None]]
"""Returns the tenant of an id; None when its key is no longer valid."""
Begin = Callable[[Tenant, Ask, str], Coroutine[Any, Any, "AnalysisTask | StoredAnalysis"]]
"""Begins a question under an id: here, or in the queue of all processes."""
Ended = Callable[[Report | None, str], None]
"""Called at the end with the report, or with None and the reason."""


@dataclass(frozen=True, slots=True)
class WorkOrder:
    """Data that a process needs to continue an analysis that another began."""

    analysis_id: str
    tenant: str
    ask: Ask
    trace_id: str
    """Trace to which what is done later belongs too."""
    caller: Caller

    @property
    def written(self) -> str:
        """The order as JSON, which `WorkOrder.read` reads in whatever process continues the work."""
        return _ORDER.dump_json(self).decode()

    @classmethod
    def read(cls, text: str) -> WorkOrder:
        """The order that `written` wrote; raises `ValueError` for another text."""
        return _ORDER.validate_json(text)


_ORDER = TypeAdapter(WorkOrder)


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
    """When the analysis began; set once `Runner.join` has returned the task."""
    first: int = field(default_factory=lambda: time.time_ns() // 1_000)
    """Number of its first event: microseconds since 1970. A later run under the same id, in any
    process, so has higher numbers than all events of this one."""
    resumed: bool = False
    """Another process began it, or left it in the queue."""
    retried: bool = False
    """Another try follows if the store cannot be used: this one then neither ends nor settles anything."""
    abandoned: bool = False
    """Another process continues the work: this one stores no outcome and settles no budget."""
    in_queue: bool = False
    """Whether the task has joined the queue, which counts it from then on."""
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when it is known whether it may begin."""
    work: asyncio.Task[Report] | None = None

    @property
    def query(self) -> str:
        """Text of the question, as the person wrote it."""
        return self.ask.query

    def cancel(self) -> None:
        """Cancel the work; its outcome is still stored."""
        self.cancelled = True
        if self.work is not None:
            self.work.cancel()

    def abandon(self) -> None:
        """Stop the work here, so that another process continues it."""
        self.abandoned = True
        if self.work is not None:
            self.work.cancel()


async def no_tenants(tenant: str) -> Tenant | None:
    """`Tenants` without any: work of other processes is not continued."""
    return None


async def no_wait() -> None:
    """Return immediately; the default when no 202 answer has to be sent first."""


async def keep_report(store: Store, tenant: str, report: Report, work_id: str | None = None) -> bool:
    """Store a report, after forgetting the words of items that a source called removed.

    `work_id` and what is returned are those of `Store.finish`.

    Raises:
        StoreUnavailable: the database cannot be used.
    """
    entries = [*report.dropped]
    for source in report.sources.values():
        entries += source.dropped
    removed = {e.key for e in entries if e.dropped_by == "unfit" and e.reason == REMOVED}
    if removed and not report.sample:  # the sample data says nothing about real items
        stored = await store.facts(tenant, removed)
        # the rest holds nothing that could be forgotten; looking for it costs cached pages
        worded = [key for key, item in stored.items() if item.title or item.body or item.comments]
        if worded:
            await store.forget(worded)
    return await store.finish(tenant, report, work_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnstoredAnalysis(StoredAnalysis):
    """The outcome of an analysis that could not be stored."""

    work_id: str
    """Id of the durable work that produced it; empty when the work ends with this process."""


@dataclass(frozen=True, slots=True)
class AnalysisJob:
    """Runs analyses on behalf of `Runner`."""

    store: Store
    limits: Limits
    analyze: Analyze
    estimate: Estimate
    quiet: Callable[[], Awaitable[None]] = no_wait
    """Waits until no request is being accepted, for a bounded time: work takes the processor and the database that
    an answer of 202 needs."""
    ended: list[Ended] = field(default_factory=list)
    """Called with the outcome of each."""
    unstored: dict[str, UnstoredAnalysis] = field(default_factory=dict)
    """Outcomes that could not be stored, by id. While the store fails nothing is begun, so these
    are no more than were under way."""

    async def run(self, task: AnalysisTask, lease: WorkLease) -> Report:
        """Make and store the report; its cost is reserved before and settled afterwards.

        Raises:
            Conflict: it was cancelled.
            LimitReached: it may not be begun.
            ListenpostError: it failed; the store has the reason.
            StoreUnavailable: it could not be stored as begun, so it was not.
            UsageError: it cannot be asked.
        """
        usd, tenant = await self.estimate(task.ask), task.tenant
        with self.limits.queue.joined(tenant, always=task.resumed) as slot:
            task.in_queue = True
            async with self.limits.spending(tenant, usd=usd, analyses=1, work_id=lease.work_id) as spent:
                try:
                    task.began = await self.store.begin(
                        tenant.id, task.id, task.ask.query, lease.work_id, task.ask.digest
                    )
                    self.unstored.pop(task.id, None)
                    return await self._run_begun(task, slot, spent, lease)
                except StoreUnavailable:
                    spent.continued = task.retried
                    raise

    async def _run_begun(self, task: AnalysisTask, slot: Slot, spent: Spending, lease: WorkLease) -> Report:
        def hear(event: Event) -> None:
            if isinstance(event, SourceFetched):
                spent.counts = True

        async def make_report() -> Report:
            task.listen(hear)
            await slot.wait()
            await self.quiet()
            publish = lease.recorded(task.publish)
            report = await self.analyze(task.tenant, task.ask, publish, task.id, lease.run_step)
            if not await lease.run_step("store", bool, partial(self._store, task, report)):
                notes = (*report.quality_notes, UNKEPT)
                report = report.model_copy(update={"quality_notes": notes})
                self._remember(task, lease.work_id, report)
            return report

        work = task.work = asyncio.create_task(make_report())
        if task.cancelled or task.abandoned:
            work.cancel()
        task.begun.set()
        await asyncio.wait([work])
        error = None if work.cancelled() else _single(work.exception())
        unavailable = isinstance(error, StoreUnavailable)
        if work.cancelled() or (unavailable and task.cancelled):
            if task.abandoned and not task.cancelled and lease.work_id:
                spent.continued = True
                raise asyncio.CancelledError
            await self._fail(task, lease.work_id, CANCELLED)
            raise Conflict(f"the analysis `{task.id}` was cancelled")
        if error is not None:
            if isinstance(error, ProcessStopping):
                spent.continued = True
                raise asyncio.CancelledError
            if unavailable and task.retried:
                raise error
            if isinstance(error, ListenpostError):
                await self._fail(task, lease.work_id, str(error))
                raise error
            _log.error("the analysis %s failed", task.id, exc_info=error)
            await self._fail(task, lease.work_id, "internal error")
            raise ListenpostError("internal error")
        report = work.result()
        spent.ended(report.cost.tokens, report.cost.usd)
        for ended in self.ended:
            ended(report, "")
        return report

    async def _store(self, task: AnalysisTask, report: Report) -> bool:
        try:
            await keep_report(self.store, task.tenant.id, report)
        except StoreUnavailable as failure:
            _log.warning("the analysis %s could not be stored: %s", task.id, failure)
            return False
        return True

    async def _fail(self, task: AnalysisTask, work_id: str, reason: str) -> None:
        try:
            await self.store.fail(task.tenant.id, task.id, reason)
        except StoreUnavailable as error:
            _log.warning("the analysis %s could not be marked failed: %s", task.id, error)
            self._remember(task, work_id, None, reason)
        for ended in self.ended:
            ended(None, reason)

    async def store_again(self) -> None:
        """Store the outcomes that could not be stored; while one cannot be, the others wait.

        Nobody else knows of them: work that has ended is in the engine no more, so another process would take it for
        lost. An analysis that was deleted meanwhile, or begun again, in whatever process, stays as it is.
        """
        for kept in list(self.unstored.values()):
            if self.unstored.get(kept.id) is not kept:  # while another was stored
                continue
            try:
                stored = await self._store_outcome(kept)
            except StoreUnavailable:
                return
            if self.unstored.get(kept.id) is kept:
                del self.unstored[kept.id]
            result = (
                "is stored now" if stored else "was deleted, begun again or ended elsewhere: its outcome is dropped"
            )
            _log.warning("the analysis %s %s", kept.id, result)

    async def _store_outcome(self, kept: UnstoredAnalysis) -> bool:
        if kept.report is None:
            return await self.store.fail(kept.tenant, kept.id, kept.reason or "internal error", kept.work_id)
        notes = tuple(note for note in kept.report.quality_notes if note != UNKEPT)
        report = kept.report.model_copy(update={"quality_notes": notes})
        return await keep_report(self.store, kept.tenant, report, kept.work_id)

    def _remember(self, task: AnalysisTask, work_id: str, report: Report | None, reason: str = "") -> None:
        state: State = "failed" if report is None else "done"
        self.unstored[task.id] = UnstoredAnalysis(
            task.id, task.tenant.id, state, task.began, task.query, report, reason or None, work_id=work_id
        )


def _single(error: BaseException | None) -> BaseException | None:
    """The first of several errors of ours: a cancelled run fails in all its sources at once."""
    if isinstance(error, BaseExceptionGroup) and error.split(ListenpostError)[1] is None:
        return _single(error.exceptions[0])
    return error


async def stored_report(store: Store, tenant: str, report_id: str) -> Report:
    """A report of the tenant.

    Raises:
        NotFound: there is none of that id.
        UsageError: the analysis is not done, or failed.
        StoreUnavailable: the database cannot be used.
    """
    possible = report_id.isascii() and report_id.isalnum()  # some databases refuse other signs
    kept = await store.get(tenant, report_id) if possible else None
    if kept is None:
        raise missing_report(report_id)
    if kept.report is None:
        raise UsageError(kept.why_none)
    return kept.report


def missing_report(report_id: str) -> NotFound:
    """The error that the tenant keeps no report of that id."""
    return NotFound(f"there is no report `{one_line(clean(report_id))[:60]}`")
