"""Watches that notify as it happens: streams are read once for all tenants, matched by name, judged.

Two loops of one process, both repeated safely by another after a kill: `StreamListener` stores posts that hold the
name of a watch together with how far the stream was read; `StreamNotifier` judges what waits, sends it and stores a
run. So no post is lost, and a receiver sees a run that was sent twice under one id.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal, Protocol

from api.core.domain import Agreement
from api.core.items import Gated, Item, sum_of_agreements
from api.core.own_words import own_words
from api.core.text import cut, one_line
from api.core.work import Defect, Failure, contained, translated
from api.errors import ListenpostError, StoreUnavailable
from api.features.watches.watch import Watch
from api.features.watches.watch_ports import (
    STREAM_RUN,
    RunClaim,
    SeenPost,
    Stream,
    StreamBatch,
    Streams,
    Watches,
    WatchId,
)
from api.features.watches.watch_run import NEWS, VERSION, NewPost, WatchRun
from api.features.watches.watch_service import MOST_WORDED, WatchRunner, new_run_id
from api.pipeline.evidence.duplicates import copies_among
from api.reports.keyless.polarity import count_feelings
from api.reports.report import LONGEST_PASSAGE
from api.services.product import Ask

_log = logging.getLogger(__name__)
CLAIM = timedelta(seconds=60)
"""Time after which another process reads a stream whose reader has ended."""
JUDGING = timedelta(minutes=5)
"""Time after which another process judges the posts of a watch, when the one that judged them was killed."""
PAUSE_BETWEEN = timedelta(seconds=60)
"""Shortest time between two messages of a watch; posts that come meanwhile are sent together."""
MOST_AN_HOUR = 12
"""Messages of a watch in an hour; after them what comes goes into one, when an hour has passed since the first."""
MOST_JUDGED = 50
"""Most posts in one call of the judge, and most posts listed in one message, which counts the rest."""
MOST_GATHERED = 1_000
"""Posts that are judged for one message."""
MOST_FAILED = 12
"""Calls of the judge in a row after which its failure is no longer taken for one of a single post."""
# between two looks for watches that were changed, and for those that are gone
_REFRESH_SECONDS, _REMOVAL_SECONDS = 5.0, 30.0
_MOST_PENDING = 1_000
# First runs that are made in one turn, and how long one may take before another process makes it.
_HISTORIES, _HISTORY = 4, timedelta(minutes=10)
# Watches whose posts are judged and sent at a time: a receiver that does not answer takes half a minute.
_AT_ONCE = 16
MOST_LONE_FAILURES = 3
"""Calls for one post alone that end with an HTTP error, after which it counts as refused."""
_BACK_OFF, _LONGEST_BACK_OFF = 0.5, 30.0
# between two looks whether another process still reads a stream
_CLAIM_SECONDS = 5.0
# Why a judge fails that may be one post's fault; a provider refuses a whole call for it.
_OF_A_POST = frozenset({"count_mismatch", "filtered", "http_error", "malformed", "refused", "too_long", "truncated"})
# after a judge that failed, doubled each time: a call that is paid may be what fails
_JUDGE_PAUSE, _LONGEST_JUDGE_PAUSE = timedelta(seconds=10), timedelta(minutes=10)
# Posts in which names are looked for in one turn of a thread.
_PIECE = 200

Judge = Callable[[Watch, Sequence[Item]], Awaitable[Gated]]
"""Judges posts for a watch, within its tenant's limits."""


class Names(Protocol):
    """The names that are looked for; `NameIndex` implements it."""

    def add(self, key: WatchId, query: str, about: str = "") -> None:
        """Also look for the name of a query; it replaces the key's earlier one."""

    def remove(self, key: WatchId) -> None:
        """Look for the name of this key no longer."""

    def find(self, text: str) -> list[WatchId]:
        """Keys of the names that a text holds."""


class StreamStore(Streams, Watches, Protocol):
    """Methods of the store that both loops need."""

    async def forget(self, keys: Sequence[str]) -> int:
        """Delete items everywhere; how many were stored."""

    async def forget_replies(self, keys: Sequence[str]) -> int:
        """Delete comments of stored items that are posts of a stream by these keys; how many were stored."""


