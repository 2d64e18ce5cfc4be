"""Bluesky as a source: what one look back keeps, what it says of how far it went, and what the AppView adds."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.core.domain import BY_BOT, REMOVED, FetchPlan
from api.core.items import Batch, Item
from api.core.text import clean
from api.core.words import split_words
from api.errors import SourceError, Unreachable
from api.pipeline.gate.name_matches import PART, best, name_of, sightings
from api.sources import SOURCES
from api.sources.bluesky import item_of, text_of
from api.sources.jetstream_frames import PostWritten
from api.sources.name_filter import NameFilter
from tests.loopback import Asked, Reply
from tests.replay import DATA
from tests.sources.emulators import on
from tests.sources.stream_emulators import BlueskyEmulator, commit, did_of, stream, uri_of, v2, view, written

RECORDED = DATA / "upstream-streams" / "bluesky"
recorded = pytest.mark.skipif(not RECORDED.is_dir(), reason=f"no recordings in {RECORDED}; set LISTENPOST_TEST_DATA")
PLAN = FetchPlan("mug", 20, "day")
NOW = datetime.now(UTC).replace(microsecond=0)
BEFORE, AFTER = NOW - timedelta(hours=37), NOW + timedelta(hours=1)


def ago(minutes: float) -> datetime:
    """A time before these tests began."""
    return NOW - timedelta(minutes=minutes)


class Held(BlueskyEmulator):
    """A stream with these frames between one from before every window and one from later; an AppView with `views`."""

    def __init__(self, *frames: str, views: Mapping[int, Any] | None = None, appview: Reply | None = None) -> None:
        super().__init__(0)
        self.held, self.views, self.appview = frames, views, appview

    def frames(self) -> Iterable[str]:
        yield written(9_998, BEFORE, "kettle")
        yield from self.held
        yield v2("commit", 9_999, AFTER, **commit(9_999, "delete"))

    def reply(self, asked: Asked) -> Reply:
        if "getPosts" not in asked.path:
            return super().reply(asked)
        if self.appview is not None:
            return self.appview
        held = {number: view(number, f"mug {number}") for number in range(100)} if self.views is None else self.views
        return Reply(body={"posts": list(held.values())})


async def fetched(emulator: BlueskyEmulator, plan: FetchPlan = PLAN, **settings: Any) -> Batch:
    """What the real source makes of it."""
    with emulator:
        source = SOURCES["bluesky"].build(emulator.settings(**{"bluesky_seconds": 16} | settings))
        try:
            return await source.fetch(plan)
        finally:
            await source.aclose()


async def items_of(*frames: str, **more: Any) -> dict[str, Item]:
    """Items by their address."""
    batch = await fetched(Held(*frames, **more))
    return {item.id: item for item in batch.items}


async def test_a_post_has_the_fields_of_stream_and_appview() -> None:
    """Text and time from the stream, counts from the AppView, an author by pseudonym, and a page to open."""
    (item,) = (await items_of(written(1, ago(5), "My mug leaks"), views={1: view(1, "My mug leaks")})).values()

    assert (item.key, item.title, item.body) == (f"bluesky:{uri_of(1)}", "", "My mug leaks")
    assert item.url == f"https://bsky.app/profile/{did_of(1)}/post/3m{1:011}"
    assert item.created_at == ago(5)
    assert item.engagement == {"likes": 3, "comments": 2, "reposts": 1, "quotes": 0}
    assert item.author is not None
    assert item.author.startswith("bsky-")
    assert did_of(1) not in item.author
    assert item.notes == ()


async def test_only_what_names_it_is_kept_best_liked_first() -> None:
    """By the gate's spellings; among equals likes decide."""
    views = {n: view(n, f"mug {n}", likeCount=n) for n in (1, 2, 3)}
    frames = [written(n, ago(9 - n), text) for n, text in enumerate(["kettle", "a mug", "#mug!", "MUGS"])]

    items = await items_of(*frames, views=views)

    assert list(items) == [uri_of(3), uri_of(2), uri_of(1)]


