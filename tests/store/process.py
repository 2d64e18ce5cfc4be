"""What another process does with a store."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from subprocess import PIPE, Popen

from pydantic import TypeAdapter

from api.core.shared_answers import SharedAnswers, answers_as_of
from api.features.analyses.store_ports import Store
from api.reports.report import Report
from api.store import open_store
from tests.forked import Forked
from tests.store.made import item, report, typed

DAY = date(2026, 11, 27)
ROUNDS = 40
AS_OF = datetime(2026, 11, 30, 8, tzinfo=UTC)
CLAIM = timedelta(seconds=3)


@contextmanager
def doing(deed: str, url: str, root: Path) -> Iterator[Popen[str]]:
    """The process, which has said that it is ready; killed at the end if it still runs."""
    command = ["tests.store.process:run", deed, url]
    with Forked[str](command, stdin=PIPE, stdout=PIPE, stderr=PIPE, text=True, cwd=root) as process:
        assert line(process) == "ready", process.stderr.read() if process.stderr else ""
        yield process
        process.kill()


def line(process: Popen[str]) -> str:
    """What it says next."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def go(*processes: Popen[str]) -> None:
    """Let them all start."""
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()


def big(number: int) -> Report:
    """A report of forty items, some of which every such report holds."""
    keys = [f"reddit:t3_{n}" for n in range(20)] + [f"reddit:t3_{number}_{n}" for n in range(20)]
    return typed(report(f"r{number}", *(item(key, rank=number) for key in keys)))


async def take(store: Store) -> None:
    """Try for the last unit of many scopes."""
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(ROUNDS):
        print(int(await store.take(f"race:{number}", DAY, 1, 1)), flush=True)


async def work(store: Store) -> None:
    """Begin and finish one analysis after the other."""
    print("ready", flush=True)
    for number in range(10_000):
        await store.begin("a", f"r{number}", "mug")
        await store.finish("a", big(number))
        print(number, flush=True)


async def begin(store: Store) -> None:
    """Begin an analysis and wait."""
    await store.begin("a", "theirs", "mug")
    print("ready", flush=True)
    sys.stdin.readline()


async def ask(store: Store) -> None:
    """Ask for what is shared, and get no answer."""

    async def asking() -> int:
        print("ready", flush=True)
        await asyncio.Event().wait()
        return 0

    with answers_as_of(AS_OF):
        await SharedAnswers(store, CLAIM).answer(("a question",), TypeAdapter(int), asking)


async def opened(url: str) -> None:
    """Open the database when told to."""
    print("ready", flush=True)
    sys.stdin.readline()
    store = await open_store(url)
    await store.take("opened", DAY, 1, 1_000)
    await store.aclose()
    print("opened", flush=True)


async def main(deed: str, url: str) -> None:
    """Do one of the deeds."""
    if deed == "open":
        return await opened(url)
    store = await open_store(url)
    await {"take": take, "work": work, "begin": begin, "ask": ask}[deed](store)
    await store.aclose()
    return None


def run() -> None:
    """Do the deed that is named, with the database behind it."""
    asyncio.run(main(*sys.argv[1:3]))
