"""The nearest entries by vector: in files beside SQLite, by the extension `vector` on PostgreSQL.

A hit in a file is only a candidate: the table says which entries exist, so a file that is older, or gone,
costs time and never an answer. A search reads what came after the files from the table, so much
of it as takes no time worth speaking of; files are written, and much that came is read, by a task
behind it. What is read is a page of the table at a time: a process that is stopped loses one.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from array import array
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from sqlalchemy import ColumnElement, cast, literal_column, select, text
from sqlalchemy import func as sql
from sqlalchemy.ext.asyncio import AsyncConnection

from api.errors import StoreUnavailable, missing_module
from api.features.archive.embedding import dimensions_of
from api.features.archive.search_values import DIMENSIONS
from api.store.database import Database
from api.store.item_rows import Halfvec, tenant_token, vector_text
from api.store.tables import Conditions, batches, chunks, embeddings, schema_version

if TYPE_CHECKING:
    from api.store.vector_entries import Neighbours


_log = logging.getLogger(__name__)
# Tenants whose files are held at once.
_LOADED = 8
# Entries that are looked at when too few of the nearest are wanted.
_MOST_LOOKED_AT = 10_000
# A tenant, whether it is about what is made up, and the model.
_Owner = tuple[str, bool, str]


@dataclass(slots=True)
class _HeldVectors:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    neighbours: Neighbours | None = None


@dataclass(slots=True)
class FiledVectors:
    """Vectors in files beside an SQLite database; belongs to one event loop."""

    database: Database
    folder: Path
    most_later: int = 5_000
    """Entries after which a file is written."""
    most_read: int = 60_000
    """Most entries that one search reads from the table; a background task reads the rest."""
    page: int = 20_000
    """Entries read at once, for word vectors; fewer for longer vectors, here and in `most_read`."""
    _held: OrderedDict[_Owner, _HeldVectors] = field(default_factory=OrderedDict)
    _following: dict[_Owner, asyncio.Task[None]] = field(default_factory=dict)
    _closed: bool = False

    async def nearest(
        self,
        connection: AsyncConnection,
        tenant: str,
        vector: bytes,
        most: int,
        where: Conditions,
        *,
        sample: bool,
        model: str = "",
    ) -> tuple[list[int], int]:
        """See `StoredVectors`; the first search of a tenant opens its files."""
        owner, unread = (tenant, sample, model), 0
        page_size = self._page(model)
        held = self._holding(owner)
        async with held.lock:
            neighbours = await self._opened(connection, owner, held)
            await asyncio.to_thread(neighbours.load)
            for _ in range(0, self.most_read, self.page):
                if page := await _after(connection, owner, neighbours.last, page_size):
                    await asyncio.to_thread(neighbours.add, page)
                if len(page) < page_size:
                    break
            else:
                behind = *_are(owner), chunks.c.number > neighbours.last
                counted = select(sql.count()).select_from(chunks).where(*behind)
                if model:
                    made = embeddings, (embeddings.c.chunk == chunks.c.number) & (embeddings.c.model == model)
                    counted = select(sql.count()).select_from(chunks.join(*made)).where(*behind)
                unread = await connection.scalar(counted) or 0
            near = await asyncio.to_thread(neighbours.nearest, vector, most)
            left = await _wanted(connection, near, where)
            if len(left) < most:
                # what was deleted or is not wanted took the places
                near = await asyncio.to_thread(neighbours.nearest, vector, _MOST_LOOKED_AT)
                left = await _wanted(connection, near, where)
            if unread or neighbours.due:
                self._follow(owner)
        return [number for number in near if number in left][:most], unread

    def follow(self, tenant: str) -> None:
        """See `StoredVectors`."""
        self._follow((tenant, False, ""))

    async def settle(self) -> None:
        """Wait until everything is read and written that is to be."""
        while self._following:
            await asyncio.gather(*self._following.values())

    async def aclose(self) -> None:
        """Let the tasks end where they are: the next process goes on there."""
        self._closed = True
        await self.settle()

    def _page(self, model: str) -> int:
        return max(1, self.page * DIMENSIONS // dimensions_of(model))

    def _follow(self, owner: _Owner) -> None:
        """Begin a task that reads what is not read, unless there is one."""
        if owner not in self._following and not self._closed:
            work = self.database.unbroken(self._catch_up(owner))
            task = self._following[owner] = asyncio.create_task(work)
            task.add_done_callback(lambda _: self._following.pop(owner, None))

    async def _catch_up(self, owner: _Owner) -> None:
        """Read the remaining entries, one page at a time, and write them to files."""
        held, more, page_size = self._holding(owner), True, self._page(owner[2])
        try:
            while more:
                async with self.database.reading() as connection:
                    async with held.lock:
                        neighbours = await self._opened(connection, owner, held)
                        page = await _after(connection, owner, neighbours.last, page_size)
                        if page:
                            await asyncio.to_thread(neighbours.add, page)
                    more = len(page) == page_size and not self._closed
                    if neighbours.due:
                        await self._file(connection, owner, held, neighbours)
        except StoreUnavailable as error:
            _log.warning("vectors are not read on: %s", error)

    async def _file(
        self, connection: AsyncConnection, owner: _Owner, held: _HeldVectors, neighbours: Neighbours
    ) -> None:
        """Write a file; searches go on meanwhile."""
        async with held.lock:
            mine = *_are(owner), chunks.c.number <= neighbours.last
            there = await connection.scalar(select(sql.count()).where(*mine)) or 0
            gone = neighbours.count - there > there
            plan = await asyncio.to_thread(neighbours.plan, everything=gone)
        if plan is None:
            return
        into = *_are(owner), chunks.c.number > plan.since, chunks.c.number <= plan.last
        rows = await connection.stream_scalars(select(chunks.c.number).where(*into).order_by(chunks.c.number))
        numbers = array("Q")
        async for some in rows.partitions(self.page):
            numbers.extend(some)
        if await asyncio.to_thread(neighbours.write, plan, numbers):
            async with held.lock:
                await asyncio.to_thread(neighbours.put, plan)

    def _holding(self, owner: _Owner) -> _HeldVectors:
        held = self._held.setdefault(owner, _HeldVectors())
        self._held.move_to_end(owner)
        while len(self._held) > _LOADED:
            self._held.popitem(last=False)
        return held

    async def _opened(self, connection: AsyncConnection, owner: _Owner, held: _HeldVectors) -> Neighbours:
        if held.neighbours is None:
            from api.store.vector_entries import Neighbours  # what it needs takes time to load

            tenant, sample, model = owner
            # another database in the same place has other files
            made = select(schema_version.c.applied_at).order_by(schema_version.c.version).limit(1)
            stamp = f"{await connection.scalar(made):%Y%m%d%H%M%S%f}"
            # files of another model are none of this one's older files
            mark = hashlib.sha256(model.encode()).hexdigest()[:8] if model else ""
            name = f"{tenant_token(tenant, sample=sample)[1:]}{mark}-{stamp}"
            of_model = dimensions_of(model)
            held.neighbours = await asyncio.to_thread(Neighbours, self.folder, name, self.most_later, of_model)
        return held.neighbours


def _are(owner: _Owner) -> Conditions:
    tenant, sample, _ = owner
    return chunks.c.tenant == tenant, chunks.c.sample == sample


async def _wanted(connection: AsyncConnection, numbers: Sequence[int], where: Conditions) -> set[int]:
    """Those of the numbers that still exist and match."""
    left: set[int] = set()
    for some in batches(numbers):
        rows = select(chunks.c.number).where(chunks.c.number.in_(some), *where)
        left.update(await connection.scalars(rows))
    return left


async def _after(connection: AsyncConnection, owner: _Owner, last: int, most: int) -> list[tuple[int, bytes | None]]:
    """Numbers and vectors of a tenant's next entries; for a server's model only entries that have one."""
    wanted = select(chunks.c.number, chunks.c.vector)
    if model := owner[2]:
        made = (embeddings.c.chunk == chunks.c.number) & (embeddings.c.model == model)
        wanted = select(chunks.c.number, embeddings.c.vector).join_from(chunks, embeddings, made)
    wanted = wanted.where(*_are(owner), chunks.c.number > last)
    rows = await connection.execute(wanted.order_by(chunks.c.number).limit(most))
    return [(row.number, row.vector) for row in rows]


_WITH_COLUMN = (
    "SELECT table_name FROM information_schema.columns WHERE table_schema = current_schema() "
    "AND table_name IN ('chunks', 'embeddings') AND column_name = 'embedding'"
)
_EXTENSION = "CREATE EXTENSION IF NOT EXISTS vector"
_COLUMN = (
    f"ALTER TABLE chunks ADD COLUMN IF NOT EXISTS embedding HALFVEC({DIMENSIONS})",
    "CREATE INDEX IF NOT EXISTS chunks_by_meaning ON chunks USING hnsw (embedding halfvec_cosine_ops)",
    "UPDATE chunks SET vector = NULL",  # so that the first search reads up what is there
)
# Of any number of dimensions; each model has an index of its own.
_COLUMN_OF_MODELS = ("ALTER TABLE embeddings ADD COLUMN IF NOT EXISTS embedding HALFVEC",)
# Searches with filters came with 0.8.
_USABLE = (
    "SELECT 1 FROM pg_available_extensions WHERE name = 'vector' AND "
    "string_to_array(coalesce(installed_version, default_version), '.')::int[] >= '{0,8}'"
)


class StoredVectors(Protocol):
    """Finds the nearest entries, by number, in the vectors of the database."""

    async def nearest(
        self,
        connection: AsyncConnection,
        tenant: str,
        vector: bytes,
        most: int,
        where: Conditions,
        *,
        sample: bool,
        model: str = "",
    ) -> tuple[list[int], int]:
        """The nearest of a tenant's real or sample entries, at most `most`, nearest first.

        And how many were not compared, since they are still being read. `where` says which are
        wanted, of those that are still there; `model` is the vector's, see `ModelVectors.model`.
        """
        ...

    def follow(self, tenant: str) -> None:
        """Read a tenant's newly stored entries in the background."""
        ...

    async def aclose(self) -> None:
        """Stop reading and writing files in the background; what is written stays."""
        ...


