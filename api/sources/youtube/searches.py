"""Google's bucket of searches: so many a day, and a day ends at midnight Pacific time.

The ledger is shared by every process on one database. A search is taken before its request is
sent, each try for itself. It is given back only when the request cannot have reached Google: the
name was not resolved, or the connection was refused. After a timeout or an error it stays taken,
since Google counts what it received.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from api.errors import QuotaExhausted, StoreUnavailable, Unreachable
from api.services.keeping.ledger import Ledger
from api.settings import SourceSettings
from api.sources.spec import value_of
from api.sources.youtube import NAME


class Searches:
    """The searches one key has left today; without a ledger nothing is counted."""

    def __init__(self, ledger: Ledger | None, key: str, limit: int) -> None:
        """`limit` is per day; another key is another project, so it has a scope of its own."""
        self._ledger, self._limit = ledger, limit
        self.scope = f"{NAME}.search:{hashlib.sha256(key.encode()).hexdigest()[:8]}"

    async def take(self) -> date | None:
        """Take one, before the request is sent; the day it was taken from.

        Raises:
            QuotaExhausted: the day's searches are gone.
            Unreachable: the ledger cannot be read, so nobody knows whether one is left.
        """
        if self._ledger is None:
            return None
        day = pacific_day()
        try:
            taken = await self._ledger.take(self.scope, day, 1, self._limit)
        except StoreUnavailable:
            raise Unreachable(NAME, "searches cannot be counted: the database is away") from None
        if not taken:
            detail = f"the day's {self._limit} searches are used up"
            raise QuotaExhausted(NAME, detail, retry_at=next_reset())
        return day

    async def give_back(self, day: date | None) -> None:
        """Return one that Google never saw; a ledger that cannot be used keeps it."""
        if self._ledger is None or day is None:
            return
        try:
            await self._ledger.give_back(self.scope, day, 1)
        except StoreUnavailable:
            return

    async def left(self) -> int | None:
        """How many are left today; None when nobody counts."""
        if self._ledger is None:
            return None
        try:
            spent = await self._ledger.spent(self.scope, pacific_day())
        except StoreUnavailable:
            return None
        return max(self._limit - spent, 0)


def searches_of(settings: SourceSettings, ledger: Ledger | None) -> Searches:
    """Those of the key in the settings."""
    key = value_of(settings, "YOUTUBE_API_KEY")
    return Searches(ledger, key, settings.youtube_searches_per_day)


def pacific_day(now: datetime | None = None) -> date:
    """The day in Pacific time, by which Google counts."""
    return (now or datetime.now(UTC)).astimezone(_pacific()).date()


def next_reset(now: datetime | None = None) -> datetime:
    """The next midnight in Pacific time, when Google's quotas return, as UTC."""
    zone = _pacific()
    local = (now or datetime.now(UTC)).astimezone(zone)
    midnight = datetime(local.year, local.month, local.day, tzinfo=zone) + timedelta(days=1)
    return midnight.astimezone(UTC)


def _pacific() -> tzinfo:
    try:
        return ZoneInfo("America/Los_Angeles")
    except ZoneInfoNotFoundError:  # a slim system without zone data: at most an hour late
        return timezone(timedelta(hours=-8))
