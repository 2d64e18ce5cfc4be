"""Lemmy: both versions, what is sent, what posts and comments become, its failures, recordings."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any

import pytest

from api.core.context import request_counter
from api.core.domain import BY_BOT, REMOVED, FetchPlan
from api.core.items import Item
from api.core.ports import Source
from api.errors import Blocked, Broken, RateLimited, Refused, SourceError, TimedOut, Unreachable
from api.sources import SOURCES
from api.sources.lemmy import COARSE, NEWEST, UNKNOWN, version_of
from tests.loopback import HANG, Asked, Reply
from tests.replay import MORE, NO_MORE
from tests.sources.emulators import on
from tests.sources.json_emulators import Lemmy1Emulator, LemmyEmulator, remark, talk

PLAN = FetchPlan("mug", 10)
WALL = "<!doctype html><title>Making sure you're not a bot!</title>"


@pytest.fixture
def upstream() -> Iterator[LemmyEmulator]:
    """A server of 0.19 on loopback."""
    with LemmyEmulator() as server:
        yield server


@pytest.fixture
def modern() -> Iterator[Lemmy1Emulator]:
    """A server of 1.0 on loopback."""
    with Lemmy1Emulator() as server:
        yield server


@pytest.fixture
async def source(upstream: LemmyEmulator) -> AsyncIterator[Source]:
    """The real source that asks the first."""
    made = SOURCES["lemmy"].build(upstream.settings())
    yield made
    await made.aclose()


async def found(upstream: LemmyEmulator, source: Source, **rows: Any) -> tuple[Item, ...]:
    """What these posts and comments become."""
    upstream.fault = on("/search", Reply(body={"posts": [], "comments": []} | rows))
    return (await source.fetch(PLAN)).items


def of_search(kind: str, answer: Reply) -> Any:
    """That answer to the searches of one kind."""
    return on(f"'type_': '{kind}'", answer)


async def test_two_searches_serve_the_refetch(upstream: LemmyEmulator, source: Source) -> None:
    """The name alone, posts and comments at once, fifty of each; the version is asked once."""
    plan = FetchPlan("battery of the Ember mug", 10, name="Ember mug")
    with request_counter() as calls:
        await source.fetch(plan)
        batch = await source.fetch(plan.widened(2))
        await source.fetch(FetchPlan("Ember mug lid", 10, name="Ember mug"))

    assert calls.made == 3
    assert upstream.server.asked[0].path == "/nodeinfo/2.1"
    posts, comments = sorted(
        (asked.query for asked in upstream.server.asked[1:]),
        key=lambda query: query["type_"] != "Posts",
    )
    assert posts == {
        "q": "Ember mug", "type_": "Posts", "listing_type": "All", "sort": "TopAll", "limit": "50",
        "page": "1",
    }  # fmt: skip
    assert comments == {**posts, "type_": "Comments"}
    assert [bool(item.thread) for item in batch.items[:4]] == [False, True, False, True]
    assert batch.notes == ()


async def test_quotes_are_no_operators(upstream: LemmyEmulator, source: Source) -> None:
    """There a quote is a sign that a text would have to hold."""
    await source.fetch(FetchPlan('"Ember mug"', 10))

    assert upstream.searches[0].query["q"] == "Ember mug"


@pytest.mark.parametrize(
    ("window", "order", "notes"),
    [
        ("day", "TopDay", (NEWEST,)),
        ("week", "TopWeek", (NEWEST,)),
        ("month", "TopMonth", (COARSE.format(window="month"), NEWEST)),
        ("year", "TopYear", (COARSE.format(window="year"), NEWEST)),
        ("all", "TopAll", ()),
    ],
)
async def test_windows_of_0_19_are_steps(
    upstream: LemmyEmulator, source: Source, window: Any, order: str, notes: tuple[str, ...]
) -> None:
    """Posts by its own step, comments the newest; what is coarser is said."""
    batch = await source.fetch(FetchPlan("mug", 10, window))

    orders = {asked.query["type_"]: asked.query["sort"] for asked in upstream.server.asked if "search" in asked.path}
    assert orders == {"Posts": order, "Comments": "TopAll" if window == "all" else "New"}
    assert batch.notes == notes


async def test_windows_of_1_0_are_exact(modern: Lemmy1Emulator) -> None:
    """In seconds, for both kinds; cursors lead on, and there is no order to ask for."""
    source = SOURCES["lemmy"].build(modern.settings())
    async with aclosing(source):
        week = await source.fetch(FetchPlan("mug", 10, "week"))
        await source.fetch(FetchPlan("mug", 150))

    first, opened, followed = modern.searches
    assert abs(int(first.query["time_range_seconds"]) - 7 * 86_400) < 600
    assert first.query.keys() == {"search_term", "type_", "limit", "time_range_seconds"}
    assert "page_cursor" not in opened.query
    assert followed.query["page_cursor"] == "P50"
    assert week.notes == ()


async def test_1_0_has_counts_and_dates_inside(modern: Lemmy1Emulator) -> None:
    """`published_at`, `score` and `ap_id` in the post; its list may have another name."""
    entry = talk(1, published_at="2026-10-01T00:00:00Z", score=5, comments=2) | {"counts": None}
    entry["creator"] = {"ap_id": "https://lemmy.example/u/potter", "name": "potter"}
    modern.fault = of_search("posts", Reply(body={"search": [entry], "next_page": "P50"}))
    source = SOURCES["lemmy"].build(modern.settings())
    async with aclosing(source):
        (item, *_) = (await source.fetch(PLAN)).items

    assert item.created_at == datetime(2026, 10, 1, tzinfo=UTC)
    assert item.engagement == {"score": 5, "comments": 2}
    assert item.author


VERSIONS: list[tuple[Reply, Reply, str, str]] = [
    (Reply(body={"software": {"name": "lemmy", "version": "1.0.0-beta.1"}}), Reply(404), "v4", ""),
    (Reply(404), Reply(body={"version": "0.18.5"}), "v3", ""),
    (Reply(body="<html>app</html>"), Reply(body={"version": "1.0.2"}), "v4", ""),
    (Reply(body={"software": {"name": "piefed", "version": "1.2"}}), Reply(404), "v3", UNKNOWN),
    (Reply(body={"software": 7}), Reply(body=[1]), "v3", UNKNOWN),
    (Reply(403, {}), Reply(body={"version": "2.0"}), "v3", UNKNOWN),
]


@pytest.mark.parametrize(("node", "site", "api", "note"), VERSIONS)
async def test_the_version_decides(upstream: LemmyEmulator, node: Reply, site: Reply, api: str, note: str) -> None:
    """From one of two addresses; a server that says nothing known is 0.19, with a note."""

    def fault(asked: Asked) -> Reply | None:
        replies = {"/nodeinfo/2.1": node, "/api/v3/site": site}
        return replies.get(asked.path) or (Reply(body={"items": []}) if "v4" in asked.path else None)

    upstream.fault = fault
    source = SOURCES["lemmy"].build(upstream.settings())
    async with aclosing(source):
        batch = await source.fetch(PLAN)
        probe = await source.probe()

    assert {asked.path for asked in upstream.server.asked if "search" in asked.path} == {f"/api/{api}/search"}
    assert batch.notes == ((note,) if note else ())
    assert probe.outcome == "ok"
    assert probe.detail.endswith(note or "of 60 searches in 10 min left to us")


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Reply(500, {}), Unreachable),
        (Reply(429, {}), RateLimited),
        (Reply(403, WALL), Blocked),
        (Reply(body=WALL), Blocked),
        (HANG, TimedOut),
    ],
)
async def test_a_version_that_could_not_be_asked_is_asked_again(
    upstream: LemmyEmulator, answer: Reply, expected: type[SourceError]
) -> None:
    """A failure is no version; the next question asks for it once more."""
    source = SOURCES["lemmy"].build(upstream.settings(source_timeout=0.5 if answer is HANG else 30))
    async with aclosing(source):
        upstream.fault = lambda asked: answer
        with pytest.raises(expected):
            await source.fetch(PLAN)
        upstream.fault = on("never", Reply())

        assert (await source.fetch(PLAN)).items


async def test_a_version_is_remembered_for_a_time(upstream: LemmyEmulator, source: Source) -> None:
    """One that nobody knows for minutes, any other for a day: what runs there may be updated."""
    unknown = Reply(body={"software": {"name": "lemmy", "version": "2.0"}})
    upstream.fault = on("nodeinfo", unknown)
    spoken, began = version_of(upstream.server.url), time.monotonic()

    assert (await source.fetch(PLAN)).notes == (UNKNOWN,)
    assert 600 <= spoken.until - began < 3_600
    upstream.fault = on("never", Reply())
    assert (await source.fetch(FetchPlan("teapot", 10))).notes == (UNKNOWN,)
    spoken.until = 0
    assert (await source.fetch(FetchPlan("kettle", 10))).notes == ()
    assert spoken.until - began >= 86_400
    asked = [each.path for each in upstream.server.asked if "nodeinfo" in each.path]
    assert len(asked) == 2


async def test_a_comment_is_an_item_of_its_thread(upstream: LemmyEmulator, source: Source) -> None:
    """Title of the post, words and address of the comment, the post's address as its thread."""
    (item,) = await found(upstream, source, comments=[remark(501, "It *leaks* ![x](https://x/y)")])

    assert item.key == "lemmy:https://lemmy.example/comment/501"
    assert (item.title, item.body) == ("Mug 180", "It *leaks*")
    assert item.url == "https://lemmy.example/comment/501"
    assert item.thread == "lemmy:https://lemmy.example/post/180"
    assert item.engagement == {"score": 3}
    assert item.place == "mugs@lemmy.example"
    assert item.author
    assert "kiln" not in item.author


