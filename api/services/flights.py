"""Work under way that several wait for: begun once, in a task of its own, whoever leaves.

Whoever waits may leave without harm to the rest; when the last has left, the work is cancelled.
All who wait get what came of it, an error too: nobody begins it again because it failed.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Hashable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, TypeVar

from api.services.progress import Event, Listener, silent

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

    def leave(self, listener: Listener = silent) -> None:
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
        listener: Listener = silent,
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