@dataclass(slots=True)
class ListenerCounts:
    """Counts of a listener since it began."""

    posts: int = 0
    matched: int = 0
    deleted: int = 0
    """Stored posts and replies that were deleted since their authors deleted them."""
    read_until: datetime | None = None


@dataclass(slots=True)
class StreamListener:
    """Reads one stream, finds names and stores posts that hold one; belongs to one event loop."""

    stream: Stream
    store: StreamStore
    names: Names
    reader: str
    """Name of this process among those that could read the stream."""
    clock: Callable[[], datetime]
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep
    on_match: Callable[[], None] = lambda: None
    """Called after posts were stored that wait for a judge."""
    sample: bool = False
    """Whether the posts are made up."""
    follows: Callable[[Watch], bool] = lambda watch: not watch.sandbox
    """Whether a watch that notifies as it happens gets posts of this stream."""
    counts: ListenerCounts = field(default_factory=ListenerCounts)
    _watched: dict[WatchId, tuple[str, str]] = field(default_factory=dict)
    """Query and description of each watch whose name is looked for."""
    _others: set[WatchId] = field(default_factory=set)
    """Watches that this stream is not for."""
    _refreshed_at: datetime | None = None
    _next_refresh: float = 0.0
    _next_removal: float = 0.0

    @property
    def stored_name(self) -> str:
        """The stream's name in the store: how far made-up posts were read says nothing of real ones."""
        return f"{self.stream.name} (sample)" if self.sample else self.stream.name

    async def run(self) -> None:
        """Read until cancelled; a failure is logged and retried after a growing pause."""
        wait = _BACK_OFF
        while True:
            before = self.counts.posts
            try:
                if not await translated(self.read_once(), f"reading the stream of {self.stream.name}", Defect):
                    await self.pause(_CLAIM_SECONDS)
                    continue
            except (ListenpostError, TimeoutError) as error:
                _log.warning("the stream of %s: %s", self.stream.name, error)
            wait = _BACK_OFF if self.counts.posts > before else min(2 * wait, _LONGEST_BACK_OFF)
            await self.pause(wait)

    async def read_once(self) -> bool:
        """Read one connection to its end; False when another process reads the stream.

        Raises:
            SourceError: the stream cannot be read, or ended.
            StoreUnavailable: the database cannot be used.
        """
        now = self.clock()
        position = await self.store.take_stream(self.stored_name, self.reader, now, now + CLAIM)
        if position is not None and self._refreshed_at is None:  # many names take longer than the claim
            await self.refresh()
            now = self.clock()
            position = await self.store.take_stream(self.stored_name, self.reader, now, now + CLAIM)
        if position is None:
            return False
        claimed = now
        # each sandbox has a stream of its own, so a cursor of the one before leads nowhere in it
        known = not self.sample or self.counts.read_until is not None
        async with aclosing(self.stream.read(position.cursor if known else "")) as batches:
            async for batch in batches:
                now = self.clock()
                if now - claimed > CLAIM / 4:
                    if await self.store.take_stream(self.stored_name, self.reader, now, now + CLAIM) is None:
                        return False
                    claimed = now
                await self.refresh()
                if not await self._keep(batch):
                    return False
        return True

    async def refresh(self) -> None:
        """Take in watches that were added or changed, every few seconds, and leave out those that are gone."""
        if time.monotonic() < self._next_refresh:
            return
        now, since = self.clock(), self._refreshed_at
        changed = await self.store.streamed_watches(since)
        gone: set[WatchId] = set()
        if since is not None and time.monotonic() >= self._next_removal:
            known = self._watched.keys() | self._others | {(watch.tenant, watch.id) for watch in changed}
            if await self.store.streamed_count() != len(known):
                present = set(await self.store.streamed_ids())
                gone = known - present
                if present - known:  # changed by a process whose clock is behind
                    changed = await self.store.streamed_watches(None)
            self._next_removal = time.monotonic() + _REMOVAL_SECONDS
        subjects = {(watch.tenant, watch.id): (watch.query, watch.about) for watch in changed if self.follows(watch)}
        others = {(watch.tenant, watch.id) for watch in changed} - subjects.keys()
        self._others = (self._others | others) - gone - subjects.keys()
        left = gone | others

        def update() -> None:
            for watch_id in left & self._watched.keys():
                self.names.remove(watch_id)
            for watch_id, subject in subjects.items():
                if self._watched.get(watch_id) != subject:
                    self.names.add(watch_id, *subject)

        await asyncio.to_thread(update)
        for watch_id in left:
            self._watched.pop(watch_id, None)
        self._watched.update(subjects)
        # what another process stored while this one looked is looked at again
        self._refreshed_at, self._next_refresh = now - CLAIM, time.monotonic() + _REFRESH_SECONDS

    async def _keep(self, batch: StreamBatch) -> bool:
        matches = await self._matches(batch)
        if batch.deleted and (held := await self.store.held_keys(batch.deleted)):
            self.counts.deleted += await self.store.forget(held) + await self.store.forget_replies(held)
        if not await self.store.keep_stream(self.stored_name, self.reader, batch, matches, self.clock()):
            return False
        self.counts.posts += len(batch.posts)
        self.counts.matched += len(matches)
        self.counts.read_until = batch.at or self.counts.read_until
        if matches:
            self.on_match()
        return True

    async def _matches(self, batch: StreamBatch) -> Mapping[str, Sequence[WatchId]]:
        def find(posts: Sequence[Item]) -> dict[str, list[WatchId]]:
            matches = {}
            for post in posts:
                ids = self.names.find(f"{post.title}\n{post.body}")
                if ids and batch.tenants is not None:
                    ids = [watch_id for watch_id in ids if watch_id[0] in batch.tenants]
                if ids:
                    matches[post.key] = ids
            return matches

        matches: dict[str, list[WatchId]] = {}
        for start in range(0, len(batch.posts), _PIECE):
            matches |= await asyncio.to_thread(find, batch.posts[start : start + _PIECE])
        return matches


