"""How often a place may be asked, by everything in this process: its own limit, and its word."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache

from api.errors import QuotaExhausted, RateLimited
from api.services.wire import points_here

PATIENCE = 3.0
"""Seconds that a request waits for its turn; for longer it is not sent."""


@dataclass(frozen=True, slots=True)
class Limit:
    """So many requests in so many seconds."""

    requests: int
    seconds: float


@dataclass(eq=False)
class Pace:
    """The requests of one kind to one server; shared by event loops and threads."""

    name: str
    limits: tuple[Limit, ...]
    bound: bool = True
    """The limits hold; what the server asks for always does."""
    _sent: deque[float] = field(default_factory=deque)
    _until: float = 0.0
    _spent: type[RateLimited | QuotaExhausted] = RateLimited

    @property
    def left(self) -> int:
        """Requests that may be sent before the longest limit is reached."""
        longest = max(self.limits, key=lambda limit: limit.seconds)
        return max(longest.requests - len(self._within(longest.seconds)), 0)

    async def turn(self) -> None:
        """Wait until one more may be sent, and count it.

        Raises:
            RateLimited: that is not within `PATIENCE`; `retry_at` is when.
            QuotaExhausted: the same, when the server said that the day's requests are used up.
        """
        while (wait := self._wait()) > 0:
            if wait > PATIENCE:
                at = datetime.now(UTC) + timedelta(seconds=wait)
                paused = self._until > time.monotonic()
                spent = self._spent if paused else RateLimited
                raise spent(self.name, "its limit is reached, nothing sent", retry_at=at)
            await asyncio.sleep(wait)
        self._sent.append(time.monotonic())
        while len(self._sent) > max(limit.requests for limit in self.limits):
            self._sent.popleft()

    def pause(
        self,
        until: datetime | None,
        spent: type[RateLimited | QuotaExhausted] = RateLimited,
    ) -> None:
        """Send nothing before that moment, as the server asked; `spent` is what that is called."""
        if until is not None:
            seconds = (until - datetime.now(UTC)).total_seconds()
            if (end := time.monotonic() + seconds) > self._until:
                self._until, self._spent = end, spent

    def _wait(self) -> float:
        """Seconds until the next may be sent."""
        now = time.monotonic()
        free = [self._until]
        for limit in self.limits if self.bound else ():
            sent = self._within(limit.seconds)
            if len(sent) >= limit.requests:
                free.append(sent[-limit.requests] + limit.seconds)
        return max(free) - now

    def _within(self, seconds: float) -> list[float]:
        start = time.monotonic() - seconds
        return [sent for sent in tuple(self._sent) if sent > start]


@cache
def pace_of(name: str, server: str, *limits: Limit) -> Pace:
    """The one pace of a server in this process; on this machine no stranger's limits hold."""
    return Pace(name, limits, bound=not points_here(server))
