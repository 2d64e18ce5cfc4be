"""How cost grows with what is stored and asked: `python scripts/bench/growth.py [PART ...] [--runs N]`.

Prints a table for each part: reports over own items without a model, by their number and length; watches by their
number; turns of a chat by the turns before; pages of history by the stored analyses. Times are medians of this
process's processor time, memory is what Python and numpy held at most; bars and powers say how both grow. Everything
takes about two minutes on an idle machine. The growth of the archive is measured by `archive_speed.py`.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import multiprocessing
import os
import random
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

import httpx
from sqlalchemy import insert, select

from api import bootstrap
from api.bootstrap import only_over
from api.bootstrap.app_context import AppContext, open_app_context
from api.bootstrap.background_work import MOST_DUE
from api.features.analyses.api_keys import LOCAL
from api.features.analyses.store_ports import Filters
from api.features.chat.chat_turn import Turn
from api.interfaces.http.app import create_app
from api.sandbox import corpus
from api.sandbox.server import Sandbox
from api.sandbox.world import Options
from api.services import product as listening
from api.services.product import Ask
from api.sources.own_items import own_items_of
from api.store.database import Database, engine_url
from api.store.tables import analyses, analysis_sources
from due_watches import DUE, store_due
from figures_table import figure
from fixed_unit import MachineSpeed
from growth_table import Cost, GrowthRow, cost, markdown
from processor_time import product_of

ITEMS, LENGTHS = (25, 100, 400), (1_000, 10_000, 100_000)
MOST_CHARACTERS = 5_000_000
"""Of all items of a row; larger ones are left out."""
WATCHES, TURNS, ANALYSES = (100, 10_000, 100_000), (1, 20, 100), (100, 1_000, 10_000)
PAGE = 20
"""Analyses of a page of history."""
PRODUCTS = ("plaud.ai", "ember mug", "notion", "steam deck", "obsidian")
ASPECTS = ("battery", "price", "app", "support", "quality", "setup", "noise", "size", "updates", "comfort")
NEXT = "What do people say about Kindle?"
"""A question on a product that no earlier turn names."""
_SHORT, _LONG = 30, 200


def own_items(count: int, length: int) -> Sequence[Mapping[str, str]]:
    """Items that name one product, of sentences of the sample world in random order, the same in each run."""
    chance = random.Random(f"{count} {length}")
    sentences = [s for post in corpus.load() for s in post.body.split(". ") if _SHORT < len(s) < _LONG]
    items = []
    for number in range(count):
        body = "Plaud Note: "
        while len(body) < length:
            body += f"{chance.choice(sentences)} in week {chance.randrange(1_000)}. "
        items.append(
            {"id": str(number), "title": f"Plaud Note {number}", "body": body[:length], "author": f"a{number}"}
        )
    return items


async def reports(runs: int) -> str:
    """Reports over own items without a model."""
    spent = dict[tuple[int, int], Cost]()
    async with product_of(traced=False, patient=True) as product:
        await listening.analyze(only_over(product, own_items_of(own_items(5, 100))), Ask("Plaud Note", "deep"))
        for length in LENGTHS:
            for count in ITEMS:
                if count * length <= MOST_CHARACTERS:
                    over = only_over(product, own_items_of(own_items(count, length)))
                    work = partial(listening.analyze, over, Ask("Plaud Note", "deep"))
                    spent[count, length] = await cost(work, runs)
    by_count = [
        GrowthRow(f"report, {length:,} characters an item", count, each) for (count, length), each in spent.items()
    ]
    by_length = [GrowthRow(f"report, {count} items", length, each) for (count, length), each in sorted(spent.items())]
    return f"{markdown('items', by_count)}\n\n{markdown('characters an item', by_length)}"


@asynccontextmanager
async def opened(folder: str, **variables: str) -> AsyncIterator[tuple[AppContext, httpx.AsyncClient]]:
    """A server's context over a database in the folder, and a client of its pages without a socket."""
    os.environ.update(variables, LISTENPOST_DATABASE_URL=database_url(folder))
    app_context = await open_app_context(bootstrap.load_settings())
    await app_context.product()
    transport = httpx.ASGITransport(create_app(app_context))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        yield app_context, client
    await app_context.aclose()


def database_url(folder: str) -> str:
    """SQLite's file in it."""
    return f"sqlite:///{folder}/growth.db"


def loaded(client: httpx.AsyncClient, path: str) -> Callable[[], Awaitable[object]]:
    """Work that loads a page."""

    async def load() -> None:
        (await client.get(path)).raise_for_status()

    return load


async def watches(runs: int) -> str:
    """Watches of a hundred tenants and more, a hundred of each, of which a hundred are due."""
    rows = []
    for count in WATCHES:
        with tempfile.TemporaryDirectory() as folder:
            await store_due(database_url(folder), count, first=LOCAL.id, due=100)
            async with opened(folder) as (app_context, client):
                store = app_context.store
                works: Mapping[str, Callable[[], Awaitable[object]]] = {
                    "list of a tenant's 100 watches": partial(store.watches, LOCAL.id),
                    "look for due watches": partial(store.due_watches, DUE, MOST_DUE),
                    "page of a tenant's 100 watches": loaded(client, "/watches"),
                }
                for name, work in works.items():
                    await work()
                    rows.append(GrowthRow(name, count, await cost(work, 5 * runs)))
    return markdown("stored watches", sorted(rows, key=lambda row: (row.operation, row.size)))


