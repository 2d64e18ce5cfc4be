"""Vectors of entries: how they are compared, and how a file of them is read and written.

Compared in two steps: all by their signs, a bit a dimension, which takes some ten milliseconds for
half a million; then as they are those `COMPARED` whose signs differ least. So there is no graph
that would have to be made: a file is written as fast as a disk takes it.

A file holds entries by number; each is its number, the signs of its vector and the vector, behind
the head that numpy's own files have.

The files of one tenant: each holds the entries between two numbers, which stand in its name. It is written
whole, under another name first, and never changed; small ones are joined to larger ones. Nothing is lost with any of
them: the table holds it all.
"""

from __future__ import annotations

import logging
import os
import secrets
import time
from array import array
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy
from numpy.lib import format as npy
from usearch.compiled import MetricKind
from usearch.index import search

from api.features.archive.search_values import DIMENSIONS

COMPARED = 20_000
"""Most entries that are compared exactly, in a few milliseconds; none is missed among fewer."""
# Entries whose signs are compared at once: few enough to stay in a processor's own memory.
_STRIDE = 16_384
UNREADABLE = (OSError, ValueError)
"""Errors of numpy for a file that is missing, truncated, full or not its own."""
# Entries that are read from a file at once, 1 MB of 256 dimensions: an import has little memory.
_PIECE = 4_000
Entries = Any
"""An array of `entry_type`, by number."""


