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
    median: float
    low: float
    high: float
    digits: int = 2

    def __str__(self) -> str:
        """As Markdown."""
        median, low, high = (f"{n:,.{self.digits}f}" for n in (self.median, self.low, self.high))
        spread = f" ({low} to {high})" if low != high else ""
        return f"| {self.name} | {self.aim} | {median}{spread} |"


def figure(name: str, aim: str, values: Iterable[float], digits: int = 2) -> Figure:
    """Of many values of one run, or of a single one."""
    several = list(values)
    median = statistics.median(several)
    low, _, high = statistics.quantiles(several, n=4) if len(several) > 1 else (median,) * 3
    return Figure(name, aim, median, low, high, digits)
