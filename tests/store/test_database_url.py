"""Where the database is, and what is said when it cannot be used."""

from __future__ import annotations

import asyncio
import os
import socket
import sqlite3
import stat
import sys
from contextlib import AsyncExitStack
from datetime import date
from pathlib import Path

import pytest

from api.errors import ConfigurationError, StoreUnavailable
from api.features.analyses.store_ports import Filters
from api.store import open_store
from api.store.database import Database, default_path, engine_url
from tests.postgres import Postgres
from tests.store.made import report, typed

PASSWORD = "s3cr3t"


@pytest.mark.skipif(sys.platform != "linux", reason="the folder is named by XDG_DATA_HOME")
async def test_default_is_a_private_file_in_the_users_data_directory(tmp_path: Path) -> None:
    """Folder and file are made, and nobody else may read them."""
    store = await open_store(None)
    await store.finish("a", typed(report("r1")))

    path = Path(os.environ["XDG_DATA_HOME"]) / "listenpost" / "listenpost.db"
    files = [*path.parent.iterdir()]
    assert default_path() == path
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert {file.name for file in files} == {f"listenpost.db{end}" for end in ("", "-wal", "-shm")}
    await store.aclose()


async def test_default_folder_that_cannot_be_made_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file in its place is an error with the remedy."""
    blocked = tmp_path / "file"
    blocked.write_text("x")
    monkeypatch.setenv("XDG_DATA_HOME", str(blocked))

    with pytest.raises(StoreUnavailable, match="LISTENPOST_DATABASE_URL"):
        await open_store(None)


@pytest.mark.parametrize(
    ("text", "driver"),
    [
        ("sqlite:///a.db", "sqlite+aiosqlite"),
        ("sqlite+aiosqlite:////tmp/a.db", "sqlite+aiosqlite"),
        (" postgresql://u:p@h/d ", "postgresql+psycopg"),
        ("postgresql+psycopg://u:p@h:5433/d", "postgresql+psycopg"),
        ("postgresql+asyncpg://u:p@h:5433/d", "postgresql+psycopg"),
    ],
)
def test_url_gets_its_async_driver(text: str, driver: str) -> None:
    """Plain URLs are accepted and upgraded."""
    assert engine_url(text).drivername == driver


@pytest.mark.parametrize("query", ["sslmode=require", "ssl=require", "ssl=x&sslmode=require"])
def test_url_of_a_managed_server_is_understood(query: str) -> None:
    """What older addresses call `ssl` is `sslmode` to the driver."""
    assert engine_url(f"postgresql://u@h/d?{query}").query == {"sslmode": "require"}


@pytest.mark.parametrize(
    "text",
    [
        f"mysql://u:{PASSWORD}@h/d",
        f"postgres://u:{PASSWORD}@h/d",
        f"postgresql+psycopg2://u:{PASSWORD}@h/d",
        f"postgresql://u:{PASSWORD}@h:port/d",
        f"postgresql://u:p@h/d?password={PASSWORD}",
        "sqlite://",
        "sqlite:///:memory:",
        f"sqlite:///file:{PASSWORD}?mode=memory&uri=true",
        PASSWORD,
        "",
    ],
)
async def test_other_urls_are_refused_without_their_password(text: str) -> None:
    """The message names the variable and the forms there are."""
    with pytest.raises(ConfigurationError, match="LISTENPOST_DATABASE_URL") as caught:
        await open_store(text)

    assert PASSWORD not in str(caught.value)


async def refused(url: str) -> str:
    """What is said about a database that cannot be used."""
    with pytest.raises(StoreUnavailable, match="LISTENPOST_DATABASE_URL") as caught:
        async with asyncio.timeout(60):
            await open_store(url)
    assert PASSWORD not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    return str(caught.value)


async def test_nobody_listening_is_unavailable() -> None:
    """A refused connection is said to be one, without the password."""
    said = await refused(f"postgresql://u:{PASSWORD}@127.0.0.1:1/{PASSWORD}")

    assert "connection refused" in said


@pytest.mark.parametrize(
    ("name", "value"),
    [("PGPORT", "abc"), ("PGSSLMODE", "abc"), ("PGTARGETSESSIONATTRS", "abc")],
)
async def test_a_variable_of_the_driver_is_named(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    """What the driver cannot read is no crash, and its value is not told."""
    monkeypatch.setenv(name, value)

    complaint = await refused(f"postgresql://u:{PASSWORD}@127.0.0.1/d")

    assert f"check `LISTENPOST_DATABASE_URL`, `{name}`" in complaint
    assert value not in complaint


async def test_wrong_database_is_unavailable(postgres: Postgres) -> None:
    """The server's own complaint is told in our words: its own hold the name."""
    good = postgres.create()

    complaint = await refused(good.replace("/test_", f"/{PASSWORD}_"))

    assert "there is no such database or user" in complaint


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("/d?host=/nowhere", "there is no such file or socket"),
        ("a..b/d", "there is no such host"),
        ("127.0.0.1:1/d?ssl=x", "`sslmode` has a value that is not known"),
    ],
)
async def test_an_address_that_leads_nowhere_is_unavailable(address: str, reason: str) -> None:
    """No such folder, a name that can be none, and a word that libpq does not know."""
    assert reason in await refused(f"postgresql://u:{PASSWORD}@{address}")


