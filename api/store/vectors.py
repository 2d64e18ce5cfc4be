"""The nearest entries: beside SQLite in files, on PostgreSQL by its extension `vector`.

What is found here is only a guess: the table says what there is, so an index that is older, or
gone, costs time and never an answer. The files hold the entries up to a number; what came later is
read from the table, and written to a new file when it is much.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from sqlalchemy import cast, literal_column, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from api.errors import StoreUnavailable
from api.services.archive.shelf import DIMENSIONS
from api.store.database import Database
from api.store.indexing import HALFVEC, mark, written
from api.store.tables import chunks, schema_version

_log = logging.getLogger(__name__)
_LOADED = 8
"""Tenants whose index is held at once."""
_LATER = 5_000
"""Entries after which a new file is written, if they are a fifth of it."""
_PAGE = 20_000
"""Vectors read at once."""


_THERE = (
    "SELECT 1 FROM information_schema.columns WHERE table_schema = current_schema() "
    "AND table_name = 'chunks' AND column_name = 'embedding'"
)
_COLUMN = (
    "CREATE EXTENSION IF NOT EXISTS vector",
    f"ALTER TABLE chunks ADD COLUMN IF NOT EXISTS embedding HALFVEC({DIMENSIONS})",
    "CREATE INDEX IF NOT EXISTS chunks_by_meaning ON chunks "
    "USING hnsw (embedding halfvec_cosine_ops)",
)
_UNREADABLE = (OSError, RuntimeError, ValueError)
"""What usearch raises over a file that is gone, cut or full, or none of its own."""


class Vectors(Protocol):
    """Nearest entries by number."""

    async def nearest(
        self, connection: AsyncConnection, tenant: str, vector: bytes, most: int, *, sample: bool
    ) -> list[int]:
        """At most so many of a tenant's real or made-up entries, the nearest first."""
        ...


@dataclass(slots=True)
class _Held:
    """One tenant's index: a file as it lies there, and what came after it."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    filed: Any = None
    later: Any = None
    last: int = 0
    """The highest number in either."""


@dataclass(frozen=True, slots=True)
class FiledVectors:
    """In files beside an SQLite database."""

    folder: Path
    _held: OrderedDict[tuple[str, bool], _Held] = field(default_factory=OrderedDict)

    async def nearest(
        self, connection: AsyncConnection, tenant: str, vector: bytes, most: int, *, sample: bool
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
            while page := await _after(connection, tenant, held.last, sample=sample):
                await asyncio.to_thread(_add, held, page)
            if len(held.later) > max(_LATER, len(held.filed or ()) // 5):
                await asyncio.to_thread(self._file, held, name)
            return await asyncio.to_thread(_search, held, vector, most)

    def _open(self, held: _Held, name: str) -> None:
        """The newest file that can be read; without any, all is read from the table."""
        held.filed, held.later, held.last = None, _empty(), 0
        for last, file in reversed(self._files(name)):
            with suppress(*_UNREADABLE):
                held.filed, held.last = _read(file, view=True), last
                return

    def _file(self, held: _Held, name: str) -> None:
        """Write both to one new file and remove the older ones; where that fails, go on without."""
        files = self._files(name)
        newest = files[-1][1] if held.filed is not None and files else None
        target = self.folder / f"{name}-{held.last}.usearch"
        try:
            both = _read(newest, view=False) if newest else _empty()
            numbers = list(held.later.keys)
            both.add(_numbers(numbers), held.later.get(_numbers(numbers)))
            self.folder.mkdir(mode=0o700, exist_ok=True)
            scratch = target.with_suffix(f".{os.getpid()}")
            both.save(str(scratch))
            scratch.replace(target)
            held.filed, held.later = _read(target, view=True), _empty()
        except _UNREADABLE as error:
            _log.warning("the vectors in `%s` are not kept: %s", self.folder, type(error).__name__)
            return
        for _, older in files:
            if older != target:
                older.unlink(missing_ok=True)

    def _files(self, name: str) -> list[tuple[int, Path]]:
        """A tenant's files with the highest number in each, the oldest first."""
        return sorted(
            (int(number), file)
            for file in self.folder.glob(f"{name}-*.usearch")
            if (number := file.stem.rpartition("-")[2]).isdigit()
        )


async def _name(connection: AsyncConnection, mark: str) -> str:
    """Of a tenant's files: another database in the same place has other ones."""
    made = select(schema_version.c.applied_at).order_by(schema_version.c.version.desc()).limit(1)
    return f"{mark}-{await connection.scalar(made):%Y%m%d%H%M%S%f}"


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


def _add(held: _Held, page: Sequence[tuple[int, Any]]) -> None:
    whole = [(number, vector) for number, vector in page if len(vector or b"") == DIMENSIONS]
    if whole:
        rows = _signed(b"".join(vector for _, vector in whole))
        held.later.add(_numbers([n for n, _ in whole]), rows.reshape(-1, DIMENSIONS))
    held.last = page[-1][0]


def _search(held: _Held, vector: bytes, most: int) -> list[int]:
    query = _signed(vector)
    near: list[tuple[float, int]] = []
    for index in (held.filed, held.later):
        if index is not None and len(index):
            found = index.search(query, most)
            near += zip(map(float, found.distances), map(int, found.keys), strict=True)
    return [number for _, number in sorted(near)[:most]]


class ExtensionVectors:
    """In the column that `prepared` made, on PostgreSQL."""

    async def nearest(
        self, connection: AsyncConnection, tenant: str, vector: bytes, most: int, *, sample: bool
    ) -> list[int]:
        """See `Vectors`."""
        await connection.execute(text("SET LOCAL hnsw.iterative_scan = relaxed_order"))
        await connection.execute(text(f"SET LOCAL hnsw.ef_search = {max(most, 40)}"))
        mine = chunks.c.tenant == tenant, chunks.c.sample == sample
        near = select(chunks.c.number).where(*mine)
        distance = literal_column("embedding").op("<=>")(cast(written(vector), HALFVEC))
        return list(await connection.scalars(near.order_by(distance).limit(most)))


async def vectors_of(database: Database) -> Vectors | None:
    """Who looks for the nearest; None on PostgreSQL without the extension `vector`.

    Makes the extension, a column and its index, once.
    """
    if database.file is not None:
        return FiledVectors(database.file.with_name(f"{database.file.name}-vectors"))
    try:
        async with database.reading() as connection:
            there = (await connection.exec_driver_sql(_THERE)).first()
        if there is None:
            async with database.writing(alone=True) as connection:
                for statement in _COLUMN:
                    await connection.exec_driver_sql(statement)
    except StoreUnavailable:
        _log.info("PostgreSQL has no extension `vector`: the archive is searched by words only")
        return None
    return ExtensionVectors()
