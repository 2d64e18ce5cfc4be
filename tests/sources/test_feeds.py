"""Feeds: what is read of them, when they are asked, whom an address may lead to, and who shares what was read."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from subprocess import PIPE

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from api.core.domain import FetchPlan
from api.errors import (
    Blocked,
    Broken,
    NotConfigured,
    QuotaExhausted,
    RateLimited,
    Refused,
    SourceError,
    Unreachable,
    UsageError,
)
from api.features.watches.followed_feeds import MAX_ENTRIES, FollowedFeed, follow_feed, listed_feeds, unfollow_feed
from api.settings import SourceSettings
from api.settings.value_types import feed_address, feeds_in
from api.sources import SOURCES
from api.sources.feed_parsing import document_of
from api.sources.feeds import (
    TEASER,
    UNDATED,
    Ended,
    FeedReader,
    FeedsSource,
    NoFeed,
    NoneFollowed,
    error_of,
    fresh_for,
    merged,
    parsed,
)
from api.sources.web_client import Download, NotPublic
from api.store import SqlStore, open_store
from tests.forked import CODE, Forked
from tests.loopback import Asked, Loopback, Reply
from tests.replay import DATA
from tests.sources.emulators import on
from tests.sources.feed_emulator import RSS, START, FeedsEmulator, entry, rss

RECORDED = DATA / "upstream-streams" / "feeds"
PLAN = FetchPlan("mug", 5)


@pytest.fixture
def site() -> Iterator[FeedsEmulator]:
    """A feed of twelve mugs."""
    with FeedsEmulator(12) as server:
        yield server


@pytest.fixture
async def store(store_url: str) -> AsyncIterator[SqlStore]:
    """The database of two tenants."""
    opened = await open_store(store_url)
    yield opened
    await opened.aclose()


# What a document holds.

PLACES = {
    "discourse_category_2026.xml": (5, 5), "jsonfeed_2026.json": (3, 3), "utf16_declared_utf8_2026.xml": (2, 2),
    "youtube_channel_2026.xml": (3, 3), "bom_crlf_2026.xml": (2, 2), "undated_items_2026.xml": (6, 3),
    "rdf_iso8859_2026.xml": (4, 4), "relative_links_2026.xml": (13, 13), "comments_feed_2026.xml": (4, 4),
    "localhost_links_2026.xml": (2, 2), "leading_newline_2026.xml": (4, 4), "mastodon_tag_2023.xml": (4, 4),
    "googlenews_search_2023.xml": (2, 2), "lemmy_community_2023.xml": (2, 2), "stackoverflow_tag_2023.xml": (2, 2),
    "medium_tag_2023.xml": (2, 2), "stackexchange_question.xml": (2, 2), "synthetic_utf16_encoded.xml": (1, 1),
    "synthetic_json_feed_sample.json": (2, 2), "lobsters_broken_2025.xml": (2, 2), "github_releases_2025.xml": (2, 2),
    "form_empty_channel.xml": (0, 0), "form_truncated.xml": (1, 1), "form_entity_bomb.xml": (1, 0),
}  # fmt: skip
"""Recordings with their entries, and how many of these have a time."""
FAILURES: dict[str, type[SourceError]] = {
    "namespaced_broken_2026.xml": NoFeed, "synthetic_malformed_rss_namespaced.xml": NoFeed,
    "form_410.txt": Ended, "form_429.txt": RateLimited, "form_botwall_200.html": Blocked,
    "form_botwall_403.html": Blocked, "form_youtube_404.html": NoFeed, "form_304.txt": NoFeed,
    "form_301.txt": Broken, "form_html_200.html": NotPublic,
}  # fmt: skip
"""Recordings that hold no entries; the page announces a feed on its own server and one elsewhere."""
recorded = pytest.mark.skipif(not RECORDED.is_dir(), reason=f"no recordings in {RECORDED}; set LISTENPOST_TEST_DATA")


def recording(name: str) -> Reply:
    """The recorded answer; a redirect leads away."""
    facts = json.loads((RECORDED / "index.json").read_text("utf-8"))[name]
    return Reply(facts["status"], (RECORDED / name).read_bytes(), facts.get("headers", {}))


@recorded
def test_every_recording_is_read() -> None:
    """None is left out of the two tables."""
    assert {*PLACES, *FAILURES} == set(json.loads((RECORDED / "index.json").read_text("utf-8")))


@recorded
@pytest.mark.parametrize("name", PLACES)
async def test_a_recording_gives_its_entries(site: FeedsEmulator, name: str) -> None:
    """Each with its words, an address of the web or none, and a time only where its feed says one."""
    count, dated = PLACES[name]
    site.fault = on("/feed.xml", recording(name))
    reader = site.reader()
    (address,) = feeds_in(site.settings().feeds)

    ((state, error),) = (await reader.refreshed([address])).values()
    entries = (await reader.entries([address]))[address]
    await reader.aclose()

    assert (error, state.outcome, state.entries) == (None, "ok", count)
    assert len({item.key for item in entries}) == len(entries) == count
    assert sum(item.created_at is not None for item in entries) == dated
    assert all(item.created_at or UNDATED in item.notes for item in entries)
    for item in entries:
        assert item.title or item.body
        assert "</" not in item.title
        assert item.url == "" or item.url.startswith("http")
    assert bool(state.notes) == (name == "form_truncated.xml")


@recorded
@pytest.mark.parametrize("name", FAILURES)
async def test_a_recorded_failure_is_told_apart(site: FeedsEmulator, name: str) -> None:
    """Gone, walled off, too often, moved in a ring and no feed are different outcomes."""
    site.fault = on("/feed.xml", recording(name))
    if name == "form_301.txt":
        site.fault = on("/feed.xml", Reply(301, b"", {"location": "/feed.xml"}))
    if name == "form_html_200.html":
        site.fault = lambda asked: replace(
            recording(name), body=recording(name).body.replace(b"/latest.rss", b"http://localhost:1/x")
        )
    source = site.build()

    with pytest.raises(FAILURES[name]):
        await source.fetch(PLAN)
    await source.aclose()


@recorded
def test_recorded_details() -> None:
    """The discussion is the post and its link beside it; teasers say so; entities are not expanded."""

    def read(name: str) -> list[dict[str, str]]:
        found = document_of((RECORDED / name).read_bytes(), "application/xml", "https://site.example/feed")
        assert found is not None
        return list(found["entries"])

    lobsters, lemmy, medium, bomb = map(
        read, ("lobsters_broken_2025.xml", "lemmy_community_2023.xml", "medium_tag_2023.xml", "form_entity_bomb.xml")
    )
    assert lobsters[0]["url"].startswith("https://lobste.rs/s/np4prk")
    assert lobsters[0]["link"].startswith("https://site-1.example/")
    assert lobsters[0]["body"] == ""
    assert lemmy[0]["url"] == "https://lemmy.world/post/9036399"
    assert all(item["teaser"] for item in medium)
    assert "0123456789" not in bomb[0]["title"]


@settings(max_examples=60, deadline=None)
@given(
    st.one_of(
        st.binary(max_size=400),
        st.lists(
            st.sampled_from(
                "<rss>|<item>|</item>|<title>|<![CDATA[|]]>|&x;|&#0;|<feed xmlns='http://www.w3.org/2005/Atom'>|<entry>"
                '|<link href=\'javascript:x\'/>|<updated>|9999-99-99|\x00|\ud83d|{"version": |, "items": [|]}'
                '|"https://jsonfeed.org/version/1"|{"id": 1e400}'.split("|")
            ),
            max_size=12,
        ).map(lambda parts: "".join(parts).encode("utf-8", "surrogatepass")),
    )
)
def test_any_document_is_read_or_is_none(body: bytes) -> None:
    """Whatever stands there, the reader gives entries with addresses of the web, or says that it is no feed."""
    found = document_of(body, "text/xml", "https://site.example/feed")

    for item in found["entries"] if found else ():
        assert item["url"] == "" or item["url"].startswith("http")
    assert len(merged([], found["entries"], "https://site.example/feed", START) if found else []) <= MAX_ENTRIES


async def test_a_document_that_takes_too_long_is_given_up(site: FeedsEmulator) -> None:
    """An author of 300,000 letters, over which the library's pattern takes minutes, ends with the limit."""
    site.fault = on("/feed.xml", Reply(200, rss(entry("Mug", author="a" * 300_000)), RSS))
    source = FeedsSource(site.reader(parsing_seconds=1), feeds_in(site.settings().feeds))

    with pytest.raises(NoFeed, match="too long to read"):
        await source.fetch(PLAN)
    await source.aclose()


