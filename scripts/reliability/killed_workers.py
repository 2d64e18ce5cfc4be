"""Workers that share the queue of one PostgreSQL while one after another is killed."""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from tempfile import TemporaryDirectory

from sqlalchemy import text

from api.features.analyses.api_keys import Keys
from api.services.product import Ask
from api.store import open_store
from killed_work import kill, open_bench
from stored_rows import StoredRows, open_connection, stored_rows_of
from tests.postgres import running
from work_process import end_with, opened

TENANTS = 3
AT_ONCE = 3
"""Analyses at once in each process."""
MINUTES = 15
"""Longest time of all analyses."""
_LOOK = 0.2


@dataclass(frozen=True, slots=True)
class WorkersRun:
    """States, charges and left rows of the analyses."""

    analyses: int
    states: Mapping[str, int]
    charged: int
    """Distinct pieces of work that were charged."""
    kills: int
    seconds: float
    model_calls: int
    rows: Sequence[StoredRows]

    def __str__(self) -> str:
        """One line with the figures and what is wrong."""
        return (
            f"{self.analyses} analyses, {self.kills} kills of workers, {self.seconds:.0f} s: "
            f"{dict(self.states)}, {self.charged} charged, {self.model_calls} model calls; "
            f"wrong: {'; '.join(self.wrong) or 'nothing'}"
        )

    @property
    def wrong(self) -> list[str]:
        """Differences from what must be."""
        booked = sum(tenant.ledger.get("analyses", 0) for tenant in self.rows)
        leftovers = [dict(tenant.leftovers) for tenant in self.rows if tenant.leftovers]
        return [
            *([] if self.states == {"done": self.analyses} else [f"states: {dict(self.states)}"]),
            *([] if self.charged == self.analyses else [f"{self.charged} were charged"]),
            *([] if booked == self.analyses else [f"{booked} were booked"]),
            *([] if not leftovers else [f"left over: {leftovers}"]),
        ]


def work(environment: Mapping[str, str], pipe: Connection) -> None:
    """Work until killed."""
    os.environ.clear()
    os.environ.update(environment)

    async def forever() -> None:
        end_with(pipe)
        async with opened():
            await asyncio.Event().wait()

    asyncio.run(forever())


def ask(environment: Mapping[str, str], pipe: Connection, tenants: Sequence[str], many: int) -> None:
    """Accept all questions as a server does, and stop: the work is left to the workers."""
    os.environ.clear()
    os.environ.update(environment)

    async def asking() -> None:
        end_with(pipe)
        async with opened() as app_context:
            for number in range(many):
                tenant = await app_context.keys.tenant(tenants[number % len(tenants)])
                assert tenant is not None
                question = Ask("plaud note", "quick", about=f"the product {number}")
                await app_context.runner.join(tenant, question, f"number {number}", detached=True)
        pipe.send(many)

    asyncio.run(asking())


def run_workers(workers: int, analyses: int, pause: float, most_kills: int = 10_000, seed: int = 16) -> WorkersRun:
    """Let workers do all analyses while one of them is killed every `pause` seconds."""
    random_draw, analysis_id = random.Random(seed), time.monotonic()
    with ExitStack() as stack:
        folder = stack.enter_context(TemporaryDirectory(prefix="lp-workers-"))
        url = stack.enter_context(running()).create()
        crash_bench = stack.enter_context(open_bench(url, folder))
        tenants = asyncio.run(_keys(url))
        environment = {
            **crash_bench.environment,
            "LISTENPOST_LIMIT_AT_ONCE": str(AT_ONCE),
            "LISTENPOST_LIMIT_ANALYSES_PER_DAY": "100000",
            "LISTENPOST_LIMIT_USD_PER_DAY": "1000",
            "LISTENPOST_LIMIT_WAITING": "0",
        }
        here, there = crash_bench.context.Pipe(duplex=False)

        def started(target: Callable[..., None], *more: object) -> BaseProcess:
            process = crash_bench.context.Process(target=target, args=(environment, there, *more), daemon=True)
            process.start()
            return process

        processes = [started(work) for _ in range(workers)]
        server = started(ask, tenants, analyses)
        kills, last, until = 0, time.monotonic(), time.monotonic() + 60 * MINUTES
        while (states := _states(url)) != {"done": analyses} and time.monotonic() < until:
            if time.monotonic() - last > pause and kills < most_kills and states.get("done"):
                victim = random_draw.randrange(workers)
                kill(processes[victim])
                processes[victim].join()
                processes[victim] = started(work)
                kills, last = kills + 1, time.monotonic()
            if not states.get("running") and here.poll():
                break
            time.sleep(_LOOK)
        server.join(60)
        _until_dropped(url, until)
        for process in processes:
            kill(process)
            process.join()
        with open_connection(url) as connection:
            charged = connection.execute(text("SELECT count(DISTINCT work_id) FROM charges WHERE settled")).scalar_one()
        rows = [stored_rows_of(url, tenant) for tenant in tenants]
        calls = len(crash_bench.sandbox.requests("openai"))
        seconds = time.monotonic() - analysis_id
        return WorkersRun(analyses, _states(url), int(charged), kills, seconds, calls, rows)


async def _keys(url: str) -> list[str]:
    store = await open_store(url)
    keys = [(await Keys((), store).add(f"key {number}"))[0].id for number in range(TENANTS)]
    await store.aclose()
    return keys


def _states(url: str) -> dict[str, int]:
    with open_connection(url) as connection:
        rows = connection.execute(text("SELECT state, count(*) FROM analyses GROUP BY state"))
        return {str(state): int(many) for state, many in rows}


def _until_dropped(url: str, until: float) -> None:
    """Wait until the engine has deleted the records of finished work."""
    while time.monotonic() < until:
        with open_connection(url, engine=True) as connection:
            if not connection.execute(text("SELECT count(*) FROM dbos.workflow_status")).scalar():
                return
        time.sleep(_LOOK)
