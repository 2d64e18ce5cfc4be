"""Ratios and counts of whole analyses, against the sandbox in another process.

Times are medians over runs in one process; what is quoted is their ratio to the critical path that
the fixed latencies imply. Counts come from the answers and the sandbox's own request log.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.request import urlopen

from api import wiring
from api.services import listening
from api.services.listening import Ask
from api.services.schemas import Item, Question
from naive import Naive, Spent

LATENCY = {
    "reddit.token": 0, "reddit.search": 300, "reddit.comments": 150,
    "youtube.search": 300, "youtube.videos": 150, "youtube.comments": 150,
    "amazon.search": 300, "amazon.product": 150,
    "hackernews.search": 300, "hackernews.item": 150,
    "stackexchange.search": 300, "stackexchange.answers": 150,
    "github.search": 300, "github.comments": 150,
    "lemmy.version": 0, "lemmy.search": 300, "lemmy.comments": 150,
    "discourse.search": 300, "discourse.topic": 150,
    "openai.judge": 500, "openai.grades": 500, "openai.agent": 1500,
}  # fmt: skip
"""Milliseconds."""
PATH = ("search", "judge", "judge", "comments", "agent")
MS = {"search": 300, "judge": 500, "comments": 150, "grades": 500, "agent": 1500}


@contextmanager
def sandbox() -> Iterator[dict[str, str]]:
    """The sandbox as a process; yields the variables that point at it."""
    flags = [part for place, ms in LATENCY.items() for part in ("--latency", f"{place}={ms}ms")]
    command = [str(Path(sys.executable).with_name("listenpost")), "sandbox", "--port", "0", *flags]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        pairs = {}
        assert process.stdout is not None
        for line in process.stdout:
            name, _, value = line.strip().removeprefix("export ").partition("=")
            pairs[name] = value
            if name == "LANGFUSE_SECRET_KEY":
                break
        try:
            yield pairs
        finally:
            process.terminate()


async def timed(runs: int, work: Callable[[], Awaitable[Any]]) -> tuple[float, Any]:
    """Median seconds over `runs`, and the last result."""
    took, result = [], None
    for _ in range(runs):
        began = time.perf_counter()
        result = await work()
        took.append(time.perf_counter() - began)
    return statistics.median(took), result


async def analyses(runs: int, query: str) -> None:
    """Whole analyses, without and with grading."""
    for title, path, graded in (
        ("without grading", PATH, False),
        ("with grading", (*PATH[:-1], "grades", PATH[-1]), True),
    ):
        critical = sum(MS[step] for step in path) / 1000

        async def work(graded: bool = graded) -> dict[str, Any]:
            built = wiring.build(wiring.load_settings())
            product = built if graded else replace(built, grader=None)
            began = time.perf_counter()
            report = await listening.analyze(product, Ask(query, "quick"))
            answer = report.model_dump(mode="json")
            answer["_took"] = time.perf_counter() - began
            await built.aclose()
            return answer

        await work()
        answers = [await work() for _ in range(runs)]
        median = statistics.median(answer["_took"] for answer in answers)
        print(f"analysis {title}: {median / critical:.3f} of its critical path")
        print(
            f"  path: {' + '.join(path)} = {critical * 1000:.0f} ms; median {median * 1000:.0f} ms"
        )
    spent = await Naive(os.environ).run(query)
    compare(answers[-1], spent)


def compare(answer: dict[str, Any], naive: dict[str, Spent]) -> None:
    """Requests and judged items per source, beside the plain pattern's where there is one."""
    print("source         refetched  judged (naive)  upstream calls (naive)")
    for name, one in answer["sources"].items():
        judged, plain = sum(attempt["new"] for attempt in one["attempts"]), naive.get(name)
        judged_by, called = (plain.judged, plain.calls) if plain else ("-", "-")
        print(
            f"{name:<15}{'yes' if one['refetched'] else 'no':<11}{judged:>6} ({judged_by})"
            f"{one['upstream_calls']:>14} ({called})"
        )
    cost = answer["cost"]
    print(
        f"per analysis: {cost['tokens']} tokens, {cost['usd']} USD, {cost['upstream_calls']} calls"
    )


async def filter_call() -> None:
    """Tokens and USD of one filter call over five items."""
    built = wiring.build(wiring.load_settings())
    items = [
        Item(key=f"x:{n}", id=str(n), source="reddit", title=f"Plaud Note after {n} months of use",
             body="The battery lasts for days and the summaries are good, but the plan costs. " * 3)
        for n in range(5)
    ]  # fmt: skip
    gated = await built.gate.judge(Question("plaud.ai"), items, "reddit")
    usage = gated.usage
    print(f"filter call, 5 items: {usage.input_tokens} input tokens (goal 500), {usage.usd} USD")
    await built.aclose()


async def grading(runs: int) -> None:
    """Grading 10, 20 and 40 items: all chunks at once against one after another."""
    built = wiring.build(wiring.load_settings())
    grader, question = built.grader, Question("plaud.ai")
    assert grader is not None
    for count in (10, 20, 40):
        items = [
            Item(key=f"x:{n}", id=str(n), source="reddit", title=f"Plaud Note, day {n}", body="ok")
            for n in range(count)
        ]

        async def at_once(items: list[Item] = items) -> None:
            await grader.grade(question, items)

        async def in_turn(items: list[Item] = items) -> None:
            for at in range(0, len(items), 10):
                await grader.grade(question, items[at : at + 10])

        fast, _ = await timed(runs, at_once)
        slow, _ = await timed(runs, in_turn)
        print(f"grading {count} items: concurrent / sequential = {fast / slow:.2f}")
    await built.aclose()


def readiness(runs: int) -> None:
    """From the start of `serve` to its first answer, against the time of `import fastapi`."""
    imported = [sys.executable, "-c", "import fastapi"]
    served = [str(Path(sys.executable).with_name("listenpost")), "serve", "--port", "0"]
    ratios, times = [], []
    with TemporaryDirectory() as folder:
        env = {**os.environ, "LISTENPOST_DATABASE_URL": f"sqlite:///{folder}/listenpost.db"}
        for _ in range(runs + 1):
            began = time.perf_counter()
            subprocess.run(imported, check=True)
            plain, began = time.perf_counter() - began, time.perf_counter()
            with subprocess.Popen(served, stderr=subprocess.PIPE, text=True, env=env) as process:
                assert process.stderr is not None
                url = process.stderr.readline().split()[2]
                with urlopen(f"{url}/readyz") as answer:
                    assert answer.status == 200
                times.append(time.perf_counter() - began)
                process.terminate()
            ratios.append(times[-1] / plain)
    ratio, median = statistics.median(ratios[1:]), statistics.median(times[1:])
    print(f"serve ready / import fastapi = {ratio:.2f} (goal 3); median {median * 1000:.0f} ms")


def main() -> None:
    """Run everything once and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--query", default="plaud.ai")
    wanted = parser.parse_args()
    with sandbox() as pairs:
        os.environ.update(pairs)
        asyncio.run(analyses(wanted.runs, wanted.query))
        asyncio.run(filter_call())
        asyncio.run(grading(3))
    readiness(5)


if __name__ == "__main__":
    main()
