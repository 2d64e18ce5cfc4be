"""Statistics as text for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from api.faces import statistics
from api.faces.cli.terminal import shown, wrapped
from api.services.keeping.stats import Stats

_LEAD = 12


def stats_text(stats: Stats, columns: int) -> str:
    """All of it; tables keep their width, sentences are wrapped."""
    columns = max(min(columns, 120), 40)
    lines = [line for head in statistics.heads(stats) for line in wrapped(head, columns)]
    if not stats.runs:
        return "\n".join(lines)
    lines.append("")
    for name, words in statistics.sentences(stats):
        lines += wrapped(words, columns, f"{name:<{_LEAD}}")
    if stats.sources:
        lines += ["", *_table(statistics.source_table(stats.sources))]
        for words in statistics.outcomes(stats.sources):
            lines += wrapped(words, columns)
    if stats.periods:
        lines += ["", *_table(statistics.period_table(stats))]
        lines += wrapped(statistics.POOLED, columns)
    return "\n".join(lines)


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    """The first column to the left, the others to the right."""
    cells = [[shown(cell) for cell in row] for row in rows]
    widths = [max(map(cell_len, column)) for column in zip(*cells, strict=True)]
    lines = []
    for first, *others in cells:
        line = first + " " * (widths[0] - cell_len(first))
        for cell, width in zip(others, widths[1:], strict=True):
            line += "  " + " " * (width - cell_len(cell)) + cell
        lines.append(line.rstrip())
    return lines