_Run = Callable[[RunClaim, datetime], Awaitable[WatchRun | None]]


@dataclass(slots=True)
class _Judged:
    """Result of judging waiting posts; those that were not judged are in none of the lists."""

    relevant: list[Item] = field(default_factory=list)
    others: list[Item] = field(default_factory=list)
    """Judged not to be about the product."""
    refused: list[Item] = field(default_factory=list)
    """Posts that the judge refuses even alone."""
    failed: bool = False
    """Whether the judge failed, so that the remaining posts wait."""
    agreement: Agreement | None = None
    """Agreement over all calls."""


@dataclass(frozen=True, slots=True)
class StreamNotifier:
    """Judges posts that wait, and notifies the receivers."""

    store: StreamStore
    watching: WatchRunner
    judge: Judge
    sample: bool = False
    """Whether the posts are made up."""
    notifies: Callable[[Watch], bool] = lambda watch: True
    """Whether this notifier handles a watch; other watches are skipped."""
    _slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE))
    _under_way: set[WatchId] = field(default_factory=set)
    _untold: set[WatchId] = field(default_factory=set)
    """Watches that `notifies` refused; they are not claimed again."""
    _lone_failures: Counter[str] = field(default_factory=Counter)
    """How often a call for a single post failed, by its key."""
    _pauses: dict[WatchId, timedelta] = field(default_factory=dict)
    """Length of the pause after a watch's judge failed, by watch."""
    _retries: dict[WatchId, datetime] = field(default_factory=dict)
    """When the first run of a watch is tried again, by watch."""

    async def run_pending(self) -> Sequence[tuple[Watch, WatchRun]]:
        """A run of each watch that has posts and whose turn it is, several at a time; raises `StoreUnavailable`."""
        watch_ids = await self.store.pending_watches(self.watching.clock(), _MOST_PENDING)
        return await self._run_each(self._free(watch_ids), self._run, self._pause, JUDGING)

    async def run_histories(self, ask_of: Callable[[Watch], Awaitable[Ask]]) -> Sequence[tuple[Watch, WatchRun]]:
        """The first runs of some new watches, by what `ask_of` asks for each; raises `StoreUnavailable`."""
        now = self.watching.clock()
        new = self._free(await self.store.without_history(now, _MOST_PENDING))
        due = [watch_id for watch_id in new if self._retries.get(watch_id, now) <= now]

        async def run(claim: RunClaim, now: datetime) -> WatchRun | None:
            first = await self.watching.history(claim, await ask_of(claim.watch))
            return None if first is None else await self.watching.sent_and_stored(claim, *first)

        async def retry_later(watch_id: WatchId) -> None:
            self._retries[watch_id] = self.watching.clock() + _LONGEST_JUDGE_PAUSE

        return await self._run_each(due[:_HISTORIES], run, retry_later, _HISTORY)

    def _free(self, watch_ids: Sequence[WatchId]) -> list[WatchId]:
        return [watch_id for watch_id in watch_ids if watch_id not in self._under_way | self._untold]

    async def _run_each(
        self, watch_ids: Sequence[WatchId], run: _Run, pause: Callable[[WatchId], Awaitable[None]], lease: timedelta
    ) -> Sequence[tuple[Watch, WatchRun]]:
        async def run_in_turn(watch_id: WatchId) -> tuple[Watch, WatchRun] | None:
            async with self._slots:
                try:
                    work = self._run_watch(watch_id, run, lease)
                    result = await translated(work, "posts of a stream for a watch", Defect)
                except StoreUnavailable:
                    raise
                except (ListenpostError, TimeoutError) as error:  # of this watch alone; a defect is logged already
                    _log.warning("posts of a stream wait: %s", error)
                    result = False
                if result is False:
                    await pause(watch_id)
                self._under_way.discard(watch_id)
                return result or None

        self._under_way.update(watch_ids)
        try:
            runs = await asyncio.gather(*map(run_in_turn, watch_ids))
        finally:  # cancelled, for example
            self._under_way.difference_update(watch_ids)
        return [run for run in runs if run is not None]

    async def _run_watch(
        self, watch_id: WatchId, run_claimed: _Run, lease: timedelta
    ) -> tuple[Watch, WatchRun] | Literal[False] | None:
        """The run; False where it could not be made, None where another process makes one."""
        now = self.watching.clock()
        claim = await self.store.claim_watch(*watch_id, now, now + lease, f"{STREAM_RUN}{new_run_id()}")
        if claim is None:
            return None
        if not self.notifies(claim.watch):
            self._untold.add(watch_id)
            await self.store.release_claim(claim)
            return None
        run: WatchRun | None = None
        try:
            run = await run_claimed(claim, now)
        finally:
            if run is None:
                await self.store.release_claim(claim)
        if run is None:
            return False
        self._pauses.pop(watch_id, None)
        return claim.watch, run

    async def _pause(self, watch_id: WatchId) -> None:
        pause = min(2 * self._pauses.get(watch_id, _JUDGE_PAUSE / 2), _LONGEST_JUDGE_PAUSE)
        self._pauses[watch_id] = pause
        await self.store.postpone_posts(watch_id, self.watching.clock() + pause)

    async def _next_turn(self, watch: Watch, now: datetime) -> datetime:
        """When the next message may be sent: after a pause, and within the limit for an hour."""
        # those of the schedule stand between them
        runs = await self.store.watch_runs(watch.tenant, watch.id, 2 * MOST_AN_HOUR, news=True)
        sent = [now, *(run.created_at for run in runs if run.as_it_happens)]
        free_again = sent[MOST_AN_HOUR - 1] + timedelta(hours=1) if len(sent) >= MOST_AN_HOUR else now
        return max(free_again, now + PAUSE_BETWEEN)

    async def _run(self, claim: RunClaim, now: datetime) -> WatchRun | None:
        """Make and store a run; None when the judge failed, so that its posts wait for the next try."""
        watch = claim.watch
        watch_id = watch.tenant, watch.id
        waiting = await self.store.posts_of_watch(watch_id, MOST_GATHERED)
        known = {entry.key: entry for entry in await self.store.seen_posts(watch, MOST_WORDED)}
        settled = {entry.key for entry in known.values() if entry.dropped_by in ("", watch.rule)}
        judged = await self._judged(watch, [post for post in waiting if post.key not in settled])
        done = settled | {post.key for post in (*judged.relevant, *judged.others, *judged.refused)}
        over = [post.key for post in waiting if post.key in done]
        if judged.failed and not over:
            return None
        worded = [entry.item for entry in known.values() if entry.item is not None]
        copies = await asyncio.to_thread(copies_among, judged.relevant, worded, self.watching.similarity)
        new = NEWS[watch.only].posts([_new_post(post) for post in judged.relevant if post.key not in copies])
        learnt = [SeenPost(post.key, item=post) for post in judged.relevant]
        learnt += [SeenPost(post.key, watch.rule) for post in judged.others]
        unjudged = await self.store.unjudged(watch_id)
        run = WatchRun(
            version=VERSION, id=claim.run_id, watch_id=watch.id, state="changed" if new else "nothing", reason=None,
            report_id=None, counts=None, new=new[:MOST_JUDGED], kept=len(judged.relevant), unusual=(), looked_at=0,
            new_aspects=(), gaps=(), sample=self.sample or watch.sandbox, created_at=now, as_it_happens=True,
            more=len(new[MOST_JUDGED:]), unjudged=len(judged.refused) + unjudged,
            agreement=judged.agreement,
        )  # fmt: skip
        following = await self._next_turn(watch, now)
        return await self.watching.sent_and_stored(
            claim, run, learnt, over, judged_from=following, unjudged_before=unjudged
        )

    async def _judged(self, watch: Watch, posts: Sequence[Item]) -> _Judged:
        """Judge posts in groups; a group whose call fails is halved until the failing post is alone."""
        result, failures = _Judged(), 0
        calls = deque(posts[start : start + MOST_JUDGED] for start in range(0, len(posts), MOST_JUDGED))
        while calls:
            some = calls.popleft()
            gated = await contained(self.judge(watch, some), "judging posts of a stream")
            if not isinstance(gated, Failure) and all(verdict.judge for verdict in gated.verdicts):
                failures = 0
                for post, verdict in zip(some, gated.verdicts, strict=True):
                    (result.relevant if verdict.relevant else result.others).append(post)
                result.agreement = sum_of_agreements((result.agreement, gated.agreement))
                continue
            reason = gated.message if isinstance(gated, Failure) else gated.reason
            failures += 1
            if reason not in _OF_A_POST or failures >= MOST_FAILED:
                _log.warning("posts of a stream wait for a judge: %s", reason)
                result.failed = True
                break
            if len(some) > 1:
                middle = len(some) // 2
                calls += [some[:middle], some[middle:]]  # behind others, of which one may show that the judge works
            elif self._is_refused(some[0], reason):
                result.refused.append(some[0])
        if not (result.relevant or result.others):  # nothing shows that the judge works
            result.failed = bool(posts)
        if result.failed:
            result.refused = []
        order = {post.key: number for number, post in enumerate(posts)}
        result.relevant.sort(key=lambda post: order[post.key])
        return result

    def _is_refused(self, post: Item, reason: str | None) -> bool:
        """Whether a call for one post failed because of the post; an HTTP error is of the server, unless it stays."""
        if reason != "http_error":
            return True
        if len(self._lone_failures) > _MOST_PENDING:
            self._lone_failures.clear()
        self._lone_failures[post.key] += 1
        return self._lone_failures[post.key] >= MOST_LONE_FAILURES


def _new_post(post: Item) -> NewPost:
    words = one_line(own_words(post.body)) or one_line(post.title)
    praise, complaints = count_feelings(words)
    passage = cut(words, LONGEST_PASSAGE)
    return NewPost(
        key=post.key, source=post.source, title=post.title, url=post.url, created_at=post.created_at,
        passage="" if passage == post.title else passage, complains=complaints > praise,
    )  # fmt: skip
