"""The tables are made and upgraded at open, a stored report when it is read."""

from __future__ import annotations

import json
from typing import Any

import pytest
from sqlalchemy import Connection, inspect, text
from sqlalchemy.ext.asyncio import AsyncConnection

from api.errors import StoreUnavailable
from api.features.analyses.store_ports import Filters
from api.features.watches.watch_ports import InboxFilter
from api.reports.report import VERSION
from api.store import SqlStore, open_store
from api.store.database import Database, engine_url
from api.store.migrations import LATEST, migrate
from api.store.report_json import READER, ReportReader
from api.store.tables import METADATA
from tests.features.watches.example_run import bring, new_post
from tests.features.watches.made import WATCH
from tests.services.kit import plain
from tests.store.made import counted, item, report, typed


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


async def test_a_new_database_has_what_the_code_asks_for(database_url: str) -> None:
    """Every table and column; the index of words is a table of its own beside SQLite."""
    await (await open_store(database_url)).aclose()

    made = await shape_of(database_url)

    built = {name for name in made if name.startswith("chunk_words")}
    assert {name: {*made[name][0]} - {"words"} for name in {*made} - built} == {
        table.name: {column.name for column in table.columns} for table in METADATA.tables.values()
    }


async def without_history(connection: AsyncConnection) -> None:
    """Take back the step that added the first runs of streams, but for `feed_entries`, which its callers drop."""
    await connection.execute(text("DROP TABLE replies"))
    await connection.execute(text("DROP INDEX watches_without_history"))
    for column in ("history_due", "judged_from", "unjudged"):
        await connection.execute(text(f"ALTER TABLE watches DROP COLUMN {column}"))


async def without_digests(connection: AsyncConnection) -> None:
    """Take back the steps that added digests, but for the inbox, and vectors of servers."""
    for table in ("embeddings", "embedded"):
        await connection.execute(text(f"DROP TABLE {table}"))
    for index in ("watches_with_digest", "watch_runs_held"):
        await connection.execute(text(f"DROP INDEX {index}"))
    for column in ("digest_at", "digest_until", "digest_runs"):
        await connection.execute(text(f"ALTER TABLE watches DROP COLUMN {column}"))
    await connection.execute(text("ALTER TABLE watch_runs DROP COLUMN held"))


async def noted(connection: AsyncConnection) -> None:
    """A later step: keys get a note."""
    await connection.exec_driver_sql("ALTER TABLE keys ADD COLUMN note TEXT")


async def emptied(connection: AsyncConnection) -> None:
    """Another."""
    await connection.exec_driver_sql("DROP TABLE logins")


async def test_a_later_step_upgrades_the_tables_and_keeps_what_they_hold(database_url: str) -> None:
    """Each step once, in order, all or none; and a program that knows none of them refuses."""
    store = await open_store(database_url)
    await store.add_key("mine", "digest")
    await store.finish("a", typed(report("r1", item("reddit:t3_1"))))
    await store.aclose()
    before = await shape_of(database_url)
    database = Database(engine_url(database_url))
    steps = {LATEST + 1: noted, LATEST + 2: emptied}

    with pytest.raises(StoreUnavailable):  # the second step fails where nothing is to be dropped
        await migrate(database, LATEST + 3, {**steps, LATEST + 3: emptied})
    assert await shape_of(database_url) == before
    await migrate(database, LATEST + 1, steps)
    await migrate(database, LATEST + 2, steps)
    await migrate(database, LATEST + 2, steps)

    after = await shape_of(database_url)
    assert after.keys() == before.keys() - {"logins"}
    assert after["keys"][0].keys() == before["keys"][0].keys() | {"note"}
    assert await counted(database_url, "keys", "items", "schema_version") == [1, 1, 3]
    await database.aclose()
    with pytest.raises(StoreUnavailable, match=rf"version {LATEST + 2}.*upgrade listenpost"):
        await open_store(database_url)


LATER = ("asking", "paces", "agreement_samples", "inbox", "inbox_settings")
ADDED = {13: ("feed_entries", "feeds", "followed_feeds", *LATER), 14: LATER}
"""Tables that came after a version."""


async def test_a_database_of_version_11_gets_every_later_step(database_url: str) -> None:
    """The tables are those of a new database; what was kept before is kept, without what came later."""
    store = await open_store(database_url)
    await store.keep_session("a", "s", "said")
    await store.add_watch(WATCH, 9)
    await store.aclose()
    made = await shape_of(database_url)
    database = Database(engine_url(database_url))
    async with database.writing() as connection:
        await without_digests(connection)
        await without_history(connection)
        for table in ("stream_posts", "streams", *ADDED[13]):
            await connection.execute(text(f"DROP TABLE {table}"))
        for index in ("items_by_key", "watches_streamed", "pages_by_age"):
            await connection.execute(text(f"DROP INDEX {index}"))
        await connection.execute(text("ALTER TABLE watches DROP COLUMN streamed_at"))
        await connection.execute(text("DROP INDEX sessions_of_report"))
        await connection.execute(text("ALTER TABLE sessions DROP COLUMN report_id"))
        await connection.execute(text("UPDATE schema_version SET version = 11"))
    await database.aclose()

    store = await open_store(database_url)

    assert await shape_of(database_url) == made
    assert await store.session("a", "s") == "said"
    assert (await store.sessions("a", 9, report_id="r1")).sessions == ()
    assert (await store.watches("local"), await store.streamed_ids()) == ([WATCH], [])
    await store.aclose()


