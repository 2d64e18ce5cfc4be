"""Databases that another program made, or whose rows hold what was never written there."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import Column, text

from api.errors import StoreUnavailable
from api.features.analyses.store_ports import Filters
from api.store import SqlStore, open_store
from api.store.analysis_repository import DAMAGED
from api.store.database import Database, engine_url
from api.store.tables import METADATA
from tests.store.made import dropped, item, report, typed

DAY = date(2026, 11, 28)
VALUES = ("x", -1, '{"a": 1}', b"\xff\x00")
OPERATIONS: tuple[Callable[[SqlStore], Awaitable[object]], ...] = (
    lambda store: store.listing("a", Filters(), 1),
    lambda store: store.get("a", "r1"),
    lambda store: store.spent("youtube", DAY),
    lambda store: store.take("youtube", DAY, 1, 10),
    lambda store: store.page("k", 1e6),
    lambda store: store.keys(),
    lambda store: store.key_of("d"),
    lambda store: store.session("a", "s"),
    lambda store: store.begin("a", "r3", "q"),
    lambda store: store.sweep(),
    lambda store: store.forget(["reddit:t3_1"]),
    lambda store: store.finish("a", typed(report("r1", item("reddit:t3_1")))),
    lambda store: store.delete("a", "r1"),
)
"""Everything a store is asked, but for `claim`, which a damaged digest rightly refuses."""


async def filled(url: str) -> SqlStore:
    """A store with one row in every table, and a second analysis."""
    store = await open_store(url)
    await store.finish("a", typed(report("r1", item("reddit:t3_1"), out=[dropped("reddit:t3_8")])))
    await store.finish("a", typed(report("r2", item("reddit:t3_2"))))
    await store.begin("a", "r3", "q")
    await store.keep_page("k", "text")
    await store.add_key("n", "d")
    await store.keep_session("a", "s", '{"key": "reddit:t3_1"}')
    await store.claim("a", "k", "d", "r1")
    await store.take("youtube", DAY, 3, 10)
    return store


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The file of such a store, with nothing left in its log."""
    path: Path = tmp_path_factory.mktemp("whole") / "whole.db"

    async def made() -> None:
        await (await filled(f"sqlite:///{path}")).aclose()

    asyncio.run(made())
    with sqlite3.connect(path) as file:
        file.execute("PRAGMA journal_mode=DELETE")
    file.close()
    return path.read_bytes()


@pytest.mark.parametrize(
    "every",
    [pytest.param(False, id="one"), pytest.param(True, id="all", marks=pytest.mark.nightly)],
)
@pytest.mark.parametrize("name", METADATA.tables)
async def test_no_damaged_value_is_a_raw_error(tmp_path: Path, whole: bytes, name: str, every: bool) -> None:
    """Whatever stands in one column of one row: the store goes on, or says it is unavailable.

    By day every column gets one of the values, the next column the next one.
    """
    refused = answered = 0
    for path in _damaged_files(tmp_path, whole, name, every):
        try:
            store = await open_store(f"sqlite:///{path}")
        except StoreUnavailable:
            refused += 1
            continue
        for operation in OPERATIONS:
            with suppress(StoreUnavailable):  # a key that leads nowhere any more
                await operation(store)
                answered += 1
        await store.aclose()

    assert answered or (name == "schema_version" and refused), "nothing was damaged, or all is lost"


def _damaged_files(folder: Path, whole: bytes, name: str, every: bool) -> Iterator[Path]:
    """Files with one damaged value each: for every column all values, or the first that fits."""
    for number, column in enumerate(METADATA.tables[name].columns):
        start = number % len(VALUES)
        for value in (*VALUES[start:], *VALUES[:start]):
            path = folder / f"{number}-{VALUES.index(value)}.db"
            path.write_bytes(whole)
            if _damaged(path, column, value):
                yield path
                if not every:
                    break


def _damaged(path: Path, column: Column[Any], value: object) -> bool:
    """Put a value into the first row; False where SQLite itself refuses it."""
    name = column.table.name
    first = f"WHERE rowid = (SELECT min(rowid) FROM {name})"
    file = sqlite3.connect(path)
    try:
        file.execute(f"UPDATE {name} SET {column.name} = ? {first}", (value,))
        file.commit()
    except sqlite3.Error:
        return False
    finally:
        file.close()
    return True