async def test_what_the_stream_deletes_is_not_returned() -> None:
    """Posts, and all posts of an account that is gone; one that is back is there."""
    gone = {"account": {"active": False, "did": did_of(2), "status": "takendown"}}
    away = {"account": {"active": False, "did": did_of(3), "status": "deactivated"}}
    back = {"account": {"active": True, "did": did_of(3)}}
    items = await items_of(
        *(written(number, ago(9), f"mug {number}") for number in range(4)),
        v2("commit", 0, ago(8), **commit(0, "delete")),
        v2("account", 2, ago(8), **gone),
        v2("account", 3, ago(8), **away),
        v2("account", 3, ago(7), **back),
    )

    assert set(items) == {uri_of(1), uri_of(3)}


async def test_an_edited_post_has_its_new_words() -> None:
    """The AppView's text is the current one; the same post twice is one item."""
    frames = [written(1, ago(9), "mug one"), written(1, ago(9), "mug one"), written(1, ago(8), "mug two", "update")]

    items = await items_of(*frames, views={1: view(1, "mug three")})

    assert [item.body for item in items.values()] == ["mug three"]


async def test_what_was_deleted_since_is_a_removed_item_without_words() -> None:
    """The AppView lacks it, so the archive forgets it; a post of this minute may not be known there yet."""
    fresh = datetime.now(UTC).replace(microsecond=0) - timedelta(seconds=30)  # these tests may have begun long ago
    items = await items_of(written(1, ago(9), "mug one"), written(2, fresh, "mug two"), views={})

    assert (items[uri_of(1)].unfit, items[uri_of(1)].body) == (REMOVED, "")
    assert (items[uri_of(2)].unfit, items[uri_of(2)].body) == ("", "mug two")


async def test_an_appview_that_knows_nothing_deletes_nothing() -> None:
    """Three posts are not deleted all at once; a note says that nobody looked."""
    batch = await fetched(Held(*(written(number, ago(9), f"mug {number}") for number in range(3)), views={}))

    assert [item.unfit for item in batch.items] == ["", "", ""]
    assert "knows none of the posts" in batch.notes[-1]


async def test_replies_stand_under_the_words_that_began_the_conversation() -> None:
    """The root's text is their title; a reply whose root is gone says so."""
    below = {number: {"root": {"uri": uri_of(number)}, "parent": {"uri": uri_of(number)}} for number in (50, 51)}
    frames = [written(1, ago(9), "my mug, too", reply=below[50]), written(2, ago(9), "mug as well", reply=below[51])]
    views = {1: view(1, "my mug, too"), 2: view(2, "mug as well"), 50: view(50, "Which cup?\nI have none")}

    items = await items_of(*frames, views=views)

    assert (items[uri_of(1)].title, items[uri_of(1)].thread) == ("Which cup? I have none", f"bluesky:{uri_of(50)}")
    assert (items[uri_of(2)].title, items[uri_of(2)].thread) == ("", "")
    assert items[uri_of(2)].notes == ("the post that it replies to could not be read",)


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        ({"labels": [{"val": "porn"}]}, "labelled as adult content"),
        ({"labels": [{"val": "porn", "neg": True}]}, ""),
        ({"author": {"labels": [{"val": "!no-unauthenticated"}]}}, "without an account"),
        ({"author": {"labels": [{"val": "bot"}]}}, BY_BOT),
        ({"labels": "x", "author": 7}, ""),
    ],
)
async def test_labels_are_heeded(labels: Mapping[str, Any], reason: str) -> None:
    """What its author or a moderator says of a post decides whether it is judged."""
    (item,) = (await items_of(written(1, ago(9), "mug"), views={1: view(1, "mug", **labels)})).values()

    assert reason in item.unfit
    assert bool(item.unfit) == bool(reason)


async def test_without_the_appview_the_stream_alone_answers() -> None:
    """A note says what is missing."""
    batch = await fetched(Held(written(1, ago(9), "mug one"), appview=Reply(500, {})))

    assert [(item.body, item.engagement) for item in batch.items] == [("mug one", {})]
    assert any("counts, deletions" in note for note in batch.notes)