@pytest.mark.parametrize(
    ("complaint", "reason"),
    [
        (f'password authentication failed for user "{PASSWORD}"', "wrong user or password"),
        (f'no pg_hba.conf entry for host "{PASSWORD}"', "`pg_hba.conf` does not let us in"),
        ("sorry, too many clients already", "busy; try again in a moment"),
        (f"{PASSWORD}", "OperationalError"),
    ],
)
async def test_a_server_that_refuses_is_told_in_our_words(complaint: str, reason: str) -> None:
    """Never in its own, which quote names and addresses."""
    fields = f"SFATAL\0VFATAL\0CXX000\0M{complaint}\0\0".encode()

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(int.from_bytes(await reader.readexactly(4)) - 4)
        writer.write(b"E" + (len(fields) + 4).to_bytes(4) + fields)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1") as server:
        port = server.sockets[0].getsockname()[1]
        database = Database(engine_url(f"postgresql://u:{PASSWORD}@127.0.0.1:{port}/d?sslmode=disable"))
        with pytest.raises(StoreUnavailable) as refusal:
            async with database.reading():
                pass
        await database.aclose()

    assert reason in str(refusal.value)
    assert PASSWORD not in str(refusal.value)


async def test_silent_server_is_unavailable() -> None:
    """A server that accepts and says nothing is given up after the time for connecting."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = engine_url(f"postgresql://u:{PASSWORD}@127.0.0.1:{silent.getsockname()[1]}/d")
        database = Database(url, seconds=0.2)

        with pytest.raises(StoreUnavailable, match=r"no answer within 0\.2 s"):
            async with asyncio.timeout(120), database.reading():
                pass

        await database.aclose()


async def test_a_statement_without_an_answer_is_given_up(postgres: Postgres) -> None:
    """It is ended at the server too, and its connection is good for the next."""
    database = Database(engine_url(postgres.create()), statement_seconds=0.2)

    with pytest.raises(StoreUnavailable, match=r"no answer within 0\.2 s"):
        async with database.reading() as connection:
            await connection.exec_driver_sql("SELECT pg_sleep(60)")
    async with database.reading() as connection:
        sleeping = await connection.exec_driver_sql(
            "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'SELECT pg_sleep%%'"
        )

        assert sleeping.scalar() == 0
    await database.aclose()


async def test_a_reader_that_leaves_ends_its_statement(postgres: Postgres) -> None:
    """A caller that is cancelled is let go at once, and the database is good for the next."""
    database = Database(engine_url(postgres.create()))
    asking = asyncio.Event()

    async def sleep() -> None:
        async with database.reading() as connection:
            asking.set()
            await connection.exec_driver_sql("SELECT pg_sleep(60)")

    task = asyncio.create_task(sleep())
    await asking.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 120)
    async with database.reading() as connection:
        number = (await connection.exec_driver_sql("SELECT 1")).scalar()
    await database.aclose()

    assert number == 1


async def test_missing_folder_is_unavailable(tmp_path: Path) -> None:
    """SQLite's words name the file that cannot be opened."""
    said = await refused(f"sqlite:///{tmp_path / 'missing' / 'a.db'}")

    assert "missing/a.db" in said
    assert "unable to open" in said


