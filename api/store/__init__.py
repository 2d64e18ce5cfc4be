"""The database of everything remembered: SQLite by default, PostgreSQL by URL."""

from __future__ import annotations

from contextlib import AsyncExitStack

from api.features.archive.embedding import MOST_UNASKED, Embedder
from api.features.archive.search_values import Embed
from api.store.archive_repository import ArchiveRepository
from api.store.database import Database, engine_url
from api.store.entry_embedding import EntryEmbedding
from api.store.feed_repository import FeedRepository
from api.store.item_rows import no_vectors
from api.store.migrations import migrate
from api.store.record_repository import RecordRepository
from api.store.shared_repository import SharedRepository
from api.store.stream_repository import StreamRepository
from api.store.vectors import vectors_of

__all__ = ["SqlStore", "open_store"]


class SqlStore(ArchiveRepository, FeedRepository, RecordRepository, SharedRepository, StreamRepository):
    """Implements `Store`; belongs to one event loop. See `open_store`."""

    async def aclose(self) -> None:
        """Stop the heartbeat and close the connections; running analyses of this process are marked as failed."""
        await self._stop()
        if self.embedding is not None:
            await self.embedding.aclose()
        if self._vectors is not None:
            await self._vectors.aclose()
        await self._database.aclose()


async def open_store(
    url: str | None,
    embed: Embed = no_vectors,
    embedder: Embedder | None = None,
    most_unasked: int = MOST_UNASKED,
) -> SqlStore:
    """Connect and create or upgrade the tables; None is the SQLite file in the user's data folder.

    `embed` makes the vectors by which the archive is searched; without it, words alone are used. `embedder` makes
    others by a server, behind what stores entries, and is closed with the store; see `MOST_UNASKED`.

    Raises:
        ConfigurationError: it is not a URL of SQLite or PostgreSQL.
        StoreUnavailable: no connection within five seconds, no right to it, or a newer schema.
    """
    database = Database(engine_url(url))

    async def make_ready() -> SqlStore:
        await database.prepare()
        await migrate(database)
        vectors = await vectors_of(database)
        # without vectors to compare, none are paid for
        embedding = None if embedder is None or vectors is None else EntryEmbedding(database, embedder, most_unasked)
        return SqlStore(database, embed=embed, vectors=vectors, embedding=embedding)

    async with AsyncExitStack() as closing:
        closing.push_async_callback(database.aclose)
        store = await database.unbroken(make_ready())
        closing.pop_all()
    return store