@pytest.mark.parametrize("version", ADDED)
async def test_a_database_of_an_earlier_version_gets_its_tables(database_url: str, version: int) -> None:
    """The tables are those of a new database, and what was there stays."""
    store = await open_store(database_url)
    await store.add_key("mine", "digest")
    await store.aclose()
    made = await shape_of(database_url)
    database = Database(engine_url(database_url))
    async with database.writing() as connection:
        await without_digests(connection)
        await without_history(connection)
        for table in ADDED[version]:
            await connection.execute(text(f"DROP TABLE {table}"))
        await connection.execute(text("DROP INDEX pages_by_age"))
        await connection.execute(text(f"UPDATE schema_version SET version = {version}"))
    await database.aclose()

    store = await open_store(database_url)

    assert await shape_of(database_url) == made
    assert [key.name for key in await store.keys()] == ["mine"]
    assert await store.followed("a") == []
    await store.aclose()


async def test_a_database_of_version_19_gets_digests(database_url: str) -> None:
    """Watches, their runs and the inbox stay; the tables are those of a new database."""
    store = await open_store(database_url)
    await store.add_watch(WATCH, 9)
    await bring(store, WATCH, new_post(1))
    before = await store.inbox("local", InboxFilter(), 9)
    await store.aclose()
    made = await shape_of(database_url)
    database = Database(engine_url(database_url))
    async with database.writing() as connection:
        await without_digests(connection)
        await connection.execute(text("ALTER TABLE inbox DROP COLUMN assigned"))
        await connection.execute(text("UPDATE schema_version SET version = 19"))
    await database.aclose()

    store = await open_store(database_url)

    assert await shape_of(database_url) == made
    assert await store.inbox("local", InboxFilter(), 9) == before
    assert [watch.id for watch in await store.watches("local")] == [WATCH.id]
    assert len(await store.watch_runs("local", WATCH.id, 9)) == 1
    await store.aclose()


@pytest.mark.parametrize(
    ("version", "words"),
    [(99, "version 99.*upgrade listenpost"), (1, "version 1, of before the first release")],
)
async def test_database_of_another_version_is_refused(database_url: str, version: int, words: str) -> None:
    """A program that does not know the tables leaves them alone and says what to do."""
    store = await open_store(database_url)
    await store.aclose()
    database = Database(engine_url(database_url))
    async with database.writing() as connection:
        await connection.execute(text(f"UPDATE schema_version SET version = {version}"))
    await database.aclose()

    with pytest.raises(StoreUnavailable, match=words):
        await open_store(database_url)


async def test_tables_of_another_program_are_left_alone(database_url: str) -> None:
    """All tables or none: one in the way takes back the others."""
    database = Database(engine_url(database_url))
    async with database.writing() as connection:
        await connection.execute(text("CREATE TABLE watch_items (x INTEGER)"))

    with pytest.raises(StoreUnavailable):
        await migrate(database)

    await database.aclose()
    assert set(await shape_of(database_url)) == {"watch_items"}


def renamed(old: dict[str, Any]) -> dict[str, Any]:
    """An artificial step: `question` became `query`."""
    return {**{name: value for name, value in old.items() if name != "question"},
            "query": old["question"]}  # fmt: skip


def widened(old: dict[str, Any]) -> dict[str, Any]:
    """Another: a list where one word was."""
    return {**old, "topic": [old["topic"]]}


def test_report_is_migrated_step_by_step() -> None:
    """From any version to today's, and never back."""
    reader = ReportReader({1: renamed, 2: widened}, 3)
    first = {"version": 1, "question": "mug", "topic": "mugs"}

    assert reader.upgraded(first) == {"version": 3, "query": "mug", "topic": ["mugs"]}
    assert reader.upgraded({"version": 2, "query": "q", "topic": "t"})["topic"] == ["t"]
    assert reader.upgraded({"version": 4, "topic": "t"}) == {"version": 4, "topic": "t"}
    assert reader.upgraded({"question": "mug", "topic": "mugs"})["query"] == "mug"
    assert first == {"version": 1, "question": "mug", "topic": "mugs"}


def shouted(old: dict[str, Any]) -> dict[str, Any]:
    """A third, after which a report still is one."""
    return {**old, "topic": old["topic"].upper()}


