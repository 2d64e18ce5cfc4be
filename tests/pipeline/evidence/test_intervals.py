"""Intervals and chances against published values."""

from __future__ import annotations

from math import comb, inf

import pytest

from api.pipeline.evidence.figures import count_ratio, fisher, holm, share_difference, split, usual_counts, wilson


@pytest.mark.parametrize(
    ("count", "n", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611)],
)
def test_wilson(count: int, n: int, low: float, high: float) -> None:
    """Newcombe 1998a, table I, method 3."""
    assert wilson(count, n) == pytest.approx((low, high), abs=5e-5)


@pytest.mark.parametrize(
    ("first", "second", "low", "high"),
    [
        ((56, 70), (48, 80), 0.0524, 0.3339),
        ((9, 10), (3, 10), 0.1705, 0.8090),
        ((6, 7), (2, 7), 0.0582, 0.8062),
        ((5, 56), (0, 29), -0.0381, 0.1926),
        ((0, 10), (0, 20), -0.1611, 0.2775),
        ((10, 10), (0, 20), 0.6791, 1.0),
    ],
)
def test_a_difference_of_shares(first: tuple[int, int], second: tuple[int, int], low: float, high: float) -> None:
    """Newcombe 1998b, table II, method 10; turned round it changes its sign."""
    assert share_difference(*first, *second) == pytest.approx((low, high), abs=5e-5)
    assert share_difference(*second, *first) == pytest.approx((-high, -low), abs=5e-5)


@pytest.mark.parametrize(
    ("first", "second", "chance"),
    [
        ((3, 4), (1, 4), 0.4857),  # the lady tasting tea
        ((1, 12), (9, 12), 0.0028),
        ((7, 36), (0, 38), 0.0046),
        ((0, 5), (0, 9), 1.0),
    ],
)
def test_fisher(first: tuple[int, int], second: tuple[int, int], chance: float) -> None:
    """The same from either side; what nobody says differs for certain in nothing."""
    assert fisher(*first, *second) == pytest.approx(chance, abs=5e-5)
    assert fisher(*second, *first) == pytest.approx(chance, abs=5e-5)


def test_a_ratio_of_counts() -> None:
    """Ten to five: the odds of the Wilson interval of 10 of 15; no upper end over none."""
    low, high = wilson(10, 15) or (0.0, 0.0)
    assert count_ratio(10, 5) == pytest.approx((low / (1 - low), high / (1 - high)))
    assert count_ratio(10, 5) == pytest.approx((0.7156, 5.589), abs=5e-3)
    lower, upper = count_ratio(6, 0) or (0.0, 0.0)
    assert lower == pytest.approx(1.562, abs=1e-3)
    assert upper == inf
    assert (count_ratio(0, 6) or (1.0, 0.0))[0] == pytest.approx(0)


@pytest.mark.parametrize(("count", "other", "chance"), [(2, 8, 0.1094), (5, 10, 0.3018), (0, 6, 0.03125), (3, 3, 1.0)])
def test_a_split_of_equal_times(count: int, other: int, chance: float) -> None:
    """The exact binomial test of one half."""
    assert split(count, other) == pytest.approx(chance, abs=5e-5)
    assert split(other, count) == pytest.approx(chance, abs=5e-5)


def test_holm() -> None:
    """As R's `p.adjust` has it: in the given order, never less than a smaller one's, at most 1."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.6]) == [1.0, 1.0]
    assert holm([]) == []


def test_nothing_has_no_interval() -> None:
    """Of none nobody knows anything."""
    assert wilson(0, 0) is None
    assert share_difference(0, 0, 1, 2) is None
    assert share_difference(1, 2, 0, 0) is None
    assert count_ratio(0, 0) is None


@pytest.mark.parametrize(("count", "other"), [(0, 0), (3, 9), (20, 8), (150, 160)])
def test_a_split_counts_the_ways(count: int, other: int) -> None:
    """Half of the time each: so many of all ways, exactly."""
    total = count + other
    ways = sum(comb(total, some) for some in range(min(count, other) + 1))
    assert split(count, other) == pytest.approx(min(1.0, 2 * ways / 2**total))


def test_a_split_of_unequal_times() -> None:
    """Przyborowski and Wilenski (1940): by the binomial's own tail."""
    tail = sum(comb(22, some) * (1 / 7) ** some * (6 / 7) ** (22 - some) for some in range(10, 23))
    assert split(10, 12, 1 / 7) == pytest.approx(2 * tail)


def test_usual_counts_are_those_that_chance_explains() -> None:
    """Thirty in six times as long."""
    few, most = usual_counts(30, 1 / 7)
    assert (few, most) == (1, 11)
    assert split(few - 1, 30, 1 / 7) < 0.05 <= split(few, 30, 1 / 7)
    assert split(most + 1, 30, 1 / 7) < 0.05 <= split(most, 30, 1 / 7)
    assert usual_counts(0, 0.5) == (0, 5)
