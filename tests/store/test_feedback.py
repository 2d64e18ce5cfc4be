"""Feedback on analyses, on both databases: one of each author, gone with what it is about."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from api.errors import UsageError
from api.features.analyses.store_ports import Feedback, Store, Thumbs
from api.store import open_store
from tests.store.made import ODD, counted, finding, item, report, typed

MINE = Feedback("r1", "ada", "report", "up", comment="just so")


@pytest.fixture
async def store(store_url: str) -> AsyncIterator[Store]:
    """A store with two tenants' reports of one id."""
    opened = await open_store(store_url)
    for tenant in ("a", "b"):
        await opened.finish(tenant, typed(report("r1", item("reddit:t3_1"), item("reddit:t3_2"))))
    yield opened
    await opened.aclose()


async def test_feedback_is_read_as_it_was_given(store: Store) -> None:
    """With a time, oldest first, and with text and keys that a database would refuse."""
    odd = Feedback("r1", "ada", "item", "down", item_key=f"items:{ODD}{'x' * 300}", comment=ODD)
    third = Feedback("r1", "eve", "finding", "up", finding=2)
    kept = [await store.keep_feedback("a", given, 9) for given in (MINE, odd, third)]

    listed = await store.feedback("a", "r1")

    assert tuple(kept) == listed
    assert [replace(given, created_at=None) for given in listed] == [
        MINE,
        replace(odd, comment=ODD.replace("\x00", "\ufffd").replace("\ud83d", "\ufffd")),
        third,
    ]
    assert all(
        given.created_at and abs(given.created_at - datetime.now(UTC)) < timedelta(minutes=1) for given in listed
    )


async def test_the_last_word_of_an_author_counts(store: Store, store_url: str) -> None:
    """Another rating of the same takes its place and keeps the first time; others stay."""
    first = await store.keep_feedback("a", MINE, 2)
    other = replace(MINE, author="eve")
    await store.keep_feedback("a", other, 2)
    changed = await store.keep_feedback("a", replace(MINE, rating="down", comment=""), 2)

    assert first is not None
    assert changed == replace(first, rating="down", comment="")
    await store.keep_feedback("a", replace(MINE, author="ivy", rating="down"), 3)
    assert await store.thumbs("a", None) == {"r1": Thumbs(up=1, down=2)}
    assert await counted(store_url, "feedback") == [3]


async def test_an_analysis_takes_so_many_and_no_more(store: Store) -> None:
    """Who has said something may still change it."""
    await store.keep_feedback("a", MINE, 1)

    with pytest.raises(UsageError, match="`r1` has 1 ratings; no more are taken"):
        await store.keep_feedback("a", replace(MINE, author="eve"), 1)

    assert await store.keep_feedback("a", replace(MINE, rating="down"), 1) is not None


async def test_tenants_do_not_see_each_other(store: Store) -> None:
    """Of the same id each has its own; there is none on what is not there."""
    await store.keep_feedback("a", MINE, 9)

    assert await store.feedback("b", "r1") == ()
    assert await store.thumbs("b", None) == {}
    assert await store.keep_feedback("a", replace(MINE, analysis_id="r2"), 9) is None
    assert await store.keep_feedback("c", MINE, 9) is None


async def test_thumbs_are_those_of_analyses_since_then(store: Store) -> None:
    """By when the analysis was begun."""
    await store.finish("a", typed(report("r2", created_at="2026-11-28T10:00:00Z")))
    for analysis_id in ("r1", "r2"):
        await store.keep_feedback("a", replace(MINE, analysis_id=analysis_id), 9)

    assert set(await store.thumbs("a", None)) == {"r1", "r2"}
    assert set(await store.thumbs("a", datetime(2026, 11, 28, tzinfo=UTC))) == {"r2"}


async def test_feedback_goes_with_its_report(store: Store, store_url: str) -> None:
    """That of another tenant stays."""
    for tenant in ("a", "b"):
        await store.keep_feedback(tenant, MINE, 9)

    await store.delete("a", "r1")

    assert await counted(store_url, "feedback") == [1]
    assert len(await store.feedback("b", "r1")) == 1


async def test_feedback_goes_with_an_item_that_its_source_deleted(store: Store) -> None:
    """Of every tenant; comments lose its key, and findings that went take the numbers along."""
    two = report(
        "r2", item("reddit:t3_1"), item("reddit:t3_2"),
        findings=[finding("on both", "reddit:t3_1", "reddit:t3_2")],
    )  # fmt: skip
    await store.finish("a", typed(two))
    for tenant in ("a", "b"):
        for given in (
            replace(MINE, subject="item", item_key="reddit:t3_1"),
            replace(MINE, subject="item", item_key="reddit:t3_2"),
            replace(MINE, subject="finding", finding=2),
            replace(MINE, comment="reddit:t3_1 is not reddit:t3_11"),
        ):
            await store.keep_feedback(tenant, given, 9)
    await store.keep_feedback("a", Feedback("r2", "ada", "finding", "up", finding=1), 9)

    await store.forget(["reddit:t3_1"])

    for tenant in ("a", "b"):
        left = await store.feedback(tenant, "r1")
        assert {(given.subject, given.item_key, given.comment) for given in left} == {
            ("item", "reddit:t3_2", "just so"), ("report", None, "[removed] is not reddit:t3_11"),
        }  # fmt: skip
    assert [given.finding for given in await store.feedback("a", "r2")] == [1]
