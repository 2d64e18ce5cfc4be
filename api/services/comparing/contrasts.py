"""Which differences between two products an interval supports, after counting all the looks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import inf

from api.services.comparing.comparison import Contrast, Measure, SourceVolume
from api.services.comparing.standings import FEELINGS, LEANS, Contender
from api.services.evidence.intervals import (
    Interval,
    count_ratio,
    fisher,
    holm,
    share_difference,
    split,
)
from api.services.places import Places, title_of
from api.services.reporting.counting import SHARED
from api.services.text import many

FEW_POSTS = 5
"""Posts of both together below which volumes are not compared."""
ALPHA = 0.05
"""How often chance may mark anything at all where nothing differs."""
_WORDS: dict[Measure, str] = {
    "posts": "More is said about",
    "sounds_positive": "More posts sound positive about",
    "sounds_negative": "More posts sound negative about",
    "mentions": "spoken of more about",
    "praise": "more praise about",
    "complaint": "more complaints about",
}
_Pair = tuple[Contender, Contender]


@dataclass(frozen=True, slots=True)
class Look:
    """One measure for two products: which posts count, of how many."""

    measure: Measure
    aspect: str
    pair: _Pair
    counted: tuple[tuple[str, ...], tuple[str, ...]]
    """Keys of the posts, the best first."""
    totals: tuple[int, int]
    sources: tuple[str, ...]
    """Those whose posts are looked at."""

    @property
    def counts(self) -> tuple[int, int]:
        """How many posts count for each."""
        return len(self.counted[0]), len(self.counted[1])

    @property
    def chance(self) -> float:
        """How often chance alone makes a difference as large."""
        (count, other), (n, m) = self.counts, self.totals
        return split(count, other) if self.measure == "posts" else fisher(count, n, other, m)

    @property
    def interval(self) -> Interval | None:
        """Of the ratio of volumes, else of the difference of shares."""
        (count, other), (n, m) = self.counts, self.totals
        if self.measure == "posts":
            return count_ratio(count, other)
        return share_difference(count, n, other, m)

    @property
    def turned(self) -> Look:
        """The same from the other side."""
        return replace(
            self, pair=self.pair[::-1], counted=self.counted[::-1], totals=self.totals[::-1]
        )


def looks_at(contenders: Sequence[Contender], names: Sequence[str], *, volumes: bool) -> list[Look]:
    """Every comparison that could be marked: with posts enough, whichever product they are about.

    What is chosen by the posts of both together favours neither. Volumes, where all were asked
    alike, are of the sources that were read to the end for both, shares of those that answered for
    both.
    """
    looks: list[Look] = []
    for pair in combinations(contenders, 2):
        read = _both(pair, lambda volume: volume.comparable)
        answered = _both(pair, lambda volume: volume.outcome.answered)
        if volumes:
            looks += _looks(pair, "posts", "", read)
        for name in names:
            for measure in ("mentions", *LEANS):
                looks += _looks(pair, measure, name, answered)
        if all(contender.standing.sentiment for contender in pair):
            for measure in FEELINGS:
                looks += _looks(pair, measure, "", answered)
    return looks


def contrasts_of(looks: Sequence[Look], places: Places) -> tuple[Contrast, ...]:
    """The differences that stand, the surest first."""
    chances = holm([look.chance for look in looks])
    marked = []
    for chance, look in sorted(zip(chances, looks, strict=True), key=lambda pair: pair[0]):
        equal = 1 if look.measure == "posts" else 0
        for turned in (look, look.turned) if chance <= ALPHA else ():
            interval = turned.interval
            if interval is not None and interval[0] > equal:
                marked.append(_contrast(turned, interval, chance, places))
    return tuple(marked)


def _looks(pair: _Pair, measure: Measure, aspect: str, sources: tuple[str, ...]) -> Iterator[Look]:
    """One look, where there is enough to see."""
    first, second = pair
    look = Look(
        measure,
        aspect,
        pair,
        (first.counted(measure, aspect, sources), second.counted(measure, aspect, sources)),
        (first.total(measure, sources), second.total(measure, sources)),
        sources,
    )
    if sum(look.counts) >= (FEW_POSTS if measure == "posts" else SHARED) and (
        measure == "posts" or all(look.totals)
    ):
        yield look


def _both(pair: _Pair, holds: Callable[[SourceVolume], bool]) -> tuple[str, ...]:
    """The sources of which this holds for both products."""
    first, second = (contender.standing.sources for contender in pair)
    return tuple(
        name for name in first if name in second and holds(first[name]) and holds(second[name])
    )


def _contrast(look: Look, interval: Interval, chance: float, places: Places) -> Contrast:
    more, less = look.pair
    (count, other), (n, m), (low, high) = look.counts, look.totals, interval
    *titles, last = (title_of(places, name) for name in look.sources)
    where = f" on {', '.join(titles)}{' and ' * bool(titles)}{last}"
    counted = f": {many(count, 'post')}, against {other or 'none'} about {less.name}"
    if look.measure == "posts":
        estimate = count / other if other else None
        where += ", where neither hit a limit"
        size = f"at least {low:.1f} times as many, by a 95 % interval"
        if estimate is not None:
            size = f"{estimate:.1f} times as many, 95 %: {low:.1f} to {high:.1f}"
    else:
        estimate = count / n - other / m
        counted = f", in {count} of {n} posts, against {other or 'none'} of {m} about {less.name}"
        all_posts = tuple(each.total(look.measure, each.standing.sources) for each in look.pair)
        where = "" if look.totals == all_posts else f"{where}, which answered for both"
        points = [f"{100 * value:.0f}" for value in (estimate, low, high)]
        size = f"{points[0]} percentage points, 95 %: {points[1]} to {points[2]}"
    subject = f"{look.aspect.capitalize()}: " if look.aspect else ""
    return Contrast(
        measure=look.measure,
        aspect=look.aspect,
        more=more.standing.query,
        less=less.standing.query,
        estimate=estimate,
        low=low,
        high=None if high == inf else high,
        chance=chance,
        sources=look.sources,
        cites=tuple(dict.fromkeys((*look.counted[0], *look.counted[1]))),
        text=f"{subject}{_WORDS[look.measure]} {more.name}{counted}{where} ({size}).",
    )
