"""Times and counts of whole analyses: `python scripts/bench/analysis_ratios.py [--runs N]`.

The sandbox is another process with fixed latencies. Times are medians over runs of one process;
the figures are their ratios to the critical path that the latencies imply, or to something that is
measured in turn with them. Counts come from the answers and from the sandbox's request log. What is in ms of
processor time also stands as a multiple of a fixed unit of work, measured at the start, in the middle and at
the end. A run takes about ten minutes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType

from api import bootstrap
from api.core.domain import Question
from api.core.items import Item
from api.reports.report import Report
from api.sandbox.model_server import tokens
from api.services.product import Product
from baseline_pipeline import Naive, Spent
from client_calls import sent
from figures_table import HEAD, Figure, figure
from fixed_unit import MachineSpeed
from processor_time import asked, at_once, local_judge, per_analysis, spellings, starts, stored

LATENCY = {
    "reddit.token": 0, "reddit.search": 300, "reddit.comments": 150,
    "youtube.search": 300, "youtube.videos": 150, "youtube.comments": 150,
    "amazon.search": 300, "amazon.product": 150,
    "hackernews.search": 300, "hackernews.item": 150,
    "stackexchange.search": 300, "stackexchange.answers": 150,
    "github.search": 300, "github.comments": 150,
    "lemmy.version": 0, "lemmy.search": 300, "lemmy.comments": 150,
    "discourse.search": 300, "discourse.topic": 150,
    "openai.judge": 500, "openai.grades": 500, "openai.agent": 1500, "openai.support": 500,
}  # fmt: skip
"""Milliseconds."""
PATH = ("search", "judge", "judge", "comments", "comments", "agent", "support")
"""Of Lemmy, which is asked for the comments of four items at a time and keeps six."""
MS = {"search": 300, "judge": 500, "comments": 150, "grades": 500, "agent": 1500, "support": 500}
CRITICAL = sum(MS[step] for step in PATH) / 1000


@dataclass(frozen=True, slots=True)
class Served:
    """A sandbox that runs."""

    variables: Mapping[str, str]
    """What points a program at it."""
    process: int
    """Its id."""


@contextmanager
def sandbox(latency: Mapping[str, int] = MappingProxyType(LATENCY)) -> Iterator[Served]:
    """The sandbox as a process of its own."""
    flags = [part for place, ms in latency.items() for part in ("--latency", f"{place}={ms}ms")]
    command = [str(Path(sys.executable).with_name("listenpost")), "sandbox", "--port", "0", *flags]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        variables = {}
        assert process.stdout is not None
        for line in process.stdout:
            name, _, value = line.strip().removeprefix("export ").partition("=")
            variables[name] = value
            if name == "LANGFUSE_SECRET_KEY":
                break
        try:
            yield Served(variables, process.pid)
        finally:
            process.terminate()


async def analyses(runs: int, query: str) -> list[Figure]:
    """Whole analyses, with the product built for each and with one product."""
    figures = []
    for title, critical, graded in (
        ("analysis", CRITICAL, False),
        ("graded analysis", CRITICAL + MS["grades"] / 1000, True),
    ):
        product, name = built(graded), f"{title} / critical path, built"
        for how, aim, work in (
            ("per question", "<= 1.06", partial(anew, graded=graded)),
            ("once", "<= 1.03", partial(asked, product)),
        ):
            ratios = [seconds / critical for seconds in await timed(runs, work, query)]
            figures.append(figure(f"{name} {how}", aim, ratios, 3))
        await product.aclose()
    return figures


def built(graded: bool = True) -> Product:
    """A new product."""
    product = bootstrap.build(bootstrap.load_settings())
    return product if graded else replace(product, grader=None)


async def anew(query: str, graded: bool = True) -> Report:
    """One quick analysis by a product of its own."""
    product = built(graded)
    try:
        return await asked(product, query)
    finally:
        await product.aclose()


async def timed(runs: int, work: Callable[[str], Awaitable[Report]], query: str) -> list[float]:
    """Seconds of each run after a first one, no question asked twice."""
    questions, took = spellings(query), []
    await work(next(questions))
    for _ in range(runs):
        question, began = next(questions), time.perf_counter()
        await work(question)
        took.append(time.perf_counter() - began)
    return took


def counted(report: Report, naive: Mapping[str, Spent]) -> list[Figure]:
    """Requests and judged items beside the plain pattern's, and what the analysis cost."""
    print("source         refetched  judged (naive)  upstream calls (naive)", file=sys.stderr)
    judged, called = Counter[str](), Counter[str]()
    for name, source in report.sources.items():
        plain = naive.get(name)
        judged[name] = sum(attempt.new for attempt in source.attempts)
        called[name] = source.upstream_calls
        theirs, calls = (plain.judged, plain.calls) if plain else ("-", "-")
        print(
            f"{name:<15}{'yes' if source.refetched else 'no':<11}{judged[name]:>6} ({theirs})"
            f"{called[name]:>14} ({calls})",
            file=sys.stderr,
        )
    ours = sum(judged[name] for name in naive) / sum(one.judged for one in naive.values())
    upstream = sum(called[name] for name in naive) / sum(one.calls for one in naive.values())
    cost, kept = report.cost, len(report.items)
    return [
        figure("judged items / those of the plain pattern", "<= 0.67", [ours]),
        figure("upstream calls / those of the plain pattern", "<= 0.35", [upstream]),
        figure("tokens of an analysis", "", [cost.tokens], 0),
        figure("tokens for each kept item", "", [cost.tokens / kept], 0),
        figure("requests to places of an analysis", "", [cost.upstream_calls], 0),
    ]


