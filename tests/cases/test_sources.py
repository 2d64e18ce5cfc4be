"""What sites really send, from the wire to the answer, through real clients."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from api import bootstrap
from api.errors import SourceError
from api.interfaces.shared.markdown_report import fetch_markdown
from api.services import product
from api.services.product import Ask
from tests.cases.conftest import World
from tests.loopback import Asked, Reply
from tests.services.kit import plain
from tests.sources.amazon_site import product_page
from tests.sources.emulators import Emulator, answer, comment, listing, on, post, refusal, result

SOURCES = ["reddit", "youtube", "amazon"]
DENIED = "<html><body><h1>whoa there, pardner!</h1></body></html>"
CAPTCHA = "<html><title>Robot Check</title>Enter the characters you see below</html>"


def found(emulator: Emulator, *children: dict[str, Any]) -> None:
    """Let a search find exactly these."""
    body = listing(list(children)) if emulator.name == "reddit" else answer(list(children))
    emulator.fault = on(emulator.search_path, Reply(body=body))


def outcome(heard: product.SourceAnswer) -> str:
    """How asking ended."""
    return str(heard.gathered.outcome)


async def test_one_video_without_comments(world: World) -> None:
    """B40: three videos, comments for two, the reason on the third; another 403 stays loud."""
    world.youtube.count = 3
    world.youtube.fault = on(world.youtube.comments_of(1), refusal(403, "commentsDisabled"))

    heard = await world.fetch("youtube", limit=3)

    items = {item["key"]: item for item in plain(heard.fetched)["items"]}
    assert {key: bool(item["comments"]) for key, item in items.items()} == {
        "youtube:v0": True, "youtube:v1": False, "youtube:v2": True,
    }  # fmt: skip
    assert items["youtube:v1"]["notes"] == ["comments are turned off"]
    assert not heard.gathered.notes

    world.youtube.fault = on("/commentThreads", refusal(403, "accessNotConfigured"))
    loud = await world.fetch("youtube", limit=3)
    assert "comments could not be read (access refused)" in loud.text


async def test_a_spent_quota_is_neither_a_bad_key_nor_an_empty_shelf(world: World) -> None:
    """B41: the outcome is `quota_exhausted`, with the midnight in California when it is over."""
    world.youtube.fault = on("/search", refusal(403, "quotaExceeded"))

    heard = await world.fetch("youtube")

    assert outcome(heard) == "quota_exhausted"
    assert re.search(r"daily quota exhausted, resets 0[78]:00 UTC", heard.text)
    at = heard.gathered.retry_at
    assert at is not None
    assert timedelta(0) < at - datetime.now(UTC) <= timedelta(hours=25)


async def test_entities_in_titles_are_decoded_once(world: World) -> None:
    """B42: before the gate, in the data and in what is exported."""
    found(world.youtube, result(1, title="Rubik&#39;s &amp; Co"), result(2, title="a &amp;lt; b"))
    world.youtube.fault = both(world.youtube.fault, on("/videos", Reply(500, {})))

    heard = await world.fetch("youtube")

    titles = {item["title"] for item in plain(heard.fetched)["items"]}
    assert titles == {"Rubik's & Co", "a &lt; b"}
    assert world.mind.judged[0][0].startswith("Rubik's &amp; Co")  # the fence's own escape
    assert r"Rubik's \& Co" in fetch_markdown(heard.fetched, False)


async def test_escaped_markup_is_text(world: World) -> None:
    """B43: Reddit's `&gt;` is `>` in the body, and no page runs what it hides."""
    found(world.reddit, post(1, selftext="a &gt; b &lt;img src=x onerror=run()&gt;"))

    heard = await world.fetch("reddit")

    (item,) = plain(heard.fetched)["items"]
    assert item["body"] == "a > b <img src=x onerror=run()>"
    assert "<img" not in heard.text


async def test_nobody_is_quoted_who_deleted(world: World) -> None:
    """B44: deleted posts and comments are not there, and an author who left has no name."""
    found(
        world.reddit,
        post(1, title="Mug", author="[deleted]"),
        post(2, title="[deleted by user]", selftext="[removed]"),
        post(3, title="Cup", author=None, selftext="[removed]"),
    )
    thread = [
        comment(1, body="[deleted]"), comment(2, body="[removed]"),
        comment(3, author=None, body="Stays warm"),
    ]  # fmt: skip
    world.reddit.fault = both(world.reddit.fault, on("/comments/", Reply(body=[listing([]), listing(thread)])))

    heard = await world.fetch("reddit")

    items = {item["title"]: item for item in plain(heard.fetched)["items"]}
    assert {title: item["body"] for title, item in items.items()} == {"Mug": "Body 1", "Cup": ""}
    assert [said["body"] for said in items["Mug"]["comments"]] == ["Stays warm"]
    assert all(one.item.author is None for one in heard.gathered.kept)
    assert not re.search(r"u/|deleted|removed", heard.text)