def test_one_entry_stays_one() -> None:
    """By its guid or by its link; a guid that stands twice tells nothing, and of two with one link the guids decide."""

    def read(*fields: tuple[str, str, str]) -> list[dict[str, object]]:
        common: dict[str, object] = {"body": "", "link": "", "author": "", "at": None, "teaser": False}
        return [{"title": title, "guid": guid, "url": url} | common for title, guid, url in fields]

    def keys(held: list[str], *fields: tuple[str, str, str]) -> list[str]:
        first = merged([], read(*before), "https://a.example/feed", START) if held else []
        return [item.key for item in merged(first, read(*fields), "https://a.example/feed", START)]

    before = ("One", "g1", "https://a.example/1"), ("Two", "g2", "https://a.example/2")
    one, two = keys([], *before)

    assert keys(["x"], ("One, edited", "g1", "https://a.example/1?utm_source=rss"), before[1]) == [one, two]
    assert keys(["x"], ("One", "rotated", "http://www.a.example/1/"), before[1]) == [one, two]
    assert keys(["x"], ("New", "g3", "https://a.example/2"), before[1]) == [keys([], ("New", "g3", ""))[0], two]
    twice = keys([], ("A", "same", "https://a.example/a"), ("B", "same", "https://a.example/b"))
    assert len(set(twice)) == 2
    assert len(keys([], before[0], before[0])) == 1
    assert keys([], ("No guid", "", "")) != keys([], ("Other", "", ""))


