"""Vectors of entries: how they are compared, and how a file of them is read and written.

Compared in two steps: all by their signs, 32 bytes an entry, which takes some ten milliseconds for
half a million; then as they are those `COMPARED` whose signs differ least. So there is no graph
that would have to be made: a file is written as fast as a disk takes it.

A file holds entries by number; each is its number, the signs of its vector and the vector, behind
the head that numpy's own files have.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy
from numpy.lib import format as npy
from usearch.compiled import MetricKind
from usearch.index import search

from api.services.archive.shelf import DIMENSIONS

COMPARED = 20_000
"""Entries that are compared as they are, in a few milliseconds; of fewer, none is missed."""
_STRIDE = 16_384
"""Entries whose signs are compared at once: few enough to stay in a processor's own memory."""
UNREADABLE = (OSError, ValueError)
"""What numpy raises over a file that is gone, cut or full, or none of its own."""
_PIECE = 4_000
"""Entries that are read from a file at once, 1 MB: an import has little memory."""
_WORDS = DIMENSIONS // 64
_ENTRY = numpy.dtype(
    [("number", "<u8"), ("signs", "<u8", (_WORDS,)), ("vector", "i1", (DIMENSIONS,))]
)
_NONE = numpy.empty(0, _ENTRY)
Entries = Any
"""An array like `_NONE`, by number."""


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
class FilePlan:
    """A file that is to be written, and what goes into it."""

    target: Path
    since: int
    last: int
    files: tuple[Filed, ...]
    """The last ones, which it takes the place of."""
    later: Entries


def _signed(vectors: bytes) -> Any:
    """A row of signed bytes for each of them."""
    return numpy.frombuffer(vectors, dtype=numpy.int8).reshape(-1, DIMENSIONS)


def _signs(vectors: Any) -> Any:
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
    entries["vector"] = _signed(b"".join(vector or b"" for _, vector in whole))
    entries["signs"] = _signs(entries["vector"])
    return entries


def joined(parts: Sequence[Entries]) -> Entries:
    """All of them in one."""
    return numpy.concatenate([_NONE, *parts])


def behind(entries: Entries, number: int) -> Entries:
    """Those with a higher number."""
    return entries[entries["number"] > number]


def nearest(blocks: Sequence[Compared], vector: bytes, most: int) -> list[int]:
    """Numbers of the nearest; of very many entries of those whose signs are most alike."""
    query = _signed(vector)
    chosen = _likeliest([block.signs for block in blocks], _signs(query)[0])
    pairs: list[tuple[float, int]] = []
    for block, rows in zip(blocks, chosen, strict=True):
        numbers, vectors = block.numbers[rows], numpy.ascontiguousarray(block.vectors[rows])
        if count := min(most, len(numbers)):
            near = search(vectors, query[0], count, MetricKind.Cos, exact=True)
            pairs += zip(near.distances.tolist(), numbers[near.keys].tolist(), strict=True)
    return [number for _, number in sorted(pairs)[:most]]


def _likeliest(signs: Sequence[Any], query: Any) -> list[Any]:
    """Which of each block are compared; the newest of those that are equally like it."""
    if sum(block.shape[1] for block in signs) <= COMPARED:
        return [slice(None)] * len(signs)
    differing = []
    for block in signs:
        bits = numpy.zeros(block.shape[1], numpy.uint16)
        for start in range(0, block.shape[1], _STRIDE):
            part = bits[start : start + _STRIDE]
            for row, word in zip(block, query, strict=True):
                part += numpy.bitwise_count(row[start : start + _STRIDE] ^ word)
        differing.append(bits)
    counts = numpy.zeros(DIMENSIONS + 1, numpy.int64)
    for bits in differing:
        counts += numpy.bincount(bits, minlength=DIMENSIONS + 1)
    edge = int(numpy.searchsorted(numpy.cumsum(counts), COMPARED))
    left = COMPARED - int(counts[:edge].sum())
    chosen = []
    for bits in reversed(differing):
        equal = numpy.flatnonzero(bits == edge)
        newest = equal[len(equal) - min(left, len(equal)) :]
        left -= len(newest)
        chosen.append(numpy.concatenate([numpy.flatnonzero(bits < edge), newest]))
    return chosen[::-1]


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
        entries = numpy.memmap(file, _ENTRY, "r", begin, (count,)) if count else _NONE
    first = int(numpy.searchsorted(numbers, filed.since, "right"))
    filed.loaded = Compared(numbers[first:], signs[:, first:], entries["vector"][first:])


def _pieces(file: BinaryIO) -> Iterator[Entries]:
    """What is left of an opened file, so much at a time that the memory is not filled with it."""
    while len(piece := numpy.fromfile(file, _ENTRY, _PIECE)):
        yield piece


def _sources(plan: FilePlan) -> Iterator[tuple[int, Entries]]:
    """Entries, and behind which number they count."""
    for filed in plan.files:
        with filed.file.open("rb") as file:
            _count(file)
            for piece in _pieces(file):
                yield filed.since, piece
    yield plan.since, plan.later


def write(file: BinaryIO, plan: FilePlan, numbered: array[int]) -> None:
    """Write what is there, by its numbers, and what came later than all of that."""
    there = numpy.frombuffer(numbered, numpy.uint64)
    # the head, which says how many there are, is written once more when that is known
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
