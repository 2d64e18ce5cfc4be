"""Lines as records: a JSON object each, or the cells of a table by their columns' names."""

from __future__ import annotations

import csv
import json
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from api.services.archive.imports import SHOWN, Mark, Refusal
from api.services.text import clean, one_line
from api.sources.collected.opening import LONGEST_LINE, Line
from api.sources.fields import number

DELIMITERS = (",", ";", "\t", "|")
_LINES, _LETTERS = 1_000, 1_000_000
"""A cell that goes on for more lines or characters has a quote that nobody closed."""
_LOOKED_AT = 50
"""Rows from which the delimiter and the head are found out."""


@dataclass(frozen=True, slots=True)
class Record:
    """What stands on a line, or in a row of a table."""

    objects: tuple[Mapping[str, Any], ...]
    """One; of an array on one line all that are objects."""
    line: int
    """Its first."""
    mark: Mark
    """Where the next begins."""
    start: str = ""
    """How it begins."""


@dataclass(frozen=True, slots=True)
class Unread:
    """A line that is no record."""

    refusal: Refusal
    mark: Mark


def refused(line: Line, reason: str) -> Unread:
    """The line, kept aside."""
    refusal = Refusal(line.number, reason, one_line(clean(line.text[: SHOWN * 2]))[:SHOWN])
    return Unread(refusal, Mark(line.end, line.number))


def objects(lines: Iterable[Line]) -> Iterator[Record | Unread]:
    """JSON lines, also those of an array with an object on each line."""
    for line in lines:
        text = line.text.strip().removeprefix("\ufeff").rstrip(",")
        if line.fault:
            yield refused(line, line.fault)
        elif text and text not in "[]":
            try:
                value = json.loads(text, parse_constant=number, parse_float=number)
            except (ValueError, RecursionError):
                yield refused(line, "it is no JSON object")
                continue
            listed = value if isinstance(value, list) else [value]
            whole = tuple(each for each in listed if isinstance(each, dict))
            if whole:
                yield Record(whole, line.number, Mark(line.end, line.number), text[:SHOWN])
            else:
                yield refused(line, "it is no JSON object")


@dataclass(frozen=True, slots=True)
class Head:
    """The first row of a table."""

    delimiter: str
    columns: tuple[str, ...]
    line: int
    """The line that it ends on; what stands before it is no row."""


def head_of(text: str) -> Head:
    """The delimiter and the names of the columns, from the beginning of a file.

    The delimiter is the one by which most rows have the same number of cells, more than one. The
    head is the first row with that many filled cells: exports begin with lines about the export.
    """
    *lines, last = text.split("\n")  # which may be half of one
    lines = lines or [last]
    best, shown = (0, 0), Head(",", (), 0)
    for delimiter in DELIMITERS:
        rows = _few_rows(lines, delimiter)
        widths = Counter(len(cells) for _, cells in rows)
        width, count = max(widths.items(), key=lambda pair: (pair[0] > 1, pair[1], pair[0]))
        score = (count * (width > 1), width)
        if score > best or not shown.columns:
            full = (row for row in rows if sum(bool(cell.strip()) for cell in row[1]) >= width)
            at, cells = next(full, rows[0])
            best, shown = max(best, score), Head(delimiter, tuple(_names(cells)), at)
    return shown


def _few_rows(lines: Sequence[str], delimiter: str) -> list[tuple[int, list[str]]]:
    """The first rows, each with the line it ends on."""
    rows: list[tuple[int, list[str]]] = []
    reader = csv.reader((f"{line}\n" for line in lines), delimiter=delimiter)
    while len(rows) < _LOOKED_AT:
        try:
            cells = next(reader)
        except StopIteration:
            break
        except csv.Error:
            continue
        if cells:
            rows.append((reader.line_num, cells))
    return rows or [(1, [""])]


def _names(cells: Sequence[str]) -> Iterator[str]:
    """Each column's name; one without has its number, and the second of a name too."""
    seen: set[str] = set()
    for count, cell in enumerate(cells, 1):
        name = one_line(clean(cell)).strip("\ufeff")[:100] or f"column {count}"
        yield name if name not in seen else f"{name} {count}"
        seen.add(name)


class _TooLong(Exception):
    """A cell that goes on and on."""


def rows(lines: Iterable[Line], head: Head) -> Iterator[Record | Unread]:
    """A table's rows behind its head.

    A quote that is never closed costs its own line alone. A row with more cells than columns is
    kept aside, one with fewer lacks the last ones.
    """
    csv.field_size_limit(LONGEST_LINE)
    ahead: deque[Line] = deque()
    source = iter(lines)
    while True:
        line = ahead.popleft() if ahead else next(source, None)
        if line is None:
            return
        if line.number <= head.line:
            continue
        if line.fault:
            yield refused(line, line.fault)
            continue
        if not line.text.strip():
            continue
        taken = [line]
        try:
            cells = next(csv.reader(_fed(taken, ahead, source), delimiter=head.delimiter), [])
        except (csv.Error, _TooLong):
            ahead.extendleft(reversed(taken[1:]))
            yield refused(line, "a quote in it is never closed")
            continue
        mark = Mark(taken[-1].end, taken[-1].number)
        if len(cells) > len(head.columns) and any(
            cell.strip() for cell in cells[len(head.columns) :]
        ):
            why = f"it has {len(cells)} cells, and there are {len(head.columns)} columns"
            yield Unread(refused(line, why).refusal, mark)
            continue
        fields = dict(zip(head.columns, cells, strict=False))
        yield Record((fields,), line.number, mark, line.text[:SHOWN])


def _fed(taken: list[Line], ahead: deque[Line], source: Iterator[Line]) -> Iterator[str]:
    """The lines of one row, as the parser asks for them."""
    yield taken[0].text.replace("\r", " ") + "\n"
    letters = len(taken[0].text)
    while (line := ahead.popleft() if ahead else next(source, None)) is not None:
        taken.append(line)
        letters += len(line.text)
        if line.fault or len(taken) > _LINES or letters > _LETTERS:
            raise _TooLong
        yield line.text.replace("\r", " ") + "\n"
    raise _TooLong  # the parser asks for another line within quotes only
