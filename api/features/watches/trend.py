"""How a watch has gone, week by week: its kept runs summed, and what was not heard left open.

Weeks are ISO weeks by the watch's own clock. A run belongs to the week in which the middle of its
time lies: one on Monday morning to the week before. By another question another line begins.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from itertools import groupby
from zoneinfo import ZoneInfo

from api.choices import TREND_WEEKS
from api.core.published import Published, Timestamp
from api.features.comparisons.comparison import Measure
from api.features.comparisons.product_counts import LEANS
from api.features.watches.watch import Watch, zone_of
from api.features.watches.watch_ports import KeptCounts, Watches
from api.features.watches.watch_run import RunCounts
from api.pipeline.evidence.figures import Interval, wilson

VERSION = 1
"""Of a `Trend`; raised when a field changes meaning."""
MOST_RUNS = 25_000
"""Runs that are summed, the newest: years of one an hour, two weeks of one a minute."""
_WEEK = timedelta(days=7)


class SourceWeek(Published):
    """What one source held in a week, by the runs that heard it."""

    posts: int
    """About it, and written in the time of these runs; no post is in two of them."""
    capped: bool
    """It may have held more: `posts` is a minimum."""
    days: float
    """How long the time of these runs is: more than 7 where missed runs were made up."""
    heard: int
    """How many of the week's runs heard it."""
    undated: int | None = None
    """New posts without a date, so in no week's `posts`; None where a run did not count them."""


class WeekShare(Published):
    """How many of those that count."""

    count: int
    of: int
    interval: Interval
    """In which the share of all that people write is likely to lie (Wilson, 95 %)."""


class AspectWeek(Published):
    """How many of a week's new posts speak of an aspect."""

    mentions: int
    praise: int
    complaint: int


class TrendWeek(Published):
    """One week of a line; what nobody knows is `null`, which is not 0."""

    week: str
    """`2026-W45`."""
    monday: date
    runs: int
    """With those that failed or heard nothing."""
    heard: int
    """Runs that heard any source; of 0 nothing below is known."""
    sources: Mapping[str, SourceWeek | None]
    """Every source of the line; `null`: no run of the week heard it."""
    fresh: int | None
    """Posts that were new to the watch, of every source that was heard; aspects are of these."""
    positive: WeekShare | None
    negative: WeekShare | None
    """Of the new posts that a model graded; `null` where none was."""
    aspects: Mapping[str, AspectWeek] | None
    """Every aspect of which the line's posts speak."""


class TrendLine(Published):
    """Weeks that may be compared: all by one question, about one thing, of the same sources."""

    rule: str
    """A digest of what was asked."""
    since: Timestamp
    until: Timestamp
    """Of its first and its last run."""
    sources: tuple[str, ...]
    """Those that were heard in any week."""
    weeks: tuple[TrendWeek, ...]
    """From the first to the last, without a week left out."""


class Trend(Published):
    """A watch over time."""

    version: int
    watch_id: str
    tz: str
    """By which clock a week begins."""
    lines: tuple[TrendLine, ...]
    """The oldest first; where one ends, the question was changed, and nothing is compared."""
    cut: bool
    """There are earlier runs in this time, too many to be summed."""
    sample: bool


async def read_trend(
    shelf: Watches, watch: Watch, now: datetime, weeks: int = TREND_WEEKS, most: int = MOST_RUNS
) -> Trend:
    """The trend of this week and those before it, so many in all, summed from `most` runs.

    Raises:
        UsageError: this machine does not know the watch's time zone.
        StoreUnavailable: the database cannot be used.
    """
    zone = zone_of(watch.zone)
    first = _monday_of(now, now, zone) - (weeks - 1) * _WEEK
    since = datetime.combine(first, time(), zone)
    kept = await shelf.kept_counts(watch, since, most + 1)
    newest = await shelf.watch_runs(watch.tenant, watch.id, 1)
    cut = len(kept) > most
    if cut:  # of the week in which the oldest ran, some are missing
        first = max(first, _monday_of(kept[-1].created_at, kept[-1].created_at, zone) + _WEEK)
    return Trend(
        version=VERSION,
        watch_id=watch.id,
        tz=watch.zone,
        lines=tuple(trend_lines(kept, zone, first)),
        cut=cut,
        sample=any(run.sample for run in newest),
    )


