"""The files of vectors beside SQLite: whatever lies there, the table says what is found."""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, event

from api.core.items import Item
from api.core.words import index_tokens
from api.features.archive.imports import FileIdentity, ImportBatch, ImportPosition
from api.features.archive.search_values import ArchiveFilters
from api.store import SqlStore
from api.store.database import Database, engine_url
from api.store.migrations import migrate
from api.store.vectors import FiledVectors
from tests.forked import CODE, Forked
from tests.store.made import item, report, typed
from tests.store.meaning import embed

LETTERS = "abcdefghij"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """Where the database will be."""
    return tmp_path / "listenpost.db"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where its vectors will be."""
    return tmp_path / "listenpost.db-vectors"


@asynccontextmanager
async def opened(
    database: Path, most_later: int = 3, most_read: int = 60_000, page: int = 20_000
) -> AsyncIterator[SqlStore]:
    """A store that writes a file after so many entries, and whose searches read so many."""
    connected = Database(engine_url(f"sqlite:///{database}"))
    await connected.prepare()
    await migrate(connected)
    assert connected.file == database
    vectors = FiledVectors(connected, database.with_name(f"{database.name}-vectors"), most_later, most_read, page)
    store = SqlStore(connected, embed=embed, vectors=vectors)
    yield store
    await store.aclose()


async def keep(store: SqlStore, id_: str, *bodies: str, tenant: str = "a") -> None:
    """Store items with these texts."""
    listed = [item(f"items:{id_}{n}", title="", body=body, comments=[])
              for n, body in enumerate(bodies)]  # fmt: skip
    await store.finish(tenant, typed(report(id_, *listed)))


async def settled(store: SqlStore) -> None:
    """Wait for what goes on behind a search."""
    assert isinstance(store._vectors, FiledVectors)
    await store._vectors.settle()


async def nearest(store: SqlStore, query: str, most: int = 2, tenant: str = "a") -> list[str]:
    """Texts of the nearest that are like the question at all."""
    (vector,) = embed([query])
    found = await store.matches(tenant, (), vector, ArchiveFilters(), most)
    await settled(store)
    assert found.vectors
    near = [match for match in found.matches if match.by_vector]
    return sorted(" ".join(m.tokens) for m in near if set(m.tokens) & set(index_tokens(query)))


async def unread(store: SqlStore) -> int:
    """How many entries a search has not compared; nothing behind it is waited for."""
    (vector,) = embed(["thinga"])
    return (await store.matches("a", (), vector, ArchiveFilters(), 2)).unread


def words(first: str = "") -> list[str]:
    """Ten texts, each about its own thing."""
    return [f"{first}thing{letter}" for letter in LETTERS]


def files(folder: Path, kind: str = "npy") -> list[Path]:
    """Indexes that lie there."""
    return sorted(folder.glob(f"*.{kind}"))


def rights(folder: Path, new: int | None = None) -> int:
    """What a folder's owner and others may do with it."""
    if new is not None:
        folder.chmod(new)
    return folder.stat().st_mode & 0o777


async def filled(database: Path) -> None:
    """A database with ten entries, of which a file was written."""
    async with opened(database) as store:
        await keep(store, "x", *words())
        assert await nearest(store, "thinga") == ["thinga"]


async def test_file_is_written_and_read_again(database: Path, folder: Path) -> None:
    """What came later is found beside it; after a fifth more there is a new one, and only it."""
    await filled(database)
    (first,) = files(folder)
    assert rights(folder) == 0o700

    async with opened(database) as store:
        await keep(store, "y", "newer")
        assert await nearest(store, "thinga newer") == ["newer", "thinga"]
        assert files(folder) == [first], "one more is little"
        await keep(store, "z", *words("more"))
        assert await nearest(store, "moreb thinga morethingb") == ["morethingb", "thinga"]
        (second,) = files(folder)
        assert second != first
        assert await nearest(store, "newer") == ["newer"]
    async with opened(database) as store:
        assert await nearest(store, "thinga newer") == ["newer", "thinga"]
    assert files(folder) == [second], "reading writes nothing"


async def test_few_entries_are_not_filed(database: Path, folder: Path) -> None:
    """They are read from the table."""
    async with opened(database, most_later=10) as store:
        await keep(store, "x", *words())
        assert await nearest(store, "thinga") == ["thinga"]
    assert files(folder.parent) == files(folder) == []