async def test_pictures_and_links_are_searched_and_marked_as_no_words_of_the_author() -> None:
    """An image's description and a page's title may hold the name."""
    image = {"$type": "app.bsky.embed.images", "images": [{"alt": "a [blue] mug", "image": {}}]}
    page = {"$type": "app.bsky.embed.external", "external": {"uri": "https://example.org/a", "title": "Ten mugs"}}
    both = {"$type": "app.bsky.embed.recordWithMedia", "media": image, "record": {}}

    assert text_of({"text": "", "embed": image}) == "![a blue mug](image)"
    assert text_of({"text": "so", "embed": page}) == "so\n[Ten mugs](https://example.org/a)"
    assert text_of({"text": "so", "embed": both}) == "so\n![a blue mug](image)"
    assert text_of({"text": 7, "embed": [1]}) == ""
    items = await items_of(
        written(1, ago(9), "", embed=image), views={1: view(1, "", record={"text": "", "embed": image})}
    )
    assert len(items) == 1


async def test_nothing_is_proven_by_what_was_read() -> None:
    """Frames without a hit are an empty batch, with how far was read; no frame is an error."""
    batch = await fetched(Held())
    silent = Held()
    silent.fault = lambda asked: stream([])

    assert (batch.items, batch.full) == ((), False)
    assert batch.notes[0].startswith(f"read from {BEFORE:%Y-%m-%d %H:%M} to {NOW:%Y-%m-%d}")
    with pytest.raises(Unreachable):
        await fetched(silent, source_timeout=0.3)


class Long(BlueskyEmulator):
    """A stream that replays from the cursor on, a post every so many seconds; `held` says from when on."""

    def __init__(self, every: float, held: timedelta = timedelta(hours=36), cut: int | None = None) -> None:
        super().__init__(0)
        self.every, self.held, self.cut = every, held, cut
        self.starts: list[datetime] = []

    def reply(self, asked: Asked) -> Reply:
        if self.search_path not in asked.path:
            return Reply(body={"posts": []})
        at = datetime.fromtimestamp(int(asked.query["cursor"]) / 1e6, UTC)
        self.starts.append(at)
        if self.cut is not None and len(self.starts) > self.cut:
            return Reply(503, {})
        floor, frames = datetime.now(UTC) - self.held, []
        if at < floor:
            frames.append(v2("info", 0, at, name="OutdatedCursor"))
        at, until = max(at, floor), datetime.now(UTC) + timedelta(seconds=self.every * 300)
        while at < until:
            frames.append(written(int(at.timestamp() - 1.7e9), at, "kettle " * 100))
            at += timedelta(seconds=self.every)
        return stream(frames)


async def test_a_look_back_reads_the_newest_part_first_up_to_the_window() -> None:
    """Each part ends where the one before it began, and the last begins where the window does."""
    emulator = Long(every=60)
    batch = await fetched(emulator)

    assert emulator.starts == sorted(emulator.starts, reverse=True)
    assert len(emulator.starts) > 1
    assert abs(emulator.starts[-1] - (datetime.now(UTC) - timedelta(days=1))) < timedelta(minutes=1)
    (note,) = batch.notes
    assert note.startswith(f"read from {emulator.starts[-1]:%Y-%m-%d %H:%M} to ")
    assert "not read" not in note


async def test_bytes_end_a_look_back_and_what_was_not_read_is_said() -> None:
    """One MB of a stream that has more: the newest part is read, the earlier one is not."""
    emulator = Long(every=1)
    batch = await fetched(emulator, bluesky_megabytes=1)

    (note,) = batch.notes
    assert note.endswith("the earlier part of the window was not read")
    assert emulator.starts[0] - emulator.starts[-1] < timedelta(hours=1)


async def test_a_server_that_holds_less_says_so() -> None:
    """Where the cursor is too old, the note names the server as the reason."""
    batch = await fetched(Long(every=60, held=timedelta(hours=2)))

    assert "the stream holds nothing earlier; the earlier part of the window was not read" in batch.notes[0]


