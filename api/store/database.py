"""Address of the database, and one engine with reading and writing transactions.

Reads see one snapshot. Writes on SQLite begin with `BEGIN IMMEDIATE`, one at a time within the
process so that tasks queue instead of polling; on PostgreSQL they are READ COMMITTED, and those
that must be alone take one advisory lock. Every driver's error leaves as `StoreUnavailable`, and
nothing here repeats a URL, since it may hold a password. The durable engine's tables are beside those of the store.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing, contextmanager, nullcontext, suppress
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from sqlalchemy import URL, Connection, Executable, Row, Table, event, select
from sqlalchemy import func as sql
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from api.errors import ConfigurationError, StoreUnavailable, extras_named
from api.settings import data_folder

VARIABLE = "`LISTENPOST_DATABASE_URL`"
CONNECT_SECONDS = 5.0
"""Seconds to wait for a connection, and for SQLite's lock when another process holds it."""
STATEMENT_SECONDS, PATIENT_SECONDS = 30.0, 3_600.0
"""Seconds to wait for one statement in PostgreSQL, normally and while tables are upgraded."""
# Of each connection to SQLite: the upper pages of the trees of a million entries stay there.
_CACHE_KB = 8_000
_BUSY = "all connections are in use"
_PATIENCE = 2.0
_PAUSE = 0.05
# The advisory lock of this program's writes.
_ALONE = 0x4C504F53
_DRIVERS = {
    "sqlite": "sqlite+aiosqlite",
    "sqlite+aiosqlite": "sqlite+aiosqlite",
    "postgresql": "postgresql+psycopg",
    "postgresql+psycopg": "postgresql+psycopg",
    "postgresql+asyncpg": "postgresql+psycopg",  # as older addresses have it, with `ssl`
}
_PARAMETERS = {"host", "port", "ssl", "sslmode"}
_FORMS = "`sqlite:///FILE` or `postgresql://USER:PASSWORD@HOST/NAME`"
# What stands in libpq's words over a connection, which hold names and addresses: our words for
# it. The first that fits: a certificate's file, too, "does not exist".
_COMPLAINTS = {
    "Connection refused": "connection refused",
    "root certificate file": "there is no root certificate to check the server's by",
    "No such file or directory": "there is no such file or socket",
    "failed to resolve host": "there is no such host",
    "authentication failed": "wrong user or password",
    "no password supplied": "no password",
    "no pg_hba.conf entry": "the server's `pg_hba.conf` does not let us in",
    " does not exist": "there is no such database or user",
    "invalid sslmode value": "`sslmode` has a value that is not known",
    "does not support SSL": "the server has no TLS",
    "certificate verify failed": "the server's certificate is not trusted",
    "too many clients": _BUSY,
    "timeout expired": "no answer in time",
    "server closed the connection": "the server closed the connection",
}
P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound="Repository")


def default_path() -> Path:
    """The SQLite file in the user's data directory."""
    return data_folder() / "listenpost.db"


def engine_url(text: str | None) -> URL:
    """The URL with its async driver; None is the default file, whose folder is created.

    Raises:
        ConfigurationError: it is not a URL of SQLite or PostgreSQL, or SQLite without a file.
        StoreUnavailable: the user's data directory cannot be made.
    """
    if text is None:
        path = default_path()
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise StoreUnavailable(
                f"the folder `{path.parent}` cannot be made ({error.strerror}); set {VARIABLE}"
            ) from None
        return URL.create("sqlite+aiosqlite", database=str(path))
    try:
        url = make_url(text.strip())
    except (ArgumentError, ValueError):
        raise ConfigurationError(f"{VARIABLE} is not a URL; write {_FORMS}") from None
    driver = _DRIVERS.get(url.drivername)
    if driver is None:
        raise ConfigurationError(
            f"{VARIABLE} names neither SQLite nor PostgreSQL; write {_FORMS}, with no driver but "
            "`aiosqlite` or `psycopg`"
        )
    url = url.set(drivername=driver)
    if driver == "sqlite+aiosqlite":
        if not url.database or ":memory:" in url.database or url.database.startswith("file:"):
            raise ConfigurationError(f"{VARIABLE} needs a file that stays; write `sqlite:///FILE`")
        return url
    if unknown := sorted(set(url.query) - _PARAMETERS):
        raise ConfigurationError(
            f"{VARIABLE} has the parameter `{unknown[0]}`, which is not known; "
            f"known are {', '.join(f'`{name}`' for name in sorted(_PARAMETERS))}"
        )
    if "ssl" in url.query:  # asyncpg's name for libpq's sslmode
        mode = url.query.get("sslmode", url.query["ssl"])
        url = url.difference_update_query(["ssl"]).update_query_dict({"sslmode": mode})
    return url


