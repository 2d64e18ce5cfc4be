"""How sure a count is: shares, differences of shares and ratios of counts, at 95 %.

Pure arithmetic after Wilson (1927) and Newcombe (1998, method 10), Fisher's exact test, the
conditional test of two Poisson counts, and Holm (1979) for many looks at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb, exp, inf, lgamma, log, sqrt
from typing import Annotated

from pydantic import WithJsonSchema

Z95 = 1.959963984540054
"""Normal quantile of a two-sided 95 % interval."""
LEVEL = 0.95
"""Of every interval here."""
Interval = Annotated[
    tuple[float, float],
    WithJsonSchema({"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}),
]
"""Lower and upper end; not `prefixItems`, which generators of clients read differently."""


def wilson(count: int, n: int) -> Interval | None:
    """The interval of a share; None of nothing."""
    if not n:
        return None
    share = count / n
    middle = share + Z95**2 / (2 * n)
    spread = Z95 * sqrt(share * (1 - share) / n + Z95**2 / (4 * n * n))
    scale = 1 + Z95**2 / n
    return max(0.0, (middle - spread) / scale), min(1.0, (middle + spread) / scale)


def share_difference(count: int, n: int, other: int, m: int) -> Interval | None:
    """The interval of `count / n - other / m`, from both Wilson intervals; None of nothing."""
    first, second = wilson(count, n), wilson(other, m)
    if first is None or second is None:
        return None
    share, rest = count / n, other / m
    down = sqrt((share - first[0]) ** 2 + (second[1] - rest) ** 2)
    up = sqrt((first[1] - share) ** 2 + (rest - second[0]) ** 2)
    return share - rest - down, share - rest + up


def fisher(count: int, n: int, other: int, m: int) -> float:
    """How often chance alone makes two shares of one whole differ as much: two-sided, exact."""
    total = count + other
    fewest, most = max(0, total - m), min(n, total)
    ways = [comb(n, some) * comb(m, total - some) for some in range(fewest, most + 1)]
    seen = ways[count - fewest]
    return sum(way for way in ways if way <= seen) / sum(ways)


def count_ratio(count: int, other: int) -> Interval | None:
    """The interval of `count / other`, two Poisson counts of equal exposure; None of nothing.

    The Wilson interval of the first's share of both, as odds; the upper end may be infinite.
    """
    share = wilson(count, count + other)
    if share is None:
        return None
    low, high = share
    return low / (1 - low), high / (1 - high) if other else inf


def split(count: int, other: int, share: float = 0.5) -> float:
    """How often two Poisson counts of one rate differ as much: exact.

    `share` is the first's of both times, between 0 and 1. Two-sided: the smaller tail twice.
    """
    total = count + other
    ways = [
        exp(
            lgamma(total + 1) - lgamma(some + 1) - lgamma(total - some + 1)
            + some * log(share) + (total - some) * log(1 - share)
        )
        for some in range(total + 1)
    ]  # fmt: skip
    return min(1.0, 2 * min(sum(ways[: count + 1]), sum(ways[count:])))


def usual_counts(other: int, share: float) -> tuple[int, int]:
    """Fewest and most of a Poisson count that the other one makes likely: 95 %, see above."""
    few = middle = round(other * share / (1 - share))
    most = middle
    while few and split(few - 1, other, share) >= 1 - LEVEL:
        few -= 1
    while split(most + 1, other, share) >= 1 - LEVEL:
        most += 1
    return few, most


def holm(chances: Sequence[float]) -> list[float]:
    """The same chances in the same order, corrected for how many there are."""
    corrected, least = [0.0] * len(chances), 0.0
    for rank, place in enumerate(sorted(range(len(chances)), key=chances.__getitem__)):
        least = max(least, min(1.0, (len(chances) - rank) * chances[place]))
        corrected[place] = least
    return corrected
