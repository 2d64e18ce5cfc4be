"""Breaks every call to another machine in every way.

    python scripts/reliability/fault_matrix.py [--only WORD ...] [--sample N]

Each call of a whole question meets each fault that it can have, over loopback and through the real
clients. The outcome is compared with `fault_outcomes.py`; then a second question is asked without
the fault. The tables of the results stand in `docs/reliability.md`.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from itertools import repeat

from api.sandbox import corpus
from api.sandbox.corpus import Post
from api.sandbox.server import Sandbox
from api.sandbox.world import Options
from api.settings import variables
from api.sources import ITEM_SOURCES
from fault_outcomes import CALLS, FAULTS
from fault_run import AFTER, BEFORE, QUESTION, Call, Fault, FaultResult, UpstreamKind, logged, run

PROCESSES, AT_ONCE = max(2, os.cpu_count() or 2), 3
"""Processes, and runs at the same time in each: so many that wait for a deadline, and so many others."""
BUDGET = 300.0
"""Seconds after which no run begins."""
SEED = 10
"""Seed of the draw of `--sample`."""
RECENT = 0.007
"""Age in days of posts in sources that look back for hours alone: in no first part of a stream, of five minutes."""
PLACES = {"steam": (BEFORE, QUESTION, AFTER), "feeds": ("log", "notes")}
"""Places of each post, where it is not its own: a game is found by its whole name, and two feeds are asked."""
KINDS: dict[UpstreamKind, str] = {
    "api": "Reddit, YouTube", "open": "a place without a key", "lists": "News", "feed": "a feed",
    "stream": "Bluesky's stream", "page": "Amazon's pages",
    "paid": "a paid provider", "model": "a model", "traces": "Langfuse", "database": "PostgreSQL",
}  # fmt: skip
"""Columns of the table of expected outcomes."""


def few_posts() -> list[Post]:
    """A few posts of each source, with a few comments: enough for a report.

    Each names what every question asks for, since some places search for all words.
    """
    named = [post for post in (*corpus.load(), *corpus.keyless()) if "plaud" in post.title.lower()]
    replied = sorted(corpus.streamed(), key=lambda post: len(post.comments), reverse=True)
    named += [post for post in (*replied, *corpus.further(), *corpus.feeds()) if not post.deleted and not post.bot]
    first = [[post for post in named if post.source == source][:3] for source in ITEM_SOURCES]
    return [
        replace(
            post,
            title=f"{AFTER}: {post.title}",
            body=f"{AFTER}: {post.body}"[:200] if post.source == "bluesky" else post.body[:200],
            comments=post.comments[:1],
            comments_disabled=False,
            age_days=RECENT if post.source in {"bluesky", "news"} else post.age_days,
            place=place,
        )
        for posts in first
        for post in posts
        for place in PLACES.get(post.source, (post.place,))
    ]


def judge_all(query: str, about: str, texts: list[str], source: str) -> list[float]:
    """A judge that finds every text relevant."""
    return [0.9] * len(texts)


def pairs(words: Sequence[str] = ()) -> list[tuple[Call, Fault]]:
    """Every call with every fault that concerns it, or those whose names hold all the words."""
    return [
        (call, wrong)
        for wrong in FAULTS
        for call in CALLS
        if wrong.concerns(call) and all(word in f"{call.name} {wrong.name}" for word in words)
    ]


def run_matrix(chosen: Sequence[tuple[Call, Fault]], budget: float = BUDGET) -> list[FaultResult]:
    """Run them, some at a time; results are in the order given, late ones say so."""
    until = time.monotonic() + budget

    async def asked(sandbox: str) -> list[FaultResult]:
        waiting, working = asyncio.Semaphore(AT_ONCE), asyncio.Semaphore(AT_ONCE)

        async def cell(call: Call, fault: Fault) -> FaultResult:
            async with waiting if fault.waits else working:
                if time.monotonic() > until:
                    late = f"not begun within {budget:g} s"
                    return FaultResult(call, fault.name, fault.expected[call.kind], unexplained=[late])
                return await asyncio.create_task(run(call, fault, sandbox))

        return await asyncio.gather(*(cell(call, fault) for call, fault in chosen))

    with (
        Sandbox.start(few_posts(), options=Options.endless(), judge=judge_all) as sandbox,
        logged(),
    ):
        return asyncio.run(asked(sandbox.url))


def draw(chosen: Sequence[tuple[Call, Fault]], count: int) -> list[tuple[Call, Fault]]:
    """A sample in random order, the same for the same seed."""
    return random.Random(SEED).sample(chosen, min(count, len(chosen)))


def run_share(words: Sequence[str], count: int, budget: float, number: int) -> list[FaultResult]:
    """Run every `PROCESSES`th, in a process of its own without settings of the environment."""
    for name in [name for name in os.environ if name in variables() or "_proxy" in name.lower()]:
        del os.environ[name]
    return run_matrix(draw(pairs(words), count)[number::PROCESSES], budget)


def rules() -> Iterator[str]:
    """The table of faults and outcomes in Markdown."""
    yield f"| fault | {' | '.join(KINDS.values())} |"
    yield "| --- " * (len(KINDS) + 1) + "|"
    for fault in FAULTS:
        outcomes = (fault.expected.get(kind, "").replace("|", " or ") for kind in KINDS)
        yield f"| {fault.name} | {' | '.join(outcomes)} |"


def counts(cells: Sequence[FaultResult]) -> Iterator[str]:
    """Numbers of outcomes by call, in Markdown."""
    columns: dict[str, Callable[[FaultResult], bool]] = {
        "cells": lambda cell: True,
        "as expected": lambda cell: cell.as_expected,
        "not": lambda cell: not cell.as_expected,
        "unexplained": lambda cell: bool(cell.unexplained),
        "secrets": lambda cell: bool(cell.secrets),
    }
    yield from _counted(cells, columns)


def recoveries(cells: Sequence[FaultResult]) -> Iterator[str]:
    """Numbers of recoveries by call, in Markdown."""
    columns: dict[str, Callable[[FaultResult], bool]] = {
        "well again": lambda cell: cell.recovered is True,
        "not": lambda cell: cell.recovered is False,
        "nothing to mend": lambda cell: cell.recovered is None,
    }
    yield from _counted(cells, columns)


def _counted(cells: Sequence[FaultResult], columns: dict[str, Callable[[FaultResult], bool]]) -> Iterator[str]:
    yield f"| call | {' | '.join(columns)} |"
    yield "| --- |" + " ---: |" * len(columns)
    for name in (*(call.name for call in CALLS), "all"):
        mine = [cell for cell in cells if name in {cell.call.name, "all"}]
        numbers = (str(sum(map(counts, mine))) for counts in columns.values())
        yield f"| {name} | {' | '.join(numbers)} |"


def main() -> int:
    """Print the tables; 1 when a run failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=(), help="words of a call's and fault's names")
    parser.add_argument("--sample", type=int, default=10_000, help="cells at most, drawn")
    parser.add_argument("--seconds", type=float, default=BUDGET, help="after which none begins")
    arguments = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        with ProcessPoolExecutor(PROCESSES, multiprocessing.get_context("spawn")) as pool:
            shares = pool.map(
                run_share, repeat(arguments.only), repeat(arguments.sample),
                repeat(arguments.seconds), range(PROCESSES),
            )  # fmt: skip
            cells = [cell for part in shares for cell in part]
    print(*rules(), "", *counts(cells), "", *recoveries(cells), sep="\n")
    wrong = [cell for cell in cells if not cell.passed]
    print(f"\n{len(cells)} cells in {time.monotonic() - began:.0f} s, {len(wrong)} to be mended")
    print(*wrong, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
