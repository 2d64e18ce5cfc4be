"""The durable engine, DBOS: keeps the steps of work in a database and goes on with what was left.

One for each process. Its tables are beside the store's: in a file next to that of SQLite, in the
schema `dbos` of PostgreSQL. What they hold of finished work is dropped a moment later.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import Context, ContextVar, copy_context
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from dbos import DBOS, SetEnqueueOptions, SetWorkflowID, WorkflowStatus, error
from pydantic import TypeAdapter

from api.core.progress import EVENT_TYPES, Event, Listener, ignore_event
from api.core.work import Defect, GiveUp, ProcessStopping, Resume, Work, WorkLease, translated
from api.errors import ConfigurationError, Conflict, StoreUnavailable

T = TypeVar("T")
QUEUE = "listenpost"
PATIENCE = 5.0
"""Seconds until work must be noted, or is not begun."""
THREADS = 64
"""Most of the engine's pool, which becomes the loop's: without a limit each call that finds none idle adds one."""
STOPPING = 0.05
"""Seconds between polls of the engine's listener on SQLite. A poll sends no query, and nothing here waits for its
result, but closing the engine waits for the next poll: up to a second by default."""
HEARD = 60.0
"""Seconds within which a process hears that its work was cancelled elsewhere."""
DEATHS = 4
"""Processes that died while they did a piece of work, after which it is given up: it would end the next one too. One
that stopped in an orderly way, as at a deploy, is no such process."""
_STOPS = "stops"
"""Attribute of work: number of processes that left it when they stopped in an orderly way."""
_ENDED = ["SUCCESS", "ERROR", "CANCELLED"]
_WAITING = ["PENDING", "ENQUEUED", "DELAYED"]
_PAGE = 200
# What happened within the step of this context; None outside of every step.
_moments: ContextVar[list[Event] | None] = ContextVar("listenpost_step", default=None)
# The one of this process, which the library allows no more of.
_open: list[DurableEngine] = []


@dataclass(frozen=True, slots=True)
class Share:
    """Limits for queued work that runs at the same time."""

    everywhere: int = 1_000
    """Most that run at once, in all processes together."""
    here: int = 100
    """Limit in this process."""
    tenant: int = 100
    """Limit for one tenant over all processes."""


@dataclass(slots=True)
class _Begun:
    """Work of this process, and what waits for it."""

    work: Work[Any]
    result: asyncio.Future[Any] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def end(self, working: asyncio.Task[Any]) -> None:
        """Pass on the result of the work."""
        if not working.done() or working.cancelled():
            words = "this process stops, and the next one goes on with it; ask again later"
            self.result.set_exception(ProcessStopping(words))
        elif (error := working.exception()) is not None:
            self.result.set_exception(error)
        else:
            self.result.set_result(working.result())
        self.result.exception()  # nobody may wait any more, and asyncio would complain


@dataclass(slots=True)
class _Steps:
    """The steps of one piece of work, as this process takes them."""

    listener: Listener = ignore_event

    def heard(self, listener: Listener) -> Listener:
        """The listener, behind what keeps what it hears."""
        self.listener = listener

        def hear(event: Event) -> None:
            moments = _moments.get()
            if moments is not None:
                moments.append(event)
            listener(event)

        return hear

    async def keep(self, name: str, shape: type[T], step: Callable[[], Awaitable[T]]) -> T:
        """See `StepRunner`; an error of the step is kept as well."""
        if _moments.get() is not None:
            return await step()
        taken: list[T] = []

        async def take() -> str:
            moments: list[Event] = []
            _moments.set(moments)  # of a task of its own, which the engine begins for a step
            taken.append(await step())
            events = [(event.kind, _shape(type(event)).dump_python(event)) for event in moments]
            value = _shape(shape).dump_json(taken[0]).decode()
            return _RECORD.dump_json((value, events)).decode()

        try:
            text = await DBOS.run_step_async({"name": name[:200], "preemptible": True}, take)
        except error.DBOSWorkflowCancelledError:
            raise Conflict("it was cancelled") from None
        except error.DBOSWorkflowConflictIDError:
            raise ProcessStopping("another process has taken it over, or it was deleted") from None
        if taken:
            return taken[0]
        value, events = _RECORD.validate_json(text)
        for kind, fields in events:
            self.listener(_shape(EVENT_TYPES[kind]).validate_python(fields))
        return cast(T, _shape(shape).validate_json(value))


_RECORD: TypeAdapter[tuple[str, list[tuple[str, dict[str, Any]]]]] = TypeAdapter(
    tuple[str, list[tuple[str, dict[str, Any]]]]
)


def _shape(kind: Any) -> TypeAdapter[Any]:
    if kind not in _shapes:
        _shapes[kind] = TypeAdapter(kind)
    return _shapes[kind]


_shapes: dict[Any, TypeAdapter[Any]] = {}


@DBOS.workflow(name="listenpost.work", max_recovery_attempts=None)  # `tend` counts them
async def _workflow(kind: str, request: str) -> None:
    await _open[0].perform(str(DBOS.workflow_id), kind, request)


class DurableEngine:
    """See `Engine` for the contract; belongs to the event loop that opened it."""

    def __init__(self, executor: str, version: str, resume: Mapping[str, Resume]) -> None:
        """Nothing is open yet; see `open_engine`."""
        self._executor, self._version, self._resume = executor, version, resume
        self._begun: dict[str, _Begun] = {}

    async def run(self, kind: str, work_id: str, request: str, work: Work[T]) -> T:
        """Begin it here at once: who waits for it waits for no queue."""

        async def begin() -> None:
            with SetWorkflowID(work_id):
                await DBOS.start_workflow_async(_workflow, kind, request)

        begun = self._begun[work_id] = _Begun(work)
        noted = False
        try:
            # what is begun within other work is not its child: it goes on by itself
            await _noted(asyncio.create_task(begin(), context=_outside()))
            noted = True
        finally:
            if not noted:
                self._begun.pop(work_id, None)
        return cast(T, await asyncio.shield(begun.result))

    async def enqueue(self, kind: str, work_id: str, request: str, tenant: str) -> None:
        """Queue work for any process with room; work with an id that exists already is not queued again.

        Raises:
            StoreUnavailable: it could not be noted.
        """

        async def leave() -> None:
            with SetWorkflowID(work_id), SetEnqueueOptions(queue_partition_key=tenant):
                await DBOS.enqueue_workflow_async(QUEUE, _workflow, kind, request)

        await _noted(asyncio.create_task(leave(), context=_outside()))

    async def perform(self, work_id: str, kind: str, request: str) -> None:
        """Do what was begun here, or go on with what another process has left."""
        steps = _Steps()
        lease = WorkLease(work_id, steps.keep, steps.heard)
        begun = self._begun.pop(work_id, None)
        if begun is None:
            await self._resume[kind](request, lease)
            return
        working = asyncio.create_task(begun.work(lease))
        try:
            await asyncio.wait([working])
        finally:
            working.cancel()  # this process stops, unless it is done
            begun.end(working)
        if working.cancelled():
            raise asyncio.CancelledError

    async def find(self, prefix: str) -> str | None:
        """The id of work that begins so, and is done or waits to be, in whatever process."""
        return next(iter(await _waiting(prefix)), None)

    async def cancel(self, prefix: str) -> None:
        """Have whichever process does it stop, and none begin it."""
        await DBOS.cancel_workflows_async(await _waiting(prefix))

    async def known(self, work_ids: Collection[str]) -> set[str]:
        """Ids of the given work that is done or waiting in any process."""
        listed = await DBOS.list_workflows_async(workflow_ids=list(work_ids), load_input=False, load_output=False)
        return {workflow.workflow_id for workflow in listed}

    async def tend(self, gone: Callable[[Collection[str]], Awaitable[Collection[str]]], give_up: GiveUp) -> None:
        """Continue what processes have left that are `gone`, or give it up after `DEATHS`; drop what has ended.

        The work of another version of this program is left to it.
        """
        listed = await DBOS.list_workflows_async(status="PENDING", load_input=False, load_output=False)
        executors = {str(workflow.executor_id) for workflow in listed} - {self._executor}
        if executors and (dead := await gone(executors)):
            left = [workflow for workflow in listed if workflow.executor_id in dead]
            await self._give_up([workflow.workflow_id for workflow in left if _deaths(workflow) >= DEATHS], give_up)
            await asyncio.to_thread(DBOS._recover_pending_workflows, list(dead))
        ended = await DBOS.list_workflows_async(status=_ENDED, limit=_PAGE, load_input=False, load_output=False)
        # one that was cancelled stays until the process that does it has seen that
        seen = (time.time() - HEARD) * 1000
        await DBOS.delete_workflows_async(
            [
                workflow.workflow_id
                for workflow in ended
                if workflow.status != "CANCELLED" or (workflow.updated_at or 0) < seen
            ]
        )

    async def _give_up(self, work_ids: list[str], give_up: GiveUp) -> None:
        if not work_ids:
            return
        for workflow in await DBOS.list_workflows_async(
            workflow_ids=work_ids, status="PENDING", app_version=self._version, load_output=False
        ):
            if workflow.input is not None:
                kind, request = workflow.input["args"]
                with suppress(Defect):  # which is logged, such as of a request that nobody can read
                    await translated(give_up(kind, request), "giving up work", Defect)
            await DBOS.delete_workflows_async([workflow.workflow_id])  # last: who dies before it gives up once more

    async def _note_stop(self) -> None:
        """Note on the work of this process that the process stops, which is not that work's fault."""
        for workflow in await DBOS.list_workflows_async(
            status="PENDING", executor_id=self._executor, load_input=False, load_output=False
        ):
            await DBOS.update_workflow_attributes_async(workflow.workflow_id, {_STOPS: _stops(workflow) + 1})

    async def aclose(self) -> None:
        """Start no more work; other processes continue what still runs. A second call does nothing."""
        if self in _open:
            with suppress(StoreUnavailable):  # then the stop is counted as a death
                await _noted(asyncio.create_task(self._note_stop(), context=_outside()))
            await _closed()
            _open.remove(self)


