"""`/v1/comparisons` over a real store and the real clients."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.interfaces.http.api_keys import code
from tests.interfaces.http.conftest import Opening, Served

URL = "/v1/comparisons"
TWO: dict[str, Any] = {"products": ["Oura", "Whoop"], "depth": "quick"}
KEY = {"Idempotency-Key": "k1"}


async def test_products_stand_side_by_side(served: Served) -> None:
    """Each has an analysis that can be read, and every cited item is there."""
    answer = await served.client.post(URL, json=TWO)
    comparison = answer.json()

    assert answer.status_code == 200, answer.text
    assert [product["query"] for product in comparison["products"]] == TWO["products"]
    items = {item["key"]: item for item in comparison["items"]}
    sides = [side for finding in comparison["findings"] for side in finding["sides"]]
    assert {passage["key"] for side in sides for passage in side["evidence"]} <= set(items)
    assert any(len(item["products"]) == 2 for item in items.values())
    for product in comparison["products"]:
        kept = (await served.client.get(f"/v1/analyses/{product['analysis_id']}")).json()
        assert kept["query"] == product["query"]
        assert product["posts"] == kept["total_survived"]
        for aspect in product["aspects"]:
            assert set(aspect["cites"]) <= {item["key"] for item in kept["items"]}


async def test_an_analysis_of_two_products_names_the_call(served: Served) -> None:
    """A typed answer for nothing: the products are those of the comparison's body."""
    answer = (await served.client.post("/v1/analyses", json={"query": "Oura vs Whoop", "depth": "quick"})).json()

    assert (answer["decision"], answer["compared"], answer["sources"]) == ("clarify", TWO["products"], {})
    assert answer["cost"] == {"usd": 0.0, "tokens": 0, "upstream_calls": 0}


async def test_limit_is_asked_of_each_source(served: Served) -> None:
    """
    So many items at first, for every product.
    """
    comparison = (await served.client.post(URL, json={**TWO, "limit": 3})).json()
    kept = [
        (await served.client.get(f"/v1/analyses/{product['analysis_id']}")).json() for product in comparison["products"]
    ]

    assert comparison["limit"] == 3
    assert {report["sources"]["reddit"]["attempts"][0]["limit"] for report in kept} == {3}


@pytest.mark.parametrize(
    ("accept", "start"),
    [
        ("text/html", "<!doctype html>"),
        ("text/markdown", "# Oura and Whoop, compared"),
        ("text/csv", "\ufeff,Oura,Whoop"),
        ("text/event-stream", '{"version":1'),
    ],
)
async def test_accept_chooses_the_format(served: Served, accept: str, start: str) -> None:
    """Where there is none of the kind, JSON."""
    answer = await served.client.post(URL, json=TWO, headers={"Accept": accept})
    assert answer.text.startswith(start)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"products": ["Oura"]}, "`products` must be a list of 2 to 5"),
        ({"products": ["Oura", "OURA"]}, "“Oura” and “OURA” are the same product"),
        ({"products": ["Oura", "hello"]}, "“hello”: Hello!"),
        ({"about": ["a ring"]}, "`about` has 1 text for 2 products"),
        ({"sources": ["myspace"]}, "there is no source `myspace`"),
        ({"limit": 0}, "`limit` must be a whole number from 1 to 500"),
        ({"limitt": 3}, "`limitt`, did you mean `limit`?"),
    ],
)
async def test_what_is_wrong_is_named(served: Served, change: dict[str, Any], words: str) -> None:
    """And nobody is asked."""
    answer = await served.client.post(URL, json=TWO | change)
    assert (answer.status_code, code(answer)) == (422, "invalid_request")
    assert words in answer.json()["error"]["message"]
    assert not served.sandbox.log


async def test_it_runs_on_its_own_and_is_asked_for_again(served: Served) -> None:
    """With a key: 202, then the comparison; nothing is asked twice, and another body is refused."""
    begun = await served.client.post(URL, json=TWO, headers={**KEY, "Prefer": "respond-async"})
    again = await served.client.post(URL, json=TWO, headers=KEY)
    before = len(served.sandbox.log)
    last = await served.client.post(URL, json=TWO, headers={**KEY, "Prefer": "respond-async"})
    other = await served.client.post(URL, json=TWO | {"depth": "standard"}, headers=KEY)

    assert begun.status_code == 202
    assert begun.headers["preference-applied"] == "respond-async"
    running = [analysis["id"] for analysis in begun.json()["analyses"]]
    assert [product["analysis_id"] for product in again.json()["products"]] == running
    assert (last.status_code, last.json()["products"]) == (200, again.json()["products"])
    assert len(served.sandbox.log) == before
    assert (other.status_code, code(other)) == (409, "conflict")


async def test_without_a_key_nobody_could_ask_again(served: Served) -> None:
    """So it is refused before anything begins."""
    answer = await served.client.post(URL, json=TWO, headers={"Prefer": "respond-async"})
    assert answer.status_code == 422
    assert "needs an `Idempotency-Key`" in answer.json()["error"]["message"]


async def test_a_failed_product_is_begun_again_with_the_same_key(served: Served) -> None:
    """One alone: what is 202 names what runs."""
    first = (await served.client.post(URL, json=TWO, headers=KEY)).json()["products"]
    await served.client.delete(f"/v1/analyses/{first[1]['analysis_id']}")
    begun = await served.client.post(URL, json=TWO, headers={**KEY, "Prefer": "respond-async"})

    assert [analysis["query"] for analysis in begun.json()["analyses"]] == ["Whoop"]
    second = (await served.client.post(URL, json=TWO, headers=KEY)).json()["products"]
    assert first[0]["analysis_id"] == second[0]["analysis_id"]


async def test_each_product_counts_against_the_limits(opening: Opening) -> None:
    """Of three analyses a day two are used up by a comparison, and no other has room."""
    async with opening(keys="ann", token="ann", LIMIT_ANALYSES_PER_DAY="3") as served:
        codes = [(await served.client.post(URL, json=TWO)).status_code for _ in range(2)]
        single = await served.client.post("/v1/analyses", json={"query": "Oura", "depth": "quick"})
    assert (codes, single.status_code) == ([200, 429], 200)


async def test_a_key_is_needed_where_there_are_keys(opening: Opening) -> None:
    """As for an analysis; another's comparisons are nobody else's."""
    async with opening(keys="ann,bob", token="ann") as served:
        assert (await served.client.post(URL, json=TWO, headers=KEY)).status_code == 200
        bob = {"Authorization": "Bearer bob", **KEY}
        other = await served.client.post(URL, json=TWO | {"products": ["Oura", "Notion"]}, headers=bob)
        assert other.status_code == 200
        assert (await served.client.post(URL, json=TWO, headers={"Authorization": ""})).status_code == 401


async def test_one_that_is_stopped_leaves_the_other(served: Served) -> None:
    """Deleted meanwhile by somebody: it stands in the table as that."""
    served.sandbox.latency("openai=2s")
    waiting = asyncio.create_task(served.client.post(URL, json=TWO))
    async with asyncio.timeout(120):
        while len(found := (await served.client.get("/v1/analyses")).json()["analyses"]) < 2:
            continue
    stopped = next(analysis for analysis in found if analysis["query"] == "Oura")
    await served.client.delete(f"/v1/analyses/{stopped['id']}")
    oura, whoop = (await waiting).json()["products"]

    assert (oura["state"], whoop["state"]) == ("failed", "compared")
    assert oura["reason"].endswith("was cancelled")