def test_times_are_never_invented() -> None:
    """A guid or nonsense is none, the near future is now, and the far one is no time."""
    times = {
        "4711": None, "27/11/2026": None, "": None,
        "Sun, 29 Nov 2026 20:00:00 GMT": START, "Fri, 31 Dec 2032 00:00:00 GMT": None,
        "Sat, 28 Nov 2026 10:00:00 +0200": datetime(2026, 11, 28, 8, tzinfo=UTC),
    }  # fmt: skip
    for written, expected in times.items():
        found = document_of(rss(entry("Mug", "", guid="20240506", pubDate=written)), "", "https://a.example/feed")
        assert found is not None
        (item,) = merged([], found["entries"], "https://a.example/feed", START)
        assert item.created_at == expected, written


async def test_the_body_is_the_longest_text(site: FeedsEmulator) -> None:
    """Without tags, scripts and a second escaping; what ends in dots is a teaser."""
    html = "<p>It keeps <b>warm</b>.</p><script>x()</script>"
    escaped = html.replace("<", "&amp;lt;").replace(">", "&amp;gt;")
    site.body = rss(
        entry("Mug one", description=f"<![CDATA[{html}]]>"),
        entry("Mug two", description=escaped),
        entry("Mug three", description="It keeps […]"),
    )
    source = site.build()

    items = {item.title: item for item in (await source.fetch(PLAN)).items}
    await source.aclose()

    assert items["Mug one"].body == "It keeps warm."
    assert items["Mug two"].body == "It keeps warm."
    assert TEASER in items["Mug three"].notes
    assert TEASER not in items["Mug one"].notes


def test_a_link_to_the_publishers_own_machine_is_none() -> None:
    """It would lead the reader to the reader's own; the entry keeps its identity."""
    found = document_of(rss(entry("Mug", "http://localhost:4000/mug")), "", "https://a.example/feed")
    assert found is not None
    (item,) = merged([], found["entries"], "https://a.example/feed", START)

    assert (item.url, bool(item.same_link)) == ("", True)


# When a feed is asked.


