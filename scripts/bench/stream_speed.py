"""How fast a stream is read for many watches, and whether anything is lost when its reader is killed.

    python scripts/bench/stream_speed.py [--watches 100000] [--posts 100000] [--seconds 60] [--kills 5] [--seed 1]

Posts are made of common words and, one in a hundred, of a watched name. Prints posts a second for finding names alone
and for reading, finding and storing, and the seconds from a post to the receiver's file at 50 posts a second. Then
a reader is killed so many times at random, and the posts that wait are compared with those that hold a name. Exits 1
when one is missing.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import resource
import signal
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from sqlalchemy import func, select

from api import bootstrap
from api.bootstrap.app_context import open_app_context
from api.bootstrap.stream_work import listen
from api.core.items import Item
from api.errors import Unreachable
from api.features.watches.stream_watching import StreamListener
from api.features.watches.watch import Target, Watch, new_watch
from api.features.watches.watch_ports import StreamBatch, WatchId
from api.features.watches.watch_run import WatchRun
from api.features.watches.watch_service import utc_now
from api.pipeline.gate.name_index import NameIndex
from api.store import SqlStore, open_store
from api.store.database import Database, engine_url
from api.store.tables import stream_posts, watches
from api.store.watch_repository import columns_of_watch

BATCH = 500
SYLLABLES = "ka lo mi ra tu ne so pi va zu he qui dor mel tan bri sky lab flow ify".split()
WORDS = (
    "the my a this it is was not very so and but with for from day week phone app time people really just good bad "
    "works broke bought sold new old morning coffee train again never always why how what when two three".split()
)
SENT_AT = datetime(2026, 11, 30, tzinfo=UTC)


def name(number: int) -> str:
    """A name that no other watch has: three syllables and a figure."""
    chance = random.Random(number)
    return f"{''.join(chance.choices(SYLLABLES, k=3))}{number}"


def batch(number: int, named: int, seed: int) -> StreamBatch:
    """The posts of a batch, the same for the same number; every hundredth holds one of the names."""
    chance = random.Random(seed * 1_000_003 + number)
    posts = []
    for at in range(BATCH):
        words = chance.choices(WORDS, k=chance.randint(5, 40))
        if at % 100 == 0:
            words.insert(chance.randrange(len(words)), name(chance.randrange(named)))
        key = f"bluesky:at://did:plc:{number}/app.bsky.feed.post/{at}"
        posts.append(Item(key=key, id=key, source="bluesky", title="", body=" ".join(words), created_at=SENT_AT))
    return StreamBatch(tuple(posts), cursor=f"{number + 1:09}", at=SENT_AT)


@dataclass(frozen=True, slots=True)
class GeneratedStream:
    """So many batches; then its connection ends."""

    batches: int
    named: int
    seed: int
    name: str = "bluesky"

    async def read(self, cursor: str) -> AsyncGenerator[StreamBatch]:
        """From the batch that the cursor names."""
        for number in range(int(cursor or 0), self.batches):
            yield batch(number, self.named, self.seed)
        raise Unreachable("bluesky", "the stream is over")


def made_watches(count: int, receiver: str = "") -> Iterator[Watch]:
    """A watch of each name, that follows streams; `receiver` is a file."""
    notify = (Target("file", receiver),) if receiver else ()
    for number in range(count):
        watch = new_watch("local", name(number), "daily 08:00", utc_now())
        yield replace(watch, id=f"w{number}", as_it_happens=True, notify=notify)


async def store_watches(url: str, count: int, receiver: str = "") -> None:
    """In one transaction, which `add_watch` would take one each for; added an hour ago, with their history told."""
    await (await open_store(url)).aclose()
    database = Database(engine_url(url))
    async with database.writing(alone=True) as connection:
        past = {"streamed_at": utc_now() - timedelta(hours=1)}
        rows = [
            {"tenant": watch.tenant, "id": watch.id, "created_at": watch.created_at, **columns_of_watch(watch), **past}
            for watch in made_watches(count, receiver)
        ]
        for start in range(0, len(rows), 1_000):
            await connection.execute(database.insert(watches), rows[start : start + 1_000])
    await database.aclose()


async def read_all(
    url: str,
    stream: GeneratedStream,
    names: NameIndex[WatchId] | None = None,
    begin: Callable[[], object] = lambda: None,
) -> float:
    """Read to the end; seconds from the first batch on, before which `begin` is called."""
    store: SqlStore = await open_store(url)
    listener = StreamListener(
        stream, store, NameIndex[WatchId]() if names is None else names, f"reader{os.getpid()}", utc_now
    )
    await listener.refresh()
    begin()
    began = time.perf_counter()
    while True:
        try:
            await listener.read_once()
        except Unreachable:
            await store.aclose()
            return time.perf_counter() - began
        await asyncio.sleep(1)  # the claim of the reader that was killed is not over


async def waiting(url: str) -> int:
    """Posts that wait for a judge."""
    database = Database(engine_url(url))
    async with database.reading() as connection:
        count = await connection.scalar(select(func.count()).select_from(stream_posts))
    await database.aclose()
    return count or 0


def killed(url: str, read: Callable[[], Coroutine[Any, Any, float]], posts: int, kills: int, seed: int) -> int:
    """Read in processes that are killed at random places of so many posts; how many wait at the end."""
    marks = sorted(random.Random(seed).sample(range(1, posts // 100), kills))
    for mark in (*marks, None):
        process = os.fork()
        if process == 0:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            asyncio.run(read())
            os._exit(0)
        if mark is not None:
            while asyncio.run(waiting(url)) < mark:
                time.sleep(0.1)
            os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        print(f"  {asyncio.run(waiting(url)):,} posts wait when a reader has ended", flush=True)
    return asyncio.run(waiting(url))


@dataclass(frozen=True, slots=True)
class LiveStream:
    """50 posts a second, of which one holds the name of a watch that no other post holds."""

    seconds: int
    sent: dict[str, float]
    """When each of those was sent, by key."""
    name: str = "bluesky"

    async def read(self, cursor: str) -> AsyncGenerator[StreamBatch]:
        """Once, then nothing."""
        for number in range(int(cursor or 0), self.seconds):
            posts = list(batch(number, 1, 1).posts[1:50])
            key = f"bluesky:at://did:plc:live/app.bsky.feed.post/{number}"
            words = f"my {name(number)} broke on the train this morning"
            posts.append(posts[0].edited(key=key, id=key, body=words))
            self.sent[key] = time.perf_counter()
            yield StreamBatch(tuple(posts), cursor=f"{number + 1:09}", at=SENT_AT)
            await asyncio.sleep(1)
        await asyncio.Event().wait()


async def delays(url: str, seconds: int) -> list[float]:
    """Seconds from each post to its message, with the local judge and a file as the receiver."""
    os.environ |= {
        "LISTENPOST_MODE": "live",
        "LISTENPOST_DATABASE_URL": url,
        "LISTENPOST_LIMIT_REQUESTS_PER_MINUTE": "0",
    }
    sent: dict[str, float] = {}
    came: list[float] = []
    context = await open_app_context(bootstrap.load_settings())
    await context.product()
    done = asyncio.Event()

    def note(watch: Watch, run: WatchRun) -> None:
        came.extend(time.perf_counter() - sent[post.key] for post in run.new)
        if len(came) == seconds:
            done.set()

    task = asyncio.create_task(listen(context, [LiveStream(seconds, sent)], note))
    with suppress(TimeoutError):
        await asyncio.wait_for(done.wait(), 300 + 2 * seconds)
    task.cancel()
    await asyncio.wait({task})
    await context.aclose()
    return sorted(came)


def main() -> None:
    """Print each figure as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--watches", type=int, default=100_000)
    parser.add_argument("--posts", type=int, default=100_000)
    parser.add_argument("--seconds", type=int, default=60, help="of the stream whose messages are timed")
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    stream = GeneratedStream(options.posts // BATCH, options.watches, options.seed)
    names: NameIndex[WatchId] = NameIndex()
    began = time.process_time()
    for watch in made_watches(options.watches):
        names.add((watch.tenant, watch.id), watch.query)
    built = time.process_time() - began
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{len(names):,} names: {built:.1f} s of processor time, {memory:.0f} MB in all", flush=True)
    texts = [post.body for number in range(20) for post in batch(number, options.watches, options.seed).posts]
    began = time.process_time()
    held = sum(len(names.find(text)) for text in texts)
    seconds = time.process_time() - began
    print(
        f"finding names: {len(texts) / seconds:,.0f} posts per second of one core ({held} of {len(texts):,} hold one)"
    )
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/stream.db"
        asyncio.run(store_watches(url, options.watches))
        used = 0.0

        def note() -> None:
            nonlocal used
            used = time.process_time()

        seconds = asyncio.run(read_all(url, stream, names, note))
        used = time.process_time() - used
        count = asyncio.run(waiting(url))
        rates = f"{options.posts / seconds:,.0f} posts/s, {options.posts / used:,.0f} per second of processor time"
        print(f"read, found, stored: {rates}; {count:,} posts wait", flush=True)
        url = f"sqlite:///{folder}/live.db"
        asyncio.run(store_watches(url, options.watches, f"{folder}/told.jsonl"))
        late = asyncio.run(delays(url, options.seconds))
        middle, most = late[len(late) // 2], late[int(len(late) * 0.95)]
        print(f"{len(late)} of {options.seconds} posts told: {middle:.1f} s in the median, {most:.1f} s at 95 %")
        url = f"sqlite:///{folder}/killed.db"
        asyncio.run(store_watches(url, options.watches))
        again = killed(url, partial(read_all, url, stream), options.posts, options.kills, options.seed)
        print(f"with {options.kills} kills: {again:,} posts wait", flush=True)
    sys.exit(0 if count == again == options.posts // 100 else 1)


if __name__ == "__main__":
    main()
