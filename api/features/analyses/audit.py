"""How right the gate was, estimated from some of its items that a person or a second judge read.

Items are drawn by strata of the judge's probability. What nobody read stays uncertain: of every
stratum there is a distribution over how many relevant items it holds (beta-binomial, over the items
that were not read), and the figures are means and 95 % intervals of sums of these.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import exp, lgamma
from random import Random
from statistics import fmean

STRATA = 2
"""Parts of equal size from which items are drawn, the less and the more probable ones."""
PRIOR, LEAST = 1.0, 0.03
"""How many read items the judge's mean probability counts for in a stratum, and how many a verdict
that it holds impossible counts for."""
TAIL = 0.025
"""Probability that is left out on each side of an interval."""


@dataclass(frozen=True, slots=True)
class UncertainFigure:
    """A figure that is not known for certain; the truth is within it on 95 of 100 pages."""

    value: float
    low: float
    high: float


def audit_sample(probabilities: Mapping[str, float], count: int, seed: int = 0) -> list[str]:
    """The keys of `count` items to read, as many of each stratum; the same for the same seed."""
    strata = [list(stratum) for stratum in _strata(probabilities)]
    random = Random(seed)  # noqa: S311 # nosec B311 (a sample, no secret)
    for stratum in strata:
        random.shuffle(stratum)
    drawn: list[str] = []
    while len(drawn) < count and any(strata):
        drawn += [stratum.pop() for stratum in strata if stratum]
    return drawn[:count]


def missed(dropped: Mapping[str, float], read: Mapping[str, bool]) -> UncertainFigure:
    """How many relevant items the gate dropped.

    Args:
        dropped: the judge's probability of each dropped item, by key.
        read: whether an item is relevant, by key, of those that somebody read.
    """
    return _summary(_relevant(dropped, read))


def precision(kept: Mapping[str, float], read: Mapping[str, bool]) -> UncertainFigure | None:
    """Share of the kept items that is relevant; None when none was kept."""
    if not kept:
        return None
    return _summary((count / len(kept), chance) for count, chance in _relevant(kept, read))


def recall(kept: Mapping[str, float], dropped: Mapping[str, float], read: Mapping[str, bool]) -> UncertainFigure | None:
    """Share of the relevant items that was kept; None when there may be none at all."""
    shares = [
        (
            kept_count / (kept_count + lost_count) if kept_count + lost_count else None,
            chance * other,
        )
        for kept_count, chance in _relevant(kept, read)
        for lost_count, other in _relevant(dropped, read)
    ]
    known = [(share, chance) for share, chance in shares if share is not None]
    total = sum(chance for _, chance in known)
    return _summary((share, chance / total) for share, chance in known) if total else None


def _strata(probabilities: Mapping[str, float]) -> list[Sequence[str]]:
    ordered = sorted(probabilities, key=lambda key: (probabilities[key], key))
    bounds = [len(ordered) * part // STRATA for part in range(STRATA + 1)]
    return [ordered[low:high] for low, high in pairwise(bounds) if low < high]


def _relevant(probabilities: Mapping[str, float], read: Mapping[str, bool]) -> list[tuple[int, float]]:
    """The possible numbers of relevant items with their chances."""
    read_relevant, chances = 0, [1.0]
    for stratum in _strata(probabilities):
        answers = [read[key] for key in stratum if key in read]
        likely = PRIOR * fmean(probabilities[key] for key in stratum)
        relevant = sum(answers)
        unread = _beta_binomial(
            len(stratum) - len(answers),
            LEAST + likely + relevant,
            LEAST + PRIOR - likely + len(answers) - relevant,
        )
        read_relevant += relevant
        chances = _sum_of(chances, unread)
    return [(read_relevant + more, chance) for more, chance in enumerate(chances)]


def _beta_binomial(size: int, yes: float, no: float) -> list[float]:
    scale = lgamma(size + 1) - lgamma(yes) - lgamma(no) + lgamma(yes + no) - lgamma(size + yes + no)
    return [
        exp(
            scale + lgamma(count + yes) + lgamma(size - count + no)
            - lgamma(count + 1) - lgamma(size - count + 1)
        )
        for count in range(size + 1)
    ]  # fmt: skip


def _sum_of(first: Sequence[float], second: Sequence[float]) -> list[float]:
    """Chances of the sum of two independent counts."""
    chances = [0.0] * (len(first) + len(second) - 1)
    for at, chance in enumerate(first):
        for more, other in enumerate(second):
            chances[at + more] += chance * other
    return chances


def _summary(distribution: Iterable[tuple[float, float]]) -> UncertainFigure:
    """Mean and interval of values with their chances, of which the sum is 1."""
    values, chances = zip(*sorted(distribution), strict=True)
    below = list(accumulate(chances))
    # the last place also where rounding leaves the sum just short of what is sought
    low = min(bisect_left(below, TAIL), len(values) - 1)
    high = min(bisect_left(below, 1 - TAIL), len(values) - 1)
    mean = sum(value * chance for value, chance in zip(values, chances, strict=True))
    return UncertainFigure(mean, values[low], values[high])
