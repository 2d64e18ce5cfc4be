"""Steam: which game, what is asked, what reviews become, false ends, failures, recordings."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from api.core.context import request_counter
from api.core.domain import INVISIBLE, FetchPlan, Verdict
from api.core.items import Assessed, Item
from api.core.own_words import own_words
from api.core.ports import Source
from api.errors import Blocked, Broken, RateLimited, Refused, SourceError, Unreachable
from api.pipeline.evidence.figures import sentiment_of
from api.sources import SOURCES
from api.sources.markup import MAX_LENGTH, words_of_bbcode
from api.sources.steam import Game, review_of
from tests.loopback import Asked, Reply
from tests.replay import NO_STREAMS, STREAMS
from tests.sources.emulators import on
from tests.sources.json_emulators import SteamEmulator, game, review, reviewed

PLAN = FetchPlan("mug", 10)
GAME = Game(620, "Mug")


@pytest.fixture
def upstream() -> Iterator[SteamEmulator]:
    """Steam on loopback."""
    with SteamEmulator() as server:
        yield server


@pytest.fixture
async def source(upstream: SteamEmulator) -> AsyncIterator[Source]:
    """The real source that asks it."""
    made = SOURCES["steam"].build(upstream.settings())
    yield made
    await made.aclose()


def shop(*names: str) -> Any:
    """A shop that has games of these names alone."""
    items = [game(600 + number, name) for number, name in enumerate(names)]
    return on("storesearch", Reply(body={"total": len(items), "items": items}))


async def test_every_parameter_is_sent(upstream: SteamEmulator, source: Source) -> None:
    """The name alone to the shop; then languages, purchases and off-topic reviews, which defaults would hide."""
    with request_counter() as calls:
        batch = await source.fetch(FetchPlan("battery of the Mug", 10, name="Mug"))

    assert calls.made == 2
    assert upstream.named[0].query == {"term": "Mug", "l": "english", "cc": "us"}
    assert upstream.searches[0].query == {
        "appid": "620", "filter": "0", "day_range": "365", "languages[0]": "all", "purchase_type": "1",
        "review_type": "0", "filter_offtopic_activity": "false", "num_per_page": "100", "cursor": "*",
    }  # fmt: skip
    assert batch.notes == (
        "reviews of Mug (app 620), the most helpful of 365 days, in all languages, off-topic ones included",
    )


async def test_a_window_is_two_dates_and_the_order_of_time(upstream: SteamEmulator, source: Source) -> None:
    """One date without the other is ignored there, and the most helpful ones know no dates."""
    batch = await source.fetch(FetchPlan("mug", 10, "week"))

    query = upstream.searches[0].query
    start, end = (datetime.fromtimestamp(int(query[f"date_range_{name}"]), UTC) for name in ("start", "end"))
    assert query["filter"] == "1"
    assert "day_range" not in query
    assert abs(datetime.now(UTC) - timedelta(days=7) - start) < timedelta(minutes=10)
    assert end > datetime.now(UTC)
    assert "the newest first" in batch.notes[0]


@pytest.mark.parametrize(
    ("asked", "names", "chosen"),
    [
        ("hades", ["Hades II", "HADES™", "Hades Soundtrack"], 601),
        ("baldurs gate 3", ["Baldur's Gate 3"], 600),
        ("half life 2", ["Half-Life", "Half-Life 2"], 601),
        ("mug", ["Mug", "mug"], 600),
    ],
)
async def test_the_exact_name_is_the_game(
    upstream: SteamEmulator, source: Source, asked: str, names: list[str], chosen: int
) -> None:
    """Whatever the shop puts first; marks, case and punctuation are no part of a name."""
    upstream.fault = shop(*names)

    assert (await source.fetch(FetchPlan(asked, 5))).items
    assert upstream.searches[0].query["appid"] == str(chosen)


async def test_two_games_of_one_name_are_said(upstream: SteamEmulator, source: Source) -> None:
    """The first is taken, and the answer says so."""
    upstream.fault = shop("Mug", "MUG")

    assert "Steam has 2 games called mug; the reviews are of app 600" in (await source.fetch(PLAN)).notes


@pytest.mark.parametrize(
    ("names", "note"),
    [
        ([], "Steam has no game called mug"),
        (
            ["Mug II", "Mug \x1b[31mSimulator\n" + "x" * 200],
            "Steam has no game called exactly mug; it has Mug II, Mug Simulator " + "x" * 66
            + ": ask for one of them by its whole name",
        ),
    ],
)  # fmt: skip
async def test_no_game_is_guessed(upstream: SteamEmulator, source: Source, names: list[str], note: str) -> None:
    """What is called otherwise is named, cleaned and shortened; no review is asked for."""
    upstream.fault = shop(*names)

    batch = await source.fetch(PLAN)

    assert (batch.items, batch.full, batch.notes) == ((), False, (note,))
    assert upstream.searches == []


async def read(upstream: SteamEmulator, source: Source, *rows: Any) -> tuple[Item, ...]:
    """What these reviews become."""
    upstream.fault = on("GetAppReviews", Reply(body=reviewed(list(rows))))
    return (await source.fetch(PLAN)).items


async def test_a_review_is_an_item_of_its_game(upstream: SteamEmulator, source: Source) -> None:
    """The title is ours, votes and hours are measures, and the developer's answer is its comment."""
    items = await read(upstream, source, review(7, "[h1]Warm[/h1]It [b]stays[/b] warm"))
    (item,) = (await source.comments(items)).items

    assert (item.key, item.title, item.body) == ("steam:620:200007", "mug (voted up)", "Warm\nIt stays warm")
    assert (item.place, item.thread) == ("mug", "steam:620")
    assert [own_words(text) for text in item.texts] == ["Warm\nIt stays warm", ""]
    assert item.url == "https://steamcommunity.com/profiles/76561190000000007/recommended/620/"
    assert item.engagement == {"helpful": 5, "hours": 1.5, "comments": 1, "recommended": 1}
    assert item.created_at == datetime(2026, 9, 21, 14, 13, 20, tzinfo=UTC)
    assert item.author
    assert "7656" not in item.author
    (comment,) = item.comments
    assert (comment.id, comment.body) == ("200007/developer", "> Thank you")
    assert comment.author != item.author


