"""Every number in a report, counted from items; the model never counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from statistics import median
from typing import Annotated, Any, Literal

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from api.services.evidence.intervals import Interval, wilson
from api.services.schemas import Assessed, Gathered, Published
from api.services.text import one_line

DAYS_BY_DAY, WEEKS, MONTHS = 31, 60, 60
"""How far back a timeline is counted by day, by week and by month; further, by year."""
Unit = Literal["day", "week", "month", "year"]


def _undefaulted(schema: dict[str, Any]) -> None:
    del schema["default"]


WHERE_THERE = Field(exclude_if=lambda value: value is None, json_schema_extra=_undefaulted)
"""Of a `Published` field: where it is None its key is left out."""
IF_SET = Field(exclude_if=lambda value: not value, json_schema_extra=_undefaulted)
"""Likewise, where it is empty."""


class SourceFigures(Published):
    """One source over all its queries: distinct items seen, past the gate, and kept in the end."""

    fetched: int
    relevant: int
    """A judge said yes to them."""
    kept: int
    yield_ratio: Annotated[float, Field(ge=0, le=1)] | None
    """None when items went unjudged."""
    refetched: bool


class Shares(Published):
    """Of the graded items, each from 0 to 1; None of nothing."""

    positive: float | None
    neutral: float | None
    negative: float | None


class Intervals(Published):
    """95 % Wilson intervals of the shares; None of nothing."""

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
    """How the graded items sound."""

    n: int
    """Graded items."""
    positive: int
    neutral: int
    negative: int
    shares: Shares
    wilson95: Intervals
    ungraded: int

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
    """Items over time; UTC."""

    unit: Unit
    """By the oldest item: `day` up to 31 days back, `week` (from Monday) up to 60 weeks, `month` up
    to 60 months, `year` beyond."""
    points: tuple[Period, ...]
    """Every period from the first item's to the last one's, in order, also those without any."""
    undated: int

    @property
    def dated(self) -> int:
        """Items that have a date."""
        return sum(period.count for period in self.points)


class AspectCount(Published):
    """What items talk about, how often, and in what tone."""

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
    """One measure of one source."""

    n: int
    median: float | int
    max: float | int


class Figures(Published):
    """All figures of a report; a part is None, and not in the JSON, where nothing was counted."""

    sources: Annotated[Mapping[str, SourceFigures] | SkipJsonSchema[None], WHERE_THERE] = None
    sentiment: Annotated[Sentiment | SkipJsonSchema[None], WHERE_THERE] = None
    timeline: Annotated[Timeline | SkipJsonSchema[None], WHERE_THERE] = None
    aspects: Annotated[tuple[AspectCount, ...] | SkipJsonSchema[None], WHERE_THERE] = None
    """Most often named first."""
    places: Annotated[tuple[PlaceCount, ...] | SkipJsonSchema[None], WHERE_THERE] = None
    """Most items first."""
    engagement: Annotated[
        Mapping[str, Mapping[str, Spread]] | SkipJsonSchema[None], WHERE_THERE
    ] = None
    """By source and measure, never summed."""


def figures(sources: Sequence[Gathered], kept: Sequence[Assessed], *, now: datetime) -> Figures:
    """All figures of a report; the order of the input does not matter."""
    places = Counter((entry.item.source, entry.item.place) for entry in kept if entry.item.place)
    values: dict[str, dict[str, list[float]]] = {}
    for entry in kept:
        for name, value in entry.item.engagement.items():
            if value is not None:
                values.setdefault(entry.item.source, {}).setdefault(name, []).append(value)
    return Figures(
        sources=_sources(sources, kept),
        sentiment=sentiment_of(kept),
        timeline=_timeline(kept, now),
        aspects=_aspects(kept),
        places=tuple(
            PlaceCount(place=place, source=source, count=count)
            for (source, place), count in sorted(
                places.items(), key=lambda counted: (-counted[1], counted[0])
            )
        ),
        engagement={
            source: {
                name: Spread(n=len(many), median=median(many), max=max(many))
                for name, many in sorted(measures.items())
            }
            for source, measures in sorted(values.items())
        },
    )


def _sources(sources: Sequence[Gathered], kept: Sequence[Assessed]) -> dict[str, SourceFigures]:
    counted: dict[str, SourceFigures] = {}
    for name in sorted({gathered.source for gathered in sources}):
        mine = [gathered for gathered in sources if gathered.source == name]
        relevant = {entry.item.key for gathered in mine for entry in gathered.relevant}
        seen = {
            entry.item.key for gathered in mine for entry in (*gathered.kept, *gathered.dropped)
        }
        share = len(relevant) / len(seen) if seen else 1.0
        counted[name] = SourceFigures(
            fetched=len(seen),
            relevant=len(relevant),
            kept=sum(entry.item.key in seen for entry in kept),
            yield_ratio=None if any(gathered.unjudged for gathered in mine) else share,
            refetched=any(gathered.refetched for gathered in mine),
        )
    return counted


def sentiment_of(kept: Sequence[Assessed]) -> Sentiment:
    """How these items sound, by their grades."""
    felt = Counter(entry.grade.sentiment for entry in kept if entry.grade is not None)
    positive, neutral, negative = felt[1], felt[0], felt[-1]
    n = positive + neutral + negative
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
        wilson95=Intervals(
            positive=wilson(positive, n), neutral=wilson(neutral, n), negative=wilson(negative, n)
        ),
        ungraded=len(kept) - n,
    )


def _timeline(kept: Sequence[Assessed], now: datetime) -> Timeline:
    days = [
        entry.item.created_at.astimezone(UTC).date()
        for entry in kept
        if entry.item.created_at is not None
    ]
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


def filled(timeline: Timeline) -> Timeline:
    """A timeline that lacks its empty periods, with them; by year when it spans as much.

    Counted by week, one item without a real date (`0001-01-01`) would make 100,000 weeks.
    """
    starts = [point.start for point in timeline.points]
    spans_years = bool(starts) and _unit(min(starts), max(starts)) == "year"
    unit: Unit = "year" if spans_years else timeline.unit
    counts = Counter[date]()
    for point in timeline.points:
        counts[point.start] += point.count
    return timeline.model_copy(update={"unit": unit, "points": by_period(unit, counts)})


def _aspects(kept: Sequence[Assessed]) -> tuple[AspectCount, ...]:
    """By aspect, most often named first: the items that name it, each once, best ranked first."""
    named: dict[str, dict[str, Assessed]] = {}
    for entry in kept:
        for aspect in entry.grade.aspects if entry.grade is not None else ():
            if label := one_line(aspect).casefold():
                named.setdefault(label, {})[entry.item.key] = entry
    return tuple(
        AspectCount(
            aspect=label,
            count=len(items),
            positive=_feeling(items.values(), 1),
            negative=_feeling(items.values(), -1),
            cites=tuple(sorted(items, key=lambda key: (items[key].rank or len(kept) + 1, key))),
        )
        for label, items in sorted(named.items(), key=lambda pair: (-len(pair[1]), pair[0]))
    )


def _feeling(items: Iterable[Assessed], sentiment: int) -> int:
    return sum(item.grade is not None and item.grade.sentiment == sentiment for item in items)
