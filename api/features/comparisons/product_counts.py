"""What one report counts for in a comparison, by one rule for every product.

Which differences between two products an interval supports, after counting all the looks.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from math import inf
from types import MappingProxyType

from api.core.display_names import SourceLabels, title_in
from api.core.domain import Question
from api.core.text import clean, one_line, quantity
from api.core.work import Failure
from api.features.comparisons.comparison import Contrast, Measure, SourceVolume, Standing, State
from api.pipeline.evidence.figures import (
    AspectCount,
    Interval,
    count_ratio,
    fisher,
    holm,
    sentiment_of,
    share_difference,
    split,
)
from api.reports.composition import assessed_of
from api.reports.exhibits import Dossier
from api.reports.keyless.aspects import aspects
from api.reports.keyless.theme_sentences import SHARED
from api.reports.keyless.themes import find_themes
from api.reports.report import KeptItem, Passage, Report
from api.services.product import Ask

LEANS: Mapping[Measure, int] = MappingProxyType({"praise": 1, "complaint": -1})
"""Of a passage."""
FEELINGS: Mapping[Measure, int] = MappingProxyType({"sounds_positive": 1, "sounds_negative": -1})
"""Of a grade."""


@dataclass(frozen=True, slots=True)
class ProductCounts:
    """One product of a comparison: its row, and the posts and words it is counted from."""

    standing: Standing
    items: tuple[KeptItem, ...] = ()
    """Those that are counted, best first."""
    words: Mapping[str, tuple[Passage, ...]] = field(default_factory=dict)
    """By aspect, a passage of each post that speaks of it, the most telling first."""
    leans: Mapping[tuple[str, Measure], frozenset[str]] = field(default_factory=dict)
    """By aspect and `praise` or `complaint`, the keys of posts whose passage surely leans so."""

    @property
    def name(self) -> str:
        """What it is called in a sentence."""
        return one_line(clean(self.standing.query))

    def counted(self, measure: Measure, aspect: str, sources: Container[str]) -> tuple[str, ...]:
        """The keys of the posts from these sources that count for a measure, best first."""
        match measure:
            case "praise" | "complaint":
                keys: Container[str] = self.leans.get((aspect, measure), ())
            case "mentions":
                keys = {passage.key for passage in self.words.get(aspect, ())}
            case "sounds_positive" | "sounds_negative":
                felt = FEELINGS[measure]
                keys = {item.key for item in self.items if item.sentiment == felt}
            case _:
                keys = {item.key for item in self.items}
        return tuple(item.key for item in self.items if item.source in sources and item.key in keys)

    def total(self, measure: Measure, sources: Container[str]) -> int:
        """Of how many posts from these sources: of how sentiment sounds, the graded ones."""
        graded = measure in FEELINGS
        posts = (item for item in self.items if item.source in sources)
        return sum(not graded or item.sentiment is not None for item in posts)


def common_aspects(reports: Iterable[Report]) -> tuple[str, ...]:
    """The known aspects whose words mean the same to every one of these reports.

    A telling word that a single report would also name is left out: it was picked because that
    product's posts are full of it, so any comparison by it is won beforehand.
    """
    stated = [
        " ".join((report.query, report.about, *(item.title for item in report.items)))
        for report in reports
        if report.items
    ]
    return tuple(aspect.name for aspect in aspects() if all(map(aspect.fits, stated)))


def contender_of(ask: Ask, report: Report | Failure, names: Sequence[str]) -> ProductCounts:
    """How a product stands, with what its posts say of the aspects of these names."""
    if isinstance(report, Failure):
        return ProductCounts(_standing(ask, None, "failed", report.message))
    items = tuple(item for item in report.items if item.verdict)
    state, reason = _state(report, items)
    if state != "compared":
        return ProductCounts(_standing(ask, report, state, reason))
    exhibits = Dossier().show(map(assessed_of, items))
    keys = {exhibit.label: exhibit.item.key for exhibit in exhibits}
    question = Question(report.query, report.about)
    themed = find_themes(question, exhibits, most=len(names), focus=names)
    telling = {finding.name.lower(): finding.passages for finding in themed.findings}

    words = {
        name: tuple(Passage(keys[each.label], each.text, each.comment_id) for each in telling[name])
        for name in names
        if name in telling
    }
    leans = {
        (name, measure): frozenset(keys[each.label] for each in telling[name] if each.lean == lean)
        for name in words
        for measure, lean in LEANS.items()
    }
    ranks = {item.key: rank for rank, item in enumerate(items)}
    counted = tuple(
        AspectCount(
            aspect=name,
            count=len(passages),
            positive=len(leans[name, "praise"]),
            negative=len(leans[name, "complaint"]),
            cites=tuple(sorted((passage.key for passage in passages), key=ranks.__getitem__)),
        )
        for name, passages in sorted(words.items(), key=lambda pair: (-len(pair[1]), pair[0]))
    )
    standing = _standing(ask, report, state, None, items, counted)
    return ProductCounts(standing, items, words, leans)


def _state(report: Report, items: Sequence[KeptItem]) -> tuple[State, str | None]:
    """Whether there is anything to compare, and why not."""
    if items:
        return "compared", None
    if not any(source.outcome.answered for source in report.sources.values()):
        return "not_asked", report.coverage
    if report.items:
        return "unjudged", report.decision_rationale
    return "nothing", report.decision_rationale


def _standing(
    ask: Ask,
    report: Report | None,
    state: State,
    reason: str | None,
    items: Sequence[KeptItem] = (),
    counted: tuple[AspectCount, ...] = (),
) -> Standing:
    sources = {} if report is None else _volumes(report, items)
    felt = sentiment_of([assessed_of(item) for item in items])
    graded = report is not None and not report.sample and felt.n
    return Standing(
        query=ask.query if report is None else report.query,
        about=ask.about,
        analysis_id=None if report is None else report.id,
        state=state,
        reason=reason,
        posts=len(items),
        capped=any(volume.capped for volume in sources.values()),
        sources=sources,
        sentiment=felt if graded else None,  # of made-up posts a stand-in has guessed it
        aspects=counted,
    )


def _volumes(report: Report, items: Sequence[KeptItem]) -> dict[str, SourceVolume]:
    kept = [item.source for item in items]
    return {
        name: SourceVolume(
            outcome=source.outcome,
            reason=source.reason,
            fetched=source.fetched,
            posts=kept.count(name),
            capped=source.outcome.answered and source.capped is not False,
            judged=not source.gate.unjudged,
        )
        for name, source in report.sources.items()
    }


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
_Pair = tuple[ProductCounts, ProductCounts]


@dataclass(frozen=True, slots=True)
class DifferenceTest:
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
    def turned(self) -> DifferenceTest:
        """The same from the other side."""
        return replace(
            self, pair=self.pair[::-1], counted=self.counted[::-1], totals=self.totals[::-1]
        )


def looks_at(
    contenders: Sequence[ProductCounts], names: Sequence[str], *, volumes: bool
) -> list[DifferenceTest]:
    """Every comparison that could be marked: with posts enough, whichever product they are about.

    What is chosen by the posts of both together favours neither. Volumes, where all were asked
    alike, are of the sources that were read to the end for both, shares of those that answered for
    both.
    """
    looks: list[DifferenceTest] = []
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


def contrasts_of(looks: Sequence[DifferenceTest], places: SourceLabels) -> tuple[Contrast, ...]:
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


def _looks(
    pair: _Pair, measure: Measure, aspect: str, sources: tuple[str, ...]
) -> Iterator[DifferenceTest]:
    """One look, where there is enough to see."""
    first, second = pair
    look = DifferenceTest(
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


def _contrast(
    look: DifferenceTest, interval: Interval, chance: float, places: SourceLabels
) -> Contrast:
    more, less = look.pair
    (count, other), (n, m), (low, high) = look.counts, look.totals, interval
    *titles, last = (title_in(places, name) for name in look.sources)
    where = f" on {', '.join(titles)}{' and ' * bool(titles)}{last}"
    counted = f": {quantity(count, 'post')}, against {other or 'none'} about {less.name}"
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
