"""The nearest entries: beside SQLite in files, on PostgreSQL by its extension `vector`."""

from __future__ import annotations

import logging
from typing import Protocol

from sqlalchemy import cast, literal_column, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from api.errors import StoreUnavailable
from api.services.archive.shelf import DIMENSIONS
from api.store.database import Database
from api.store.indexing import HALFVEC, written
from api.store.tables import Conditions, chunks
from api.store.vector_files import FiledVectors

_log = logging.getLogger(__name__)
_THERE = (
    "SELECT 1 FROM information_schema.columns WHERE table_schema = current_schema() "
    "AND table_name = 'chunks' AND column_name = 'embedding'"
)
_COLUMN = (
    "CREATE EXTENSION IF NOT EXISTS vector",
    f"ALTER TABLE chunks ADD COLUMN IF NOT EXISTS embedding HALFVEC({DIMENSIONS})",
    "CREATE INDEX IF NOT EXISTS chunks_by_meaning ON chunks "
    "USING hnsw (embedding halfvec_cosine_ops)",
    "UPDATE chunks SET vector = NULL",  # so that the first search reads up what is there
)
_USABLE = (
    "SELECT 1 FROM pg_available_extensions WHERE name = 'vector' AND "
    "string_to_array(coalesce(installed_version, default_version), '.')::int[] >= '{0,8}'"
)
"""Searches with filters came with 0.8."""


class StoredVectors(Protocol):
    """Nearest entries by number."""

    async def nearest(
        self,
        connection: AsyncConnection,
        tenant: str,
        vector: bytes,
        most: int,
        where: Conditions,
        *,
        sample: bool,
    ) -> tuple[list[int], int]:
        """At most so many of a tenant's real or made-up entries, the nearest first.

        And how many were not compared, since they are still being read. `where` says which are
        wanted, of those that are still there.
        """
        ...

    def follow(self, tenant: str) -> None:
        """Read what was stored of a tenant, beside whatever comes next."""
        ...

    async def aclose(self) -> None:
        """End what goes on."""
        ...


class ExtensionVectors:
    """In the column that `vectors_of` made, on PostgreSQL."""

    async def nearest(
        self,
        connection: AsyncConnection,
        tenant: str,
        vector: bytes,
        most: int,
        where: Conditions,
        *,
        sample: bool,
    ) -> tuple[list[int], int]:
        """See `StoredVectors`."""
        await connection.execute(text("SET LOCAL hnsw.iterative_scan = relaxed_order"))
        await connection.execute(text(f"SET LOCAL hnsw.ef_search = {max(most, 40)}"))
        mine = chunks.c.tenant == tenant, chunks.c.sample == sample
        near = select(chunks.c.number).where(*mine, *where)
        distance = literal_column("embedding").op("<=>")(cast(written(vector), HALFVEC))
        return list(await connection.scalars(near.order_by(distance).limit(most))), 0

    def follow(self, tenant: str) -> None:
        """The database has done it."""

    async def aclose(self) -> None:
        """Nothing goes on."""


async def vectors_of(database: Database) -> StoredVectors | None:
    """Who looks for the nearest; None on PostgreSQL without the extension `vector`.

    Makes the extension, a column and its index, once.
    """
    if database.file is not None:
        return FiledVectors(database, database.file.with_name(f"{database.file.name}-vectors"))
    try:
        async with database.reading() as connection:
            usable = (await connection.exec_driver_sql(_USABLE)).first() is not None
            there = (await connection.exec_driver_sql(_THERE)).first() is not None
        if usable and not there:
            async with database.writing(alone=True) as connection:
                for statement in _COLUMN:
                    await connection.exec_driver_sql(statement)
    except StoreUnavailable:
        usable = False
    if not usable:
        _log.info("PostgreSQL has no extension `vector` for us: the archive is searched by words")
    return ExtensionVectors() if usable else None
