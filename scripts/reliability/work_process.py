"""A process that begins or continues durable work until it is killed.

It kills itself at its place: when an analysis reports an event, within a transaction that writes,
or after it. The process that started it may kill it anywhere else.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from importlib.metadata import version
from multiprocessing.connection import Connection
from typing import Any, Literal

from sqlalchemy import Engine, Pool, event

from api import bootstrap
from api.bootstrap.app_context import AppContext, open_app_context
from api.bootstrap.background_work import run_watch
from api.core.context import adopt_trace_id
from api.core.progress import Event
from api.errors import Conflict
from api.features.analyses.analysis_job import AnalysisTask
from api.features.analyses.api_keys import Tenant
from api.features.analyses.store_ports import Filters, StoredAnalysis
from api.services.product import Ask

ENGINE_PAUSE = 0.2
"""Seconds between two looks for work that other processes have left."""
ENGINE_PATIENCE = 10.0
"""Seconds after which work that the engine does not know is lost; who runs it waits a minute in all."""
PAUSE = 0.02
NONE = Filters()
Work = Literal["analysis", "watch", "due watch"]
Moment = Literal["request", "answered", "event", "unrecorded", "recorded", "unstored", "stored", "notified"]
"""A source or model is asked, or has answered; an event is reported; a step or a change of the
store is written but not committed, or is committed; a notification has arrived."""
_ENGINE = ("workflow_", "operation_", "notifications", "streams", "queues", "application_versions")
"""Beginnings of the names of the engine's tables."""
_UPKEEP = ("runs", "schema_version")


@dataclass(frozen=True, slots=True)
class KillPoint:
    """A process is killed at the `number`th of these moments."""

    moment: Moment
    number: int


@dataclass(frozen=True, slots=True)
class WorkOrder:
    """What one process does."""

    environment: Mapping[str, str]
    work: Work
    ask: Ask
    tenant: str
    key: str
    """Idempotency key with which the question is repeated."""
    trace_id: str
    kill_point: KillPoint | None = None
    again: bool = True
    """The question is repeated in this process; else it only continues what was left."""
    by: signal.Signals = signal.SIGKILL
    """Signal that ends it; SIGTERM asks it to stop, as a server."""


@dataclass(slots=True)
class MomentCounter:
    """Counts the moments at which the process could be killed, and kills it at its own."""

    order: WorkOrder
    armed: bool = False
    counts: Counter[Moment] = field(default_factory=Counter)
    steps: list[str] = field(default_factory=list)
    """Names of the steps in the order in which they were recorded."""

    def count_moment(self, moment: Moment) -> None:
        """Count one more, and end the process when it is the one."""
        if not self.armed:
            return
        self.counts[moment] += 1
        if self.order.kill_point == KillPoint(moment, self.counts[moment]):
            os.kill(os.getpid(), self.order.by)

    def tell(self, event: Event) -> None:
        """Count an event of the analysis."""
        self.count_moment("event")

    def watch_databases(self) -> None:
        """Count what this process writes from now on."""

        @event.listens_for(Engine, "after_cursor_execute")
        def written(connection: Any, cursor: Any, statement: str, values: Any, context: Any, many: bool) -> None:
            verb, table = _changed(statement)
            recorded = (verb, table) == ("INSERT", "operation_outputs")
            if not recorded and (not table or table in _UPKEEP or table.startswith(_ENGINE)):
                return
            if recorded and self.armed:
                self.steps += [str(row["function_name"]) for row in context.compiled_parameters]
            connection.info["written"] = "recorded" if recorded else "stored"
            self.count_moment("unrecorded" if recorded else "unstored")

        @event.listens_for(Pool, "checkin")
        def returned(connection: Any, record: Any) -> None:
            moment = record.info.pop("written", None)
            if moment is not None:
                self.count_moment(moment)


def _changed(statement: str) -> tuple[str, str]:
    """What a statement does to which table, `INSERT` and `operation_outputs`; empty: no change."""
    verb, *words = [*statement.split(None, 3), "", "", ""][:3]
    named = {"INSERT": words[1], "DELETE": words[1], "UPDATE": words[0]}.get(verb, "")
    # `dbos.operation_outputs` of PostgreSQL, `"dbos"."operation_outputs"` where it is quoted
    return verb, named.replace('"', "").rpartition(".")[2].partition("(")[0]


@dataclass(frozen=True, slots=True)
class WorkResult:
    """State of the work when it is done."""

    state: str
    analyses: tuple[tuple[str, str], ...]
    """Ids and states of all analyses of the tenant."""
    report: Mapping[str, Any] | None
    runs: tuple[tuple[str, str, bool], ...]
    """Ids and states of a watch's runs, and whether all notifications were delivered."""
    kinds: Mapping[str, int]
    """Events that this process received, by kind; empty when it started after them."""
    counts: Mapping[Moment, int]
    steps: tuple[str, ...]


def run_process(order: WorkOrder, pipe: Connection) -> None:
    """Do the work of an order; sends the id of the analysis, then the result."""
    os.environ.clear()
    os.environ.update(order.environment)

    async def stoppable() -> None:
        task = asyncio.create_task(_open_and_run(order, pipe))
        end_with(pipe)
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        await asyncio.wait([task])
        if not task.cancelled():
            task.result()

    asyncio.run(stoppable())


def end_with(pipe: Connection) -> None:
    """End this process when the other end of the pipe is closed."""
    asyncio.get_running_loop().add_reader(pipe.fileno(), os._exit, 1)


