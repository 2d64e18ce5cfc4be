"""The nearest entries beside SQLite, in files.

What is found here is only a guess: the table says what there is, so an index that is older, or
gone, costs time and never an answer. A file holds the entries up to a number; what came later is
read from the table, and written to a new file when it is much.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from api.services.archive.shelf import DIMENSIONS
from api.store.indexing import mark
from api.store.tables import Conditions, batches, chunks, schema_version

_log = logging.getLogger(__name__)
_LOADED = 8
"""Tenants whose index is held at once."""
_SUFFIX, _SCRATCH = ".usearch", ".part"
_WRITING_SECONDS = 3600
"""After which a file that is still half-written is what a killed process left."""
_MOST_LOOKED_AT = 10_000
"""Entries that are looked at when too few of the nearest are wanted."""
_ALL = 20_000
"""Entries of an index up to which all are compared, in a few milliseconds, and none is missed."""
_PAGE = 20_000
"""Vectors read at once."""
_UNREADABLE = (OSError, RuntimeError, ValueError)
"""What usearch raises over a file that is gone, cut or full, or none of its own."""


@dataclass(slots=True)
class _Held:
    """One tenant's index: a file as it lies there, and what came after it."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    filed: Any = None
    until: int = 0
    """The highest number in the file."""
    later: Any = None
    last: int = 0
    """The highest number in either."""
    failures: int = 0
    """Times that a file could not be written."""


