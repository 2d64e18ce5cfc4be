"""How right the gate was about a report, by the items that a person corrected."""

from __future__ import annotations

from api.core.domain import Correction
from api.features.analyses.corrections import gate_quality, probabilities_of
from api.reports.report import Report
from tests.store.made import dropped, item, report, typed


def judged(kept: int, lost: int) -> Report:
    """A report with so many items, each with the probability that its judge gave."""
    items = [item(f"reddit:k{at}", probability=0.9) for at in range(kept)]
    out = [dropped(f"reddit:d{at}") | {"probability": 0.1} for at in range(lost)]
    out.append(dropped("reddit:copy") | {"dropped_by": "duplicate"})
    return typed(report("r1", *items, out=out))


def read(prefix: str, relevant: int, irrelevant: int) -> list[Correction]:
    """So many corrections, the relevant ones first."""
    answers = [True] * relevant + [False] * irrelevant
    return [Correction(f"reddit:{prefix}{at}", answer, "") for at, answer in enumerate(answers)]


def test_what_was_read_whole_is_known_for_certain() -> None:
    """Then the figures are shares, and their intervals have no width."""
    quality = gate_quality(judged(4, 6), [*read("k", 3, 1), *read("d", 1, 5)])

    assert quality.read == 10
    assert quality.precision is not None
    assert (quality.precision.value, quality.precision.low) == (0.75, 0.75)
    assert quality.recall is not None
    assert (quality.recall.low, quality.recall.high) == (0.75, 0.75)
    assert (quality.missed.low, quality.missed.high) == (1, 1)


def test_what_nobody_read_stays_uncertain() -> None:
    """The interval holds the share that was read, and is wider with fewer read items."""
    few = gate_quality(judged(40, 40), [*read("k", 4, 1), *read("d", 0, 5)])
    many = gate_quality(judged(40, 40), [*read("k", 24, 6), *read("d", 0, 30)])

    assert few.precision is not None
    assert many.precision is not None
    assert few.precision.low < 0.8 < few.precision.high
    assert many.precision.high - many.precision.low < few.precision.high - few.precision.low
    assert many.missed.high < few.missed.high


def test_corrections_of_other_reports_count_for_nothing() -> None:
    """Nor do copies, on which the gate decided nothing."""
    other = [Correction("reddit:elsewhere", True, ""), Correction("reddit:copy", True, "")]
    assert gate_quality(judged(2, 2), other).read == 0
    assert gate_quality(judged(0, 0), other).precision is None


def test_a_judge_without_probabilities_counts_as_nearly_sure() -> None:
    """Kept items at .9, dropped ones at .1."""
    silent = typed(report("r1", item("reddit:a", probability=None), out=[
        dropped("reddit:b") | {"probability": None}
    ]))  # fmt: skip

    assert probabilities_of(silent) == ({"reddit:a": 0.9}, {"reddit:b": 0.1})
