"""Kappas, ranks and gains: known values, and what must hold for any lists."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.evaluation.metrics import grade_of, ndcg, quadratic_kappa, spearman
from label_agreement import cohen_kappa

GRADES = st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=1, max_size=30)


def test_cohens_kappa_takes_chance_away() -> None:
    """Twenty of fifty yes together, fifteen no together: the textbook's 0.4."""
    one = [1] * 25 + [0] * 25
    other = [1] * 20 + [0] * 5 + [1] * 10 + [0] * 15

    assert cohen_kappa(one, other) == pytest.approx(0.4)
    assert cohen_kappa(["a", "b"], ["a", "b"]) == 1
    assert cohen_kappa([], []) is None
    assert cohen_kappa(["a"], ["a"]) is None


def test_quadratic_kappa_forgives_the_near_miss() -> None:
    """Off by one costs less than off by four; without spread there is no kappa."""
    near, far = quadratic_kappa([1, 5, 5], [2, 5, 5]), quadratic_kappa([1, 5, 5], [5, 5, 5])

    assert near == pytest.approx(1 - 1 * 3 / (1 + 2 * 16 + 2 * 9))
    assert far == 0
    assert quadratic_kappa([3, 3], [3, 3]) is None


@given(GRADES)
def test_kappas_are_symmetric_and_at_most_one(pairs: list[tuple[int, int]]) -> None:
    """Who is called the first rater does not matter."""
    one, other = [a for a, _ in pairs], [b for _, b in pairs]
    for kappa in (cohen_kappa, quadratic_kappa):
        value, swapped = kappa(one, other), kappa(other, one)
        assert (value is None) == (swapped is None)
        if value is not None:
            assert value == pytest.approx(swapped)
            assert value <= 1 + 1e-9


def test_spearman_shares_the_rank_of_ties() -> None:
    """A known value with ties, full order and full disorder."""
    assert spearman([1, 2, 2, 4], [1, 3, 2, 4]) == pytest.approx(4.5 / (4.5 * 5) ** 0.5)
    assert spearman([0.1, 0.2, 0.9], [1, 3, 5]) == pytest.approx(1)
    assert spearman([3, 2, 1], [1, 2, 3]) == pytest.approx(-1)


def test_spearman_without_spread_is_unknown_and_lengths_must_match() -> None:
    """A constant has no order; lists of different lengths are a mistake of the caller."""
    assert spearman([1, 1], [1, 2]) is None
    assert spearman([], []) is None
    with pytest.raises(ValueError, match="same number of data points"):
        spearman([1, 2, 3], [1, 2])


@given(st.lists(st.integers(-50, 50), min_size=2, max_size=30))
def test_spearman_sees_order_alone(values: list[int]) -> None:
    """Stretching one side changes nothing."""
    value = spearman(values, list(range(len(values))))
    stretched = [v**3 for v in values]
    assert value == (None if value is None else pytest.approx(spearman(stretched, range(len(values)))))


def test_ndcg_rewards_the_best_first() -> None:
    """The best order is 1, the worst is less, and nothing to find is unknown."""
    assert ndcg([3, 2, 1], [5, 3, 1]) == pytest.approx(1)
    assert 0 < (ndcg([1, 2, 3], [5, 3, 1]) or 0) < 1
    assert ndcg([1, 2], [1, 1]) is None


def test_ndcg_gives_ties_their_mean() -> None:
    """A judge that says the same of all gets the same whatever the file's order."""
    assert ndcg([1, 1, 1], [5, 1, 1]) == ndcg([1, 1, 1], [1, 1, 5])
    assert ndcg([0.5] * 20, [5] * 10 + [1] * 10) == pytest.approx(0.5)


def test_ndcg_looks_at_the_first_ten() -> None:
    """What stands eleventh gains nothing."""
    scores = [float(n) for n in range(11)]
    assert ndcg(scores, [5] + [1] * 10) == 0


@pytest.mark.parametrize(
    ("probability", "grade"), [(0, 1), (0.24, 1), (0.25, 2), (0.5, 3), (0.6, 4), (0.75, 5), (1, 5)]
)
def test_a_probability_becomes_a_grade(probability: float, grade: int) -> None:
    """The cuts belong to the grade above."""
    assert grade_of(probability) == grade
