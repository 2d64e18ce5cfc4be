"""`/v1/search` over a real store."""

from __future__ import annotations

from api.features.analyses.api_keys import LOCAL
from tests.interfaces.http.api_keys import bearer, code
from tests.interfaces.http.conftest import QUESTION, Opening, Served
from tests.store.made import item, report, typed

URL = "/v1/search"
LID = {"title": "Ember mug lid", "body": "It leaks when it tips over.", "comments": []}


async def test_what_an_analysis_kept_is_found(served: Served) -> None:
    """With its words, and without another request to any place."""
    answer = (await served.client.post("/v1/analyses", json=QUESTION)).json()
    before = len(served.sandbox.log)

    found = (await served.client.get(URL, params={"query": "plaud transcription minutes"})).json()

    assert len(served.sandbox.log) == before
    keys = {entry["key"] for entry in (*answer["items"], *answer["dropped"])}
    assert found["hits"]
    assert {hit["key"] for hit in found["hits"]} <= keys
    assert all(hit["passage"] for hit in found["hits"])
    assert found["guidance"] == ""


async def test_each_key_searches_its_own(opening: Opening) -> None:
    """Nobody finds what another has heard."""
    async with opening(keys="ann,bob", token="ann") as served:
        stored = report("r1", item("reddit:t3_1", **LID))
        await served.app_context.store.finish(LOCAL.id, typed(stored))
        await served.client.post("/v1/analyses", json=QUESTION)
        asked = {"query": "plaud transcription minutes"}

        mine = (await served.client.get(URL, params=asked)).json()
        others = (await served.client.get(URL, params=asked, headers=bearer("bob"))).json()
        local = (await served.client.get(URL, params={"query": "Ember mug lid"})).json()

    assert mine["hits"]
    assert others["hits"] == []
    assert all(hit["title"] != LID["title"] for hit in local["hits"])


async def test_each_key_asks_its_own_archive_as_a_place(opening: Opening) -> None:
    """In analyses and in fetch: what it has stored is judged anew, and no other place is asked."""
    asked = {"query": "plaud.ai", "depth": "quick", "sources": ["archive"]}
    async with opening(keys="ann,bob", token="ann") as served:
        first = (await served.client.post("/v1/analyses", json=QUESTION)).json()
        before = len(served.sandbox.requests("reddit"))
        mine = (await served.client.post("/v1/analyses", json=asked)).json()
        bobs = (await served.client.post("/v1/analyses", json=asked, headers=bearer("bob"))).json()
        url, body = "/v1/fetch/archive", {"query": "plaud.ai"}
        fetched = (await served.client.post(url, json=body)).json()

        assert len(served.sandbox.requests("reddit")) == before
    known = {entry["key"] for entry in (*first["items"], *first["dropped"])}
    assert list(mine["sources"]) == ["archive"]
    assert mine["items"]
    assert {entry["key"] for entry in mine["items"]} <= known
    assert bobs["items"] == []
    assert bobs["sources"]["archive"]["outcome"] == "empty"
    assert {entry["key"] for entry in fetched["items"]} <= known
    assert fetched["items"]


async def test_one_word_is_a_search(served: Served) -> None:
    """No guidance: what holds it, or how much is stored that does not."""
    await served.app_context.store.finish(LOCAL.id, typed(report("r1", item("reddit:t3_1", **LID))))
    leaks, none = [(await served.client.get(URL, params={"query": word})).json() for word in ("leaks", "zzzzqq")]
    assert [hit["key"] for hit in leaks["hits"]] == ["reddit:t3_1"]
    assert (none["hits"], none["guidance"]) == ([], "")
    assert "None of 1 stored entry holds `zzzzqq`." in none["text"]


async def test_what_is_wrong_is_named(served: Served) -> None:
    """422 with the parameter; small talk is an answer with guidance."""
    for wrong in (
        {"query": "Ember mug lid", "since": "soon"},
        {"query": "Ember mug lid", "source": "nope"},
        {"query": "Ember mug lid", "k": "0"},
        {"query": "Ember mug lid", "limit": "3"},
        {},
    ):
        answer = await served.client.get(URL, params=wrong)
        assert (answer.status_code, code(answer)) == (422, "invalid_request"), wrong
    hello = await served.client.get(URL, params={"query": "hello"})
    assert hello.status_code == 200
    assert "for example" in hello.json()["guidance"]
