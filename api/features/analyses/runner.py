"""Analyses of a server's tenants, by themselves and in comparisons: begun, shared and followed.

Identical requests of one tenant share one task; it is cancelled when the last who waits for it
leaves, unless it is detached. Who loses the connection may come back and follow it, which never
begins another. A comparison begins an analysis for each product; each is stored like any other.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import secrets
import uuid
from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

from api.core.context import adopt_trace_id, current_caller, current_trace_id, set_caller
from api.core.display_names import SourceLabels
from api.core.progress import Listener, ignore_event
from api.core.work import Engine, Failure, ProcessStopping, WorkLease
from api.errors import Conflict, ListenpostError, StoreUnavailable, UsageError
from api.features.analyses.analysis_job import (
    CANCELLED,
    AnalysisJob,
    AnalysisTask,
    Analyze,
    Begin,
    Ended,
    Estimate,
    Tenants,
    WorkOrder,
    no_tenants,
)
from api.features.analyses.api_keys import REVOKED, Tenant
from api.features.analyses.limits import Limits
from api.features.analyses.store_ports import COMPARISON, Store, StoredAnalysis
from api.features.comparisons.compare import analyze_each, ask_of_report, comparison_of
from api.features.comparisons.comparison import Comparison
from api.reports.report import Report
from api.services.product import Ask

_log = logging.getLogger(__name__)
KIND = "analysis"
"""Kind of durable work that is an analysis."""
STORE_TRIES = 6
"""Times that work of other processes is tried again while the store cannot be used, with pauses that double."""
UNNOTED = "its work could not be noted, so it was refused"
YIELDED = 15.0
"""Longest that work which has its turn waits for requests that are being accepted, in seconds."""
BEGUN_AT_ONCE = 4
"""Requests that the store is asked about at the same time: more would wait for its connections until these time out."""
PAUSE = 1.0
"""Seconds between two looks at an analysis that another process runs."""


class Runner:
    """Starts analyses, shares them between callers and stores their outcome; one per process and event loop."""

    def __init__(
        self,
        store: Store,
        limits: Limits,
        analyze: Analyze,
        estimate: Estimate,
        grace: float = 0.0,
        pause: float = PAUSE,
        engine: Engine | None = None,
        tenants: Tenants = no_tenants,
    ) -> None:
        """`grace`: seconds for which a lost connection still counts as somebody who waits."""
        self._store, self._limits = store, limits
        self._engine, self._tenant_of = engine, tenants
        self._job = AnalysisJob(store, limits, analyze, estimate, self._until_quiet)
        self._accepting, self._quiet = 0, asyncio.Event()
        self._quiet.set()
        self._grace, self._pause = grace, pause
        self._tasks: dict[str, AnalysisTask] = {}
        # of each question that is being begun, by tenant and digest: of two at once the second finds the first
        self._claiming = WeakValueDictionary[tuple[str, str], asyncio.Lock]()
        self._begin_few = asyncio.Semaphore(BEGUN_AT_ONCE)
        self._closed = False

    def on_end(self, ended: Ended) -> None:
        """Call `ended` with the outcome of every analysis."""
        self._job.ended.append(ended)

    async def run(self, tenant: Tenant, ask: Ask, listener: Listener = ignore_event, key: str | None = None) -> Report:
        """A finished report; cancelling the caller cancels the work if nobody else waits for it.

        Work of another process is waited for.

        Raises:
            Conflict: the key was used for another request, or its analysis has failed.
            LimitReached: the tenant may begin none now.
            StoreUnavailable: it could not be stored, so it was not begun.
            UsageError: it cannot be asked.
        """
        task = await self.join(tenant, ask, key)
        if isinstance(task, StoredAnalysis):
            return await self.outcome(task)
        try:
            task.listen(listener)
            return await task.result()
        finally:
            self.leave(task)

    async def join(
        self, tenant: Tenant, ask: Ask, key: str | None = None, *, detached: bool = False
    ) -> AnalysisTask | StoredAnalysis:
        """The task of a request, begun or shared; call `leave` when done with it.

        A `detached` one goes on when nobody waits, and is queued for all processes when it would
        have to wait here. With an idempotency key that was used before it is that request's task,
        or what is stored of it: a report, or an analysis of another process. A failed one is begun
        again.

        Raises:
            Conflict: the key was used for another request.
            LimitReached: the tenant may begin none now.
            StoreUnavailable: it could not be stored, so it was not begun.
        """
        begin: Begin = self._launch
        if detached and self._engine is not None:
            begin = partial(self._launch_or_queue, self._engine)
        with self._accepted() if detached else nullcontext():
            claiming = self._claiming.setdefault((tenant.id, ask.digest), asyncio.Lock())
            async with claiming, self._begin_few:
                task = await self._claimed(tenant, ask, key, begin)
            if isinstance(task, StoredAnalysis):
                return task
            task.detached |= detached
            task.waiting += 1
            with ExitStack() as failing:
                failing.callback(self.leave, task)
                await task.begun.wait()
                task.raise_if_failed()
                failing.pop_all()
            return task

    @contextmanager
    def _accepted(self) -> Iterator[None]:
        """Have analyses wait in `_until_quiet` while a request is taken whose caller does not wait for the report."""
        self._accepting += 1
        self._quiet.clear()
        try:
            yield
        finally:
            self._accepting -= 1
            if not self._accepting:
                self._quiet.set()

    async def _until_quiet(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(YIELDED):
                await self._quiet.wait()

    async def begin(self, tenant: Tenant, ask: Ask) -> str:
        """Start an analysis without waiting for it, and return its id. Raises as `join` does."""
        task = await self.join(tenant, ask, detached=True)
        if not isinstance(task, StoredAnalysis):
            self.leave(task)
        return task.id

    async def kept(self, tenant: str, analysis_id: str) -> StoredAnalysis | None:
        """One analysis of this tenant as stored, or its outcome when that could not be stored."""
        unstored = self._job.unstored.get(analysis_id)
        if unstored is not None and unstored.tenant == tenant:
            return unstored
        return await self._store.get(tenant, analysis_id)

    async def follow(self, tenant: Tenant, analysis_id: str) -> AnalysisTask | StoredAnalysis | None:
        """An analysis that was begun before: its task while it runs here, else what is stored.

        Begins nothing; None when there is none. Call `leave` when done with a task.
        """
        task = self._tasks.get(analysis_id)
        if task is not None and task.tenant.id == tenant.id and task.begun.is_set():
            task.waiting += 1
            return task
        return await self.kept(tenant.id, analysis_id)

    async def awaited(self, kept: StoredAnalysis) -> AnalysisTask | StoredAnalysis:
        """An analysis of another process once it has ended, or its task when this process continues the work.

        Call `leave` when done with a task.

        Raises:
            Conflict: it was deleted meanwhile.
        """
        while kept.state == "running":
            task = self._tasks.get(kept.id)
            if task is not None and task.begun.is_set():
                task.waiting += 1
                return task
            await asyncio.sleep(self._pause)
            later = await self.kept(kept.tenant, kept.id)
            if later is None:
                raise _no_report(kept, "it was deleted")
            kept = later
        return kept

    async def outcome(self, kept: StoredAnalysis) -> Report:
        """The report of an analysis of another process, which is waited for.

        Raises:
            Conflict: it has failed, or was deleted meanwhile.
        """
        ended = await self.awaited(kept)
        if isinstance(ended, AnalysisTask):
            try:
                return await ended.result()
            finally:
                self.leave(ended)
        if ended.report is None:
            raise _no_report(ended, ended.reason or ended.state)
        return ended.report

    def leave(self, task: AnalysisTask, *, lost: bool = False) -> None:
        """Stop waiting; when the last caller leaves, a task that is not detached is cancelled.

        When the connection was `lost`, the task goes on for the grace as if somebody waited.
        """
        if lost and self._grace:
            asyncio.get_running_loop().call_later(self._grace, task.leave)
        else:
            task.leave()

    async def cancel(self, tenant: Tenant, analysis_id: str) -> None:
        """End an analysis if it runs, here or elsewhere, and store that it was cancelled."""
        task = self._tasks.get(analysis_id)
        if task is not None and task.tenant.id == tenant.id:
            await self._stop(task)
        elif (kept := await self.kept(tenant.id, analysis_id)) and kept.state == "running":
            if self._engine is not None:
                await self._engine.cancel(_work_of(analysis_id))
            await self._store.fail(tenant.id, analysis_id, CANCELLED)

    async def delete(self, tenant: Tenant, analysis_id: str) -> bool:
        """Delete an analysis, cancelling it first if it runs; False when there is none."""
        await self.cancel(tenant, analysis_id)
        deleted = await self._store.delete(tenant.id, analysis_id)
        if deleted:
            self._job.unstored.pop(analysis_id, None)
        return deleted

    async def store_again(self) -> None:
        """Store the outcomes that could not be stored when their work ended."""
        await self._job.store_again()

    async def aclose(self) -> None:
        """Stop everything under way: durable work is continued elsewhere, the rest has failed."""
        self._closed = True  # nor is anything begun that was about to be
        tasks = list(self._tasks.values())
        for task in tasks:
            task.abandon()
        await asyncio.gather(*(task.ended() for task in tasks))

    async def resume(self, written: str, lease: WorkLease) -> None:
        """Continue an analysis that another process began, or left in the queue.

        While the store cannot be used it is tried again, for about a minute: an error here would end the work, of
        which the engine then knows nothing more.
        """
        for number in range(STORE_TRIES):
            try:
                await self._resume_once(written, lease, retried=True)
            except StoreUnavailable:
                await asyncio.sleep(self._pause * 2**number)
            else:
                return
        await self._resume_once(written, lease)

    async def give_up(self, written: str, reason: str) -> None:
        """Store that an analysis failed when no process continues it; one that has ended stays unchanged."""
        request = WorkOrder.read(written)
        await self._store.fail(request.tenant, request.analysis_id, reason)

    async def _resume_once(self, written: str, lease: WorkLease, *, retried: bool = False) -> None:
        request = WorkOrder.read(written)
        tenant = await self._tenant_of(request.tenant)
        if tenant is None:
            await self._store.fail(request.tenant, request.analysis_id, REVOKED)
            return
        kept = await self._store.get(tenant.id, request.analysis_id)
        if kept is not None and (kept.state, kept.reason) == ("failed", CANCELLED):
            return  # its process died before the engine knew
        set_caller(request.caller)
        adopt_trace_id(request.trace_id)
        task = AnalysisTask(
            id=request.analysis_id, tenant=tenant, ask=request.ask, detached=True, resumed=True, retried=retried
        )
        self._tasks[task.id], name = task, f"analysis {task.id}"
        task.start(self._until_end(task, self._job.run(task, lease)), name)
        try:
            await task.result()
        except StoreUnavailable:
            raise
        except ListenpostError as error:  # one that ran has stored its reason itself
            await self._store.fail(tenant.id, task.id, str(error))

    async def _stop(self, task: AnalysisTask) -> None:
        task.cancel()
        await task.ended()

    def _same(self, tenant: Tenant, ask: Ask) -> AnalysisTask | None:
        for task in self._tasks.values():
            if task.tenant.id == tenant.id and task.ask == ask and not task.cancelled:
                return task
        return None

    async def _elsewhere(self, tenant: Tenant, ask: Ask) -> StoredAnalysis | None:
        """The analysis of the same question that another process runs; None when there is none."""
        if self._engine is None:
            return None
        analysis_id = await self._store.running(tenant.id, ask.digest)
        return None if analysis_id is None else await self.kept(tenant.id, analysis_id)

    async def _claimed(self, tenant: Tenant, ask: Ask, key: str | None, begin: Begin) -> AnalysisTask | StoredAnalysis:
        same = self._same(tenant, ask)
        if key is None:
            shared = same or await self._elsewhere(tenant, ask)
            return shared or await begin(tenant, ask, _new_id())
        wanted = same.id if same else _new_id()
        try:
            owner, mine = await self._store.claim(tenant.id, key, ask.digest, wanted)
        except UsageError as error:
            raise Conflict(str(error)) from None
        task = self._tasks.get(owner)
        if task is not None and task.cancelled:
            await self._stop(task)
        elif task is not None:
            return task
        if same is not None or not mine:
            kept = await self.kept(tenant.id, owner) or await self._stored_order(tenant, ask, owner)
            if kept is not None and kept.state != "failed":
                return kept
        return await begin(tenant, ask, owner)

    async def _stored_order(self, tenant: Tenant, ask: Ask, analysis_id: str) -> StoredAnalysis | None:
        """The analysis that another process continues after its own died before it began; None without one."""
        work_id = self._engine and await self._engine.find(_work_of(analysis_id))
        if not work_id:
            return None
        began = await self._store.begin(tenant.id, analysis_id, ask.query, work_id, ask.digest)
        return _running(tenant, analysis_id, ask, began)

    def _check_open(self) -> None:
        if self._closed:
            raise ProcessStopping("this process stops; ask again later")

    async def _launch_or_queue(
        self, engine: Engine, tenant: Tenant, ask: Ask, analysis_id: str
    ) -> AnalysisTask | StoredAnalysis:
        """Begin it here where there is room: also for what is launched and has not joined the queue yet."""
        joining = [task.tenant.id for task in self._tasks.values() if not task.in_queue]
        if self._limits.queue.is_full(tenant, joining):
            return await self._queue(engine, tenant, ask, analysis_id)
        return await self._launch(tenant, ask, analysis_id)

    async def _queue(self, engine: Engine, tenant: Tenant, ask: Ask, analysis_id: str) -> StoredAnalysis:
        self._check_open()
        usd, work_id = await self._job.estimate(ask), _new_work(analysis_id)
        async with self._limits.reserved(tenant, usd=usd, analyses=1, work_id=work_id):
            began = await self._store.begin(tenant.id, analysis_id, ask.query, work_id, ask.digest)
            request = WorkOrder(analysis_id, tenant.id, ask, current_trace_id(), current_caller())
            try:
                await engine.enqueue(KIND, work_id, request.written, tenant.id)
            except StoreUnavailable:  # without this it would look as if it ran, until a process takes it for lost
                await self._store.fail(tenant.id, analysis_id, UNNOTED)
                raise
        return _running(tenant, analysis_id, ask, began)

    async def _launch(self, tenant: Tenant, ask: Ask, analysis_id: str) -> AnalysisTask:
        self._check_open()
        task = AnalysisTask(id=analysis_id, tenant=tenant, ask=ask)
        self._tasks[analysis_id] = task
        request = WorkOrder(analysis_id, tenant.id, ask, current_trace_id(), current_caller())
        work = partial(self._job.run, task)
        running = (
            work(WorkLease())
            if self._engine is None
            else self._engine.run(KIND, _new_work(analysis_id), request.written, work)
        )
        task.start(self._until_end(task, running), f"analysis {analysis_id}")
        return task

    async def _until_end(self, task: AnalysisTask, work: Coroutine[Any, Any, Report]) -> Report:
        try:
            return await work
        finally:  # also when it could not begin
            del self._tasks[task.id]
            task.begun.set()


def _no_report(kept: StoredAnalysis, reason: str) -> Conflict:
    return Conflict(f"the analysis `{kept.id}` has no report: {reason}")


def _running(tenant: Tenant, analysis_id: str, ask: Ask, began: datetime) -> StoredAnalysis:
    return StoredAnalysis(analysis_id, tenant.id, "running", began, ask.query, None)


def _new_work(analysis_id: str) -> str:
    return f"{_work_of(analysis_id)}{secrets.token_hex(4)}"


def _work_of(analysis_id: str) -> str:
    """Prefix of the ids of all work on an analysis."""
    return f"{analysis_id}."


def _new_id() -> str:
    return uuid.uuid4().hex


@dataclass(frozen=True, slots=True)
class Comparisons:
    """Comparisons of a tenant: an analysis for each product, begun together."""

    runner: Runner
    limits: Limits
    store: Store

    @asynccontextmanager
    async def begun(
        self, tenant: Tenant, asks: Sequence[Ask], key: str | None = None
    ) -> AsyncIterator[list[AnalysisTask | StoredAnalysis]]:
        """The analyses in the order of the questions, which the caller leaves with the block.

        The caller's own request is counted already, so each further product is one more. When one
        may not begin, none goes on.

        Raises:
            Conflict: the idempotency key was used for another request.
            LimitReached: the tenant may not begin all of them now.
            StoreUnavailable: they could not be stored.
        """
        for _ in asks[1:]:
            await self.limits.admit(tenant)
        keys: list[str | None] = [None] * len(asks)
        fresh = True
        if key is not None:
            # without `as_of`, which no comparison sets: so the digest is that which older programs stored
            written = [{name: value for name, value in asdict(ask).items() if name != "as_of"} for ask in asks]
            request = json.dumps(written, sort_keys=True)
            digest = hashlib.sha256(request.encode()).hexdigest()
            mark = uuid.uuid4().hex  # of this attempt; the first attempt owns the key
            try:
                _, fresh = await self.store.claim(tenant.id, f"{COMPARISON}{key}", digest, mark)
            except UsageError as error:
                raise Conflict(str(error)) from None
            keys = [f"{COMPARISON}{number}:{key}" for number in range(len(asks))]
        if fresh:  # whatever fails later: the day's analyses suffice for all, or nothing begins
            async with self.limits.spending(tenant, usd=0.0, analyses=len(asks)):
                pass
        tasks: list[AnalysisTask | StoredAnalysis] = []
        try:
            for ask, name in zip(asks, keys, strict=True):
                tasks.append(await self.runner.join(tenant, ask, name))
            yield tasks
        finally:
            for task in tasks:
                if isinstance(task, AnalysisTask):
                    self.runner.leave(task)

    async def answers(
        self,
        asks: Sequence[Ask],
        tasks: Sequence[AnalysisTask | StoredAnalysis],
        listener: Listener = ignore_event,
    ) -> list[Report | Failure]:
        """The report of each question, or how its analysis failed."""
        begun = dict(zip(asks, tasks, strict=True))

        async def result_of(ask: Ask, listener: Listener) -> Report:
            task = begun[ask]
            if isinstance(task, StoredAnalysis):
                return await self.runner.outcome(task)
            task.listen(listener)
            return await task.result()

        return await analyze_each(result_of, asks, listener)


def side_by_side(kept: Sequence[StoredAnalysis], places: SourceLabels) -> Comparison:
    """Compare analyses that have ended, in this order; one without a report counts as failed."""
    asks = [ask_of_report(each.report) if each.report else Ask(each.query) for each in kept]
    answers = [each.report or Failure("failed", (each.reason or each.state).rstrip(".")) for each in kept]
    return comparison_of(asks, answers, places)
