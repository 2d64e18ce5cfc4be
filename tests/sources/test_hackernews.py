"""Hacker News: what is sent, what its hits become, its own failures, recordings."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from api.core.domain import FetchPlan
from api.core.items import Item
from api.core.ports import Source
from api.errors import Blocked, Broken, RateLimited, SourceError
from api.sources import SOURCES
from tests.loopback import Reply
from tests.replay import MORE, NO_MORE
from tests.sources.emulators import on
from tests.sources.json_emulators import HackerNewsEmulator, reply, story


@pytest.fixture
def upstream() -> Iterator[HackerNewsEmulator]:
    """Hacker News on loopback."""
    with HackerNewsEmulator() as server:
        yield server


@pytest.fixture
async def source(upstream: HackerNewsEmulator) -> AsyncIterator[Source]:
    """The real source that asks it."""
    made = SOURCES["hackernews"].build(upstream.settings())
    yield made
    await made.aclose()


async def found(upstream: HackerNewsEmulator, source: Source, *hits: Any) -> tuple[Item, ...]:
    """What these hits become."""
    upstream.fault = on("/search", Reply(body={"hits": list(hits), "nbPages": 1}))
    return (await source.fetch(FetchPlan("mug", 10))).items


async def test_one_search_serves_the_refetch(upstream: HackerNewsEmulator, source: Source) -> None:
    """A hundred hits are asked for at once, exact words, in texts alone, stories and comments."""
    plan = FetchPlan("Ember mug", 10, name="Ember mug")
    await source.fetch(plan)
    await source.fetch(plan.widened(2))

    (search,) = upstream.searches
    assert search.query["query"] == '"Ember mug"'
    assert search.query["tags"] == "(story,comment)"
    assert search.query["typoTolerance"] == "false"
    assert search.query["hitsPerPage"] == "100"
    assert "author" not in search.query["restrictSearchableAttributes"]
    assert "numericFilters" not in search.query
    assert search.headers["user-agent"].startswith("listenpost")


async def test_a_window_is_exact(upstream: HackerNewsEmulator, source: Source) -> None:
    """To the second, by the place itself."""
    await source.fetch(FetchPlan("mug", 10, "week"))

    (search,) = upstream.searches
    seconds = int(search.query["numericFilters"].removeprefix("created_at_i>="))
    week_ago = datetime.now(UTC) - timedelta(days=7)
    assert abs(seconds - week_ago.timestamp()) < 600


async def test_a_comment_is_an_item_of_its_thread(upstream: HackerNewsEmulator, source: Source) -> None:
    """Title of the story, words and address of the comment; no votes, since nobody sees them."""
    comment = {
        "objectID": "77", "comment_text": "I own two<p>and they leak", "author": "kiln",
        "story_title": "Ask HN: mugs?", "story_id": 70, "created_at_i": 1_790_000_000,
    }  # fmt: skip
    (item,) = await found(upstream, source, comment)

    assert (item.key, item.title, item.body) == (
        "hackernews:77", "Ask HN: mugs?", "I own two\n\nand they leak",
    )  # fmt: skip
    assert item.url == "https://news.ycombinator.com/item?id=77"
    assert (item.thread, item.engagement, item.link) == ("hackernews:70", {}, "")
    assert item.author
    assert "kiln" not in item.author


ODD: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"story_text": None, "url": "https://example.org/mug"}, {"body": "", "unfit": ""}),
    ({"title": "AT&amp;T mug"}, {"title": "AT&T mug"}),
    ({"points": None, "num_comments": "4"}, {"engagement": {"points": None, "comments": 4}}),
    ({"created_at_i": 0}, {"created_at": None}),
    ({"created_at_i": 4_102_444_800}, {"created_at": None}),
    ({"author": None}, {"author": None}),
    ({"url": "javascript:alert(1)"}, {"link": ""}),
]


@pytest.mark.parametrize(("fields", "expected"), ODD)
async def test_odd_hits(upstream: HackerNewsEmulator, source: Source, fields: Any, expected: Any) -> None:
    """Nulls of the years before, entities, impossible times and addresses."""
    (item,) = await found(upstream, source, story(1, **fields))

    assert {name: getattr(item, name) for name in expected} == expected


async def test_a_deleted_comment_is_unfit(upstream: HackerNewsEmulator, source: Source) -> None:
    """A comment without words is never judged by its story's title."""
    comment = {"objectID": "78", "comment_text": "", "story_title": "Mugs", "story_id": 70}
    (item,) = await found(upstream, source, comment)

    assert item.unfit


