"""Every number in a report, counted from items, with 95 % intervals; the model never counts.

Intervals of shares, of differences of shares and of ratios of counts: pure arithmetic after Wilson (1927) and Newcombe
(1998, method 10), Fisher's exact test, the conditional test of two Poisson counts, and Holm (1979) for many looks at
once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from math import comb, exp, inf, lgamma, log, sqrt
from statistics import median
from typing import Annotated, Literal

from pydantic import Field, WithJsonSchema
from pydantic.json_schema import SkipJsonSchema

from api.core.domain import BEFORE_JUDGING, DAYS_BY_DAY
from api.core.items import Assessed, Gathered, person_of
from api.core.published import IF_SET, WHERE_THERE, Published
from api.core.text import one_line

Z95 = 1.959963984540054
"""Normal quantile of a two-sided 95 % interval."""
LEVEL = 0.95
"""Confidence level of every interval in this file."""
Interval = Annotated[
    tuple[float, float],
    WithJsonSchema({"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}),
]
"""Lower and upper end; not `prefixItems`, which generators of clients read differently."""


def wilson(count: int, n: int) -> Interval | None:
    """The interval of the share `count / n`; None where `n` is 0."""
    if not n:
        return None
    share = count / n
    middle = share + Z95**2 / (2 * n)
    spread = Z95 * sqrt(share * (1 - share) / n + Z95**2 / (4 * n * n))
    scale = 1 + Z95**2 / n
    return max(0.0, (middle - spread) / scale), min(1.0, (middle + spread) / scale)


def share_difference(count: int, n: int, other: int, m: int) -> Interval | None:
    """The interval of `count / n - other / m`, from both Wilson intervals; None where `n` or `m` is 0."""
    first, second = wilson(count, n), wilson(other, m)
    if first is None or second is None:
        return None
    share, rest = count / n, other / m
    down = sqrt((share - first[0]) ** 2 + (second[1] - rest) ** 2)
    up = sqrt((first[1] - share) ** 2 + (rest - second[0]) ** 2)
    return share - rest - down, share - rest + up


def fisher(count: int, n: int, other: int, m: int) -> float:
    """How often chance alone makes two shares of one whole differ as much: two-sided, exact."""
    total = count + other
    fewest, most = max(0, total - m), min(n, total)
    ways = [comb(n, some) * comb(m, total - some) for some in range(fewest, most + 1)]
    seen = ways[count - fewest]
    return sum(way for way in ways if way <= seen) / sum(ways)


def count_ratio(count: int, other: int) -> Interval | None:
    """The interval of `count / other`, two Poisson counts of equal exposure; None where both are 0.

    It is the Wilson interval of the first's share of both, as odds; the upper end may be infinite.
    """
    share = wilson(count, count + other)
    if share is None:
        return None
    low, high = share
    return low / (1 - low), high / (1 - high) if other else inf


def split(count: int, other: int, share: float = 0.5) -> float:
    """Probability that two Poisson counts of one rate differ at least as much as these: exact.

    `share` is the first's part of both times together, between 0 and 1. Two-sided: twice the smaller tail.
    """
    total = count + other
    ways = [
        exp(
            lgamma(total + 1) - lgamma(some + 1) - lgamma(total - some + 1)
            + some * log(share) + (total - some) * log(1 - share)
        )
        for some in range(total + 1)
    ]  # fmt: skip
    return min(1.0, 2 * min(sum(ways[: count + 1]), sum(ways[count:])))


def usual_counts(other: int, share: float) -> tuple[int, int]:
    """Fewest and most of a Poisson count that do not differ from `other` by `split` at 95 %; `share` as there."""
    few = middle = round(other * share / (1 - share))
    most = middle
    while few and split(few - 1, other, share) >= 1 - LEVEL:
        few -= 1
    while split(most + 1, other, share) >= 1 - LEVEL:
        most += 1
    return few, most


def holm(chances: Sequence[float]) -> list[float]:
    """The same chances in the same order, corrected for how many there are."""
    corrected, least = [0.0] * len(chances), 0.0
    for rank, place in enumerate(sorted(range(len(chances)), key=chances.__getitem__)):
        least = max(least, min(1.0, (len(chances) - rank) * chances[place]))
        corrected[place] = least
    return corrected


_MIDDLE = 3  # stars of a review that is neither good nor bad
WEEKS, MONTHS = 60, 60
"""Longest timeline that is counted by week, in weeks, and by month, in months; see `DAYS_BY_DAY` for days."""
Unit = Literal["day", "week", "month", "year"]


class SourceFigures(Published):
    """One source over all its queries; `fetched`, `kept` and `yield_ratio` are those of its answer."""

    fetched: int
    relevant: int
    """A judge said yes to them."""
    kept: int
    """The gate let them through."""
    in_report: Annotated[int | SkipJsonSchema[None], WHERE_THERE] = None
    """Left after grading, ranking and merging copies: those of the report's items. Older reports call it `kept`."""
    yield_ratio: Annotated[float, Field(ge=0, le=1)] | None
    """None when items went unjudged."""
    refetched: bool