async def test_older_report_is_migrated_when_read(database_url: str) -> None:
    """`get` and the listing show today's version of a report that stays as it was stored."""
    old = await open_store(database_url)
    saved = report("r1", item("reddit:t3_1"))
    await old.finish("a", typed(saved))
    await old.aclose()
    store = SqlStore(Database(engine_url(database_url)), ReportReader({VERSION: shouted}, VERSION + 1))

    kept, listed = await store.get("a", "r1"), await store.listing("a", Filters(), 1)

    assert kept is not None
    assert kept.report == typed(saved | {"topic": "PLAUD", "version": VERSION + 1})
    summary = listed.analyses[0].summary
    assert summary is not None
    assert (summary.topic, summary.version) == ("PLAUD", VERSION + 1)
    await store.aclose()


async def test_report_of_a_newer_program_is_read_as_far_as_it_is_one(database_url: str) -> None:
    """Fields and a version that nobody knows here are carried along; other shapes are named."""
    store = await open_store(database_url)
    new = item("reddit:t3_1", mood={"deep": [1]})
    saved = report("r1", new, version=7, mood="calm")
    await store.finish("a", typed(saved))
    await store.finish("a", typed(report("r2")))
    await _overwrite(database_url, "r2", body={"version": 7, "decision": "maybe"}, summary=[])

    kept, odd = await store.get("a", "r1"), await store.get("a", "r2")

    assert kept is not None
    assert kept.report is not None
    assert plain(kept.report) == saved
    assert odd is not None
    assert (odd.state, odd.report) == ("failed", None)
    assert odd.reason == ("the stored report cannot be read by this version of listenpost (version 7, at `id`)")
    await store.aclose()


@pytest.mark.parametrize("damage", ["{", "[]", '{"version":"x","sources":3}', "7", "[" * 9999])
async def test_a_damaged_row_hides_no_other(database_url: str, damage: str) -> None:
    """The listing goes on; the row itself is there without a report, and can be deleted."""
    store = await open_store(database_url)
    for name in ("r1", "r2"):
        await store.finish("a", typed(report(name, item("reddit:t3_1"))))
    await _overwrite(database_url, "r1", body=damage, summary=damage)

    listed = {one.id: one.summary for one in (await store.listing("a", Filters(), 9)).analyses}
    kept = await store.get("a", "r1")

    assert listed["r1"] is None
    assert listed["r2"] is not None
    assert kept is not None
    assert (kept.state, kept.report) == ("failed", None)
    assert await store.forget(["reddit:t3_1"]) == 1
    other = await store.get("a", "r2")
    assert other is not None
    assert other.report is not None
    assert other.report.items == ()
    assert await store.delete("a", "r1")
    await store.aclose()


async def test_a_damaged_item_is_left_out_of_its_report(database_url: str) -> None:
    """The others are still read."""
    store = await open_store(database_url)
    await store.finish("a", typed(report("r1", item("reddit:t3_1"), item("reddit:t3_2"))))
    database = Database(engine_url(database_url))
    async with database.writing() as connection:
        await connection.execute(text("UPDATE items SET facts = '{' WHERE key = 'reddit:t3_1'"))
    await database.aclose()

    kept = await store.get("a", "r1")

    assert kept is not None
    assert kept.report is not None
    assert [entry.key for entry in kept.report.items] == ["reddit:t3_2"]
    await store.aclose()


async def test_items_are_forgotten_in_a_version_that_cannot_be_upgraded(database_url: str) -> None:
    """What its source deleted goes, whether or not the report can be read."""
    store = await open_store(database_url)
    await store.finish("a", typed(report("r1", item("reddit:t3_1"), topic="Plaud")))
    await store.aclose()
    broken = SqlStore(Database(engine_url(database_url)), ReportReader({}, VERSION + 1))

    assert await broken.forget(["reddit:t3_1"]) == 1

    kept = await broken.get("a", "r1")
    assert kept is not None
    assert kept.reason is not None
    assert f"its version {VERSION} cannot be upgraded" in kept.reason
    assert await counted(database_url, "items") == [0]
    await broken.aclose()


async def _overwrite(url: str, analysis_id: str, **columns: object) -> None:
    """Write these columns as they are."""
    database = Database(engine_url(url))
    raw = {name: value if isinstance(value, str) else json.dumps(value) for name, value in columns.items()}
    settings = ", ".join(f"{name} = :{name}" for name in raw)
    async with database.writing() as connection:
        await connection.execute(text(f"UPDATE analyses SET {settings} WHERE id = :id"), {**raw, "id": analysis_id})
    await database.aclose()


def test_kept_means_the_same_in_figures_and_sources() -> None:
    """Version 3 called `kept` in the figures what is `in_report` now, and had a yield of its own."""
    figure = {"fetched": 9, "relevant": 4, "kept": 3, "yield_ratio": 4 / 9, "refetched": False}
    source = {"kept": 4, "yield_ratio": 0.5}
    older = {"version": 3, "figures": {"sources": {"reddit": figure}}, "sources": {"reddit": source}}

    newer = READER.upgraded(older)

    assert newer["version"] == VERSION
    assert newer["figures"]["sources"]["reddit"] == {**figure, "in_report": 3, "kept": 4, "yield_ratio": 0.5}
    assert READER.upgraded({"version": 3, "topic": "mugs"}) == {"version": VERSION, "topic": "mugs"}
