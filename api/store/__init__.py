"""What is remembered between runs: one implementation, SQLite by default, PostgreSQL by URL."""

from __future__ import annotations

from contextlib import AsyncExitStack

from api.features.archive.entries import Embed
from api.store.analysis_repository import CountsPart, PurposesPart
from api.store.archive_index import no_vectors
from api.store.archive_repository import ArchivePart
from api.store.correction_repository import CorrectionsPart
from api.store.database import Database, engine_url
from api.store.import_repository import ImportsPart
from api.store.migrations import migrate
from api.store.record_repository import (
    AdmissionsPart,
    FeedbackPart,
    IdempotencyPart,
    KeysPart,
    LedgerPart,
    PagesPart,
    SessionsPart,
)
from api.store.vectors import vectors_of
from api.store.watch_repository import WatchesPart

__all__ = ["SqlStore", "open_store"]


class SqlStore(
    ArchivePart,
    CountsPart,
    LedgerPart,
    PagesPart,
    KeysPart,
    AdmissionsPart,
    SessionsPart,
    IdempotencyPart,
    FeedbackPart,
    CorrectionsPart,
    ImportsPart,
    WatchesPart,
    PurposesPart,
):
    """Everything remembered, in one database; belongs to one event loop. See `open_store`."""

    async def aclose(self) -> None:
        """End the heartbeat and close the connections; analyses still running here have failed."""
        await self._stop()
        if self._vectors is not None:
            await self._vectors.aclose()
        await self._database.aclose()


async def open_store(url: str | None, embed: Embed = no_vectors) -> SqlStore:
    """Connect, migrate, and be ready; None is the SQLite file in the user's data directory.

    `embed` makes the vectors by which the archive is searched; without it that is by words alone.

    Raises:
        ConfigurationError: the URL is none of SQLite or PostgreSQL.
        StoreUnavailable: no connection within five seconds, no right to it, or a newer schema.
    """
    database = Database(engine_url(url))

    async def make_ready() -> SqlStore:
        await database.prepare()
        await migrate(database)
        return SqlStore(database, embed=embed, vectors=await vectors_of(database))

    async with AsyncExitStack() as closing:
        closing.push_async_callback(database.aclose)
        store = await database.unbroken(make_ready())
        closing.pop_all()
    return store
