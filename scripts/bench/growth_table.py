"""What an operation costs at growing sizes: processor time, memory, bars, and the power with which it grows."""

from __future__ import annotations

import gc
import math
import statistics
import time
import tracemalloc
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

_BAR = 20
"""Signs of the longest bar of a table."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What one operation costs."""

    milliseconds: float
    """Of processor time, all threads of this process; the median of several."""
    peak_mb: float
    """What Python and numpy held at most beyond what they held before."""


async def cost(work: Callable[[], Awaitable[Any]], runs: int) -> Cost:
    """Do the work once to see its memory, which makes it slower, and then so many times to see its time."""
    gc.collect()
    tracemalloc.start()
    await work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    took = []
    for _ in range(runs):
        began = time.process_time()
        await work()
        took.append((time.process_time() - began) * 1000)
    return Cost(statistics.median(took), peak / 1e6)


@dataclass(frozen=True, slots=True)
class GrowthRow:
    """One row of the table."""

    operation: str
    size: int
    """What grows."""
    cost: Cost
    more: str = ""
    """A further value, as it stands in the table."""


def markdown(size: str, rows: Sequence[GrowthRow], more: str = "") -> str:
    """The table of operations at two sizes or more, with bars of processor time that begin anew with each of them.

    `size` and `more` are heads of columns.
    """
    counts = Counter(row.operation for row in rows)
    rows = [row for row in rows if counts[row.operation] > 1]
    head = f"| operation | {size} | ms of processor time | | peak of memory, MB |{f' {more} |' if more else ''}"
    lines = [head, "| --- " * (head.count("|") - 1) + "|"]
    for row in rows:
        longest = max(other.cost.milliseconds for other in rows if other.operation == row.operation)
        bar = "█" * max(1, round(_BAR * row.cost.milliseconds / longest))
        cells = [row.operation, f"{row.size:,}", f"{row.cost.milliseconds:,.1f}", bar, f"{row.cost.peak_mb:,.1f}"]
        lines.append(f"| {' | '.join([*cells, *([row.more] if more else [])])} |")
    powers = (power_words(name, rows) for name in dict.fromkeys(row.operation for row in rows))
    return "\n".join([*lines, "", *powers])


def power_words(operation: str, rows: Sequence[GrowthRow]) -> str:
    """How processor time and memory grow with the size, by straight lines through their logarithms."""
    mine = [row for row in rows if row.operation == operation]
    sizes = [row.size for row in mine]
    of_time = power(sizes, [row.cost.milliseconds for row in mine])
    of_memory = power(sizes, [row.cost.peak_mb for row in mine])
    return f"- {operation}: time grows with the power {of_time:.2f} of the size, memory with {of_memory:.2f}"


def power(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """The exponent `p` of `cost = c * size ** p` that fits best: 1 is linear, 0 does not grow."""
    logs = [[math.log(value) for value in values] for values in (sizes, costs)]
    return round(statistics.linear_regression(*logs).slope, 2) + 0.0  # no `-0.00`
