"""Hundreds of analyses in one process, a fifth of them with faults: is anything lost, does it grow?

The product runs here as in a server, with durable work; the sandbox in a thread of the same process
without latency; faults are drawn by `--seed`. Each tenth analysis is a run of a watch, after which
the archive is searched. Prints unexplained and lost analyses, and memory, threads and descriptors of
two quarters; exits 1 when an analysis is lost or unexplained, or when one of those grows.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import os
import random
import re
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

from api import bootstrap
from api.bootstrap.app_context import AppContext, open_app_context
from api.bootstrap.background_work import keep_watch, run_watch
from api.choices import Window
from api.errors import ListenpostError
from api.features.analyses.api_keys import LOCAL
from api.features.analyses.store_ports import Filters
from api.features.archive.search_values import EVERYTHING
from api.features.watches.watch import Watch, new_watch
from api.features.watches.watch_service import utc_now
from api.reports.report import Report
from api.sandbox.faults import ENDPOINTS, KINDS
from api.sandbox.server import Sandbox
from api.sandbox.world import Options
from api.services.product import Ask
from api.sources import default_sources

PRODUCTS = (
    "plaud.ai",
    "ember mug",
    "notion",
    "monday",
    "kindle",
    "sony xm5",
    "steam deck",
    "obsidian",
)
WINDOWS: tuple[Window, ...] = ("all", "year", "month")
ENDLESS = Options.endless()
"""What the sandbox would refuse by its quotas is no fault of the draw."""
SHARE, AT_ONCE, TOLERANCE = 0.2, 6, 1.05
EACH_WATCH = 10
"""Of so many analyses one is a run of a watch."""
SETTINGS = {
    "LISTENPOST_MODE": "live",
    "LISTENPOST_PAGE_TTL": "60",
    "LISTENPOST_YOUTUBE_SEARCHES_PER_DAY": "1000000",
    "LISTENPOST_SOURCE_TIMEOUT": "1",
    "LISTENPOST_SCORING_TIMEOUT": "1",
    "LISTENPOST_CRAWL_TIMEOUT": "10",
}
_POOL = "dbos executor"


@dataclass(frozen=True)
class Sample:
    """What the process holds at a moment."""

    megabytes: float
    kinds: Mapping[str, int]
    """Threads by the letters of their name, and open descriptors: `socket`, `pipe`, `anon_inode`, or the suffix of a
    file."""

    @property
    def threads(self) -> int:
        """Without the engine's pool, in which the loop's work in threads is done: it grows to 64 and stays."""
        return sum(many for kind, many in self.kinds.items() if kind.startswith("thread ") and _POOL not in kind)

    @property
    def descriptors(self) -> int:
        """Of all kinds."""
        return sum(many for kind, many in self.kinds.items() if kind.startswith("open "))

    @classmethod
    def now(cls) -> Sample:
        """Resident memory without what Python has yet to collect."""
        gc.collect()
        with open("/proc/self/statm") as file:
            pages = int(file.read().split()[1])
        megabytes = pages * os.sysconf("SC_PAGE_SIZE") / 1e6
        kinds = Counter(f"thread {re.sub(r'[^a-zA-Z]+', ' ', each.name)}" for each in threading.enumerate())
        for number in os.listdir("/proc/self/fd"):
            with suppress(FileNotFoundError):  # the listing's own
                target = os.readlink(f"/proc/self/fd/{number}")
                kinds["open " + (target.partition(":")[0] if ":" in target else Path(target).suffix or "other")] += 1
        return cls(megabytes, kinds)


class Defects(logging.Handler):
    """Keeps what is logged with a traceback: nobody foresaw it."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Once for each."""
        if record.exc_info:
            self.names.append(f"{record.getMessage()}: {record.exc_info[1]!r}")


