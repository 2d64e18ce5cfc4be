"""What a key may use: requests per minute, analyses and USD per day, reserved before it is spent.

The rule for what is given back: if nobody was asked, everything; else the analysis counts, and its
estimate is corrected to the real cost as soon as that is known.
"""

from __future__ import annotations

import logging
import math
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta

from api.core.context import request_counter
from api.core.progress import Listener, ignore_event
from api.errors import LimitReached, StoreUnavailable
from api.features.analyses.api_keys import Tenant
from api.features.analyses.fair_queue import FairQueue
from api.features.analyses.store_ports import UNBOUNDED, Store
from api.reports.exhibits import Dossier
from api.services import product as product_service
from api.services.product import Ask, Product, SourceAnswer

_log = logging.getLogger(__name__)
_MICRO = 1_000_000
LOOKS = 10
"""Looks at analyses that were begun, for each request of a minute."""


def utc_now() -> datetime:
    """The time by which days and minutes are counted."""
    return datetime.now(UTC)


@dataclass(slots=True)
class Spending:
    """What became of a reservation; whoever spends says so here."""

    counts: bool = False
    """A model was asked; requests to sources are counted without a word here."""
    usd: float | None = None
    """The real cost; None while it is unknown, then the estimate stands."""
    goes_on: bool = False
    """Another process goes on with the work, and will settle it."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of every key, over one ledger; 0 is no limit. `LOCAL` has none."""

    store: Store
    requests_per_minute: int = 0
    analyses_per_day: int = 0
    usd_per_day: float = 0.0
    clock: Callable[[], datetime] = utc_now
    turns: FairQueue = field(default_factory=FairQueue)

    async def admit(self, tenant: Tenant, *, looks: bool = False) -> None:
        """Count one request; apart from the others, and `LOOKS` times as many, one that only looks.

        Raises:
            LimitReached: this minute's are used up.
            StoreUnavailable: the ledger cannot be read, so nobody is let in.
        """
        most, now = self.requests_per_minute * (LOOKS if looks else 1), self.clock()
        if tenant.origin == "local" or not most:
            return
        words = "looks" if looks else "requests"
        scope = f"key:{tenant.id}:{words}:{now:%H%M}"
        if not await self.store.take(scope, now.date(), 1, most):
            raise LimitReached(f"{most} {words} per minute are used up", 60 - now.second)

    @asynccontextmanager
    async def spending(
        self, tenant: Tenant, *, usd: float, analyses: int = 0, work_id: str = ""
    ) -> AsyncIterator[Spending]:
        """Around work that costs: reserves `analyses` and an estimate in USD, settles afterwards.

        With a `work_id` that happens once, whichever processes do the work.

        Raises:
            LimitReached: the day's analyses or USD do not suffice.
            StoreUnavailable: the ledger cannot be read, so nothing is begun.
        """
        spent, now = Spending(), self.clock()
        taken = await self._take(now, self._wanted(tenant, usd, analyses), work_id)
        with request_counter() as calls:
            try:
                yield spent
            finally:
                spent.counts = spent.counts or calls.made > 0
                if not spent.goes_on:
                    await self._settle(taken, now.date(), spent, work_id)

    async def reserve(self, tenant: Tenant, *, usd: float, analyses: int, work_id: str) -> None:
        """For work that is left to another process, which settles it.

        Raises:
            LimitReached: the day's analyses or USD do not suffice.
            StoreUnavailable: the ledger cannot be read.
        """
        await self._take(self.clock(), self._wanted(tenant, usd, analyses), work_id)

    def _wanted(self, tenant: Tenant, usd: float, analyses: int) -> list[_Reservation]:
        wanted: list[_Reservation] = []
        if tenant.origin != "local" and self.analyses_per_day and analyses:
            most = self.analyses_per_day
            scope = f"key:{tenant.id}:analyses"
            wanted.append(_Reservation(scope, analyses, most, f"{most} analyses"))
        if tenant.origin != "local" and self.usd_per_day:
            most, scope = _micro(self.usd_per_day), f"key:{tenant.id}:usd"
            wanted.append(_Reservation(scope, _micro(usd), most, f"{self.usd_per_day:g} USD"))
        return wanted

    @asynccontextmanager
    async def working(self, tenant: Tenant, usd: float) -> AsyncIterator[Spending]:
        """Around work that waits for its turn, then reserves its estimate and settles afterwards.

        Raises:
            LimitReached: the day's USD do not suffice, or too many of this tenant wait.
            StoreUnavailable: the ledger cannot be read, so nothing is begun.
        """
        with self.turns.seat(tenant) as seat:
            await seat.turn()
            async with self.spending(tenant, usd=usd) as spent:
                yield spent

    async def _take(
        self, now: datetime, wanted: Sequence[_Reservation], work_id: str
    ) -> list[_Reservation]:
        """All of it or, with `LimitReached`, nothing."""
        taken: list[_Reservation] = []
        for part in wanted:
            day, units, ledger = now.date(), part.units, self.store
            if work_id:
                fits = await ledger.charge(work_id, part.scope, day, units, part.most)
            else:
                fits = not units or await ledger.take(part.scope, day, units, part.most)
            if not fits:
                await self._settle(taken, day, Spending(), work_id)
                midnight = datetime.combine(day + timedelta(days=1), time(), UTC)
                wait = math.ceil((midnight - now).total_seconds())
                raise LimitReached(f"the day's {part.words} are used up", wait)
            taken.append(part)
        return taken

    async def _settle(
        self, taken: Sequence[_Reservation], day: date, spent: Spending, work_id: str
    ) -> None:
        """A ledger that fails now keeps the reservation: an error waives no limit."""
        try:
            for part in taken:
                real = part.units
                if not spent.counts:
                    real = 0
                elif part.scope.endswith(":usd") and spent.usd is not None:
                    real = _micro(spent.usd)
                if work_id:
                    await self.store.settle(work_id, part.scope, real)
                elif real < part.units:
                    await self.store.give_back(part.scope, day, part.units - real)
                elif real > part.units:
                    await self.store.take(part.scope, day, real - part.units, UNBOUNDED)
        except StoreUnavailable as error:
            _log.warning("a reservation could not be settled and stands: %s", error)


@dataclass(frozen=True, slots=True)
class _Reservation:
    """Units of one scope; `words` name the limit for the one who reaches it."""

    scope: str
    units: int
    most: int
    words: str


def _micro(usd: float) -> int:
    return math.ceil(round(usd * _MICRO, 3))


async def fetch_within(
    limits: Limits, tenant: Tenant, usd: float, product: Product, source: str, ask: Ask,
    listener: Listener = ignore_event, dossier: Dossier | None = None,
) -> SourceAnswer:  # fmt: skip
    """Ask one source; `usd` is what that may cost at most.

    Raises:
        UsageError: an unknown source, a limit out of range, or a query that names nothing.
        LimitReached: the day's USD do not suffice, or too many requests wait.
        StoreUnavailable: the limits cannot be read.
    """
    async with limits.working(tenant, usd) as spent:
        heard = await product_service.fetch(
            product, source, ask, listener=listener, dossier=dossier
        )
        spent.counts, spent.usd = bool(heard.usage.input_tokens), heard.usage.usd
    return heard