def entry_type(dimensions: int = DIMENSIONS) -> Any:
    """An entry in a file: its number, the signs of its vector, a bit each, and the vector."""
    signs = "signs", "<u8", (dimensions // 64,)
    return numpy.dtype([("number", "<u8"), signs, ("vector", "i1", (dimensions,))])


@dataclass(frozen=True, slots=True)
class Compared:
    """Entries as a search reads them."""

    numbers: Any
    signs: Any
    """A row for each of the words that an entry's signs are, so that a row is read in order."""
    vectors: Any


@dataclass(slots=True, eq=False)
class VectorFile:
    """A file, and of it what comes after `since`."""

    file: Path
    since: int
    last: int
    count: int
    """Number of entries in the file."""
    size: int
    kind: Any
    """Type of one entry's row in the file, see `entry_type`."""
    loaded: Compared | None = None


@dataclass(frozen=True, slots=True)
class FilePlan:
    """A file that is to be written, and what goes into it."""

    target: Path
    since: int
    last: int
    files: tuple[VectorFile, ...]
    """The last ones, which it takes the place of."""
    later: Entries


def _signed(vectors: bytes, dimensions: int) -> Any:
    """A row of signed bytes for each of them."""
    return numpy.frombuffer(vectors, dtype=numpy.int8).reshape(-1, dimensions)


def _signs(vectors: Any) -> Any:
    """One bit for each number of a row: whether it is above 0."""
    return numpy.packbits(vectors > 0, axis=1).view(numpy.uint64)


def compared(entries: Entries) -> Compared:
    """Numbers, signs and vectors of entries, as arrays that a search compares."""
    signs = numpy.ascontiguousarray(entries["signs"].T)
    return Compared(entries["number"], signs, entries["vector"])


def entries_of(rows: Sequence[tuple[int, bytes | None]], dimensions: int) -> Entries:
    """Rows with a vector of these dimensions, in the order of the table."""
    whole = [(number, vector) for number, vector in rows if len(vector or b"") == dimensions]
    entries = numpy.empty(len(whole), entry_type(dimensions))
    entries["number"] = [number for number, _ in whole]
    entries["vector"] = _signed(b"".join(vector or b"" for _, vector in whole), dimensions)
    entries["signs"] = _signs(entries["vector"])
    return entries


def joined(parts: Sequence[Entries], dimensions: int) -> Entries:
    """All entries in one array."""
    return numpy.concatenate([numpy.empty(0, entry_type(dimensions)), *parts])


def behind(entries: Entries, number: int) -> Entries:
    """Entries with a higher number."""
    return entries[entries["number"] > number]


def nearest(blocks: Sequence[Compared], vector: bytes, most: int) -> list[int]:
    """Numbers of the nearest entries; among more than `COMPARED`, of those with the most similar signs."""
    query = _signed(vector, len(vector))
    chosen = _likeliest([block.signs for block in blocks], _signs(query)[0])
    pairs: list[tuple[float, int]] = []
    for block, rows in zip(blocks, chosen, strict=True):
        numbers, vectors = block.numbers[rows], numpy.ascontiguousarray(block.vectors[rows])
        if count := min(most, len(numbers)):
            near = search(vectors, query[0], count, MetricKind.Cos, exact=True)
            pairs += zip(near.distances.tolist(), numbers[near.keys].tolist(), strict=True)
    return [number for _, number in sorted(pairs)[:most]]


def _likeliest(signs: Sequence[Any], query: Any) -> list[Any]:
    """Rows of each block that are compared exactly; among equally similar ones, the newest."""
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
    most = 64 * len(query) + 1
    counts = numpy.sum([numpy.bincount(bits, minlength=most) for bits in differing], axis=0)
    edge = int(numpy.searchsorted(numpy.cumsum(counts), COMPARED))
    left = COMPARED - int(counts[:edge].sum())
    chosen = []
    for bits in reversed(differing):
        equal = numpy.flatnonzero(bits == edge)
        newest = equal[len(equal) - min(left, len(equal)) :]
        left -= len(newest)
        chosen.append(numpy.concatenate([numpy.flatnonzero(bits < edge), newest]))
    return chosen[::-1]


def _count(file: BinaryIO, kind: Any) -> int:
    """Number of entries in an opened file, which is then positioned at the first.

    Raises:
        ValueError: it holds something else, or not all of them.
    """
    npy.read_magic(file)
    shape, _, held = npy.read_array_header_1_0(file)
    left = os.fstat(file.fileno()).st_size - file.tell()
    if held != kind or len(shape) != 1 or left != shape[0] * kind.itemsize:
        raise ValueError("no entries")
    return int(shape[0])


def filed_at(file: Path, since: int, last: int, kind: Any) -> VectorFile:
    """What lies there; `UNREADABLE` when that is no such file."""
    with file.open("rb") as opened:
        count = _count(opened, kind)
        return VectorFile(file, since, last, count, os.fstat(opened.fileno()).st_size, kind)


def load(filed: VectorFile) -> None:
    """Read numbers and signs into memory and map the vectors from the file."""
    if filed.file.stat().st_size != filed.size:
        raise ValueError("it has changed")
    if filed.loaded is not None:
        return
    with filed.file.open("rb") as file:
        kind = filed.kind
        count, begin = _count(file, kind), file.tell()
        numbers = numpy.empty(count, numpy.uint64)
        signs = numpy.empty((kind["signs"].shape[0], count), numpy.uint64)
        at = 0
        for piece in _pieces(file, kind):
            numbers[at : at + len(piece)] = piece["number"]
            signs[:, at : at + len(piece)] = piece["signs"].T
            at += len(piece)
        # nothing cannot be mapped
        entries = numpy.memmap(file, kind, "r", begin, (count,)) if count else numpy.empty(0, kind)
    first = int(numpy.searchsorted(numbers, filed.since, "right"))
    filed.loaded = Compared(numbers[first:], signs[:, first:], entries["vector"][first:])


def _pieces(file: BinaryIO, kind: Any) -> Iterator[Entries]:
    """The rest of an opened file in pieces of limited size."""
    while len(piece := numpy.fromfile(file, kind, _PIECE)):
        yield piece


def _sources(plan: FilePlan) -> Iterator[tuple[int, Entries]]:
    """Entries, and behind which number they count."""
    for filed in plan.files:
        with filed.file.open("rb") as file:
            _count(file, filed.kind)
            for piece in _pieces(file, filed.kind):
                yield filed.since, piece
    yield plan.since, plan.later


def write(file: BinaryIO, plan: FilePlan, numbered: array[int]) -> None:
    """Write what is there, by its numbers, and what came later than all of that."""
    there = numpy.frombuffer(numbered, numpy.uint64)
    # the head, which says how many there are, is written once more when that is known
    described: dict[str, Any] = {"descr": npy.dtype_to_descr(plan.later.dtype), "fortran_order": False}
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


_log = logging.getLogger(__name__)
_SUFFIX, _SCRATCH = ".npy", ".part"
# After which a file that is still half-written is what a killed process left.
_WRITING_SECONDS = 3600


class Neighbours:
    """Vectors of one tenant; only one task at a time may use it, except for `write`."""

    def __init__(self, folder: Path, name: str, most_later: int, dimensions: int = DIMENSIONS) -> None:
        """Open what lies there.

        `name` begins with the mark of tenant and model and says which database; `most_later` are the
        entries after which a file is written.
        """
        self._folder, self._name, self._most_later = folder, name, most_later
        self._dimensions = dimensions
        self._failures = 0
        self._files: list[VectorFile] = []
        self._later: list[Entries] = []
        self.last = 0
        """Highest number read so far; later entries are only in the table."""
        self.open()

    def open(self) -> None:
        """The files that follow each other from the first entry on."""
        self._files, self._later = self._lying(), []
        self.last = self._until

    @property
    def _until(self) -> int:
        return self._files[-1].last if self._files else 0

    @property
    def _waiting(self) -> int:
        return sum(len(entries) for entries in self._later)

    @property
    def count(self) -> int:
        """Entries in files and in memory, also those that are no longer in the table."""
        return sum(filed.count for filed in self._files) + self._waiting

    @property
    def due(self) -> bool:
        """Whether enough entries are in memory to write a file; the bound doubles with each failed write."""
        return self._waiting > self._most_later << self._failures

    def add(self, rows: Sequence[tuple[int, bytes | None]]) -> None:
        """Add the table's next rows, by number; rows without a vector are skipped."""
        later = entries_of(rows, self._dimensions)
        self._later = [joined([*self._later, later], self._dimensions)]
        self.last = rows[-1][0]

    def load(self) -> None:
        """Prepare the files for `nearest`; a file that was changed or removed is searched for again.

        What cannot be read is not there: `last` goes back, and the table has the rest.
        """
        for _ in range(2):
            try:
                for filed in self._files:
                    load(filed)
            except UNREADABLE:  # another process has joined it to others, or it is damaged
                self.open()
            else:
                return
        self._files, self._later, self.last = [], [], 0

    def nearest(self, vector: bytes, most: int) -> list[int]:
        """Numbers of the nearest that `load` and `add` have made ready."""
        filed = [file.loaded for file in self._files if file.loaded is not None]
        return nearest([*filed, *map(compared, self._later)], vector, most)

    def plan(self, *, everything: bool = False) -> FilePlan | None:
        """Which files to write; None when the files have changed and were opened again.

        Files that are not much larger than what follows them are written again with it, so that
        there are few and each entry is written a few times; or all are.
        """
        if [filed.file for filed in self._lying()] != [filed.file for filed in self._files]:
            self.open()
            return None
        kept, size = len(self._files), self._waiting
        while kept and (everything or self._files[kept - 1].count <= 2 * size):
            kept -= 1
            size += self._files[kept].count
        files = tuple(self._files[kept:])
        since = files[0].since if files else self._until
        target = self._folder / f"{self._name}-{since}-{self.last}{_SUFFIX}"
        later = joined(self._later, self._dimensions)
        return FilePlan(target, since, self.last, files, later)

    def write(self, plan: FilePlan, there: array[int]) -> bool:
        """Write a file of what is there, by number, and of what came later than all of that.

        False: it cannot be written; the log says why.
        """
        scratch = plan.target.with_suffix(f".{secrets.token_hex(4)}{_SCRATCH}")
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            with scratch.open("wb") as file:
                write(file, plan, there)
            scratch.replace(plan.target)
        except UNREADABLE as error:
            self._failures += 1
            kind = type(error).__name__
            _log.warning("the vectors in `%s` are not kept: %s", self._folder, kind)
            with suppress(OSError):
                scratch.unlink(missing_ok=True)
            return False
        self._failures = 0
        return True

    def put(self, plan: FilePlan) -> None:
        """Take the file that was written in the place of what is in it, and remove older ones.

        When others were opened in the meantime it is only one more that lies there.
        """
        kept = len(self._files) - len(plan.files)
        if kept >= 0 and tuple(self._files[kept:]) == plan.files:
            with suppress(*UNREADABLE):
                self._files[kept:] = [filed_at(plan.target, plan.since, plan.last, plan.later.dtype)]
                self._later = [behind(later, plan.last) for later in self._later]
        self._clear()

    def _lying(self) -> list[VectorFile]:
        spans = [
            (span[1], span[2], file) for file in self._folder.glob(f"{self._name}-*{_SUFFIX}") if (span := _span(file))
        ]
        spans.sort(key=lambda span: span[1], reverse=True)  # the longest first
        known = {(filed.file, filed.since, filed.size): filed for filed in self._files}
        chain: list[VectorFile] = []
        until, kind = 0, entry_type(self._dimensions)
        while fitting := [span for span in spans if span[0] <= until < span[1]]:
            _, last, file = fitting[0]
            spans.remove(fitting[0])
            with suppress(*UNREADABLE):
                filed = filed_at(file, until, last, kind)
                chain.append(known.get((file, until, filed.size), filed))
                until = last
        return chain

    def _clear(self) -> None:
        """Remove older files, those of a database that was here before, and half-written ones."""
        mine = {filed.file for filed in self._files}
        for file in self._folder.glob(f"{self._name.partition('-')[0]}-*"):
            with suppress(OSError):
                if file.suffix == _SCRATCH:
                    remains = time.time() - file.stat().st_mtime > _WRITING_SECONDS
                else:
                    name, _, last = _span(file) or ("", 0, 0)
                    older, own = last <= self._until, name == self._name
                    remains = not own or (older and file not in mine)
                if remains:
                    file.unlink(missing_ok=True)


def _span(file: Path) -> tuple[str, int, int] | None:
    """The name, and the numbers between which its entries lie, of `3f2a-20260101-0-5000.npy`."""
    rest, _, last = file.stem.rpartition("-")
    name, _, after = rest.rpartition("-")
    if not (name and after.isdecimal() and last.isdecimal()):
        return None
    return name, int(after), int(last)