class Database:
    """A database that is known to be there; belongs to one event loop."""

    def __init__(
        self,
        url: URL,
        seconds: float = CONNECT_SECONDS,
        statement_seconds: float = STATEMENT_SECONDS,
    ) -> None:
        """Connect to nothing yet; `url` has its async driver, see the constants for the waits."""
        self._seconds = seconds
        self._calls: set[asyncio.Task[Any]] = set()
        self.sqlite = url.get_backend_name() == "sqlite"
        self.file = Path(str(url.database)) if self.sqlite else None
        self._where = f"`{url.database}`" if self.sqlite else f"PostgreSQL of {VARIABLE}"
        self._writing: AbstractAsyncContextManager[Any]
        self._engine: AsyncEngine
        if self.sqlite:
            self._engine = create_async_engine(url, connect_args={"timeout": seconds}, pool_timeout=seconds)

            # every connection: transactions are ours to begin, keys are enforced
            @event.listens_for(self._engine.sync_engine, "connect")
            def connected(connection: Any, record: object) -> None:
                connection.isolation_level = None
                cursor = connection.cursor()
                cursor.execute("PRAGMA synchronous=NORMAL")
                cursor.execute("PRAGMA foreign_keys=ON")
                cursor.execute(f"PRAGMA cache_size=-{_CACHE_KB}")
                cursor.close()

            @event.listens_for(self._engine.sync_engine, "begin")
            def begun(connection: Connection) -> None:
                begin = connection.get_execution_options().get("begin", "BEGIN IMMEDIATE")
                driver: Any = connection.connection.dbapi_connection
                driver.run_async(lambda sqlite: sqlite.execute(begin))  # one turn of its thread, by a cursor three

            self._reader = self._engine.execution_options(begin="BEGIN")
            self._writing = asyncio.Lock()
        else:
            with extras_named():
                from api.store.timed_connection import connecting

            self._engine = create_async_engine(
                url,
                connect_args={
                    "async_creator_fn": connecting(seconds, statement_seconds),
                    # a pooler may give each transaction another connection, where what was
                    # prepared is unknown; and each search is planned for its own words
                    "prepare_threshold": None,
                },
                pool_timeout=seconds,
                pool_pre_ping=True,
                # of an insert, too: psycopg forgets it with its cursor
                execution_options={"preserve_rowcount": True},
            )
            self._reader = self._engine.execution_options(isolation_level="REPEATABLE READ")
            self._writing = nullcontext()

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[AsyncConnection]:
        """A reading transaction on one snapshot.

        Raises:
            StoreUnavailable: the database cannot be used.
        """
        with self._explained():
            async with self._reader.connect() as connection, connection.begin():
                yield connection

    @asynccontextmanager
    async def writing(self, *, alone: bool = False) -> AsyncIterator[AsyncConnection]:
        """A writing transaction; with `alone` it waits for all other transactions that are `alone`.

        Raises:
            StoreUnavailable: the database cannot be used.
        """
        with self._explained():
            async with self._writing, self._engine.begin() as connection:
                if alone and not self.sqlite:
                    await connection.execute(select(sql.pg_advisory_xact_lock(_ALONE)))
                yield connection

    @asynccontextmanager
    async def patient(self, connection: AsyncConnection) -> AsyncIterator[None]:
        """Let statements of a connection take an hour within the block, as an index of a large table may."""
        driver = None if self.sqlite else (await connection.get_raw_connection()).driver_connection
        usual = getattr(driver, "statement_seconds", None)
        if driver is not None:
            driver.statement_seconds = PATIENT_SECONDS
        try:
            yield
        finally:
            if driver is not None:
                driver.statement_seconds = usual

    def insert(self, table: Table) -> postgresql.Insert | sqlite.Insert:
        """An insert that knows ON CONFLICT, in this dialect."""
        return sqlite.insert(table) if self.sqlite else postgresql.insert(table)

    def upsert(self, table: Table, key: Sequence[str], /, **values: Any) -> postgresql.Insert | sqlite.Insert:
        """A whole row in the place of the one with this primary key, if there is one."""
        row = self.insert(table).values(**values)
        others = {name: row.excluded[name] for name in values if name not in key}
        return row.on_conflict_do_update(index_elements=key, set_=others)

    async def prepare(self) -> None:
        """Look at an SQLite file and put it into WAL mode.

        Not through the engine: aiosqlite leaves a thread behind when it fails to connect, which
        complains when the loop has ended before it.

        Raises:
            StoreUnavailable: the database cannot be used.
        """
        if self.file is not None:
            with self._explained():
                await asyncio.to_thread(_write_ahead, self.file, self._seconds)

    async def unbroken(self, work: Coroutine[Any, Any, R]) -> R:
        """Let work end although its caller is cancelled.

        A statement that is cancelled leaves SQLite's thread, and perhaps its lock, in the middle
        of a transaction; a whole transaction takes milliseconds.
        """
        task = asyncio.create_task(work)
        self._calls.add(task)
        task.add_done_callback(self._calls.discard)
        # read the error: when the caller has left, nobody else will, and asyncio would complain
        task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            await asyncio.wait({task}, timeout=_PATIENCE)
            raise

    async def aclose(self) -> None:
        """Wait for what is under way and close the connections."""
        if self._calls:
            await asyncio.wait(set(self._calls), timeout=self._seconds)
        await self._engine.dispose()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Drivers' errors hold statements, values and passwords: only their kind is passed on."""
        driver = self._engine.dialect.loaded_dbapi
        try:
            yield
            return
        except DBAPIError as error:
            why = _reason(error.orig)
        except PoolTimeout:
            why = _BUSY
        except TimeoutError as error:
            why = str(error)
        except (OSError, driver.Error) as error:  # what SQLAlchemy did not look at
            why = _reason(error)
        if why == _BUSY or "locked" in why:
            words = "the database is busy; try again in a moment"
            raise StoreUnavailable(f"{words} ({self._where}: {why})", words) from None
        words = f"the database cannot be used: {why}"
        # libpq reads there what the URL leaves out, such as `PGPORT`
        names = [] if self.sqlite else sorted(n for n in os.environ if n.startswith("PG"))
        variables = ", ".join([VARIABLE, *(f"`{name}`" for name in names)])
        raise StoreUnavailable(f"the database {self._where} cannot be used: {why}; check {variables}", words) from None


