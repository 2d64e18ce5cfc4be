"""One engine with two kinds of transactions; every driver's error leaves it as `StoreUnavailable`.

Reads see one snapshot. Writes on SQLite begin with `BEGIN IMMEDIATE`, one at a time within the
process so that tasks queue instead of polling; on PostgreSQL they are READ COMMITTED, and those
that must be alone take one advisory lock.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    asynccontextmanager,
    closing,
    contextmanager,
    nullcontext,
)
from typing import Any, TypeVar

from sqlalchemy import Connection, Table, event, select
from sqlalchemy import func as sql
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from api.errors import StoreUnavailable
from api.store.urls import VARIABLE, private

CONNECT_SECONDS = 5.0
"""For a connection, and for SQLite's lock held by another process."""
_STATEMENT_SECONDS = 30.0
_PATIENCE = 2.0
_PAUSE = 0.05
_ALONE = 0x4C504F53
"""The advisory lock of this program's writes."""
R = TypeVar("R")


class Database:
    """A database that is known to be there; belongs to one event loop."""

    def __init__(self, url: URL, seconds: float = CONNECT_SECONDS) -> None:
        """Connect to nothing yet; `url` has its async driver, `seconds` are for each wait."""
        self._seconds, self._file = seconds, str(url.database)
        self._calls: set[asyncio.Task[Any]] = set()
        self.sqlite = url.get_backend_name() == "sqlite"
        self._where = f"`{url.database}`" if self.sqlite else f"PostgreSQL of {VARIABLE}"
        self._engine = (_sqlite if self.sqlite else _postgresql)(url, seconds)
        begin, isolation = ("BEGIN", None) if self.sqlite else (None, "REPEATABLE READ")
        self._reader = self._engine.execution_options(
            **{"begin": begin} if begin else {"isolation_level": isolation}
        )
        self._writing: AbstractAsyncContextManager[Any] = (
            asyncio.Lock() if self.sqlite else nullcontext()
        )

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[AsyncConnection]:
        """One snapshot.

        Raises:
            StoreUnavailable: the database cannot be used.
        """
        with self._explained():
            async with self._reader.connect() as connection, connection.begin():
                yield connection

    @asynccontextmanager
    async def writing(self, *, alone: bool = False) -> AsyncIterator[AsyncConnection]:
        """One transaction: all of it or nothing; `alone`: after every other that is alone.

        Raises:
            StoreUnavailable: the database cannot be used.
        """
        with self._explained():
            async with self._writing, self._engine.begin() as connection:
                if alone and not self.sqlite:
                    await connection.execute(select(sql.pg_advisory_xact_lock(_ALONE)))
                yield connection

    def insert(self, table: Table) -> postgresql.Insert | sqlite.Insert:
        """An insert that knows ON CONFLICT, in this dialect."""
        return sqlite.insert(table) if self.sqlite else postgresql.insert(table)

    async def prepare(self) -> None:
        """Look at an SQLite file and put it into WAL mode.

        Not through the engine: aiosqlite leaves a thread behind when it fails to connect, which
        complains when the loop has ended before it.

        Raises:
            StoreUnavailable: the database cannot be used.
        """
        if self.sqlite:
            with self._explained():
                await asyncio.to_thread(_write_ahead, self._file, self._seconds)

    async def unbroken(self, work: Coroutine[Any, Any, R]) -> R:
        """Let work end although its caller is cancelled.

        A statement that is cancelled leaves SQLite's thread, and perhaps its lock, in the middle
        of a transaction; a whole transaction takes milliseconds.
        """
        task = asyncio.create_task(work)
        self._calls.add(task)
        task.add_done_callback(self._ended)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            await asyncio.wait({task}, timeout=_PATIENCE)
            raise

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._calls.discard(task)
        if not task.cancelled():
            task.exception()  # nobody may be left to hear it

    async def aclose(self) -> None:
        """Wait for what is under way and close the connections."""
        if self._calls:
            await asyncio.wait(set(self._calls), timeout=self._seconds)
        await self._engine.dispose()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Drivers' errors hold statements, values and passwords: only their kind is passed on."""
        try:
            yield
        except DBAPIError as error:
            raise self._unavailable(_reason(error.orig)) from None
        except PoolTimeout:
            raise self._unavailable("all connections are busy") from None
        except TimeoutError:
            raise self._unavailable(f"no answer within {self._seconds:g} s") from None
        except (OSError, sqlite3.Error) as error:
            raise self._unavailable(_reason(error)) from None
        except _foreign(self.sqlite) as error:
            raise self._unavailable(type(error).__name__) from None

    def _unavailable(self, why: str) -> StoreUnavailable:
        return StoreUnavailable(
            f"the database {self._where} cannot be used: {why}; check {VARIABLE}"
        )


def _foreign(sqlite_only: bool) -> tuple[type[Exception], ...]:
    """What asyncpg raises while it connects, before SQLAlchemy looks at it."""
    if sqlite_only:
        return ()
    import asyncpg

    return (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)


def _reason(error: BaseException | None) -> str:
    """Words without values: SQLite's own, the system's, or the name of the error."""
    if isinstance(error, sqlite3.Error):
        return str(error)
    if isinstance(error, ConnectionRefusedError) or "Connect call failed" in str(error):
        return "connection refused"
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    cause = error.__cause__ if error is not None and error.__cause__ is not None else error
    return type(cause).__name__


def _write_ahead(file: str, seconds: float) -> None:
    """SQLite does not wait for the lock that changing the mode needs, so we do."""
    private(file)
    until = time.monotonic() + seconds
    with closing(sqlite3.connect(file, seconds)) as connection:
        while True:
            try:
                connection.execute("PRAGMA journal_mode=WAL").fetchall()
                return
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > until:
                    raise
            time.sleep(_PAUSE)


def _sqlite(url: URL, seconds: float) -> AsyncEngine:
    engine = create_async_engine(
        url, connect_args={"timeout": seconds}, pool_timeout=CONNECT_SECONDS
    )
    event.listen(engine.sync_engine, "connect", _connected)
    event.listen(engine.sync_engine, "begin", _begun)
    return engine


def _connected(connection: Any, record: object) -> None:
    """Every SQLite connection: transactions are ours to begin, keys are enforced."""
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute("PRAGMA synchronous=NORMAL")
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.close()


def _begun(connection: Connection) -> None:
    begin = connection.get_execution_options().get("begin", "BEGIN IMMEDIATE")
    connection.exec_driver_sql(begin)


def _postgresql(url: URL, seconds: float) -> AsyncEngine:
    return create_async_engine(
        url,
        connect_args={"timeout": seconds, "command_timeout": _STATEMENT_SECONDS},
        pool_timeout=CONNECT_SECONDS,
        pool_pre_ping=True,
    )
