"""The counts of one product's report by one rule for all, and which differences chance explains."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from math import inf
from types import MappingProxyType

from api.core.display_names import SourceLabels, title_in
from api.core.text import clean, one_line, quantity
from api.core.work import Failure
from api.features.comparisons.comparison import Contrast, Measure, SourceVolume, Standing, State
from api.pipeline.evidence import figures
from api.pipeline.evidence.figures import AspectCount, Interval
from api.reports.composition import assessed_of
from api.reports.exhibits import Dossier
from api.reports.keyless.aspects import aspects
from api.reports.keyless.theme_sentences import SHARED
from api.reports.keyless.themes import find_themes
from api.reports.report import KeptItem, Passage, Report
from api.services.product import Ask

LEANS: Mapping[Measure, int] = MappingProxyType({"praise": 1, "complaint": -1})
"""Measures by the lean of a passage."""
FEELINGS: Mapping[Measure, int] = MappingProxyType({"sounds_positive": 1, "sounds_negative": -1})
"""Measures by the sentiment of a grade."""
FEW_POSTS = 5
"""Posts of both products together below which volumes are not compared: chance explains most."""
ALPHA = 0.05  # probability that chance alone marks any difference at all
_WORDS: dict[Measure, str] = {
    "posts": "More is said about",
    "sounds_positive": "More posts sound positive about",
    "sounds_negative": "More posts sound negative about",
    "mentions": "spoken of more about",
    "praise": "more praise about",
    "complaint": "more complaints about",
}


@dataclass(frozen=True, slots=True)
class ProductCounts:
    """One product of a comparison: its row, and the posts and passages behind its counts."""

    standing: Standing
    items: tuple[KeptItem, ...] = ()  # the counted posts, best first
    passages: Mapping[str, tuple[Passage, ...]] = field(default_factory=dict)
    """One passage of each post that mentions an aspect, by aspect, the most telling first."""
    leans: Mapping[tuple[str, Measure], frozenset[str]] = field(default_factory=dict)
    """Keys of posts whose passage surely praises or complains, by aspect and `praise` or `complaint`."""

    @property
    def name(self) -> str:
        """The product as sentences name it."""
        return one_line(clean(self.standing.query))

    def counted(self, measure: Measure, aspect: str, sources: Container[str]) -> tuple[str, ...]:
        """The keys of the posts from these sources that count for a measure, best first."""
        match measure:
            case "praise" | "complaint":
                keys: Container[str] = self.leans.get((aspect, measure), ())
            case "mentions":
                keys = {passage.key for passage in self.passages.get(aspect, ())}
            case "sounds_positive" | "sounds_negative":
                felt = FEELINGS[measure]
                keys = {item.key for item in self.items if item.sentiment == felt}
            case _:
                keys = {item.key for item in self.items}
        return tuple(item.key for item in self.items if item.source in sources and item.key in keys)

    def total(self, measure: Measure, sources: Container[str]) -> int:
        """Number of posts from these sources that a measure is a share of; for sentiment, only graded ones."""
        graded = measure in FEELINGS
        posts = (item for item in self.items if item.source in sources)
        return sum(not graded or item.sentiment is not None for item in posts)


def common_aspects(reports: Iterable[Report]) -> tuple[str, ...]:
    """The known aspects whose words mean the same in every one of these reports.

    Nouns that a single report would name as themes are left out: they were picked because that
    product's posts are full of them, so any comparison by them is decided beforehand.
    """
    stated = [
        " ".join((report.query, report.about, *(item.title for item in report.items)))
        for report in reports
        if report.items
    ]
    return tuple(aspect.name for aspect in aspects() if all(map(aspect.fits, stated)))


def count_product(ask: Ask, report: Report | Failure, names: Sequence[str]) -> ProductCounts:
    """Counts of a product's posts, in total and for the named aspects."""
    if isinstance(report, Failure):
        return ProductCounts(_standing(ask, None, "failed", report.message))
    items = tuple(item for item in report.items if item.verdict)
    if not items:
        if not any(source.outcome.answered for source in report.sources.values()):
            return ProductCounts(_standing(ask, report, "not_asked", report.coverage))
        state: State = "unjudged" if report.items else "nothing"
        return ProductCounts(_standing(ask, report, state, report.decision_rationale))
    exhibits = Dossier().show(map(assessed_of, items))
    keys = {exhibit.label: exhibit.item.key for exhibit in exhibits}
    question = report.question
    themed = find_themes(question, exhibits, most=len(names), focus=names)
    # one passage of each person, and of a post one, so that nobody counts twice
    by_aspect = {
        f.name.lower(): tuple({p.label: p for p in reversed(f.passages)}.values())[::-1] for f in themed.findings
    }
    passages = {
        name: tuple(Passage(keys[p.label], p.text, p.comment_id) for p in by_aspect[name])
        for name in names
        if name in by_aspect
    }
    leans = {
        (name, measure): frozenset(keys[p.label] for p in by_aspect[name] if p.lean == lean)
        for name in passages
        for measure, lean in LEANS.items()
    }
    ranks = {item.key: rank for rank, item in enumerate(items)}
    counted = tuple(
        AspectCount(
            aspect=name,
            count=len(entries),
            positive=len(leans[name, "praise"]),
            negative=len(leans[name, "complaint"]),
            cites=tuple(sorted((passage.key for passage in entries), key=ranks.__getitem__)),
        )
        for name, entries in sorted(passages.items(), key=lambda pair: (-len(pair[1]), pair[0]))
    )
    standing = _standing(ask, report, "compared", None, items, counted)
    return ProductCounts(standing, items, passages, leans)


