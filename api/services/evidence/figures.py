"""Every number in a report, counted from items; the model never counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from math import sqrt
from statistics import median
from typing import Annotated, Literal

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from api.services.published import WHERE_THERE, Published
from api.services.schemas import Assessed, Gathered
from api.services.text import one_line

Z95 = 1.959963984540054
"""Normal quantile of a two-sided 95 % interval."""
DAYS_BY_DAY = 31
"""A timeline that reaches back further is counted by week."""
Interval = tuple[float, float]
"""Lower and upper end."""


class SourceFigures(Published):
    """One source over all its queries: distinct items seen, past the gate, and kept in the end."""

    fetched: int
    relevant: int
    kept: int
    yield_ratio: Annotated[float, Field(ge=0, le=1)]
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
    """A day or a week in which something was said."""

    start: date
    count: int


class Timeline(Published):
    """Items by day, or by week (from Monday) once the oldest is 31 days past; UTC."""

    unit: Literal["day", "week"]
    points: tuple[Period, ...]
    """In order; empty ones are left out."""
    undated: int


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
        sentiment=_sentiment(kept),
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
        relevant = {entry.item.key for gathered in mine for entry in gathered.kept}
        seen = relevant | {entry.item.key for gathered in mine for entry in gathered.dropped}
        counted[name] = SourceFigures(
            fetched=len(seen),
            relevant=len(relevant),
            kept=sum(entry.item.key in seen for entry in kept),
            yield_ratio=len(relevant) / len(seen) if seen else 1.0,
            refetched=any(gathered.refetched for gathered in mine),
        )
    return counted


def _sentiment(kept: Sequence[Assessed]) -> Sentiment:
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


def wilson(count: int, n: int) -> Interval | None:
    """The 95 % Wilson interval of a share; None of nothing."""
    if not n:
        return None
    share = count / n
    middle = share + Z95**2 / (2 * n)
    spread = Z95 * sqrt(share * (1 - share) / n + Z95**2 / (4 * n * n))
    scale = 1 + Z95**2 / n
    return max(0.0, (middle - spread) / scale), min(1.0, (middle + spread) / scale)


def _timeline(kept: Sequence[Assessed], now: datetime) -> Timeline:
    days = [
        entry.item.created_at.astimezone(UTC).date()
        for entry in kept
        if entry.item.created_at is not None
    ]
    weekly = bool(days) and (now.astimezone(UTC).date() - min(days)).days > DAYS_BY_DAY
    starts = Counter(day - timedelta(days=day.weekday()) if weekly else day for day in days)
    return Timeline(
        unit="week" if weekly else "day",
        points=tuple(Period(start=start, count=starts[start]) for start in sorted(starts)),
        undated=len(kept) - len(days),
    )


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
