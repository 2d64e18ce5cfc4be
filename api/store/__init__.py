"""What is remembered between runs: one implementation, SQLite by default, PostgreSQL by URL."""

from __future__ import annotations

from api.store.analyses import AnalysesPart
from api.store.database import Database
from api.store.keys import KeysPart
from api.store.ledger import LedgerPart
from api.store.migrations import migrate
from api.store.pages import PagesPart
from api.store.sessions import IdempotencyPart, SessionsPart
from api.store.urls import engine_url

__all__ = ["SqlStore", "open_store"]


class SqlStore(AnalysesPart, LedgerPart, PagesPart, KeysPart, SessionsPart, IdempotencyPart):
    """Everything remembered, in one database; belongs to one event loop. See `open_store`."""

    async def aclose(self) -> None:
        """End the heartbeat and close the connections; analyses still running here have failed."""
        await self._stop()
        await self._database.aclose()


async def open_store(url: str | None) -> SqlStore:
    """Connect, migrate, and be ready; None is the SQLite file in the user's data directory.

    Raises:
        ConfigurationError: the URL is none of SQLite or PostgreSQL.
        StoreUnavailable: no connection within five seconds, no right to it, or a newer schema.
    """
    database = Database(engine_url(url))
    opened = False
    try:
        await database.unbroken(_ready(database))
        opened = True
    finally:
        if not opened:
            await database.aclose()
    return SqlStore(database)


async def _ready(database: Database) -> None:
    await database.prepare()
    await migrate(database)
