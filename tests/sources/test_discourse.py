"""Discourse: several forums, what is sent, what posts and topics become, failures, recordings."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from api.core.context import request_counter
from api.core.domain import BY_BOT, INVISIBLE, REMOVED, FetchPlan
from api.core.items import Item
from api.core.ports import Source
from api.errors import Blocked, Broken, NotAsked, RateLimited, Refused, SourceError, Unreachable
from api.settings import SourceSettings
from api.sources import SOURCES
from tests.loopback import Reply
from tests.replay import MORE, NO_MORE
from tests.sources.emulators import on
from tests.sources.json_emulators import DiscourseEmulator, hit, posted, results, topic

PLAN = FetchPlan("mug", 10)


@pytest.fixture
def upstream() -> Iterator[DiscourseEmulator]:
    """A forum on loopback."""
    with DiscourseEmulator() as server:
        yield server


@pytest.fixture
async def source(upstream: DiscourseEmulator) -> AsyncIterator[Source]:
    """The real source that asks it."""
    made = SOURCES["discourse"].build(upstream.settings())
    yield made
    await made.aclose()


@pytest.fixture
def second() -> Iterator[DiscourseEmulator]:
    """Another forum, with one topic."""
    with DiscourseEmulator(count=1) as server:
        yield server


@pytest.fixture
async def both(upstream: DiscourseEmulator, second: DiscourseEmulator) -> AsyncIterator[Source]:
    """The source that asks two forums."""
    other = second.server.url.replace("127.0.0.1", "localhost")
    forums = f" {upstream.server.url}/ ,{other},, {upstream.server.url}"
    made = SOURCES["discourse"].build(upstream.settings(DISCOURSE_FORUMS=forums))
    yield made
    await made.aclose()


async def found(upstream: DiscourseEmulator, source: Source, posts: Any, topics: Any) -> tuple[Item, ...]:
    """What these posts become."""
    upstream.fault = on("/search.json", Reply(body=results(posts, topics)))
    return (await source.fetch(PLAN)).items


async def read(upstream: DiscourseEmulator, source: Source, item: Item, *posts: Any) -> Item:
    """The item with that topic."""
    upstream.fault = on("/t/", Reply(body={"views": 70, "post_stream": {"posts": list(posts)}}))
    (full,) = (await source.comments((item,))).items
    return full


async def test_one_search_serves_the_refetch(upstream: DiscourseEmulator, source: Source) -> None:
    """The name is a phrase; fifty are on a page."""
    plan = FetchPlan("Ember mug lid", 10, name="Ember mug")
    await source.fetch(plan)
    await source.fetch(plan.widened(2))

    (search,) = upstream.searches
    assert search.query == {"q": '"Ember mug" lid', "page": "1"}
    assert search.headers["user-agent"].startswith("listenpost")


async def test_a_window_is_exact_in_the_end(upstream: DiscourseEmulator, source: Source) -> None:
    """The forum cuts by day, and what is left of that day before the window goes, too."""
    now = datetime.now(UTC)
    recent, old = (f"{now - timedelta(hours=hours):%Y-%m-%dT%H:%M:%S}.000Z" for hours in (1, 25))
    posts = [hit(1, created_at=recent), hit(2, created_at=old)]
    upstream.fault = on("/search", Reply(body=results(posts, [topic(1), topic(2)])))

    batch = await source.fetch(FetchPlan("mug", 10, "day"))

    (search,) = upstream.searches
    assert search.query["q"] == f"mug after:{now - timedelta(days=1):%Y-%m-%d}"
    assert [item.id for item in batch.items] == ["301"]


async def test_a_found_post_stands_for_its_topic(upstream: DiscourseEmulator, source: Source) -> None:
    """Title of the topic, the post's words and address, the forum in key and place."""
    (item,) = await found(upstream, source, [hit(1, post_number=7)], [topic(1)])

    assert item.key == "discourse:127.0.0.1:301"
    assert (item.title, item.body) == ("Mug & saucer 1", "It's warm")
    assert item.url == f"{upstream.server.url}/t/mug-saucer/301/7"
    assert item.engagement == {"likes": 4, "posts": 9}
    assert (item.place, item.thread) == ("127.0.0.1", "")
    assert item.author
    assert "potter" not in item.author


