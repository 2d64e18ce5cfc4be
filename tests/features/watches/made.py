"""A watch on a mug, and what its runs may have found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from api.features.watches.new_posts import CountedRun, NewPosts, counted, sifted
from api.features.watches.watch import Watch
from api.features.watches.watch_run import RunCounts, SourceCount
from api.reports.report import Report
from api.services.product import Ask
from tests.features.comparisons.made import about, posts

MONDAY = datetime(2026, 11, 2, 8, tzinfo=UTC)
WEEK = timedelta(days=7)
WATCH = Watch(
    id="w1", tenant="local", name="Ember", query="Ember", every="mon 08:00", secret="secret",
    created_at=MONDAY, due_at=MONDAY,
)  # fmt: skip
BEGUN = replace(WATCH, began_at=MONDAY)


def heard(*texts: str, days: float = 1, place: str = "reddit", **more: Any) -> list[dict[str, Any]]:
    """A post for each text, written so many days after that Monday."""
    fields = {"created_at": (MONDAY + timedelta(days=days)).isoformat()} | more
    return [post | fields for post in posts("Ember", *texts, place=place)]


def sift(report: Report, watch: Watch = BEGUN, *earlier: NewPosts) -> NewPosts:
    """What is new after these."""
    return sifted(report, watch, [known for one in earlier for known in one.learnt], 92)


def count(report: Report, watch: Watch = BEGUN) -> CountedRun:
    """Of the first week."""
    return counted(report, Ask(watch.query), sift(report, watch), MONDAY, MONDAY + WEEK)


def week(number: int, **sources: SourceCount) -> RunCounts:
    """Of one week."""
    since = MONDAY + number * WEEK
    return RunCounts(since=since, until=since + WEEK, sources=sources)


def of(volume: int, tallies: Mapping[str, int] | None = None, *, graded: int = 0, capped: bool = False) -> SourceCount:
    """What a source held in a week: all of it new."""
    return SourceCount(posts=volume, capped=capped, fresh=volume, graded=graded, tallies=tallies or {})


__all__ = ["BEGUN", "MONDAY", "WATCH", "WEEK", "about", "count", "heard", "of", "sift", "week"]
