"""From answers and labels to a result: over all, by slice and by query."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import fmean, median
from typing import Any

from api.core.domain import Usage
from api.evaluation.labelled_items import LabelledItem, LabelledQuery
from api.evaluation.metrics import (
    LabelledVerdict,
    Measures,
    Tally,
    calibration,
    grade_of,
    intervals,
    measures,
    ndcg,
    quadratic_kappa,
    rounded,
    spearman,
    summed,
    tally,
    total,
)

# Measures that make no sense over a part of a page.
_OF_PAGES = ("pages", "yield_mae", "refetch_right")
_GRADE_RESAMPLES = 200


@dataclass(frozen=True, slots=True)
class Opinion:
    """What a judge or grader said about one item."""

    relevant: bool
    probability: float | None = None
    score: int | None = None
    """1 to 5, from a grader."""


@dataclass(frozen=True, slots=True)
class Answered:
    """One page as it was answered."""

    opinions: tuple[Opinion, ...]
    usage: Usage = Usage()
    seconds: float = 0.0
    """How long the answer took when it was given."""


@dataclass(frozen=True, slots=True)
class AnswerSheet:
    """One page's answer and where its items stand; None when it failed."""

    query: int
    start: int
    answered: Answered | None
    wasted: Usage = Usage()
    """What an answer cost that could not be used."""
    reason: str = ""
    """Why it failed."""


@dataclass(frozen=True, slots=True)
class EvalResult:
    """What one judge is worth on labelled queries; `as_json` is what is printed and compared."""

    judge: str
    overall: Mapping[str, Any]
    """Measures over all, with `intervals`, `ms_per_10`, `usd` (None when unknown), `tokens` and
    `degraded` (items without an answer, which enter no measure)."""
    families: Mapping[str, Mapping[str, Any]]
    sources: Mapping[str, Mapping[str, Any]]
    languages: Mapping[str, Mapping[str, Any]]
    mention: Mapping[str, Mapping[str, Any]]
    kinds: Mapping[str, Mapping[str, Any]]
    """By kind of item: how many, and how many of them were kept."""
    grades: Mapping[str, Any] | None
    """Graded items only: Spearman, quadratic kappa and nDCG@10; None without grades or scores."""
    calibration: tuple[tuple[int, float, float], ...]
    """Items, mean probability and share relevant, per tenth of probability."""
    queries: Mapping[str, Mapping[str, Any]]
    reasons: tuple[str, ...] = ()
    """Why pages failed."""
    page: int = 0
    about: bool = True

    def as_json(self) -> dict[str, Any]:
        """Plain values, rounded where they are only read."""
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
    """Count answers against labels; the same answers give the same figures."""
    cases = [
        _Case(sheet.query, queries[sheet.query], queries[sheet.query].items[place], opinion)
        for sheet in sheets
        if sheet.answered is not None
        for place, opinion in enumerate(sheet.answered.opinions, sheet.start)
    ]
    tallies = _tallies(cases, min_yield)

    def sliced(of: Callable[[_Case], str]) -> dict[str, dict[str, Any]]:
        parts: dict[str, list[_Case]] = defaultdict(list)
        for case in cases:
            parts[of(case)].append(case)
        return {name: _measured(_tallies(parts[name], min_yield)) for name in sorted(parts)}

    kinds: dict[str, list[bool]] = defaultdict(list)
    for case in cases:
        if case.item.kind:
            kinds[case.item.kind].append(case.opinion.relevant)
    families = {query.query: query.family for query in reversed(queries)}
    shown = ("n", "relevant", "kept", "precision", "recall", "f1", "mcc", "yield_mae")
    return EvalResult(
        judge,
        _measured(tallies) | _costs(queries, sheets),
        families=sliced(lambda case: case.query.family),
        sources=sliced(lambda case: case.query.source),
        languages=_without_pages(sliced(lambda case: case.item.language)),
        mention=_without_pages(sliced(lambda case: str(case.item.mention).lower())),
        kinds={
            kind: {"n": len(kept), "kept": sum(kept), "share": rounded(fmean(kept))}
            for kind, kept in sorted(kinds.items())
        },
        grades=_graded(cases),
        calibration=tuple(calibration(total(tallies.values()))),
        queries={
            name: {
                "family": families[name],
                **{key: rounded(measures(counted)[key]) for key in shown},
                "tally": list(counted),
            }
            for name, counted in tallies.items()
        },
    )


def _tallies(cases: Iterable[_Case], min_yield: float) -> dict[str, Tally]:
    """One tally per query text: lines that ask the same are drawn together."""
    lines: dict[int, list[LabelledVerdict]] = defaultdict(list)
    names: dict[int, str] = {}
    for case in cases:
        names[case.number] = case.query.query
        lines[case.number].append(
            LabelledVerdict(case.item.relevant, case.opinion.relevant, case.opinion.probability)
        )
    grouped: dict[str, list[Tally]] = defaultdict(list)
    for number, answers in lines.items():
        grouped[names[number]].append(tally(answers, min_yield))
    return {name: total(parts) for name, parts in grouped.items()}


def _measured(tallies: Mapping[str, Tally]) -> dict[str, Any]:
    rows = list(tallies.values())
    spread = intervals(rows, summed)
    counts = {"n", "relevant", "kept", "pages"}
    shown: dict[str, Any] = {
        name: int(value or 0) if name in counts else rounded(value)
        for name, value in measures(total(rows)).items()
    }
    shown["intervals"] = {
        name: [rounded(low), rounded(high)]
        for name, (low, high) in spread.items()
        if name not in counts
    }
    return shown


def _without_pages(slices: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    for part in slices.values():
        for name in _OF_PAGES:
            part.pop(name)
            part["intervals"].pop(name, None)
    return slices


def _costs(queries: Sequence[LabelledQuery], sheets: Sequence[AnswerSheet]) -> dict[str, Any]:
    answered = [sheet.answered for sheet in sheets if sheet.answered is not None]
    wasted = sum((sheet.wasted for sheet in sheets), Usage())
    usage = sum((page.usage for page in answered), wasted)
    times = [page.seconds / len(page.opinions) * 10_000 for page in answered]
    given = sum(len(page.opinions) for page in answered)
    return {
        "ms_per_10": round(median(times), 2),
        "usd": None if usage.usd is None else round(usage.usd, 6),
        "tokens": usage.input_tokens + usage.output_tokens,
        "degraded": sum(len(query.items) for query in queries) - given,
    }


@dataclass(frozen=True, slots=True)
class _Graded:
    """The graded items of one query: labels, predicted grades, and the values they come from."""

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
            group.predicted.append(opinion.score or grade_of(value))
            group.values.append(value)
    if not groups:
        return None
    graded = [(group, ndcg(group.values, group.labels)) for group in groups.values()]
    spread = intervals(graded, _grade_measures, resamples=_GRADE_RESAMPLES)
    return {
        "n": sum(len(group.labels) for group in groups.values()),
        **{name: rounded(value) for name, value in _grade_measures(graded).items()},
        "intervals": {name: [rounded(end) for end in ends] for name, ends in spread.items()},
    }


def _grade_measures(graded: Sequence[tuple[_Graded, float | None]]) -> Measures:
    labels = [label for group, _ in graded for label in group.labels]
    predicted = [grade for group, _ in graded for grade in group.predicted]
    gains = [gain for _, gain in graded if gain is not None]
    return {
        "spearman": spearman([value for group, _ in graded for value in group.values], labels),
        "quadratic_kappa": quadratic_kappa(predicted, labels),
        "ndcg10": fmean(gains) if gains else None,
    }
