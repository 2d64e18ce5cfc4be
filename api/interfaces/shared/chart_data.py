"""What every rendering says about a report's figures: of how many, which are drawn, in which order.

Each function gives a caption and rows: no rows where there is too little to draw, which the
caption then says, and no caption where nothing was counted. Captions are ours; names in rows are
strangers'. Also what every picture of a watch over time shows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date
from math import ceil

from api.core.text import quantity
from api.features.watches.trend import SourceWeek, TrendLine
from api.interfaces.shared import presentation
from api.interfaces.shared.presentation import source_title
from api.pipeline.evidence.figures import Feeling, Period, Timeline, Unit, by_period
from api.reports.report import Finding, Report, SourceReport

FEW_TONED, FEW_DATED = 20, 10
"""Items below which shares, and a timeline, would say more than is known: 95 % intervals of 20 span 40 points."""
MOST_UNSURE = 0.25
"""Share of kept posts of which the judge was hardly sure, above which no shares are drawn."""
MOST_MONTHS = 24
"""Months of a claim's line at most, the latest: a sum over a year would count who wrote in two months twice."""
_HEIGHTS = "▁▂▃▄▅▆▇█"
FULL_PERIOD = 3
"""Items that a period of a timeline holds on average, at least."""
_FEWEST_PERIODS = 3
# From the finest.
_UNITS: tuple[Unit, ...] = ("day", "week", "month", "year")
_WEEK = "week (from Monday, UTC)"
TONED = "posts whose tone can be told"
"""Base of the shares of tone, and of the intervals around them."""
FETCHED, ABOUT_IT, IN_REPORT, CITED = "found", "about it", "in report", "cited"
"""Steps of a post, named alike in every interface; a post in the report is also called kept."""
Share = tuple[int, int] | None
"""Number of relevant items, and of fetched ones; None when not all were judged."""


@dataclass(frozen=True, slots=True)
class FunnelRow:
    """How many items of one source reached each step."""

    name: str
    counts: tuple[int, int | None, int, int]
    """Each at most the one before: found, judged to be about it, left in the report, cited.

    The second is None where items went unjudged.
    """


@dataclass(frozen=True, slots=True)
class PassRow:
    """What one source brought at first, and when it was asked again."""

    name: str
    first: Share
    again: Share


def sentiment(report: Report) -> tuple[str, tuple[Feeling, ...]]:
    """How the kept posts sound, the best first.

    A sentence alone where shares would say more than is known: few posts have a tone, most have none, or the judge
    was hardly sure of many that they are about the question.
    """
    felt = report.figures.sentiment
    if felt is None or not felt.n:
        return "", ()
    toned = felt.n + felt.repeated
    kept, unsure = toned + felt.ungraded, len(presentation.hardly_sure(report))
    once = ", each person once" if felt.repeated else ""
    if felt.n >= FEW_TONED and 2 * toned >= kept and unsure <= MOST_UNSURE * kept:
        return f"How {toned} of {_posts(kept, 'kept')} sound{once}", felt.feelings
    counts = ", ".join(f"{feeling.count} {feeling.name}" for feeling in felt.feelings if feeling.count)
    caption = f"The tone of {toned} of {_posts(kept, 'kept')} can be told{once}: {counts}"
    if felt.n >= FEW_TONED and 2 * toned >= kept:
        caption += f"; {quantity(unsure, 'post was', 'posts were')} judged with low confidence, so no shares are drawn"
    return caption, ()


def timeline(report: Report, most: int) -> tuple[str, tuple[Period, ...]]:
    """Items over time by the finest unit of which a period holds `FULL_PERIOD` on average.

    The latest `most` periods, those without any item among them; a sentence where items are few.
    """
    dates = report.figures.timeline
    if dates is None or not dates.dated:
        return ("None of the kept posts has a date" if dates and dates.undated else ""), ()
    days = _days(report, dates)
    share = f"{dates.dated} of {dates.dated + dates.undated} kept posts have a date"
    finest = _UNITS.index(dates.unit)
    for unit in _UNITS[finest:] if dates.dated >= FEW_DATED else ():
        points = by_period(unit, days)
        if len(points) >= _FEWEST_PERIODS and dates.dated >= FULL_PERIOD * len(points):
            named = _WEEK if unit == "week" else f"{unit} (UTC)"
            caption = f"Posts per {named}; {share}"
            if len(points) > most:
                caption += f"; the latest {most} of {len(points)} {unit}s"
            return caption, points[-most:]
    return f"{share}, {_between(days)}", ()


def claim_line(finding: Finding) -> tuple[str, tuple[Period, ...]]:
    """How many people hold a claim by month, the latest `MOST_MONTHS`: `by month`, and the counts.

    Nothing where few of them have a date, or all are of one month.
    """
    counts = Counter({date.fromisoformat(f"{month}-01"): count for month, count in finding.months.items()})
    latest = {month: count for month, count in counts.items() if _months(month) > _months(max(counts)) - MOST_MONTHS}
    if len(latest) < 2:
        return "", ()
    return f"by month{f', the latest {MOST_MONTHS}' * (len(latest) < len(counts))}", by_period("month", latest)


def _months(day: date) -> int:
    """The number of a day's month, counted on over years."""
    return 12 * day.year + day.month


def sparkline(periods: Sequence[Period]) -> str:
    """Counts as signs of eight heights, the lowest for none: `▂▁▅█`."""
    most = max((period.count for period in periods), default=0)
    return "".join(_HEIGHTS[ceil((len(_HEIGHTS) - 1) * period.count / most)] for period in periods)


def _days(report: Report, dates: Timeline) -> Counter[date]:
    """Dated items by day; of a timeline that knows more than the items, by its periods' first."""
    written = (item.created_at for item in report.items)
    days = Counter(moment.astimezone(UTC).date() for moment in written if moment)
    if days.total() != dates.dated:
        days = Counter({period.start: period.count for period in dates.points if period.count})
    return days


