"""A file of vectors: how it is laid out, read and written.

It holds entries between two numbers, by number; each is its number, the signs of its vector and the
vector, behind the head that numpy's own files have. It is written whole and never changed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy
from numpy.lib import format as npy

from api.services.archive.shelf import DIMENSIONS

UNREADABLE = (OSError, ValueError)
"""What numpy raises over a file that is gone, cut or full, or none of its own."""
_PIECE = 4_000
"""Entries that are read from a file at once, 1 MB: an import has little memory."""
_WORDS = DIMENSIONS // 64
_ENTRY = numpy.dtype(
    [("number", "<u8"), ("signs", "<u8", (_WORDS,)), ("vector", "i1", (DIMENSIONS,))]
)
NONE = numpy.empty(0, _ENTRY)
Entries = Any
"""An array like `NONE`, by number."""


@dataclass(frozen=True, slots=True)
class Compared:
    """Entries as a search reads them."""

    numbers: Any
    signs: Any
    """A row for each of the words that an entry's signs are, so that a row is read in order."""
    vectors: Any


@dataclass(slots=True, eq=False)
class Filed:
    """A file, and of it what comes after `since`."""

    file: Path
    since: int
    last: int
    count: int
    """Entries in it."""
    size: int
    """Bytes of it."""
    loaded: Compared | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """A file that is to be written, and what goes into it."""

    target: Path
    since: int
    last: int
    files: tuple[Filed, ...]
    """The last ones, which it takes the place of."""
    later: Entries


def signed(vectors: bytes) -> Any:
    """A row of signed bytes for each of them."""
    return numpy.frombuffer(vectors, dtype=numpy.int8).reshape(-1, DIMENSIONS)


def signs_of(vectors: Any) -> Any:
    """For each row one bit a number: whether it is above 0."""
    return numpy.packbits(vectors > 0, axis=1).view(numpy.uint64)


def compared(entries: Entries) -> Compared:
    """Entries that are in memory."""
    signs = numpy.ascontiguousarray(entries["signs"].T)
    return Compared(entries["number"], signs, entries["vector"])


def entries_of(rows: Sequence[tuple[int, bytes | None]]) -> Entries:
    """Of the table's rows, by number, those that have a vector."""
    whole = [(number, vector) for number, vector in rows if len(vector or b"") == DIMENSIONS]
    entries = numpy.empty(len(whole), _ENTRY)
    entries["number"] = [number for number, _ in whole]
    entries["vector"] = signed(b"".join(vector or b"" for _, vector in whole))
    entries["signs"] = signs_of(entries["vector"])
    return entries


def _count(file: BinaryIO) -> int:
    """How many entries an opened file holds; it is read from the first of them on.

    Raises:
        ValueError: it holds something else, or not all of them.
    """
    npy.read_magic(file)
    shape, _, kind = npy.read_array_header_1_0(file)
    left = os.fstat(file.fileno()).st_size - file.tell()
    if kind != _ENTRY or len(shape) != 1 or left != shape[0] * _ENTRY.itemsize:
        raise ValueError("no entries")
    return int(shape[0])


def filed_at(file: Path, since: int, last: int) -> Filed:
    """What lies there; `UNREADABLE` when that is no such file."""
    with file.open("rb") as opened:
        count = _count(opened)
        return Filed(file, since, last, count, os.fstat(opened.fileno()).st_size)


def load(filed: Filed) -> None:
    """Read numbers and signs into memory; the vectors stay where they lie, mapped into it."""
    if filed.file.stat().st_size != filed.size:
        raise ValueError("it has changed")
    if filed.loaded is not None:
        return
    with filed.file.open("rb") as file:
        count, begin = _count(file), file.tell()
        numbers = numpy.empty(count, numpy.uint64)
        signs = numpy.empty((_WORDS, count), numpy.uint64)
        at = 0
        for piece in _pieces(file):
            numbers[at : at + len(piece)] = piece["number"]
            signs[:, at : at + len(piece)] = piece["signs"].T
            at += len(piece)
        # nothing cannot be mapped
        entries = numpy.memmap(file, _ENTRY, "r", begin, (count,)) if count else NONE
    first = int(numpy.searchsorted(numbers, filed.since, "right"))
    filed.loaded = Compared(numbers[first:], signs[:, first:], entries["vector"][first:])


def _pieces(file: BinaryIO) -> Iterator[Entries]:
    """What is left of an opened file, so much at a time that the memory is not filled with it."""
    while len(piece := numpy.fromfile(file, _ENTRY, _PIECE)):
        yield piece


def _sources(plan: Plan) -> Iterator[tuple[int, Entries]]:
    """Entries, and behind which number they count."""
    for filed in plan.files:
        with filed.file.open("rb") as file:
            _count(file)
            for piece in _pieces(file):
                yield filed.since, piece
    yield plan.since, plan.later


def write(file: BinaryIO, plan: Plan, there: Any) -> None:
    """The head, which says how many there are, is written once more when that is known."""
    described: dict[str, Any] = {"descr": npy.dtype_to_descr(_ENTRY), "fortran_order": False}
    npy.write_array_header_1_0(file, {**described, "shape": (0,)})
    count, padded = 0, numpy.append(there, 0)
    for since, entries in _sources(plan):
        numbers = entries["number"]
        places = numpy.searchsorted(there, numbers)
        # what is behind the last: a search that began later has read what the writer does not see
        known = (padded[places] == numbers) | (places == len(there))
        left = entries[known & (numbers > since)]
        file.write(left.view(numpy.uint8))
        count += len(left)
    file.seek(0)
    npy.write_array_header_1_0(file, {**described, "shape": (count,)})