async def test_one_link_in_three_places_counts_once(world: World) -> None:
    """B46: a crosspost is not judged, a copy is merged, and all places are listed."""
    link = {"title": "A mug that stays warm all day", "is_self": False,
            "url": "https://example.org/mug-review", "selftext": ""}  # fmt: skip
    found(
        world.reddit,
        post(1, subreddit="mugs", **link),
        post(2, subreddit="coffee", crosspost_parent="t3_p1", **link),
        post(3, subreddit="tea", **link),
    )

    report = await world.analyze("mug", sources=("reddit",))

    assert len(world.mind.judged[0]) == 2
    (item,) = report["items"]
    assert sorted(item["places"]) == ["r/coffee", "r/mugs", "r/tea"]
    assert report["total_scored"] == report["figures"]["sentiment"]["n"] == 1


async def test_a_rate_limit_says_until_when(world: World) -> None:
    """B48: with `x-ratelimit-reset: 42` alone, one request and a time 42 seconds ahead."""
    world.reddit.fault = on("/search", Reply(429, {}, {"x-ratelimit-reset": "42"}))
    before = datetime.now(UTC)

    heard = await world.fetch("reddit")

    assert outcome(heard) == "rate_limited"
    assert len(world.reddit.searches) == 1
    at = heard.gathered.retry_at
    assert at is not None
    assert timedelta(seconds=41) < at - before < timedelta(seconds=60)


async def test_a_block_page_is_not_silence(world: World) -> None:
    """B50: blocked in the answer, in the report's coverage and in the health check."""
    world.reddit.fault = on("/search", Reply(403, DENIED))

    report = await world.analyze("mug")

    assert report["sources"]["reddit"]["outcome"] == "blocked"
    assert "Reddit could not be asked: blocked" in report["coverage"]
    assert "2 of 3 sources could be asked" in str(report["quality_notes"])
    source = world.built.sources["reddit"]
    assert not isinstance(source, SourceError)
    assert (await source.probe()).outcome == "blocked"


async def test_json_with_the_same_status_is_a_refusal(world: World) -> None:
    """B50: 403 with JSON is about the key."""
    world.reddit.fault = on("/search", Reply(403, {"message": "Forbidden", "error": 403}))

    assert outcome(await world.fetch("reddit")) == "refused"


