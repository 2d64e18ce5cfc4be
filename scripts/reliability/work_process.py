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

BEAT = 0.2
"""Seconds between two looks at what other processes have left."""
PAUSE = 0.02
NONE = Filters()
Work = Literal["analysis", "watch", "due watch"]
Where = Literal[
    "request", "answered", "event", "unrecorded", "recorded", "unstored", "stored", "told"
]
"""When a place or model is asked, or has answered; when an event is told; when a step or a change
of the store is written but not committed, or is committed; when a notification has arrived."""
_ENGINE = ("workflow_", "operation_", "notifications", "streams", "queues", "application_versions")
"""Tables of the engine, as they begin."""
_UPKEEP = ("runs", "schema_version")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a process is killed: at the so-manyth of these moments."""

    where: Where
    number: int


@dataclass(frozen=True, slots=True)
class Orders:
    """What one process does."""

    environment: Mapping[str, str]
    work: Work
    ask: Ask
    tenant: str
    key: str
    """By which whoever asks asks again."""
    trace_id: str
    place: Place | None = None
    again: bool = True
    """Whoever asked asks in this process, too; else it only goes on with what was left."""
    by: signal.Signals = signal.SIGKILL
    """What kills it; by SIGTERM it is asked to stop, as a server is."""


@dataclass(slots=True)
class Moments:
    """Counts what could be places, and ends the process at its own."""

    orders: Orders
    armed: bool = False
    counts: Counter[Where] = field(default_factory=Counter)
    steps: list[str] = field(default_factory=list)
    """Names of the steps in the order in which they were recorded."""

    def pass_by(self, where: Where) -> None:
        """One more of them."""
        if not self.armed:
            return
        self.counts[where] += 1
        if self.orders.place == Place(where, self.counts[where]):
            os.kill(os.getpid(), self.orders.by)

    def tell(self, event: Event) -> None:
        """A listener."""
        self.pass_by("event")

    def watch_databases(self) -> None:
        """Look at all that this process writes from now on."""

        @event.listens_for(Engine, "after_cursor_execute")
        def written(
            connection: Any, cursor: Any, statement: str, values: Any, context: Any, many: bool
        ) -> None:
            verb, table = _changed(statement)
            recorded = (verb, table) == ("INSERT", "operation_outputs")
            if not recorded and (not table or table in _UPKEEP or table.startswith(_ENGINE)):
                return
            if recorded and self.armed:
                self.steps += [str(row["function_name"]) for row in context.compiled_parameters]
            connection.info["written"] = "recorded" if recorded else "stored"
            self.pass_by("unrecorded" if recorded else "unstored")

        @event.listens_for(Pool, "checkin")
        def returned(connection: Any, record: Any) -> None:
            where = record.info.pop("written", None)
            if where is not None:
                self.pass_by(where)


def _changed(statement: str) -> tuple[str, str]:
    """What a statement does to which table, `INSERT` and `operation_outputs`; empty: no change."""
    verb, *words = [*statement.split(None, 3), "", "", ""][:3]
    named = {"INSERT": words[1], "DELETE": words[1], "UPDATE": words[0]}.get(verb, "")
    # `dbos.operation_outputs` of PostgreSQL, `"dbos"."operation_outputs"` where it is quoted
    return verb, named.replace('"', "").rpartition(".")[2].partition("(")[0]


@dataclass(frozen=True, slots=True)
class Ended:
    """What a process says when the work is done."""

    state: str
    analyses: tuple[tuple[str, str], ...]
    """Ids and states of all that the tenant has."""
    report: Mapping[str, Any] | None
    runs: tuple[tuple[str, str, bool], ...]
    """Ids and states of a watch's runs, and whether all were told."""
    kinds: Mapping[str, int]
    """Events that this process heard, by kind; empty when it came too late to hear them."""
    counts: Mapping[Where, int]
    steps: tuple[str, ...]


def live(orders: Orders, pipe: Connection) -> None:
    """Be that process; says `began`, then how it ended."""
    os.environ.clear()
    os.environ.update(orders.environment)

    async def stoppable() -> None:
        living = asyncio.create_task(_live(orders, pipe))
        end_with(pipe)
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, living.cancel)
        await asyncio.wait([living])
        if not living.cancelled():
            living.result()

    asyncio.run(stoppable())


def end_with(pipe: Connection) -> None:
    """End this process when nobody listens at the other end any more."""
    asyncio.get_running_loop().add_reader(pipe.fileno(), os._exit, 1)