async def test_a_thumb_is_a_tone(upstream: SteamEmulator, source: Source) -> None:
    """Without a grade the vote of a review says how it sounds."""
    items = await read(upstream, source, review(1), review(2), review(3, voted_up=False))

    tones = sentiment_of([Assessed(item, Verdict(True)) for item in items])

    assert (tones.n, tones.positive, tones.negative) == (3, 2, 1)


ODD: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"review": ""}, {"unfit": INVISIBLE}),
    ({"review": "[img]https://example.org/x.png[/img]"}, {"unfit": INVISIBLE}),
    ({"timestamp_created": 0}, {"created_at": None}),
    ({"votes_up": 4_294_967_295}, {"engagement": {"helpful": None, "hours": 1.5, "comments": 1, "recommended": 1}}),
    ({"recommendationid": 5}, {"id": "5"}),
    ({"weighted_vote_score": "0.53", "author": {"steamid": "76561"}}, {"url": "https://steamcommunity.com/profiles/76561/recommended/620/"}),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "expected"), ODD)
def test_odd_reviews(fields: dict[str, Any], expected: dict[str, Any]) -> None:
    """Votes without words, numbers from below zero, numbers as text."""
    item = review_of(review(1, **fields), GAME)

    assert item is not None
    assert {name: getattr(item, name) for name in expected} == expected


@pytest.mark.parametrize(
    "fields", [{"author": None}, {"voted_up": "yes"}, {"review": None}, {"recommendationid": "../x"}]
)
def test_what_lacks_our_fields_is_no_item(fields: dict[str, Any]) -> None:
    """Also an id that is no number, which would end up in an address."""
    assert review_of(review(1) | fields, GAME) is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[b]Ten[/b] [10/10] [Deleted scene]", "Ten [10/10] [Deleted scene]"),
        ("[quote=ann]It is bad[/quote]It is not", "It is not"),
        ("[quote]a[quote]b[/quote]c[/quote]d", "d"),
        ("[list][*]one[*]two[/list]", "one\ntwo"),
        ("[url=https://example.org/x]my map[/url]", "my map"),
        ("☐ Boring\n☑ Fun", "☑ Fun"),
        ("[table][tr][td]a[/td][/tr][/table]", "a"),
        (7, ""),
    ],
)
def test_bbcode_becomes_words(text: object, words: str) -> None:
    """Tags go, words in brackets stay, and what is quoted or not ticked is nobody's."""
    assert words_of_bbcode(text) == words


def test_bbcode_is_read_in_linear_time() -> None:
    """Ten thousand parts that are never closed are one pass."""
    assert words_of_bbcode("[quote]" * MAX_LENGTH) == ""


def pages(*answers: dict[str, Any]) -> Any:
    """These answers to reviews one after the other, then the last again and again."""
    left = list(answers)

    def fault(asked: Asked) -> Reply | None:
        if "GetAppReviews" not in asked.path:
            return None
        return Reply(body=left.pop(0) if len(left) > 1 else left[0])

    return fault


def end(matching: int) -> dict[str, Any]:
    """An answer without reviews."""
    summary = {"num_reviews": 0}
    return {"response": {"query_summary": summary, "cursor": "*", "total_matching": matching}}


async def test_a_false_end_is_doubted(upstream: SteamEmulator, source: Source) -> None:
    """No reviews while more are promised: the same page is asked for again, and brings them."""
    upstream.fault = pages(end(1), end(1), reviewed([review(1)]))

    batch = await source.fetch(PLAN)

    assert len(batch.items) == 1
    assert [asked.query["cursor"] for asked in upstream.searches] == ["*"] * 3


