"""How fast Bluesky's stream is read for many watches over a real socket, and what is lost when its reader is killed.

    python scripts/bench/jetstream_speed.py [--watches 100000] [--posts 1000000] [--kills 5] [--seed 1]

A server in a process of its own sends posts in the envelopes of Jetstream v2, as fast as they are taken; one in a
hundred holds a watched name. They are read by `BlueskyStream`, matched, and stored in SQLite. Prints posts a second,
the memory of the reader, and how many posts wait that should. Then a reader is killed so many times while it reads,
and what waits is counted again. Exits 1 when one is missing or there twice.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import random
import resource
import socket
import sys
import tempfile
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from websockets.asyncio.server import ServerConnection, serve

from api.features.watches.stream_watching import StreamListener
from api.features.watches.watch_ports import WatchId
from api.features.watches.watch_service import utc_now
from api.pipeline.gate.name_index import NameIndex
from api.settings import SourceSettings
from api.sources.bluesky_stream import BlueskyStream
from api.sources.jetstream_frames import COLLECTION
from api.store import open_store
from stream_speed import WORDS, killed, name, store_watches, waiting

FIRST = 24_000_000_000
KIND = "network.bsky.jetstream.subscribeEvents#commit"
BASE32 = "abcdefghijklmnopqrstuvwxyz234567"


def letters(number: int, count: int) -> str:
    """A number in base 32, with leading `a`."""
    return "".join(BASE32[number >> (5 * at) & 31] for at in reversed(range(count)))


def frame(number: int, watches: int, seed: int) -> str:
    """The envelope of a post, the same for the same number."""
    chance = random.Random(seed * 1_000_003 + number)
    words = chance.choices(WORDS, k=chance.randint(5, 40))
    if number % 100 == 0:
        words.insert(chance.randrange(len(words)), name(chance.randrange(watches)))
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime(1_790_000_000 + number // 50))
    record = {"$type": COLLECTION, "createdAt": stamp, "langs": ["en"], "text": " ".join(words)}
    payload = {
        "$type": KIND, "seq": FIRST + number, "did": f"did:plc:{letters(number, 24)}", "time": stamp,
        "rev": letters(number, 13), "operation": "create", "collection": COLLECTION, "rkey": letters(number, 13),
        "record": record, "cid": f"bafyrei{letters(number, 52)}",
    }  # fmt: skip
    return json.dumps({"$type": "message", "payload": payload}, separators=(",", ":"))


def server(port: int, posts: int, watches: int, seed: int) -> None:
    """Send what follows a cursor; a time counts as the beginning."""

    async def send(connection: ServerConnection) -> None:
        assert connection.request is not None
        cursor = int(parse_qs(urlsplit(connection.request.path).query).get("cursor", ["0"])[0])
        begin = cursor - FIRST if FIRST <= cursor < 10**15 else 0
        with suppress(Exception):  # the reader was killed
            for number in range(begin, posts):
                await connection.send(frame(number, watches, seed))
            await asyncio.Event().wait()

    async def run() -> None:
        async with serve(send, "127.0.0.1", port, compression=None):
            await asyncio.Event().wait()

    asyncio.run(run())


async def read(url: str, port: int, posts: int) -> float:
    """Read until the last post; seconds of it, from the first post on."""
    settings = SourceSettings.model_validate({"BLUESKY_URL": f"http://127.0.0.1:{port}", "BLUESKY_VERSION": "v2"})
    store = await open_store(url)
    listener = StreamListener(BlueskyStream(settings), store, NameIndex[WatchId](), f"reader{os.getpid()}", utc_now)
    await listener.refresh()
    began, reading = 0.0, asyncio.create_task(listener.run())
    while True:
        await asyncio.sleep(0.2)
        if listener.counts.posts and not began:
            began = time.perf_counter()
        until = listener.counts.read_until
        if until is not None and until.timestamp() >= 1_790_000_000 + (posts - 1) // 50:
            break
    seconds = time.perf_counter() - began
    await asyncio.sleep(1)
    reading.cancel()
    await asyncio.wait({reading})
    await store.aclose()
    return seconds


def main() -> None:
    """Print each figure as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--watches", type=int, default=100_000)
    parser.add_argument("--posts", type=int, default=1_000_000)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = (port, options.posts, options.watches, options.seed)
    sender = multiprocessing.get_context("spawn").Process(target=server, args=words, daemon=True)
    sender.start()
    due, counts = -(-options.posts // 100), []
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{Path(folder) / 'whole.db'}"
        asyncio.run(store_watches(url, options.watches))
        seconds = asyncio.run(read(url, port, options.posts))
        counts.append(asyncio.run(waiting(url)))
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"{options.posts / seconds:,.0f} posts/s over a socket; {counts[0]:,} of {due:,} wait; {memory:.0f} MB")
        if options.kills:
            url = f"sqlite:///{Path(folder) / 'killed.db'}"
            asyncio.run(store_watches(url, options.watches))
            reading = partial(read, url, port, options.posts)
            counts.append(killed(url, reading, options.posts, options.kills, options.seed))
            print(f"with {options.kills} kills: {counts[1]:,} of {due:,} wait")
    sender.terminate()
    sys.exit(any(count != due for count in counts))


if __name__ == "__main__":
    main()
