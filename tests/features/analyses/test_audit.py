"""Estimates from a sample: exact where all was read, and right on 95 of 100 simulated pages."""

from __future__ import annotations

from collections.abc import Mapping
from math import exp, log
from random import Random

import pytest

from api.features.analyses.corrections import UncertainFigure, audit_sample, missed, precision, recall

PAGES = 1000
KEPT_FROM = 0.5


def test_what_was_read_in_full_is_certain() -> None:
    """Three of four kept and one of three dropped items are relevant."""
    kept, dropped = dict.fromkeys("abcd", 0.8), dict.fromkeys("xyz", 0.2)
    read = dict.fromkeys("abcx", True) | dict.fromkeys("dyz", False)
    assert missed(dropped, read) == UncertainFigure(1, 1, 1)
    assert precision(kept, read) == UncertainFigure(0.75, 0.75, 0.75)
    assert recall(kept, dropped, read) == UncertainFigure(0.75, 0.75, 0.75)


def test_what_nobody_read_is_wide_open() -> None:
    """The judge's own probability is all there is."""
    found = missed({str(number): 0.2 for number in range(20)}, {})
    assert found.low <= 1 < found.value < 10 < found.high


def test_an_empty_page_has_no_shares() -> None:
    """Nothing kept, nothing relevant."""
    assert precision({}, {}) is None
    assert recall({}, {}, {}) is None
    assert recall({"a": 0.9}, {}, {"a": False}) is None
    assert missed({}, {}) == UncertainFigure(0, 0, 0)


def test_a_sample_takes_as_many_of_each_stratum() -> None:
    """And the same ones for the same seed."""
    dropped = {f"{number:02}": number / 100 for number in range(40)}
    drawn = audit_sample(dropped, 10, seed=7)
    assert drawn == audit_sample(dropped, 10, seed=7) != audit_sample(dropped, 10, seed=8)
    assert sum(dropped[key] < 0.2 for key in drawn) == 5
    assert len(set(audit_sample(dropped, 99))) == 40


def page(random: Random, shift: float) -> tuple[dict[str, float], dict[str, bool]]:
    """Probabilities of a judge that is off by `shift` and more on this page, and the truth."""
    off = random.gauss(shift, 0.5)
    probabilities, truth = {}, {}
    for number in range(random.randint(40, 100)):
        chance = min(max(random.betavariate(0.8, 1.0), 0.001), 0.999)
        probabilities[str(number)] = chance
        truth[str(number)] = random.random() < 1 / (1 + exp(-log(chance / (1 - chance)) - off))
    return probabilities, truth


def within(found: UncertainFigure | None, true: float) -> bool:
    """Whether the interval holds the truth, with room for rounding."""
    return found is None or found.low - 1e-9 <= true <= found.high + 1e-9


def shares(kept: Mapping[str, float], truth: Mapping[str, bool]) -> tuple[float, float]:
    """True precision and recall."""
    found = sum(truth[key] for key in kept)
    return found / max(len(kept), 1), found / max(sum(truth.values()), 1)


@pytest.mark.nightly
@pytest.mark.parametrize("shift", [0.0, -0.5, 0.5])
def test_intervals_hold_the_truth_on_95_of_100_pages(shift: float) -> None:
    """Between 93 and 97 %, for a judge that is right, too sure and too cautious."""
    random, held = Random(5), {"missed": 0, "precision": 0, "recall": 0}
    for number in range(PAGES):
        probabilities, truth = page(random, shift)
        kept = {key: chance for key, chance in probabilities.items() if chance >= KEPT_FROM}
        dropped = {key: chance for key, chance in probabilities.items() if key not in kept}
        drawn = [*audit_sample(kept, 10, number), *audit_sample(dropped, 10, number)]
        read = {key: truth[key] for key in drawn}
        right, found = shares(kept, truth)
        held["missed"] += within(missed(dropped, read), sum(truth[key] for key in dropped))
        held["precision"] += within(precision(kept, read), right)
        held["recall"] += within(recall(kept, dropped, read), found)
    assert {name for name, count in held.items() if not 0.93 <= count / PAGES <= 0.97} == set()
