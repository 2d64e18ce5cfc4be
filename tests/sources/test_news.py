"""News: which lists are read, what articles become, bounds, damage, failures, recordings."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from api.core.context import request_counter
from api.core.domain import FetchPlan
from api.core.items import Item
from api.core.ports import Source
from api.errors import Blocked, Broken, RateLimited, SourceError, TimedOut, Unreachable
from api.pipeline.gate.name_matches import name_of
from api.sources import SOURCES
from api.sources.name_filter import NameFilter
from api.sources.news import (
    ATTRIBUTION,
    MAX_KEPT,
    MAX_LINE,
    MAX_UNPACKED,
    MOST_HITS,
    KeptLists,
    ListCounts,
    kept_lists,
    lines_of,
    names_it,
    read_list,
)
from tests.loopback import HANG, Asked, Reply, packed_zeros
from tests.replay import NO_STREAMS, STREAMS
from tests.sources.emulators import on
from tests.sources.json_emulators import RSS, NewsEmulator, article, gal

PLAN = FetchPlan("mug", 10)
STAMP = "%Y%m%d%H%M%S"


@pytest.fixture
def upstream() -> Iterator[NewsEmulator]:
    """The lists on loopback."""
    with NewsEmulator() as server:
        yield server


@pytest.fixture
async def source(upstream: NewsEmulator) -> AsyncIterator[Source]:
    """The real source that reads them."""
    made = SOURCES["news"].build(upstream.settings())
    yield made
    await made.aclose()


async def read(upstream: NewsEmulator, source: Source, *rows: Any, query: str = "mug") -> tuple[Item, ...]:
    """What the articles of the newest list become."""
    upstream.fault = on(f"{upstream.newest:{STAMP}}", gal(rows))
    return (await source.fetch(FetchPlan(query, 100))).items


async def test_the_span_is_read_back_from_the_newest(upstream: NewsEmulator, source: Source) -> None:
    """Two hours are eight lists; after an hour only the minutes are asked for at which lists were."""
    with request_counter() as calls:
        batch = await source.fetch(PLAN)

    first = upstream.newest - timedelta(minutes=105)
    assert calls.made == len(upstream.server.asked) == 1 + 1 + 3 * 8 + 4
    assert upstream.lists[0] == f"{upstream.newest:{STAMP}}"
    assert min(upstream.lists) == f"{first:{STAMP}}"
    assert set(upstream.lists[-4:]) == {f"{first + timedelta(minutes=15 * n):{STAMP}}" for n in range(4)}
    assert batch.notes[-1] == ATTRIBUTION
    assert batch.notes[-2].startswith(f"looked back 2 h: 68 articles listed from {first:%Y-%m-%d %H:%M} to ")
    assert batch.notes[-2].endswith(f"{upstream.newest:%H:%M} UTC")


async def test_minutes_that_hold_no_more_are_learnt_anew(upstream: NewsEmulator, source: Source) -> None:
    """An earlier quarter whose lists came at other minutes is asked for all of them."""
    before = upstream.newest - timedelta(minutes=75)
    moved = f"{before + timedelta(minutes=3):{STAMP}}"

    def fault(asked: Asked) -> Reply | None:
        if f"{before:{STAMP}}" in asked.path:
            return Reply(404, "<Error/>", {"content-type": "text/xml"})
        return gal([article(9, title="The mug of minute three")]) if moved in asked.path else None

    upstream.fault = fault

    assert any(item.title == "The mug of minute three" for item in (await source.fetch(FetchPlan("mug", 100))).items)


async def test_a_list_is_read_once_in_a_process(upstream: NewsEmulator, source: Source) -> None:
    """Another question, another source of the same server: the feed alone, while nothing newer is named."""
    await source.fetch(PLAN)
    other = SOURCES["news"].build(upstream.settings())
    async with aclosing(other):
        with request_counter() as calls:
            batch = await other.fetch(FetchPlan("plaud note", 10))

    assert (len(batch.items), calls.made) == (10, 1)


async def test_an_absent_list_may_appear_later(upstream: NewsEmulator, source: Source) -> None:
    """For a minute it is not asked for again, and an old one never."""
    kept = kept_lists(upstream.server.url)
    kept.note_absent("1", settled=True)
    kept.note_absent("2", settled=False)

    assert [kept.is_absent(stamp) for stamp in "123"] == [True, True, False]


async def test_questions_at_once_share_the_lists(upstream: NewsEmulator, source: Source) -> None:
    """Two questions at the same time: none is asked for twice."""
    await asyncio.gather(*(source.fetch(FetchPlan(query, 5)) for query in ("mug", "plaud note")))

    assert len(upstream.lists) == len(set(upstream.lists))


async def test_an_article_is_an_item(upstream: NewsEmulator, source: Source) -> None:
    """Entities decoded once, the outlet's name cut off, the domain as its place, the author under a pseudonym."""
    row = article(
        1, "https://www.zeitung.example/wirtschaft/1?utm_source=rss", outletName="Die Zeitung",
        title="R&uuml;ckruf: Mug kann &uuml;berhitzen | Die Zeitung", desc="Ein &amp; alles", lang="de",
    )  # fmt: skip
    (item,) = await read(upstream, source, row)

    assert (item.title, item.body) == ("Rückruf: Mug kann überhitzen", "Ein & alles")
    assert (item.place, item.url) == ("zeitung.example", row["url"])
    assert item.created_at == datetime(2026, 11, 29, 13, 33, 20, tzinfo=UTC)
    assert item.key == f"news:{item.id}"
    assert item.author
    assert item.author.startswith("press-")
    assert (await source.comments([item])).items == (item,)


