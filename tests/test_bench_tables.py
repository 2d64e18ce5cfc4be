"""What the benches compute and print: the fixed unit of work, and tables of growth."""

from __future__ import annotations

import pytest

from figures_table import figure
from fixed_unit import MachineSpeed, unit
from growth_table import Cost, GrowthRow, cost, markdown, power


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


@pytest.mark.parametrize(("costs", "exponent"), [((5, 5, 5), 0), ((2, 20, 200), 1), ((1, 100, 10_000), 2)])
def test_the_power_of_growth(costs: tuple[float, ...], exponent: float) -> None:
    """0: nothing grows; 1: linear; 2: with the square."""
    assert power((10, 100, 1_000), costs) == exponent


def test_a_table_of_growth_has_bars_and_powers_of_each_operation() -> None:
    """Bars begin anew with each operation; an operation of one size is left out."""
    rows = [
        GrowthRow("list", 10, Cost(1, 1), "7"),
        GrowthRow("list", 1_000, Cost(10, 1), "7"),
        GrowthRow("page", 10, Cost(50, 2), "7"),
    ]

    assert markdown("watches", rows, "tokens").splitlines() == [
        "| operation | watches | ms of processor time | | peak of memory, MB | tokens |",
        "| --- | --- | --- | --- | --- | --- |",
        "| list | 10 | 1.0 | ██ | 1.0 | 7 |",
        "| list | 1,000 | 10.0 | ████████████████████ | 1.0 | 7 |",
        "",
        "- list: time grows with the power 0.50 of the size, memory with 0.00",
    ]


@pytest.mark.anyio
async def test_the_memory_of_work_is_what_it_held_at_most() -> None:
    """10 MB are held for a moment, and given back before the end."""
    times = list[int]()

    async def work() -> None:
        times.append(len(bytearray(10_000_000)))

    spent = await cost(work, 3)

    assert len(times) == 4
    assert 10 <= spent.peak_mb < 11
