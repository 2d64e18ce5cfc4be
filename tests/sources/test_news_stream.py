"""Article lists as a stream: each is read once, from where the reading ended, and what names a watch waits for it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from api import bootstrap
from api.bootstrap.app_context import open_app_context
from api.bootstrap.stream_work import history_of, open_streams
from api.errors import Broken, Unreachable
from api.features.watches.stream_watching import StreamListener
from api.features.watches.watch_ports import WatchId
from api.pipeline.gate.name_index import NameIndex
from api.sources.news import QUARTER, articles_in
from api.sources.news_stream import ROUNDS, NewsStream
from api.store import SqlStore, open_store
from tests.features.watches.made import WATCH
from tests.loopback import Reply
from tests.sources.emulators import on
from tests.sources.json_emulators import RSS, NewsEmulator, article, gal

NOTE = replace(WATCH, query="Plaud Note", as_it_happens=True)
STAMP = "%Y%m%d%H%M%S"
STORY = "Plaud Note records a meeting on its own"


class Ended(Exception):
    """The test reads no further."""


@pytest.fixture
def upstream() -> Iterator[NewsEmulator]:
    """Lists whose newest is two hours old; the newest alone has articles about the product, three."""
    with NewsEmulator(3) as server:
        server.newest -= timedelta(hours=2)
        yield server


@pytest.fixture
async def store(sqlite_url: str) -> AsyncIterator[SqlStore]:
    """A database with a watch that follows streams."""
    opened = await open_store(sqlite_url)
    await opened.add_watch(NOTE, 9)
    yield opened
    await opened.aclose()


async def read(upstream: NewsEmulator, store: SqlStore, quarters: int = 0) -> StreamListener:
    """Read, and look again after each of so many quarters of an hour."""
    pauses = 0

    async def pause(seconds: float) -> None:
        nonlocal pauses
        pauses += 1
        if pauses % ROUNDS == 0:
            upstream.newest += QUARTER
        if pauses > quarters * ROUNDS:
            raise Ended

    stream = NewsStream(upstream.settings(), pause)
    listener = StreamListener(stream, store, NameIndex[WatchId](), "r1", lambda: upstream.newest)
    with pytest.raises(Ended):
        await listener.read_once()
    return listener


async def waiting(store: SqlStore) -> list[str]:
    """Addresses of the articles that wait."""
    return sorted(post.url for post in await store.posts_of_watch((NOTE.tenant, NOTE.id), 99))


async def test_what_comes_is_found_once(upstream: NewsEmulator, store: SqlStore) -> None:
    """Without a cursor nothing is read that was there; each list is asked for once, and a known article is no other."""
    await read(upstream, store)
    assert (await waiting(store), upstream.lists) == ([], [])

    await read(upstream, store, quarters=2)

    assert await waiting(store) == [f"https://daily.example/{number}" for number in range(3)]
    assert len(upstream.lists) == len(set(upstream.lists))
    (post, *_) = await store.posts_of_watch((NOTE.tenant, NOTE.id), 1)
    assert (post.source, post.place) == ("news", "daily.example")


async def test_reading_goes_on_where_it_ended(upstream: NewsEmulator, store: SqlStore) -> None:
    """What appeared meanwhile is read, with the lists of 45 minutes before, which may have appeared late."""
    await read(upstream, store)
    ended: datetime = upstream.newest
    upstream.newest += 4 * QUARTER
    await read(upstream, store)

    assert len(await waiting(store)) == 3
    asked = sorted(upstream.lists)
    assert f"{ended - 3 * QUARTER:{STAMP}}" < asked[0]
    assert asked[-1] == f"{ended + 4 * QUARTER:{STAMP}}"


@pytest.mark.parametrize(
    "reply", [Reply(200, b"x" * 8_500_000), gal(["no json", {"uid": 1}, article(7, "https://daily.example/7")])]
)
async def test_a_list_that_cannot_be_read_is_left(upstream: NewsEmulator, store: SqlStore, reply: Reply) -> None:
    """Whole, or the lines of it that are no article."""
    await read(upstream, store)
    upstream.newest += QUARTER
    upstream.fault = on(f"{upstream.newest:{STAMP}}", reply)
    await read(upstream, store)

    assert await waiting(store) == ([] if len(reply.body) > 8_000_000 else ["https://daily.example/7"])


async def test_a_damaged_list_is_read_again(upstream: NewsEmulator, store: SqlStore) -> None:
    """Its beginning counts at once, the rest when it is whole."""
    await read(upstream, store)
    upstream.newest += QUARTER
    stamp = f"{upstream.newest:{STAMP}}"
    rows = [article(number, f"https://daily.example/{number}") for number in range(3)]
    whole = gal([*rows, *(f"{number:x}" * 40 for number in range(9_999))])
    upstream.fault = on(stamp, replace(whole, body=whole.body[: len(whole.body) // 2]), 1)
    await read(upstream, store, quarters=1)

    assert upstream.lists.count(stamp) == 2
    assert await waiting(store) == [f"https://daily.example/{number}" for number in range(3)]


@pytest.mark.parametrize("date", ["0001-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "soon"])
async def test_a_feed_of_no_time_is_broken(upstream: NewsEmulator, store: SqlStore, date: str) -> None:
    """Nothing can be read back from there."""
    upstream.fault = on("feed.rss", Reply(200, f"<rss><lastBuildDate>{date}</lastBuildDate></rss>", RSS))
    with pytest.raises(Broken, match="without lastBuildDate"):
        await anext(aiter(NewsStream(upstream.settings()).read("")))


def test_a_story_of_many_places_is_one() -> None:
    """With all of them, each once, in order."""
    rows = [article(number % 3_000, f"https://p{number % 3_000}.example/", title=STORY) for number in range(6_000)]
    (item,), whole = articles_in("\n".join(map(json.dumps, rows)).encode())
    assert item.places == tuple(f"p{number}.example" for number in range(3_000))
    assert whole


async def test_a_server_that_fails_is_told(upstream: NewsEmulator, store: SqlStore) -> None:
    """Whoever reads tries again."""
    upstream.fault = on("feed.rss", Reply(503, {}))
    listener = StreamListener(
        NewsStream(upstream.settings()), store, NameIndex[WatchId](), "r1", lambda: upstream.newest
    )
    with pytest.raises(Unreachable):
        await listener.read_once()


@pytest.mark.parametrize(
    ("switch", "sources", "streams", "asked"),
    [
        ("on", (), ["bluesky", "news"], ("archive", "bluesky", "news")),
        ("on", ("news", "reddit"), ["bluesky", "news"], ("archive", "news")),
        ("off", ("news",), ["bluesky"], ("archive", "bluesky")),
    ],
)
async def test_it_is_read_where_it_is_switched_on(
    monkeypatch: pytest.MonkeyPatch, switch: str, sources: tuple[str, ...], streams: list[str], asked: Any
) -> None:
    """A watch that names it is told of it alone, there; elsewhere as if it named none."""
    monkeypatch.setenv("NEWS", switch)
    context = await open_app_context(bootstrap.load_settings(sandbox=True))
    async with open_streams(context, named=True) as opened:
        ask = await history_of(context, opened, replace(NOTE, sources=sources))
        names = [stream.name for stream in opened]
    await context.aclose()

    assert (names, ask.sources) == (streams, asked)