ODD: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"body": None, "url": "https://example.org/mug"}, {"body": "", "link": "https://example.org/mug"}),
    ({"url": "javascript:alert(1)"}, {"link": ""}),
    ({"published": "1970-01-01T00:00:00Z"}, {"created_at": None}),
    ({"removed": True}, {"unfit": REMOVED}),
    ({"deleted": True}, {"unfit": REMOVED}),
    ({"name": "[deleted]", "body": ""}, {"unfit": REMOVED}),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "expected"), ODD)
async def test_odd_posts(upstream: LemmyEmulator, source: Source, fields: Any, expected: Any) -> None:
    """Links without text, impossible times and addresses, removed ones."""
    (item,) = await found(upstream, source, posts=[talk(1, **fields)])

    assert {name: getattr(item, name) for name in expected} == expected


async def test_a_bot_is_listed_and_never_judged(upstream: LemmyEmulator, source: Source) -> None:
    """By what the account says of itself; without name or address there is no author or place."""
    entry = talk(1) | {"creator": {"bot_account": True}, "community": {"name": "deals"}}
    (item,) = await found(upstream, source, posts=[entry])

    assert (item.unfit, item.author, item.place) == (BY_BOT, None, "deals")


async def test_what_lacks_our_fields_is_an_empty_slot(upstream: LemmyEmulator, source: Source) -> None:
    """It counts as an entry, and the others are read."""
    strange = [talk(1, ap_id="x"), talk(2, name=None), talk(3, id="x"), 7, talk(4)]

    assert [item.id for item in await found(upstream, source, posts=strange)] == ["4"]


