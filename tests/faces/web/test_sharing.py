"""Identical requests at the same time share one piece of work, at every door."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.faces.web.conftest import Opening, Served

FETCH = {"query": "plaud.ai", "depth": "quick"}
ITEMS = [{"title": f"My Plaud Note, day {number}"} for number in range(4)]


async def answers(served: Served, url: str, body: dict[str, Any], many: int) -> list[Any]:
    """So many answers to one request, all asked at the same time."""
    served.sandbox.latency("reddit=100ms", "openai=100ms")
    asked = (served.client.post(url, json=body) for _ in range(many))
    return [answer.json() for answer in await asyncio.gather(*asked)]


def sent(served: Served) -> dict[tuple[str, str], int]:
    """How often each endpoint was asked."""
    counts: dict[tuple[str, str], int] = {}
    for request in served.sandbox.requests():
        place = (request.upstream, request.endpoint)
        counts[place] = counts.get(place, 0) + 1
    return counts


async def test_twenty_fetches_are_one(opening: Opening, tmp_path: Path) -> None:
    """Judged once, comments read once, as for a single one; metrics count it once."""
    async with opening() as alone:
        (single,) = await answers(alone, "/v1/fetch/reddit", FETCH, 1)
        needed = sent(alone)
        alone.sandbox.forget()
    async with opening(DATABASE_URL=f"sqlite:///{tmp_path}/other.db") as served:
        shared = await answers(served, "/v1/fetch/reddit", FETCH, 20)
        counted = (await served.client.get("/metrics")).text

    assert needed["openai", "judge"] == len(single["attempts"])
    assert needed["reddit", "comments"] == single["kept"] > 1
    assert sent(served) == needed
    assert all(answer == shared[0] for answer in shared)
    calls = f'listenpost_upstream_calls_total{{source="reddit"}} {single["upstream_calls"]:.1f}'
    assert calls in counted


async def test_twenty_judgings_of_the_same_items_are_one(served: Served) -> None:
    """The same body; another list of items is judged on its own."""
    body = {"query": "plaud.ai", "source": "reddit", "items": ITEMS}
    other = {**body, "items": ITEMS[:2]}

    shared, apart = await asyncio.gather(
        answers(served, "/v1/relevance", body, 20), answers(served, "/v1/relevance", other, 1)
    )

    assert sent(served) == {("openai", "judge"): 2}
    assert [len(answer["relevant"]) for answer in (*shared, *apart)] == [4] * 20 + [2]


async def test_tenants_pay_for_themselves_and_ask_upstream_once(opening: Opening) -> None:
    """Of two keys the searches are shared while they run, the answers are each one's own."""
    async with opening("a,b", "a") as served:
        served.sandbox.latency("reddit=100ms", "openai=100ms")
        fetched = await asyncio.gather(
            *(
                served.client.post(
                    "/v1/fetch/reddit", json=FETCH, headers={"Authorization": f"Bearer {key}"}
                )
                for key in "ab"
            )
        )

    calls = [answer.json()["upstream_calls"] for answer in fetched]
    assert min(calls) == 0
    assert sum(calls) == sum(
        count for (upstream, _), count in sent(served).items() if upstream == "reddit"
    )


@pytest.mark.parametrize("many", [20])
async def test_a_source_that_is_down_is_searched_once(served: Served, many: int) -> None:
    """Its failure is the outcome of all who waited."""
    await served.house.product()
    served.sandbox.fault("reddit.search=500")

    shared = await answers(served, "/v1/fetch/reddit", FETCH, many)

    assert sent(served)["reddit", "search"] == 1
    assert {answer["outcome"] for answer in shared} == {"unreachable"}
