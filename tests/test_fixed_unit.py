"""The fixed unit of work, by which figures of two machines and two releases are compared."""

from __future__ import annotations

from figures_table import figure
from fixed_unit import MachineSpeed, unit


def test_the_unit_is_the_same_work_in_each_release() -> None:
    """Another digest is another unit, and makes every figure in the documentation wrong."""
    assert unit() == "e016068ed1b1b12d22ced0a8c9a460cf6fef39c70060db1efa7f8600be37da72"


def test_a_figure_in_ms_also_stands_as_a_multiple_of_the_unit() -> None:
    """By the median of the unit; a ratio has no such row."""
    speed = MachineSpeed([210, 200, 190])
    judge = figure("local judge, ms of processor time", "<= 3", [4, 6, 5], unit_aim="<= 0.016")
    ratio = figure("traced / untraced", "<= 1.15", [1.2])

    assert list(map(str, speed.rows([judge, ratio]))) == [
        "| fixed unit of work, ms of processor time |  | 200 (190 to 210) |",
        "| local judge / fixed unit | <= 0.016 | 0.025 (0.020 to 0.030) |",
    ]