async def test_two_posts_of_a_topic_are_one_item(upstream: DiscourseEmulator, source: Source) -> None:
    """With the words of the better one."""
    posts = [hit(1, post_number=7, blurb="better"), hit(1, blurb="worse"), hit(2)]
    items = await found(upstream, source, posts, [topic(1), topic(2)])

    assert [(item.id, item.body) for item in items] == [("301", "better"), ("302", "It's warm")]


ODD: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"blurb": "", "like_count": None}, {"body": "", "engagement": {"likes": None, "posts": 9}}),
    ({"created_at": "1970-01-01T00:00:00.000Z"}, {"created_at": None}),
    ({"username": "discobot"}, {"unfit": BY_BOT}),
    ({"username": "system"}, {"unfit": BY_BOT}),
    ({"username": None}, {"author": None}),
    ({"hidden": True}, {"unfit": REMOVED}),
]


@pytest.mark.parametrize(("fields", "expected"), ODD)
async def test_odd_posts(upstream: DiscourseEmulator, source: Source, fields: Any, expected: Any) -> None:
    """Nulls, impossible times, the forum's own programs, what was hidden."""
    (item,) = await found(upstream, source, [hit(1, **fields)], [topic(1)])

    assert {name: getattr(item, name) for name in expected} == expected


async def test_topics_without_words_are_unfit(upstream: DiscourseEmulator, source: Source) -> None:
    """Neither a title nor a text that can be seen; and a slug may be missing."""
    (item,) = await found(upstream, source, [hit(1, blurb="")], [topic(1, title="\u200b", slug=None)])

    assert item.unfit == INVISIBLE
    assert item.url.endswith("/t/-/301/1")


async def test_an_old_forum_holds_the_topic_in_the_post(upstream: DiscourseEmulator, source: Source) -> None:
    """And null where it has no list; a post without topic, number or id is an empty slot."""
    nested = hit(1, topic={"id": 301, "title": "Old mug", "slug": "old", "posts_count": 2})
    posts = [nested, {**nested, "topic_id": None, "topic": {"id": 9, "title": "Other"}}, hit(3), 7,
             hit(1, post_number=None)]  # fmt: skip
    items = await found(upstream, source, posts, None)

    assert [(item.id, item.title) for item in items] == [("301", "Old mug")]


FAILURES: list[tuple[Reply, type[Exception]]] = [
    (Reply(body=results([], [], error="extremely high load")), Unreachable),
    (Reply(body=results([], [], error="Your search term is too short.")), NotAsked),
    (Reply(body=results([[]], [[]], error=[None])), Broken),
    (Reply(429, {"failed": "FAILED", "message": "too many times"}), RateLimited),
    (Reply(429, "<h1>slow down</h1>"), RateLimited),
    (Reply(503, "<h1>Service Unavailable</h1>"), RateLimited),
    (Reply(403, {"errors": ["log in"], "error_type": "not_logged_in"}), Refused),
    (Reply(403, "<h1>Forbidden</h1>"), Blocked),
    (Reply(body="<title>Just a moment</title>"), Blocked),
    (Reply(400, {"errors": ["invalid"], "error_type": "invalid_parameters"}), Broken),
    (Reply(404, "<h1>no forum</h1>"), Broken),
    (Reply(body={"topics": []}), Broken),
    (Reply(body={"posts": 7}), Broken),
]  # fmt: skip


@pytest.mark.parametrize(("answer", "expected"), FAILURES)
async def test_no_failure_looks_like_nothing_found(
    upstream: DiscourseEmulator, source: Source, answer: Reply, expected: type[SourceError]
) -> None:
    """Each of its own ways to fail is an outcome, never an empty page."""
    upstream.fault = on("/search", answer)

    with pytest.raises(expected):
        await source.fetch(PLAN)


async def test_null_sections_are_nothing_found(upstream: DiscourseEmulator, source: Source) -> None:
    """A forum without any result may say so with nulls."""
    assert await found(upstream, source, None, None) == ()