async def test_it_is_asked_once_an_hour_and_conditionally(site: FeedsEmulator) -> None:
    """Within the hour nothing is sent; then with what it gave before, and 304 keeps what there was."""
    tags = {**RSS, "etag": '"v1"', "last-modified": "Sat, 28 Nov 2026 08:00:00 GMT"}
    site.fault = lambda asked: Reply(304) if "if-none-match" in asked.headers else Reply(200, site.body, tags)
    source = site.build()

    assert len((await source.fetch(PLAN)).items) == 5
    site.now += timedelta(minutes=59)
    await source.fetch(FetchPlan("mug 3", 5))
    assert len(site.server.asked) == 1
    site.later()
    assert len((await source.fetch(PLAN)).items) == 5
    await source.aclose()

    assert len(site.server.asked) == 2
    assert site.server.asked[1].headers["if-none-match"] == '"v1"'
    assert site.server.asked[1].headers["if-modified-since"] == tags["last-modified"]


@pytest.mark.parametrize(
    ("headers", "hours"),
    [
        ({}, 1),
        ({"cache-control": "public, max-age=7200"}, 2),
        ({"cache-control": "max-age=60"}, 1),
        ({"cache-control": "max-age=99999999"}, 24),
        ({"expires": format_datetime(START + timedelta(hours=3), usegmt=True)}, 3),
        ({"expires": "0"}, 1),
        ({"cache-control": "no-cache", "expires": "-1"}, 1),
    ],
)
async def test_an_answer_may_hold_longer(site: FeedsEmulator, headers: dict[str, str], hours: int) -> None:
    """Never shorter than an hour, and a day at most."""
    site.fault = on("/feed.xml", Reply(200, site.body, RSS | headers))
    reader = site.reader()
    (address,) = feeds_in(site.settings().feeds)

    ((state, _),) = (await reader.refreshed([address])).values()
    await reader.aclose()

    assert state.next_at is not None
    assert abs(state.next_at - START - timedelta(hours=hours)) < timedelta(seconds=2)


async def test_a_site_that_gave_no_answer_is_asked_again_soon(site: FeedsEmulator) -> None:
    """Nothing was taken from it, so that its rules of an hour do not count."""
    reader = site.reader(site.settings(FEEDS="http://127.0.0.1:9/feed"))

    ((state, error),) = (await reader.refreshed(["http://127.0.0.1:9/feed"])).values()
    await reader.aclose()

    assert isinstance(error, Unreachable)
    assert error.detail == "no connection (it was refused)"
    assert state.next_at == START + timedelta(minutes=5)


def test_freshness_of_nonsense_is_none() -> None:
    """Whatever the headers hold."""
    for headers in (
        {"expires": "soon"},
        {"cache-control": "max-age=x"},
        {"expires": "Fri, 31 Dec 9999 23:59:59 -2359"},
    ):
        assert fresh_for(headers, START) >= timedelta() or headers


async def test_a_day_of_waiting_is_kept(site: FeedsEmulator) -> None:
    """429 with `Retry-After` of a day: nothing is sent before, and whoever asks gets the same answer with the time."""
    site.fault = on("/feed.xml", Reply(429, b"slow", {"retry-after": "86400"}), times=1)
    site.now = datetime.now(UTC)
    source = site.build()

    for _ in range(2):
        with pytest.raises(RateLimited) as caught:
            await source.fetch(PLAN)
        site.later()
    assert len(site.server.asked) == 1
    assert caught.value.retry_at is not None
    site.now += timedelta(days=1)
    assert (await source.fetch(PLAN)).items
    await source.aclose()


async def test_what_has_ended_is_not_asked_again(site: FeedsEmulator) -> None:
    """410 is for good; what was read before is still there, with a note."""
    source = site.build()
    await source.fetch(PLAN)
    site.later()
    site.fault = on("/feed.xml", Reply(410, b"Gone"))
    for _ in range(3):
        batch = await source.fetch(PLAN)
        site.now += timedelta(days=3)
    await source.aclose()

    assert len(site.server.asked) == 2
    assert len(batch.items) == 5
    assert "the feed has ended" in batch.notes[0]