async def test_a_true_end_is_believed(upstream: SteamEmulator, source: Source) -> None:
    """After two doubts; what Steam counted but did not list is said."""
    rows = [review(number) for number in range(100)]
    upstream.fault = pages(reviewed(rows, "A+/=", 160), end(160))

    batch = await source.fetch(FetchPlan("mug", 150))

    assert [asked.query["cursor"] for asked in upstream.searches] == ["*", *["A+/="] * 3]
    assert (len(batch.items), batch.full) == (100, False)
    assert batch.notes[1:] == ("Steam listed 100 of 160 reviews that match and then no more",)


@pytest.mark.parametrize(("answer", "requests"), [(end(0), 2), ({"response": {}}, 2), (end(41), 3)])
async def test_nothing_needs_a_second_answer(
    upstream: SteamEmulator, source: Source, answer: dict[str, Any], requests: int
) -> None:
    """A game without reviews is an empty answer that was asked for twice."""
    upstream.fault = pages(answer)

    batch = await source.fetch(PLAN)

    assert (batch.items, batch.full, len(upstream.searches)) == ((), False, requests)
    assert batch.notes


async def test_a_repeated_cursor_ends(upstream: SteamEmulator, source: Source) -> None:
    """The order by helpfulness repeats one at its end; nothing comes twice."""
    rows = [review(number) for number in range(100)]
    upstream.fault = pages(reviewed(rows, "A=", 900), reviewed(rows, "A=", 900))

    batch = await source.fetch(FetchPlan("mug", 500))

    assert (len(batch.items), len(upstream.searches), batch.full) == (100, 2, False)


FAILURES: list[tuple[str, Reply, type[SourceError]]] = [
    ("GetAppReviews", Reply(429, b"", {"retry-after": "60"}), RateLimited),
    ("GetAppReviews", Reply(302, b"", {"location": "https://store.steampowered.example/"}), Broken),
    ("GetAppReviews", Reply(200, "<!DOCTYPE html><title>Steam</title>"), Blocked),
    ("GetAppReviews", Reply(403, {}), Refused),
    ("GetAppReviews", Reply(body={"success": 1, "reviews": [review(1)]}), Broken),
    ("GetAppReviews", Reply(body={"response": {"reviews": [review(1)]}}), Broken),
    ("GetAppReviews", Reply(body={"response": {"query_summary": {}, "reviews": {}}}), Broken),
    ("storesearch", Reply(429, b""), RateLimited),
    ("storesearch", Reply(500, {}), Unreachable),
    ("storesearch", Reply(body={"total": 1}), Broken),
    ("storesearch", Reply(body={"items": [{"uid": 1}]}), Broken),
]


@pytest.mark.parametrize(("part", "answer", "expected"), FAILURES)
async def test_no_failure_looks_like_nothing_found(
    upstream: SteamEmulator, source: Source, part: str, answer: Reply, expected: type[SourceError]
) -> None:
    """Each of its own ways to fail is an outcome; also the old interface's answer, which falls back."""
    upstream.fault = on(part, answer)

    with pytest.raises(SourceError) as caught:
        await source.fetch(PLAN)

    assert type(caught.value) is expected


RECORDED: dict[str, tuple[str, int | type[SourceError]]] = {
    "new_page1_built.json": ("GetAppReviews", 2),
    "new_page2_built.json": ("GetAppReviews", 3),
    "new_documented_example.json": ("GetAppReviews", 1),
    "new_end_built.json": ("GetAppReviews", 0),
    "new_summary_only_built.json": ("GetAppReviews", 0),
    "new_unknown_app.json": ("GetAppReviews", 0),
    "old_appreviews.json": ("GetAppReviews", Broken),
    "old_appreviews_deck_2025.json": ("GetAppReviews", Broken),
    "old_endpoint_redirect.txt": ("GetAppReviews", Broken),
    "error_429.txt": ("GetAppReviews", RateLimited),
    "storesearch_empty.json": ("storesearch", 0),
    "storesearch.json": ("storesearch", 10),
}


@pytest.mark.skipif(not STREAMS.is_dir(), reason=NO_STREAMS)
@pytest.mark.parametrize("file", RECORDED)
async def test_recorded_answers(upstream: SteamEmulator, file: str) -> None:
    """Outcome and items of each; the reviews are dated, signed and voted."""
    part, expected = RECORDED[file]
    meta = json.loads((STREAMS / "steam" / "index.json").read_text("utf-8"))[file]
    content = (STREAMS / "steam" / file).read_bytes()
    kind = {"content-type": "application/json"} if file.endswith(".json") else {}
    upstream.fault = on(part, Reply(meta["status"], content, kind | meta.get("headers", {})))
    source = SOURCES["steam"].build(upstream.settings())
    async with aclosing(source):
        if isinstance(expected, int):
            items = (await source.fetch(FetchPlan("portal", expected or 5))).items
            assert len(items) == expected
            assert all(item.author and item.created_at and item.body and not item.unfit for item in items)
        else:
            with pytest.raises(expected):
                await source.fetch(PLAN)


@pytest.mark.skipif(not STREAMS.is_dir(), reason=NO_STREAMS)
def test_every_recording_is_read() -> None:
    """One that is in no table is a gap."""
    assert {path.name for path in (STREAMS / "steam").iterdir()} - {"index.json"} == set(RECORDED)
