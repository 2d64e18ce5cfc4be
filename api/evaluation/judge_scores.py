"""Scores of a judge or grader from its answers and the labels: over all, by slice, by query."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import fmean, median
from typing import Any

from api.core.domain import Usage
from api.evaluation import metrics
from api.evaluation.labelled_items import LabelledItem, LabelledQuery
from api.evaluation.metrics import LabelledVerdict

# measures that mean nothing over part of a page
_OF_PAGES = ("pages", "yield_mae", "refetch_right")
_GRADE_RESAMPLES = 200


@dataclass(frozen=True, slots=True)
class Opinion:
    """Answer of a judge, grader or support check about one item or claim."""

    relevant: bool
    probability: float | None = None
    score: int | None = None  # 1 to 5, from a grader


@dataclass(frozen=True, slots=True)
class Answered:
    """The opinions of one answer, one for each item of its page, with tokens and seconds."""

    opinions: tuple[Opinion, ...]
    usage: Usage = Usage()
    seconds: float = 0.0  # duration of the call


@dataclass(frozen=True, slots=True)
class AnswerSheet:
    """The answer about items `start` and following of query number `query`."""

    query: int
    start: int
    answered: Answered | None  # None: the call failed
    wasted: Usage = Usage()  # what an answer cost that could not be used
    reason: str = ""  # why it failed

    @property
    def positions(self) -> Iterator[tuple[int, Opinion]]:
        """Each opinion with the position of its item in the query."""
        return enumerate(self.answered.opinions if self.answered else (), self.start)

    @property
    def usage(self) -> Usage:
        """Usage of the call, whether it failed or not."""
        return self.wasted if self.answered is None else self.wasted + self.answered.usage


def verdicts_on(labels: Sequence[bool], sheets: Iterable[AnswerSheet]) -> list[LabelledVerdict]:
    """Opinions about one query or question, each with its label."""
    return [
        LabelledVerdict(labels[position], opinion.relevant, opinion.probability)
        for sheet in sheets
        for position, opinion in sheet.positions
    ]


@dataclass(frozen=True, slots=True)
class EvalResult:
    """Scores of a judge on labelled queries; `as_json` is what is printed and compared."""

    judge: str
    overall: Mapping[str, Any]
    """Measures over all, with `intervals`, `ms_per_10`, `usd` (None when unknown), `tokens` and
    `degraded` (items without an answer, which enter no measure)."""
    families: Mapping[str, Mapping[str, Any]]
    sources: Mapping[str, Mapping[str, Any]]
    languages: Mapping[str, Mapping[str, Any]]
    mention: Mapping[str, Mapping[str, Any]]
    kinds: Mapping[str, Mapping[str, Any]]
    """Number of items and of kept items, by kind."""
    grades: Mapping[str, Any] | None
    """Spearman, quadratic kappa and nDCG@10 on graded items; None without grades or scores."""
    calibration: tuple[tuple[int, float, float], ...]
    """Items, mean probability and share relevant, per tenth of probability."""
    queries: Mapping[str, Mapping[str, Any]]
    reasons: tuple[str, ...] = ()  # why pages failed
    page: int = 0
    about: bool = True

    def as_json(self) -> dict[str, Any]:
        """Plain values; figures that are not computed with are rounded."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class _Case:
    number: int
    query: LabelledQuery
    item: LabelledItem
    opinion: Opinion


def score(
    judge: str, queries: Sequence[LabelledQuery], sheets: Sequence[AnswerSheet], *, min_yield: float
) -> EvalResult:
    """Score answers against labels; equal answers give equal figures."""
    cases = _cases(queries, sheets)
    tallies = _tallies(cases, min_yield)

    def sliced(of: Callable[[_Case], str], without: Iterable[str] = ()) -> dict[str, dict[str, Any]]:
        slices = {}
        for name, members in sorted(metrics.grouped(cases, of).items()):
            figures = _figures(_tallies(members, min_yield))
            for measure in without:
                figures.pop(measure)
                figures["intervals"].pop(measure, None)
            slices[name] = figures
        return slices

    kinds = metrics.grouped((case for case in cases if case.item.kind), lambda case: case.item.kind)
    families = {query.query: query.family for query in reversed(queries)}
    shown = ("n", "relevant", "kept", "precision", "recall", "f1", "mcc", "yield_mae")
    return EvalResult(
        judge,
        _figures(tallies) | _costs(queries, sheets),
        families=sliced(lambda case: case.query.family),
        sources=sliced(lambda case: case.query.source),
        languages=sliced(lambda case: case.item.language, _OF_PAGES),
        mention=sliced(lambda case: str(case.item.mention).lower(), _OF_PAGES),
        kinds={
            kind: {"n": len(kept), "kept": sum(kept), "share": metrics.rounded(fmean(kept))}
            for kind, members in sorted(kinds.items())
            for kept in [[case.opinion.relevant for case in members]]
        },
        grades=_graded(cases),
        calibration=tuple(metrics.calibration(metrics.total(tallies.values()))),
        queries={
            name: {
                "family": families[name],
                **{key: metrics.rounded(metrics.measures(counted)[key]) for key in shown},
                "tally": list(counted),
            }
            for name, counted in tallies.items()
        },
    )


