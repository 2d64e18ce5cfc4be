"""Processor time of analyses, of the calls in them, of the local judge, the store and the start.

Ratios compare two things that are measured in turn in one process, so that both meet the same load.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import os
import resource
import sqlite3
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.request import urlopen

from api import bootstrap
from api.core.domain import Question
from api.core.items import Item
from api.models.local.judge import LocalJudge
from api.reports.report import Report
from api.sandbox import corpus
from api.services import product as listening
from api.services.product import Ask, Product
from api.store import open_store
from client_calls import Bare, sent
from figures_table import Figure, figure

TICKS = os.sysconf("SC_CLK_TCK")
PATIENT = 600.0
"""Seconds of every deadline where many questions wait for one processor."""


def spellings(query: str) -> Iterator[str]:
    """The same question in ever new capitals, so that nothing remembered answers it.

    2 of one letter, 4 of two, and so on: of `plaud.ai` 128.
    """
    for capitals in itertools.product((False, True), repeat=sum(map(str.isalpha, query))):
        upper = iter(capitals)
        yield "".join(sign.upper() if sign.isalpha() and next(upper) else sign for sign in query)


@asynccontextmanager
async def product_of(*, traced: bool, patient: bool = False) -> AsyncIterator[Product]:
    """A product for the sandbox that the variables name; `patient` waits for everything."""
    settings = bootstrap.load_settings()
    tracing = settings.tracing.model_copy(update={"langfuse_tracing_enabled": traced})
    settings = replace(settings, tracing=tracing)
    if patient:
        models = settings.models.model_copy(
            update={
                "model_concurrency": 10_000,
                "scoring_timeout": PATIENT,
                "report_timeout": PATIENT,
            }
        )
        waits = {"crawl_timeout": PATIENT, "source_timeout": PATIENT}
        sources = settings.sources.model_copy(update=waits)
        settings = replace(settings, models=models, sources=sources)
    product = bootstrap.build(settings)
    try:
        yield product
    finally:
        await product.aclose()


async def asked(product: Product, query: str) -> Report:
    """One quick analysis, and its JSON, which every door makes."""
    report = await listening.analyze(product, Ask(query, "quick"))
    report.model_dump(mode="json")
    return report


async def spent(work: Awaitable[Any]) -> float:
    """Processor seconds of this process, all threads."""
    began = time.process_time()
    await work
    return time.process_time() - began


async def per_analysis(runs: int) -> list[Figure]:
    """An analysis without tracing, its bare calls, and an analysis with tracing, in turn.

    What is traced is sent within the measured time.
    """
    url, questions = os.environ["REDDIT_URL"], spellings("plaud.ai")
    plain, bare, traced = [], [], []
    async with product_of(traced=False) as product, product_of(traced=True) as watched:
        client, tracing = Bare(os.environ), watched.observer

        async def watched_and_sent(query: str) -> None:
            await asked(watched, query)
            await asyncio.to_thread(tracing.client.flush)  # type: ignore[attr-defined]

        for number in range(-3, runs):
            query, last = next(questions), sent(url)[-1:]
            seconds = await spent(asked(product, query))
            calls = sent(url, since=last[0]["number"] if last else 0)
            again = await spent(client.run(calls))
            seen = await spent(watched_and_sent(query))
            if number == -1:  # as `serve` does once everything is loaded
                gc.collect()
                gc.freeze()
            if number >= 0:
                plain.append(seconds)
                bare.append(again)
                traced.append(seen)
        await client.aclose()
    ratio = [mine / theirs for mine, theirs in zip(plain, bare, strict=True)]
    watching = [mine / theirs for mine, theirs in zip(traced, plain, strict=True)]
    return [
        figure("processor time per analysis / bare client calls", "<= 1.5", ratio),
        figure("traced / untraced processor time", "<= 1.15", watching),
        figure("processor time per analysis, ms", "", (s * 1000 for s in plain), 0, unit_aim=""),
        figure("processor time of the bare calls, ms", "", (s * 1000 for s in bare), 0, unit_aim=""),
    ]


async def at_once(many: int, critical: float, sandbox: int) -> list[Figure]:
    """So many questions at once in one process, beside what they would take at best.

    That is the longest of: the critical path; the processor time of as many questions by
    themselves, which share one interpreter; and that of the sandbox, process `sandbox`.
    """
    questions = spellings("plaud note")
    async with product_of(traced=False, patient=True) as product:
        await asked(product, next(questions))
        alone = [await spent(asked(product, next(questions))) for _ in range(5)]
        served, began, wall = ticks(sandbox), time.process_time(), time.perf_counter()
        reports = await asyncio.gather(*(asked(product, next(questions)) for _ in range(many)))
        took, used = time.perf_counter() - wall, time.process_time() - began
        served = (ticks(sandbox) - served) / TICKS
    kept = statistics.median(len(report.items) for report in reports)
    ideal = max(critical, many * statistics.median(alone), served)
    print(
        f"{many} at once: {took:.1f} s, of {ideal:.1f} s at best; processor {used:.1f} s, "
        f"by themselves {many * statistics.median(alone):.1f} s, sandbox {served:.1f} s; "
        f"{kept:.0f} items a report",
        file=sys.stderr,
    )
    return [
        figure(f"{many} concurrent / ideal", "<= 1.25", [took / ideal]),
        figure(
            f"processor time of a question, {many} at once / by itself", "",
            [used / many / statistics.median(alone)],
        ),
    ]  # fmt: skip


def ticks(process: int) -> float:
    """Processor time of another process until now, in ticks."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def local_judge(runs: int) -> Figure:
    """Pages of ten posts of the sample world, each judged for the first time."""
    posts = corpus.load()
    items = [Item(key=f"{p.source}:{p.id}", id=p.id, source=p.source, title=p.title, body=p.body) for p in posts]
    judge, took = LocalJudge(), []
    judge.verdicts(Question("Fairphone"), items[:10], items[0].source)
    for run, query in zip(range(runs), spellings("fairphone"), strict=False):
        start = run * 10 % (len(items) - 10)
        page = items[start : start + 10]
        began = time.process_time()
        judge.verdicts(Question(query), page, page[0].source)
        took.append((time.process_time() - began) * 1000)
    return figure("local judge, ten items, ms of processor time", "<= 3", took, unit_aim="<= 0.016")