async def test_search_reads_a_bounded_part_and_says_how_much_is_left(database: Path, folder: Path) -> None:
    """The rest is read and filed behind it; then nothing is left."""
    async with opened(database, most_later=100, most_read=4, page=2) as store:
        await keep(store, "x", *words())
        assert await unread(store) == 6
        await settled(store)
        assert await unread(store) == 0
        assert await nearest(store, "thingj thinga") == ["thinga", "thingj"]
        assert files(folder) == []
    async with opened(database, most_later=3, most_read=4, page=2) as store:
        assert await unread(store) == 6, "what was in memory is read again"
        await settled(store)
        assert files(folder)
    async with opened(database, most_read=4, page=2) as store:
        assert await unread(store) == 0
        assert await nearest(store, "thingj thinga") == ["thinga", "thingj"]


async def test_what_was_read_before_a_stop_is_not_read_again(database: Path, folder: Path) -> None:
    """A process that ends while much is left to read leaves files of what it has."""
    left = [10]
    while left[-1]:
        async with opened(database, most_later=1, most_read=2, page=2) as store:
            if left == [10]:
                await keep(store, "x", *words())
            left.append(await unread(store))
    assert left == [10, 8, 4, 0], "two by the search, two more before the end"
    async with opened(database) as store:
        assert await nearest(store, "thingj thinga") == ["thinga", "thingj"]


async def test_import_files_what_it_stores(database: Path, folder: Path) -> None:
    """So that no search has to."""
    facts = [
        Item.model_validate(item(f"items:x{n}", title="", body=body, comments=[])) for n, body in enumerate(words())
    ]
    async with opened(database, most_read=1, page=1) as store:
        begun = await store.begin_import("a", FileIdentity("dump.jsonl", "jsonl", "d1"))
        await store.keep_batch("a", begun, ImportBatch(tuple(facts), (), {}, ImportPosition(10, 10)))
        await settled(store)
        assert files(folder)
    async with opened(database, most_read=4, page=1) as store:
        assert await unread(store) == 0
        assert await nearest(store, "thingj thinga") == ["thinga", "thingj"]