@dataclass(frozen=True, slots=True)
class FiledVectors:
    """In files beside an SQLite database."""

    folder: Path
    most_later: int = 5_000
    """Entries after which a new file is written, if they are a fifth of it."""
    _held: OrderedDict[tuple[str, bool], _Held] = field(default_factory=OrderedDict)

    async def nearest(
        self,
        connection: AsyncConnection,
        tenant: str,
        vector: bytes,
        most: int,
        where: Conditions,
        *,
        sample: bool,
    ) -> list[int]:
        """See `Vectors`; the first search of a tenant opens its file."""
        held = self._held.setdefault((tenant, sample), _Held())
        self._held.move_to_end((tenant, sample))
        while len(self._held) > _LOADED:
            self._held.popitem(last=False)
        name = await _name(connection, mark(tenant, sample=sample))
        async with held.lock:
            if held.later is None:
                await asyncio.to_thread(self._open, held, name)
            await _catch_up(connection, tenant, held, sample=sample)
            later = max(self.most_later, len(held.filed or ()) // 5) << held.failures
            if len(held.later) > later:
                there = await _numbers_of(connection, tenant, sample=sample)
                await asyncio.to_thread(self._file, held, name, there)
                # another process may have written one that holds less
                await _catch_up(connection, tenant, held, sample=sample)
            near = await asyncio.to_thread(_search, held, vector, most)
            left = await _wanted(connection, near, where)
            if len(left) < most:
                # what was deleted or is not wanted took the places; or the graph, in which copies
                # of one text are islands, was left too early
                near = await asyncio.to_thread(_search, held, vector, _MOST_LOOKED_AT, exact=True)
                left = await _wanted(connection, near, where)
            return [number for number in near if number in left][:most]

    def _newest(self, name: str) -> tuple[int, Any]:
        """The newest file that can be read: the highest number in it, and it; else 0 and None."""
        files = self.folder.glob(f"{name}-*{_SUFFIX}")
        numbered = ((file.stem.rpartition("-")[2], file) for file in files)
        for last, file in sorted(((int(n), f) for n, f in numbered if n.isdecimal()), reverse=True):
            with suppress(*_UNREADABLE):
                return last, _read(file, view=True)
        return 0, None

    def _open(self, held: _Held, name: str) -> None:
        """The newest file; without any, all is read from the table."""
        held.until, held.filed = self._newest(name)
        held.last, held.later = held.until, _empty()

    def _file(self, held: _Held, name: str, there: Sequence[int]) -> None:
        """Write all that is there to a new file, and remove the others; where that fails, go on.

        When the file is gone, or another process has written a newer one, that is opened instead.
        """
        if self._newest(name)[0] != held.until:
            return self._open(held, name)
        target = self.folder / f"{name}-{held.last}{_SUFFIX}"
        scratch = target.with_suffix(f".{secrets.token_hex(4)}{_SCRATCH}")
        try:
            both = held.later
            if held.filed is not None:
                both = _read(self.folder / f"{name}-{held.until}{_SUFFIX}", view=False)
            both = _united(both, held.later, there)
            self.folder.mkdir(mode=0o700, exist_ok=True)
            both.save(str(scratch))
            scratch.replace(target)
            held.filed, held.until, held.later = _read(target, view=True), held.last, _empty()
            held.failures = 0
        except _UNREADABLE as error:
            held.failures += 1
            _log.warning("the vectors in `%s` are not kept: %s", self.folder, type(error).__name__)
        with suppress(OSError):
            scratch.unlink(missing_ok=True)
        return self._clear(name, held.until)

    def _clear(self, name: str, until: int) -> None:
        """Remove older files, those of a database that was here before, and half-written ones."""
        for file in self.folder.glob(f"{name.partition('-')[0]}-*"):
            stem, _, number = file.stem.rpartition("-")
            older = number.isdecimal() and int(number) < until
            with suppress(OSError):
                if file.suffix == _SCRATCH:
                    remains = time.time() - file.stat().st_mtime > _WRITING_SECONDS
                else:
                    remains = stem != name or older
                if remains:
                    file.unlink(missing_ok=True)


async def _name(connection: AsyncConnection, mark: str) -> str:
    """Of a tenant's files: another database in the same place has other ones."""
    made = select(schema_version.c.applied_at).order_by(schema_version.c.version).limit(1)
    return f"{mark[1:]}-{await connection.scalar(made):%Y%m%d%H%M%S%f}"


async def _catch_up(connection: AsyncConnection, tenant: str, held: _Held, *, sample: bool) -> None:
    """Add what came after both indexes."""
    while page := await _after(connection, tenant, held.last, sample=sample):
        await asyncio.to_thread(_add, held, page)


async def _wanted(
    connection: AsyncConnection, numbers: Sequence[int], where: Conditions
) -> set[int]:
    """Which of these are still there and wanted."""
    left: set[int] = set()
    for some in batches(numbers):
        rows = select(chunks.c.number).where(chunks.c.number.in_(some), *where)
        left.update(await connection.scalars(rows))
    return left


async def _numbers_of(connection: AsyncConnection, tenant: str, *, sample: bool) -> Sequence[int]:
    """All of a tenant's entries."""
    wanted = select(chunks.c.number)
    rows = wanted.where(chunks.c.tenant == tenant, chunks.c.sample == sample)
    return (await connection.scalars(rows)).all()


async def _after(
    connection: AsyncConnection, tenant: str, last: int, *, sample: bool
) -> list[tuple[int, Any]]:
    """Numbers and vectors of a tenant's next entries."""
    wanted = select(chunks.c.number, chunks.c.vector)
    mine = chunks.c.tenant == tenant, chunks.c.sample == sample, chunks.c.number > last
    wanted = wanted.where(*mine)
    rows = await connection.execute(wanted.order_by(chunks.c.number).limit(_PAGE))
    return [(row.number, row.vector) for row in rows]


def _numbers(numbers: Sequence[int]) -> Any:
    import numpy

    return numpy.array(numbers, dtype=numpy.uint64)


def _signed(vectors: bytes) -> Any:
    import numpy

    return numpy.frombuffer(vectors, dtype=numpy.int8)


def _empty() -> Any:
    from usearch.index import Index  # loaded with the first search

    return Index(ndim=DIMENSIONS, metric="cos", dtype="i8")


def _read(file: Path, *, view: bool) -> Any:
    """The index of a file.

    Raises:
        ValueError: it holds none, or one of another kind.
    """
    from usearch.index import Index

    index = Index.restore(str(file), view=view)
    if index is None or index.ndim != DIMENSIONS:
        raise ValueError("no index")
    return index


def _united(index: Any, later: Any, there: Sequence[int]) -> Any:
    """An index and a later one, which may be the same; made anew when more is gone than there."""
    import numpy

    if index is not later:
        index.add(later.keys[:], numpy.stack(later.get(later.keys[:])))
    keys = index.keys[:]
    # a search that began later may have read what this one does not see yet
    left = keys[numpy.isin(keys, _numbers(there)) | (keys > max(there, default=0))]
    if len(index) - len(left) <= len(left):
        return index
    fresh = _empty()
    if len(left):
        fresh.add(left, numpy.stack(index.get(left)))
    return fresh


def _add(held: _Held, page: Sequence[tuple[int, Any]]) -> None:
    whole = [(number, vector) for number, vector in page if len(vector or b"") == DIMENSIONS]
    if whole:
        rows = _signed(b"".join(vector for _, vector in whole))
        held.later.add(_numbers([n for n, _ in whole]), rows.reshape(-1, DIMENSIONS))
    held.last = page[-1][0]


def _search(held: _Held, vector: bytes, most: int, *, exact: bool = False) -> list[int]:
    query = _signed(vector)
    near: list[tuple[float, int]] = []
    for index in (held.filed, held.later):
        if index is not None and len(index):
            nearest = index.search(query, most, exact=exact or len(index) <= _ALL)
            near += zip(map(float, nearest.distances), map(int, nearest.keys), strict=True)
    return [number for _, number in sorted(near)[:most]]
