"""Which times can be true."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from api.sources.item_fields import EARLIEST, plausible_time

NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("at", "is_true"),
    [
        (datetime(2026, 11, 27, tzinfo=UTC), True),
        (NOW + timedelta(hours=30), True),
        (NOW + timedelta(days=3), False),
        (datetime(2099, 1, 1, tzinfo=UTC), False),
        (datetime(9999, 12, 31, 23, 59, tzinfo=UTC), False),
        (EARLIEST, True),
        (datetime(1970, 1, 1, tzinfo=UTC), False),
        (datetime(1969, 12, 31, tzinfo=UTC), False),
        (datetime(1, 1, 1, tzinfo=UTC), False),
    ],
)
def test_a_time_is_true_or_none(at: datetime, is_true: bool) -> None:
    """Between the first web pages and tomorrow, with a day for clocks that are wrong."""
    assert plausible_time(at, now=NOW) == (at if is_true else None)


def test_a_place_has_a_beginning() -> None:
    """What is said to be older than its place has no time, and neither has what came without."""
    began = datetime(2005, 6, 23, tzinfo=UTC)

    assert plausible_time(began, began, NOW) == began
    assert plausible_time(began - timedelta(seconds=1), began, NOW) is None
    assert plausible_time(None, began, NOW) is None
