"""Measures of verdicts and grades, their confidence intervals, and the comparison of two results.

Pure functions over counts that add up (tallies) and over lists.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import log2, sqrt
from random import Random
from statistics import correlation, fmean, quantiles
from typing import Any, TypeVar

from api.errors import UsageError

BINS = 10  # equal intervals of probability in which calibration is counted
GRADE_CUTS = (0.25, 0.42, 0.58, 0.75)
"""Probabilities from which a judge's opinion counts as grade 2, 3, 4 and 5."""
RESAMPLES = 1000
SEED = 20
Tally = tuple[float, ...]  # counts of one or more pages; see `tally` for the columns
Measures = dict[str, float | None]
"""A measure is None where it is not defined, for example precision when nothing was kept."""
Interval = tuple[float, float]
T = TypeVar("T")
K = TypeVar("K", bound=Hashable)
# Columns of a tally before its bins.
_PLAIN = 9


@dataclass(frozen=True, slots=True)
class LabelledVerdict:
    """One verdict and its label (`truth`)."""

    truth: bool
    relevant: bool
    probability: float | None = None


def confusion(tp: float = 0, fp: float = 0, fn: float = 0, tn: float = 0) -> Measures:
    """Counted verdicts against labels; `kept_irrelevant` is the share of irrelevant ones kept.

    `mcc` (Matthews correlation) is 0 when all verdicts are the same, None when all labels are.
    """
    n, relevant, kept, irrelevant = tp + fp + fn + tn, tp + fn, tp + fp, fp + tn
    recall, wrong, mcc, kappa = _share(tp, relevant), _share(fp, irrelevant), None, None
    if relevant and irrelevant:
        scale = sqrt(kept * relevant * irrelevant * (tn + fn))
        mcc = (tp * tn - fp * fn) / scale if scale else 0.0
    if n:
        chance = (kept * relevant + (n - kept) * (n - relevant)) / n**2
        kappa = None if chance == 1 else ((tp + tn) / n - chance) / (1 - chance)
    return {
        "n": n, "relevant": relevant, "kept": kept, "precision": _share(tp, kept),
        "recall": recall, "f1": _share(2 * tp, 2 * tp + fp + fn),
        "balanced_accuracy": None if recall is None or wrong is None else (recall + 1 - wrong) / 2,
        "mcc": mcc, "kappa": kappa, "kept_irrelevant": wrong,
    }  # fmt: skip


def tally(answers: Sequence[LabelledVerdict], min_yield: float = 0.5) -> Tally:
    """Count one page: its verdicts, its yield, its refetch decision and its calibration bins.

    Columns: tp, fp, fn, tn, pages, absolute yield error, refetch decisions right, verdicts with a
    probability, their squared errors; then per bin verdicts, sum of probabilities, relevant ones.
    """
    if not answers:
        return (0.0,) * (_PLAIN + 3 * BINS)
    counts = [0.0, 0.0, 0.0, 0.0]
    squared, bins = 0.0, [0.0] * (3 * BINS)
    for answer in answers:
        counts[2 * (not answer.relevant) + (not answer.truth)] += 1
        if (p := answer.probability) is not None:
            at = 3 * min(int(p * BINS), BINS - 1)
            bins[at], bins[at + 1] = bins[at] + 1, bins[at + 1] + p
            bins[at + 2] += answer.truth
            squared += (p - answer.truth) ** 2
    judged = sum(answer.relevant for answer in answers) / len(answers)
    true = sum(answer.truth for answer in answers) / len(answers)
    right = float((judged < min_yield) == (true < min_yield))
    return (*counts, 1.0, abs(judged - true), right, sum(bins[::3]), squared, *bins)


def total(tallies: Iterable[Tally]) -> Tally:
    """Sum of the tallies."""
    return tuple(map(sum, zip(*tallies, strict=True))) or tally(())