FAILURES: list[tuple[Reply, type[SourceError]]] = [
    (Reply(400, {"error": "rate_limit_error"}), RateLimited),
    (Reply(400, {"error": "instance_is_private"}), Refused),
    (Reply(400, {"error": "couldnt_get_posts"}), Broken),
    (Reply(403, {"message": "Invalid User-Agent"}), Refused),
    (Reply(403, "<title>Just a moment</title>", {"cf-mitigated": "challenge"}), Blocked),
    (Reply(body=WALL), Blocked),
    (Reply(429, {"error": "too_many_requests"}), RateLimited),
    (Reply(body={"type_": "Posts"}), Broken),
    (Reply(body={"posts": None, "comments": None}), Broken),
]


@pytest.mark.parametrize(("answer", "expected"), FAILURES)
async def test_no_failure_looks_like_nothing_found(
    upstream: LemmyEmulator, source: Source, answer: Reply, expected: type[SourceError]
) -> None:
    """Each of its own ways to fail is an outcome, never an empty page."""
    upstream.fault = on("/search", answer)

    with pytest.raises(SourceError) as caught:
        await source.fetch(PLAN)

    assert type(caught.value) is expected


@pytest.mark.parametrize(("kind", "others"), [("Posts", True), ("Comments", False)])
async def test_one_kind_that_fails_leaves_a_note(
    upstream: LemmyEmulator, source: Source, kind: str, others: bool
) -> None:
    """The other kind is the answer, and goes on to its next page."""
    upstream.fault = of_search(kind, Reply(500, {}))
    batch = await source.fetch(FetchPlan("mug", 60))

    assert {bool(item.thread) for item in batch.items} == {others}
    assert len(batch.items) == 60
    assert batch.notes == (f"{kind.lower()} not searched: HTTP 500",)


