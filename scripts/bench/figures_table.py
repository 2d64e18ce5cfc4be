"""Rows of a bench's table: a figure, its aim, the median and the middle half of the values."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass

HEAD = "| figure | aim | measured (middle half) |\n| --- | --- | --- |"


@dataclass(frozen=True, slots=True)
class Figure:
    """One row of the table."""

    name: str
    aim: str
    values: tuple[float, ...]
    digits: int = 2
    unit_aim: str | None = None
    """The aim as a multiple of the fixed unit of work, of a figure in ms of processor time; None: it is none."""

    def __str__(self) -> str:
        """As Markdown."""
        quartiles = statistics.quantiles(self.values, n=4) if len(self.values) > 1 else self.values * 3
        low, median, high = (f"{value:,.{self.digits}f}" for value in quartiles)
        spread = f" ({low} to {high})" if low != high else ""
        return f"| {self.name} | {self.aim} | {median}{spread} |"


def figure(name: str, aim: str, values: Iterable[float], digits: int = 2, unit_aim: str | None = None) -> Figure:
    """Of many values of one run, or of a single one."""
    return Figure(name, aim, tuple(values), digits, unit_aim)
