"""Several clients of one server, each with few connections.

httpcore's pool looks at each of its connections for every request, for each idle one at all once more, and closes idle
ones beyond a number: with a hundred requests at once that costs more than the requests.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar


class ClosableClient(Protocol):
    """A client of httpx or of its kin."""

    async def aclose(self) -> None:
        """Close every connection of this client; requests under way fail."""


C = TypeVar("C", bound=ClosableClient)
# Requests that a client has at once; httpx keeps 20 connections open, for 5 seconds.
_WIDTH = 8
_KEPT_SECONDS = 5


@dataclass(slots=True)
class _PooledClient(Generic[C]):
    client: C
    active: int = 0
    idle_since: float = 0.0
    """Seconds of the monotonic clock."""


class ClientPool(Generic[C]):
    """Lends clients of one server, each for `_WIDTH` requests at once; belongs to one event loop."""

    def __init__(self, make: Callable[[], C], clock: Callable[[], float] = time.monotonic) -> None:
        """`make` builds a client: the first one now, others when all have their requests."""
        self._make, self._clock, self._pooled = make, clock, [_PooledClient(make())]

    @contextmanager
    def lent(self) -> Iterator[C]:
        """A client for one request, until its answer is read."""
        pooled = next((pooled for pooled in self._pooled if pooled.active < _WIDTH), None)
        if pooled is None:
            pooled = _PooledClient(self._make())
            self._pooled.append(pooled)
        pooled.active += 1
        try:
            yield pooled.client
        finally:
            pooled.active -= 1
            pooled.idle_since = self._clock()

    async def close_idle(self) -> None:
        """Close clients idle for `_KEPT_SECONDS`, from the end of the pool; the first client stays open."""
        while len(self._pooled) > 1 and self._pooled[-1].active == 0:
            if self._clock() - self._pooled[-1].idle_since < _KEPT_SECONDS:
                break
            await self._pooled.pop().client.aclose()

    async def aclose(self) -> None:
        """Close every client; none may be lent afterwards."""
        for pooled in self._pooled:
            await pooled.client.aclose()
