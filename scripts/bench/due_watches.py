"""How fast two processes claim and finish the runs of watches that are all due at the same minute.

    python scripts/bench/due_watches.py [--watches 1000000] [--seconds 30] [--workers 2]

The database is a PostgreSQL that the script starts. A run asks nothing and tells nothing: measured are the
claim, the end of the run with the watch's next time, and the list of what is due. Prints runs a second, seconds of
one list, and the memory of a worker. Exits 1 when a watch was run twice.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import resource
import sys
import time
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import insert

from api.bootstrap.background_work import MOST_DUE
from api.features.watches.watch import new_watch
from api.features.watches.watch_run import WatchRun
from api.features.watches.watch_service import new_run_id
from api.store import open_store
from api.store.database import Database, engine_url
from api.store.tables import watches
from api.store.watch_repository import columns_of_watch
from tests.postgres import running

DUE = datetime(2026, 11, 30, 8, tzinfo=UTC)
PER_TENANT = 100


async def store_due(url: str, count: int, *, first: str = "tenant0", due: int | None = None) -> None:
    """Store watches in one transaction, which `add_watch` would take one each for.

    `first` is the tenant of the first hundred; `due` are so many of them, the others a day later; None: all.
    """
    await (await open_store(url)).aclose()
    database = Database(engine_url(url))
    async with database.writing(alone=True) as connection:
        for start in range(0, count, 1_000):
            made = (
                new_watch(
                    f"tenant{number // PER_TENANT}" if number >= PER_TENANT else first,
                    f"product {number}",
                    "daily 08:00",
                    DUE,
                )
                for number in range(start, min(start + 1_000, count))
            )
            rows = [
                {
                    "tenant": watch.tenant, "id": watch.id, "created_at": DUE, **columns_of_watch(watch),
                    "due_at": DUE if due is None or number < due else DUE + timedelta(days=1),
                }
                for number, watch in enumerate(made, start)
            ]  # fmt: skip
            await connection.execute(insert(watches), rows)
    await database.aclose()


async def work(url: str, seconds: float) -> dict[str, Any]:
    """Claim and finish until the time is over; the watches that were run, and what it took."""
    store = await open_store(url)
    began = time.perf_counter()
    due = await store.due_watches(DUE, MOST_DUE)
    listed = time.perf_counter() - began
    began, run_watches, now = time.perf_counter(), list[str](), datetime.now(UTC)
    while due and time.perf_counter() - began < seconds:
        claim = await store.claim_due(DUE, now + timedelta(hours=1), new_run_id())
        if claim is None:
            break
        run = WatchRun(
            version=1, id=claim.run_id, watch_id=claim.watch.id, state="nothing", reason=None, report_id=None,
            counts=None,
            new=(), kept=0, unusual=(), looked_at=0, new_aspects=(), gaps=(), sample=False, created_at=now,
        )  # fmt: skip
        await store.finish_run(claim, run, (), DUE + timedelta(days=1))
        run_watches.append(claim.watch.id)
    took = time.perf_counter() - began
    await store.aclose()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"watches": run_watches, "seconds": took, "listed": listed, "memory": memory}


def worker(url: str, seconds: float, results: Any) -> None:
    """In a process of its own."""
    results.put(json.dumps(asyncio.run(work(url, seconds))))


def main() -> None:
    """Print each figure as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--watches", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    with running() as server:
        url = server.create()
        began = time.perf_counter()
        asyncio.run(store_due(url, options.watches))
        print(f"{options.watches:,} due watches stored in {time.perf_counter() - began:.0f} s", flush=True)
        context = multiprocessing.get_context("spawn")
        results = context.Queue()
        workers = [context.Process(target=worker, args=(url, options.seconds, results)) for _ in range(options.workers)]
        for process in workers:
            process.start()
        ended = [json.loads(results.get()) for _ in workers]
        for process in workers:
            process.join()
    each = [watch for one in ended for watch in one["watches"]]
    rate = sum(len(one["watches"]) / one["seconds"] for one in ended)
    print(f"{rate:,.0f} runs claimed and finished a second by {options.workers} workers ({len(each):,} in all)")
    print(f"list of the {MOST_DUE:,} longest due: {max(one['listed'] for one in ended):.2f} s")
    print(f"memory of a worker: {max(one['memory'] for one in ended):.0f} MB")
    if len(each) != len(set(each)):
        sys.exit("a watch was run twice")


if __name__ == "__main__":
    main()