async def test_what_is_off_says_how_to_enable_it(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """B51: with YouTube alone configured it answers, and the others name their variables."""
    for name in ("REDDIT_CLIENT_ID", "REDDIT_CLIENT_SECRET", "AMAZON_PROVIDER"):
        monkeypatch.delenv(name)
    built = bootstrap.build(bootstrap.load_settings())

    report = plain(await product.analyze(built, Ask("mug")))
    await built.aclose()

    assert {name: one["outcome"] for name, one in report["sources"].items()} == {
        "reddit": "not_configured", "youtube": "ok", "amazon": "not_configured",
    }  # fmt: skip
    assert "`REDDIT_CLIENT_ID`" in report["sources"]["reddit"]["reason"]
    assert "`AMAZON_PROVIDER`" in report["sources"]["amazon"]["reason"]


async def test_without_any_key_there_is_sample_data() -> None:
    """B51: an empty environment starts, answers from the bundled data and says so."""
    built = bootstrap.build(bootstrap.load_settings())

    heard = await product.fetch(built, "reddit", Ask("plaud.ai", "quick"))
    await built.aclose()

    assert outcome(heard) == "ok"
    assert plain(heard.fetched)["sample"] is True
    assert "made-up sample data" in heard.text


async def test_a_captcha_is_no_product(world: World) -> None:
    """B52: a 200 with a puzzle is blocked, holds no item, and is not remembered."""
    world.amazon.fault = on("/s", Reply(200, CAPTCHA), times=1)

    blocked, open_again = await world.fetch("amazon"), await world.fetch("amazon")

    assert (outcome(blocked), plain(blocked.fetched)["items"]) == ("blocked", [])
    assert (outcome(open_again), open_again.gathered.fetched) == ("ok", 4)


async def test_reviews_behind_a_sign_in(world: World) -> None:
    """B53: the product stays, without reviews and with the cause."""
    world.amazon.fault = on("/dp/B0TEST0001", Reply(body=product_page()))

    heard = await world.fetch("amazon")

    items = {one.item.id: one.item for one in heard.gathered.kept}
    assert len(items) == 4
    assert items["B0TEST0001"].comments == ()
    assert items["B0TEST0001"].notes == ("reviews need a sign-in",)
    assert len(items["B0TEST0000"].comments) == 3


@pytest.mark.parametrize("source", ["reddit", "youtube"])
async def test_a_phrase_that_finds_nothing_is_asked_as_words(world: World, source: str) -> None:
    """B55: exact first, then once unquoted, and both are told."""
    emulator = world.emulator(source)
    empty = listing([]) if source == "reddit" else answer([])
    emulator.fault = on('"plaud note pro"', Reply(body=empty))

    heard = await world.fetch(source, '"plaud note pro"')

    asked = [request.query["q"] for request in emulator.searches]
    assert asked == ['"plaud note pro"', "plaud note pro"]
    assert "nothing for the exact phrase; asked once more without quotes: 4 found" in heard.text


@pytest.mark.parametrize("query", ['McDonald\'s "best" {x} \\n', "café ☕ 小米"])
@pytest.mark.parametrize("source", SOURCES)
async def test_any_words_reach_the_source(world: World, source: str, query: str) -> None:
    """B56, B57: quotes, braces and other scripts are encoded and find what there is."""
    heard = await world.fetch(source, query)

    (first, *_) = world.emulator(source).searches
    asked = first.query["k" if source == "amazon" else "q"]
    words = ["McDonald's", "best", "x"] if "McDonald" in query else ["café", "小米"]
    assert all(word in asked for word in words)
    assert (outcome(heard), heard.gathered.fetched) == ("ok", 4)


async def test_broken_characters_on_the_wire(world: World) -> None:
    """B58: a lone surrogate in JSON and an emoji at the cut are text that encodes."""
    family = "\N{MAN}\N{ZERO WIDTH JOINER}\N{WOMAN}\N{ZERO WIDTH JOINER}\N{GIRL}"
    found(world.reddit, post(1, title="cut \ud83d", selftext="b" * 198 + family + "tail"))

    heard = await world.fetch("reddit")

    (item,) = plain(heard.fetched)["items"]
    assert item["title"].encode() == "cut \ufffd".encode()
    assert world.mind.judged == [["cut \ufffd | " + "b" * 198 + " | place: r/mugs"]]


@pytest.mark.parametrize("query", ["小米", "HP", "X", "plaud.ai", "اپل"])
async def test_short_and_foreign_names_are_searched(world: World, query: str) -> None:
    """B60: they reach the source as they are."""
    assert outcome(await world.fetch("reddit", query)) == "ok"
    assert world.reddit.searches[0].query["q"] == query


async def test_operators_do_not_leave(world: World) -> None:
    """B62: what Reddit would obey is taken out; operators alone are refused with guidance."""
    await world.fetch("reddit", "acme site:evil.example author:me created:>2020")
    clarified = await world.analyze("site:evil.example author:me")

    assert [asked.query["q"] for asked in world.reddit.searches] == ["acme"]
    assert clarified["decision"] == "clarify"
    assert "operators" in clarified["explanation_text"]


@pytest.fixture
def tokyo(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine on another clock."""
    with monkeypatch.context() as there:
        there.setenv("TZ", "Asia/Tokyo")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("tokyo")
async def test_a_day_is_24_hours_everywhere(world: World) -> None:
    """B65: 20 minutes old is in, 25 hours is out, and times are UTC on a machine in Tokyo."""
    now = time.time()
    found(world.reddit, post(1, created_utc=now - 1_200), post(2, created_utc=now - 90_000))

    heard = await world.fetch("reddit", since="day")

    (item,) = plain(heard.fetched)["items"]
    assert item["key"] == "reddit:t3_p1"
    assert item["created_at"] == f"{datetime.fromtimestamp(now - 1_200, UTC):%Y-%m-%dT%H:%M:%SZ}"


async def test_old_news_comes_last_and_no_date_is_no_age(world: World) -> None:
    """B66: today, undated, ten months old; and the figures tell the undated apart."""
    now = time.time()
    dates = {"Ancient": now - 300 * 86_400, "Undated": None, "Today": now - 60}
    found(
        world.reddit,
        *(
            post(title, title=f"{title} mug {title * 3}", created_utc=at, score=1, author=title,
                 subreddit=title)
            for title, at in dates.items()
        ),
    )  # fmt: skip

    report = await world.analyze("mug", sources=("reddit",))

    assert [item["title"].split()[0] for item in report["items"]] == ["Today", "Undated", "Ancient"]
    assert report["figures"]["timeline"]["undated"] == 1


async def test_unknown_votes_are_not_zero(world: World) -> None:
    """B67: an item without votes is kept, sorted and shown without a number."""
    found(
        world.reddit,
        post(1, title="One of them", score=None), post(2, title="Another thing", score=7),
    )  # fmt: skip

    heard = await world.fetch("reddit")

    votes = {item["key"]: item["engagement"]["votes"] for item in plain(heard.fetched)["items"]}
    assert votes == {"reddit:t3_p1": None, "reddit:t3_p2": 7}
    shown = [line for line in heard.text.splitlines() if re.match(r"E\d+: ", line)]
    assert sum("votes" in line for line in shown) == 1
    assert "0 votes" not in heard.text


async def test_one_failing_thread_is_a_detail(world: World) -> None:
    """B105: one of four threads answers 500; the source is ok and says so."""
    world.reddit.fault = on(world.reddit.comments_of(2), Reply(500, {}))

    heard = await world.fetch("reddit")

    assert (outcome(heard), len(plain(heard.fetched)["items"])) == ("ok", 4)
    assert "comments: 1 of 4 failed (unreachable)" in heard.text


def both(*faults: Any) -> Any:
    """The first of these that has something to say."""

    def fault(asked: Asked) -> Reply | None:
        return next((reply for one in faults if (reply := one(asked)) is not None), None)

    return fault
