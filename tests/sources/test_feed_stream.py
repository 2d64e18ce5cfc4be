"""Followed feeds as a stream: each is asked when it is due, and what is new goes to those who follow it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from datetime import timedelta

import pytest

from api.features.watches.followed_feeds import FollowedFeed
from api.features.watches.stream_watching import StreamListener
from api.features.watches.watch_ports import WatchId
from api.pipeline.gate.name_index import NameIndex
from api.settings.value_types import feeds_in
from api.sources.feed_stream import FeedStream
from api.store import SqlStore, open_store
from tests.features.watches.made import WATCH
from tests.sources.feed_emulator import FeedsEmulator, entry, rss

MUG = replace(WATCH, query="Ember mug", as_it_happens=True)


class Ended(Exception):
    """The test reads no further rounds."""


class World:
    """A feed that `a` follows, and `b` does not; both watch the same name as it happens."""

    def __init__(self, store: SqlStore, site: FeedsEmulator, *, shared: bool = False) -> None:
        self.store, self.site, self.rounds = store, site, 1
        addresses = feeds_in(site.settings().feeds) if shared else ()
        reader = site.reader(memory=store)
        stream = FeedStream(reader, store, addresses, lambda: site.now, self.pause)
        self.listener = StreamListener(stream, store, NameIndex[WatchId](), "r1", lambda: site.now)

    async def pause(self, seconds: float) -> None:
        self.rounds -= 1
        if not self.rounds:
            raise Ended
        self.site.now += timedelta(seconds=seconds)

    async def read(self, rounds: int = 1) -> None:
        self.rounds = rounds
        with pytest.raises(Ended):
            await self.listener.read_once()

    async def waiting(self) -> dict[str, list[str]]:
        """By tenant the titles of the posts that wait."""
        ids = await self.store.pending_watches(self.site.now, 9)
        return {tenant: [p.title for p in await self.store.posts_of_watch((tenant, id_), 9)] for tenant, id_ in ids}

    def write(self, *titles: str) -> None:
        """What the feed holds from now on, beside what it held."""
        entries = [entry(title, f"https://mugs.example/{title.replace(' ', '-')}") for title in titles]
        self.site.body = rss(*entries, entry("The first Ember mug", "https://mugs.example/1"))


@pytest.fixture
async def store(store_url: str) -> AsyncIterator[SqlStore]:
    """The database of two tenants."""
    opened = await open_store(store_url)
    for tenant in "ab":
        await opened.add_watch(replace(MUG, id=f"w{tenant}", tenant=tenant), 9)
    yield opened
    await opened.aclose()


async def test_new_entries_go_to_those_who_follow_the_feed(store: SqlStore) -> None:
    """What it held when it was first read is history; it is asked once an hour, however often it is looked at."""
    with FeedsEmulator(0) as site:
        (address,) = feeds_in(site.settings().feeds)
        await store.follow("a", FollowedFeed(address), 9)
        world = World(store, site)
        world.write()
        await world.read(rounds=5)
        assert (await world.waiting(), len(site.server.asked)) == ({}, 1)

        world.write("An Ember mug that leaks", "Something else")
        await world.read(rounds=5)
        assert (await world.waiting(), len(site.server.asked)) == ({}, 1)  # not due

        site.later()
        await world.read(rounds=20)
        assert await world.waiting() == {"a": ["An Ember mug that leaks"]}
        assert len(site.server.asked) == 2
        assert world.listener.counts.matched == 1

        (post,) = await store.posts_of_watch(("a", "wa"), 9)
        assert (post.source, post.place) == ("feeds", "Mugs")
        assert post.url == "https://mugs.example/An-Ember-mug-that-leaks"


async def test_the_first_entry_of_an_empty_feed_is_new(store: SqlStore) -> None:
    """It held nothing when it was first read, so nothing of it is history."""
    with FeedsEmulator(0) as site:
        (address,) = feeds_in(site.settings().feeds)
        await store.follow("a", FollowedFeed(address), 9)
        world = World(store, site)
        site.body = rss()
        await world.read(rounds=5)
        site.later()
        site.body = rss(entry("An Ember mug that leaks", "https://mugs.example/2"))
        await world.read(rounds=20)

        assert await world.waiting() == {"a": ["An Ember mug that leaks"]}


async def test_feeds_of_the_settings_are_everybodys(store: SqlStore) -> None:
    """Beside those that somebody follows."""
    with FeedsEmulator(0) as site:
        world = World(store, site, shared=True)
        world.write()
        await world.read()
        site.later()
        world.write("An Ember mug that leaks")
        await world.read()

        assert await world.waiting() == {tenant: ["An Ember mug that leaks"] for tenant in "ab"}


async def test_feeds_of_tenants_without_such_watches_are_left_alone(store: SqlStore) -> None:
    """A question or a run of the schedule asks them."""
    with FeedsEmulator(0) as site:
        (address,) = feeds_in(site.settings().feeds)
        await store.follow("c", FollowedFeed(address), 9)
        await store.change_watch(replace(MUG, id="wa", tenant="a", as_it_happens=False))
        await store.follow("a", FollowedFeed(address), 9)
        await World(store, site).read()

        assert site.server.asked == []


async def test_a_cursor_that_is_no_time_begins_now(store: SqlStore) -> None:
    """As an empty one does."""
    with FeedsEmulator(0) as site:
        stream = FeedStream(site.reader(memory=store), store, (), lambda: site.now)
        async with aclosing(stream.read("x")) as batches:
            batch = await anext(batches)
        assert (batch.cursor, batch.posts) == (site.now.isoformat(), ())
