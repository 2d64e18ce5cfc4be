"""Bluesky's stream for watches over the sandbox's Jetstream: each post once, whatever the stream does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from api.features.watches.stream_watching import StreamListener
from api.features.watches.watch_ports import WatchId
from api.features.watches.watch_service import utc_now
from api.pipeline.gate.name_index import NameIndex
from api.sandbox.server import Sandbox
from api.settings import SourceSettings
from api.sources.bluesky_stream import BlueskyStream
from api.store import SqlStore, open_store
from tests.features.watches.made import WATCH

MINUTE = 1 / 1_440
ROWS: list[dict[str, Any]] = [
    {"source": "bluesky", "title": "", "body": f"My Lumo lamp hums, take {number}", "age_days": age * MINUTE,
     "deleted": deleted}
    for number, (age, deleted) in enumerate([(18, True), (16, False), (14, False), (3, False), (2, False)])
]  # fmt: skip
LAST = "take 4"
READ_ON = (
    "duplicates", "disorder", "garbage", "slow", "close@1x2", "error@1x2", "silent@1x1", "too_old@1x1", "hang@1x1",
    "html200@1x2", "403html@1x1", "notjson@1x1", "400@1x2", "404@1x2", "429@1x1", "500@1x1", "503@1x2",
)  # fmt: skip
"""Faults that cost no post: of an answer instead of a stream, the next connection is as it should be."""


@pytest.fixture
async def store(tmp_path: Any) -> AsyncIterator[SqlStore]:
    """A database with a watch that follows streams."""
    opened = await open_store(f"sqlite:///{tmp_path / 'listenpost.db'}")
    await opened.add_watch(replace(WATCH, query="Lumo lamp", as_it_happens=True), 9)
    yield opened
    await opened.aclose()


async def waiting(store: SqlStore, fault: str) -> list[str]:
    """Texts of the posts that wait when the last one does, read with this fault."""
    came = asyncio.Event()

    async def pause(seconds: float) -> None:
        await asyncio.sleep(0)

    with Sandbox.start(ROWS) as sandbox:
        sandbox.fault(f"bluesky.stream={fault}")
        settings = SourceSettings.model_validate({"BLUESKY_URL": sandbox.url, "source_timeout": 1})
        stream = BlueskyStream(settings, timedelta(minutes=20))
        listener = StreamListener(stream, store, NameIndex[WatchId](), "r1", utc_now, pause, came.set)
        reading = asyncio.create_task(listener.run())
        texts: list[str] = []
        async with asyncio.timeout(60):
            while not any(text.endswith(LAST) for text in texts):
                await came.wait()
                came.clear()
                texts = [post.body for post in await store.posts_of_watch((WATCH.tenant, WATCH.id), 99)]
        reading.cancel()
        await asyncio.wait({reading})
    return sorted(texts)


@pytest.mark.parametrize("fault", READ_ON)
async def test_each_post_waits_once(store: SqlStore, fault: str) -> None:
    """Also what comes twice, out of order, between garbage or by several connections; what was deleted does not."""
    texts = await waiting(store, fault)

    assert texts == [row["body"] for row in ROWS[1:]]


async def test_a_gap_loses_what_lies_in_it_alone(store: SqlStore) -> None:
    """Posts and deletions alike: the server says nothing of it, so nobody can know. What follows is read."""
    texts = await waiting(store, "gap")

    assert texts == [row["body"] for row in ROWS if row["body"] in texts]
    assert LAST in texts[-1]