async def test_file_that_is_no_database_is_unavailable(tmp_path: Path) -> None:
    """It is not overwritten."""
    path = tmp_path / "a.db"
    path.write_text("not a database, but long enough to look like one" * 50)

    assert "not a database" in await refused(f"sqlite:///{path}")
    assert path.read_text().startswith("not a database")


async def test_locked_database_is_unavailable_after_a_while(tmp_path: Path) -> None:
    """Another process that writes for too long is waited for, then named; readers go on."""
    url = f"sqlite:///{tmp_path / 'a.db'}"
    store = await open_store(url)
    await store.finish("a", typed(report("r1")))
    await store.aclose()
    locking = sqlite3.connect(tmp_path / "a.db")
    locking.execute("BEGIN IMMEDIATE")
    database = Database(engine_url(url), seconds=0.1)

    with pytest.raises(StoreUnavailable, match=r"busy; try again .*locked") as caught:
        async with database.writing():
            pass
    assert caught.value.public == "the database is busy; try again in a moment"
    reader = await open_store(url)
    listed = await reader.listing("a", Filters(), 1)

    assert len(listed.analyses) == 1
    locking.close()
    await reader.aclose()
    await database.aclose()


async def test_a_database_under_load_is_busy_and_nothing_to_check(tmp_path: Path) -> None:
    """With every connection in use nobody is sent to look at a variable; others read no path."""
    url = f"sqlite:///{tmp_path / 'a.db'}"
    await (await open_store(url)).aclose()
    database = Database(engine_url(url), seconds=0.1)

    async def read_a_hundred() -> None:
        async with AsyncExitStack() as stack:
            for _ in range(100):
                await stack.enter_async_context(database.reading())

    with pytest.raises(StoreUnavailable, match="busy; try again") as caught:
        await read_a_hundred()

    assert "LISTENPOST_DATABASE_URL" not in str(caught.value)
    assert caught.value.public == "the database is busy; try again in a moment"
    await database.aclose()


async def test_what_others_read_names_no_place(tmp_path: Path) -> None:
    """The owner is told which file; a caller only what is the matter."""
    with pytest.raises(StoreUnavailable) as caught:
        await open_store(f"sqlite:///{tmp_path / 'missing' / 'a.db'}")

    words = "the database cannot be used: unable to open database file"
    assert (caught.value.public, str(tmp_path) in str(caught.value)) == (words, True)


async def test_sqlite_is_set_up_for_several_processes(tmp_path: Path) -> None:
    """Write-ahead log, normal synchronisation, enforced keys."""
    url = f"sqlite:///{tmp_path / 'a.db'}"
    await (await open_store(url)).aclose()
    database = Database(engine_url(url))
    async with database.reading() as connection:
        found = [
            (await connection.exec_driver_sql(f"PRAGMA {name}")).scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        ]
    await database.aclose()

    assert found == ["wal", 1, 1, 5000]


async def test_missing_table_is_unavailable(tmp_path: Path) -> None:
    """A table that vanished is an error that says so, without the values that were asked for."""
    url = f"sqlite:///{tmp_path / 'a.db'}"
    store = await open_store(url)
    with sqlite3.connect(tmp_path / "a.db") as vandal:
        vandal.execute("DROP TABLE ledger")
    vandal.close()

    with pytest.raises(StoreUnavailable, match="no such table") as caught:
        await store.spent(PASSWORD, date(2026, 11, 27))

    assert PASSWORD not in str(caught.value)
    assert (await store.listing("a", Filters(), 1)).analyses == ()
    await store.aclose()
