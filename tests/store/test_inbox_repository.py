"""The inbox in both databases: what comes in, what is listed, and what goes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import update

from api.core.items import Item
from api.errors import UsageError
from api.features.analyses.store_ports import Store
from api.features.watches.watch_ports import EntryState, InboxFilter
from api.store import open_store
from api.store.database import Database, engine_url
from api.store.inbox_repository import add_to_inbox, site_of
from api.store.tables import inbox
from tests.features.watches.example_run import bring, new_post, run
from tests.features.watches.made import MONDAY, WATCH

ALL = InboxFilter("all")
OTHER = replace(WATCH, id="w2", name="Oura", query="Oura")
STRANGER = replace(WATCH, id="w3", tenant="b")


@pytest.fixture
async def store(store_url: str) -> AsyncIterator[Store]:
    """Three watches of two tenants, of which each has told something."""
    opened = await open_store(store_url)
    for watch in (WATCH, OTHER, STRANGER):
        await opened.add_watch(watch, 9)
    await bring(opened, WATCH, new_post(1), new_post(2, title="Größe 50%", complains=True))
    await bring(opened, OTHER, new_post(3, key="youtube:3", source="youtube"), new_post(1), hours=1, place="Deals")
    await bring(opened, STRANGER, new_post(9))
    yield opened
    await opened.aclose()


async def titles(store: Store, wanted: InboxFilter = ALL, tenant: str = "local") -> list[str]:
    """What is listed."""
    return [entry.post.title for entry in await store.inbox(tenant, wanted, 50)]


async def test_new_posts_are_listed_newest_first_for_their_tenant_alone(store: Store) -> None:
    """A post of two watches stands there for each; the best of a run comes first; pages follow each other."""
    entries = await store.inbox("local", ALL, 50)
    first = await store.inbox("local", ALL, 3)
    rest = await store.inbox("local", ALL, 3, first[-1].id)

    assert [entry.post.title for entry in entries] == ["Post 3", "Post 1", "Post 1", "Größe 50%"]
    assert [entry.watch for entry in entries] == ["Oura", "Oura", "Ember", "Ember"]
    assert [entry.site for entry in entries] == ["Deals", "Deals", "r/mugs", "r/mugs"]
    assert entries[0].came_at == MONDAY + timedelta(hours=1)
    assert [*first, *rest] == entries
    assert await titles(store, tenant="b") == ["Post 9"]
    assert await store.inbox_entry("b", entries[0].id) is None
    assert not await store.change_state("b", entries[0].id, EntryState(starred=True))
    with pytest.raises(UsageError):
        await store.inbox("local", ALL, 3, "\x00")


async def test_runs_that_are_no_news_bring_nothing_and_a_post_comes_once(store: Store) -> None:
    """Also one that a later run names again."""
    await bring(store, WATCH, new_post(5), hours=2, news=False)
    await bring(store, WATCH, new_post(2), new_post(6), hours=3)

    assert await titles(store) == ["Post 6", "Post 3", "Post 1", "Post 1", "Größe 50%"]


@pytest.mark.parametrize(
    ("wanted", "numbers"),
    [
        (InboxFilter(), [3, 1, 1]),
        (InboxFilter("read"), [2]),
        (InboxFilter("starred"), [2]),
        (InboxFilter("all", watch_id="w1"), [1, 2]),
        (InboxFilter("all", source="youtube"), [3]),
        (InboxFilter("all", complaints=True), [2]),
        (InboxFilter("all", text="GROSSE 50%"), [2]),
        (InboxFilter("all", text="fur später"), [2]),
        (InboxFilter("all", text="5_%"), []),
        (InboxFilter("all", text="o\x00ura"), []),
        (InboxFilter(watch_id="\x00"), []),
    ],
)
async def test_filters(store: Store, wanted: InboxFilter, numbers: list[int]) -> None:
    """By state, watch, source, kind, and by text in any case, also of a note."""
    (entry,) = await store.inbox("local", InboxFilter("all", complaints=True), 5)
    await store.change_state("local", entry.id, EntryState(MONDAY, starred=True, note="für später"))

    keys = [entry.post.key for entry in await store.inbox("local", wanted, 50)]

    assert [int(key.partition(":")[2]) for key in keys] == numbers
    assert await store.inbox_count("local", wanted, 2) == min(len(numbers), 2)


async def test_of_two_changes_at_once_both_stand(store: Store) -> None:
    """Each stores the fields that it changes alone; the note of either is found."""
    entry, *_ = await store.inbox("local", ALL, 1)
    star, note = replace(entry.state, starred=True), replace(entry.state, note="answer this")

    await store.change_state("local", entry.id, star, entry.state)
    both = await store.change_state("local", entry.id, note, entry.state)

    assert both == EntryState(starred=True, note="answer this")
    assert [found.state for found in await store.inbox("local", InboxFilter(text="answer"), 5)] == [both]


async def test_all_of_a_filter_become_read_and_unread_again(store: Store) -> None:
    """By the moment; nothing of another tenant."""
    later = MONDAY + timedelta(days=1, microseconds=7)
    count = await store.mark_all_read("local", InboxFilter(watch_id="w1"), later)
    left = await titles(store, InboxFilter())

    assert (count, left) == (2, ["Post 3", "Post 1"])
    assert await store.mark_unread("b", later) == 0
    assert await store.mark_unread("local", later) == 2
    assert len(await titles(store, InboxFilter())) == 4


async def test_muted_sites_are_in_no_list_and_settings_survive_a_new_feed(store: Store) -> None:
    """Until they are shown again; a token reads the inbox of its tenant."""
    await store.change_inbox("local", lambda settings: replace(settings, sites=("Deals",), filters={"mine": "a=1"}))
    await store.set_inbox_feed("local", "digest")
    muted = await titles(store)
    settings = await store.inbox_settings("local")

    assert muted == ["Post 1", "Größe 50%"]
    assert (settings.sites, settings.filters, settings.has_feed) == (("Deals",), {"mine": "a=1"}, True)
    assert await store.tenant_of_inbox_feed("digest") == "local"
    assert await store.mark_all_read("local", ALL, MONDAY) == 2
    await store.change_inbox("local", lambda settings: replace(settings, sites=()))
    await store.set_inbox_feed("local", None)
    assert len(await titles(store)) == 4
    assert await store.tenant_of_inbox_feed("digest") is None
    assert (await store.inbox_settings("b")).filters == {}


async def test_what_a_removed_watch_brought_goes_unless_it_has_a_star_or_note(store: Store) -> None:
    """What its author deletes goes in any case, and is held until then."""
    first, second, *_ = await store.inbox("local", ALL, 50)
    await store.change_state("local", first.id, EntryState(note="answer this"))

    await store.drop_watch("local", "w2")

    assert await titles(store) == ["Post 3", "Post 1", "Größe 50%"]
    assert await store.inbox_entry("local", second.id) is None
    assert await store.held_keys(["youtube:3"]) == ["youtube:3"]
    await store.forget(["youtube:3", "reddit:1"])
    assert await titles(store) == ["Größe 50%"]


async def test_a_damaged_entry_hides_no_other(store: Store, store_url: str) -> None:
    """A page is full although a row of it cannot be read."""
    database = Database(engine_url(store_url))
    async with database.writing() as connection:
        await connection.execute(update(inbox).where(inbox.c.key == "reddit:1").values(body={}))
    await database.aclose()

    entries = await store.inbox("local", ALL, 2)

    assert [entry.post.title for entry in entries] == ["Post 3", "Größe 50%"]


async def test_an_inbox_is_bounded(store: Store, store_url: str) -> None:
    """The oldest are dropped, but for those with a star or a note."""
    *_, oldest = await store.inbox("local", ALL, 50)
    await store.change_state("local", oldest.id, EntryState(starred=True))
    database = Database(engine_url(store_url))
    news = run(new=(new_post(7), new_post(8)), created_at=MONDAY + timedelta(days=1))
    async with database.writing() as connection:
        await add_to_inbox(connection, database, WATCH, news, (), most=3)
    await database.aclose()

    assert await titles(store) == ["Post 7", "Post 8", "Post 3", "Größe 50%"]
    assert await titles(store, tenant="b") == ["Post 9"]


@pytest.mark.parametrize(
    ("url", "site"),
    [
        ("https://www.example.com/blog/1", "example.com"),
        ("https://bsky.app/profile/ada.example/post/3k", "bsky.app/profile/ada.example"),
        ("https://example.social/@ada/110", "example.social/@ada"),
        ("https://[broken", "reddit"),
        ("", "reddit"),
    ],
)
def test_the_site_of_a_post_without_a_place(url: str, site: str) -> None:
    """The host, with the account where the address is one's page; not that of a page to which the post links."""
    post = new_post(1, url=url)
    linking = Item(key=post.key, id=post.key, source=post.source, title="", url=url, link="https://news.example/1")
    assert {site_of(post, None), site_of(post, linking)} == {site}