def measures(counted: Tally) -> Measures:
    """Every measure of a tally, by name."""
    pages, yield_error, right, placed, squared = counted[4:_PLAIN]
    gap = sum(abs(stated - true) for _, stated, true in _bins(counted))
    return {
        **confusion(*counted[:4]),
        "pages": pages, "yield_mae": _share(yield_error, pages),
        "refetch_right": _share(right, pages), "ece": _share(gap, placed),
        "brier": _share(squared, placed),
    }  # fmt: skip


def calibration(counted: Tally) -> list[tuple[int, float, float]]:
    """For each bin with verdicts: their number, mean probability, and relevant share."""
    return [(int(n), stated / n, true / n) for n, stated, true in _bins(counted) if n]


def differences(counted: Tally) -> Measures:
    """Measures of a first judge minus those of a second, from their two tallies concatenated."""
    half = len(counted) // 2
    first, second = measures(counted[:half]), measures(counted[half:])
    return {
        name: None if mine is None or (other := second[name]) is None else mine - other for name, mine in first.items()
    }


def intervals(
    groups: Sequence[T], measure: Callable[[Sequence[T]], Mapping[str, float | None]], *,
    resamples: int = RESAMPLES, seed: int = SEED,
) -> dict[str, Interval]:  # fmt: skip
    """95 % intervals of every measure, drawing whole groups (queries) with replacement.

    Without measures that are undefined in some resample; empty for fewer than two groups.
    """
    if len(groups) < 2:
        return {}
    # statistics, not secrets
    draw = Random(seed)  # noqa: S311  # nosec B311
    drawn = [measure(draw.choices(groups, k=len(groups))) for _ in range(resamples)]
    ends = {}
    for name in drawn[0]:
        values = [value for sample in drawn if (value := sample[name]) is not None]
        if len(values) == resamples:
            cuts = quantiles(values, n=40, method="inclusive")
            ends[name] = (cuts[0], cuts[-1])
    return ends


def summed(tallies: Sequence[Tally]) -> Measures:
    """The measures of the sum of several tallies."""
    return measures(total(tallies))


def summary(
    groups: Sequence[T], measure: Callable[[Sequence[T]], Mapping[str, float | None]],
    counts: Sequence[str] = (), *, resamples: int = RESAMPLES,
) -> dict[str, Any]:  # fmt: skip
    """Every measure, rounded, and under `intervals` those of the measures that are no `counts`."""
    drawn = intervals(groups, measure, resamples=resamples)
    figures: dict[str, Any] = {
        name: int(value or 0) if name in counts else rounded(value) for name, value in measure(groups).items()
    }
    ends = {name: [*map(rounded, both)] for name, both in drawn.items() if name not in counts}
    return figures | {"intervals": ends}