def delete(environment: Mapping[str, str], tenant: str, analysis_id: str) -> None:
    """Delete an analysis, whichever process runs it."""
    os.environ.clear()
    os.environ.update(environment)

    async def deleting() -> None:
        async with opened() as app_context:
            owner = await app_context.keys.tenant(tenant)
            assert owner is not None
            assert await app_context.runner.delete(owner, analysis_id)

    asyncio.run(deleting())


@asynccontextmanager
async def opened() -> AsyncIterator[AppContext]:
    """A durable context that is ready, and often looks for work that others have left."""
    app_context = await open_app_context(bootstrap.load_settings(), durable=True)
    assert app_context.engine is not None
    app_context.engine.pause, app_context.engine.patience = ENGINE_PAUSE, ENGINE_PATIENCE
    try:
        await app_context.product()
        yield app_context
    finally:
        await app_context.aclose()


async def _open_and_run(order: WorkOrder, pipe: Connection) -> None:
    counter = MomentCounter(order)
    counter.watch_databases()
    async with opened() as app_context:
        pipe.send(await _run_work(app_context, order, counter, pipe))


async def _run_work(app_context: AppContext, order: WorkOrder, counter: MomentCounter, pipe: Connection) -> WorkResult:
    known = await app_context.keys.tenant(order.tenant)
    tenant = known or Tenant(order.tenant, "store")  # who is known no more only waits
    adopt_trace_id(order.trace_id)
    counter.armed = True
    event_counts: Counter[str] = Counter()
    listening = asyncio.create_task(_listen(app_context, tenant, counter, event_counts))
    step: Callable[..., Coroutine[Any, Any, None]] = _analysis
    if order.work != "analysis":
        step = _watch
    if order.again and known is not None:
        await step(app_context, tenant, order, pipe)
        if order.work == "analysis" and not (await app_context.store.listing(tenant.id, NONE, 1)).analyses:
            return await _result_of(app_context, tenant, counter, event_counts)  # somebody has deleted it
    await _until_over(app_context, tenant, order)
    await _until_dropped()  # a run that is stored before its step is noted is told once more
    listening.cancel()
    return await _result_of(app_context, tenant, counter, event_counts)


async def _analysis(app_context: AppContext, tenant: Tenant, order: WorkOrder, pipe: Connection) -> None:
    task = await app_context.runner.join(tenant, order.ask, order.key, detached=True)
    pipe.send(task.id)
    with suppress(Conflict):  # it was cancelled
        if isinstance(task, StoredAnalysis):
            await app_context.runner.outcome(task)
        else:
            await task.result()
            app_context.runner.leave(task)


async def _watch(app_context: AppContext, tenant: Tenant, order: WorkOrder, pipe: Connection) -> None:
    (watch,) = await app_context.store.watches(tenant.id)
    if order.work == "watch" and watch.began_at is None and not await _works():
        await run_watch(app_context, watch)


async def _listen(app_context: AppContext, tenant: Tenant, counter: MomentCounter, event_counts: Counter[str]) -> None:
    """Follow every analysis of the tenant that runs here, from its beginning."""
    while True:
        for listed in (await app_context.store.listing(tenant.id, NONE, 10)).analyses:
            task = await app_context.runner.follow(tenant, listed.id)
            if isinstance(task, AnalysisTask):

                def hear(event: Event) -> None:
                    event_counts[event.kind] += 1
                    counter.tell(event)

                task.listen(hear)
                await task.result()
                app_context.runner.leave(task)
        await asyncio.sleep(PAUSE)


async def _until_over(app_context: AppContext, tenant: Tenant, order: WorkOrder) -> None:
    """Wait until the work is done, by whichever process."""
    while True:
        if order.work == "analysis":
            listed = (await app_context.store.listing(tenant.id, NONE, 10)).analyses
            if listed and all(kept.state != "running" for kept in listed):
                return
        else:
            (watch,) = await app_context.store.watches(tenant.id)
            if await app_context.store.watch_runs(tenant.id, watch.id, 1):
                return
        await asyncio.sleep(PAUSE)


async def _until_dropped() -> None:
    """Wait until the engine has deleted the records of finished work."""
    while True:
        if not await _works():
            return
        await asyncio.sleep(PAUSE)


async def _works() -> int:
    """Number of this program's workflows in the engine, finished or not."""
    from dbos import DBOS  # loaded with the engine

    listed = await DBOS.list_workflows_async(app_version=version("listenpost"), load_input=False, load_output=False)
    return len(listed)


async def _result_of(
    app_context: AppContext, tenant: Tenant, counter: MomentCounter, event_counts: Mapping[str, int]
) -> WorkResult:
    listed = (await app_context.store.listing(tenant.id, NONE, 10)).analyses
    kept = await app_context.store.get(tenant.id, listed[0].id) if listed else None
    runs = [
        run
        for watch in await app_context.store.watches(tenant.id)
        for run in await app_context.store.watch_runs(tenant.id, watch.id, 10)
    ]
    return WorkResult(
        kept.state if kept else "none",
        tuple((analysis.id, analysis.state) for analysis in listed),
        kept.report.model_dump(mode="json") if kept and kept.report else None,
        tuple((run.id, run.state, all(delivery.delivered for delivery in run.deliveries)) for run in runs),
        dict(event_counts),
        dict(counter.counts),
        tuple(counter.steps),
    )