def _standing(
    ask: Ask,
    report: Report | None,
    state: State,
    reason: str | None,
    items: Sequence[KeptItem] = (),
    counted: tuple[AspectCount, ...] = (),
) -> Standing:
    kept = Counter(item.source for item in items)
    sources = {
        name: SourceVolume(
            outcome=source.outcome,
            reason=source.reason,
            fetched=source.fetched,
            posts=kept[name],
            capped=source.outcome.answered and source.capped is not False,
            judged=not source.gate.unjudged,
        )
        for name, source in (report.sources.items() if report else ())
    }
    felt = figures.sentiment_of([assessed_of(item) for item in items])
    if report is not None and report.figures.sentiment is not None and len(items) == len(report.items):
        felt = report.figures.sentiment  # it counts people, which stored items cannot tell apart
    graded = report is not None and not report.sample and felt.n
    return Standing(
        query=ask.query if report is None else report.query,
        # where the question has no description, the report has the meaning that the tenant chose before
        about=ask.about or (report.about if report is not None else ""),
        analysis_id=None if report is None else report.id,
        state=state,
        reason=reason,
        posts=len(items),
        capped=any(volume.capped for volume in sources.values()),
        sources=sources,
        sentiment=felt if graded else None,  # the grades of sample data are guessed
        aspects=counted,
    )


@dataclass(frozen=True, slots=True)
class DifferenceTest:
    """One measure for two products: the posts that count, and the totals."""

    measure: Measure
    aspect: str
    pair: tuple[ProductCounts, ProductCounts]
    counted: tuple[tuple[str, ...], tuple[str, ...]]  # keys of the posts that count, best first
    totals: tuple[int, int]
    sources: tuple[str, ...]

    @property
    def counts(self) -> tuple[int, int]:
        """Number of posts that count for each product."""
        return len(self.counted[0]), len(self.counted[1])

    @property
    def chance(self) -> float:
        """The probability that chance alone makes a difference as large."""
        (count, other), (n, m) = self.counts, self.totals
        return figures.split(count, other) if self.measure == "posts" else figures.fisher(count, n, other, m)

    @property
    def interval(self) -> Interval | None:
        """95 % interval of the ratio of volumes, else of the difference of shares."""
        (count, other), (n, m) = self.counts, self.totals
        if self.measure == "posts":
            return figures.count_ratio(count, other)
        return figures.share_difference(count, n, other, m)

    @property
    def turned(self) -> DifferenceTest:
        """The same test with the products swapped."""
        return replace(self, pair=self.pair[::-1], counted=self.counted[::-1], totals=self.totals[::-1])