class Authors(Published):
    """Who wrote the kept items, as far as their authors are known."""

    people: int
    """Number of known authors."""
    most: int
    """Items of the author who wrote the most of them."""
    unnamed: Annotated[int | SkipJsonSchema[None], WHERE_THERE] = None
    """Items without a known author; older reports have no number, and count each of these items in `people`."""


class Voices(Published):
    """People who wrote the kept items of one source: whoever wrote several is one."""

    people: int
    """Number of known authors."""
    weeks: Mapping[str, int]
    """Monday of a week (ISO date, UTC) -> people who wrote in it, in order; one of two weeks counts in each."""
    undated: int
    """Items without a date, which no week counts."""


class Shares(Published):
    """Shares of the graded items, each from 0 to 1; None where no item was graded."""

    positive: float | None
    neutral: float | None
    negative: float | None


class Intervals(Published):
    """95 % Wilson intervals of the shares; None where no item was graded."""

    positive: Interval | None
    neutral: Interval | None
    negative: Interval | None


@dataclass(frozen=True, slots=True)
class Feeling:
    """One kind of sentiment: how many of the graded items, and the interval of their share."""

    name: str
    count: int
    interval: Interval | None


class Sentiment(Published):
    """How the kept items sound: by their grades, or by the stars that their authors gave."""

    n: int
    """How many items have a tone, one of each person."""
    positive: int
    neutral: int
    negative: int
    shares: Shares
    wilson95: Intervals
    ungraded: int
    repeated: Annotated[int, IF_SET] = 0
    """Items with a tone of people who are counted already."""

    @property
    def feelings(self) -> tuple[Feeling, ...]:
        """The three kinds, the best first."""
        return (
            Feeling("positive", self.positive, self.wilson95.positive),
            Feeling("neutral", self.neutral, self.wilson95.neutral),
            Feeling("negative", self.negative, self.wilson95.negative),
        )


class Period(Published):
    """A day, week, month or year, and how many items are of it."""

    start: date
    count: int


class Timeline(Published):
    """Counts of dated items by day, week or month, in UTC."""

    unit: Unit
    """By the oldest item: `day` up to 31 days back, `week` (from Monday) up to 60 weeks, `month` up
    to 60 months, `year` beyond."""
    points: tuple[Period, ...]
    """Every period from the first item's to the last one's, in order, also those without any."""
    undated: int

    @property
    def dated(self) -> int:
        """Number of items that have a date."""
        return sum(period.count for period in self.points)


class AspectCount(Published):
    """What items talk about, how often, and in what tone; each number counts people."""

    aspect: str
    count: int
    positive: int
    negative: int
    cites: tuple[str, ...]
    """Keys of the items, best ranked first."""


class PlaceCount(Published):
    """Where items stood; a merged copy counts once, in its main place."""

    place: str
    source: str
    count: int


class Spread(Published):
    """One measure of one source's items: how many have it, the median and the largest value."""

    n: int
    median: float | int
    max: float | int