def _between(days: Counter[date]) -> str:
    """`between 2 March and 14 June 2026, most in May (9)`."""
    first, last = min(days), max(days)
    if first == last:
        return f"on {_day(last)}"
    opening = f"{first.day} {first:%B}" if first.year == last.year else _day(first)
    words = f"between {opening} and {_day(last)}"
    months = Counter[tuple[int, int]]()
    for day, count in days.items():
        months[day.year, day.month] += count
    (month, count), *others = months.most_common(2)
    if others and count > max(1, others[0][1]):
        named = date(*month, 1)
        year = "" if first.year == last.year else f" {named.year}"
        words += f", most in {named:%B}{year} ({count})"
    return words


def _day(day: date) -> str:
    return f"{day.day} {day:%B} {day.year}"


def funnel(report: Report) -> tuple[str, list[FunnelRow]]:
    """Counts from what each source found to what the findings cite."""
    counted = report.figures.sources or {}
    cites = {key for finding in report.findings for key in finding.cites}
    cites |= {quote.key for quote in report.quotes}
    sources = [item.source for item in report.items if item.key in cites]
    rows = [
        FunnelRow(
            source_title(name),
            (
                figure.fetched,
                figure.relevant if figure.yield_ratio is not None else None,
                figure.kept if figure.in_report is None else figure.in_report,
                # a person's own items may name any source, but are the only ones then
                len(sources) if len(counted) == 1 else sources.count(name),
            ),
        )
        for name, figure in counted.items()
        if figure.fetched
    ]
    total = sum(row.counts[0] for row in rows)
    return (f"From found to cited: what became of {_posts(total, 'found')}" if rows else ""), rows


def passes(report: Report) -> tuple[str, list[PassRow]]:
    """What was about the question of the first search and of the second; only where there was one.

    Each post counts once, whichever queries found it, so that both together are the source's
    figures. Nothing, where an older program did not count so for one of the sources.
    """
    rows = []
    for name in report.figures.sources or {}:
        source = report.sources.get(name)
        if source is None or not source.refetched:
            continue
        shares = _passes(source)
        if shares is None:
            return "", []
        rows.append(PassRow(source_title(name), *shares))
    words = "1 place was" if len(rows) == 1 else f"{len(rows)} places were"
    return (f"{words} asked a second time: how much was about it" if rows else ""), rows


def _passes(source: SourceReport) -> tuple[Share, Share] | None:
    """What the first searches brought, and only the wider ones; None where nobody counted it.

    A wider one is wider than the first, whichever query it is of.
    """
    narrow = min((attempt.limit for attempt in source.attempts), default=0)
    first = [attempt for attempt in source.attempts if attempt.limit == narrow]
    again = [attempt for attempt in source.attempts if attempt.limit > narrow]
    if (counted := source.first) is not None:
        shares = (
            (counted.kept, counted.fetched),
            (source.kept - counted.kept, source.fetched - counted.fetched),
        )
    elif len(first) == len(again) == 1:
        # of a single query the attempts themselves count each post once
        shares = (first[0].relevant, first[0].new), (again[0].relevant, again[0].new)
    else:
        return None
    unjudged = [any(each.status == "degraded" for each in part) for part in (first, again)]
    return None if unjudged[0] else shares[0], None if unjudged[1] else shares[1]


def _posts(count: int, which: str) -> str:
    return f"{count} {which} post{'' if count == 1 else 's'}"


ASPECTS = 4
"""Most aspects in one picture."""
UNHEARD = "no answer"


def weekly(source: SourceWeek | None) -> float | None:
    """Posts in a week: of a longer time that was made up at once its share, of nothing None."""
    return None if source is None else source.posts * 7 / max(source.days, 7.0)


def leading(line: TrendLine) -> list[str]:
    """Aspects of a line, those that most posts mention first."""
    counts: dict[str, int] = {}
    for week in line.weeks:
        for name, aspect in (week.aspects or {}).items():
            counts[name] = counts.get(name, 0) + aspect.mentions
    return sorted(counts, key=lambda name: (-counts[name], name))


def undated_of(line: TrendLine, source: str) -> int:
    """Number of a source's posts without a date, which are in no week; weeks of earlier versions count as 0."""
    weeks = (week.sources[source] for week in line.weeks)
    return sum(week.undated or 0 for week in weeks if week is not None)


def undated_posts(line: TrendLine) -> str:
    """`3 posts without a date are in no week (Amazon 3).`; empty without any."""
    counts = {source: undated_of(line, source) for source in line.sources}
    total = sum(counts.values())
    verb = "is" if total == 1 else "are"
    posts = f"{quantity(total, 'post')} without a date {verb} in no week"
    return f"{posts}{_by_place(counts)}." if total else ""


def first_week(line: TrendLine) -> str:
    """What a line of one week holds: of one point nothing can be drawn."""
    (week,) = line.weeks
    known = {name: source for name, source in week.sources.items() if source is not None}
    total = sum(source.posts for source in known.values())
    least = "at least " if any(source.capped for source in known.values()) else ""
    counts = {name: source.posts for name, source in known.items()}
    monday = f"{week.monday.day} {week.monday:%B %Y}"
    posts = f"{least}{quantity(total, 'post')}{_by_place(counts)}"
    return f"One week so far, from {monday}: {posts}. {undated_posts(line)}".rstrip()


def _by_place(counts: Mapping[str, int]) -> str:
    """` (Lemmy 3, Reddit 1)`: those that have any."""
    named = ", ".join(f"{source_title(name)} {count}" for name, count in counts.items() if count)
    return f" ({named})" if named else ""
