"""When a watch is due: `mon 08:00`, `mon,thu 08:00`, `daily 08:00`, `hourly`, `every 15 min`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from api.errors import UsageError

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
"""As they are written, in the order of `datetime.weekday`."""
_MOST = timedelta(days=31)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FORMS = "`mon 08:00`, `mon,thu 08:00`, `daily 08:00`, `hourly` or `every 15 min`"
_CLOCK = re.compile(r"(?P<days>daily|[a-z]{3}(?:,[a-z]{3})*) (?P<hour>\d{1,2}):(?P<minute>\d\d)")
"""Days and a time of day: `mon,thu 08:00`."""
_INTERVAL = re.compile(r"every (?P<number>\d{1,5}) ?(?P<unit>min|minutes?|h|hours?|days?)")
"""A number of minutes, hours or days: `every 15 min`."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """Days of the week and a time of day, or an interval."""

    days: frozenset[int] = frozenset()
    """0 is Monday; empty of an interval."""
    at: time = time()
    interval: timedelta = timedelta()


def schedule_of(text: str) -> Schedule:
    """What these words mean.

    Raises:
        UsageError: they are none of the forms, or an interval is below a minute or above 31 days.
    """
    words = ",".join(part.strip() for part in " ".join(text.lower().split()).split(","))
    if words == "hourly":
        return Schedule(interval=timedelta(hours=1))
    if match := _CLOCK.fullmatch(words):
        names = DAYS if match["days"] == "daily" else match["days"].split(",")
        hour, minute = int(match["hour"]), int(match["minute"])
        if set(names) <= set(DAYS) and hour < 24 and minute < 60:
            return Schedule(frozenset(map(DAYS.index, names)), time(hour, minute))
    if match := _INTERVAL.fullmatch(words):
        unit = {"m": "minutes", "h": "hours", "d": "days"}[match["unit"][0]]
        interval = timedelta(**{unit: int(match["number"])})
        if timedelta() < interval <= _MOST:
            return Schedule(interval=interval)
        wrong = f"`{words}` is no interval from 1 min to {_MOST.days} days"
        raise UsageError(wrong, field="every")
    raise UsageError(f"“{words[:40]}” is no schedule; write {_FORMS}", field="every")


def zone_of(name: str) -> ZoneInfo:
    """The time zone of this name.

    Raises:
        UsageError: there is none.
    """
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise UsageError(
            f"there is no time zone “{name[:40]}”; write one such as `Europe/Berlin` or `UTC`",
            field="tz",
        ) from None


def next_after(schedule: Schedule, moment: datetime, zone: ZoneInfo) -> datetime:
    """The first moment after this one at which it is due, aware UTC.

    A time of day that the clock skips is the first moment after the gap; one that comes twice is
    the first of both. Intervals count from midnight UTC of a fixed day, so they do not drift.
    """
    if schedule.interval:
        return moment - (moment - _EPOCH) % schedule.interval + schedule.interval
    first = moment.astimezone(zone).date()
    dates = (first + timedelta(days=ahead) for ahead in range(9))  # a week, and one left out
    return min(
        due
        for date in dates
        if date.weekday() in schedule.days
        and (due := _instant(datetime.combine(date, schedule.at), zone)) > moment
    )


def length_of(schedule: Schedule, moment: datetime, zone: ZoneInfo) -> timedelta:
    """From the next time that it is due to the one after that."""
    following = next_after(schedule, moment, zone)
    return next_after(schedule, following, zone) - following


def runs_a_week(schedule: Schedule) -> float:
    """How often it is due in a week; below 1 of an interval that is longer."""
    return timedelta(weeks=1) / schedule.interval if schedule.interval else len(schedule.days)


def _instant(local: datetime, zone: ZoneInfo) -> datetime:
    """When a clock in this zone first shows this, or shows more than it."""
    before = local.replace(tzinfo=zone).astimezone(UTC)
    if before.astimezone(zone).replace(tzinfo=None) == local:
        return before
    # skipped: by the offset of after the gap this is before it, by that of before it is after it
    low, high = local.replace(tzinfo=zone, fold=1).astimezone(UTC), before
    skipped = low.astimezone(zone).utcoffset()
    while high - low > timedelta(seconds=1):
        middle = low + timedelta(seconds=(high - low) // timedelta(seconds=1) // 2)
        if middle.astimezone(zone).utcoffset() == skipped:
            low = middle
        else:
            high = middle
    return high