@pytest.mark.parametrize(
    ("answer", "seconds"),
    [
        (Reply(429, {"error_type": "rate_limit", "extras": {"wait_seconds": 7}}), 7),
        (Reply(503, "<h1>busy</h1>"), 60),
        (Reply(503, "<h1>busy</h1>", {"retry-after": "20"}), 20),
        (Reply(429, {"failed": "FAILED", "message": "too many times"}), None),
    ],
)
async def test_a_forum_that_has_enough_is_left_alone(
    upstream: DiscourseEmulator, source: Source, answer: Reply, seconds: int | None
) -> None:
    """For as long as it says, else for a minute; the next question is not sent to it."""
    upstream.fault = on("/search", answer)
    with pytest.raises(RateLimited) as caught:
        await source.fetch(PLAN)
    at = caught.value.retry_at
    upstream.fault = on("never", Reply())
    with pytest.raises(RateLimited, match="nothing sent"):
        await source.fetch(PLAN)

    assert (at is None) == (seconds is None)
    if at is not None and seconds is not None:
        assert abs((at - datetime.now(UTC)).total_seconds() - seconds) < 10
    assert len(upstream.searches) == 1


@pytest.mark.parametrize("query", ["HP", '"R1"', "a b"])
async def test_short_words_are_answered_in_words(upstream: DiscourseEmulator, source: Source, query: str) -> None:
    """No forum searches for them, so none is asked."""
    with pytest.raises(NotAsked, match=r"3 characters or more; ask with a longer name"):
        await source.fetch(FetchPlan(query, 5))

    assert upstream.searches == []


@pytest.mark.parametrize("query", ["小米", "HP ink"])
async def test_a_longer_word_is_enough(upstream: DiscourseEmulator, source: Source, query: str) -> None:
    """And scripts whose words are short have no shortest."""
    assert (await source.fetch(FetchPlan(query, 5))).items


async def test_forums_are_asked_apart(upstream: DiscourseEmulator, second: DiscourseEmulator, both: Source) -> None:
    """One request each, the best of each in turn; a second page of the one that has one."""
    batch = await both.fetch(PLAN)
    wider = await both.fetch(FetchPlan("mug", 60))

    assert [item.place for item in batch.items[:3]] == ["127.0.0.1", "localhost", "127.0.0.1"]
    assert batch.notes == ()
    assert len(wider.items) == 60
    assert [len(server.searches) for server in (upstream, second)] == [2, 1]
    local = next(item for item in batch.items if item.place == "localhost")
    assert (await both.comments((local,))).items[0].comments
    assert second.paths[-1] == "/t/300.json"


async def test_a_forum_that_fails_leaves_a_note(
    upstream: DiscourseEmulator, second: DiscourseEmulator, both: Source
) -> None:
    """The others answer; when none does, the first one's failure is the answer."""
    second.fault = on("/search", Reply(403, {"error_type": "not_logged_in"}))
    batch = await both.fetch(PLAN)
    probe = await both.probe()
    upstream.fault = on("/search", Reply(500, {}))

    assert batch.notes == ("localhost not searched: it answers members alone",)
    assert len(batch.items) == 10
    assert probe.outcome == "ok"
    assert probe.detail.startswith("searches a minute left to us: 127.0.0.1: 13 of 15; localhost")
    with pytest.raises(Unreachable):
        await both.fetch(FetchPlan("cup", 5))


async def test_topics_of_a_forum_that_refuses_cost_no_others(second: DiscourseEmulator, both: Source) -> None:
    """They keep what was found, with a note; those of the other forum are read."""
    refused, other = (await both.fetch(PLAN)).items[1:3]
    second.fault = on("/t/", Reply(429, {"extras": {"wait_seconds": 7}}))
    answer = await both.comments((refused, other))

    assert [bool(item.comments) for item in answer.items] == [False, True]
    assert answer.items[0].notes == ("comments not read: its limit is reached",)
    assert answer.notes == ("localhost: comments not read: its limit is reached",)


def test_each_forum_costs_a_search() -> None:
    """A bare host is a forum, too."""
    forums = "forum.example.com, https://forum.example.com/ ,http://127.0.0.1:8/talk"
    settings = SourceSettings.model_validate({"DISCOURSE_FORUMS": forums})

    assert SOURCES["discourse"].price(settings).searches == 2
    assert SOURCES["discourse"].build(settings)


async def test_a_forum_may_stand_below_a_path(upstream: DiscourseEmulator) -> None:
    """Which then is part of its name; on this machine it is all of it."""
    settings = upstream.settings(DISCOURSE_FORUMS=f"{upstream.server.url}/talk/")
    source = SOURCES["discourse"].build(settings)
    async with aclosing(source):
        (item, *_) = (await source.fetch(PLAN)).items

    assert item.key == "discourse:talk:300"
    assert item.place == "talk"
    assert upstream.paths == ["/talk/search.json"]


