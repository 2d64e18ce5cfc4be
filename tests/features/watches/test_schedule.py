"""When a watch is due, over clocks that are put forward and back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from api.errors import UsageError
from api.features.watches.watch import length_of, next_after, runs_a_week, schedule_of, zone_of

BERLIN = ZoneInfo("Europe/Berlin")


def at(text: str) -> datetime:
    """A moment, UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "after", "due"),
    [
        # 2026-11-30 is a Monday; Berlin is an hour ahead in winter, two in summer
        ("mon 08:00", "2026-11-28 12:00", "2026-11-30 07:00"),
        ("mon 08:00", "2026-11-30 06:59", "2026-11-30 07:00"),
        ("mon 08:00", "2026-11-30 07:00", "2026-12-07 07:00"),
        ("Mon , THU  8:00", "2026-11-30 07:00", "2026-12-03 07:00"),
        ("daily 00:30", "2026-11-28 23:29", "2026-11-28 23:30"),
        ("daily 00:30", "2026-11-28 23:30", "2026-11-29 23:30"),
        # the clock is put forward on 2027-03-28 from 02:00 to 03:00, which is 01:00 UTC
        ("daily 02:30", "2027-03-27 12:00", "2027-03-28 01:00"),
        ("daily 02:30", "2027-03-28 01:00", "2027-03-29 00:30"),
        ("daily 02:00", "2027-03-27 12:00", "2027-03-28 01:00"),
        ("daily 03:00", "2027-03-27 12:00", "2027-03-28 01:00"),
        ("sun 08:00", "2027-03-27 12:00", "2027-03-28 06:00"),
        # and back on 2026-10-25 from 03:00 to 02:00, which is 01:00 UTC
        ("daily 02:30", "2026-10-24 12:00", "2026-10-25 00:30"),
        ("daily 02:30", "2026-10-25 00:30", "2026-10-26 01:30"),
        ("hourly", "2026-10-25 00:30", "2026-10-25 01:00"),
        ("hourly", "2026-10-25 01:00", "2026-10-25 02:00"),
        ("every 15 min", "2026-11-28 12:07", "2026-11-28 12:15"),
        ("every 1 min", "2026-11-28 12:07", "2026-11-28 12:08"),
        ("every 6 hours", "2026-11-28 12:07", "2026-11-28 18:00"),
        ("every 2 days", "2026-11-28 12:07", "2026-11-29 00:00"),
    ],
)
def test_due_next(text: str, after: str, due: str) -> None:
    """Strictly after the moment, as a clock in Berlin shows it."""
    assert next_after(schedule_of(text), at(after), BERLIN) == at(due)


def test_zone_that_left_out_a_day() -> None:
    """Samoa had no 30 December 2011: what was due then is due when the 31st begins."""
    apia = ZoneInfo("Pacific/Apia")
    due = next_after(schedule_of("fri 08:00"), at("2011-12-29 20:00"), apia)
    assert due == at("2011-12-30 10:00")
    assert next_after(schedule_of("fri 08:00"), due, apia) == at("2012-01-05 18:00")


def test_every_moment_of_a_year_is_after_the_one_before() -> None:
    """One a day, and the one at which the year is over."""
    moment, number = at("2026-01-01 00:00"), 0
    while moment < at("2027-01-01 00:00"):
        following = next_after(schedule_of("daily 02:30"), moment, BERLIN)
        assert timedelta() < following - moment <= timedelta(hours=25)
        moment, number = following, number + 1
    assert number == 366


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("mon 08:00", timedelta(days=7)),
        ("mon,thu 08:00", timedelta(days=3)),
        ("every 15 min", timedelta(minutes=15)),
    ],
)
def test_length(text: str, length: timedelta) -> None:
    """From one due moment to the next."""
    assert length_of(schedule_of(text), at("2026-11-28 12:00"), BERLIN) == length


@pytest.mark.parametrize(
    ("text", "runs"),
    [("mon,thu 08:00", 2), ("daily 08:00", 7), ("every 12 h", 14), ("every 28 days", 0.25)],
)
def test_runs_a_week(text: str, runs: float) -> None:
    """Of days and of intervals, also of one that is longer than a week."""
    assert runs_a_week(schedule_of(text)) == runs


@pytest.mark.parametrize(
    "text", ["", "monday 08:00", "mon", "mon 24:00", "mon 08:60", "mon,foo 08:00", "every min", "8"]
)
def test_what_is_no_schedule(text: str) -> None:
    """It is refused with the forms there are."""
    with pytest.raises(UsageError, match="is no schedule; write `mon 08:00`"):
        schedule_of(text)


@pytest.mark.parametrize("text", ["every 0 min", "every 32 days", "every 99999 hours"])
def test_interval_out_of_range(text: str) -> None:
    """A minute to a month."""
    with pytest.raises(UsageError, match="no interval from 1 min to 31 days"):
        schedule_of(text)


@pytest.mark.parametrize("name", ["Mars/Base", "", "../etc/passwd", "Europe"])
def test_what_is_no_zone(name: str) -> None:
    """A name, not a path."""
    with pytest.raises(UsageError, match="there is no time zone"):
        zone_of(name)
    assert zone_of("UTC").key == "UTC"