@pytest.mark.parametrize("moment", ["x", -1, b"\xff", "2026", "99", "2026-13-77 99:99:99"])
async def test_a_row_without_a_time_hides_no_other(
    tmp_path: Path, moment: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """The list goes on over its pages and names it; alone it can be read and deleted."""
    store = await filled(f"sqlite:///{tmp_path / 'a.db'}")
    with sqlite3.connect(tmp_path / "a.db") as file:
        file.execute("UPDATE analyses SET created_at = ? WHERE id = 'r2'", (moment,))
    file.close()

    pages: list[str] = []
    cursor = None
    while not pages or cursor:
        page = await store.listing("a", Filters(), 1, cursor)
        pages += [listed.id for listed in page.analyses]
        cursor = page.cursor
    kept = await store.get("a", "r2")

    assert pages == ["r3", "r1"]
    assert "the analysis `r2` is damaged and is not listed" in caplog.text
    assert kept is not None
    assert kept.created_at is None
    assert kept.report is not None
    assert await store.delete("a", "r2")
    await store.aclose()


@pytest.mark.parametrize(("moment", "naming"), [("x", [1]), (-1, [2])])
async def test_a_row_without_a_time_is_named_by_the_page_where_it_would_stand(
    tmp_path: Path, moment: Any, naming: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    """So no page looks through all rows: a text that is later than any time stands first, a number last."""
    store = await filled(f"sqlite:///{tmp_path / 'a.db'}")
    with sqlite3.connect(tmp_path / "a.db") as file:
        file.execute("UPDATE analyses SET created_at = ? WHERE id = 'r2'", (moment,))
    file.close()

    named: list[int] = []
    cursor = None
    for number in (1, 2):
        caplog.clear()
        cursor = (await store.listing("a", Filters(), 1, cursor)).cursor
        named += [number] * ("`r2` is damaged" in caplog.text)

    assert named == naming
    assert cursor is None
    await store.aclose()


async def test_a_state_that_nobody_wrote_is_a_failure_with_its_reason(store_url: str) -> None:
    """In the list and alone, beside the others."""
    store = await filled(store_url)
    await written(store_url, "UPDATE analyses SET state = 'x' WHERE id = 'r1'")

    listed = {one.id: one for one in (await store.listing("a", Filters(), 9)).analyses}
    kept = await store.get("a", "r1")

    assert (listed["r1"].state, listed["r1"].reason) == ("failed", DAMAGED)
    assert listed["r2"].state == "done"
    assert kept is not None
    assert (kept.state, kept.reason, kept.report) == ("failed", DAMAGED, None)
    await store.aclose()


@pytest.mark.parametrize("value", ["x", "-1", '"s"', '[["x"]]', '["x"]'])
@pytest.mark.parametrize("column", ["items.facts", "verdicts.own", "verdicts.shared", "sessions.text", "pages.text"])
async def test_a_damaged_document_is_left_out(
    store_url: str, column: str, value: str, caplog: pytest.LogCaptureFixture
) -> None:
    """JSON of another shape than was written there: what rests on it is gone, the rest is read."""
    store = await filled(store_url)
    table, _, name = column.partition(".")
    where = "WHERE key = 'reddit:t3_1'" if table in {"items", "verdicts"} else ""
    await written(store_url, f"UPDATE {table} SET {name} = '{value}' {where}")

    kept, other = await store.get("a", "r1"), await store.get("a", "r2")
    session, page = await store.session("a", "s"), await store.page("k", 1e6)

    assert kept is not None
    assert kept.report is not None
    assert other is not None
    assert other.report is not None
    assert [entry.key for entry in other.report.items] == ["reddit:t3_2"]
    if table in {"items", "verdicts"}:
        assert kept.report.items == ()
        assert "`items` 0 of r1 is damaged, left out" in caplog.text
    assert session in {None, "s"} or table != "sessions"
    assert page in {None, "s"} or table != "pages"
    await store.forget(["reddit:t3_1"])
    assert await store.delete("a", "r1")
    await store.aclose()


async def test_an_item_without_its_verdict_is_named(store_url: str) -> None:
    """The report cannot be read, and says where; the list and the other go on."""
    store = await filled(store_url)
    await written(store_url, "UPDATE verdicts SET own = '{}' WHERE key = 'reddit:t3_1'")

    kept, other = await store.get("a", "r1"), await store.get("a", "r2")

    assert kept is not None
    assert (kept.state, kept.report) == ("failed", None)
    assert "at `items.0.verdict`" in str(kept.reason)
    assert other is not None
    assert other.report is not None
    assert len((await store.listing("a", Filters(), 9)).analyses) == 3
    await store.aclose()


async def written(url: str, statement: str) -> None:
    """Change what is stored behind the store's back."""
    database = Database(engine_url(url))
    async with database.writing() as connection:
        await connection.execute(text(statement.replace(":", "\\:")))
    await database.aclose()


@pytest.mark.parametrize(
    "versions",
    [
        "(version TEXT); INSERT INTO schema_version VALUES ('3.1')",
        "(version TEXT); INSERT INTO schema_version VALUES ('2')",
        "(version INTEGER); INSERT INTO schema_version VALUES (-1)",
        "(version INTEGER); INSERT INTO schema_version VALUES (0)",
        "(version INTEGER, x TEXT); INSERT INTO schema_version VALUES (99, 'a')",
        "(v INTEGER); INSERT INTO schema_version VALUES (1)",
        "(version INTEGER); INSERT INTO schema_version VALUES (2)",
    ],
)
async def test_a_foreign_database_is_unavailable(database_url: str, versions: str) -> None:
    """Another program's `schema_version`, or ours without the other tables; nothing is changed."""
    script = f"CREATE TABLE schema_version {versions};"
    if database_url.startswith("sqlite"):
        file = sqlite3.connect(database_url.removeprefix("sqlite:///"))
        file.executescript(script)
        file.close()
    else:
        with psycopg.connect(database_url) as connection:
            connection.execute(script.encode())

    async def used() -> None:
        store = await open_store(database_url)
        try:
            await store.listing("a", Filters(), 1)
        finally:
            await store.aclose()

    with pytest.raises(StoreUnavailable, match="LISTENPOST_DATABASE_URL") as refusal:
        await asyncio.wait_for(used(), 60)

    assert refusal.value.__suppress_context__ or refusal.value.__context__ is None