async def test_comments_without_a_story_are_no_one_thread(upstream: HackerNewsEmulator, source: Source) -> None:
    """Each is its own, so that none counts as another's."""
    comment = {"comment_text": "Warm", "story_title": "Mugs", "story_id": None}
    items = await found(upstream, source, comment | {"objectID": "78"}, comment | {"objectID": "79"})

    assert [item.thread for item in items] == ["hackernews:78", "hackernews:79"]


FAILURES: list[tuple[Reply, type[SourceError]]] = [
    (Reply(body={"hits": [], "nbHits": 0, "message": "you can only fetch the 1000 hits"}), Broken),
    (Reply(body="<html>checking your browser</html>"), Blocked),
    (Reply(400, {"code": 400, "message": "invalid numeric attribute(points)"}), Broken),
    (Reply(403, {"message": "Forbidden"}), RateLimited),
    (Reply(403, "<h1>Forbidden</h1>"), Blocked),
    (Reply(429, "<h1>slow down</h1>"), RateLimited),
    (Reply(body={"nbHits": 0}), Broken),
    (Reply(body={"hits": None}), Broken),
]


@pytest.mark.parametrize(("answer", "expected"), FAILURES)
async def test_no_failure_looks_like_nothing_found(
    upstream: HackerNewsEmulator, source: Source, answer: Reply, expected: type[SourceError]
) -> None:
    """Each of its own ways to fail is an outcome, never an empty page."""
    upstream.fault = on("/search", answer)

    with pytest.raises(SourceError) as caught:
        await source.fetch(FetchPlan("mug", 5))

    assert type(caught.value) is expected


async def test_nothing_is_asked_beyond_a_thousand(upstream: HackerNewsEmulator, source: Source) -> None:
    """The last page is the tenth, whatever the number of pages says."""
    upstream.count = 5_000
    batch = await source.fetch(FetchPlan("mug", 2_000))

    assert len(batch.items) == 1_000
    assert len(upstream.searches) == 10
    assert not batch.full


async def test_replies_come_from_every_depth(upstream: HackerNewsEmulator, source: Source) -> None:
    """Those to the item first; deleted ones are left out; so many at most."""
    (item,) = await found(upstream, source, story(1))
    gone = {"author": None, "text": None}
    children = [reply(1, **gone), *(reply(number) for number in range(2, 5))]
    upstream.fault = on("/items/", Reply(body={"children": children}))

    (full,) = (await source.comments((item,))).items

    bodies = [comment.body for comment in full.comments]
    assert bodies[:3] == ["Review 2", "Review 3", "Review 4"]
    assert bodies[3:] == ["Below"] * 4
    assert full.comments[0].url == "https://news.ycombinator.com/item?id=5002"


async def test_the_probe_says_what_is_left(source: Source) -> None:
    """Of the hour's requests, as far as this process knows."""
    probe = await source.probe()

    assert probe.outcome == "ok"
    assert "of 10,000 requests an hour" in probe.detail


@pytest.mark.skipif(not MORE.is_dir(), reason=NO_MORE)
async def test_a_recorded_thread(upstream: HackerNewsEmulator, source: Source) -> None:
    """Four replies and one below."""
    (item,) = await found(upstream, source, story(1))
    body = (MORE / "hackernews" / "item_show_hn_2018.json").read_bytes()
    upstream.fault = on("/items/", Reply(body=body))

    (full,) = (await source.comments((item,))).items

    assert len(full.comments) == 5
    assert all(comment.author and comment.created_at for comment in full.comments)