async def test_a_move_for_good_is_remembered(site: FeedsEmulator) -> None:
    """301 is asked once, 302 each time; validators go to the address that gave them alone."""

    def moving(asked: Asked) -> Reply:
        if asked.path == "/feed.xml":
            return Reply(301, b"", {"location": "/b"})
        if asked.path == "/b":
            return Reply(302, b"", {"location": "/c"})
        return Reply(200, site.body, RSS | {"etag": '"c"'})

    site.fault = moving
    source = site.build()
    await source.fetch(PLAN)
    site.later()
    await source.fetch(PLAN)
    await source.aclose()

    assert site.paths == ["/feed.xml", "/b", "/c", "/b", "/c"]
    assert [asked.headers.get("if-none-match") for asked in site.server.asked] == [None, None, None, None, '"c"']


async def test_an_entry_that_left_its_feed_stays(site: FeedsEmulator) -> None:
    """A feed is a window; what it held is found as before, and an edited text replaces the old one."""
    source = site.build()
    await source.fetch(PLAN)
    site.later()
    site.body = rss(entry("Mug 3 is warm now", "https://mugs.example/3"), entry("Mug new", "https://mugs.example/new"))

    titles = {item.title for item in (await source.fetch(FetchPlan("mug", 50))).items}
    await source.aclose()

    assert {"Mug 3 is warm now", "Mug new", "Mug 11"} <= titles
    assert "Mug 3" not in titles
    assert len(titles) == 13


async def test_an_empty_feed_is_an_answer(site: FeedsEmulator) -> None:
    """A channel without items was read, and held nothing."""
    site.body = rss()
    source = site.build()

    batch = await source.fetch(PLAN)
    await source.aclose()

    assert (batch.items, batch.full, batch.notes) == ((), False, ())


async def test_one_feed_that_fails_leaves_a_note(site: FeedsEmulator) -> None:
    """The others are the answer."""
    site.fault = on("/other", Reply(503, b"down"))
    source = site.build(FEEDS=f"{site.server.url}/feed.xml,{site.server.url}/other")

    batch = await source.fetch(PLAN)
    probe = await source.probe()
    await source.aclose()

    assert len(batch.items) == 5
    assert batch.notes == ("127.0.0.1 not read now: HTTP 503",)
    assert (probe.outcome, probe.detail) == ("ok", "1 feed read, 1 not: HTTP 503")


async def test_without_a_feed_nothing_is_asked() -> None:
    """The answer says how to follow one."""
    source = SOURCES["feeds"].build(SourceSettings.model_validate({}))

    with pytest.raises(NoneFollowed, match="listenpost feeds add") as caught:
        await source.fetch(PLAN)
    assert isinstance(caught.value, NotConfigured)
    assert (await source.probe()).outcome == "not_configured"


async def test_a_name_is_found_in_its_spellings(site: FeedsEmulator) -> None:
    """The name decides; the other words, and the time, order what is left."""
    site.body = rss(
        entry("PlaudAI keeps my meetings", pubDate="Sat, 21 Nov 2026 08:00:00 GMT"),
        entry("My recorder: plaud.ai and its battery", pubDate="Sat, 14 Nov 2026 08:00:00 GMT"),
        entry("A battery of tests"),
    )
    source = site.build()

    batch = await source.fetch(replace(PLAN, query="plaud.ai battery", name="plaud.ai"))
    old = await source.fetch(replace(PLAN, query="plaud.ai", name="plaud.ai", window="day"))
    await source.aclose()

    assert [item.title for item in batch.items] == [
        "My recorder: plaud.ai and its battery", "PlaudAI keeps my meetings",
    ]  # fmt: skip
    assert (old.items, old.full) == ((), False)


# Whom an address may lead to.


@pytest.mark.parametrize(
    "address",
    [
        "http://127.0.0.1:{port}/x", "http://localhost:{port}/x", "http://2130706433:{port}/x",
        "http://127.1:{port}/x", "http://[::ffff:127.0.0.1]:{port}/x", "http://0.0.0.0:{port}/x",
    ],
)  # fmt: skip
async def test_a_followed_feed_is_on_the_internet(site: FeedsEmulator, store: SqlStore, address: str) -> None:
    """Whoever has a key cannot make this server ask one in its own network."""
    reader = FeedReader(SourceSettings.model_validate({}), store)
    port = site.server.url.rpartition(":")[2]

    with pytest.raises(UsageError, match="not followed"):
        await follow_feed(store, reader, "a", address.format(port=port))
    await reader.aclose()

    assert site.server.asked == []
    assert await store.followed("a") == []


