"""Analyses as statistics read them, on both databases."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest
from sqlalchemy import text

from api.features.analyses.store_ports import Counted, Tally
from api.store import SqlStore, open_store
from api.store.database import Database, engine_url
from tests.store.made import dropped, item, report, source, typed


@pytest.fixture
async def store(store_url: str) -> AsyncIterator[SqlStore]:
    """An empty store."""
    opened = await open_store(store_url)
    yield opened
    await opened.aclose()


async def counts(store: SqlStore, since: datetime | None = None, most: int = 999) -> list[Counted]:
    """What is handed over of the tenant `a`."""
    listed: list[Counted] = []
    await store.each_counted("a", since, most, listed.append)
    return listed


async def damage(url: str, statement: str) -> None:
    """Change rows as nobody here does."""
    database = Database(engine_url(url))
    async with database.writing() as connection:
        await connection.execute(text(statement))
    await database.aclose()


def judged(id_: str, day: int = 27) -> dict[str, object]:
    """A report whose source judged three items, one of them relevant; one more was unfit."""
    unfit = dropped("reddit:t3_4") | {"dropped_by": "unfit"}
    out = [dropped("reddit:t3_2"), dropped("reddit:t3_3"), unfit]
    asked = {"reddit": source(*out, kept=1) | {"yield_ratio": 1 / 3}}
    made = f"2026-11-{day}T10:00:00Z"
    return report(id_, item("reddit:t3_1"), out=out, sources=asked, created_at=made)


async def test_a_report_is_counted_as_it_was_when_it_ended(store: SqlStore) -> None:
    """A deleted item changes nothing."""
    saved = typed(judged("r1"))
    await store.finish("a", saved)

    (first,) = await counts(store)
    await store.forget(["reddit:t3_1", "reddit:t3_2"])
    (after,) = await counts(store)

    assert first.tally == Tally.of(saved)
    assert (first.id, first.state) == ("r1", "done")
    assert (first.tally.judged, first.tally.relevant, first.tally.cited) == (3, 1, 1)
    assert after == first


async def test_every_state_is_handed_over_newest_first(store: SqlStore) -> None:
    """Since a time, of one tenant; of those that did not end well there is no tally."""
    for number in (3, 1, 2):
        await store.finish("a", typed(judged(f"r{number}", number + 10)))
    await store.finish("b", typed(judged("r9")))
    await store.begin("a", "running", "mug")
    await store.begin("a", "failed", "mug")
    await store.fail("a", "failed", "no model")

    listed = await counts(store)
    since = await counts(store, datetime(2026, 11, 12, tzinfo=UTC))

    assert {(entry.id, entry.state) for entry in listed[:2]} == {
        ("running", "running"), ("failed", "failed"),
    }  # fmt: skip
    assert [entry.id for entry in listed[2:]] == ["r3", "r2", "r1"]
    assert [entry.tally is None for entry in listed] == [True, True, False, False, False]
    assert [entry.id for entry in since[2:]] == ["r3", "r2"]


async def test_many_are_cut_and_that_is_known(store: SqlStore) -> None:
    """Also over more rows than are read at once."""
    for number in range(103):
        await store.begin("a", f"r{number}", "mug")

    for most, cut in ((102, True), (100, True), (103, False)):
        listed: list[Counted] = []
        assert await store.each_counted("a", None, most, listed.append) is cut
        assert len(listed) == most


@pytest.mark.parametrize("tally", ["{", "[]", "7", '{"decision":"maybe"}'])
async def test_a_damaged_row_hides_no_other(store: SqlStore, store_url: str, tally: str) -> None:
    """It counts as failed when its tally cannot be read."""
    for id_ in ("r1", "r2"):
        await store.finish("a", typed(judged(id_)))
    await damage(store_url, f"UPDATE analyses SET tally = '{tally}' WHERE id = 'r1'")

    listed = {entry.id: entry for entry in await counts(store)}

    assert (listed["r1"].state, listed["r1"].tally) == ("failed", None)
    assert listed["r2"].tally is not None
