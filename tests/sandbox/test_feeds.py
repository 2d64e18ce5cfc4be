"""The sandbox's feeds: four forms, the page that announces one, and what can go wrong."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from api.core.domain import FetchPlan
from api.core.items import Batch
from api.errors import Blocked, RateLimited, Refused, SourceError, TimedOut, Unreachable
from api.sandbox.faults import KINDS
from api.sandbox.feeds_server import ROOT, feeds_setting
from api.sandbox.server import Sandbox
from api.settings import SourceSettings
from api.settings.value_types import feeds_in
from api.sources.feeds import Ended, FeedReader, FeedsSource, NoFeed

PLACES = ("notes", "tag", "releases", "log")
ROWS: list[dict[str, Any]] = [
    {"source": "feeds", "place": place, "title": f"Lumo lamp, {place} {number}",
     "body": f"A Lumo lamp that glows {number}", "age_days": number + 1}
    for place in PLACES for number in range(3)
]  # fmt: skip
PLAN = FetchPlan("Lumo lamp", 50)


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    """A sandbox with these rows alone."""
    with Sandbox.start(ROWS) as server:
        yield server


class Clock:
    """A time that a test moves on."""

    def __init__(self) -> None:
        self.now = datetime.now(UTC)

    def __call__(self) -> datetime:
        return self.now


def source_of(feeds: str, clock: Clock) -> FeedsSource:
    """The real source over these feeds."""
    settings = SourceSettings.model_validate({"FEEDS": feeds, "source_timeout": 1})
    return FeedsSource(FeedReader(settings, None, clock), feeds_in(settings.feeds))


async def fetched(sandbox: Sandbox, *faults: str, turns: int = 1) -> Batch:
    """What the last of so many questions, two hours apart, gets of the feed of notes."""
    sandbox.fault(*faults)
    clock = Clock()
    async with aclosing(source_of(f"{sandbox.url}{ROOT}/notes.xml", clock)) as source:
        for _ in range(turns):
            batch = await source.fetch(PLAN)
            clock.now += timedelta(hours=2)
    return batch


async def test_each_form_is_read_and_asked_anew_with_what_it_gave(sandbox: Sandbox) -> None:
    """RSS, a tag of Mastodon, Atom and JSON Feed; an hour later they are unchanged, and nothing is lost."""
    clock = Clock()
    async with aclosing(source_of(feeds_setting(sandbox.url), clock)) as source:
        batches = [await source.fetch(PLAN)]
        clock.now += timedelta(hours=2)
        batches.append(await source.fetch(PLAN))

    assert [len(batch.items) for batch in batches] == [len(ROWS)] * 2
    assert len({item.key for item in batches[0].items}) == len(ROWS)
    assert [entry.status for entry in sandbox.requests("feeds")] == [200] * 4 + [304] * 4


async def test_the_page_leads_to_its_feed(sandbox: Sandbox) -> None:
    """It is asked instead, once."""
    async with aclosing(source_of(f"{sandbox.url}{ROOT}/", Clock())) as source:
        batch = await source.fetch(PLAN)

    assert len(batch.items) == 3
    assert [entry.endpoint for entry in sandbox.requests("feeds")] == ["page", "rss"]


FAILURES: dict[str, type[SourceError]] = {
    "304": NoFeed, "401": Refused, "403": Blocked, "404": NoFeed, "410": Ended, "429": RateLimited, "500": Unreachable,
    "html": NoFeed, "botwall": Blocked, "hang": TimedOut, "drip": TimedOut, "notjson": NoFeed,
}  # fmt: skip
WHOLE = {"301": 3, "cut": 1, "charset": 3, "empty": 0}
"""Faults that are an answer, and how many entries are read at least."""


def test_every_fault_is_in_a_table() -> None:
    """None is left out."""
    assert FAILURES.keys() | WHOLE.keys() == KINDS["feeds"]


@pytest.mark.parametrize("kind", FAILURES)
async def test_a_failure_is_told_apart_and_keeps_what_was_read(sandbox: Sandbox, kind: str) -> None:
    """Alone it is an outcome; after an answer that answer stands, with a note unless it is unchanged."""
    with pytest.raises(FAILURES[kind]) as caught:
        await fetched(sandbox, f"feeds.rss={kind}")
    sandbox.heal()
    batch = await fetched(sandbox, f"feeds.rss={kind}@2", turns=2)

    assert type(caught.value) is FAILURES[kind]
    assert len(batch.items) == 3
    assert bool(batch.notes) == (kind != "304")


@pytest.mark.parametrize("kind", WHOLE)
async def test_what_can_be_read_is_the_answer(sandbox: Sandbox, kind: str) -> None:
    """A move, a document that was cut off, a wrong encoding and a channel without entries; a cut one has a note."""
    batch = await fetched(sandbox, f"feeds.rss={kind}x1")

    assert WHOLE[kind] <= len(batch.items) <= 3
    assert len(batch.items) == WHOLE[kind] or kind == "cut"
    assert bool(batch.notes) == (kind == "cut")
    assert all(item.body.startswith("A Lumo lamp that glows") for item in batch.items)


async def test_what_is_gone_is_not_asked_again(sandbox: Sandbox) -> None:
    """410 is for good."""
    sandbox.fault("feeds.rss=410")
    clock = Clock()
    async with aclosing(source_of(f"{sandbox.url}{ROOT}/notes.xml", clock)) as source:
        for _ in range(3):
            with pytest.raises(Ended):
                await source.fetch(PLAN)
            clock.now += timedelta(days=2)

    assert len(sandbox.requests("feeds")) == 1