class Figures(Published):
    """All figures of a report; a part is None, and not in the JSON, where nothing was counted."""

    sources: Annotated[Mapping[str, SourceFigures] | SkipJsonSchema[None], WHERE_THERE] = None
    authors: Annotated[Authors | SkipJsonSchema[None], WHERE_THERE] = None
    """Counted while authors are known; not in older reports."""
    voices: Annotated[Mapping[str, Voices] | SkipJsonSchema[None], WHERE_THERE] = None
    """By source that was asked, but one whose posts name no author; counted while authors are known, not in older
    reports."""
    sentiment: Annotated[Sentiment | SkipJsonSchema[None], WHERE_THERE] = None
    timeline: Annotated[Timeline | SkipJsonSchema[None], WHERE_THERE] = None
    aspects: Annotated[tuple[AspectCount, ...] | SkipJsonSchema[None], WHERE_THERE] = None
    """Aspects with their counts, the most often named first."""
    places: Annotated[tuple[PlaceCount, ...] | SkipJsonSchema[None], WHERE_THERE] = None
    """The place with most items first."""
    engagement: Annotated[Mapping[str, Mapping[str, Spread]] | SkipJsonSchema[None], WHERE_THERE] = None
    """By source and measure, never summed."""


def figures(sources: Sequence[Gathered], kept: Sequence[Assessed], *, now: datetime) -> Figures:
    """All figures of a report; the order of the input does not matter."""
    places = Counter((entry.item.source, entry.item.place) for entry in kept if entry.item.place)
    values: dict[str, dict[str, list[float]]] = {}
    for entry in kept:
        for name, value in entry.item.engagement.items():
            if value is not None:
                values.setdefault(entry.item.source, {}).setdefault(name, []).append(value)
    authors = Counter(person_of(entry.item) for entry in kept if entry.item.author)
    by_known = authors.total()
    return Figures(
        sources=_sources(sources, kept),
        authors=Authors(people=len(authors), most=max(authors.values(), default=0), unnamed=len(kept) - by_known)
        if kept
        else None,
        voices=_voices(sources, kept),
        sentiment=sentiment_of(kept),
        timeline=_timeline(kept, now),
        aspects=_aspects(kept),
        places=tuple(
            PlaceCount(place=place, source=source, count=count)
            for (source, place), count in sorted(places.items(), key=lambda counted: (-counted[1], counted[0]))
        ),
        engagement={
            source: {
                name: Spread(n=len(many), median=median(many), max=max(many)) for name, many in sorted(measures.items())
            }
            for source, measures in sorted(values.items())
        },
    )


def _sources(sources: Sequence[Gathered], kept: Sequence[Assessed]) -> dict[str, SourceFigures]:
    counted: dict[str, SourceFigures] = {}
    for name in sorted({gathered.source for gathered in sources}):
        mine = [gathered for gathered in sources if gathered.source == name]
        passed = {entry.item.key for gathered in mine for entry in gathered.kept}
        seen = passed | {entry.item.key for gathered in mine for entry in gathered.dropped}
        unfit = {entry.item.key for each in mine for entry in each.dropped if entry.dropped_by in BEFORE_JUDGING}
        fit = len(seen - unfit)
        unknown = any(each.unjudged for each in mine) or not any(each.outcome.answered for each in mine)
        counted[name] = SourceFigures(
            fetched=len(seen),
            relevant=len({entry.item.key for gathered in mine for entry in gathered.relevant}),
            kept=len(passed),
            in_report=sum(entry.item.key in seen for entry in kept),
            yield_ratio=None if unknown else len(passed) / fit if fit else 1.0,
            refetched=any(gathered.refetched for gathered in mine),
        )
    return counted


def _voices(sources: Sequence[Gathered], kept: Sequence[Assessed]) -> dict[str, Voices]:
    counted: dict[str, Voices] = {}
    for name in sorted({gathered.source for gathered in sources}):
        keys = {entry.item.key for gathered in sources if gathered.source == name for entry in gathered.kept}
        items = [entry.item for entry in kept if entry.item.key in keys]
        if items and not any(item.author for item in items):  # listings of a shop, for example
            continue
        days = [item.created_at.astimezone(UTC).date() for item in items if item.created_at is not None]
        weeks = Counter(
            monday
            for monday, _ in sorted(
                {
                    (_start(item.created_at.astimezone(UTC).date(), "week").isoformat(), person_of(item))
                    for item in items
                    if item.created_at is not None and item.author
                }
            )
        )
        people = len({person_of(item) for item in items if item.author})
        counted[name] = Voices(people=people, weeks=dict(weeks), undated=len(items) - len(days))
    return counted


