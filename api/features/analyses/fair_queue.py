"""Whose turn it is: so much runs at once, one tenant has half of it at most, and tenants alternate.

Sixty deep questions of one tenant so leave room for the quick one of another, which does not wait
behind them.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from api.errors import LimitReached
from api.features.analyses.api_keys import Tenant


@dataclass(frozen=True, slots=True)
class Slot:
    """A seat among what runs, or among what waits for it."""

    tenant: Tenant
    _let_in: asyncio.Future[float] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )

    @property
    def running(self) -> bool:
        """Its turn has come."""
        return self._let_in.done() and not self._let_in.cancelled()

    @property
    def waits(self) -> bool:
        """Its turn has not come, and nobody has given it up."""
        return not self._let_in.done()

    @property
    def began(self) -> float:
        """When its turn came; the wait before is no part of its work."""
        return self._let_in.result()

    async def turn(self) -> None:
        """Wait for it."""
        await self._let_in

    def let_in(self, now: float) -> None:
        """It is its turn."""
        self._let_in.set_result(now)


@dataclass(slots=True)
class FairQueue:
    """Seats for the work of all tenants; 0 is no limit. Whoever sits at this machine is alone."""

    at_once: int = 0
    """Running at once, of all tenants together."""
    waiting: int = 0
    """Of one tenant waiting for their turn."""
    clock: Callable[[], float] = time.monotonic
    _running: Counter[str] = field(default_factory=Counter)
    _queues: OrderedDict[str, list[Slot]] = field(default_factory=OrderedDict)
    """By tenant, the one whose turn is next first."""
    _seconds: float = 1.0
    """How long one took of late."""

    @contextmanager
    def seat(self, tenant: Tenant, *, always: bool = False) -> Iterator[Slot]:
        """Around work that first waits for its `turn`, `always` however many wait.

        Raises:
            LimitReached: too many of this tenant wait already.
        """
        seat = Slot(tenant)
        queue = self._queues.setdefault(tenant.id, [])
        queue.append(seat)
        self._let_in()
        if self.waiting and len(queue) > self.waiting and not always:
            queue.remove(seat)
            wait = math.ceil(self._seconds * len(queue) / self._share(tenant))
            raise LimitReached(f"{self.waiting} of your requests wait already", max(wait, 1))
        try:
            yield seat
        finally:
            if seat.running:
                self._running[tenant.id] -= 1
                self._seconds += (self.clock() - seat.began - self._seconds) / 8
            else:
                queue.remove(seat)
            self._running = +self._running  # without who has none
            self._let_in()

    def full(self, tenant: Tenant) -> bool:
        """Whether what this tenant asks now would wait."""
        mine = self._running[tenant.id] + len(self._queues.get(tenant.id, ()))
        if not self.at_once:
            return False
        return self._running.total() >= self.at_once or mine >= self._share(tenant)

    def _share(self, tenant: Tenant) -> int:
        """How many of one tenant run at most."""
        return self.at_once if tenant.origin == "local" else (self.at_once + 1) // 2

    def _let_in(self) -> None:
        """Fill what is free, one tenant after the other."""
        for name in list(self._queues):
            if not self._queues[name]:
                del self._queues[name]
        while (seat := self._next()) is not None:
            self._running[seat.tenant.id] += 1
            self._queues[seat.tenant.id].remove(seat)
            self._queues.move_to_end(seat.tenant.id)
            seat.let_in(self.clock())

    def _next(self) -> Slot | None:
        """The first of the first tenant whose share is not used up, if anything is free."""
        if self.at_once and self._running.total() >= self.at_once:
            return None
        for name, queue in self._queues.items():
            for seat in queue:
                if self.at_once and self._running[name] >= self._share(seat.tenant):
                    break
                if seat.waits:
                    return seat
        return None