async def test_a_database_that_fails_behind_a_search_is_said(database: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The search has answered; the next one goes on."""
    async with opened(database, most_read=2, page=2) as store:
        await keep(store, "x", *words())
        assert await unread(store) == 8
        assert isinstance(store._vectors, FiledVectors)
        store._vectors.database = Database(engine_url(f"sqlite:///{database.parent}/no/file.db"))
        await settled(store)
        store._vectors.follow("a")
        await settled(store)
        assert "vectors are not read on" in caplog.text
        store._vectors.database = store._database
        assert await unread(store) < 8


def _remove(file: Path) -> None:
    file.unlink()


def _cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def _cut_short(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-1])


def _empty(file: Path) -> None:
    file.write_bytes(b"")


def _foreign(file: Path) -> None:
    file.write_bytes(b"PK\x03\x04" + os.urandom(10_000))


def _directory(file: Path) -> None:
    file.unlink()
    file.mkdir()


def _all_gone(file: Path) -> None:
    file.unlink()
    file.parent.rmdir()


def _mine(folder: Path) -> None:
    folder.write_text("mine")


def _file_for_folder(file: Path) -> None:
    _all_gone(file)
    _mine(file.parent)


def _smaller_vectors(file: Path) -> None:
    from usearch.index import Index

    Index(ndim=8, metric="cos", dtype="i8").save(str(file))


def _nonsense_beside(file: Path) -> None:
    for name in ("x.npy", f"{file.stem}-x.npy", f"{file.stem.rpartition('-')[0]}-.npy"):
        (file.parent / name).write_bytes(b"x")


def _newer_nonsense(file: Path) -> None:
    file.with_name(f"{file.stem.rpartition('-')[0]}-999999.npy").write_bytes(b"x")


DAMAGE = (
    _remove, _cut, _cut_short, _empty, _foreign, _directory, _all_gone, _file_for_folder,
    _smaller_vectors, _nonsense_beside, _newer_nonsense,
)  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGE)
async def test_whatever_lies_there_results_are_right(
    database: Path, folder: Path, damage: Callable[[Path], None]
) -> None:
    """In a new process, in one that holds the file, and for what comes after."""
    await filled(database)
    async with opened(database) as holding:
        assert await nearest(holding, "thingb") == ["thingb"]
        damage(files(folder)[0])
        async with opened(database) as store:
            assert await nearest(store, "thinga thingj") == ["thinga", "thingj"]
            await keep(store, "y", *words("more"))
            assert await nearest(store, "morethinga thingc") == ["morethinga", "thingc"]
        assert await nearest(holding, "morethingb thingd") == ["morethingb", "thingd"]
        await keep(holding, "z", *words("most"))
        assert await nearest(holding, "mostthingb thingd") == ["mostthingb", "thingd"]
        assert await nearest(holding, "mostthinge morethinge") == ["morethinge", "mostthinge"]


async def test_folder_that_cannot_be_written_costs_time_alone(
    database: Path, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The log says so, by the kind of error, and it is not tried with every search."""
    _mine(folder)
    async with opened(database) as store:
        await keep(store, "x", *words())
        with caplog.at_level(logging.WARNING):
            for _ in range(5):
                assert await nearest(store, "thinga") == ["thinga"]
        kept = [record.message for record in caplog.records if "not kept" in record.message]
        assert len(kept) == 2, "after 3 and after 6 entries, of 10"
        assert str(folder) in kept[0]


async def test_read_only_folder_costs_time_alone(database: Path, folder: Path) -> None:
    """Results are right, whoever runs this."""
    await filled(database)
    rights(folder, 0o500)
    try:
        async with opened(database) as store:
            await keep(store, "y", *words("more"))
            assert await nearest(store, "morethinga thingc") == ["morethinga", "thingc"]
    finally:
        rights(folder, 0o700)


async def test_another_database_at_the_same_path_has_its_own_vectors(database: Path, folder: Path) -> None:
    """Files of the one that was there before are not read, and removed with the first new one."""
    await filled(database)
    (old,) = files(folder)
    for file in database.parent.glob("listenpost.db*"):
        if file.is_file():
            file.unlink()

    async with opened(database) as store:
        await keep(store, "y", "thingj", "other")
        assert await nearest(store, "thinga") == []
        assert await nearest(store, "thingj other") == ["other", "thingj"]
        await keep(store, "z", *words("more"))
        assert await nearest(store, "morethinga thingj") == ["morethinga", "thingj"]
    (new,) = files(folder)
    assert new != old
    assert new.name.partition("-")[0] == old.name.partition("-")[0]


async def test_tenants_have_their_own_files(database: Path, folder: Path) -> None:
    """More of them than are held at once."""
    async with opened(database) as store:
        for number in range(10):
            await keep(store, "x", *words(), f"own{number}", tenant=f"t{number}")
            assert await nearest(store, "thinga", tenant=f"t{number}") == ["thinga"]
        for number in range(10):
            assert await nearest(store, f"own{number}", tenant=f"t{number}") == [f"own{number}"]
            other = (number + 1) % 10
            assert await nearest(store, f"own{number}", tenant=f"t{other}") == []
    assert len(files(folder)) == 10


async def test_deleted_entries_are_not_found_and_take_no_places(database: Path, folder: Path) -> None:
    """Out of a file and of what came later; the next file does without them."""
    async with opened(database) as store:
        await keep(store, "x", *(["battery"] * 30))
        await keep(store, "y", "battery thinga")
        assert await nearest(store, "battery") == ["battery", "battery"]
        await keep(store, "z", *(["battery"] * 3))
        assert await nearest(store, "battery") == ["battery", "battery"]
        await store.delete("a", "x")
        await store.delete("a", "z")
        assert await nearest(store, "battery") == ["battery thinga"]
        size = files(folder)[0].stat().st_size
        await keep(store, "w", *words(), "battery")
        assert await nearest(store, "battery") == ["battery", "battery thinga"]
        assert files(folder)[0].stat().st_size < size
    async with opened(database) as store:
        assert await nearest(store, "battery") == ["battery", "battery thinga"]


async def test_item_that_is_indexed_anew_is_found_once_by_its_new_text(database: Path, folder: Path) -> None:
    """Its old entries are gone, also out of a file."""
    async with opened(database) as store:
        await keep(store, "x", *words())
        assert await nearest(store, "thinga") == ["thinga"]
        await store.forget([f"items:x{n}" for n in range(10)])
        await keep(store, "x", *reversed(words()))
        assert await nearest(store, "thinga") == ["thinga"]
        assert await nearest(store, "thingj thinga") == ["thinga", "thingj"]


async def test_two_stores_write_beside_each_other(database: Path, folder: Path) -> None:
    """Each finds what either stored, whoever wrote the file last."""
    async with opened(database) as first, opened(database) as second:
        for round_ in range(6):
            for name, store in (("p", first), ("q", second)):
                await keep(store, f"{name}{round_}", *(f"{name}{round_}thing{c}" for c in LETTERS))
            wanted = [f"p{round_}thinga", f"q{round_}thinga"]
            both = await asyncio.gather(*(nearest(store, " ".join(wanted)) for store in (first, second, first, second)))
            assert both == [wanted] * 4
        assert await nearest(first, "p0thinga q5thingj") == ["p0thinga", "q5thingj"]
    assert files(folder, "part") == []
    async with opened(database) as store:
        assert await nearest(store, "p0thinga q5thingj") == ["p0thinga", "q5thingj"]


PROCESS = """
import asyncio, sys
from pathlib import Path
from tests.store.test_vectors import keep, nearest, opened

async def main():
    async with opened(Path(sys.argv[1])) as store:
        for number in range(8):
            await keep(store, f"{sys.argv[2]}{number}", *(
                f"{sys.argv[2]}{number}thing{letter}" for letter in "abcdefghij"))
            wanted = f"{sys.argv[2]}{number}thingc"
            assert await nearest(store, wanted) == [wanted]

asyncio.run(main())
"""


async def test_two_processes_write_at_once(database: Path) -> None:
    """Neither loses the other's."""
    async with opened(database):
        pass
    processes = [Forked[bytes]([CODE, PROCESS, str(database), name]) for name in "pq"]
    assert [await asyncio.to_thread(process.wait) for process in processes] == [0, 0]

    async with opened(database) as store:
        assert await nearest(store, "p0thinga q7thingj") == ["p0thinga", "q7thingj"]
        assert await nearest(store, "q0thinga p7thingj") == ["p7thingj", "q0thinga"]


async def test_what_a_killed_process_left_is_not_read_and_is_removed(database: Path, folder: Path) -> None:
    """Half a file is no index; that of a process that may be writing stays."""
    await filled(database)
    (file,) = files(folder)
    left, writing = file.with_suffix(".0a.part"), file.with_suffix(".0b.part")
    for scratch in (left, writing):
        scratch.write_bytes(file.read_bytes()[:1000])
    hours_ago = time.time() - 7200
    os.utime(left, (hours_ago, hours_ago))

    async with opened(database) as store:
        assert await nearest(store, "thinga thingb") == ["thinga", "thingb"]
        assert left.exists()
        await keep(store, "y", *words("more"))
        assert await nearest(store, "thinga morethingb") == ["morethingb", "thinga"]
    assert (left.exists(), writing.exists()) == (False, True)


@pytest.mark.parametrize(
    "filters",
    [
        ArchiveFilters(),
        ArchiveFilters(source="items", since=datetime(2026, 1, 1, tzinfo=UTC)),
        ArchiveFilters(kept=True, product="plaud note"),
    ],
)
async def test_words_are_looked_up_before_entries(database: Path, filters: ArchiveFilters) -> None:
    """SQLite goes through what holds the words, never through all that a tenant has."""
    statements: list[tuple[str, Any]] = []

    def executed(_: object, __: object, statement: str, parameters: Any, *___: object) -> None:
        if "MATCH" in statement and "JOIN" in statement:
            statements.append((statement, parameters))

    async with opened(database) as store:
        await keep(store, "x", *words("common "))
        with sqlite3.connect(database) as connection:
            connection.execute("ANALYZE")
        event.listen(Engine, "before_cursor_execute", executed)
        try:
            await store.matches("a", ["common", "thinga"], None, filters, 9)
        finally:
            event.remove(Engine, "before_cursor_execute", executed)

    assert statements
    with closing(sqlite3.connect(database)) as connection:
        for statement, parameters in statements:
            plan = connection.execute(f"EXPLAIN QUERY PLAN {statement}", parameters).fetchall()
            steps = [step for *_, step in plan if "chunk" in step]
            assert steps[0].startswith("SCAN chunk_words VIRTUAL TABLE")
            assert steps[1] == "SEARCH chunks USING INTEGER PRIMARY KEY (rowid=?)"