async def test_nothing_beside_a_failure_is_a_failure(upstream: LemmyEmulator, source: Source) -> None:
    """No comment was found, and posts could not be searched: that is not nothing found."""
    upstream.fault = of_search("Posts", Reply(400, {"error": "rate_limit_error"}))

    with pytest.raises(RateLimited):
        await source.fetch(FetchPlan("nothing", 10))


async def test_an_answer_without_end_ends(modern: Lemmy1Emulator) -> None:
    """A cursor that leads nowhere is not followed."""
    modern.fault = on("/search", Reply(body={"items": [talk(1)], "next_page": "P9"}))
    source = SOURCES["lemmy"].build(modern.settings())
    async with aclosing(source):
        batch = await source.fetch(FetchPlan("mug", 200))

    assert not batch.full
    assert len(modern.searches) == 2


@pytest.mark.parametrize("version", [LemmyEmulator, Lemmy1Emulator])
async def test_comments_of_a_post_and_of_a_comment(version: type[LemmyEmulator]) -> None:
    """By the id of either; bots, removed and wordless ones and the item itself are left out."""
    spoken = [
        remark(500, "The item itself"),
        remark(901, "I own *two*"),
        remark(902, "gone", removed=True),
        remark(903, "![gif](https://example.org/x.gif)"),
        remark(904, "beep") | {"creator": {"name": "helper", "bot_account": True}},
        {"comment": {"uid": 1}},
    ]
    with version() as upstream:
        source = SOURCES["lemmy"].build(upstream.settings())
        async with aclosing(source):
            items = (await source.fetch(FetchPlan("mug", 2))).items
            upstream.fault = on("/comment/list", Reply(body={"comments": spoken}))
            post, comment = (await source.comments(items)).items

        asked = [asked.query for asked in upstream.server.asked if "comment/list" in asked.path]
        assert {query.get("post_id") for query in asked} == {"180", None}
        assert {query.get("parent_id") for query in asked} == {"500", None}
        assert [each.body for each in post.comments] == ["The item itself", "I own *two*"]
        assert [each.body for each in comment.comments] == ["I own *two*"]
        assert comment.comments[0].url == "https://lemmy.example/comment/901"
        assert comment.comments[0].engagement == {"score": 3}


@pytest.mark.skipif(not MORE.is_dir(), reason=NO_MORE)
async def test_recorded_comments(upstream: LemmyEmulator, source: Source) -> None:
    """One comment, signed and dated."""
    items = await found(upstream, source, posts=[talk(180)])
    body = (MORE / "lemmy" / "comment_list_v3_2026.json").read_bytes()
    upstream.fault = on("/comment/list", Reply(body=body))

    (full,) = (await source.comments(items)).items

    (comment,) = full.comments
    assert comment.body == "Great track, thanks for sharing!"
    assert comment.author
    assert comment.created_at
    assert comment.engagement == {"score": 3}