async def test_a_failure_in_an_earlier_part_leaves_the_newer_one() -> None:
    """What was read stays, and the note has the failure."""
    batch = await fetched(Long(every=60, cut=1))

    assert "the stream failed: HTTP 503: ServiceUnavailable" in batch.notes[0] or "HTTP 503" in batch.notes[0]
    with pytest.raises(SourceError):
        await fetched(Long(every=60, cut=0))


async def test_a_newest_part_that_fails_without_a_hit_is_no_answer() -> None:
    """One post of somebody else proves nothing; what was found before the failure stays, for this question alone."""
    other, hit = written(1, ago(3), "kettle"), written(2, ago(2), "mug")
    broken, found = Held(), Held()
    broken.fault = lambda asked: stream([other, b""]) if "subscribe" in asked.path else None
    found.fault = lambda asked: stream([other, hit, b""]) if "subscribe" in asked.path else None

    with pytest.raises(Unreachable, match="the stream was closed"):
        await fetched(broken)
    with found:
        source = SOURCES["bluesky"].build(found.settings())
        batches = [await source.fetch(PLAN) for _ in range(2)]
        await source.aclose()
        assert len(found.searches) == 2
    assert [len(batch.items) for batch in batches] == [1, 1]
    assert "the stream failed: the stream was closed" in batches[0].notes[0]


async def test_windows_longer_than_the_stream_say_so() -> None:
    """A month is answered by 36 hours."""
    batch = await fetched(Held(), replace(PLAN, window="month"))

    assert "the stream reaches back 36 hours, not to the whole window" in batch.notes[0]


async def test_rewritten_queries_of_one_name_are_one_read() -> None:
    """Only the name is looked for, whatever else is asked, with or without quotes."""
    with BlueskyEmulator(10) as emulator:
        source = SOURCES["bluesky"].build(emulator.settings())
        for query in ('"mug" handle', "mug broken", "mug"):
            batch = await source.fetch(FetchPlan(query, 5, "day", "mug"))
            assert len(batch.items) == 5
        await source.aclose()

        assert len(emulator.searches) == 1


NAMES = [
    "Plaud Note",
    "plaud.ai",
    "WH-1000XM5",
    "Diablo IV",
    "C#",
    "AT&T",
    "Café Noir",
    "小米手环",
    "Алиса",
    "Obsidian",
]
SPELLINGS = {
    "Plaud Note": [
        "plaud note",
        "PlaudNote",
        "#PLAUDNOTE",
        "Plaud-Note",
        "plaud\nnote",
        "𝗣𝗹𝗮𝘂𝗱 𝗡𝗼𝘁𝗲",
        "Ｐｌａｕｄ Note",
        "Plaud — Note",
    ],
    "plaud.ai": ["plaud.ai", "PlaudAI", "Pláud"],
    "WH-1000XM5": ["wh1000xm5", "WH 1000 XM5", "xm5"],
    "Diablo IV": ["Diablo 4", "diablo iv", "DiabloIV"],
    "C#": ["C#", "csharp", "c sharp"],
    "AT&T": ["AT&T", "at and t", "ATT", "\nAT&T\n"],
    "Café Noir": ["cafe noir", "Café Noir"],
    "小米手环": ["小米手环", "我的小米手环坏了"],
    "Алиса": ["алиса", "АЛИСА"],
    "Obsidian": ["obsidian", "Obsidian's", "@obsidian", "ObsidianApp"],
}
TEXTS = st.text(st.characters(codec="utf-8"), max_size=60)


@pytest.mark.parametrize("ascii_only", [True, False])
@given(
    case=st.sampled_from([(name, spelling) for name, spellings in SPELLINGS.items() for spelling in spellings]),
    before=TEXTS, after=TEXTS,
)  # fmt: skip
def test_no_frame_is_passed_over_that_holds_the_name(
    ascii_only: bool, case: tuple[str, str], before: str, after: str
) -> None:
    """Whatever the gate takes for a mention is a frame that is read, however its JSON is escaped."""
    name, spelling = case
    text = f"{before} {spelling} {after}"
    frame = written(1, NOW, text)
    if ascii_only:
        frame = json.dumps(json.loads(frame), separators=(",", ":")).replace("&", "\\u0026")
    names = NameFilter(name_of(name))

    assert names(frame.encode())
    assert names.strength(clean(spelling)) >= PART