async def test_no_redirect_and_no_page_leads_into_this_network(site: FeedsEmulator) -> None:
    """Not even from a server that the settings name."""
    with Loopback(lambda asked: Reply(200, site.body, RSS)) as other:
        page = f'<link rel="alternate" type="application/rss+xml" href="{other.url}/feed">'.encode()
        for reply in (Reply(301, b"", {"location": f"{other.url}/x"}), Reply(200, page, {"content-type": "text/html"})):
            site.fault = on("/feed.xml", reply)
            source = site.build()
            with pytest.raises(NotPublic):
                await source.fetch(PLAN)
            await source.aclose()

    assert other.asked == []


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("forum.example/latest.rss", "https://forum.example/latest.rss"),
        ("HTTPS://Forum.Example/A?b=C#d", "https://forum.example/A?b=C"),
        ("https://user:word@forum.example/x", ""), ("ftp://forum.example/x", ""), ("file:///etc/passwd", ""),
        ("https://forum.example:99999/", ""), ("https://forum.example/" + "a" * 1_000, ""), ("https://a b/", ""),
        ("", ""),
    ],
)  # fmt: skip
def test_an_address_is_one_of_the_web(written: str, kept: str) -> None:
    """Without a user, a fragment or blanks, and not too long."""
    assert feed_address(written) == kept


def test_the_setting_takes_fifty_addresses() -> None:
    """What is none is refused at start, naming the variable."""
    assert feeds_in(" a.example/x, https://a.example/x,") == ("https://a.example/x",)
    for wrong in ("ftp://a.example", ",", ",".join(f"a{n}.example" for n in range(51))):
        with pytest.raises(ValueError, match="FEEDS"):
            SourceSettings.model_validate({"FEEDS": wrong})


# Who shares what was read.


async def test_tenants_share_one_request(site: FeedsEmulator, store: SqlStore) -> None:
    """A second tenant follows without one, sees its own list alone, and not since when others follow."""
    (address,) = feeds_in(site.settings().feeds)
    first, second = site.reader(memory=store), site.reader(memory=store)

    found = await follow_feed(store, first, "a", address, "Mugs")
    again = await follow_feed(store, second, "b", address)
    listed = await listed_feeds(store, "b", ())
    batch = await FeedsSource(second, [address]).fetch(PLAN)
    with pytest.raises(UsageError):
        await follow_feed(store, first, "a", "nonsense")
    removed = await unfollow_feed(store, "a", "Mugs")
    await first.aclose()
    await second.aclose()

    assert len(site.server.asked) == 1
    assert (found.state.entries, again.state.title, len(batch.items)) == (12, "Mugs", 5)
    assert found.newest == datetime(2026, 11, 28, 8, tzinfo=UTC)
    assert listed[0].state.read_at == listed[0].feed.since
    assert removed.address == address
    assert [len(await store.followed(tenant)) for tenant in ("a", "b")] == [0, 1]


async def test_a_page_is_followed_to_its_feed(site: FeedsEmulator, store: SqlStore) -> None:
    """Which stands in the list by its own address and is not asked a second time."""
    page = b'<html><head><link rel="alternate" type="application/atom+xml" href="feed.xml"></head></html>'
    site.fault = on("/blog/'", Reply())
    site.fault = lambda asked: Reply(200, page, {"content-type": "text/html"}) if asked.path == "/" else None
    reader = site.reader(memory=store)

    found = await follow_feed(store, reader, "a", f"{site.server.url}/")
    batch = await FeedsSource(reader, [found.feed.address]).fetch(PLAN)
    await reader.aclose()

    assert found.feed.address == f"{site.server.url}/feed.xml"
    assert site.paths == ["/", "/feed.xml"]
    assert len(batch.items) == 5