def delete(environment: Mapping[str, str], tenant: str, analysis_id: str) -> None:
    """Be a process that deletes an analysis, whoever runs it."""
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
    """A durable house that is ready, and looks often for what others have left."""
    app_context = await open_app_context(bootstrap.load_settings(), durable=True)
    assert app_context.engine is not None
    app_context.engine.pause = BEAT
    try:
        await app_context.product()
        yield app_context
    finally:
        await app_context.aclose()


async def _live(orders: Orders, pipe: Connection) -> None:
    moments = Moments(orders)
    moments.watch_databases()
    async with opened() as app_context:
        pipe.send(await _lived(app_context, orders, moments, pipe))


async def _lived(
    app_context: AppContext, orders: Orders, moments: Moments, pipe: Connection
) -> Ended:
    known = await app_context.keys.tenant(orders.tenant)
    tenant = known or Tenant(orders.tenant, "store")  # who is known no more only waits
    adopt_trace_id(orders.trace_id)
    moments.armed = True
    heard: Counter[str] = Counter()
    listening = asyncio.create_task(_listen(app_context, tenant, moments, heard))
    doing: Callable[..., Coroutine[Any, Any, None]] = _analysis
    if orders.work != "analysis":
        doing = _watch
    if orders.again and known is not None:
        await doing(app_context, tenant, orders, pipe)
        if (
            orders.work == "analysis"
            and not (await app_context.store.listing(tenant.id, NONE, 1)).analyses
        ):
            return await _ended(app_context, tenant, moments, heard)  # somebody has deleted it
    await _until_over(app_context, tenant, orders)
    listening.cancel()
    ended = await _ended(app_context, tenant, moments, heard)
    await _until_dropped()
    return ended


async def _analysis(
    app_context: AppContext, tenant: Tenant, orders: Orders, pipe: Connection
) -> None:
    task = await app_context.runner.join(tenant, orders.ask, orders.key, detached=True)
    pipe.send(task.id)
    with suppress(Conflict):  # it was cancelled
        if isinstance(task, StoredAnalysis):
            await app_context.runner.outcome(task)
        else:
            await task.result()
            app_context.runner.leave(task)


async def _watch(app_context: AppContext, tenant: Tenant, orders: Orders, pipe: Connection) -> None:
    (watch,) = await app_context.store.watches(tenant.id)
    if orders.work == "watch" and watch.began_at is None and not await _works():
        await run_watch(app_context, watch)


async def _listen(
    app_context: AppContext, tenant: Tenant, moments: Moments, heard: Counter[str]
) -> None:
    """Hear whatever analysis of the tenant runs here, from its beginning."""
    while True:
        for listed in (await app_context.store.listing(tenant.id, NONE, 10)).analyses:
            task = await app_context.runner.follow(tenant, listed.id)
            if isinstance(task, AnalysisTask):

                def hear(event: Event) -> None:
                    heard[event.kind] += 1
                    moments.tell(event)

                task.listen(hear)
                await task.ended()
                app_context.runner.leave(task)
        await asyncio.sleep(PAUSE)


async def _until_over(app_context: AppContext, tenant: Tenant, orders: Orders) -> None:
    """Until nothing is left to be done, whoever does it."""
    while True:
        if orders.work == "analysis":
            listed = (await app_context.store.listing(tenant.id, NONE, 10)).analyses
            if listed and all(kept.state != "running" for kept in listed):
                return
        else:
            (watch,) = await app_context.store.watches(tenant.id)
            if await app_context.store.watch_runs(tenant.id, watch.id, 1):
                return
        await asyncio.sleep(PAUSE)


async def _until_dropped() -> None:
    """Until the engine has forgotten what has ended."""
    while True:
        if not await _works():
            return
        await asyncio.sleep(PAUSE)


async def _works() -> int:
    """Pieces of this program's work that the engine knows, ended or not."""
    from dbos import DBOS  # loaded with the engine

    listed = await DBOS.list_workflows_async(
        app_version=version("listenpost"), load_input=False, load_output=False
    )
    return len(listed)


async def _ended(
    app_context: AppContext, tenant: Tenant, moments: Moments, heard: Mapping[str, int]
) -> Ended:
    listed = (await app_context.store.listing(tenant.id, NONE, 10)).analyses
    kept = await app_context.store.get(tenant.id, listed[0].id) if listed else None
    runs = [
        run
        for watch in await app_context.store.watches(tenant.id)
        for run in await app_context.store.watch_runs(tenant.id, watch.id, 10)
    ]
    return Ended(
        kept.state if kept else "none",
        tuple((analysis.id, analysis.state) for analysis in listed),
        kept.report.model_dump(mode="json") if kept and kept.report else None,
        tuple(
            (run.id, run.state, all(delivery.delivered for delivery in run.deliveries))
            for run in runs
        ),
        dict(heard),
        dict(moments.counts),
        tuple(moments.steps),
    )