async def open_engine(
    url: str, executor: str, version: str, share: Share, resume: Mapping[str, Resume]
) -> DurableEngine:
    """Launch the engine over a database of its own, or a schema.

    Args:
        url: of SQLite or PostgreSQL, without an async driver.
        executor: this process, by the name that `tend` asks about.
        version: work begun by another version is left to that.
        share: how much queued work runs.
        resume: by kind, what goes on with work.

    Raises:
        ConfigurationError: this process has one.
        StoreUnavailable: the database cannot be used.
    """
    if _open:
        raise ConfigurationError("this process has a durable engine already")
    engine = DurableEngine(executor, version, resume)
    _open.append(engine)
    opened = False
    try:
        await translated(_launched(url, executor, version, share), "the durable engine", _unusable)
        opened = True
    finally:
        if not opened:
            await _closed()
            _open.remove(engine)
    return engine


async def _launched(url: str, executor: str, version: str, share: Share) -> None:
    await asyncio.to_thread(DBOS.migrate, url)
    DBOS(
        config={
            "name": "listenpost",
            "application_version": version,
            "executor_id": executor,
            "system_database_url": url,
            "log_level": "ERROR",
            "run_migrations": False,
            "max_executor_threads": THREADS,
            "notification_listener_polling_interval_sec": STOPPING,
        }
    )
    logger = logging.getLogger("dbos")
    for handler in list(logger.handlers):  # its errors go where ours go
        logger.removeHandler(handler)
    logger.propagate = True
    DBOS.launch()  # within this loop, so that its work runs here
    await DBOS.register_queue_async(
        QUEUE,
        global_concurrency=share.everywhere,
        worker_concurrency=share.here,
        partition_concurrency=share.tenant,
        on_conflict="always_update",
    )