NAMED = [
    ("plaud note", "The Plaud Note is recalled", True),
    ("plaud note", "PLAUD-NOTE recalled", True),
    ("plaud note", "A note on Plaud and a note on others", False),
    ("plaud note", "A note for the applauded", False),
    ("baldur's gate 3", "Baldur’s Gate III sells well", True),
    ("arc", "A search for arches", False),
    ("C#", "The new C# is here", True),
    ("C#", "The new C is here", False),
    ("小米手机", "新款小米手机发布", True),
    ("Kopfhörer X1", "Kopfhörer X1 im Test", True),
]


@pytest.mark.parametrize(("name", "text", "expected"), NAMED)
def test_names_are_found_as_the_gate_takes_them(name: str, text: str, expected: bool) -> None:
    """In every spelling that it knows, and not as part of a word."""
    assert names_it(NameFilter(name_of(name)), text) is expected


async def test_one_story_is_one_item(upstream: NewsEmulator, source: Source) -> None:
    """By address without what tracks, then by headline; every outlet is among its places."""
    title = "Mug recalled after fires in three towns"
    rows = [
        article(1, "https://a.example/mug", title=title),
        article(2, "https://a.example/mug?utm_source=rss&fbclid=1", title=title),
        article(3, "https://b.example/mug", title=f"{title} - The Daily"),
        article(4, "https://c.example/1", title="Mug recalled"),
        article(5, "https://d.example/1", title="Mug recalled"),
    ]
    items = await read(upstream, source, *rows)

    assert sorted(item.places or (item.place,) for item in items) == [
        ("a.example", "b.example"), ("c.example",), ("d.example",),
    ]  # fmt: skip


async def test_headlines_come_first(upstream: NewsEmulator, source: Source) -> None:
    """Before articles that name the product in their description alone."""
    rows = [article(1, title="Cups of the year", desc="Also a mug"), article(2, title="The mug of the year")]

    assert [item.title for item in await read(upstream, source, *rows)] == ["The mug of the year", "Cups of the year"]