async def test_no_page_beyond_the_tenth(upstream: DiscourseEmulator, source: Source) -> None:
    """There is none, whatever the tenth says; pages are paced, so this one is asked by itself."""
    upstream.page = 1
    with request_counter() as calls:
        batch = await source.fetch(FetchPlan("mug", 60))

    assert calls.made == 10
    assert not batch.full


async def test_a_kept_topic_is_read_whole(upstream: DiscourseEmulator, source: Source) -> None:
    """The first post is its text, the found one stands first, the best liked follow."""
    (item,) = await found(upstream, source, [hit(1, post_number=3, like_count=4)], [topic(1)])
    full = await read(
        upstream, source, item,
        posted(1, "<p>Which mug?</p>", username="asker"),
        posted(2, "<p>none</p>"),
        posted(3, '<aside class="quote"><p>Which?</p></aside><p>It&#39;s warm, long</p>'),
        posted(4, "<p>closed</p>", post_type=3),
        posted(5, "<p>gone</p>", deleted_at="2026-10-01"),
        posted(6, "<p>flagged</p>", hidden=True),
        posted(7, "<p>liked</p>"),
        posted(8, '<p><img src="x"></p>'),
        posted(9, "<p>I am a program</p>", username="discobot"),
        {"uid": 1},
    )  # fmt: skip

    assert full.body == "Which mug?"
    assert full.url == f"{upstream.server.url}/t/mug-saucer/301/1"
    assert full.engagement == {"likes": 1, "posts": 9, "views": 70}
    assert full.author != item.author
    assert [(each.id, each.body) for each in full.comments] == [
        ("301/3", "It's warm, long"), ("301/7", "liked"), ("301/2", "none"),
    ]  # fmt: skip
    assert full.comments[0].engagement == {"likes": 3}
    assert full.comments[0].url == item.url


async def test_a_found_post_further_down_keeps_its_words(upstream: DiscourseEmulator, source: Source) -> None:
    """It is not among the first twenty; likes that nobody counted are unknown."""
    (item,) = await found(upstream, source, [hit(1, post_number=40)], [topic(1)])
    unknown = posted(2, "<p>none</p>", actions_summary=None)
    zero = posted(3, "<p>zero</p>", actions_summary=[])
    full = await read(upstream, source, item, posted(1, "<p>Which?</p>"), unknown, zero)

    assert [(each.id, each.body) for each in full.comments] == [
        ("301/40", "It's warm"), ("301/2", "none"), ("301/3", "zero"),
    ]  # fmt: skip
    likes = [each.engagement["likes"] for each in full.comments]
    assert likes == [4, None, 0]


async def test_a_found_post_that_was_hidden_since_is_not_shown(upstream: DiscourseEmulator, source: Source) -> None:
    """The topic that is read has the last word."""
    (item,) = await found(upstream, source, [hit(1, post_number=2)], [topic(1)])
    hidden = posted(2, "<p>It's warm</p>", hidden=True)
    full = await read(upstream, source, item, posted(1, "<p>Which?</p>"), hidden)

    assert (full.body, full.comments) == ("Which?", ())


async def test_without_its_first_post_a_topic_keeps_its_words(upstream: DiscourseEmulator, source: Source) -> None:
    """Which are then the ones that were found."""
    (item,) = await found(upstream, source, [hit(1)], [topic(1)])
    full = await read(upstream, source, item, posted(1, "<p>gone</p>", hidden=True), posted(2, "<p>Mine</p>"))

    assert (full.body, full.url) == (item.body, item.url)
    assert [each.body for each in full.comments] == ["Mine"]


TOPICS = [("topic_first6.json", 5, True), ("topic_2019.json", 2, True),
          ("topic_page2_2020.json", 1, False)]  # fmt: skip


@pytest.mark.skipif(not MORE.is_dir(), reason=NO_MORE)
@pytest.mark.parametrize(("file", "comments", "opened"), TOPICS)
async def test_recorded_topics(
    upstream: DiscourseEmulator, source: Source, file: str, comments: int, opened: bool
) -> None:
    """Their comments, each signed and dated; a later page does not hold the first post."""
    (item,) = await found(upstream, source, [hit(1)], [topic(1)])
    upstream.fault = on("/t/", Reply(body=(MORE / "discourse" / file).read_bytes()))

    (full,) = (await source.comments((item,))).items

    assert len(full.comments) == comments
    assert all(comment.author and comment.created_at for comment in full.comments)
    assert (full.body != item.body) is opened
