"""What a key may use: requests per minute, analyses and USD per day, reserved before it is spent.

The rule for what is given back: if nobody was asked, everything; else the analysis counts, and its
estimate is corrected to the real cost as soon as that is known.
"""

from __future__ import annotations

import logging
import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from api.errors import LimitReached, StoreUnavailable
from api.services.keeping.keys import Tenant
from api.services.keeping.storage import Ledger
from api.services.metering import metered

_log = logging.getLogger(__name__)
_MICRO = 1_000_000
_UNBOUNDED = 2**62


def utc_now() -> datetime:
    """The time by which days and minutes are counted."""
    return datetime.now(UTC)


@dataclass(slots=True)
class Spending:
    """What became of a reservation; whoever spends says so here."""

    asked: bool = False
    """Somebody was asked: it counts. Requests to sources are seen without being told."""
    usd: float | None = None
    """The real cost; None while it is unknown, then the estimate stands."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of every key, over one ledger; 0 is no limit. `LOCAL` has none."""

    ledger: Ledger
    requests_per_minute: int = 0
    analyses_per_day: int = 0
    usd_per_day: float = 0.0
    clock: Callable[[], datetime] = utc_now

    async def admit(self, tenant: Tenant) -> None:
        """Count one request.

        Raises:
            LimitReached: this minute's are used up.
            StoreUnavailable: the ledger cannot be read, so nobody is let in.
        """
        most, now = self.requests_per_minute, self.clock()
        if tenant.origin == "local" or not most:
            return
        scope = f"key:{tenant.id}:requests:{now:%H%M}"
        if not await self.ledger.take(scope, now.date(), 1, most):
            raise LimitReached(f"{most} requests per minute are used up", 60 - now.second)

    @asynccontextmanager
    async def spending(
        self, tenant: Tenant, *, usd: float, analyses: int = 0
    ) -> AsyncIterator[Spending]:
        """Around work that costs: reserves `analyses` and an estimate in USD, settles afterwards.

        Raises:
            LimitReached: the day's analyses or USD do not suffice.
            StoreUnavailable: the ledger cannot be read, so nothing is begun.
        """
        spent, now = Spending(), self.clock()
        taken = await self._take(now, self._wanted(tenant, analyses, usd))
        with metered() as calls:
            try:
                yield spent
            finally:
                spent.asked = spent.asked or calls.made > 0
                await self._settle(taken, now.date(), spent)

    def _wanted(self, tenant: Tenant, analyses: int, usd: float) -> list[_Wanted]:
        if tenant.origin == "local":
            return []
        named = f"key:{tenant.id}"
        wanted = []
        if self.analyses_per_day and analyses:
            most = self.analyses_per_day
            wanted.append(_Wanted(f"{named}:analyses", analyses, most, f"{most} analyses"))
        if self.usd_per_day:
            most = _micro(self.usd_per_day)
            wanted.append(_Wanted(f"{named}:usd", _micro(usd), most, f"{self.usd_per_day:g} USD"))
        return wanted

    async def _take(self, now: datetime, wanted: list[_Wanted]) -> list[_Wanted]:
        taken: list[_Wanted] = []
        for one in wanted:
            if one.units and not await self.ledger.take(one.scope, now.date(), one.units, one.most):
                for given in taken:
                    await self.ledger.give_back(given.scope, now.date(), given.units)
                raise LimitReached(f"the day's {one.words} are used up", _until_midnight(now))
            taken.append(one)
        return taken

    async def _settle(self, taken: list[_Wanted], day: date, spent: Spending) -> None:
        """A ledger that fails now keeps the reservation: an error waives no limit."""
        try:
            for one in taken:
                await self._correct(one, day, spent)
        except StoreUnavailable as error:
            _log.warning("a reservation could not be settled and stands: %s", error)

    async def _correct(self, one: _Wanted, day: date, spent: Spending) -> None:
        real = one.units
        if not spent.asked:
            real = 0
        elif one.scope.endswith(":usd") and spent.usd is not None:
            real = _micro(spent.usd)
        if real < one.units:
            await self.ledger.give_back(one.scope, day, one.units - real)
        elif real > one.units:
            await self.ledger.take(one.scope, day, real - one.units, _UNBOUNDED)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """Units of one scope."""

    scope: str
    units: int
    most: int
    words: str


def _micro(usd: float) -> int:
    return math.ceil(round(usd * _MICRO, 3))


def _until_midnight(now: datetime) -> int:
    tomorrow = datetime.combine(now.date() + timedelta(days=1), time(), UTC)
    return math.ceil((tomorrow - now).total_seconds())