def difference_tests(products: Sequence[ProductCounts], names: Sequence[str], *, volumes: bool) -> list[DifferenceTest]:
    """Every comparison with enough posts, counted over both products, so that none is favoured.

    Volumes, if asked for, are of the sources that were read to the end for both products, shares
    of those that answered for both.
    """
    tests: list[DifferenceTest] = []
    for pair in combinations(products, 2):
        first, second = (product.standing.sources for product in pair)
        shared = {name: (first[name], second[name]) for name in first if name in second}
        read = tuple(n for n, both in shared.items() if all(v.comparable for v in both))
        answered = tuple(n for n, both in shared.items() if all(v.outcome.answered for v in both))
        measures: list[tuple[Measure, str, tuple[str, ...]]] = []
        if volumes:
            measures.append(("posts", "", read))
        measures += [(m, name, answered) for name in names for m in ("mentions", *LEANS)]
        if all(product.standing.sentiment for product in pair):
            measures += [(measure, "", answered) for measure in FEELINGS]
        for measure, aspect, sources in measures:
            test = DifferenceTest(
                measure,
                aspect,
                pair,
                (
                    pair[0].counted(measure, aspect, sources),
                    pair[1].counted(measure, aspect, sources),
                ),
                (pair[0].total(measure, sources), pair[1].total(measure, sources)),
                sources,
            )
            enough = FEW_POSTS if measure == "posts" else SHARED
            if sum(test.counts) >= enough and (measure == "posts" or all(test.totals)):
                tests.append(test)
    return tests


def marked_contrasts(tests: Sequence[DifferenceTest], places: SourceLabels) -> tuple[Contrast, ...]:
    """The differences that chance does not explain, the surest first."""
    chances = figures.holm([test.chance for test in tests])
    marked = []
    for chance, test in sorted(zip(chances, tests, strict=True), key=lambda pair: pair[0]):
        equal = 1 if test.measure == "posts" else 0
        for turned in (test, test.turned) if chance <= ALPHA else ():
            interval = turned.interval
            if interval is not None and interval[0] > equal:
                marked.append(_contrast(turned, interval, chance, places))
    return tuple(marked)


def _contrast(test: DifferenceTest, interval: Interval, chance: float, places: SourceLabels) -> Contrast:
    more, less = test.pair
    (count, other), (n, m), (low, high) = test.counts, test.totals, interval
    *titles, last = (title_in(places, name) for name in test.sources)
    where = f" on {', '.join(titles)}{' and ' * bool(titles)}{last}"
    counted = f": {quantity(count, 'post')}, against {other or 'none'} about {less.name}"
    if test.measure == "posts":
        estimate = count / other if other else None
        where += ", where neither hit a limit"
        size = f"at least {low:.1f} times as many, by a 95 % interval"
        if estimate is not None:
            size = f"{estimate:.1f} times as many, 95 %: {low:.1f} to {high:.1f}"
    else:
        estimate = count / n - other / m
        counted = f", in {count} of {n} posts, against {other or 'none'} of {m} about {less.name}"
        all_posts = tuple(each.total(test.measure, each.standing.sources) for each in test.pair)
        where = "" if test.totals == all_posts else f"{where}, which answered for both"
        points = [f"{100 * value:.0f}" for value in (estimate, low, high)]
        size = f"{points[0]} percentage points, 95 %: {points[1]} to {points[2]}"
    subject = f"{test.aspect.capitalize()}: " if test.aspect else ""
    return Contrast(
        measure=test.measure,
        aspect=test.aspect,
        more=more.standing.query,
        less=less.standing.query,
        estimate=estimate,
        low=low,
        high=None if high == inf else high,
        chance=chance,
        sources=test.sources,
        cites=tuple(dict.fromkeys((*test.counted[0], *test.counted[1]))),
        text=f"{subject}{_WORDS[test.measure]} {more.name}{counted}{where} ({size}).",
    )
