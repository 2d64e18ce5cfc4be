"""When something can have been said; a time that cannot be true is worse than none."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

EARLIEST = datetime(1990, 1, 1, tzinfo=UTC)
"""Before it there was no web page to say anything on."""
_AHEAD = timedelta(days=2)
"""Zones and wrong clocks put a time ahead by less."""
IMPLAUSIBLE = "its time cannot be true, so it counts as undated"
"""The note of an item that lost its time."""


def plausible(
    at: datetime | None, since: datetime = EARLIEST, now: datetime | None = None
) -> datetime | None:
    """The time, aware UTC, when something can have been said then; else None.

    `since` is when the place began: nobody wrote on Reddit in 1970, which is what a time of 0 says.
    """
    latest = (now or datetime.now(UTC)) + _AHEAD
    return at if at is not None and since <= at <= latest else None
