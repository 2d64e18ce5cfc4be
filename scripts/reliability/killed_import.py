"""Kills an import of a large dump ten times, and checks that all of it arrives once.

    python scripts/reliability/killed_import.py [--mb N]

Makes a dump in Reddit's format, posts and comments in the order of time, imports it with the
command, kills the process with SIGKILL ten times on the way and starts it again each time. Prints
entries per second, the highest memory of any of the processes, and missing or doubled entries.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

KILLS = 10
_WORDS = (
    "battery charger recorder mug lid leaks quiet loud cheap dear broke after weeks returned love "
    "hate works fine support never answered update firmware app crashes screen bright heavy light"
).split()
_BEGAN = 1_600_000_000


def dump(letters: int, seed: int = 1) -> Iterator[str]:
    """Lines of a dump of about so many letters: posts, and comments on those and earlier ones."""
    draw = random.Random(seed)
    written = number = 0
    while written < letters:
        number += 1
        text = " ".join(draw.choices(_WORDS, k=draw.randint(30, 220)))
        record: dict[str, object] = {
            "id": f"{number:x}", "author": f"user{draw.randint(1, 50_000)}", "subreddit": "gadgets",
            "score": draw.randint(-5, 900), "created_utc": _BEGAN + number, "edited": False,
            "stickied": False, "gilded": 0, "distinguished": None, "retrieved_on": _BEGAN,
        }  # fmt: skip
        if number % 5 == 1:
            record |= {"title": text[:80], "selftext": text, "is_self": True, "num_comments": 4,
                       "permalink": f"/r/gadgets/comments/{number:x}/post/"}  # fmt: skip
        else:
            behind = int(draw.expovariate(1 / 500)) % (number // 5 + 1)
            post = (number // 5 - behind) * 5 + 1
            record |= {"body": text, "link_id": f"t3_{post:x}", "parent_id": f"t3_{post:x}"}
        line = json.dumps(record) + "\n"
        written += len(line)
        yield line


def stored_offset(database: Path) -> int:
    """How far the file is stored."""
    try:
        with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
            row = connection.execute('SELECT max("offset") FROM imports').fetchone()
        return int(row[0] or 0)
    except sqlite3.Error:
        return 0


def peak_of(pid: int) -> float:
    """The highest memory of a process so far, in MB; 0 when it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text("utf-8").splitlines()
    except OSError:
        return 0.0
    return max((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")), default=0)


def main() -> int:
    """Make the dump, import it, count; 1 when anything is missing or there twice."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mb", type=int, default=1000)
    parser.add_argument("--kills", type=int, default=KILLS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="import-load-") as folder:
        file, database = Path(folder, "dump.jsonl"), Path(folder, "archive.db")
        posts = comments = 0
        with file.open("w", encoding="utf-8") as out:
            for line in dump(options.mb * 1_000_000):
                out.write(line)
                comments += '"link_id"' in line
                posts += '"link_id"' not in line
        size = file.stat().st_size
        print(f"{size / 1e6:,.0f} MB, {posts:,} posts, {comments:,} comments", flush=True)
        env = {**os.environ, "LISTENPOST_DATABASE_URL": f"sqlite:///{database}"}
        command = [sys.executable, "-m", "api", "import", str(file)]
        peak, kills, began = 0.0, 0, time.monotonic()
        code: int | None = None
        while code is None:
            process = subprocess.Popen(command, env=env, stderr=subprocess.DEVNULL)
            while (code := process.poll()) is None:
                peak = max(peak, peak_of(process.pid))
                due = size * (kills + 1) / (options.kills + 1)
                if kills < options.kills and stored_offset(database) >= due:
                    process.send_signal(signal.SIGKILL)
                    process.wait()
                    kills += 1
                    print(f"killed at {stored_offset(database) / 1e6:,.0f} MB", flush=True)
                    break
                time.sleep(0.1)
        seconds = time.monotonic() - began
        items, ids = 0, set()
        twice = 0
        with closing(sqlite3.connect(database)) as connection:
            for (facts,) in connection.execute("SELECT facts FROM items"):
                item = json.loads(facts)
                items += bool(item["title"])
                for comment in item["comments"]:
                    twice += comment["id"] in ids
                    ids.add(comment["id"])
        grown = sum(path.stat().st_size for path in Path(folder).glob("archive*")) / size
    lost = posts - items + comments - len(ids)
    print(
        f"{(posts + comments) / seconds:,.0f} entries/s ({seconds:,.0f} s), killed {kills} times, "
        f"peak memory {peak:,.0f} MB, {lost} lost, {twice} twice, database {grown:.1f} x the file"
    )
    return int(bool(code or lost or twice))


if __name__ == "__main__":
    sys.exit(main())
