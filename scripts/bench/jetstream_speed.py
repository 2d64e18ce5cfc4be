"""36 hours of Bluesky through the whole of `listenpost listen`: speed, lag, memory, and what kills lose or repeat.

    python scripts/bench/jetstream_speed.py [--posts 4500000] [--watches 100000] [--every 500] [--kills 5]
        [--seconds 60] [--minutes 60] [--seed 1]

A server in a process of its own makes posts in the envelopes of Jetstream v2 and sends them as fast as they are taken;
one of `--every` holds a watched name. `listenpost listen` reads them, finds names, judges without a model, stores in
SQLite and tells a webhook of this process. It is killed (SIGKILL) so many times at random places and started anew. When
all posts are stored, or after so many minutes, the server sends 50 posts a second for `--seconds`, of which one holds
the name of a watch, and the time until each arrives is measured. Prints a line every half a minute, then posts a
second, and how many posts were lost or told under two run ids. Exits 1 when one was.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import random
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from api.sources.jetstream_frames import COLLECTION
from stream_speed import WORDS, name, store_watches

FIRST = 24_000_000_000
KIND = "network.bsky.jetstream.subscribeEvents#commit"
BASE32 = "abcdefghijklmnopqrstuvwxyz234567"
RATE = 50
"""Posts a second of the network."""
LOOK_SECONDS, PRINTED_SECONDS = 1.0, 30.0
# in which what waits is told, also what a killed process had claimed for five minutes
_END_SECONDS = 400.0


def letters(number: int, count: int) -> str:
    """A number in base 32, with leading `a`."""
    return "".join(BASE32[number >> (5 * at) & 31] for at in reversed(range(count)))


def key_of(number: int) -> str:
    """The key of a post in the store."""
    return f"bluesky:at://did:plc:{letters(number, 24)}/{COLLECTION}/{letters(number, 13)}"


def frame(number: int, text: str, at: float) -> str:
    """The envelope of a post."""
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at)) + f".{int(at % 1 * 1e6):06}Z"
    record = {"$type": COLLECTION, "createdAt": stamp, "langs": ["en"], "text": text}
    payload = {
        "$type": KIND, "seq": FIRST + number, "did": f"did:plc:{letters(number, 24)}", "time": stamp,
        "rev": letters(number, 13), "operation": "create", "collection": COLLECTION, "rkey": letters(number, 13),
        "record": record, "cid": f"bafyrei{letters(number, 52)}",
    }  # fmt: skip
    return json.dumps({"$type": "message", "payload": payload}, separators=(",", ":"))


@dataclass(frozen=True)
class Sender:
    """The stream: the same post for the same number, then live ones; its counters are shared with this process."""

    port: int
    begun: float
    """When the oldest post was written, in seconds since 1970."""
    watches: int
    every: int
    seed: int
    seconds: int
    """Of the live part, whose names no earlier post holds."""
    most: Any
    """Posts before the live part; it may become smaller while they are sent."""
    sent: Any
    """Posts sent so far."""
    sent_at: Any
    """When the named post of each live second was sent, 0 before."""

    def run(self) -> None:
        """Serve until the process is ended."""

        async def send(connection: ServerConnection) -> None:
            with suppress(ConnectionClosed):  # the reader was killed
                await self._send(connection)

        async def serve_all() -> None:
            async with serve(send, "127.0.0.1", self.port, compression=None, ping_interval=None):
                await asyncio.Event().wait()

        asyncio.run(serve_all())

    async def _send(self, connection: ServerConnection) -> None:
        """What follows a cursor; a time counts as the beginning."""
        assert connection.request is not None
        cursor = int(parse_qs(urlsplit(connection.request.path).query).get("cursor", ["0"])[0])
        number = cursor - FIRST if FIRST <= cursor < 10**15 else 0
        while number < self.most.value:
            await connection.send(frame(number, self._text(number), self.begun + number / RATE))
            number += 1
            self.sent.value = number
        while True:  # live
            second, at = divmod(number - self.most.value, RATE)
            text = " ".join(random.Random(number).choices(WORDS, k=20))
            if at == 0 and second < self.seconds:
                text = f"my {name(self.watches + second)} broke on the train this morning"
                self.sent_at[second] = time.time()
            await connection.send(frame(number, text, time.time()))
            number += 1
            self.sent.value = number
            await asyncio.sleep(1 / RATE)

    def _text(self, number: int) -> str:
        chance = random.Random(self.seed * 1_000_003 + number)
        words = chance.choices(WORDS, k=chance.randint(5, 40))
        if number % self.every == 0:
            words.insert(chance.randrange(len(words)), name(chance.randrange(self.watches)))
        return " ".join(words)


@dataclass
class Receiver:
    """A webhook: which run told of a post, and when it arrived first."""

    runs: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    came_at: dict[str, float] = field(default_factory=dict)
    messages: int = 0

    def serve(self) -> ThreadingHTTPServer:
        """On a free port, in threads."""
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                now, run = time.time(), json.loads(self.rfile.read(int(self.headers["content-length"])))["run"]
                receiver.messages += 1
                for post in run["new"]:
                    receiver.runs[post["key"]].add(run["id"])
                    receiver.came_at.setdefault(post["key"], now)
                self.send_response(204)
                self.end_headers()

            def log_message(self, *words: Any) -> None:
                """Nothing."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server


