"""Tasks that several callers share, work that outlives its process, and errors nobody foresaw.

A shared task is started once. A caller may stop waiting without harm to the others; when the last
has left, it is cancelled. All callers get its result, an error too: nobody starts it again because
it failed.

Durable work is done in steps. The result of each is stored, and when its process dies another one
continues behind the steps that are done.

An error that is not one of ours is a defect: logged with its traceback, answered in safe words.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Hashable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from api.core.progress import Event, Listener, ignore_event
from api.errors import Conflict, ListenpostError

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")
V = TypeVar("V")
REMEMBERED = 1_000
"""Latest events of a task that a caller who joins late still gets."""
_INTERNAL = "an internal error"
_log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False, kw_only=True)
class SharedTask(Generic[T]):
    """A task that several callers wait for."""

    waiting: int = 0
    """Callers that wait for it; each calls `leave` in the end."""
    detached: bool = False
    """Whether the task goes on when no caller waits for it."""
    cancelled: bool = False
    event_count: int = 0
    _events: deque[Event] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    _listeners: list[Listener] = field(default_factory=list)
    _task: asyncio.Task[T] = field(init=False)

    def start(self, work: Coroutine[Any, Any, T], name: str | None = None) -> None:
        """Start the work, in a copy of this context: its cost is counted where it was started."""
        self._task = asyncio.create_task(work, name=name)
        # read the error: when everybody has left, nobody else will, and asyncio would complain
        self._task.add_done_callback(lambda task: task.cancelled() or task.exception())

    @property
    def open(self) -> bool:
        """Whether a caller can still join it."""
        return not self.cancelled and not self._task.done()

    @property
    def lost_events(self) -> int:
        """Events that a caller who joins now does not get any more."""
        return self.event_count - len(self._events)

    def listen(self, listener: Listener) -> None:
        """Receive every event, first the stored ones."""
        for event in self._events:
            listener(event)
        self._listeners.append(listener)

    def publish(self, event: Event) -> None:
        """Send an event to all listeners, present and future."""
        self.event_count += 1
        self._events.append(event)
        for listener in self._listeners:
            listener(event)

    async def result(self) -> T:
        """The result of the work, or its error; a caller that is cancelled stops nothing."""
        return await asyncio.shield(self._task)

    def raise_if_failed(self) -> None:
        """Raise the error with which the work has ended already, if it has."""
        if self._task.done():
            self._task.result()

    def on_end(self, callback: Callable[[], None]) -> None:
        """Call `callback` once there is a result or an error, before anybody who waits gets it."""
        self._task.add_done_callback(lambda task: callback())

    def leave(self, listener: Listener = ignore_event) -> None:
        """Stop waiting and listening; when the last caller leaves, a task that is not detached is cancelled."""
        self.waiting -= 1
        for at, known in enumerate(self._listeners):
            if known is listener:  # the same, not an equal one; several may have come with it
                del self._listeners[at]
                break
        if not self.waiting and not self.detached and not self._task.done():
            self.cancel()

    def cancel(self) -> None:
        """Cancel the task that does the work, also while others wait for it."""
        self.cancelled = True
        self._task.cancel()

    async def ended(self) -> None:
        """Wait until the work has ended, however."""
        await asyncio.wait([self._task])

    @asynccontextmanager
    async def joined(self, listener: Listener = ignore_event) -> AsyncIterator[None]:
        """Wait for the task inside the block; a caller whose leaving cancels the task waits until it has ended."""
        self.waiting += 1
        try:
            self.listen(listener)
            yield
        finally:
            self.leave(listener)
            if self.cancelled:
                await self.ended()


@dataclass(slots=True)
class SharedTasks(Generic[K, T]):
    """Tasks under way by key: who asks for the same at the same time shares one."""

    _tasks: dict[K, SharedTask[T]] = field(default_factory=dict)

    async def share(
        self,
        key: K,
        work: Callable[[Listener], Coroutine[Any, Any, T]],
        listener: Listener = ignore_event,
    ) -> T:
        """The result of `work`, started here or by an earlier caller; `listener` gets all events.

        Nothing is remembered once it has ended.
        """
        task = self._tasks.get(key)
        if task is None or not task.open:
            task = self._tasks[key] = SharedTask()
            task.start(work(task.publish))
            task.on_end(partial(self._remove, key, task))
        async with task.joined(listener):
            return await task.result()

    def _remove(self, key: K, task: SharedTask[T]) -> None:
        if self._tasks.get(key) is task:
            del self._tasks[key]


@dataclass(slots=True)
class RunCache(Generic[K, V]):
    """Values by key, each requested once; a key that was not found or was removed is requested again."""

    _values: dict[K, V] = field(default_factory=dict)
    _tasks: dict[K, SharedTask[Mapping[K, V]]] = field(default_factory=dict)

    async def values_of(
        self,
        wanted: Mapping[K, T],
        find: Callable[[dict[K, T]], Coroutine[Any, Any, Mapping[K, V]]],
    ) -> dict[K, V]:
        """Values of `wanted`; `find` is asked for those that are neither known nor being found.

        `find` may find less: then that is missing here too, and for all who wait for it, as its
        error is everybody's. It goes on as long as somebody waits, whoever asked first.
        """
        known = {key: self._values[key] for key in wanted if key in self._values}
        others = {
            key: other
            for key in wanted
            if key not in known and (other := self._tasks.get(key)) is not None and other.open
        }
        mine = {key: thing for key, thing in wanted.items() if key not in known and key not in others}
        tasks = list(dict.fromkeys(others.values()))
        if mine:
            task: SharedTask[Mapping[K, V]] = SharedTask()
            task.start(self._find(mine, find))
            self._tasks |= dict.fromkeys(mine, task)
            tasks.append(task)
        async with AsyncExitStack() as waiting:
            for task in tasks:
                await waiting.enter_async_context(task.joined())
            for task in tasks:
                known |= await task.result()
        return {key: known[key] for key in wanted if key in known}

    def remove(self, key: K) -> None:
        """Make the next caller request the value again; callers that already wait get the current value."""
        self._values.pop(key, None)

    async def _find(
        self,
        mine: dict[K, T],
        find: Callable[[dict[K, T]], Coroutine[Any, Any, Mapping[K, V]]],
    ) -> Mapping[K, V]:
        values = await find(mine)
        self._values |= {key: values[key] for key in mine if key in values}
        return values


class StepRunner(Protocol):
    """Runs a step of durable work once: its result is stored, and returned to who runs it again.

    Every process runs the steps of a piece of work in the same order. A step within another is a
    part of that one.
    """

    async def __call__(self, name: str, shape: type[T], step: Callable[[], Awaitable[T]]) -> T:
        """The result of `step`, of a type that can be written as JSON.

        Raises:
            Conflict: the work was cancelled, here or elsewhere.
        """


async def run_step(name: str, shape: type[T], step: Callable[[], Awaitable[T]]) -> T:
    """Run a step whose result is not stored."""
    return await step()


class ProcessStopping(Conflict):
    """This process stops and another continues the work, so the work must not be reported as failed."""


@dataclass(frozen=True, slots=True)
class WorkLease:
    """A process's hold on a piece of work."""

    work_id: str = ""
    """Id that is the same in every process, so that its cost is charged once; empty: nothing is stored."""
    run_step: StepRunner = run_step
    recorded: Callable[[Listener], Listener] = lambda listener: listener
    """A listener whose events within a step are stored, and published again, with that step."""