async def test_what_cannot_be_read_is_not_followed(site: FeedsEmulator, store: SqlStore) -> None:
    """The answer says why, and when it is asked again."""
    site.fault = on("/feed.xml", Reply(403, b"<title>Just a moment...</title>"))
    reader = site.reader(memory=store)

    with pytest.raises(UsageError, match=r"lets no programs in .*not asked again before 2026-11-29 13:00Z"):
        await follow_feed(store, reader, "a", f"{site.server.url}/feed.xml")
    await reader.aclose()

    assert await store.followed("a") == []


async def test_another_process_waits_for_the_first_answer(site: FeedsEmulator, store: SqlStore) -> None:
    """Two that ask at once send one request, and both have its entries; a failure is everybody's, too."""
    readers = [site.reader(memory=store) for _ in range(2)]
    (address,) = feeds_in(site.settings().feeds)

    batches = await asyncio.gather(*(FeedsSource(reader, [address]).fetch(PLAN) for reader in readers))
    site.later()
    site.fault = on("/feed.xml", Reply(401, b"no"))
    states = await asyncio.gather(*(reader.refreshed([address]) for reader in readers))
    for reader in readers:
        await reader.aclose()

    assert len(site.server.asked) == 2
    assert batches[0].items == batches[1].items
    assert len(batches[0].items) == 5
    assert {state[address][0].outcome for state in states} <= {"refused", "ok"}


async def test_two_programs_ask_once(site: FeedsEmulator, tmp_path: Path) -> None:
    """Processes of their own on one database: one request, the same entries."""
    program = f"""
import asyncio
from api.core.domain import FetchPlan
from api.settings import SourceSettings
from api.sources import SOURCES
from api.store import open_store
async def main():
    store = await open_store("sqlite:///{tmp_path}/shared.db")
    source = SOURCES["feeds"].build(SourceSettings.model_validate({{"FEEDS": "{site.server.url}/feed.xml"}}), store)
    print(len((await source.fetch(FetchPlan("mug", 50))).items))
    await source.aclose()
    await store.aclose()
asyncio.run(main())
"""
    both = [Forked[bytes]([CODE, program], stdout=PIPE) for _ in range(2)]
    answers = [(await asyncio.to_thread(process.communicate))[0] for process in both]

    assert answers == [b"12\n", b"12\n"]
    assert len(site.server.asked) == 1


async def test_a_question_that_is_given_up_lets_the_next_ask(site: FeedsEmulator, store: SqlStore) -> None:
    """A cancelled request is no answer; the feed is free at once."""
    site.fault = on("/feed.xml", replace(Reply(), manner="hang"))
    reader = site.reader(memory=store)
    source = FeedsSource(reader, feeds_in(site.settings().feeds))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await source.fetch(PLAN)
    site.fault = on("never", Reply())

    assert len((await source.fetch(PLAN)).items) == 5
    await reader.aclose()


async def test_what_is_kept_of_a_feed_is_bounded(site: FeedsEmulator, store: SqlStore) -> None:
    """The newest thousand, each for ninety days after it has left; a feed that nobody reads is forgotten with them."""
    (address,) = feeds_in(site.settings().feeds)
    reader = site.reader(memory=store)
    for part in range(2):
        site.body = rss(*(entry(f"Mug {part} {n}", f"https://mugs.example/{part}/{n}") for n in range(700)))
        await reader.refreshed([address])
        site.later()
    kept = (await store.feed_entries([address], 5_000))[address]
    assert len(kept) == MAX_ENTRIES
    assert sum(item.title.startswith("Mug 1") for item in kept) == 700

    site.now += timedelta(days=91)
    site.body = rss(entry("Mug alone", "https://mugs.example/alone"))
    await reader.refreshed([address])
    assert [item.title for item in (await store.feed_entries([address], 5_000))[address]] == ["Mug alone"]
    other = f"{address}?other"
    site.now += timedelta(days=91)
    await reader.refreshed([other])
    assert set(await store.feeds([address, other])) == {other}
    await reader.aclose()


async def test_a_feed_that_nobody_follows_is_kept_for_a_week(site: FeedsEmulator, store: SqlStore) -> None:
    """Else whoever follows ever new feeds for a moment would fill the database."""
    followed, left, last = (f"{site.server.url}/{name}.xml" for name in ("followed", "left", "last"))
    reader = site.reader(memory=store)
    await reader.refreshed([followed, left])
    await store.follow("a", FollowedFeed(followed, "", START), 9)
    site.now += timedelta(days=8)

    await reader.refreshed([last])

    assert set(await store.feeds([followed, left, last])) == {followed, last}
    assert len((await store.feed_entries([followed, left], 50))[followed]) == 12
    await reader.aclose()