async def model_tokens(query: str) -> None:
    """Which calls of a model an analysis makes, and the tokens of their prompts, schemas and tools."""
    last = sent(os.environ["OPENAI_BASE_URL"].removesuffix("/v1"))[-1]["number"]
    await anew(query)
    calls, prompts, shapes = Counter[str](), Counter[str](), Counter[str]()
    for entry in sent(os.environ["OPENAI_BASE_URL"].removesuffix("/v1"), last):
        if entry["upstream"] == "openai":
            calls[entry["endpoint"]] += 1
            body = entry["body"]
            texts = (message.get("content") or "" for message in body["messages"])
            prompts[entry["endpoint"]] += tokens("".join(texts))
            shapes[entry["endpoint"]] += tokens(json.dumps([body.get("tools"), body.get("response_format")]))
    for endpoint, count in calls.items():
        what = f"{prompts[endpoint]} tokens of text, {shapes[endpoint]} of schemas and tools"
        print(f"{endpoint}: {count} calls, {what}", file=sys.stderr)


async def filter_call() -> Figure:
    """Tokens of one filter call over five items."""
    product = built()
    items = [
        Item(key=f"x:{n}", id=str(n), source="reddit", title=f"Plaud Note after {n} months of use",
             body="The battery lasts for days and the summaries are good, but the plan costs. " * 3)
        for n in range(5)
    ]  # fmt: skip
    gated = await product.gate.judge(Question("plaud.ai"), items, "reddit")
    await product.aclose()
    return figure("input tokens of a filter call, 5 items", "<= 500", [gated.usage.input_tokens], 0)


async def grading(runs: int) -> list[Figure]:
    """Grading 10, 20 and 40 items: all chunks at once against one after another."""
    product = built()
    grader, question, figures = product.grader, Question("plaud.ai"), []
    assert grader is not None
    for count in (10, 20, 40):
        items = [
            Item(key=f"x:{n}", id=str(n), source="reddit", title=f"Plaud Note, day {n}", body="ok")
            for n in range(count)
        ]
        ratios = []
        for _ in range(runs):
            began = time.perf_counter()
            await grader.grade(question, items)
            between = time.perf_counter()
            for at in range(0, len(items), 10):
                await grader.grade(question, items[at : at + 10])
            ratios.append((between - began) / (time.perf_counter() - between))
        figures.append(figure(f"grading {count} items, at once / in turn", "", ratios))
    await product.aclose()
    return figures


async def measured(runs: int, query: str, many: int, process: int) -> None:
    """What needs the sandbox with its latencies."""
    show(await analyses(runs, query))
    report = await anew(query)
    show(counted(report, await Naive(os.environ).run(query)))
    await model_tokens(query)
    show([await filter_call(), *await grading(3)])
    show(await stored(report, 10 * runs))
    show(await at_once(many, CRITICAL, process))


def show(figures: Iterable[Figure]) -> None:
    """Print them as they come: the whole takes minutes."""
    print(*figures, sep="\n", flush=True)


def main() -> None:
    """Run everything once and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--query", default="plaud.ai")
    parser.add_argument("--many", type=int, default=100)
    wanted = parser.parse_args()
    os.environ["LISTENPOST_MODE"] = "live"
    speed = MachineSpeed()
    print(HEAD, flush=True)
    speed.measure()
    with sandbox() as served:
        os.environ.update(served.variables)
        asyncio.run(measured(wanted.runs, wanted.query, wanted.many, served.process))
    speed.measure()
    with sandbox(dict.fromkeys(LATENCY, 0)) as served:
        os.environ.update(served.variables)
        show(in_ms := asyncio.run(per_analysis(wanted.runs)))
    show([judge := local_judge(10 * wanted.runs)])
    show(started := starts(wanted.runs))
    speed.measure()
    show(speed.rows([*in_ms, judge, *started]))


if __name__ == "__main__":
    main()
