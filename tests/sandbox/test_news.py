"""The sandbox's article lists: the feed, minutes without a list, its faults."""

from __future__ import annotations

import gzip
import json
import re
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from api.core.domain import FetchPlan
from api.core.items import Batch
from api.errors import Blocked, Broken, RateLimited, SourceError, TimedOut, Unreachable
from api.sandbox.faults import KINDS
from api.sandbox.server import Sandbox
from api.settings import SourceSettings
from api.sources import SOURCES
from api.sources.news import kept_lists

ROWS: list[dict[str, Any]] = [
    {"source": "news", "place": "daily.example", "title": f"Lumo lamp number {number} glows", "body": "A lamp",
     "age_days": number / 100}
    for number in range(2, 40)
] + [
    {"source": "news", "place": "daily.example", "title": "Lumo lamp withdrawn", "deleted": True, "age_days": 0.05},
]  # fmt: skip
NOON = datetime(2026, 11, 30, 12, 3, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _nothing_read() -> None:
    kept_lists.cache_clear()  # a port may have been another test's sandbox before


def test_the_feed_names_a_list_and_most_minutes_have_none() -> None:
    """Two lists in a quarter of an hour; later ones and other minutes are 404, what was deleted is in none."""
    with Sandbox.start(ROWS, clock=NOON.timestamp) as sandbox:
        feed = httpx.get(f"{sandbox.url}/gdeltv3/gal/feed.rss").text
        first = NOON - timedelta(minutes=3, hours=10)
        stamps = [f"{first + timedelta(minutes=number):%Y%m%d%H%M%S}" for number in range(10 * 60 + 20)]
        with httpx.Client(base_url=sandbox.url) as client:
            answers = {stamp: client.get(f"/gdeltv3/gal/{stamp}.gal.json.gz") for stamp in stamps}

    assert re.search(r"<lastBuildDate>30 Nov 2026 12:02:00 \+0000</lastBuildDate>", feed)
    held = [stamp for stamp, answer in answers.items() if answer.status_code == 200]
    assert len(held) == 2 * 41
    assert max(held) == "20261130120200"
    lines = [json.loads(line) for stamp in held for line in gzip.decompress(answers[stamp].content).splitlines()]
    assert sum("Lumo" in line["title"] for line in lines) == len(ROWS) - 1


async def answer(*faults: str) -> Batch:
    """What a question gets while these faults last."""
    with Sandbox.start(ROWS) as sandbox:
        sandbox.fault(*faults)
        source = SOURCES["news"].build(SourceSettings.model_validate(sandbox.environment | {"source_timeout": 2}))
        async with aclosing(source):
            return await source.fetch(FetchPlan("Lumo lamp", 50))


FAILURES: list[tuple[str, type[SourceError]]] = [
    ("news.list=404", Unreachable),
    ("news=404", Blocked),
    ("news.list=429", RateLimited),
    ("news.list=text", Broken),
    ("news.list=large", Broken),
    ("news.list=500", Unreachable),
    ("news.list=notjson", Blocked),
    ("news.feed=notjson", Blocked),
    ("news.feed=hang", TimedOut),
    ("news.feed=drip", TimedOut),
]


@pytest.mark.parametrize(("fault", "expected"), FAILURES)
async def test_no_list_is_a_failure(fault: str, expected: type[SourceError]) -> None:
    """Where nothing could be read, nothing is known."""
    with pytest.raises(expected):
        await answer(fault)


def test_every_fault_is_in_a_table() -> None:
    """None is left out."""
    assert {fault.partition("=")[2].partition("@")[0] for fault, _ in (*FAILURES, *NOTED)} == KINDS["news"]


NOTED = [
    ("news.list=truncated", "ended too early"),
    ("news.list=bad_lines", "lines could not be read"),
    ("news.list=500@20x1", "the earlier part was not read: HTTP 500"),
    ("news.feed=old", "nothing newer is listed"),
]


@pytest.mark.parametrize(("fault", "note"), NOTED)
async def test_what_could_be_read_is_the_answer(fault: str, note: str) -> None:
    """With a note on what could not."""
    batch = await answer(fault)

    assert batch.items or fault == "news.feed=old"
    assert note in batch.notes[-2]