async def test_most_hits_are_an_answer(upstream: NewsEmulator, source: Source) -> None:
    """More than a caller may ask for are not made into items."""
    rows = [article(n, f"https://a.example/{n}", title=f"The mug of town number {n}") for n in range(MOST_HITS + 20)]
    upstream.fault = on(f"{upstream.newest:{STAMP}}", gal(rows))
    batch = await source.fetch(FetchPlan("mug", MOST_HITS))

    assert len(batch.items) == MOST_HITS
    assert batch.notes[0] == f"the first {MOST_HITS} of {MOST_HITS + 20} articles that name it"


BAD = [
    "not-json", "[1]", "7", "1e400", "[" * 50_000, json.dumps({"title": "Mug"}), json.dumps({"url": "https://a.example"}),
    json.dumps({"title": "Mug", "url": "javascript:alert(1)"}), json.dumps({"title": ["Mug"], "url": "https://a.example"}),
    "x" * (MAX_LINE + 1),
]  # fmt: skip


async def test_bad_lines_are_skipped_and_counted(upstream: NewsEmulator, source: Source) -> None:
    """No line costs another one."""
    upstream.fault = on(f"{upstream.newest:{STAMP}}", gal([*BAD, article(1), "", *BAD, article(2)]))
    batch = await source.fetch(FetchPlan("mug", 100))

    assert len(batch.items) == 2
    assert f"{2 * len(BAD)} lines could not be read" in batch.notes[-2]


ODD: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"date": "20260908013100"}, {"created_at": datetime(2026, 9, 8, 1, 31, tzinfo=UTC)}),
    ({"date": "20261399999999"}, {"created_at": None}),
    ({"date": "2091-01-01T00:00:00.000Z"}, {"created_at": None}),
    ({"date": 7}, {"created_at": None}),
    ({"desc": None, "author": None, "outletName": 5}, {"body": ""}),
    ({"domain": "other.example"}, {"place": "tides.example"}),
    ({"title": "mug " * 9_000, "desc": "warm " * 4_000}, {"title": "mug " * 125, "body": "warm " * 1_000}),
]


@pytest.mark.parametrize(("fields", "expected"), ODD)
async def test_odd_articles(
    upstream: NewsEmulator, source: Source, fields: dict[str, Any], expected: dict[str, Any]
) -> None:
    """Old dates, impossible ones, absent fields; the place is the address's own host."""
    (item,) = await read(upstream, source, article(1) | fields)

    assert {name: getattr(item, name) for name in expected} == expected


