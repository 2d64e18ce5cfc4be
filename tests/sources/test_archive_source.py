"""What is stored, as a place that a question is put to."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from api.core.domain import FetchPlan
from api.core.items import Item
from api.errors import StoreUnavailable, Unreachable
from api.features.archive.import_file import STUB
from api.features.archive.imports import FileIdentity, ImportBatch, ImportPosition
from api.features.archive.search_values import Archive
from api.models.local.word_vectors import embed
from api.sources.archive_source import ArchiveSource
from api.store import SqlStore, open_store
from api.store.item_rows import no_vectors

TENANT = "local"


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqlStore]:
    """A store of one tenant's imports."""
    opened = await open_store(f"sqlite:///{tmp_path / 'kept.db'}", embed)
    yield opened
    await opened.aclose()


def facts(id_: str, title: str, *comments: str, days: int = 400) -> Item:
    """An item of so many days ago."""
    remarks: list[dict[str, Any]] = [
        {"id": f"{id_}-{n}", "body": body, "url": "", "created_at": None, "engagement": {}}
        for n, body in enumerate(comments)
    ]
    fields: dict[str, Any] = {
        "key": f"reddit:{id_}", "id": id_, "source": "reddit", "title": title, "body": "",
        "url": "", "created_at": datetime.now(UTC) - timedelta(days=days), "engagement": {},
        "place": "r/x", "places": [], "comments": remarks, "notes": [],
    }  # fmt: skip
    return Item.model_validate(fields)


async def keep(store: SqlStore, *items: Item) -> None:
    """Store them as an import."""
    begun = await store.begin_import(TENANT, FileIdentity("x", "jsonl", ""))
    await store.keep_batch(TENANT, begun, ImportBatch(items, (), {}, ImportPosition(1, 1)))


async def test_the_best_come_first_with_their_comments(store: SqlStore) -> None:
    """By their own words or those of a comment; each once, however many pieces fit."""
    await keep(
        store,
        facts("a", "Sourdough at home", "flour, water, salt"),
        facts("b", "Ember mug leaks", "the ember mug is warm", "my ember mug leaks too"),
        facts("c", "Desk setup", "that is an ember mug on it"),
    )
    source = ArchiveSource(store, TENANT, embed, 0.65)

    batch = await source.fetch(FetchPlan("ember mug", 5))
    first = await source.fetch(FetchPlan("ember mug", 1))
    read = await source.comments(batch.items)

    assert [item.id for item in batch.items][:2] == ["b", "c"]
    assert [comment.id for comment in batch.items[0].comments] == ["b-0", "b-1"]
    assert batch.items[0].source == "reddit"
    assert (len(first.items), first.full, batch.full) == (1, True, False)
    assert read.items == batch.items
    assert (await source.probe()).outcome == "ok"
    await source.aclose()


async def test_comments_without_their_post_are_items(store: SqlStore) -> None:
    """Those that were found first, at most as many as were asked for."""
    stub = facts("v", "A year later", "nothing", "so warm", "my ember mug leaks").edited(notes=(STUB,))
    await keep(store, stub)
    source = ArchiveSource(store, TENANT, embed, 0.65)

    batch = await source.fetch(FetchPlan("ember mug", 2))

    assert (batch.items[0].body, len(batch.items), batch.full) == ("my ember mug leaks", 2, True)
    assert (batch.items[0].title, batch.items[0].thread) == ("A year later", "reddit:v")


async def test_a_window_leaves_out_what_is_older(store: SqlStore) -> None:
    """As of every place."""
    await keep(store, facts("old", "Ember mug leaks"), facts("new", "Ember mug works", days=3))

    batch = await ArchiveSource(store, TENANT, embed, 0.65).fetch(FetchPlan("ember mug", 5, "month"))

    assert [item.id for item in batch.items] == ["new"]


async def test_without_vectors_words_are_used_and_said(tmp_path: Path) -> None:
    """On a machine without WordLlama."""
    store = await open_store(f"sqlite:///{tmp_path / 'words.db'}", no_vectors)
    await keep(store, facts("a", "Ember mug leaks"))

    batch = await ArchiveSource(store, TENANT, no_vectors, 0.65).fetch(FetchPlan("ember mug", 5))

    assert [item.id for item in batch.items] == ["a"]
    assert batch.notes == ("found by words alone: there are no word vectors here",)
    await store.aclose()


async def test_another_tenant_has_nothing_here(store: SqlStore) -> None:
    """The source is of one tenant."""
    await keep(store, facts("a", "Ember mug leaks"))

    assert (await ArchiveSource(store, "b", embed, 0.65).fetch(FetchPlan("ember mug", 5))).items == ()


class Away:
    """A database that is not there."""

    async def matches(self, *_: Sequence[object]) -> None:
        raise StoreUnavailable("/secret/path is locked", "the database cannot be used")


async def test_a_database_that_is_away_is_an_outcome() -> None:
    """The other places go on; no path of the machine is in it."""
    source = ArchiveSource(cast(Archive, Away()), TENANT, no_vectors, 0.65)

    with pytest.raises(Unreachable, match=r"^archive: the database cannot be used"):
        await source.fetch(FetchPlan("ember mug", 5))
