"""Pages that survive a restart: real sources, a real store, and readers that count."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

import pytest

from api.core.domain import FetchPlan
from api.core.items import Comment, Item
from api.errors import SourceError, StoreUnavailable
from api.features.analyses.store_ports import SourceMemory, Store
from api.sources import SOURCES
from api.sources.searched_source import NOT_STORED, Page, PagedSearch, page_from_json, page_to_json
from api.store import open_store
from tests.loopback import Reply
from tests.sources.emulators import AmazonEmulator, Emulator, RedditEmulator, YouTubeEmulator, on

PLAN = FetchPlan("mug", 5)
TWO = FetchPlan("mug", 2)
THING = Item(
    key="reddit:t3_1", id="t3_1", source="reddit", title="Tasse 小米", body="b", url="https://e.org",
    author="potter-1", created_at=datetime(2026, 11, 27, 10, tzinfo=UTC),
    engagement={"votes": 3, "ratio": 0.5, "views": None}, place="mugs",
    comments=(
        Comment(id="c", body="yes", url="u", author="a", created_at=None, engagement={"votes": 1}),
        Comment(id="d", body="no", created_at=datetime(2026, 11, 27, 11, tzinfo=UTC)),
    ),
    thread="t3_0", crosspost_parent="reddit:t3_0", places=("mugs", "cups"), link="https://e.org/x",
    notes=("n",), unfit="removed", credit="Ada (https://e.org/ada)", language="de",
)  # fmt: skip


class Reader:
    """Gives the same page and counts."""

    def __init__(self) -> None:
        self.asked = 0

    async def __call__(self, plan: FetchPlan, cursor: str | None) -> Page:
        self.asked += 1
        return Page((THING, None), "more", ("a note",))


class Cache:
    """Gives one text for every key; or nothing works."""

    def __init__(self, text: str | None = None) -> None:
        self.text, self.asked = text, 0

    async def page(self, key: str, ttl: float) -> str | None:
        self.asked += 1
        if self.text is None:
            raise StoreUnavailable("away")
        return self.text or None

    async def keep_page(self, key: str, text: str) -> None:
        if self.text is None:
            raise StoreUnavailable("away")


class Forgetful(Cache):
    """Reads, but cannot write."""

    async def keep_page(self, key: str, text: str) -> None:
        raise StoreUnavailable("away")


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    """A store in a file."""
    opened = await open_store(f"sqlite:///{tmp_path / 'a.db'}")
    yield opened
    await opened.aclose()


@pytest.fixture(params=[RedditEmulator, YouTubeEmulator, AmazonEmulator], ids=lambda kind: kind.name)
def upstream(request: pytest.FixtureRequest) -> Iterator[Emulator]:
    """One upstream on loopback."""
    with request.param() as server:
        yield server


async def test_pages_survive_a_restart(upstream: Emulator, store: Store) -> None:
    """A new process asks nothing for what was read, gives the same, and goes on from there."""
    memory = store
    first = SOURCES[upstream.name].build(upstream.settings(), memory)
    before = await first.fetch(PLAN)
    await first.aclose()
    second = SOURCES[upstream.name].build(upstream.settings(), memory)

    after = await second.fetch(PLAN)
    asked_then = len(upstream.searches)
    wider = await second.fetch(replace(PLAN, limit=upstream.page + 5))
    await second.aclose()

    assert after == before
    assert asked_then == 1
    assert len(upstream.searches) == 2
    assert len({item.key for item in wider.items}) == upstream.page + 5


async def test_window_and_query_are_part_of_the_plan(upstream: Emulator, store: Store) -> None:
    """Another question, and the same one about a week, are asked for themselves."""
    source = SOURCES[upstream.name].build(upstream.settings(), store)
    for plan in (PLAN, replace(PLAN, query="cup"), replace(PLAN, window="week")):
        await source.fetch(plan)
    await source.aclose()

    assert len(upstream.searches) == 3


async def test_failure_is_never_remembered(upstream: Emulator, store: Store) -> None:
    """After a blocked, failed or strange page, a new process reaches the source (case B91)."""
    memory = store
    strange, _ = upstream.strange()
    for reply in (Reply(503, "busy"), Reply(403, "<title>Robot check</title>"), strange):
        upstream.fault = on(upstream.search_path, reply)
        failing = SOURCES[upstream.name].build(upstream.settings(), memory)
        with pytest.raises(SourceError):
            await failing.fetch(PLAN)
        await failing.aclose()
    upstream.fault = on("never", Reply())

    source = SOURCES[upstream.name].build(upstream.settings(), memory)
    assert len((await source.fetch(PLAN)).items) == 5
    await source.aclose()


async def test_a_page_of_which_a_part_failed_is_never_remembered(store: Store) -> None:
    """It lacks what the part would have given."""
    asked = []

    async def read(plan: FetchPlan, cursor: str | None) -> Page:
        asked.append(cursor)
        return Page((THING,), None, partial=len(asked) == 1)

    for _ in range(3):
        await PagedSearch(read, 60, store, "parts").take(PLAN)

    assert len(asked) == 2


async def test_another_root_has_its_own_pages(store: Store) -> None:
    """What a test server said is never taken for what the site says."""
    read = Reader()
    for root in ("reddit a", "reddit b", "reddit a"):
        await PagedSearch(read, 60, store, root).take(TWO)

    assert read.asked == 2


async def test_page_that_is_too_old_is_asked_again(store: Store) -> None:
    """The time to live counts from when the source gave the page, not from the restart."""
    read = Reader()
    await PagedSearch(read, 60, store, "r").take(TWO)
    await PagedSearch(read, 0, store, "r").take(TWO)
    assert read.asked == 2

    old = datetime.now(UTC) - timedelta(seconds=50)
    cache = Cache(page_to_json(Page((THING,) * 9, None), old))
    shelf = PagedSearch(read, 40, cast(SourceMemory, cache), "r")
    await shelf.take(PLAN)
    await shelf.take(PLAN)
    assert cache.asked == 2


@pytest.mark.parametrize("cache", [Cache(None), Forgetful("")], ids=["away", "read-only"])
async def test_database_that_is_away_costs_the_memory_only(cache: SourceMemory) -> None:
    """The source is asked, and a note says what was lost."""
    batch = await PagedSearch(Reader(), 60, cache, "r").take(TWO)

    assert [item.key for item in batch.items] == [THING.key]
    assert batch.notes == ("a note", NOT_STORED)


def test_page_comes_back_whole() -> None:
    """Every field of an item and its comments, with the types and zone it had."""
    page = Page((THING, None, THING.edited(created_at=None)), "after 1", ("n",))
    then = datetime(2026, 11, 27, 12, 30, tzinfo=UTC)

    again = page_from_json(page_to_json(page, then))

    assert again == replace(page, read_at=then)
    assert again.slots[0] is not None
    assert again.slots[0].created_at is not None
    assert again.slots[0].created_at.tzinfo is UTC
    default = {name for name, of in Item.model_fields.items() if getattr(THING, name) == of.default}
    assert default == set(), "a field that is not tried here"


@pytest.mark.parametrize("text", ["", "[]", "{}", "null", '{"slots": 3}'])
def test_page_of_another_version_is_none(text: str) -> None:
    """What cannot be read is asked for again."""
    assert page_from_json(text) is None
    assert page_from_json(page_to_json(Page((THING,)), datetime.now(UTC)).replace('"title"', '"name"')) is None
    assert json.loads(page_to_json(Page(()), datetime.now(UTC)))["slots"] == []