def grouped(rows: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """The rows by key; keys in order of first appearance."""
    groups: dict[K, list[T]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups


def rounded(value: float | None) -> float | None:
    """A figure to four decimals, as in results."""
    return None if value is None else round(value, 4)


def grade_of(probability: float) -> int:
    """A probability as a grade from 1 to 5, for measures of order; not a rating to show."""
    return 1 + bisect_right(GRADE_CUTS, probability)


def quadratic_kappa(mine: Sequence[int], theirs: Sequence[int]) -> float | None:
    """Agreement of two gradings with quadratic weights; None without any spread."""
    distance = sum((a - b) ** 2 for a, b in zip(mine, theirs, strict=True)) * len(mine)
    grades = Counter(theirs)
    chance = sum((a - b) ** 2 * m * n for a, m in Counter(mine).items() for b, n in grades.items())
    return 1 - distance / chance if chance else None


def spearman(mine: Sequence[float], theirs: Sequence[float]) -> float | None:
    """Rank correlation; tied values share their mean rank. None when a side has no spread."""
    if len(set(mine)) < 2 or len(set(theirs)) < 2:
        return None
    return correlation(_ranks(mine), _ranks(theirs))


def ndcg(scores: Sequence[float], grades: Sequence[int], depth: int = 10) -> float | None:
    """Normalised discounted cumulative gain of the first `depth` by score.

    A grade gains 2^(grade - 1) - 1, so grade 1 gains nothing; tied scores share their mean gain, so
    the order of a file cannot help. None when no grade gains anything.
    """
    gains = [2.0 ** (grade - 1) - 1 for grade in grades]
    best = discounted(sorted(gains, reverse=True), depth)
    if not best:
        return None
    tied: dict[float, list[float]] = defaultdict(list)
    for score, gain in zip(scores, gains, strict=True):
        tied[score].append(gain)
    return discounted([fmean(tied[score]) for score in sorted(scores)[::-1]], depth) / best


def discounted(gains: Sequence[float], depth: int) -> float:
    """The sum of the first `depth` gains, each divided by log2 of its rank plus one."""
    return sum(gain / log2(rank + 1) for rank, gain in enumerate(gains[:depth], 1))


def _ranks(values: Sequence[float]) -> list[float]:
    counts = Counter(values)
    ordered = sorted(counts)
    last = dict(zip(ordered, accumulate(counts[value] for value in ordered), strict=True))
    return [last[value] - (counts[value] - 1) / 2 for value in values]


def _bins(counted: Tally) -> list[tuple[float, float, float]]:
    bins = counted[_PLAIN:]
    return list(zip(bins[::3], bins[1::3], bins[2::3], strict=True))


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None


_WIDTH = len(tally(()))
_COMPARED = (
    "precision", "recall", "f1", "balanced_accuracy", "mcc", "kept_irrelevant", "yield_mae",
    "refetch_right", "ece",
)  # fmt: skip


def compare(mine: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Differences (mine minus other) with intervals, over the queries in both results.

    A query counts if both answered as many relevant and irrelevant items of it (else it is
    `changed`), so that no judge gains by leaving out the hard ones. `unpaired` and `missing` count
    queries of only one result. Raises `UsageError`.
    """
    try:
        shared = {
            name: (row["family"], _tally_of(row), _tally_of(other["queries"][name]))
            for name, row in mine["queries"].items()
            if name in other["queries"]
        }
        judges = mine["judge"], other["judge"]
        alone, missing = (len(part["queries"]) - len(shared) for part in (mine, other))
    except (KeyError, TypeError, ValueError):
        raise UsageError("the result to compare with is malformed; write it with `--format json`") from None
    paired = [
        (family, first + second) for family, first, second in shared.values() if _labels(first) == _labels(second)
    ]
    if not paired:
        raise UsageError("the two results share no query with the same items; evaluate both on the same files")
    return {
        "judge": judges[0], "other": judges[1], "queries": len(paired), "unpaired": alone,
        "missing": missing, "changed": len(shared) - len(paired),
        "overall": _differences_with_intervals([both for _, both in paired]),
        "families": {
            name: _differences_with_intervals([both for family, both in paired if family == name])
            for name in sorted({family for family, _ in paired})
        },
    }  # fmt: skip


def is_regression(comparison: Mapping[str, Any], threshold: float) -> bool:
    """Whether the whole interval of the MCC's difference is below `threshold` (0 or less)."""
    high = comparison["overall"]["mcc"]["high"]
    if high is None:
        raise UsageError(
            "there is no interval to decide by; it takes several queries, each with relevant and irrelevant items"
        )
    return bool(high < threshold)


def _tally_of(row: Mapping[str, Any]) -> Tally:
    values = tuple(float(value) for value in row["tally"])
    if len(values) != _WIDTH:
        raise ValueError("columns are missing")
    return values


def _labels(counted: Tally) -> tuple[float, float]:
    right, wrongly_kept, missed, dropped = counted[:4]
    return right + missed, wrongly_kept + dropped


def _differences_with_intervals(both: Sequence[Tally]) -> dict[str, dict[str, float | None]]:
    figures = summary(both, lambda drawn: differences(total(drawn)))
    shown = {}
    for name in _COMPARED:
        low, high = figures["intervals"].get(name, (None, None))
        shown[name] = {"difference": figures[name], "low": low, "high": high}
    return shown
