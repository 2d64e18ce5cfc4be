"""What one report counts for in a comparison, by one rule for every product."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from api.services.comparing.comparison import Measure, SourceVolume, Standing, State
from api.services.containment import Failure
from api.services.evidence.figures import AspectCount, sentiment_of
from api.services.listening import Ask
from api.services.reporting.aspects import aspects
from api.services.reporting.composing import assessed_of
from api.services.reporting.dossier import Dossier
from api.services.reporting.findings import Passage
from api.services.reporting.report import KeptItem, Report
from api.services.reporting.themes import find_themes
from api.services.schemas import Question
from api.services.text import clean, one_line

LEANS: Mapping[Measure, int] = MappingProxyType({"praise": 1, "complaint": -1})
"""Of a passage."""
FEELINGS: Mapping[Measure, int] = MappingProxyType({"sounds_positive": 1, "sounds_negative": -1})
"""Of a grade."""


@dataclass(frozen=True, slots=True)
class Contender:
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


def contender_of(ask: Ask, report: Report | Failure, names: Sequence[str]) -> Contender:
    """How a product stands, with what its posts say of the aspects of these names."""
    if isinstance(report, Failure):
        return Contender(_standing(ask, None, "failed", report.message))
    items = tuple(item for item in report.items if item.verdict)
    state, reason = _state(report, items)
    if state != "compared":
        return Contender(_standing(ask, report, state, reason))
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
    return Contender(standing, items, words, leans)


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
