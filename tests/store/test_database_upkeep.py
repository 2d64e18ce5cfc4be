"""What keeps a database in order while it is used."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import delete, event, insert, select, update
from sqlalchemy.engine import Engine

from api.store import SqlStore, open_store
from api.store.database import Database, engine_url
from api.store.tables import idempotency, ledger, logins, pages, runs, sessions
from tests.store.made import counted, report, typed


def old(**age: Any) -> datetime:
    """So long ago."""
    return datetime.now(UTC) - timedelta(**age)


async def test_heart_beats_while_an_analysis_runs(store_url: str) -> None:
    """The row of a process is renewed, so that other machines see it alive, and goes at the end."""
    await (await open_store(store_url)).aclose()
    database = Database(engine_url(store_url))
    store = SqlStore(database, beat=0.01)
    assert await counted(store_url, "runs") == [0]
    await store.begin("a", "r1", "mug")
    async with database.writing() as connection:
        await connection.execute(update(runs).values(seen_at=old(hours=1)))

    async with asyncio.timeout(120):
        began, seen = old(), old(hours=1)
        while seen < began:
            async with database.reading() as connection:
                seen = await connection.scalar(select(runs.c.seen_at)) or seen

    await store.aclose()
    assert await counted(store_url, "runs") == [0]


async def test_sweep_gives_up_a_silent_process_elsewhere(store_url: str) -> None:
    """Another machine's analysis fails when its heart stood still for a minute."""
    theirs, ours = await open_store(store_url), await open_store(store_url)
    await theirs.begin("a", "r1", "mug")
    database = Database(engine_url(store_url))

    swept = []
    for seen_at in (old(), old(minutes=2)):
        async with database.writing() as connection:
            await connection.execute(update(runs).values(place="elsewhere", seen_at=seen_at))
        swept.append(await ours.sweep())

    assert swept == [0, 1]
    for opened in (theirs, ours, database):
        await opened.aclose()


async def test_sweep_fails_what_nobody_says_to_run(store_url: str) -> None:
    """An analysis whose process has no row, as after a restored backup, does not run."""
    theirs, ours = await open_store(store_url), await open_store(store_url)
    await theirs.begin("a", "r1", "mug")
    database = Database(engine_url(store_url))
    async with database.writing() as connection:
        await connection.execute(delete(runs))

    assert await ours.sweep() == 1
    for opened in (theirs, ours, database):
        await opened.aclose()


async def test_late_report_of_a_process_that_was_given_up_is_kept(store_url: str) -> None:
    """Whoever finishes after all has its report."""
    store = await open_store(store_url)
    await store.begin("a", "r1", "mug")
    await store.fail("a", "r1", "the process that ran it stopped")
    await store.finish("a", typed(report("r1")))

    kept = await store.get("a", "r1")
    assert kept is not None
    assert (kept.state, kept.reason) == ("done", None)
    await store.aclose()


async def test_sweep_drops_what_is_past_its_time(store_url: str) -> None:
    """Of each kind the old one goes and the one just inside stays."""
    store = await open_store(store_url)
    database = Database(engine_url(store_url))
    async with database.writing() as connection:
        for number, past in enumerate((timedelta(hours=-1), timedelta(hours=1))):
            name = f"n{number}"
            rows: list[tuple[Any, dict[str, Any]]] = [
                (pages, {"key": name, "text": "t", "stored_at": old(days=1) + past}),
                (sessions, {"tenant": "a", "id": name, "text": "t",
                            "saved_at": old(days=30) + past}),
                (idempotency, {"tenant": "a", "key": name, "digest": "d", "analysis_id": "r",
                               "claimed_at": old(days=7) + past}),
                (logins, {"digest": name, "tenant": "a", "until": old() + past}),
                (ledger, {"scope": name, "day": (old(days=90) + 24 * past).date(), "units": 1}),
            ]  # fmt: skip
            for table, row in rows:
                await connection.execute(insert(table), row)
    await database.aclose()

    await store.sweep()

    swept = ("pages", "sessions", "idempotency", "logins", "ledger")
    assert await counted(store_url, *swept) == [1] * 5
    assert await store.session("a", "n1") == "t"
    await store.aclose()


async def test_page_a_day_old_goes_when_another_is_kept(store_url: str) -> None:
    """The cache cleans up after itself without a sweep."""
    store = await open_store(store_url)
    await store.keep_page("old", "t")
    database = Database(engine_url(store_url))
    async with database.writing() as connection:
        await connection.execute(update(pages).values(stored_at=old(days=1, minutes=1)))
    await database.aclose()

    await store.keep_page("new", "t")

    assert await counted(store_url, "pages") == [1]
    assert await store.page("new", 60) == "t"
    await store.aclose()


async def test_reading_sees_one_snapshot(store_url: str) -> None:
    """What is deleted while a report is put together is still there to its end."""
    store = await open_store(store_url)
    await store.finish("a", typed(report("r1")))
    database = Database(engine_url(store_url))
    async with database.reading() as connection:
        before = (await connection.execute(select(runs))).all()
        await store.begin("a", "r2", "mug")
        after = (await connection.execute(select(runs))).all()

    assert before == after == []
    await database.aclose()
    await store.aclose()


@pytest.mark.parametrize(
    ("indexes", "ask"),
    [
        ("watches_due", lambda store: store.due_watches(old(), 9)),
        ("analyses_running", lambda store: store.sweep()),
        ("analyses_by_digest analyses_running", lambda store: store.running("a", "digest")),
    ],
)
async def test_an_index_of_some_rows_is_used(
    store_url: str, indexes: str, ask: Callable[[SqlStore], Awaitable[object]]
) -> None:
    """Neither database uses one whose condition the query says in other words, or with a bound value.

    Of two that hold the same rows of an empty table either may be used.
    """
    store, database = await open_store(store_url), Database(engine_url(store_url))
    statements: list[tuple[str, Any]] = []

    def note(connection: object, cursor: object, statement: str, parameters: Any, *_: object) -> None:
        statements.append((statement, parameters))

    event.listen(Engine, "before_cursor_execute", note)
    await ask(store)
    event.remove(Engine, "before_cursor_execute", note)
    table = indexes.partition("_")[0]
    (asked,) = [
        each for each in statements if each[0].startswith("SELECT") and f"FROM {table}" in " ".join(each[0].split())
    ]
    sqlite = store_url.startswith("sqlite")
    async with database.writing() as connection:
        if not sqlite:
            await connection.exec_driver_sql("SET enable_seqscan = off")
        words = "EXPLAIN QUERY PLAN" if sqlite else "EXPLAIN"
        plan = (await connection.exec_driver_sql(f"{words} {asked[0]}", asked[1])).all()

    await store.aclose()
    await database.aclose()
    assert any(index in str(plan) for index in indexes.split())
