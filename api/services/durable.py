"""Work that outlives its process: its steps are kept, and another process goes on behind them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from api.errors import Conflict
from api.services.progress import Listener

T = TypeVar("T")


class Keep(Protocol):
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


class Stopping(Conflict):
    """This process stops, and another goes on with the work: that it has failed nobody may say."""


@dataclass(frozen=True, slots=True)
class Life:
    """What one process knows of a piece of work that it does, or goes on with."""

    work_id: str = ""
    """The same in every process: what it costs is charged under it once. Empty: nothing is kept."""
    keep: Keep = unkept
    heard: Callable[[Listener], Listener] = as_it_comes
    """Around a listener: what it hears within a step is kept, and heard again, with that step."""


Work = Callable[[Life], Coroutine[Any, Any, T]]
GoOn = Callable[[str, Life], Coroutine[Any, Any, None]]
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
        return await work(Life())

    async def noted(self, prefix: str) -> str | None:
        """Nothing is noted."""
        return None

    async def cancel(self, prefix: str) -> None:
        """No other process does any of it."""
