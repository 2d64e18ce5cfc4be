"""Limits of a key, and the order of work: budgets are reserved first, and tenants take turns.

Budgets are requests per minute, analyses and USD per day. When no model or source was asked, all
that was reserved is given back; else the analysis counts, and its estimate is corrected to the real
cost as soon as that is known.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from time import monotonic

from api.core.context import request_counter
from api.core.progress import Listener, ignore_event
from api.errors import LimitReached, StoreUnavailable
from api.features.analyses.api_keys import Tenant
from api.features.analyses.store_ports import UNBOUNDED, Store
from api.reports.exhibits import Dossier
from api.services import product as product_service
from api.services.product import Ask, Product, SourceAnswer

_log = logging.getLogger(__name__)
# Budgets in USD are counted in whole millionths.
_MICRO = 1_000_000
LOOKS = 10
"""Reads allowed per minute for each request that is allowed per minute."""


def utc_now() -> datetime:
    """The time by which days and minutes are counted."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Slot:
    """A place for one piece of work: first in its tenant's queue, then running."""

    tenant: Tenant
    _start: asyncio.Future[float] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    @property
    def running(self) -> bool:
        """Whether the work has its slot, and was not cancelled while it waited for it."""
        return self._start.done() and not self._start.cancelled()

    @property
    def waiting(self) -> bool:
        """Whether it is still in the queue, and its work not cancelled."""
        return not self._start.done()

    @property
    def started_at(self) -> float:
        """When the slot left the queue, by the queue's clock."""
        return self._start.result()

    async def wait(self) -> None:
        """Wait until the work may run."""
        await self._start

    def start(self, now: float) -> None:
        """Let the work run, from `now` by the queue's clock: `wait` returns."""
        self._start.set_result(now)


@dataclass(slots=True)
class FairQueue:
    """Runs so much at once, at most half of it of one tenant, and tenants alternate.

    So sixty deep questions of one tenant leave room for the quick one of another. 0 is no limit.
    `LOCAL` may use all.
    """

    at_once: int = 0
    """Running at once, of all tenants together."""
    waiting: int = 0
    """Most requests of one tenant that wait in the queue."""
    clock: Callable[[], float] = monotonic
    _running: Counter[str] = field(default_factory=Counter)
    _queues: OrderedDict[str, list[Slot]] = field(default_factory=OrderedDict)
    """Waiting slots by tenant; the tenant whose turn is next comes first."""
    _seconds: float = 1.0
    """Recent duration of one piece of work, in seconds."""

    @asynccontextmanager
    async def slot(self, tenant: Tenant) -> AsyncIterator[None]:
        """Around work: waits first.

        Raises:
            LimitReached: too many of this tenant wait already.
        """
        with self.joined(tenant) as slot:
            await slot.wait()
            yield

    @contextmanager
    def joined(self, tenant: Tenant, *, always: bool = False) -> Iterator[Slot]:
        """Around work that calls `wait` itself; with `always` however many wait.

        Raises:
            LimitReached: too many of this tenant wait already.
        """
        slot = Slot(tenant)
        queue = self._queues.setdefault(tenant.id, [])
        queue.append(slot)
        self._start_next()
        if self.waiting and len(queue) > self.waiting and not always:
            queue.remove(slot)
            wait = math.ceil(self._seconds * len(queue) / self._share(tenant))
            raise LimitReached(f"{self.waiting} of your requests wait already", max(wait, 1))
        try:
            yield slot
        finally:
            if slot.running:
                self._running[tenant.id] -= 1
                # moving mean over the last eight or so
                self._seconds += (self.clock() - slot.started_at - self._seconds) / 8
            else:
                queue.remove(slot)
            self._running = +self._running  # without tenants that have none
            self._start_next()

    def is_full(self, tenant: Tenant, joining: Sequence[str] = ()) -> bool:
        """Whether work of this tenant would have to wait now; `joining` are tenants whose work is about to join."""
        mine = self._running[tenant.id] + len(self._queues.get(tenant.id, ())) + joining.count(tenant.id)
        if not self.at_once:
            return False
        return self._running.total() + len(joining) >= self.at_once or mine >= self._share(tenant)

    def _share(self, tenant: Tenant) -> int:
        return self.at_once if tenant.origin == "local" else (self.at_once + 1) // 2

    def _start_next(self) -> None:
        """Start what there is room for, one tenant after the other."""
        for name in [name for name, queue in self._queues.items() if not queue]:
            del self._queues[name]
        while (slot := self._next()) is not None:
            self._running[slot.tenant.id] += 1
            self._queues[slot.tenant.id].remove(slot)
            self._queues.move_to_end(slot.tenant.id)
            slot.start(self.clock())

    def _next(self) -> Slot | None:
        """The first slot of the first tenant whose share is not used up, if there is room."""
        if self.at_once and self._running.total() >= self.at_once:
            return None
        for name, queue in self._queues.items():
            for slot in queue:
                if self.at_once and self._running[name] >= self._share(slot.tenant):
                    break
                if slot.waiting:
                    return slot
        return None


