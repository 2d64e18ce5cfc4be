"""Every released version of the tables opens, with its data."""

from __future__ import annotations

import json
import sqlite3
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import Connection, inspect, text

from api.errors import StoreUnavailable
from api.features.analyses.store_ports import Counted, Filters
from api.reports.report import VERSION
from api.store import SqlStore, open_store
from api.store.database import Database, engine_url
from api.store.migrations import LATEST, TODAY, Unreadable, Upgrades, migrate
from api.store.tables import METADATA
from tests.services.kit import plain
from tests.store.made import counted, item, report, typed

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
        with psycopg.connect(url) as connection:
            connection.execute(script.encode())


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
    assert done.report is not None
    written = json.loads((VERSIONS / "report.json").read_text("utf-8"))
    unshown = {"evidence": [], "support": "unverified"}
    unchecked = {"status": "skipped", "reason": None, "model": None, "pairs": 0, "supported": 0}
    assert plain(done.report) == written | {
        "version": 3,
        "findings": [finding | unshown for finding in written["findings"]],
        "support": unchecked,
    }
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
    if version >= 3:
        (opinion,) = await store.feedback("a", "r1")
        assert (opinion.item_key, opinion.comment) == ("reddit:t3_1", 'It\'s "so" 小')
    if version >= 5:
        (brought,) = await store.imports("a")
        assert (brought.card.name, brought.mark.offset) == ('dump "小".jsonl', 4_000_000_000)
        assert (brought.intake.comments, brought.intake.left_out) == (2, {"written by a bot": 3})
        assert [aside.line for aside in await store.refusals("a", "imp_1")] == [3]
        assert await store.remove_import("a", "imp_1") == 0
    if version >= 6:
        (watch,) = await store.watches("a")
        (run,) = await store.watch_runs("a", "w1", 9)
        assert (watch.name, watch.only, watch.due_at.day) == ('mug "小"', "complaints", 30)
        assert run.counts is not None
        assert run.counts.sources["reddit"].tallies == {"mentions:battery": 1}
        assert {entry.key: entry.dropped_by for entry in await store.known(watch, 9)} == {
            "reddit:t3_1": "", "reddit:t3_9": "old",
        }  # fmt: skip
        assert watch.feed == ("feed-digest" if version >= 8 else None)
        told = await store.watch_runs("a", "w1", 9, news=True)
        assert [kept.id for kept in told] == (["run_1"] if version >= 8 else [])
    admitted = "a" if version >= 9 else None
    assert await store.owner_of_link("r1", "link-digest") == admitted
    assert await store.login("login-digest", NOON) == admitted
    counted_then: list[Counted] = []
    assert not await store.each_counted("a", None, 9, counted_then.append)
    tallies = [entry.tally for entry in counted_then if entry.tally is not None]
    assert [(tally.judged, tally.relevant, tally.cited) for tally in tallies] == [(4, 2, 2)]
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
    # the index of words is a table of its own beside SQLite, a column on PostgreSQL
    built = {name for name in new if name.startswith("chunk_words")}
    assert {name: {*new[name][0]} - {"words"} for name in {*new} - built} == {
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


def test_a_timeline_of_version_1_gets_its_empty_weeks() -> None:
    """
    A report without one stays without, and one that is damaged is unreadable, not changed.
    """
    points = [{"start": "2026-06-01", "count": 2}, {"start": "2026-06-15", "count": 1}]
    old = {"version": 1, "findings": [], "sources": {}, "figures": {"timeline": {
        "unit": "week", "points": points, "undated": 1,
    }}}  # fmt: skip

    timeline = TODAY(old)["figures"]["timeline"]

    assert (timeline["unit"], timeline["undated"]) == ("week", 1)
    assert timeline["points"] == [points[0], {"start": "2026-06-08", "count": 0}, points[1]]
    assert TODAY({**old, "figures": {}})["figures"] == {}
    with pytest.raises(Unreadable, match="its version 1 cannot be upgraded"):
        TODAY({**old, "figures": {"timeline": {"unit": "fortnight"}}})


def test_of_version_2_what_passed_unjudged_is_relevant_no_more() -> None:
    """Its source has no yield; one where another judge stood in keeps its figures."""
    attempt = {"new": 4, "relevant": 4, "status": "degraded", "reason": "timeout"}
    opened = {"status": "degraded", "reason": "timeout", "model": None}
    source = {"gate": opened, "attempts": [attempt], "kept": 4, "yield_ratio": 1.0}
    stood_in = {**source, "gate": {**opened, "model": "local-2"}}
    counted = {"fetched": 4, "relevant": 4, "kept": 3, "yield_ratio": 1.0, "refetched": False}
    old = {
        "version": 2,
        "sources": {"reddit": source, "youtube": stood_in, "amazon": source},
        "figures": {"sources": {"reddit": counted, "youtube": counted}},
    }

    new = TODAY(old)

    assert new["sources"]["reddit"] == {
        **source, "attempts": [{**attempt, "relevant": 0}], "yield_ratio": None,
    }  # fmt: skip
    assert new["sources"]["amazon"]["yield_ratio"] is None
    assert new["figures"]["sources"]["reddit"] == {**counted, "relevant": 0, "yield_ratio": None}
    assert (new["sources"]["youtube"], new["figures"]["sources"]["youtube"]) == (stood_in, counted)
    assert old["figures"] == {"sources": {"reddit": counted, "youtube": counted}}


def shouted(old: dict[str, Any]) -> dict[str, Any]:
    """A third, after which a report still is one."""
    return {**old, "topic": old["topic"].upper()}


async def test_older_report_is_migrated_when_read(database_url: str) -> None:
    """`get` and the listing show today's version of a report that stays as it was stored."""
    old = await open_store(database_url)
    saved = report("r1", item("reddit:t3_1"))
    await old.finish("a", typed(saved))
    await old.aclose()
    store = SqlStore(Database(engine_url(database_url)), Upgrades({VERSION: shouted}, VERSION + 1))

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
    assert odd.reason == (
        "the stored report cannot be read by this version of listenpost (version 7, at `id`)"
    )
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
    broken = SqlStore(Database(engine_url(database_url)), Upgrades({}, VERSION + 1))

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
    raw = {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in columns.items()
    }
    settings = ", ".join(f"{name} = :{name}" for name in raw)
    async with database.writing() as connection:
        await connection.execute(
            text(f"UPDATE analyses SET {settings} WHERE id = :id"), {**raw, "id": analysis_id}
        )
    await database.aclose()
