"""How far two opinions agree: ranks, kappas and the order of a list."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Hashable, Sequence
from itertools import groupby
from math import log2, sqrt

GRADE_CUTS = (0.25, 0.42, 0.58, 0.75)
"""Probabilities from which a judge's opinion counts as grade 2, 3, 4 and 5."""


def grade_of(probability: float) -> int:
    """A probability as a grade from 1 to 5; good for sorting, not for showing as a rating."""
    return 1 + bisect_right(GRADE_CUTS, probability)


def cohen_kappa(one: Sequence[Hashable], other: Sequence[Hashable]) -> float | None:
    """Agreement of two labellings beyond chance; None when chance alone explains all."""
    if not one:
        return None
    n = len(one)
    agreed = sum(a == b for a, b in zip(one, other, strict=True)) / n
    mine, theirs = Counter(one), Counter(other)
    chance = sum(count * theirs[label] for label, count in mine.items()) / n**2
    return None if chance == 1 else (agreed - chance) / (1 - chance)


def quadratic_kappa(one: Sequence[int], other: Sequence[int]) -> float | None:
    """Agreement of two gradings, a distance counting by its square; None without any spread."""
    pairs = list(zip(one, other, strict=True))
    seen = sum((a - b) ** 2 for a, b in pairs) * len(pairs)
    mine, theirs = Counter(one), Counter(other)
    chance = sum((a - b) ** 2 * m * n for a, m in mine.items() for b, n in theirs.items())
    return 1 - seen / chance if chance else None


def spearman(one: Sequence[float], other: Sequence[float]) -> float | None:
    """Rank correlation, ties sharing their mean rank; None when a side has no spread."""
    if len(one) != len(other):
        raise ValueError(f"{len(one)} values against {len(other)}")
    left, right = _ranks(one), _ranks(other)
    middle = (len(one) + 1) / 2
    spread = sqrt(
        sum((rank - middle) ** 2 for rank in left) * sum((rank - middle) ** 2 for rank in right)
    )
    shared = sum((a - middle) * (b - middle) for a, b in zip(left, right, strict=True))
    return shared / spread if spread else None


def ndcg(scores: Sequence[float], grades: Sequence[int], depth: int = 10) -> float | None:
    """Normalised discounted cumulative gain of the first `depth` by score.

    A grade gains 2^(grade - 1) - 1, so grade 1 gains nothing; tied scores share their mean gain, so
    the order of a file cannot help. None when no grade gains anything.
    """
    gains = [2.0 ** (grade - 1) - 1 for grade in grades]
    best = _discounted(sorted(gains, reverse=True), depth)
    if not best:
        return None
    ordered: list[float] = []
    pairs = sorted(zip(scores, gains, strict=True), key=lambda pair: -pair[0])
    for _, tied in groupby(pairs, key=lambda pair: pair[0]):
        group = [gain for _, gain in tied]
        ordered += [sum(group) / len(group)] * len(group)
    return _discounted(ordered, depth) / best


def _discounted(gains: Sequence[float], depth: int) -> float:
    return sum(gain / log2(place + 1) for place, gain in enumerate(gains[:depth], 1))


def _ranks(values: Sequence[float]) -> list[float]:
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks = [0.0] * len(values)
    place = 0
    for _, tied in groupby(order, key=values.__getitem__):
        group = list(tied)
        for index in group:
            ranks[index] = place + (len(group) + 1) / 2
        place += len(group)
    return ranks
