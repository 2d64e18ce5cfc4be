"""The core of the contract, over every source against the sandbox."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from api.core.context import request_counter
from api.core.domain import FetchPlan
from api.core.ports import Source
from api.sandbox.feeds_server import feeds_setting
from api.sandbox.server import Sandbox
from api.settings import SourceSettings
from api.sources import SOURCES

UNTITLED = {"bluesky"}
"""Sources whose posts have a text alone."""
PLAN = FetchPlan("notion", 3, name="notion")
# no game is called Notion
PLANS = {"steam": FetchPlan("lantern deep", 3, name="Lantern Deep")}


def plan_of(source: Source) -> FetchPlan:
    """A question to which the place has answers."""
    return PLANS.get(source.name, PLAN)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    """All places on one port."""
    with Sandbox.start() as started:
        yield started


@pytest.fixture(params=SOURCES)
async def source(sandbox: Sandbox, request: pytest.FixtureRequest) -> AsyncIterator[Source]:
    """The real source of each place, pointed there."""
    # not in the environment of the sandbox, where whoever names no source asks the others
    variables = sandbox.environment | {"FEEDS": feeds_setting(sandbox.url)}
    made = SOURCES[request.param].build(SourceSettings.model_validate(variables))
    yield made
    await made.aclose()


async def test_items_have_what_a_report_needs(source: Source) -> None:
    """Identity, words and an address; a time, but for Amazon, which says none."""
    batch = await source.fetch(plan_of(source))

    assert len({item.key for item in batch.items}) == len(batch.items) == 3
    for item in batch.items:
        assert item.key.startswith(f"{source.name}:")
        assert item.title or item.source in UNTITLED
        assert item.url.startswith("http")
        assert (item.created_at is None) is (source.name == "amazon")


async def test_a_refetch_is_served_from_the_page(source: Source) -> None:
    """Twice as many begin with the same ones and cost no request."""
    first = await source.fetch(plan_of(source))
    with request_counter() as calls:
        wider = await source.fetch(plan_of(source).widened(2))

    assert calls.made == 0
    assert wider.items[:3] == first.items
    assert len(wider.items) > 3


async def test_comments_are_read(source: Source) -> None:
    """Of kept items, in their order; somebody said something about one of six, but for articles and feeds."""
    items = (await source.fetch(plan_of(source).widened(2))).items
    read = await source.comments(items)

    assert [item.key for item in read.items] == [item.key for item in items]
    assert any(item.comments for item in read.items) is (source.name not in {"feeds", "news"})


async def test_nothing_is_an_answer_and_the_probe_agrees(source: Source) -> None:
    """No hit is an empty batch, and the place says that it can be asked."""
    batch = await source.fetch(FetchPlan("qqqqzzzz", 3))

    assert (batch.items, batch.full) == ((), False)
    assert (await source.probe()).outcome == "ok"
