"""How many requests to sources are saved when the watches of all tenants share them.

    python scripts/bench/shared_searches.py [--tenants 10000] [--watches 100] [--runs 10000] [--names 100]
                                            [--asked 10000] [--seed 1]

Names of watches follow Zipf's law. First so many runs of one window, each of another tenant, of so many names are
made over the real store by two processes' worth of readers, 16 at once, against a source that counts: calls with
sharing, and those that the runs count, which are the calls without it. By default a name has as many runs as one of
10,000 names that 10,000 tenants with 100 watches each watch once a day. Then `--asked` of these runs are put to the
emulators that enforce a quota, at one moment of their clock: calls, refusals and answered runs, without sharing and
with it. At last all tenants' watches, each run once a day, are counted by their names and windows alone, for several
numbers of names, exponents and lengths of a window. Exits 1 when a question was asked twice.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack, aclosing
from datetime import UTC, datetime
from itertools import accumulate
from pathlib import Path

from api.core.context import count_requests, request_counter
from api.core.domain import FetchPlan
from api.core.items import Item
from api.core.ports import Probe
from api.core.shared_answers import answers_as_of
from api.errors import SourceError
from api.sandbox.server import Sandbox
from api.settings import SourceSettings
from api.sources import SOURCES
from api.sources.searched_source import Page, SearchedSource
from api.store import open_store

AS_OF = datetime(2026, 11, 30, 8, tzinfo=UTC)
AT_ONCE, KEPT = 16, 5
# what each allows in a day without a contract: docs/sources
ALLOWED = {
    "reddit": 144_000, "youtube": 100, "hackernews": 240_000, "stackexchange": 300, "github": 14_400,
    "lemmy": 8_640, "discourse": 21_600,
}  # fmt: skip
# emulators that count what they are asked, with a community of each: 1,000 in ten minutes, 100 searches a day, 300 a
# day, 10 searches a minute and 60 other requests an hour
ENFORCED = {"reddit": "gadgets", "youtube": "Lamp Lab", "stackexchange": "superuser", "github": "lumo/lamp"}
# hours (UTC) at which people want a message: seven of ten in the mornings of Europe and America
HOURS = [1, 1, 1, 1, 2, 6, 12, 12, 8, 3, 2, 4, 8, 12, 10, 5, 3, 2, 2, 2, 1, 1, 1, 1]


class Counted(SearchedSource):
    """Gives a page of ten posts of which five are kept, and the comments of each."""

    name = "counted"

    def __init__(self, place: str, memory: object, asked: Counter[tuple[str, ...]]) -> None:
        super().__init__(SourceSettings(), memory, place)  # type: ignore[arg-type]
        self._place, self._asked = place, asked

    async def _search(self, plan: FetchPlan, cursor: str | None) -> Page:
        self._count("search", plan.query)
        keys = [f"{self._place}:{plan.query}-{number}" for number in range(10)]
        return Page(tuple(Item(key=key, id=key, source=self._place, title=plan.query) for key in keys))

    async def _commented(self, item: Item) -> Item:
        self._count("comments", item.key)
        return item

    def _count(self, *what: str) -> None:
        count_requests()
        self._asked[self._place, *what] += 1

    async def _probed(self) -> Probe:
        return Probe("ok")

    async def aclose(self) -> None:
        """Nothing is open."""


def names(count: int, most: int, exponent: float, chance: random.Random) -> list[int]:
    """So many names drawn by Zipf's law from `most`."""
    weights = list(accumulate(1 / rank**exponent for rank in range(1, most + 1)))
    return chance.choices(range(most), cum_weights=weights, k=count)


async def measured(runs: Sequence[int]) -> tuple[Counter[str], Counter[str], int, float]:
    """Calls of each source without and with sharing, questions that were asked twice, and seconds."""
    asked: Counter[tuple[str, ...]] = Counter()
    alone: Counter[str] = Counter()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        async with AsyncExitStack() as closing:
            sources: list[list[Counted]] = []
            for _ in range(2):
                store = await open_store(f"sqlite:///{Path(folder) / 'shared.db'}")
                closing.push_async_callback(store.aclose)
                sources.append([Counted(place, store, asked) for place in ALLOWED])
            turns = asyncio.Semaphore(AT_ONCE)

            async def run(number: int, name: int) -> None:
                async with turns:
                    with answers_as_of(AS_OF, f"tenant {number}"):
                        for place, source in zip(ALLOWED, sources[number % 2], strict=True):
                            with request_counter() as calls:
                                batch = await source.fetch(FetchPlan(f"name {name}", 10))
                                await source.comments(batch.items[:KEPT])
                            alone[place] += calls.made

            await asyncio.gather(*(run(number, name) for number, name in enumerate(runs)))
    shared: Counter[str] = Counter()
    for (place, *_), count in asked.items():
        shared[place] += count
    return alone, shared, sum(count > 1 for count in asked.values()), time.monotonic() - began


