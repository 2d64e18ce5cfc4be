"""How fast names of many watches are found in posts, and posts that hold one are stored, on one core.

    python scripts/bench/stream_speed.py [--watches 100000] [--posts 100000] [--seed 1]

Posts are made of common words and, one in a hundred, of a watched name. Prints the time and memory of making the index,
and posts a second for finding names alone and for reading, finding and storing without a socket. Exits 1 when a post
is missing.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import resource
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from sqlalchemy import func, select

from api.core.items import Item
from api.errors import Unreachable
from api.features.watches.stream_watching import StreamListener
from api.features.watches.watch import Target, Watch, new_watch
from api.features.watches.watch_ports import StreamBatch, WatchId
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
    """A watch of each name, that follows streams; `receiver` is the address of a webhook."""
    notify = (Target("webhook", receiver),) if receiver else ()
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


async def read_all(url: str, stream: GeneratedStream, names: NameIndex[WatchId]) -> tuple[float, float]:
    """Read to the end; seconds by the clock and of processor time, from the first batch on."""
    store: SqlStore = await open_store(url)
    listener = StreamListener(stream, store, names, "reader", utc_now)
    await listener.refresh()
    began, used = time.perf_counter(), time.process_time()
    with suppress(Unreachable):
        await listener.read_once()
    took = time.perf_counter() - began, time.process_time() - used
    await store.aclose()
    return took


async def waiting(url: str) -> int:
    """Posts that wait for a judge."""
    database = Database(engine_url(url))
    async with database.reading() as connection:
        count = await connection.scalar(select(func.count()).select_from(stream_posts))
    await database.aclose()
    return count or 0


def main() -> None:
    """Print each figure as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--watches", type=int, default=100_000)
    parser.add_argument("--posts", type=int, default=100_000)
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
        seconds, used = asyncio.run(read_all(url, stream, names))
        count = asyncio.run(waiting(url))
        rates = f"{options.posts / seconds:,.0f} posts/s, {options.posts / used:,.0f} per second of processor time"
        print(f"read, found, stored: {rates}; {count:,} posts wait", flush=True)
    sys.exit(0 if count == options.posts // 100 else 1)


if __name__ == "__main__":
    main()
