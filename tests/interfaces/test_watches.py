"""A watch in words that a person reads."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from api.core.domain import Outcome
from api.features.watches.watch_run import Gap
from api.interfaces.shared.watch_view import clock_words, gap_words, schedule_words, target_words

MOMENT = datetime(2026, 11, 30, 7, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("every", "words"),
    [
        ("mon 8:00", "every Monday at 08:00"),
        ("sat,mon 17:30", "every Monday and Saturday at 17:30"),
        ("daily 08:00", "every day at 08:00"),
        ("hourly", "every hour"),
        ("every 15 min", "every 15 minutes"),
        ("every 90 min", "every 90 minutes"),
        ("every 36 h", "every 36 hours"),
        ("every 24 h", "every day"),
        ("every 10 days", "every 10 days"),
    ],
)
def test_schedule(every: str, words: str) -> None:
    """Days in the order of the week, an interval in its largest whole unit."""
    assert schedule_words(every) == words


def test_time_by_its_own_clock() -> None:
    """A zone that this machine does not know leaves UTC, which is said."""
    assert clock_words(MOMENT, "Asia/Tokyo") == "Monday 30 November 2026, 16:05"
    assert clock_words(MOMENT, "Mars/Olympus") == "Monday 30 November 2026, 07:05 UTC"


@pytest.mark.parametrize(
    ("shown", "words"),
    [
        ("mail:ann@example.org", "e-mail to ann@example.org"),
        ("webhook:hooks.example", "a program (webhook) at hooks.example"),
        ("slack:hooks.example", "Slack at hooks.example"),
        ("file:heard", "the file heard"),
        ("pigeon:loft", "pigeon:loft"),
    ],
)
def test_receiver(shown: str, words: str) -> None:
    """What it is before where it is; a kind of tomorrow stands as it is."""
    assert target_words(shown) == words


@pytest.mark.parametrize(
    ("outcome", "reason", "words"),
    [
        (Outcome.TIMED_OUT, None, "no answer in time"),
        (Outcome.REFUSED, "key revoked", "access refused: key revoked"),
        (Outcome.OK, "model: no_key", "model: no_key"),
        (Outcome.OK, None, "could not be judged"),
    ],
)
def test_place_that_was_not_heard(outcome: Outcome, reason: str | None, words: str) -> None:
    """Why, and never a code alone."""
    assert gap_words(Gap(source="lemmy", outcome=outcome, reason=reason)) == words