async def asked_of_emulators(runs: Sequence[int], *, shared: bool) -> None:
    """Print what becomes of these runs, one after the other, where each emulator's clock stands still."""
    now = datetime.now(UTC)
    rows = [
        {"source": source, "place": place, "title": f"Lumo{name} after a month", "body": "It works.", "age_days": 3.0,
         "votes": 5, "comments": [{"body": "Mine, too", "votes": 1, "age_days": 1.0}]}
        for name in set(runs) for source, place in ENFORCED.items()
    ]  # fmt: skip
    calls: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    answered: Counter[str] = Counter()
    with Sandbox.start(rows, clock=now.timestamp) as sandbox, tempfile.TemporaryDirectory() as folder:
        settings = SourceSettings.model_validate(sandbox.environment)
        store = await open_store(f"sqlite:///{Path(folder) / 'shared.db'}")
        for number, name in enumerate(runs):
            for place in ENFORCED:
                source = SOURCES[place].build(settings, store if shared else None)
                with answers_as_of(now if shared else None, f"tenant {number}"):
                    async with aclosing(source):
                        try:
                            batch = await source.fetch(FetchPlan(f"Lumo{name}", 10))
                            await source.comments(batch.items[:KEPT])
                            answered[place] += bool(batch.items)
                        except SourceError:
                            pass  # counted by its status, or never sent
                # the log holds a bounded number of requests
                log = sandbox.requests(place)
                calls[place] += len(log)
                refused[place] += sum(entry.status in {403, 429} for entry in log)
            sandbox.forget()
        await store.aclose()
        for place in ENFORCED:
            how = "shared" if shared else "alone"
            print(f"{place:14}{how:>8}{calls[place]:10,}{refused[place]:10,}{answered[place]:10,}", flush=True)


def searches_of_a_day(watches: Sequence[int], hours: Sequence[int], window_hours: float) -> int:
    """Searches of one source that are left of a day's when those of a window are shared."""
    return len({(name, hour // window_hours) for name, hour in zip(watches, hours, strict=True)})


def main() -> int:
    """Measure, count and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for option, default in (
        ("tenants", 10_000), ("watches", 100), ("runs", 10_000), ("names", 100), ("asked", 10_000), ("seed", 1),
    ):  # fmt: skip
        parser.add_argument(f"--{option}", type=int, default=default)
    options = parser.parse_args()
    chance = random.Random(options.seed)

    drawn = names(options.runs, options.names, 1.0, chance)
    alone, shared, twice, seconds = asyncio.run(measured(drawn))
    print(f"{options.runs:,} runs of one window, {len(set(drawn)):,} of {options.names:,} names, {seconds:.0f} s")
    print(f"{'source':14}{'alone':>12}{'shared':>12}{'factor':>8}")
    for place in ALLOWED:
        print(f"{place:14}{alone[place]:12,}{shared[place]:12,}{alone[place] / shared[place]:8.1f}")
    print(f"questions that were asked more than once: {twice}")

    some = drawn[: options.asked]
    print(f"\n{len(some):,} runs with {len(set(some))} names, put to emulators that enforce their quotas")
    print(f"{'source':22}{'calls':>10}{'refused':>10}{'answered':>10}")
    for share in (False, True):
        asyncio.run(asked_of_emulators(some, shared=share))

    count = options.tenants * options.watches
    print(f"\n{options.tenants:,} tenants with {options.watches} watches, each run once a day: {count:,} searches")
    hours = chance.choices(range(24), weights=HOURS, k=count)
    print(f"{'names':>10}{'exponent':>10}{'window':>8}{'searches':>12}{'factor':>8}")
    for most in (1_000, 10_000, 100_000, 1_000_000):
        for exponent in (1.0, 1.2):
            watches = names(count, most, exponent, chance)
            for window, label in ((1, "1 h"), (24, "1 day")):
                left = searches_of_a_day(watches, hours, window)
                print(f"{most:10,}{exponent:10}{label:>8}{left:12,}{count / left:8.1f}")
    print("\nallowed in a day: " + ", ".join(f"{place} {most:,}" for place, most in ALLOWED.items()))
    return 1 if twice else 0


if __name__ == "__main__":
    sys.exit(main())