Work = Callable[[WorkLease], Coroutine[Any, Any, T]]
Resume = Callable[[str, WorkLease], Coroutine[Any, Any, None]]
"""Continues, by its request, work whose process has died or that was queued."""
GiveUp = Callable[[str, str], Awaitable[None]]
"""Stores, by kind and request, that work has failed since it is not continued."""


class Engine(Protocol):
    """Runs durable work, for all processes on one database."""

    async def run(self, kind: str, work_id: str, request: str, work: Work[T]) -> T:
        """The result of the work, or its error.

        Args:
            kind: which `Resume` continues it elsewhere.
            work_id: a new one.
            request: what that `Resume` needs, as JSON.
            work: what is done here.

        Raises:
            ProcessStopping: another process continues it.
            StoreUnavailable: it could not be stored, and was not started.
        """

    async def enqueue(self, kind: str, work_id: str, request: str, tenant: str) -> None:
        """Leave work to whichever process has room; each id once. Tenants take turns.

        Raises:
            StoreUnavailable: it could not be stored.
        """

    async def find(self, prefix: str) -> str | None:
        """The id of work that begins so, and is under way or queued, in whatever process."""

    async def cancel(self, prefix: str) -> None:
        """Cancel all work whose id has this prefix, in any process, and start none of it."""


@dataclass(frozen=True, slots=True)
class Failure:
    """How a piece of work failed, in words that are safe to show."""

    code: str
    """A `ListenpostError`'s own code, or `internal` for a defect."""
    message: str


class Defect(ListenpostError):
    """An unexpected error, in words that are safe to show."""

    code = "internal"


async def contained(work: Awaitable[T], name: str) -> T | Failure:
    """The result of `work`, or how it failed; `name` is what the log calls it.

    An error of ours speaks for itself. Any other is a defect: the log has its traceback, and the
    failure names its kind alone. Cancellation is no failure and passes through.
    """
    try:
        return await translated(work, name, Defect)
    except TimeoutError:
        return Failure("timed_out", "no answer in time")
    except ListenpostError as error:
        return Failure(error.code, error.public)


async def translated(
    work: Awaitable[T],
    name: str,
    to: Callable[[str], ListenpostError],
    known: tuple[type[Exception], ...] = (),
) -> T:
    """The result of `work`; a defect is logged in full and raised as the error that `to` makes.

    So a source or model step with a defect fails like any other. Errors of ours, a deadline that
    passed, cancellation and errors of the types `known` pass through.
    """
    expected: tuple[type[Exception], ...] = (TimeoutError, *known)
    try:
        return await work
    except expected:
        raise
    except Exception as error:
        leaves = list(_leaves(error))
        if all(isinstance(leaf, ListenpostError) for leaf in leaves):
            raise leaves[0] from None
        _log.error("%s failed", name, exc_info=error)
        kind = next(type(leaf) for leaf in leaves if not isinstance(leaf, ListenpostError))
        raise to(f"{_INTERNAL} ({kind.__name__}); the log has the details") from None


def is_defect(reason: str | None) -> bool:
    """Whether a message is that of a defect."""
    return _INTERNAL in (reason or "")


def _leaves(error: Exception) -> Iterator[Exception]:
    """The errors within an `ExceptionGroup`: several tasks may fail at once."""
    if isinstance(error, ExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error