def trend_lines(runs: Sequence[KeptCounts], zone: ZoneInfo, first: date) -> Iterator[TrendLine]:
    """The lines of a watch's runs, which come the newest first, from this Monday on."""
    ordered = runs[::-1]
    placed = []
    for before, run in zip([*ordered[:1], *ordered], ordered, strict=False):
        # what failed was to hear of the time since the run before
        since, until = before.created_at, run.created_at
        if run.counts is not None:
            since, until = run.counts.since, run.counts.until
        monday = _monday_of(since, until, zone)
        if monday >= first:
            placed.append((monday, run))
    for rule, group in groupby(placed, key=lambda pair: pair[1].rule):
        line = list(group)
        counted = [run.counts for _, run in line if run.counts is not None]
        names = tuple(sorted({name for counts in counted for name in counts.sources}))
        aspects = sorted(
            {
                key.partition(":")[2]
                for counts in counted
                for source in counts.sources.values()
                for key in source.tallies
            }
            - {""}  # how posts sound is of no aspect
        )
        by_week: dict[date, list[KeptCounts]] = {}
        for monday, run in line:
            by_week.setdefault(monday, []).append(run)
        earliest = min(by_week)
        number = (max(by_week) - earliest) // _WEEK + 1
        yield TrendLine(
            rule=rule,
            since=line[0][1].created_at,
            until=line[-1][1].created_at,
            sources=names,
            weeks=tuple(
                _week(monday, by_week.get(monday, ()), names, aspects)
                for monday in (earliest + at * _WEEK for at in range(number))
            ),
        )


def _monday_of(since: datetime, until: datetime, zone: ZoneInfo) -> date:
    """The first day of the week in which the middle of a time lies, as the clock shows it.

    By the clock, not by what passes: else a run each Thursday noon would miss a week in autumn.
    """
    start, end = (moment.astimezone(zone).replace(tzinfo=None) for moment in (since, until))
    day = (start + (end - start) / 2).date()
    return day - timedelta(days=day.weekday())


def _week(
    monday: date, runs: Sequence[KeptCounts], names: Sequence[str], aspects: Sequence[str]
) -> TrendWeek:
    counted = [run.counts for run in runs if run.counts is not None]
    year, number, _ = monday.isocalendar()
    graded = sum(source.graded for counts in counted for source in counts.sources.values())
    fresh = sum(source.fresh for counts in counted for source in counts.sources.values())
    positive, negative = (
        _share(_tally(counted, f"{feeling}:"), graded)
        for feeling in ("sounds_positive", "sounds_negative")
    )
    measures: tuple[Measure, ...] = ("mentions", *LEANS)
    return TrendWeek(
        week=f"{year}-W{number:02}",
        monday=monday,
        runs=len(runs),
        heard=len(counted),
        sources={name: _source(name, counted) for name in names},
        fresh=fresh if counted else None,
        positive=positive,
        negative=negative,
        aspects={
            name: AspectWeek(
                **{measure: _tally(counted, f"{measure}:{name}") for measure in measures}
            )
            for name in aspects
        }
        if counted
        else None,
    )


def _source(name: str, counted: Sequence[RunCounts]) -> SourceWeek | None:
    heard = [counts for counts in counted if name in counts.sources]
    if not heard:
        return None
    undated = [counts.sources[name].undated for counts in heard]
    known = [count for count in undated if count is not None]
    return SourceWeek(
        posts=sum(counts.sources[name].posts for counts in heard),
        capped=any(counts.sources[name].capped for counts in heard),
        days=round(sum(counts.seconds for counts in heard) / timedelta(days=1).total_seconds(), 2),
        heard=len(heard),
        undated=sum(known) if len(known) == len(undated) else None,
    )


def _tally(counted: Sequence[RunCounts], key: str) -> int:
    return sum(
        source.tallies.get(key, 0) for counts in counted for source in counts.sources.values()
    )


def _share(count: int, n: int) -> WeekShare | None:
    interval = wilson(count, n)
    return None if interval is None else WeekShare(count=count, of=n, interval=interval)
