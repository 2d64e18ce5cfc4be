"""A watch over time: its stored runs summed by week, with unknown numbers left open.

Weeks are ISO weeks in the watch's time zone. A run belongs to the week in which the middle of its
time lies: one on Monday morning to the week before. Each change of the question begins a new line.
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

VERSION = 1  # of a `Trend`; raised when a field changes meaning
MOST_RUNS = 25_000
"""Runs that are summed, the newest: years of one every hour, two weeks of one every minute."""
_WEEK = timedelta(days=7)


class SourceWeek(Published):
    """One source in a week, over the runs in which it answered."""

    posts: int
    """Posts about the product, written in the time of these runs, which do not overlap."""
    capped: bool
    """Whether `posts` is a minimum, since a limit cut the search."""
    days: float
    """Time covered by these runs in days: above 7 when missed runs were made up."""
    heard: int
    """Runs in which it answered."""
    undated: int | None = None
    """New posts without a date, which are in no week's `posts`; None when a run did not count them."""


class WeekShare(Published):
    """A share of a week's posts."""

    count: int
    of: int
    interval: Interval
    """95 % Wilson interval of the share."""


class AspectWeek(Published):
    """New posts of a week that mention an aspect, praise it or complain of it."""

    mentions: int
    praise: int
    complaint: int


class TrendWeek(Published):
    """One week of a line; unknown numbers are `null`, not 0."""

    week: str
    """ISO week, such as `2026-W45`."""
    monday: date
    runs: int
    """Number of runs, including failed and unanswered ones."""
    heard: int
    """Runs in which any source answered; with 0 nothing below is known."""
    sources: Mapping[str, SourceWeek | None]
    """Every source of the line; `null`: it did not answer in this week."""
    fresh: int | None
    """Number of posts new to the watch; the base of `aspects`."""
    positive: WeekShare | None
    negative: WeekShare | None
    """Share of negative posts among those that a model graded; `null` when none was graded."""
    aspects: Mapping[str, AspectWeek] | None
    """Every aspect that posts of the line mention."""


class TrendLine(Published):
    """Weeks that may be compared: of one question to the same sources."""

    rule: str
    """Digest of the request; see `Watch.rule`."""
    since: Timestamp
    until: Timestamp
    """Times of its first and its last run."""
    sources: tuple[str, ...]
    """Sources that answered in any week."""
    weeks: tuple[TrendWeek, ...]
    """Weeks from first to last, without gaps."""


class Trend(Published):
    """Counts of a watch, week by week."""

    version: int
    watch_id: str
    tz: str
    """Time zone in which weeks begin."""
    lines: tuple[TrendLine, ...]
    """Lines, oldest first; a new line begins when the question is changed."""
    cut: bool
    """Earlier runs were left out, since there are too many."""
    sample: bool


async def read_trend(
    store: Watches, watch: Watch, now: datetime, weeks: int = TREND_WEEKS, most: int = MOST_RUNS
) -> Trend:
    """The trend over `weeks` weeks, this one included; `UsageError` for an unknown time zone."""
    zone = zone_of(watch.zone)
    first = _monday_of(now, now, zone) - (weeks - 1) * _WEEK
    since = datetime.combine(first, time(), zone)
    kept = await store.kept_counts(watch, since, most + 1)
    newest = await store.watch_runs(watch.tenant, watch.id, 1)
    cut = len(kept) > most
    if cut:  # runs of the oldest week are missing
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
    """The lines from this Monday on; `runs` come the newest first."""
    ordered = runs[::-1]
    dated = []
    for before, run in zip([*ordered[:1], *ordered], ordered, strict=False):
        # a run that failed was to cover the time since the run before
        since, until = before.created_at, run.created_at
        if run.counts is not None:
            since, until = run.counts.since, run.counts.until
        monday = _monday_of(since, until, zone)
        if monday >= first:
            dated.append((monday, run))
    for rule, group in groupby(dated, key=lambda pair: pair[1].rule):
        line = list(group)
        counted = [run.counts for _, run in line if run.counts is not None]
        names = tuple(sorted({name for counts in counted for name in counts.sources}))
        keys = {k for counts in counted for source in counts.sources.values() for k in source.tallies}
        aspects = sorted({key.partition(":")[2] for key in keys} - {""})  # feelings have no aspect
        by_week: dict[date, list[KeptCounts]] = {}
        for monday, run in line:
            by_week.setdefault(monday, []).append(run)
        earliest = min(by_week)
        number = (max(by_week) - earliest) // _WEEK + 1
        mondays = (earliest + index * _WEEK for index in range(number))
        yield TrendLine(
            rule=rule,
            since=line[0][1].created_at,
            until=line[-1][1].created_at,
            sources=names,
            weeks=tuple(_week(day, by_week.get(day, ()), names, aspects) for day in mondays),
        )


def _monday_of(since: datetime, until: datetime, zone: ZoneInfo) -> date:
    """Monday of the middle of a time, by the zone's clock: else weeks shift with summer time."""
    start, end = (at.astimezone(zone).replace(tzinfo=None) for at in (since, until))
    day = (start + (end - start) / 2).date()
    return day - timedelta(days=day.weekday())


def _week(monday: date, runs: Sequence[KeptCounts], names: Sequence[str], aspects: Sequence[str]) -> TrendWeek:
    counted = [run.counts for run in runs if run.counts is not None]
    every = [source for counts in counted for source in counts.sources.values()]
    year, number, _ = monday.isocalendar()
    graded = sum(source.graded for source in every)

    def tally(key: str) -> int:
        return sum(source.tallies.get(key, 0) for source in every)

    shares = {}
    for measure in ("sounds_positive", "sounds_negative"):
        count = tally(f"{measure}:")
        interval = wilson(count, graded)
        share = None if interval is None else WeekShare(count=count, of=graded, interval=interval)
        shares[measure] = share
    measures: tuple[Measure, ...] = ("mentions", *LEANS)
    by_aspect = {name: AspectWeek(**{measure: tally(f"{measure}:{name}") for measure in measures}) for name in aspects}
    return TrendWeek(
        week=f"{year}-W{number:02}",
        monday=monday,
        runs=len(runs),
        heard=len(counted),
        sources={name: _source(name, counted) for name in names},
        fresh=sum(source.fresh for source in every) if counted else None,
        positive=shares["sounds_positive"],
        negative=shares["sounds_negative"],
        aspects=by_aspect if counted else None,
    )


def _source(name: str, counted: Sequence[RunCounts]) -> SourceWeek | None:
    answered = [counts for counts in counted if name in counts.sources]
    if not answered:
        return None
    undated = [counts.sources[name].undated for counts in answered]
    known = [count for count in undated if count is not None]
    seconds = sum(counts.seconds for counts in answered)
    return SourceWeek(
        posts=sum(counts.sources[name].posts for counts in answered),
        capped=any(counts.sources[name].capped for counts in answered),
        days=round(seconds / timedelta(days=1).total_seconds(), 2),
        heard=len(answered),
        undated=sum(known) if len(known) == len(undated) else None,
    )