def _reason(error: BaseException | None) -> str:
    """Words without values: SQLite's own, the system's, ours, or the name of the error."""
    if isinstance(error, sqlite3.Error):
        return str(error)
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    if getattr(error, "sqlstate", None) is None:  # else it is about a statement, and may quote one
        for words, reason in _COMPLAINTS.items():
            if words in str(error):
                return reason
    return type(error).__name__


def _write_ahead(file: Path, seconds: float) -> None:
    """Change the mode; SQLite does not wait for the lock that this needs, so we do."""
    with suppress(OSError):  # made here to be the owner's alone, its other files follow; SQLite
        os.close(os.open(file, os.O_CREAT | os.O_RDWR, 0o600))  # says why it cannot be opened
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


def unbroken(
    method: Callable[Concatenate[S, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[S, P], Coroutine[Any, Any, R]]:
    """A method that ends its transaction although its caller is cancelled; see `Database`."""

    @wraps(method)
    async def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await self._database.unbroken(method(self, *args, **kwargs))

    return call


class Repository:
    """Base of the store's parts, which are all one object over one database."""

    def __init__(self, database: Database) -> None:
        """`database` has its tables already; see `open_store`."""
        self._database = database

    @unbroken
    async def _write(self, statement: Executable) -> int:
        async with self._database.writing() as connection:
            return (await connection.execute(statement)).rowcount

    @unbroken
    async def _scalar(self, statement: Executable) -> Any:
        async with self._database.reading() as connection:
            return await connection.scalar(statement)

    @unbroken
    async def _rows(self, statement: Executable) -> Sequence[Row[*tuple[Any, ...]]]:
        async with self._database.reading() as connection:
            return (await connection.execute(statement)).all()


def work_url(text: str | None) -> str:
    """The URL for the engine: a file beside that of SQLite, else the same database.

    Raises:
        ConfigurationError: it is not a URL of SQLite or PostgreSQL, or SQLite without a file.
        StoreUnavailable: the user's data directory cannot be made.
    """
    url = engine_url(text)
    if url.get_backend_name() != "sqlite":
        return url.set(drivername="postgresql+psycopg").render_as_string(hide_password=False)
    store = Path(str(url.database))
    file = store.with_name(f"{store.stem}-work.db")
    with suppress(OSError):  # made here to be the owner's alone; the engine says what is wrong
        os.close(os.open(file, os.O_CREAT | os.O_RDWR, 0o600))
    return URL.create("sqlite", database=str(file)).render_as_string()
