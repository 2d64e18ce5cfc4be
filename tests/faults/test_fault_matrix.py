"""A sample of the fault matrix in each run of the tests, and that the matrix would notice."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fault_matrix import draw, pairs, rules, run_matrix
from fault_outcomes import CALLS, FAULTS
from fault_run import Call, FaultResult


@pytest.mark.parametrize("count", [6, pytest.param(60, marks=pytest.mark.nightly)])
def test_a_sample_of_the_matrix_is_as_expected(count: int) -> None:
    """The outcome, no harm to others, no key in sight, and all well when the fault is mended."""
    cells = run_matrix(draw(pairs(), count))

    assert len(cells) == count
    assert [str(cell) for cell in cells if not cell.passed] == []


def test_an_outcome_that_is_another_is_noticed() -> None:
    """A cell is held against its row."""
    fault = next(fault for fault in FAULTS if fault.name == "404")
    call = next(call for call in CALLS if call.name == "youtube comments")

    (cell,) = run_matrix([(call, replace(fault, expected={"api": "blocked"}))])

    assert (cell.outcome, cell.passed) == ("broken", False)
    assert str(cell).startswith("youtube comments, 404: broken, expected blocked")


@pytest.mark.parametrize(
    "trouble",
    [
        {"recovered": False},
        {"unexplained": ["a defect"]},
        {"secrets": ["a key"]},
        {"outcome": "ok"},
    ],
)
def test_a_cell_is_well_only_without_any_trouble(trouble: dict[str, object]) -> None:
    """The right outcome alone is not enough."""
    sound = FaultResult(Call("reddit search", "api"), "404", "broken", outcome="broken", recovered=True)

    assert sound.passed
    assert not replace(sound, **trouble).passed  # type: ignore[arg-type]


def test_a_cell_that_cannot_begin_in_time_says_so() -> None:
    """The budget is never exceeded in silence."""
    (cell,) = run_matrix(pairs(["reddit search", "404"]), budget=-1)

    assert cell.unexplained == ["not begun within -1 s"]


def test_every_call_meets_many_faults() -> None:
    """Forty at least, but for the database, which is asked by no HTTP, and what meets few."""
    for call in CALLS:
        faults = {fault.name for asked, fault in pairs() if asked is call}
        assert call.only_faults <= faults, call
        assert call.only_faults or len(faults) >= (5 if call.kind == "database" else 40), call


def test_the_rules_stand_in_the_documentation(root: Path) -> None:
    """The page holds the table as it is, and as many cells as there are."""
    page = (root / "docs" / "reliability.md").read_text("utf-8")

    assert "\n".join(rules()) in page
    assert f"| all | {len(pairs())} |" in page