def _unusable(why: str) -> StoreUnavailable:
    return StoreUnavailable(f"the durable engine cannot use its database: {why}")


def _stops(workflow: WorkflowStatus) -> int:
    return int((workflow.attributes or {}).get(_STOPS, 0))


def _deaths(workflow: WorkflowStatus) -> int:
    """Number of processes that began the work and ended without a regular stop."""
    return (workflow.recovery_attempts or 0) - _stops(workflow)


async def _waiting(prefix: str) -> list[str]:
    listed = await DBOS.list_workflows_async(
        workflow_id_prefix=prefix, status=_WAITING, load_input=False, load_output=False
    )
    return [workflow.workflow_id for workflow in listed]


async def _closed() -> None:
    logging.getLogger("dbos").setLevel(logging.CRITICAL)  # of its threads that are cut off
    await asyncio.to_thread(DBOS.destroy, workflow_completion_timeout_sec=0)
    # it has put its own threads in place of the loop's, and they have ended
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor())


def _outside() -> Context:
    """This context without the engine's own part in it."""
    context = Context()
    for variable, value in copy_context().items():
        if variable is not _moments and not variable.name.startswith("dbos"):
            context.run(variable.set, value)
    return context


async def _noted(noting: asyncio.Task[None]) -> None:
    """Wait until the engine has it in its database, which it would try for ever."""
    done, _ = await asyncio.wait({noting}, timeout=PATIENCE)
    if not done:
        noting.cancel()
        raise StoreUnavailable(f"work could not be noted within {PATIENCE:g} s: the database does not answer")
    failure = noting.exception()
    if isinstance(failure, error.DBOSException):
        raise failure
    if failure is not None:  # a driver's error holds the statement with its values
        raise StoreUnavailable(f"work could not be noted: {type(failure).__name__}") from None