@contextmanager
def endless_sandbox() -> Iterator[dict[str, str]]:
    """A sandbox without quotas in a process of its own, as the variables that point a program at it."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=serve, args=(theirs,))
    process.start()
    try:
        yield ours.recv()
    finally:
        process.terminate()
        process.join()


def serve(connection: Connection) -> None:
    """Send the variables, and serve until this process is terminated."""
    with Sandbox.start(options=Options.endless()) as served:
        connection.send(served.environment)
        connection.recv()


async def chats(runs: int) -> str:
    """The next turn of a chat, about another product, whose session is read from the database."""
    rows = []
    with tempfile.TemporaryDirectory() as folder, endless_sandbox() as served:
        limits = {"LANGFUSE_SECRET_KEY": "", "LISTENPOST_LIMIT_USD_PER_DAY": "0"}
        async with opened(folder, **served | limits) as (app_context, _):
            copies = itertools.count()

            async def turn(message: str, session: str) -> Turn:
                *_, last = [event async for event in await app_context.turn(LOCAL, message, session, known=False)]
                assert isinstance(last, Turn)
                return last

            async def next_turn(text: str) -> Turn:
                copy = f"copy-{next(copies)}"
                await app_context.store.keep_session(LOCAL.id, copy, text)
                return await turn(NEXT, copy)

            for number in range(1, TURNS[-1] + 1):
                product = PRODUCTS[number % len(PRODUCTS)]
                await turn(f"How is the {ASPECTS[number % len(ASPECTS)]} of {product}?", "chat")
                if number in TURNS:
                    text = await app_context.store.session(LOCAL.id, "chat") or ""
                    usage = (await next_turn(text)).usage
                    spent = await cost(partial(next_turn, text), 3 * runs)
                    tokens = f"{usage.input_tokens + usage.output_tokens:,}"
                    rows.append(GrowthRow("next turn of a chat", number, spent, tokens))
    return markdown("turns before", rows, "tokens")


async def history(runs: int) -> str:
    """Pages of history, in which each analysis is a copy of one."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        async with opened(folder, LISTENPOST_MODE="sandbox") as (app_context, client):
            report = await app_context.runner.run(LOCAL, Ask("plaud.ai", "quick"))
            stored = 1
            for count in ANALYSES:
                await store_copies(database_url(folder), report.id, range(stored, count))
                stored = count
                store = app_context.store
                works: Mapping[str, Callable[[], Awaitable[object]]] = {
                    "listing of 20 from the database": partial(store.listing, LOCAL.id, Filters(), PAGE),
                    "JSON of 20": loaded(client, f"/v1/analyses?limit={PAGE}"),
                    "page of 20": loaded(client, "/history"),
                }
                for name, work in works.items():
                    await work()
                    rows.append(GrowthRow(name, count, await cost(work, 5 * runs)))
    return markdown("stored analyses", sorted(rows, key=lambda row: (row.operation, row.size)))


async def store_copies(url: str, report_id: str, numbers: range) -> None:
    """Copies of a stored report, a minute apart, without its items, which no listing reads."""
    database = Database(engine_url(url))
    newest = datetime.now(UTC)
    async with database.writing(alone=True) as connection:
        for table, own in ((analyses, "id"), (analysis_sources, "analysis_id")):
            found = await connection.execute(select(table).where(table.c[own] == report_id))
            for row in [dict(row) for row in found.mappings()]:
                for start in range(numbers.start, numbers.stop, 500):
                    copies = [{**row, own: f"{number:032x}"} for number in numbers[start - numbers.start :][:500]]
                    for copy in copies if table is analyses else ():
                        copy["created_at"] = newest - timedelta(minutes=int(copy["id"], 16))
                    await connection.execute(insert(table), copies)
    await database.aclose()


PARTS: Mapping[str, Callable[[int], Coroutine[Any, Any, str]]] = {
    "reports": reports, "watches": watches, "chats": chats, "history": history,
}  # fmt: skip


def main() -> None:
    """Print each table as soon as it is measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"any of: {', '.join(PARTS)} (default: all)")
    parser.add_argument("--runs", type=int, default=1, help="runs of a report; short work is repeated more often")
    chosen = parser.parse_args()
    if unknown := set(chosen.parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    os.environ |= {"LISTENPOST_MODE": "live", "LISTENPOST_JUDGE": "local"}
    os.environ.pop("OPENAI_API_KEY", None)
    speed = MachineSpeed()
    for part in chosen.parts or PARTS:
        speed.measure()
        print(f"\n### {part.capitalize()}\n\n{asyncio.run(PARTS[part](chosen.runs))}", flush=True)
    speed.measure()
    print(f"\n{figure('fixed unit of work, ms of processor time', '', speed.milliseconds, 0)}")


if __name__ == "__main__":
    main()
