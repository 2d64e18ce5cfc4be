"""Work under way that several wait for: begun once, in a task of its own, whoever leaves.

Whoever waits may leave without harm to the rest; when the last has left, the work is cancelled.
All who wait get what came of it, an error too: nobody begins it again because it failed.

Work that outlives its process: its steps are kept, and another process goes on behind them.

The one place where what nobody foresaw is contained: logged in full, answered in safe words.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from api.core.progress import Event, Listener, ignore_event
from api.errors import Conflict, ListenpostError

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")
REMEMBERED = 1_000
"""Events of one piece of work that whoever comes late still hears; the oldest go first."""


@dataclass(slots=True, eq=False, kw_only=True)
class Flight(Generic[T]):
    """One piece of work, and who waits for it."""

    waiting: int = 0
    detached: bool = False
    """It runs on when nobody waits."""
    cancelled: bool = False
    moments: int = 0
    """Events so far."""
    _events: deque[Event] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    _listeners: list[Listener] = field(default_factory=list)
    _task: asyncio.Task[T] = field(init=False)

    def begin(self, work: Coroutine[Any, Any, T], name: str | None = None) -> None:
        """Do it, in a copy of this context: what it costs is counted where it was begun."""
        self._task = asyncio.create_task(work, name=name)
        # read the error: when everybody has left, nobody else will, and asyncio would complain
        self._task.add_done_callback(lambda task: task.cancelled() or task.exception())

    @property
    def forgotten(self) -> int:
        """Events that whoever comes now does not hear any more."""
        return self.moments - len(self._events)

    def listen(self, listener: Listener) -> None:
        """Be told everything, what was before included unless it is `forgotten`."""
        for event in self._events:
            listener(event)
        self._listeners.append(listener)

    def tell(self, event: Event) -> None:
        """Pass an event on to whoever listens, now or later."""
        self.moments += 1
        self._events.append(event)
        for listener in self._listeners:
            listener(event)

    async def result(self) -> T:
        """What the work gives, or its error; whoever gives up waiting stops nothing by that."""
        return await asyncio.shield(self._task)

    def check(self) -> None:
        """Raise the error with which it has ended already, if it has."""
        if self._task.done():
            self._task.result()

    def when_over(self, tell: Callable[[], None]) -> None:
        """Call `tell` once there is a result or an error, before anybody who waits hears of it."""
        self._task.add_done_callback(lambda task: tell())

    def leave(self, listener: Listener = ignore_event) -> None:
        """Wait and listen no longer; the last to leave work that is not detached cancels it."""
        self.waiting -= 1
        for at, known in enumerate(self._listeners):
            if known is listener:  # the same, not an equal one; several may have come with it
                del self._listeners[at]
                break
        if not self.waiting and not self.detached and not self._task.done():
            self.cancel()

    def cancel(self) -> None:
        """End it, whoever waits."""
        self.cancelled = True
        self._task.cancel()

    async def over(self) -> None:
        """Wait until the work has ended, however."""
        await asyncio.wait([self._task])


@dataclass(slots=True)
class Flights(Generic[K, T]):
    """Work under way by what makes two requests one; nothing is remembered once it is over."""

    _under_way: dict[K, Flight[T]] = field(default_factory=dict)

    async def share(
        self,
        key: K,
        work: Callable[[Listener], Coroutine[Any, Any, T]],
        listener: Listener = ignore_event,
    ) -> T:
        """What `work` gives, begun here or by an earlier caller; `listener` hears all of it."""
        flight = self._under_way.get(key)
        if flight is None:
            flight = self._under_way[key] = Flight()
            flight.begin(work(flight.tell))
            flight.when_over(partial(self._gone, key, flight))
        flight.waiting += 1
        try:
            flight.listen(listener)
            return await flight.result()
        finally:
            flight.leave(listener)
            if flight.cancelled:
                self._gone(key, flight)
                await flight.over()

    def _gone(self, key: K, flight: Flight[T]) -> None:
        """Who comes now begins anew."""
        if self._under_way.get(key) is flight:
            del self._under_way[key]


class StepKeeper(Protocol):
    """Takes a step once: what it gave is kept, and given again to whoever takes it later.

    Steps are taken in the same order by every process that works at one thing. A step that is taken
    within another is a part of that one.
    """

    async def __call__(self, name: str, shape: type[T], step: Callable[[], Awaitable[T]]) -> T:
        """What `step` gives, of a type that can be written as JSON.

        Raises:
            Conflict: the work was cancelled, here or elsewhere.
        """
        ...


async def unkept(name: str, shape: type[T], step: Callable[[], Awaitable[T]]) -> T:
    """Take the step; nothing of it is kept."""
    return await step()


def as_it_comes(listener: Listener) -> Listener:
    """Nothing is kept of what is heard."""
    return listener


class ProcessStopping(Conflict):
    """This process stops, and another goes on with the work: that it has failed nobody may say."""


@dataclass(frozen=True, slots=True)
class WorkLease:
    """What one process knows of a piece of work that it does, or goes on with."""

    work_id: str = ""
    """The same in every process: what it costs is charged under it once. Empty: nothing is kept."""
    keep: StepKeeper = unkept
    heard: Callable[[Listener], Listener] = as_it_comes
    """Around a listener: what it hears within a step is kept, and heard again, with that step."""


Work = Callable[[WorkLease], Coroutine[Any, Any, T]]
GoOn = Callable[[str, WorkLease], Coroutine[Any, Any, None]]
"""Goes on, by the request that began it, with work whose process has ended or that was queued."""


class Engine(Protocol):
    """Does pieces of work; with one whose process has died another process goes on."""

    async def run(self, kind: str, work_id: str, request: str, work: Work[T]) -> T:
        """What the work gives, or its error; when the work is cancelled, another process goes on.

        Args:
            kind: which `GoOn` goes on with it elsewhere.
            work_id: a new one.
            request: what that `GoOn` needs, as JSON.
            work: what is done here.

        Raises:
            Stopping: another process goes on with it.
            StoreUnavailable: it could not be noted, and was not begun.
        """
        ...

    async def noted(self, prefix: str) -> str | None:
        """The id of work that begins so, and is done or waits to be, in whatever process."""
        ...

    async def cancel(self, prefix: str) -> None:
        """Have whichever process does work whose id begins so stop, and none begin it."""
        ...


class SharedEngine(Engine, Protocol):
    """An engine of several processes."""

    async def enqueue(self, kind: str, work_id: str, request: str, tenant: str) -> None:
        """Leave work to whichever process has room; each id once. Tenants take turns.

        Raises:
            StoreUnavailable: it could not be noted.
        """
        ...


class Unkept:
    """Does work here and now; with the process it ends."""

    async def run(self, kind: str, work_id: str, request: str, work: Work[T]) -> T:
        """What the work gives, or its error."""
        return await work(WorkLease())

    async def noted(self, prefix: str) -> str | None:
        """Nothing is noted."""
        return None

    async def cancel(self, prefix: str) -> None:
        """No other process does any of it."""


_INTERNAL = "an internal error"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Failure:
    """How some work failed, in words that are safe to show."""

    code: str
    """A `ListenpostError`'s own code, or `internal` for a defect."""
    message: str


class Defect(ListenpostError):
    """What nobody foresaw, in words that are safe to show."""

    code = "internal"


async def contained(work: Awaitable[T], name: str) -> T | Failure:
    """What `work` gives, or how it failed; `name` is what the log calls it.

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
    """What `work` gives; a defect leaves as the error that `to` makes of its kind, logged in full.

    So one source or model step that stumbles over what nobody foresaw fails like any other. Errors
    of ours, a deadline that passed, cancellation and what the caller has `known` go through.
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
    """Whether a failure's words are those of a defect."""
    return _INTERNAL in (reason or "")


def _leaves(error: Exception) -> Iterator[Exception]:
    """What one task, or several tasks at once, failed with."""
    if isinstance(error, ExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error