@given(TEXTS, st.sampled_from(NAMES))
def test_strength_is_the_gates(text: str, name: str) -> None:
    """The source and the gate mean the same by a mention."""
    strength = best(sightings(name_of(name), split_words(text), text)).strength

    assert NameFilter(name_of(name)).strength(text) == (strength if strength >= PART else 0.0)


def test_most_frames_are_passed_over() -> None:
    """A name is not found in addresses and field names."""
    frame = written(1, NOW, "good morning, the kettle is on").encode()

    assert not any(NameFilter(name_of(name))(frame) for name in NAMES)


FIELDS = st.sampled_from(
    "text createdAt embed images alt media external uri title reply root labels values val neg author record "
    "likeCount replyCount video $type".split()
)  # fmt: skip
RECORDS = st.dictionaries(
    FIELDS,
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.just(uri_of(1)),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(FIELDS, inner, max_size=5),
        max_leaves=15,
    ),
    max_size=8,
)


@given(RECORDS, st.none() | RECORDS, st.none() | RECORDS)
def test_any_record_is_an_item(record: Any, shown: Any, root: Any) -> None:
    """Whatever a stranger's program writes into a post, and whatever the AppView makes of it."""
    item = item_of(PostWritten(uri_of(1), did_of(1), NOW, record), shown, root)

    assert item.key == f"bluesky:{uri_of(1)}"
    assert item.created_at == NOW


async def test_what_a_stranger_sizes_is_bounded() -> None:
    """Texts, titles and addresses beyond the lexicon are cut or left out."""
    page = {
        "$type": "app.bsky.embed.external",
        "external": {"uri": "https://e.example/" + "a" * 9_000, "title": "t" * 9_000},
    }
    item = item_of(PostWritten(uri_of(1), did_of(1), NOW, {"text": "mug " * 9_000, "embed": page}), None, None)

    assert (len(item.body) < 6_100, item.link) == (True, "")
    text = "é" * 1_000_000
    began = time.process_time()
    item_of(
        PostWritten(uri_of(1), did_of(1), NOW, {"text": text, "embed": {"images": [{"alt": text}] * 10}}), None, None
    )
    assert time.process_time() - began < 0.5


@recorded
async def test_recorded_posts_of_the_appview_are_comments_and_counts() -> None:
    """Snapshots of a thread give replies with texts; one that is deleted is left out."""
    emulator = BlueskyEmulator(3)
    with emulator:
        source = SOURCES["bluesky"].build(emulator.settings())
        items = (await source.fetch(replace(PLAN, limit=3))).items
        counts = []
        for file, status in (
            ("getpostthread_2026.json", 200),
            ("getpostthread_deleted_2026.json", 200),
            ("getpostthread_error_400.json", 400),
        ):
            body = (RECORDED / file).read_bytes()
            emulator.fault = on("getPostThread", Reply(status, body))
            (item,) = (await source.comments(items[:1])).items
            counts.append((len(item.comments), item.notes))
        await source.aclose()

    assert counts[0][0] > 1
    assert counts[1][1] == ()
    assert counts[2] == (0, ("comments could not be read: it is no longer there",))


@recorded
async def test_recorded_posts_are_items() -> None:
    """The texts of the recorded stream, looked for by a word that one of them has."""
    frames = (RECORDED / "v2_2026_built.jsonl").read_text("utf-8").splitlines()
    fresh = [frame.replace("2026-07-04T14:", f"{NOW - timedelta(hours=3):%Y-%m-%dT%H:}") for frame in frames]

    items = await items_of(*fresh, appview=Reply(500, {}))
    assert items == {}
    batch = await fetched(Held(*fresh, appview=Reply(500, {})), replace(PLAN, query="YouTube"))

    assert len(batch.items) >= 1
    assert all("youtube" in item.body.lower() for item in batch.items)
