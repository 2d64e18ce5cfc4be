"""Measures: known values, and what must hold for any answers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.evaluation.metrics import (
    LabelledVerdict,
    Measures,
    Tally,
    calibration,
    confusion,
    differences,
    intervals,
    measures,
    summed,
    tally,
    total,
)

ANSWERS = st.lists(
    st.builds(
        LabelledVerdict,
        truth=st.booleans(),
        relevant=st.booleans(),
        probability=st.none() | st.floats(0, 1),
    ),
    max_size=30,
)


def said(tp: int = 0, fp: int = 0, fn: int = 0, tn: int = 0) -> list[LabelledVerdict]:
    """So many answers of each kind."""
    kinds = ((True, True, tp), (False, True, fp), (True, False, fn), (False, False, tn))
    return [LabelledVerdict(truth, kept) for truth, kept, count in kinds for _ in range(count)]


def test_a_known_table_gives_known_measures() -> None:
    """Ninety verdicts, worked out by hand."""
    known = confusion(tp=40, fp=10, fn=20, tn=20)

    assert (known["n"], known["relevant"], known["kept"]) == (90, 60, 50)
    assert known["precision"] == 0.8
    assert known["recall"] == pytest.approx(2 / 3)
    assert known["f1"] == pytest.approx(8 / 11)
    assert known["kept_irrelevant"] == pytest.approx(1 / 3)
    assert known["balanced_accuracy"] == pytest.approx(2 / 3)
    assert known["mcc"] == pytest.approx(600 / math.sqrt(50 * 60 * 30 * 40))
    assert known["kappa"] == pytest.approx((2 / 3 - 42 / 81) / (1 - 42 / 81))


def test_what_is_not_defined_is_none() -> None:
    """Without the class or the verdict that a measure is about there is no number."""
    nothing, kept_none, all_relevant = confusion(), confusion(fn=2, tn=3), confusion(tp=3, fn=1)

    assert {nothing[name] for name in ("precision", "recall", "f1", "mcc", "kappa")} == {None}
    assert [kept_none[name] for name in ("precision", "recall", "mcc")] == [None, 0, 0]
    assert (all_relevant["balanced_accuracy"], all_relevant["mcc"]) == (None, None)
    assert confusion(tp=4)["kappa"] is None


def test_a_page_gives_its_yield_error_and_refetch_decision() -> None:
    """Keeping 6 of 10 where 4 are relevant is 0.2 off and forgets to fetch again."""
    page = measures(tally(said(tp=4, fp=2, tn=4), min_yield=0.5))

    assert page["yield_mae"] == pytest.approx(0.2)
    assert page["refetch_right"] == 0
    assert measures(tally(said(tp=4, fp=2, tn=4), min_yield=0.3))["refetch_right"] == 1


def test_yield_error_is_the_mean_over_pages_not_over_items() -> None:
    """A page of two counts as much as a page of twenty."""
    both = [tally(said(tp=1, fp=1)), tally(said(tp=10, tn=10))]

    assert summed(both)["yield_mae"] == pytest.approx(0.25)
    assert summed(both)["pages"] == 2


def test_calibration_compares_what_was_said_with_what_was_so() -> None:
    """Two of four at 0.9 are relevant and none of four at 0.1: ECE 0.25, Brier 0.21."""
    answers = [LabelledVerdict(n < 2, True, 0.9) for n in range(4)]
    answers += [LabelledVerdict(False, False, 0.1) for _ in range(4)]
    counted = tally(answers)

    assert measures(counted)["ece"] == pytest.approx((0.4 * 4 + 0.1 * 4) / 8)
    assert measures(counted)["brier"] == pytest.approx((2 * 0.01 + 2 * 0.81 + 4 * 0.01) / 8)
    low, high = calibration(counted)
    assert low == pytest.approx((4, 0.1, 0))
    assert high == pytest.approx((4, 0.9, 0.5))


def test_certainty_has_a_bin() -> None:
    """A probability of exactly 1 falls into the last bin."""
    assert calibration(tally([LabelledVerdict(True, True, 1.0)])) == [(1, 1.0, 1.0)]


def test_a_judge_without_probabilities_has_no_calibration() -> None:
    """ECE and Brier are unknown, not zero."""
    counted = tally(said(tp=1, tn=1))

    assert (measures(counted)["ece"], measures(counted)["brier"]) == (None, None)
    assert calibration(counted) == []


@given(ANSWERS)
def test_measures_stay_within_their_bounds(answers: list[LabelledVerdict]) -> None:
    """Shares lie in 0 to 1, correlations in -1 to 1."""
    found = measures(tally(answers))
    signed = {"mcc", "kappa"}

    for name, value in found.items():
        if value is not None and name not in {"n", "relevant", "kept", "pages"}:
            assert (-1 if name in signed else 0) - 1e-9 <= value <= 1 + 1e-9, name
    assert found["n"] == len(answers)


@given(ANSWERS, ANSWERS)
def test_tallies_add_up(one: list[LabelledVerdict], other: list[LabelledVerdict]) -> None:
    """Counting two pages apart and adding gives the verdict measures of both together."""
    apart, together = summed([tally(one), tally(other)]), measures(tally(one + other))

    for name in ("n", "precision", "recall", "f1", "mcc", "kappa", "ece", "brier"):
        assert apart[name] == pytest.approx(together[name], abs=1e-9), name


@given(ANSWERS)
def test_a_perfect_judge_is_perfect(answers: list[LabelledVerdict]) -> None:
    """Verdicts equal to the labels give 1 wherever a measure is defined."""
    right = [LabelledVerdict(answer.truth, answer.truth) for answer in answers]
    found = measures(tally(right))

    assert {found[name] for name in ("precision", "recall", "f1", "mcc", "kappa")} <= {1, None}
    assert found["yield_mae"] in {0, None}


def test_the_sum_of_no_tally_is_nothing() -> None:
    """An empty slice has no measure and does not fail."""
    assert total([]) == tally([])
    assert summed([])["precision"] is None


ROWS = [tally(said(tp=n, fp=5 - n, fn=1, tn=n + 1)) for n in range(6)]


def test_intervals_hold_the_point_and_repeat() -> None:
    """The same rows give the same interval twice, around the figure itself."""
    first, second = intervals(ROWS, summed), intervals(ROWS, summed)
    low, high = first["precision"]

    assert first == second
    assert low < (summed(ROWS)["precision"] or 0) < high
    assert intervals(ROWS, summed, seed=1) != first


def test_resampling_draws_whole_queries() -> None:
    """Equal queries leave nothing to vary, however their items differ."""
    low, high = intervals([ROWS[2]] * 8, summed)["mcc"]

    assert low == pytest.approx(high)


def test_no_interval_without_two_queries_or_where_a_measure_is_undefined() -> None:
    """One query says nothing about another, and half a distribution is none."""
    assert intervals(ROWS[:1], summed) == {}
    undefined = intervals([tally(said(tn=3)), tally(said(tp=1, tn=2))], summed)
    assert "precision" not in undefined
    assert "kept_irrelevant" in undefined


def test_differences_are_paired() -> None:
    """The same verdicts twice differ by nothing; a better first judge is above zero."""
    better, worse = tally(said(tp=5, tn=5)), tally(said(tp=3, fp=2, fn=2, tn=3))

    def differing(drawn: Sequence[Tally]) -> Measures:
        return differences(total(drawn))

    assert differences(worse + worse)["mcc"] == 0
    assert differences(better + worse)["mcc"] == pytest.approx(0.8)
    assert differences(tally(said(tn=1)) + worse)["precision"] is None
    assert intervals([better + worse] * 3, differing)["mcc"] == pytest.approx((0.8, 0.8))