@pytest.mark.parametrize("size", [30, 60, 90])
async def test_a_list_that_ends_early_gives_its_beginning(upstream: NewsEmulator, source: Source, size: int) -> None:
    """It is said, and the list is asked for again by the next question."""
    rows = [article(n, title=f"The mug of town {n} {hash(n * 7919)}") for n in range(200)]
    whole: bytes = gal(rows).body
    cut = Reply(200, whole[: len(whole) * size // 100], {"content-type": "application/gzip"})
    upstream.fault = on(f"{upstream.newest:{STAMP}}", cut, times=1)
    batch = await source.fetch(FetchPlan("mug", 300))
    upstream.fault = on(f"{upstream.newest:{STAMP}}", gal(rows))
    other = SOURCES["news"].build(upstream.settings())
    async with aclosing(other):
        again = await other.fetch(FetchPlan("mug", 300))

    assert 0 < len(batch.items) < 200
    assert "1 list ended too early or too large" in batch.notes[-2]
    assert len(again.items) == 200


def test_what_unpacks_too_large_ends() -> None:
    """Two hundred MB in two hundred KB are read to the bound, in pieces."""
    counts = ListCounts()

    assert list(lines_of(packed_zeros(200), counts)) == []
    assert counts.damaged == 1
    many = gzip.compress(b"\n".join([b"1" * 1_000] * (2 * MAX_UNPACKED // 1_000)))
    assert 0 < sum(len(line) + 1 for line in lines_of(many, counts)) <= MAX_UNPACKED


def test_a_list_may_come_unpacked() -> None:
    """A server that says so in its headers has it unpacked on the way."""
    line = json.dumps(article(1)).encode()

    counts, hits = read_list(line + b"\n" + line, NameFilter(name_of("mug")), "20260908013100")

    assert (counts.articles, len(hits)) == (2, 2)


def test_lists_are_kept_within_bounds() -> None:
    """Those that were read first go first."""
    kept = KeptLists()
    for number in range(3):
        kept.keep(str(number), b"x" * (MAX_KEPT // 2))

    assert [kept.get(str(number)) is None for number in range(3)] == [True, False, False]
    kept.drop("2")
    assert kept.get("2") is None


FAILURES: list[tuple[str, Reply, type[SourceError]]] = [
    ("feed.rss", Reply(404, "<Error/>"), Blocked),
    ("feed.rss", Reply(200, "<html>Please log in"), Blocked),
    ("feed.rss", Reply(200, b"{}"), Broken),
    ("feed.rss", Reply(200, '<rss version="2.0"></rss>', RSS), Broken),
    ("feed.rss", Reply(200, "<rss><lastBuildDate>soon</lastBuildDate>", RSS), Broken),
    ("feed.rss", Reply(429, b"slowly"), RateLimited),
    (".gz", Reply(429, b"slowly", {"retry-after": "30"}), RateLimited),
    (".gz", Reply(200, b"Please limit requests to one every 5 seconds"), Broken),
    (".gz", Reply(200, "<html>Please log in"), Blocked),
    (".gz", Reply(200, b""), Broken),
    (".gz", Reply(200, b"\x1f\x8b\x08 no more"), Broken),
    (".gz", gal([{"url": None, "title": None}, {"url": ["https://a.example"], "title": ["Mug"]}]), Broken),
    (".gz", Reply(404, "<Error/>"), Unreachable),
    (".gz", Reply(500, b""), Unreachable),
    (".gz", Reply(200, b"x" * 8_000_001), Broken),
    (".gz", HANG, TimedOut),
]


@pytest.mark.parametrize(("part", "answer", "expected"), FAILURES)
async def test_no_failure_looks_like_nothing_found(
    upstream: NewsEmulator, part: str, answer: Reply, expected: type[SourceError]
) -> None:
    """Nothing found needs a list that was read; text with status 200 is none."""
    upstream.fault = on(part, answer)
    source = SOURCES["news"].build(upstream.settings(source_timeout=0.5 if answer is HANG else 30))
    async with aclosing(source):
        with pytest.raises(SourceError) as caught:
            await source.fetch(PLAN)

    assert type(caught.value) is expected


async def test_a_server_without_any_list_is_asked_anew(upstream: NewsEmulator) -> None:
    """Its feed says that there is one, so none of the absences is believed."""
    upstream.fault = on(".gz", Reply(404, "<Error/>"))
    source = SOURCES["news"].build(upstream.settings())
    async with aclosing(source):
        with pytest.raises(Unreachable, match="no list of the last"):
            await source.fetch(PLAN)
        upstream.fault = on("nothing", HANG)
        batch = await source.fetch(PLAN)

    assert len(batch.items) == 10


@pytest.mark.parametrize(
    ("answer", "items", "note"),
    [
        (Reply(500, b""), 60, "the earlier part was not read: HTTP 500"),
        (Reply(200, b"x" * 8_000_001), 60, "1 list could not be read"),
        (Reply(200, b"Please limit requests"), 60, "1 list could not be read"),
    ],
)
async def test_one_list_that_fails_leaves_a_note(
    upstream: NewsEmulator, source: Source, answer: Reply, items: int, note: str
) -> None:
    """What was read is the answer; a server that fails is not asked further, a list that does is left out."""
    failed = f"{upstream.newest - timedelta(minutes=30):{STAMP}}"
    upstream.fault = on(failed, answer)
    batch = await source.fetch(FetchPlan("mug", 100))

    assert len(batch.items) == items
    assert note in batch.notes[-2]


async def test_an_old_feed_is_said(upstream: NewsEmulator, source: Source) -> None:
    """The span is counted back from the newest list there is; a date ahead of us is none."""
    upstream.newest -= timedelta(days=2)
    assert "nothing newer is listed" in (await source.fetch(PLAN)).notes[-2]

    upstream.newest += timedelta(days=9)
    asked = len(upstream.lists)
    await source.fetch(FetchPlan("cup", 5))
    assert datetime.strptime(max(upstream.lists[asked:]), STAMP).replace(tzinfo=UTC) <= datetime.now(UTC)


async def test_time_is_bounded(upstream: NewsEmulator) -> None:
    """What is not read within two fifths of the crawl's seconds is left, and said."""
    source = SOURCES["news"].build(upstream.settings(crawl_timeout=0.0001))
    async with aclosing(source):
        batch = await source.fetch(PLAN)

    assert batch.items
    assert "the earlier part was not read: its time is up" in batch.notes[-2]


RECORDED: dict[str, tuple[str, str, int | type[SourceError]]] = {
    "gal_built.json.gz": ("list", "acme", 1),
    "gal_built.jsonl": ("list", "acme", 1),
    "gal_truncated.json.gz": ("list", "acme", 1),
    "gal_404.xml": ("list", "acme", Unreachable),
    "gal_feed_built.rss": ("feed", "acme", Unreachable),
    "doc_throttle_200.txt": ("list", "acme", Blocked),
    "doc_throttle_429.txt": ("list", "acme", RateLimited),
    "doc_short_phrase_200.txt": ("list", "acme", Blocked),
    "doc_empty.json": ("list", "acme", Broken),
    "doc_artlist_built.json": ("list", "acme", Broken),
}


@pytest.mark.skipif(not STREAMS.is_dir(), reason=NO_STREAMS)
@pytest.mark.parametrize("file", RECORDED)
async def test_recorded_answers(upstream: NewsEmulator, file: str) -> None:
    """What each gives as a list, or as the feed; those of the search interface, which is not asked, are no lists."""
    part, query, expected = RECORDED[file]
    meta = json.loads((STREAMS / "gdelt" / "index.json").read_text("utf-8"))[file]
    answer = Reply(meta["status"], (STREAMS / "gdelt" / file).read_bytes(), dict(meta.get("headers", {})))

    def fault(asked: Asked) -> Reply | None:
        is_feed = asked.path.endswith("feed.rss")
        if is_feed:
            return answer if part == "feed" else None
        return answer if part == "list" else Reply(404)

    upstream.fault = fault
    source = SOURCES["news"].build(upstream.settings())
    async with aclosing(source):
        if isinstance(expected, int):
            items = (await source.fetch(FetchPlan(query, 5))).items
            assert len(items) == expected
            assert all(item.author and item.created_at and item.body and item.place for item in items)
        else:
            with pytest.raises(expected):
                await source.fetch(FetchPlan(query, 5))


@pytest.mark.skipif(not STREAMS.is_dir(), reason=NO_STREAMS)
def test_every_recording_is_read() -> None:
    """One that is in no table is a gap."""
    assert {path.name for path in (STREAMS / "gdelt").iterdir()} - {"index.json"} == set(RECORDED)


@pytest.mark.skipif(not STREAMS.is_dir(), reason=NO_STREAMS)
def test_the_recorded_list_is_read_line_by_line() -> None:
    """Six of seven lines are articles, one of them without a headline; one is no JSON."""
    counts, hits = read_list((STREAMS / "gdelt" / "gal_built.json.gz").read_bytes(), NameFilter(name_of("acme")), "1")
    assert (counts.articles, counts.bad_lines, counts.damaged) == (6, 1, 0)
    assert len(hits) == 2