@dataclass
class Reader:
    """`listenpost listen` in a process that is killed and started again, and its database."""

    file: Path
    sender: Sender
    receiver: Receiver
    process: subprocess.Popen[bytes] | None = None
    reading: float = 0.0
    """Seconds in which posts were stored."""
    outages: list[float] = field(default_factory=list)
    """Seconds from each kill to the next stored post."""
    memory: list[int] = field(default_factory=list)
    """Megabytes at each printed line."""
    most_behind: int = 0
    _printed: float = 0.0

    def start(self) -> None:
        """Begin the command anew."""
        own = ("LISTENPOST", "OPENAI")
        environment = {name: value for name, value in os.environ.items() if not name.startswith(own)} | {
            "LISTENPOST_MODE": "live", "LISTENPOST_DATABASE_URL": f"sqlite:///{self.file}",
            "LISTENPOST_LIMIT_REQUESTS_PER_MINUTE": "0", "LISTENPOST_NOTIFY_PRIVATE": "true",
            "BLUESKY_URL": f"http://127.0.0.1:{self.sender.port}", "LISTENPOST_BLUESKY_VERSION": "v2",
        }  # fmt: skip
        command = [str(Path(sys.executable).with_name("listenpost")), "listen"]
        self.process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)

    def kill(self) -> None:
        """End it without a word."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def rows(self, query: str) -> list[Any]:
        """Read from its database."""
        with closing(sqlite3.connect(self.file, timeout=60)) as connection:
            return connection.execute(query).fetchall()

    def stored(self) -> int:
        """Posts up to the stored cursor."""
        rows = self.rows("SELECT cursor FROM streams WHERE name = 'bluesky' AND cursor IS NOT NULL")
        return json.loads(rows[0][0])["cursor"] - FIRST + 1 if rows else 0

    def read(self, until: float, marks: Sequence[int]) -> None:
        """Read all posts, with a kill at each mark; from `until` on no further ones are sent."""
        left, before, seen = list(marks), 0, time.monotonic()
        killed: float | None = None
        self.start()
        while (stored := self.stored()) < self.sender.most.value:
            now = time.monotonic()
            assert self.process is not None
            if self.process.poll() is not None:
                sys.exit("`listenpost listen` ended by itself")
            if stored > before:
                if killed is not None:
                    self.outages.append(now - killed)
                elif before:
                    self.reading += now - seen
                killed = None
            if stored > before or killed is not None or not before:
                seen = now
            behind = self.sender.sent.value - stored
            self.most_behind = max(self.most_behind, behind if killed is None else 0)
            before = stored
            self._print(stored, behind, now)
            if left and stored >= left[0] and killed is None:
                left.pop(0)
                self.kill()
                print(f"  killed when {self.stored():,} posts were stored", flush=True)
                killed = time.monotonic()
                self.start()
            if time.time() > until and self.sender.sent.value < self.sender.most.value:
                until = float("inf")
                self.sender.most.value = self.sender.sent.value + 1_000
                print(f"  the time is over: {self.sender.most.value:,} posts are sent", flush=True)
            time.sleep(LOOK_SECONDS)

    def _print(self, stored: int, behind: int, now: float) -> None:
        assert self.process is not None
        if now - self._printed < PRINTED_SECONDS:
            return
        self._printed = now
        with suppress(OSError):
            status = Path(f"/proc/{self.process.pid}/status").read_text("utf-8")
            self.memory.append(int(status.partition("VmRSS:")[2].split()[0]) // 1024)
        waiting = self.rows("SELECT count(*) FROM stream_posts")[0][0]
        print(
            f"{time.strftime('%H:%M:%S', time.gmtime())} {stored:,} posts stored, {behind:,} behind, "
            f"{waiting:,} wait for the gate, {len(self.receiver.runs):,} told, {self.memory[-1]} MB",
            flush=True,
        )

    def end(self) -> set[str]:
        """Wait until nothing waits for the gate; keys of all posts that it judged."""
        until = time.monotonic() + _END_SECONDS
        while self.rows("SELECT count(*) FROM stream_posts")[0][0] and time.monotonic() < until:
            time.sleep(LOOK_SECONDS)
        self.kill()
        return {key for (key,) in self.rows("SELECT DISTINCT key FROM watch_items")}


def report(reader: Reader, judged: set[str], seconds: float) -> bool:
    """Print what was measured; whether nothing was lost or told twice."""
    sender, receiver = reader.sender, reader.receiver
    count = sender.most.value
    due = {key_of(number) for number in range(0, count, sender.every)}
    lost, twice = due - judged, [key for key, runs in receiver.runs.items() if len(runs) > 1]
    untold = len(judged & due) - len(due & receiver.runs.keys())
    print(f"{count:,} posts ({count / RATE / 3600:.1f} h of the network) in {seconds / 60:.1f} min, kills included")
    print(f"{count / max(reader.reading, 1):,.0f} posts/s while it read, {count / seconds:,.0f} by the clock")
    print(f"seconds from a kill to the next stored post: {[round(each) for each in reader.outages]}")
    print(f"behind the sender: {reader.most_behind:,} posts at most")
    print(f"memory in MB: {', '.join(map(str, reader.memory))}")
    print(f"{len(due):,} posts hold a name: {len(lost)} lost, {untold} judged to be about something else, ", end="")
    print(f"{len(twice)} told under two run ids ({receiver.messages:,} messages)")
    came = [(key_of(count + second * RATE), at) for second, at in enumerate(sender.sent_at) if at]
    late = sorted(receiver.came_at[key] - at for key, at in came if key in receiver.came_at)
    if late:
        middle, most = late[len(late) // 2], late[int(len(late) * 0.95)]
        print(f"{len(late)} of {len(came)} live posts told: {middle:.1f} s in the median, {most:.1f} s at 95 %")
    return not lost and not twice


def main() -> None:
    """Print each figure as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--posts", type=int, default=4_500_000)
    parser.add_argument("--watches", type=int, default=100_000)
    parser.add_argument("--every", type=int, default=500, help="one of so many posts holds a watched name")
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=60, help="of the live part")
    parser.add_argument("--minutes", type=float, default=60, help="after which no further old posts are sent")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    context = multiprocessing.get_context("spawn")
    most, sent = context.Value("q", given.posts, lock=False), context.Value("q", 0, lock=False)
    sent_at = context.Array("d", given.seconds, lock=False)
    begun, named = time.time() - given.posts / RATE, given.watches - given.seconds
    sender = Sender(port, begun, named, given.every, given.seed, given.seconds, most, sent, sent_at)
    sending = context.Process(target=sender.run, daemon=True)
    sending.start()
    receiver = Receiver()
    web = receiver.serve()
    marks = sorted(random.Random(given.seed).sample(range(given.posts // 20, given.posts), given.kills))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "listenpost.db"
        receiving = f"http://127.0.0.1:{web.server_address[1]}/"
        asyncio.run(store_watches(f"sqlite:///{file}", given.watches, receiving))
        reader = Reader(file, sender, receiver)
        began = time.time()
        reader.read(began + 60 * given.minutes, marks)
        seconds = time.time() - began
        time.sleep(given.seconds + 5)
        judged = reader.end()
    sending.terminate()
    sys.exit(0 if report(reader, judged, seconds) else 1)


if __name__ == "__main__":
    main()
