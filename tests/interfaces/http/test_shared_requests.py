"""Identical requests at the same time share one piece of work, at every door."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from api.features.analyses.api_keys import LOCAL
from tests.interfaces.http.conftest import Opening, Served

FETCH = {"query": "plaud.ai", "depth": "quick"}
ITEMS = [{"title": f"My Plaud Note, day {number}"} for number in range(4)]


async def answers(served: Served, url: str, *bodies: dict[str, Any], keys: str = "") -> list[Any]:
    """To requests that are all there before the first may begin; with a key each, if there are."""
    app_context, turns = served.app_context, served.app_context.limits.queue
    headers = [{"Authorization": f"Bearer {key}"} for key in keys] or [{}] * len(bodies)
    with ExitStack() as seats:
        for _ in range(turns.at_once):
            seats.enter_context(turns.joined(LOCAL))
        asked = [
            asyncio.create_task(served.client.post(url, json=body, headers=each))
            for body, each in zip(bodies, headers, strict=True)
        ]
        async with asyncio.timeout(60):
            while len(bodies) > sum(
                task.waiting for tasks in (app_context._fetches, app_context._judging) for task in tasks._tasks.values()
            ):
                await served.client.get("/readyz")  # the database lets others run
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
        (single,) = await answers(alone, "/v1/fetch/reddit", FETCH)
        needed = sent(alone)
        alone.sandbox.forget()
    async with opening(DATABASE_URL=f"sqlite:///{tmp_path}/other.db") as served:
        shared = await answers(served, "/v1/fetch/reddit", *[FETCH] * 20)
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

    judged = await answers(served, "/v1/relevance", *[body] * 20, other)

    assert sent(served) == {("openai", "judge"): 2}
    assert [len(answer["relevant"]) for answer in judged] == [4] * 20 + [2]


async def test_tenants_pay_for_themselves_and_ask_upstream_once(opening: Opening) -> None:
    """Of two keys the searches are shared while they run, the answers are each one's own."""
    async with opening("a,b", "a") as served:
        served.sandbox.latency("reddit=100ms", "openai=100ms")
        fetched = await answers(served, "/v1/fetch/reddit", FETCH, FETCH, keys="ab")

    calls = [answer["upstream_calls"] for answer in fetched]
    assert min(calls) == 0
    assert sum(calls) == sum(count for (upstream, _), count in sent(served).items() if upstream == "reddit")


async def test_a_source_that_is_down_is_searched_for_all(served: Served) -> None:
    """Once, and once more after its server's failure, which is then the outcome of all who waited."""
    await served.app_context.product()
    served.sandbox.fault("reddit.search=500")

    shared = await answers(served, "/v1/fetch/reddit", *[FETCH] * 20)

    assert sent(served)["reddit", "search"] == 2
    assert {answer["outcome"] for answer in shared} == {"unreachable"}