@dataclass(slots=True)
class Spending:
    """The outcome of a reservation, filled in by the work."""

    counts: bool = False
    """A model was asked; requests to sources are counted by themselves."""
    usd: float | None = None
    """Actual cost; None while unknown, when the estimate is kept."""
    continued: bool = False
    """Another process, or a later try, continues the work and settles it."""

    def ended(self, tokens: int, usd: float | None) -> None:
        """Note what the work used; tokens without a known price cost nothing that could be counted.

        So what was reserved for them is given back: else a day of such work would use up a budget
        of which nothing was spent.
        """
        self.counts = tokens > 0
        self.usd = 0.0 if usd is None and tokens > 0 else usd


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits that apply to every key; 0 turns a limit off. `LOCAL` has none."""

    store: Store
    requests_per_minute: int = 0
    analyses_per_day: int = 0
    usd_per_day: float = 0.0
    clock: Callable[[], datetime] = utc_now
    queue: FairQueue = field(default_factory=FairQueue)

    async def admit(self, tenant: Tenant, *, looks: bool = False) -> None:
        """Count one request; reads (`looks`) have a separate limit, `LOOKS` times as high.

        Raises:
            LimitReached: this minute's are used up.
            StoreUnavailable: the database cannot be used, so nothing is admitted.
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

        With a `work_id` once, whichever processes do the work.

        Raises:
            LimitReached: the day's analyses or USD do not suffice.
            StoreUnavailable: the database cannot be used, so nothing is begun.
        """
        spent, now = Spending(), self.clock()
        taken = await self._take(now, self._wanted(tenant, usd, analyses), work_id)
        with request_counter() as calls:
            try:
                yield spent
            finally:
                spent.counts = spent.counts or calls.made > 0
                if not spent.continued:
                    await self._settle(taken, now.date(), spent, work_id)

    @asynccontextmanager
    async def reserved(self, tenant: Tenant, *, usd: float, analyses: int, work_id: str) -> AsyncIterator[None]:
        """Around leaving work to another process, which will do and settle it; released if that fails.

        Raises:
            LimitReached: the day's analyses or USD do not suffice.
            StoreUnavailable: the database cannot be used.
        """
        wanted = self._wanted(tenant, usd, analyses)
        try:
            await self._take(self.clock(), wanted, work_id)
            yield
        except StoreUnavailable:
            try:
                for part in wanted:
                    await self.store.release(work_id, part.scope)
            except StoreUnavailable as error:
                _log.warning("a reservation could not be released and stands: %s", error)
            raise

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
        """Around work: waits in the queue, reserves an estimate in USD, and settles afterwards.

        Raises:
            LimitReached: the day's USD do not suffice, or too many of this tenant wait.
            StoreUnavailable: the database cannot be used, so nothing is begun.
        """
        async with self.queue.slot(tenant), self.spending(tenant, usd=usd) as spent:
            yield spent

    async def _take(self, now: datetime, wanted: Sequence[_Reservation], work_id: str) -> list[_Reservation]:
        # all of it or, with `LimitReached`, nothing
        taken: list[_Reservation] = []
        for part in wanted:
            day, units = now.date(), part.units
            if work_id:
                fits = await self.store.charge(work_id, part.scope, day, units, part.most)
            else:
                fits = not units or await self.store.take(part.scope, day, units, part.most)
            if not fits:
                await self._settle(taken, day, Spending(), work_id)
                midnight = datetime.combine(day + timedelta(days=1), time(), UTC)
                wait = math.ceil((midnight - now).total_seconds())
                raise LimitReached(f"the day's {part.words} are used up", wait)
            taken.append(part)
        return taken

    async def _settle(self, taken: Sequence[_Reservation], day: date, spent: Spending, work_id: str) -> None:
        # if the database fails now, the reservation stands: an error waives no limit
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
    """Units of one scope; `words` name the limit in the message when it is reached."""

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
        answer = await product_service.fetch(product, source, ask, listener=listener, dossier=dossier)
        spent.ended(answer.usage.input_tokens, answer.usage.usd)
    return answer