async def test_an_unchanged_feed_keeps_its_entries(site: FeedsEmulator, store: SqlStore) -> None:
    """304 for a hundred days: what stands in it has not left it."""
    (address,) = feeds_in(site.settings().feeds)
    tagged = Reply(200, site.body, RSS | {"etag": '"v1"'})
    site.fault = lambda asked: Reply(304) if "if-none-match" in asked.headers else tagged
    reader = site.reader(memory=store)
    for _ in range(3):
        await reader.refreshed([address])
        site.now += timedelta(days=50)

    assert len((await store.feed_entries([address], 50))[address]) == 12
    await reader.aclose()


def test_a_stored_failure_has_its_outcome() -> None:
    """Of every code that a request can end with; what is unknown is no feed."""
    from api.features.watches.followed_feeds import FeedState

    state = FeedState("https://a.example/feed", outcome="blocked", detail="HTTP 403", next_at=START)
    assert isinstance(error_of(state), Blocked)
    assert isinstance(error_of(replace(state, outcome="broken")), NoFeed)
    assert isinstance(error_of(replace(state, outcome="quota_exhausted")), QuotaExhausted)
    assert isinstance(error_of(replace(state, outcome="refused", next_at=None)), Refused)
    assert error_of(replace(state, outcome="ok")) is None


async def test_a_page_with_a_broken_address_announces_no_feed(site: FeedsEmulator) -> None:
    """`http://[` is no address, and no defect."""
    page = b'<link rel="alternate" type="application/rss+xml" href="http://[bad">'
    site.fault = on("/feed.xml", Reply(200, page, {"content-type": "text/html"}))
    source = site.build()
    with pytest.raises(NoFeed, match="no page that announces one"):
        await source.fetch(PLAN)
    await source.aclose()


@pytest.mark.parametrize("etag", ['"caf\u00e9"', '"' + "x" * 600 + '"'])
async def test_a_validator_that_cannot_be_sent_back_is_left_out(site: FeedsEmulator, etag: str) -> None:
    """The feed is read again, whole."""
    site.fault = lambda asked: Reply(200, site.body, RSS | {"etag": etag})
    source = site.build()
    await source.fetch(PLAN)
    site.later()
    batch = await source.fetch(PLAN)
    await source.aclose()

    assert (len(batch.items), batch.notes) == (5, ())
    assert [asked.headers.get("if-none-match") for asked in site.server.asked] == [None, None]


def test_a_document_is_read_in_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where somebody's own package has the name of this one."""
    (tmp_path / "api").mkdir()
    (tmp_path / "api" / "__init__.py").touch()
    monkeypatch.chdir(tmp_path)
    document = parsed(Download(200, {}, rss(entry("Mug")), "https://mugs.example/", ""))
    assert document is not None
    assert document["count"] == 1


async def test_what_an_address_held_before_it_moved_stays_its_own(site: FeedsEmulator, store: SqlStore) -> None:
    """Nobody puts entries into another's feed by leading there."""
    mine = rss(entry("Forged mug", "https://mugs.example/forged"))
    site.fault = lambda asked: Reply(200, mine, RSS) if asked.path == "/mine" else None
    reader = site.reader(memory=store)
    await follow_feed(store, reader, "a", f"{site.server.url}/mine")
    site.later()
    site.fault = lambda asked: Reply(301, b"", {"location": "/feed.xml"}) if asked.path == "/mine" else None
    moved = await follow_feed(store, reader, "a", f"{site.server.url}/mine")
    batch = await FeedsSource(reader, [f"{site.server.url}/feed.xml"]).fetch(replace(PLAN, limit=50))
    await reader.aclose()

    assert moved.feed.address == f"{site.server.url}/feed.xml"
    assert len(batch.items) == 12
    assert "Forged mug" not in [item.title for item in batch.items]
