"""Watches that are told as it happens, over a database of each kind and a stream that the test writes."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import pytest
from sqlalchemy import update

from api.core.domain import Agreement, Usage, Verdict
from api.core.items import Comment, Gated, Item
from api.errors import NotFound, Unreachable
from api.features.archive.imports import FileIdentity, ImportBatch, ImportPosition
from api.features.archive.search_values import ArchiveFilters
from api.features.watches.notification import Message
from api.features.watches.stream_watching import (
    MOST_AN_HOUR,
    MOST_JUDGED,
    MOST_LONE_FAILURES,
    StreamListener,
    StreamNotifier,
)
from api.features.watches.watch import Target, Watch
from api.features.watches.watch_ports import StreamBatch, WatchId
from api.features.watches.watch_run import Delivery, WatchRun
from api.features.watches.watch_service import WatchRunner
from api.pipeline.gate.name_index import NameIndex
from api.reports.report import Report
from api.services.product import Ask
from api.sources import ALL_SOURCES
from api.store import SqlStore, open_store
from api.store.stream_repository import MOST_WAITING
from api.store.tables import stream_posts
from tests.features.watches.made import MONDAY, WATCH, about, heard

WORDS = "lid heat charge cup tea gift desk warm broke love app coaster paint price shop cable light sip".split()

HOOK = Target("webhook", "https://hooks.example/1")
STREAMED = replace(WATCH, query="Ember mug", as_it_happens=True, notify=(HOOK,), due_at=MONDAY + timedelta(days=7))


def post(number: int, text: str = "The Ember mug leaks") -> Item:
    """Whatever says "not" is about something else."""
    return Item(
        key=f"bluesky:at://did:plc:a{number}/app.bsky.feed.post/{number}", id=str(number), source="bluesky",
        title=text[:20], body=text, url=f"https://bsky.example/{number}", created_at=MONDAY,
    )  # fmt: skip


@dataclass
class Written:
    """A stream of batches; each is sent until it was stored."""

    batches: list[StreamBatch] = field(default_factory=list)
    name: str = "bluesky"

    async def read(self, cursor: str) -> AsyncGenerator[StreamBatch]:
        for batch in [each for each in self.batches if each.cursor > cursor]:
            yield batch
        raise Unreachable("bluesky", "the stream was closed")


@dataclass
class Damaged:
    """A stream with a defect."""

    name: str = "bluesky"

    async def read(self, cursor: str) -> AsyncGenerator[StreamBatch]:
        yield StreamBatch()
        raise LookupError("a defect")


@dataclass
class World:
    """A listener and a notifier, and what was sent and judged."""

    store: SqlStore
    stream: Written = field(default_factory=Written)
    now: datetime = MONDAY
    sent: list[tuple[str, Message]] = field(default_factory=list)
    judged: list[Sequence[str]] = field(default_factory=list)
    judge_works: bool = True
    dies: bool = False
    """The process ends when the receiver has the message."""
    agreement: Agreement | None = None
    broken: str = ""
    """Id of a watch of which nothing can be sent, by a defect."""

    async def judge(self, watch: Watch, posts: Sequence[Item]) -> Gated:
        self.judged.append([post.key for post in posts])
        if not self.judge_works:
            return Gated.opened(posts, "unreachable")
        if any("refused" in post.body for post in posts):
            return Gated.opened(posts, "filtered")
        return Gated(tuple(Verdict("not" not in post.body, "fake") for post in posts), "ok", agreement=self.agreement)

    async def send(self, watch: Watch, target: Target, message: Message) -> Delivery:
        self.sent.append((watch.id, message))
        if self.dies:
            raise asyncio.CancelledError
        if watch.id == self.broken:
            raise LookupError("a defect")
        return Delivery(target=target.shown, delivered=True, tries=1)

    def listener(self, reader: str = "r1") -> StreamListener:
        return StreamListener(self.stream, self.store, NameIndex[WatchId](), reader, lambda: self.now)

    async def read(self, *batches: StreamBatch) -> StreamListener:
        """Read what is new to the stream, to its end."""
        self.stream.batches += batches
        listener = self.listener()
        with pytest.raises(Unreachable):
            await listener.read_once()
        return listener

    def notifier(self) -> StreamNotifier:
        async def analyze(watch: Watch, ask: object, run_id: str) -> object:
            raise AssertionError("nothing is asked for a post of a stream")

        watching = WatchRunner(self.store, analyze, self.send, ALL_SOURCES, 92, lambda: self.now)  # type: ignore[arg-type]
        return StreamNotifier(self.store, watching, self.judge)

    async def tell(self) -> Sequence[WatchRun]:
        return [run for _, run in await self.notifier().run_pending()]


@pytest.fixture
async def world(store_url: str) -> AsyncIterator[World]:
    """A store of each kind with one watch that follows streams, and one that does not."""
    store = await open_store(store_url)
    await store.add_watch(STREAMED, 9)
    await store.add_watch(replace(WATCH, id="w2", name="other", query="Ember mug"), 9)
    yield World(store)
    await store.aclose()


async def test_a_post_is_told_once(world: World) -> None:
    """It is judged, sent and stored; what comes again, by the stream or with its words, is not."""
    first = StreamBatch((post(1), post(2, "Nothing here"), post(3, "Ember mug? not mine")), cursor="1", at=MONDAY)
    listener = await world.read(first)
    (run,) = await world.tell()

    assert (listener.counts.posts, listener.counts.matched) == (3, 2)
    assert [new.key for new in run.new] == [post(1).key]
    assert (run.state, run.news, run.as_it_happens, run.report_id, run.counts) == ("changed", True, True, None, None)
    assert [(watch, message.run_id) for watch, message in world.sent] == [("w1", run.id)]
    assert "The Ember mug leaks" in world.sent[0][1].text

    world.now += timedelta(minutes=2)
    await world.read(StreamBatch((post(1), post(4)), cursor="2", at=MONDAY))
    (again,) = await world.tell()
    assert (again.state, again.news, world.judged[1:]) == ("nothing", False, [[post(4).key]])
    assert await world.tell() == []
    (watch, _) = await world.store.watches("local")
    assert (watch.due_at, watch.began_at) == (STREAMED.due_at, None)  # its schedule is as it was
    assert await world.store.past_counts(watch, MONDAY - timedelta(days=1), 9) == []


async def test_a_run_says_what_the_local_judge_decided(world: World) -> None:
    """It has no report that would; nothing is there where nothing was promised."""
    await world.read(StreamBatch((post(1),), cursor="1"))
    world.agreement = Agreement(0.95, 0.95, 1, 1, 200, Usage(285, 4, 0.01, 1))
    (run,) = await world.tell()

    (stored,) = await world.store.watch_runs("local", "w1", 1)
    assert stored.agreement == run.agreement == world.agreement
    assert "agreement" not in run.model_copy(update={"agreement": None}).model_dump_json()


async def test_what_a_process_did_not_store_comes_again(world: World) -> None:
    """A batch is stored with the cursor behind it, or neither is; another process reads on when the claim is over."""
    batch = StreamBatch((post(1),), cursor="1")
    await world.read(batch)
    other = world.listener("r2")
    await other.read_once()  # the first one's claim holds

    world.now += timedelta(seconds=61)
    world.stream.batches.append(StreamBatch((post(2, "My Ember mug, at last"),), cursor="2"))
    with pytest.raises(Unreachable):
        await other.read_once()

    assert (other.counts.posts, len(await world.store.posts_of_watch(("local", "w1"), 9))) == (1, 2)
    assert not await world.store.keep_stream("bluesky", "r1", StreamBatch(cursor="0"), {}, world.now)
    position = await world.store.take_stream("bluesky", "r2", world.now, world.now)
    assert position is not None
    assert position.cursor == "2"


async def test_a_killed_notifier_sends_again_under_the_same_id(world: World) -> None:
    """The receiver sees one run, and nothing is lost."""
    await world.read(StreamBatch((post(1),), cursor="1"))
    world.dies = True
    with pytest.raises(asyncio.CancelledError):
        await world.tell()
    world.dies = False
    (run,) = await world.tell()

    assert [message.run_id for _, message in world.sent] == [run.id, run.id]
    assert await world.store.pending_watches(world.now, 9) == []


async def test_messages_are_batched_and_bounded(world: World) -> None:
    """A minute between two, so many an hour, and then one with all that came."""
    for number in range(MOST_AN_HOUR):
        await world.read(
            StreamBatch((post(number, f"Ember mug, day {number}: {'x' * number}"),), cursor=f"{number:03}")
        )
        await world.tell()
        await world.read(StreamBatch((post(100 + number, f"My Ember mug {number}"),), cursor=f"{number:03}5"))
        assert await world.tell() == []
        world.now += timedelta(seconds=61)
    assert len(world.sent) == MOST_AN_HOUR
    assert await world.tell() == []

    world.now += timedelta(hours=1)
    (run,) = await world.tell()
    assert len(world.sent) == MOST_AN_HOUR + 1
    assert run.kept == 1


async def test_a_failed_judge_tells_nobody(world: World) -> None:
    """What nobody judged waits, and is told when it is judged; meanwhile no process asks the judge."""
    await world.read(StreamBatch((post(1),), cursor="1"))
    world.judge_works = False
    assert await world.tell() == []
    world.judge_works = True
    assert await world.tell() == []
    world.now += timedelta(seconds=11)
    assert [run.news for run in await world.tell()] == [True]


async def test_deleted_posts_are_gone_everywhere(world: World) -> None:
    """Before they were judged, and afterwards: from messages that are sent again and from what the watch has seen."""
    await world.read(StreamBatch((post(1),), cursor="1"))
    await world.tell()
    world.now += timedelta(minutes=2)
    gone = (post(1).key, "bluesky:at://did:plc:a2/*")
    listener = await world.read(
        StreamBatch((post(2, "An Ember mug"),), cursor="2"), StreamBatch(deleted=gone, cursor="3")
    )

    (run,) = await world.store.watch_runs("local", "w1", 9)
    assert (run.new, await world.store.pending_watches(world.now, 9)) == ((), [])
    assert all(entry.item is None for entry in await world.store.seen_posts(STREAMED, 9))
    assert listener.counts.deleted == 1


async def archived(world: World, word: str) -> set[str]:
    """Keys of what the archive finds."""
    matches = await world.store.matches("local", [word], None, ArchiveFilters(kept=True), 99)
    return {entry.id[0] for entry in matches.matches}


async def test_what_was_kept_is_in_the_archive(world: World) -> None:
    """Under an import of its own, which can be removed; what is about something else is not."""
    await world.read(StreamBatch((post(1), post(2, "Ember mug? not mine")), cursor="1"))
    await world.tell()

    assert await archived(world, "ember") == {post(1).key}
    (held,) = await world.store.imports("local")
    assert (held.id, held.identity.form, held.progress.items) == ("stream_w1", "stream", 1)
    assert await world.store.remove_import("local", held.id) == 1
    assert await archived(world, "ember") == set()


async def test_what_is_deleted_leaves_the_archive(world: World) -> None:
    """A post, all of an account, and a reply that stands below another post; what others wrote stays."""
    words = ("An Ember mug", "Ember mug: a gift", "My Ember mug leaks again")
    await world.read(StreamBatch(tuple(post(n, text) for n, text in enumerate(words)), cursor="1"))
    await world.tell()
    reply = "at://did:plc:b/app.bsky.feed.post/1"
    below = (Comment(id=reply, body="A gasket helped"), Comment(id=f"{reply}2", body="No gasket here"))
    holder = FileIdentity("f", "jsonl", "d")
    begun = await world.store.begin_import("local", holder)
    with_replies = ImportBatch((post(2, words[2]).edited(comments=below),), (), {}, ImportPosition(1, 1))
    await world.store.keep_batch("local", begun, with_replies)
    assert len((await world.store.facts("local", [post(2).key]))[post(2).key].comments) == 2

    gone = (post(0).key, "bluesky:at://did:plc:a1/*", f"bluesky:{reply}")
    listener = await world.read(StreamBatch(deleted=gone, cursor="2"))

    assert await archived(world, "ember") == {post(2).key}
    left = (await world.store.facts("local", [post(2).key]))[post(2).key]
    assert [comment.body for comment in left.comments] == ["No gasket here"]
    assert listener.counts.deleted == 3


async def test_what_is_deleted_while_it_is_judged_is_not_kept(world: World) -> None:
    """Neither in the archive nor in the run, though the judge had it already."""
    await world.read(StreamBatch((post(1), post(2, "An Ember mug")), cursor="1"))
    judge = world.judge

    async def slow(watch: Watch, posts: Sequence[Item]) -> Gated:
        await world.read(StreamBatch(deleted=(post(1).key,), cursor="2"))
        return await judge(watch, posts)

    await replace(world.notifier(), judge=slow).run_pending()

    (run,) = await world.store.watch_runs("local", "w1", 9)
    assert [new.key for new in run.new] == [post(2).key]
    assert await archived(world, "ember") == {post(2).key}


async def test_a_post_that_the_provider_refuses_stands_alone(world: World) -> None:
    """The others are judged and told, and the message says that one was not."""
    posts = [post(n, f"Ember mug, day {n}: {'x' * n}") for n in range(20)]
    posts[7] = post(7, "refused: Ember mug")
    posts[8] = post(8, "refused, too: Ember mug")
    await world.read(StreamBatch(tuple(posts), cursor="1"))
    (run,) = await world.tell()

    assert (run.kept, run.unjudged) == (18, 2)
    assert "Not judged: 2 further posts" in world.sent[0][1].text
    assert len(world.judged) < 20
    world.now += timedelta(minutes=2)
    assert await world.tell() == []


@pytest.mark.parametrize("stays", [True, False])
async def test_an_http_error_is_a_posts_fault_only_when_it_stays(world: World, stays: bool) -> None:
    """A server that fails for a moment refuses nothing for ever."""
    notifier, fails = world.notifier(), True

    async def judge(watch: Watch, posts: Sequence[Item]) -> Gated:
        if fails and any(each.key == post(1).key for each in posts):
            return Gated.opened(posts, "http_error")
        return await world.judge(watch, posts)

    notifier = replace(notifier, judge=judge)
    await world.read(StreamBatch((post(1),), cursor="01"))
    runs = []
    for turn in range(2, 2 + MOST_LONE_FAILURES):
        await world.read(StreamBatch((post(turn, f"Ember mug {turn}: {'x' * turn}"),), cursor=f"{turn:02}"))
        runs += [run for _, run in await notifier.run_pending()]
        world.now += timedelta(hours=1)
        fails = stays
    keys = [each.key for run in runs for each in run.new]

    assert [run.unjudged for run in runs] == ([0, 0, 1] if stays else [0, 0, 0])
    assert (post(1).key in keys) is not stays


async def test_a_receiver_that_does_not_answer_holds_up_no_other_watch(world: World) -> None:
    """Another look tells the others meanwhile, and leaves the first alone."""
    await world.store.add_watch(replace(STREAMED, id="w3", name="third", query="Oura ring"), 9)
    await world.read(StreamBatch((post(1),), cursor="1"))
    begun, answered, notifier = asyncio.Event(), asyncio.Event(), world.notifier()

    async def send(watch: Watch, target: Target, message: Message) -> Delivery:
        if watch.id == "w1":
            begun.set()
            await answered.wait()
        return await world.send(watch, target, message)

    notifier = replace(notifier, watching=replace(notifier.watching, send=send))

    async def looking() -> Sequence[tuple[Watch, WatchRun]]:
        return await notifier.run_pending()

    first = asyncio.create_task(looking())
    await begun.wait()
    await world.read(StreamBatch((post(2, "My Oura ring"),), cursor="2"))
    ((watch, _),) = await notifier.run_pending()
    answered.set()

    assert watch.id == "w3"
    assert [each.id for each, _ in await first] == ["w1"]
    assert [watch_id for watch_id, _ in world.sent] == ["w3", "w1"]


async def test_a_first_run_that_tells_nobody_leaves_what_waits(world: World) -> None:
    """A post that came by the stream is told, although the first run of the schedule found it, too."""
    await world.read(StreamBatch((post(1),), cursor="1"))
    notifier = world.notifier()

    async def analyze(watch: Watch, ask: Ask, run_id: str) -> Report:
        return about("Ember", heard("The Ember mug leaks", place="bluesky", key=post(1).key))

    first = await replace(notifier.watching, analyze=analyze).run(STREAMED)
    (run,) = await world.tell()

    assert (first.state, first.news, first.kept) == ("baseline", False, 1)
    assert ([each.key for each in run.new], run.news) == ([post(1).key], True)


async def test_what_is_not_told_here_is_left_alone(world: World) -> None:
    """Its posts and its first run wait for who tells it."""
    await world.read(StreamBatch((post(1),), cursor="1"))
    elsewhere = replace(world.notifier(), notifies=lambda watch: False)

    async def ask_of(watch: Watch) -> Ask:
        raise AssertionError("its first run is another's")

    assert (await elsewhere.run_pending(), await elsewhere.run_pending()) == ([], [])
    assert await elsewhere.run_histories(ask_of) == []
    assert (world.judged, world.sent) == ([], [])
    assert len(await world.tell()) == 1


async def test_first_runs_that_another_makes_hold_up_none(world: World) -> None:
    """A process that was killed in some leaves the others to everybody."""
    for number in range(5):
        await world.store.add_watch(replace(STREAMED, id=f"n{number}", name=f"new {number}"), 9)
    new = await world.store.without_history(world.now, 9)
    for tenant, watch_id in new[:4]:
        await world.store.claim_watch(tenant, watch_id, world.now, world.now + timedelta(minutes=10), "stream-dead")

    assert await world.store.without_history(world.now, 9) == new[4:]
    assert await world.store.without_history(world.now + timedelta(minutes=11), 9) == new


async def test_a_message_says_how_many_more_there_are(world: World) -> None:
    """Of what came within an hour nothing is lost: it is judged, listed or counted, and in the archive."""
    count = MOST_WAITING + 100
    words = [f"Ember mug {n}: {' '.join(random.Random(n).choices(WORDS, k=20))}" for n in range(count)]
    for at in (0, count // 2):
        batch = tuple(post(n, words[n]) for n in range(at, at + count // 2))
        await world.read(StreamBatch(batch, cursor=str(at + 1)))
    (run,) = await world.tell()

    assert (len(run.new), run.unjudged, max(map(len, world.judged))) == (MOST_JUDGED, 100, MOST_JUDGED)
    assert len(run.new) + run.more == run.kept == MOST_WAITING
    assert "and 990 more, all in the archive" in world.sent[0][1].text
    (held,) = await world.store.imports("local")
    assert held.progress.items == MOST_WAITING


async def test_watches_whose_turn_is_later_are_in_nobodys_way(world: World) -> None:
    """Those that were told a moment ago are left out of those that are looked at."""
    await world.store.add_watch(replace(STREAMED, id="w3", name="third", query="Oura ring"), 9)
    await world.read(StreamBatch((post(1),), cursor="1"))
    await world.tell()
    await world.read(StreamBatch((post(2, "An Ember mug"),), cursor="2"))
    world.now += timedelta(seconds=1)
    await world.read(StreamBatch((post(3, "My Oura ring"),), cursor="3"))

    assert await world.store.pending_watches(world.now, 1) == [("local", "w3")]


@pytest.mark.parametrize("told", [True, False])
async def test_a_new_watch_begins_with_what_was_written_before(world: World, told: bool) -> None:
    """One run says what a report found, to those who want it; the first run of the schedule does not say it again."""
    await world.store.drop_watch("local", "w1")
    await world.store.add_watch(replace(STREAMED, tell_first=told), 9)
    notifier, asks = world.notifier(), []

    async def analyze(watch: Watch, ask: Ask, run_id: str) -> Report:
        asks.append(ask)
        return about("Ember", heard("The Ember mug leaks", place="bluesky"))

    notifier = replace(notifier, watching=replace(notifier.watching, analyze=analyze))

    async def ask_of(watch: Watch) -> Ask:
        return Ask.of(watch, sources=("archive", "bluesky"))

    ((_, run),) = await notifier.run_histories(ask_of)

    assert (run.state, run.as_it_happens, run.counts, run.news, len(run.new)) == ("baseline", True, None, told, 1)
    assert len(world.sent) == told
    assert await notifier.run_histories(ask_of) == []
    assert asks[0].sources == ("archive", "bluesky")
    known = post(1).edited(key=run.new[0].key)
    await world.read(StreamBatch((known,), cursor="1"))
    assert [run.news for run in await world.tell()] == [False]
    (watch,) = [each for each in await world.store.watches("local") if each.id == "w1"]
    assert watch.began_at is None
    first = await notifier.watching.run(watch)
    assert (first.state, first.news, len(world.sent)) == ("baseline", False, told)


async def test_runs_of_streams_count_in_no_week(world: World) -> None:
    """They are no runs of the schedule that heard nothing, and between two that failed they change nothing."""
    await world.read(StreamBatch((post(1),), cursor="1"))
    await world.tell()
    since = MONDAY - timedelta(days=1)
    assert await world.store.kept_counts(STREAMED, since, 9) == []

    async def fail(watch: Watch, ask: Ask, run_id: str) -> Report:
        raise NotFound("nothing answers")

    watching = replace(world.notifier().watching, analyze=fail)
    assert (await watching.run(STREAMED)).news
    world.now += timedelta(minutes=2)
    await world.read(StreamBatch((post(2, "An Ember mug"),), cursor="2"))
    await world.tell()
    assert not (await watching.run(STREAMED)).news
    assert len(await world.store.kept_counts(STREAMED, since, 9)) == 2


async def test_the_sample_world_has_a_stream_of_its_own(world: World) -> None:
    """Its watches are told of made-up posts alone, and how far those were read moves no cursor of the real stream."""
    await world.store.change_watch(replace(STREAMED, sandbox=True))
    await world.read(StreamBatch((post(1),), cursor="1"))
    assert await world.store.pending_watches(world.now, 9) == []
    sample = replace(world.listener("r2"), sample=True, follows=lambda watch: watch.sandbox)
    with pytest.raises(Unreachable):
        await sample.read_once()
    (run,) = await world.tell()
    assert (run.sample, run.news) == (True, True)
    real = await world.store.take_stream("bluesky", "r1", world.now, world.now)
    assert real is not None
    assert real.cursor == "1"


async def test_only_what_follows_streams_is_looked_for(world: World) -> None:
    """A watch that is paused, changed or removed counts from the next refresh on."""
    listener = world.listener()
    await listener.refresh()
    assert listener.names.find("Ember mug") == [("local", "w1")]
    await world.store.change_watch(replace(STREAMED, query="Oura"))
    fresh = world.listener()
    await fresh.refresh()
    assert (fresh.names.find("Ember mug"), fresh.names.find("Oura")) == ([], [("local", "w1")])
    fresh.follows = lambda watch: "feeds" not in watch.sources
    await world.store.change_watch(replace(STREAMED, query="Oura", sources=("feeds",)))
    fresh._next_refresh = 0.0
    await fresh.refresh()
    assert fresh.names.find("Oura") == []
    await world.store.change_watch(replace(STREAMED, paused=True))
    assert await world.store.streamed_ids() == []
    await world.store.drop_watch("local", "w1")
    kept = await world.store.keep_stream(
        "bluesky", "r1", StreamBatch((post(1),)), {post(1).key: [("local", "w1")]}, MONDAY
    )
    assert (kept, await world.store.pending_watches(world.now, 9)) == (False, [])


async def test_posts_about_something_else_lift_no_bound(world: World) -> None:
    """However many were judged in between, so many messages an hour are told; of such runs nothing is kept."""
    about = [True] * (MOST_AN_HOUR - 1) + [False] * (MOST_AN_HOUR + 1) + [True] * 2
    for number, mine in enumerate(about):
        text = f"Ember mug, day {number}: {'x' * number}" if mine else f"Ember mug {number}, not mine"
        await world.read(StreamBatch((post(number, text),), cursor=f"{number:03}"))
        await world.tell()
        world.now += timedelta(seconds=61 if mine else 1)

    assert len(world.sent) == MOST_AN_HOUR
    assert len(await world.store.watch_runs("local", "w1", 99)) == MOST_AN_HOUR


async def test_a_paused_watch_is_told_nothing(world: World) -> None:
    """What waited for it is forgotten, and what was found for it before its listener knows is not stored."""
    await world.read(StreamBatch((post(1),), cursor="1"))
    listener = world.listener()
    await listener.refresh()
    await world.store.change_watch(replace(STREAMED, paused=True))
    world.stream.batches.append(StreamBatch((post(2, "An Ember mug"),), cursor="2"))
    with pytest.raises(Unreachable):
        await listener.read_once()
    assert await world.tell() == []

    await world.store.change_watch(STREAMED)
    assert (await world.tell(), world.judged) == ([], [])


async def test_what_waits_for_a_judge_is_bounded(world: World) -> None:
    """The newest posts are kept."""
    for number in range(3):
        world.now += timedelta(seconds=1)
        posts = tuple(post(1_000 * number + n) for n in range(400))
        await world.read(StreamBatch(posts, cursor=str(number)))

    waiting = await world.store.posts_of_watch(("local", "w1"), 2 * MOST_WAITING)
    assert len(waiting) == MOST_WAITING
    assert {each.key for each in waiting} >= {post(2_000 + n).key for n in range(400)}


async def test_a_judge_that_fails_is_asked_less_and_less(world: World) -> None:
    """Each call may be paid."""
    await world.read(StreamBatch((post(1),), cursor="1"))
    world.judge_works = False
    notifier = world.notifier()
    for _ in range(100):
        await notifier.run_pending()
        world.now += timedelta(seconds=5)
    assert len(world.judged) == 6

    world.now += timedelta(minutes=10)
    world.judge_works = True
    assert [run.news for _, run in await notifier.run_pending()] == [True]


async def test_a_defect_for_one_watch_leaves_the_others(world: World) -> None:
    """It is logged, and the posts wait."""
    await world.store.add_watch(replace(STREAMED, id="w3", name="third"), 9)
    await world.read(StreamBatch((post(1),), cursor="1"))
    world.broken = "w1"

    assert [run.watch_id for run in await world.tell()] == ["w3"]
    later = world.now + timedelta(minutes=1)
    assert list(await world.store.pending_watches(later, 9)) == [("local", "w1")]


async def test_a_defect_does_not_end_a_listener(world: World) -> None:
    """It reads again, later each time."""
    waits: list[float] = []

    async def pause(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            raise asyncio.CancelledError

    listener = replace(world.listener(), stream=Damaged(), pause=pause)
    with pytest.raises(asyncio.CancelledError):
        await listener.run()
    assert waits == [1.0, 2.0, 4.0]


async def test_a_stream_that_another_reads_is_taken_over_soon(world: World) -> None:
    """It is looked at every five seconds, however long the other one reads, and read when its claim is over."""
    await world.read(StreamBatch((post(1),), cursor="1"))
    waits: list[float] = []

    async def pause(seconds: float) -> None:
        waits.append(seconds)
        world.now += timedelta(seconds=seconds)
        if len(waits) == 13:
            raise asyncio.CancelledError

    other = replace(world.listener("r2"), pause=pause)
    with pytest.raises(asyncio.CancelledError):
        await other.run()

    assert waits == [*[5.0] * 12, 1.0]


async def test_damaged_posts_hold_nothing_up(world: World) -> None:
    """As of a version before; they are dropped."""
    await world.read(StreamBatch((post(1),), cursor="1"))
    async with world.store._database.writing() as connection:
        await connection.execute(update(stream_posts).values(facts={"key": 7}))
    assert [run.state for run in await world.tell()] == ["nothing"]
    assert await world.store.pending_watches(world.now, 9) == []
