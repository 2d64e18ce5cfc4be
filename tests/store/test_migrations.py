"""Every released version of the tables opens, with its data."""

from __future__ import annotations

import json
import sqlite3
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from sqlalchemy import Connection, inspect, text

from api.errors import StoreUnavailable
from api.services.keeping.storage import Filters
from api.store import SqlStore, open_store
from api.store.database import Database, engine_url
from api.store.migrate_reports import Upgrades
from api.store.migrations import LATEST, migrate
from api.store.tables import METADATA
from tests.store.made import counted, item, report

VERSIONS = Path(__file__).with_name("versions")
NOON = datetime(2026, 11, 27, 10, tzinfo=UTC)


async def restored(url: str, version: int) -> None:
    """Put a frozen database of that version there."""
    kind = "sqlite" if url.startswith("sqlite") else "postgresql"
    script = (VERSIONS / f"{version}.{kind}.sql").read_text("utf-8")
    if kind == "sqlite":
        file = sqlite3.connect(url.removeprefix("sqlite:///"))
        file.executescript(script)
        file.close()
    else:
        connection = await asyncpg.connect(url)
        await connection.execute(script)
        await connection.close()


def shape(connection: Connection) -> dict[str, Any]:
    """Tables with their columns, keys and indexes, whoever made them."""
    seen = inspect(connection)
    return {
        name: (
            {one["name"]: (str(one["type"]), one["nullable"]) for one in seen.get_columns(name)},
            sorted(seen.get_pk_constraint(name)["constrained_columns"]),
            sorted(str(one["column_names"]) for one in seen.get_indexes(name)),
            sorted(str(one["referred_table"]) for one in seen.get_foreign_keys(name)),
        )
        for name in seen.get_table_names()
    }


async def shape_of(url: str) -> dict[str, Any]:
    """What a database has."""
    database = Database(engine_url(url))
    async with database.reading() as connection:
        found = await connection.run_sync(shape)
    await database.aclose()
    return found


def test_every_version_is_frozen() -> None:
    """A new step comes with a database of its version, of each kind."""
    frozen = {path.name for path in VERSIONS.glob("*.sql")}

    assert frozen == {
        f"{version}.{kind}.sql"
        for version in range(1, LATEST + 1)
        for kind in ("sqlite", "postgresql")
    }


@pytest.mark.parametrize("version", range(1, LATEST + 1))
async def test_data_of_every_version_is_intact(database_url: str, version: int) -> None:
    """What was stored then is read now, and everything that came later works."""
    await restored(database_url, version)
    store = await open_store(database_url)

    done, running, failed = [
        await store.get(*which) for which in (("a", "r1"), ("a", "r2"), ("b", "r1"))
    ]
    assert done is not None
    assert running is not None
    assert failed is not None
    assert done.report == json.loads((VERSIONS / "report.json").read_text("utf-8"))
    assert (done.created_at, done.query, running.state) == (NOON, "plaud note", "running")
    assert (failed.state, failed.reason) == ("failed", "no model")
    assert [kept.id for kept in (await store.listing("a", Filters(), 9)).analyses] == ["r2", "r1"]
    assert await store.spent("youtube.search", date(2026, 11, 27)) == 42
    assert await store.page("k", 10**9) == '{"slots":[]}'
    if version >= 2:
        known = {key.name: key.revoked for key in await store.keys()}
        assert known == {"mine": False, "old": True}
        assert await store.session("a", "s") == '{"said":"hi"}'
        assert await store.claim("a", "k", "d", "new") == ("r1", False)
    assert await store.add_key("new", "d9")
    assert await store.delete("a", "r1")
    assert await store.sweep() == 1
    assert await counted(database_url, "schema_version", "items") == [LATEST, 0]
    await store.aclose()


@pytest.mark.parametrize("version", range(1, LATEST + 1))
async def test_every_version_ends_up_with_the_same_tables(
    database_url: str, version: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """A migrated database is a new one, and has what the code asks for."""
    fresh = f"sqlite:///{tmp_path / 'fresh.db'}"
    if database_url.startswith("postgresql"):
        fresh = request.getfixturevalue("postgres").create()
    await restored(database_url, version)
    for url in (database_url, fresh):
        await (await open_store(url)).aclose()

    migrated, new = await shape_of(database_url), await shape_of(fresh)

    assert migrated == new
    assert {name: set(found[0]) for name, found in new.items()} == {
        table.name: {column.name for column in table.columns} for table in METADATA.tables.values()
    }


async def test_failed_migration_leaves_the_version_that_was_there(database_url: str) -> None:
    """All steps or none: a table in the way of the last one takes back the others."""
    database = Database(engine_url(database_url))
    await migrate(database, 1)
    async with database.writing() as connection:
        await connection.execute(text("CREATE TABLE idempotency (x INTEGER)"))

    with pytest.raises(StoreUnavailable):
        await migrate(database)

    await database.aclose()
    assert await counted(database_url, "schema_version") == [1]
    assert not {"keys", "sessions"} & set(await shape_of(database_url))


async def test_newer_database_is_refused(database_url: str) -> None:
    """A program that does not know the tables leaves them alone and says what to do."""
    store = await open_store(database_url)
    await store.aclose()
    database = Database(engine_url(database_url))
    async with database.writing() as connection:
        await connection.execute(
            text("INSERT INTO schema_version VALUES (99, '2026-11-27 10:00:00.000000')")
        )
    await database.aclose()

    with pytest.raises(StoreUnavailable, match=r"version 99.*upgrade listenpost"):
        await open_store(database_url)


def renamed(old: dict[str, Any]) -> dict[str, Any]:
    """An artificial step: `question` became `query`."""
    return {**{name: value for name, value in old.items() if name != "question"},
            "query": old["question"]}  # fmt: skip


def widened(old: dict[str, Any]) -> dict[str, Any]:
    """Another: a list where one word was."""
    return {**old, "topic": [old["topic"]]}


def test_report_is_migrated_step_by_step() -> None:
    """From any version to today's, and never back."""
    upgrades = Upgrades({1: renamed, 2: widened}, 3)
    first = {"version": 1, "question": "mug", "topic": "mugs"}

    assert upgrades(first) == {"version": 3, "query": "mug", "topic": ["mugs"]}
    assert upgrades({"version": 2, "query": "q", "topic": "t"})["topic"] == ["t"]
    assert upgrades({"version": 4, "topic": "t"}) == {"version": 4, "topic": "t"}
    assert upgrades({"question": "mug", "topic": "mugs"})["query"] == "mug"
    assert first == {"version": 1, "question": "mug", "topic": "mugs"}


async def test_older_report_is_migrated_when_read(database_url: str) -> None:
    """`get` and the listing show today's version of a report that stays as it was stored."""
    old = await open_store(database_url)
    saved = report("r1", item("reddit:t3_1"))
    await old.finish("a", saved)
    await old.aclose()
    store = SqlStore(Database(engine_url(database_url)), Upgrades({1: widened}, 2))

    kept, listed = await store.get("a", "r1"), await store.listing("a", Filters(), 1)

    assert kept is not None
    assert kept.report == saved | {"topic": ["Plaud"], "version": 2}
    assert listed.analyses[0].report is not None
    assert (listed.analyses[0].report["topic"], listed.analyses[0].report["version"]) == (
        ["Plaud"], 2
    )  # fmt: skip
    assert "items" not in listed.analyses[0].report
    await store.aclose()
