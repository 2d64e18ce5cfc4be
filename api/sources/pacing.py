"""How often a place may be asked, by everything in this process: its own limit, and its word."""

from __future__ import annotations

import asyncio
import threading
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
    """When requests were sent, or will be, in order; within the longest limit."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _until: float = 0.0
    _spent: type[RateLimited | QuotaExhausted] = RateLimited

    @property
    def left(self) -> int:
        """Requests that may be sent before the longest limit is reached."""
        start = time.monotonic() - self._longest.seconds
        sent = sum(moment > start for moment in tuple(self._sent))
        return max(self._longest.requests - sent, 0)

    async def turn(self) -> None:
        """Wait until one more may be sent, in the order of the callers, and count it.

        Raises:
            RateLimited: that is not within `PATIENCE`; `retry_at` is when.
            QuotaExhausted: the same, when the server said that the day's requests are used up.
        """
        at = self._reserved()
        try:
            while (wait := at - time.monotonic()) > 0:
                if wait > PATIENCE:
                    free = datetime.now(UTC) + timedelta(seconds=wait)
                    paused = self._until > time.monotonic()
                    spent = self._spent if paused else RateLimited
                    raise spent(self.name, "its limit is reached, nothing sent", retry_at=free)
                await asyncio.sleep(wait)
                if self._until > time.monotonic():  # meanwhile the server asked for a pause
                    self._release(at)
                    at = self._reserved()
        except (asyncio.CancelledError, RateLimited, QuotaExhausted):
            self._release(at)
            raise

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

    def _reserved(self) -> float:
        """The next free moment, on the monotonic clock, which is then taken."""
        with self._lock:
            now = time.monotonic()
            while self._sent and self._sent[0] <= now - self._longest.seconds:
                self._sent.popleft()
            at = max(now, self._until, self._sent[-1] if self._sent else 0)
            for limit in self.limits if self.bound else ():
                if len(self._sent) >= limit.requests:
                    at = max(at, self._sent[-limit.requests] + limit.seconds)
            self._sent.append(at)
            return at

    def _release(self, at: float) -> None:
        """Leave a moment to others."""
        with self._lock:
            self._sent.remove(at)

    @property
    def _longest(self) -> Limit:
        return max(self.limits, key=lambda limit: limit.seconds)


@cache
def pace_of(name: str, server: str, *limits: Limit) -> Pace:
    """The one pace of a server in this process; on this machine no stranger's limits hold."""
    return Pace(name, limits, bound=not points_here(server))