@dataclass
class Soak:
    """The analyses, and what came of them."""

    app_context: AppContext
    sandbox: Sandbox
    many: int
    chance: random.Random
    watches: Sequence[Watch]
    upstreams: Sequence[str]
    """What is asked, and may have faults."""
    faults: int = 0
    begun: int = 0
    ended: Counter[str] = field(default_factory=Counter)
    """By decision, or by the code of an error."""
    outcomes: Counter[str] = field(default_factory=Counter)
    """Of sources."""
    runs: Counter[str] = field(default_factory=Counter)
    """Of watches, by state."""
    hits: int = 0
    """Found in the archive."""
    unexplained: list[str] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)

    async def run(self) -> None:
        """All of them, some at once."""
        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(self._some())

    async def _some(self) -> None:
        while self.begun < self.many:
            self.begun += 1
            number = self.begun
            if number % 25 == 0:  # the sandbox's own log and old faults are no leak of the product
                self.sandbox.forget()
                self.sandbox.heal()
            if self.chance.random() < SHARE:
                self.faults += 1
                self.sandbox.fault(self._fault())
            try:
                await (self._analyze(number) if number % EACH_WATCH else self._watch(number // EACH_WATCH))
            except ListenpostError as error:
                self.ended[error.code] += 1
                if type(error) is ListenpostError:
                    self.unexplained.append(f"{number}: {error}")
            if self.ended.total() % max(1, self.many // 40) == 0:
                self.samples.append(Sample.now())

    async def _analyze(self, number: int) -> None:
        query, window = self.chance.choice(PRODUCTS), self.chance.choice(WINDOWS)
        ask = Ask(query, "quick", limit=4, since=window, about=f"the product {number}")
        self._look(await self.app_context.runner.run(LOCAL, ask))

    async def _watch(self, number: int) -> None:
        """Run a watch, and search what is stored about its product."""
        watch = self.watches[number % len(self.watches)]
        run = await run_watch(self.app_context, watch)
        self.runs[run.state] += 1
        if run.state in {"failed", "not_asked"} and not run.reason:
            self.unexplained.append(f"a run of {watch.name}: {run.state} without a reason")
        answer = await self.app_context.search(LOCAL, watch.query, EVERYTHING, None, sandbox=False)
        self.hits += len(answer.hits)

    def _fault(self) -> str:
        """One or two requests of one place go wrong."""
        upstream = self.chance.choice(self.upstreams)
        endpoint = self.chance.choice(ENDPOINTS[upstream])
        kind = self.chance.choice(sorted(KINDS[upstream]))
        return f"{upstream}.{endpoint}={kind}x{self.chance.randint(1, 2)}"

    def _look(self, report: Report) -> None:
        self.ended[str(report.decision)] += 1
        for source in report.sources.values():
            self.outcomes[str(source.outcome)] += 1
            if not source.outcome.answered and not source.reason:
                self.unexplained.append(f"{source.source}: {source.outcome} without a reason")


async def kept(app_context: AppContext) -> Counter[str]:
    """What the store has, by state."""
    states: Counter[str] = Counter()
    cursor: str | None = None
    while True:
        page = await app_context.store.listing(LOCAL.id, Filters(), 100, cursor)
        states.update(analysis.state for analysis in page.analyses)
        cursor = page.cursor
        if cursor is None:
            return states


async def soak(sandbox: Sandbox, many: int, seed: int) -> bool:
    """Run it and print what there is to see; whether all is well."""
    defects = Defects()
    logging.getLogger("api").addHandler(defects)
    settings = bootstrap.load_settings()
    app_context = await open_app_context(settings, durable=True)
    await app_context.product()
    now = utc_now()
    watches = [
        replace(
            new_watch(LOCAL.id, product, "daily 08:00", now), depth="quick", limit=4, due_at=now + timedelta(days=9)
        )
        for product in PRODUCTS
    ]
    for watch in watches:
        await keep_watch(app_context.store, watch, new=True)
    upstreams = (*default_sources(settings.sources), "openai")
    made, began = Soak(app_context, sandbox, many, random.Random(seed), watches, upstreams), time.monotonic()
    await made.run()
    states = await kept(app_context)
    await app_context.aclose()
    quarter = len(made.samples) // 4
    second, last = made.samples[quarter : 2 * quarter], made.samples[-quarter:]
    unexplained = [*made.unexplained, *defects.names]
    lost = many - states["done"] - states["failed"]
    print(f"{many} analyses, seed {seed}, {made.faults} faults, {time.monotonic() - began:.0f} s")
    print(f"ended: {dict(made.ended.most_common())}")
    print(f"outcomes of sources: {dict(made.outcomes.most_common())}")
    print(f"runs of watches: {dict(made.runs.most_common())}; found in the archive: {made.hits}")
    print(f"stored: {dict(states)}")
    print(f"unexplained: {len(unexplained)}; lost: {lost}")
    print(*unexplained[:20], sep="\n", end="\n" if unexplained else "")
    print("| | second quarter | last quarter |\n| --- | ---: | ---: |")
    flat = True
    for name in ("megabytes", "threads", "descriptors"):
        before, after = (statistics.mean(getattr(each, name) for each in some) for some in (second, last))
        flat = flat and after <= max(TOLERANCE * before, before + 2 * (name != "megabytes"))
        print(f"| {name} | {before:.1f} | {after:.1f} |")
    for kind in sorted({kind for each in made.samples for kind in each.kinds}):
        before, after = (statistics.mean(each.kinds.get(kind, 0) for each in some) for some in (second, last))
        print(f"| {kind} | {before:.1f} | {after:.1f} |")
    return flat and not unexplained and not lost


def main() -> None:
    """Read the arguments, soak."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--many", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=7)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, Sandbox.start(options=ENDLESS) as sandbox:
        os.environ.update({**sandbox.environment, **SETTINGS})
        del os.environ["LANGFUSE_SECRET_KEY"]
        os.environ["LISTENPOST_DATABASE_URL"] = f"sqlite:///{folder}/soak.db"
        well = asyncio.run(soak(sandbox, chosen.many, chosen.seed))
    sys.exit(0 if well else 1)


if __name__ == "__main__":
    main()
