"""A backup of a database in use, made and put back by the commands of docs/deploy.md, answers as the database did."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from api.core.words import index_tokens
from api.features.analyses.store_ports import Filters
from api.features.archive.search_values import ArchiveFilters
from api.store import open_store
from api.store.database import Database, engine_url
from tests.features.watches.made import WATCH
from tests.postgres import Postgres
from tests.snippets import blocks
from tests.store.made import item, report, typed
from tests.store.test_migrations import without_digests


async def answers(url: str) -> list[Any]:
    """What is stored, as the product asks for it."""
    store = await open_store(url)
    try:
        kept, listed = await store.get("local", "r1"), await store.listing("local", Filters(), 10)
        found = await store.matches("local", index_tokens("title"), None, ArchiveFilters(), 10)
        assert kept is not None
        assert found
        return [kept.report, listed.analyses, found, await store.watches("local"), await store.keys()]
    finally:
        await store.aclose()


async def make_older(url: str) -> None:
    """Turn the tables into those of version 17."""
    database = Database(engine_url(url))
    async with database.writing(alone=True) as connection:
        for later in ("agreement_samples", "inbox", "inbox_settings"):
            await connection.execute(text(f"DROP TABLE {later}"))
        await without_digests(connection)
        await connection.execute(text("UPDATE schema_version SET version = 17"))
    await database.aclose()


@pytest.mark.parametrize("older", [False, True], ids=["of this version", "of an older version"])
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
async def test_a_backup_that_is_put_back_gives_the_same_answers(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str, older: bool
) -> None:
    """Made while the store is open; one of an older version is upgraded when it is opened."""
    server: Postgres | None = request.getfixturevalue("postgres") if kind == "postgresql" else None
    tools = os.environ["PATH"] if server is None else str(server.psql.parent)
    programs = ("sqlite3",) if server is None else ("pg_dump", "pg_restore")
    for program in programs:
        if shutil.which(program, path=tools) is None:
            pytest.skip(f"there is no {program}")
    url = f"sqlite:///{tmp_path}/listenpost.db" if server is None else server.create()
    commands = [block.splitlines() for block in blocks("deploy.md", "sh")]
    lines = [line for block in commands for line in block]
    if server is None:
        saving = [line for line in lines if line.startswith("sqlite3 ")]
        putting_back = next(block for block in commands if block[0].startswith("rm -rf listenpost.db"))
    else:
        saving, putting_back = ([line for line in lines if line.startswith(f"{program} ")] for program in programs)
    assert saving
    assert putting_back

    def run(commands: Sequence[str], url: str) -> None:
        subprocess.run(
            ["bash", "-ec", "\n".join(commands)], check=True, timeout=60, cwd=tmp_path,
            env={"PATH": f"{tools}:{os.environ['PATH']}", "LISTENPOST_DATABASE_URL": url},
        )  # fmt: skip

    store = await open_store(url)
    await store.add_key("mine", "digest")
    await store.add_watch(WATCH, 9)
    await store.finish("local", typed(report("r1", item("reddit:t3_1"), item("reddit:t3_2"))))
    before = await answers(url)
    if older:
        await store.aclose()
        await make_older(url)
    await asyncio.to_thread(run, saving, url)
    if not older:
        await store.drop_watch("local", WATCH.id)
        await store.aclose()
    put_back = url if server is None else server.create()
    await asyncio.to_thread(run, putting_back, put_back)

    assert await answers(put_back) == before
    if server is not None:
        for each in (url, put_back):
            server.clear(each)