def _tone(entry: Assessed) -> int | None:
    """-1, 0 or 1: by the grade, else by the stars or thumb of a review's author; None where nothing is known."""
    if entry.grade is not None and entry.grade.sentiment is not None:
        return entry.grade.sentiment
    if (recommended := entry.item.engagement.get("recommended")) is not None:
        return 1 if recommended else -1
    stars = None if "ratings" in entry.item.engagement else entry.item.engagement.get("stars")
    return None if stars is None else (stars > _MIDDLE) - (stars < _MIDDLE)


def sentiment_of(kept: Sequence[Assessed]) -> Sentiment:
    """How these items sound, each person once: as most of the person's items do, else as the best ranked."""
    tones: dict[str, Counter[int]] = {}
    for entry in sorted(kept, key=lambda entry: (entry.rank or len(kept) + 1, entry.item.key)):
        if (tone := _tone(entry)) is not None:
            tones.setdefault(person_of(entry.item), Counter())[tone] += 1
    felt = Counter(own.most_common(1)[0][0] for own in tones.values())
    positive, neutral, negative = felt[1], felt[0], felt[-1]
    n, toned = felt.total(), sum(own.total() for own in tones.values())
    return Sentiment(
        n=n,
        positive=positive,
        neutral=neutral,
        negative=negative,
        shares=Shares(
            positive=positive / n if n else None,
            neutral=neutral / n if n else None,
            negative=negative / n if n else None,
        ),
        wilson95=Intervals(positive=wilson(positive, n), neutral=wilson(neutral, n), negative=wilson(negative, n)),
        ungraded=len(kept) - toned,
        repeated=toned - n,
    )


def _timeline(kept: Sequence[Assessed], now: datetime) -> Timeline:
    days = [entry.item.created_at.astimezone(UTC).date() for entry in kept if entry.item.created_at is not None]
    unit = _unit(min(days), max(*days, now.astimezone(UTC).date())) if days else "day"
    return Timeline(unit=unit, points=by_period(unit, Counter(days)), undated=len(kept) - len(days))


def _unit(first: date, last: date) -> Unit:
    span = (last - first).days
    if span <= DAYS_BY_DAY:
        return "day"
    if span <= WEEKS * 7:
        return "week"
    months = (last.year - first.year) * 12 + last.month - first.month
    return "month" if months <= MONTHS else "year"


def _start(day: date, unit: Unit) -> date:
    """The first day of the period that a day is in."""
    match unit:
        case "week":
            return day - timedelta(days=day.weekday())
        case "month":
            return day.replace(day=1)
        case "year":
            return day.replace(month=1, day=1)
        case _:
            return day


def periods(unit: Unit, counts: Mapping[date, int]) -> tuple[Period, ...]:
    """The counted periods in order, by their first days, and the empty ones between them."""
    steps = {"day": 1, "week": 7, "month": 31, "year": 366}
    points: list[Period] = []
    for start in sorted(counts):
        while points and (then := _start(points[-1].start + timedelta(steps[unit]), unit)) < start:
            points.append(Period(start=then, count=0))
        points.append(Period(start=start, count=counts[start]))
    return tuple(points)


def by_period(unit: Unit, days: Mapping[date, int]) -> tuple[Period, ...]:
    """The counts of days by a unit, with the empty periods between them."""
    counts = Counter[date]()
    for day, count in days.items():
        counts[_start(day, unit)] += count
    return periods(unit, counts)


def _aspects(kept: Sequence[Assessed]) -> tuple[AspectCount, ...]:
    """By aspect, most often named first: the items that name it, each once, best ranked first."""
    named: dict[str, dict[str, Assessed]] = {}
    for entry in kept:
        for aspect in entry.grade.aspects if entry.grade is not None else ():
            if label := one_line(aspect).casefold():
                named.setdefault(label, {})[entry.item.key] = entry
    counted = (
        AspectCount(
            aspect=label,
            count=len({person_of(entry.item) for entry in items.values()}),
            positive=_feeling(items.values(), 1),
            negative=_feeling(items.values(), -1),
            cites=tuple(sorted(items, key=lambda key: (items[key].rank or len(kept) + 1, key))),
        )
        for label, items in named.items()
    )
    return tuple(sorted(counted, key=lambda row: (-row.count, row.aspect)))


def _feeling(items: Iterable[Assessed], tone: int) -> int:
    return len({person_of(entry.item) for entry in items if _tone(entry) == tone})