def tallies_by_query(
    queries: Sequence[LabelledQuery], sheets: Sequence[AnswerSheet], *, min_yield: float
) -> dict[str, metrics.Tally]:
    """One tally of answers against labels for each query text."""
    return _tallies(_cases(queries, sheets), min_yield)


def _cases(queries: Sequence[LabelledQuery], sheets: Sequence[AnswerSheet]) -> list[_Case]:
    return [
        _Case(sheet.query, queries[sheet.query], queries[sheet.query].items[position], opinion)
        for sheet in sheets
        for position, opinion in sheet.positions
    ]


def _tallies(cases: Iterable[_Case], min_yield: float) -> dict[str, metrics.Tally]:
    """One tally for each query text, since queries of the same text are resampled together."""
    tallies: dict[str, list[metrics.Tally]] = defaultdict(list)
    for members in metrics.grouped(cases, lambda case: case.number).values():
        verdicts = [
            LabelledVerdict(case.item.relevant, case.opinion.relevant, case.opinion.probability) for case in members
        ]
        tallies[members[0].query.query].append(metrics.tally(verdicts, min_yield))
    return {text: metrics.total(parts) for text, parts in tallies.items()}


def _figures(tallies: Mapping[str, metrics.Tally]) -> dict[str, Any]:
    counts = ("n", "relevant", "kept", "pages")
    return metrics.summary(list(tallies.values()), metrics.summed, counts)


def _costs(queries: Sequence[LabelledQuery], sheets: Sequence[AnswerSheet]) -> dict[str, Any]:
    pages = [sheet.answered for sheet in sheets if sheet.answered is not None]
    usage = sum((sheet.usage for sheet in sheets), Usage())
    given = sum(len(page.opinions) for page in pages)
    return {
        "ms_per_10": round(median(p.seconds / len(p.opinions) * 10_000 for p in pages), 2),
        "usd": None if usage.usd is None else round(usage.usd, 6),
        "tokens": usage.input_tokens + usage.output_tokens,
        "degraded": sum(len(query.items) for query in queries) - given,
    }


@dataclass(frozen=True, slots=True)
class _Graded:
    labels: list[int] = field(default_factory=list)
    predicted: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)


def _graded(cases: Iterable[_Case]) -> dict[str, Any] | None:
    groups: dict[str, _Graded] = defaultdict(_Graded)
    for case in cases:
        label, opinion = case.item.grade, case.opinion
        value = opinion.probability if opinion.score is None else float(opinion.score)
        if label is not None and value is not None:
            group = groups[case.query.query]
            group.labels.append(label)
            group.predicted.append(opinion.score or metrics.grade_of(value))
            group.values.append(value)
    if not groups:
        return None
    graded = [(group, metrics.ndcg(group.values, group.labels)) for group in groups.values()]
    count = sum(len(group.labels) for group in groups.values())
    return {"n": count, **metrics.summary(graded, _grade_measures, resamples=_GRADE_RESAMPLES)}


def _grade_measures(graded: Sequence[tuple[_Graded, float | None]]) -> metrics.Measures:
    labels = [label for group, _ in graded for label in group.labels]
    values = [value for group, _ in graded for value in group.values]
    predicted = [grade for group, _ in graded for grade in group.predicted]
    gains = [gain for _, gain in graded if gain is not None]
    return {
        "spearman": metrics.spearman(values, labels),
        "quadratic_kappa": metrics.quadratic_kappa(predicted, labels),
        "ndcg10": fmean(gains) if gains else None,
    }