async def stored(report: Report, runs: int) -> list[Figure]:
    """A report of 100 items written and read, each beside SQLite's one row of the same bytes."""
    items = [
        item.model_copy(update={"key": f"{item.key}-{copy}"})
        for copy in range(-(-100 // len(report.items)))
        for item in report.items
    ][:100]
    writes, reads = [], []
    with TemporaryDirectory() as folder:
        store = await open_store(f"sqlite:///{folder}/listenpost.db")
        with closing(sqlite3.connect(f"{folder}/plain.db", isolation_level=None)) as plain:
            plain.execute("PRAGMA journal_mode = WAL")
            plain.execute("CREATE TABLE reports (id TEXT PRIMARY KEY, body TEXT)")
            for number in range(-2, runs):
                full = report.model_copy(update={"id": f"{number + 2:032x}", "items": tuple(items)})
                body = full.model_dump_json()
                wrote = await lasted(partial(store.finish, "bench", full))
                read = await lasted(partial(store.get, "bench", full.id))

                async def insert(full: Report = full, body: str = body) -> None:
                    plain.execute("INSERT INTO reports VALUES (?, ?)", (full.id, body))

                async def select(full: Report = full) -> None:
                    plain.execute("SELECT body FROM reports WHERE id = ?", (full.id,)).fetchone()

                wrote_one, read_one = await lasted(insert), await lasted(select)
                if number >= 0:
                    writes.append(wrote / wrote_one)
                    reads.append(read / read_one)
        await store.aclose()
    return [
        figure("stored report of 100 items, write / one SQLite insert", "<= 3", writes, 1),
        figure("stored report of 100 items, read / one SQLite read", "<= 3", reads, 1),
    ]


async def lasted(work: Callable[[], Awaitable[Any]]) -> float:
    """Seconds."""
    began = time.perf_counter()
    await work()
    return time.perf_counter() - began


def starts(runs: int) -> list[Figure]:
    """`--help` beside a command of Typer's own, `serve` beside the import of FastAPI, a question beside Python."""
    here = Path(sys.executable).with_name("listenpost")
    typer = "import typer; app = typer.Typer(); app.command()(lambda: None); app(['--help'])"
    helps, serves, questions, beside = [], [], [], []
    with TemporaryDirectory() as folder:
        env = {**os.environ, "LISTENPOST_DATABASE_URL": f"sqlite:///{folder}/listenpost.db"}
        for number in range(-1, runs):
            help_ = finished([str(here), "--help"]) / finished([sys.executable, "-c", typer])
            plain = finished([sys.executable, "-c", "import fastapi"])
            began = time.perf_counter()
            with subprocess.Popen(
                [str(here), "serve", "--port", "0"], stderr=subprocess.PIPE, text=True, env=env
            ) as process:
                assert process.stderr is not None
                url = process.stderr.readline().split()[2]
                with urlopen(f"{url}/readyz") as answer:
                    assert answer.status == 200
                ready = time.perf_counter() - began
                process.terminate()
            question = processor_seconds([str(here), "analyze", "plaud.ai", "--sandbox"], env)
            bare_start = processor_seconds([sys.executable, "-c", ""], env)
            if number >= 0:
                helps.append(help_)
                serves.append(ready / plain)
                questions.append(question * 1000)
                beside.append(question / bare_start)
    return [
        figure("`--help` / bare Typer", "<= 1.5", helps),
        figure("`serve` ready / import of FastAPI", "<= 2", serves),
        figure(
            "a question at the terminal over the sandbox, ms of processor time",
            "<= 2,000",
            questions,
            0,
            unit_aim="<= 10.6",
        ),
        figure("a question at the terminal / bare start of Python, processor time", "", beside, 0),
    ]


def finished(command: list[str]) -> float:
    """Seconds until a command has ended."""
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def processor_seconds(command: list[str], env: Mapping[str, str]) -> float:
    """Processor time of a command, with the start and end of its process."""
    began = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env)
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime - began.ru_utime - began.ru_stime