class ExtensionVectors:
    """Vectors in a PostgreSQL column that `vectors_of` creates."""

    async def nearest(
        self,
        connection: AsyncConnection,
        tenant: str,
        vector: bytes,
        most: int,
        where: Conditions,
        *,
        sample: bool,
        model: str = "",
    ) -> tuple[list[int], int]:
        """See `StoredVectors`."""
        await connection.execute(text("SET LOCAL hnsw.iterative_scan = relaxed_order"))
        await connection.execute(text(f"SET LOCAL hnsw.ef_search = {max(most, 40)}"))
        mine = chunks.c.tenant == tenant, chunks.c.sample == sample
        near, column = select(chunks.c.number).where(*mine, *where), "chunks.embedding"
        if model:  # written as the index of the model has it
            of_model: ColumnElement[bool] = literal_column(f"embeddings.model = '{model}'")
            near = near.join_from(chunks, embeddings, embeddings.c.chunk == chunks.c.number).where(of_model)
            column = f"(embeddings.embedding::halfvec({len(vector)}))"
        distance = literal_column(column).op("<=>")(cast(vector_text(vector), Halfvec(len(vector))))
        return list(await connection.scalars(near.order_by(distance).limit(most))), 0

    def follow(self, tenant: str) -> None:
        """The database has done it."""

    async def aclose(self) -> None:
        """Do nothing; the database does the work."""


async def vectors_of(database: Database) -> StoredVectors | None:
    """Vector search of a database; None on SQLite without `usearch`, on PostgreSQL without the extension `vector`.

    Makes the extension, two columns and an index, once.
    """
    if database.file is not None:
        if missing_module("search"):
            return None
        return FiledVectors(database, database.file.with_name(f"{database.file.name}-vectors"))
    try:
        async with database.reading() as connection:
            usable = (await connection.exec_driver_sql(_USABLE)).first() is not None
            there = {row[0] for row in await connection.exec_driver_sql(_WITH_COLUMN)}
        statements = {"chunks": _COLUMN, "embeddings": _COLUMN_OF_MODELS}
        missing = [statement for table in statements if table not in there for statement in statements[table]]
        if usable and missing:
            async with database.writing(alone=True) as connection:
                for statement in (_EXTENSION, *missing):
                    await connection.exec_driver_sql(statement)
    except StoreUnavailable:
        usable = False
    if not usable:
        _log.info("PostgreSQL has no extension `vector` for us: the archive is searched by words")
    return ExtensionVectors() if usable else None
