"""What an answer rests on: own items, made-up data, and what is told apart by `about`."""

from __future__ import annotations

from typing import Any

import pytest

from tests.interfaces.http.api_keys import bearer
from tests.interfaces.http.conftest import Opening, Served

OWN: list[dict[str, Any]] = [
    {
        "title": "Plaud Note after a month", "body": "The Plaud recorder makes great transcripts.",
        "source": "reddit", "key": "reddit:t3_one", "url": "https://example.org/1",
        "created_at": "2026-11-02T10:00:00Z", "engagement": {"votes": 7},
        "comments": ["my plaud battery lasts a week", {"id": "c2", "body": "same here"}],
    },
    {"title": "plaud.ai is too dear", "content": "I hate my recorder's subscription.", "id": 7},
    {"title": "Plaud NotePin review", "description": "Plaud's pin clips well.", "source": "forum"},
    {"title": "Sourdough at home", "body": "Flour, water, salt and time."},
]  # fmt: skip
ASKED = {"query": "plaud.ai", "depth": "quick"}


def upstreams(served: Served) -> set[str]:
    """Who was asked."""
    return {request.upstream for request in served.sandbox.log}


async def test_own_items_are_reported_on(served: Served) -> None:
    """No source is asked, the model of the settings judges, and nothing is called sample."""
    answer = await served.client.post("/v1/analyses", json={**ASKED, "items": OWN})
    kept = await served.client.get(answer.headers["location"])

    report = answer.json()
    assert upstreams(served) == {"openai"}
    assert report["sample"] is False
    assert list(report["sources"]) == ["items"]
    assert {"reddit:t3_one", "items:7"} <= {item["key"] for item in report["items"]}
    assert [item["title"] for item in report["dropped"]] == ["Sourdough at home"]
    assert kept.json() == report | {"state": "done"}


async def test_other_items_are_another_question(served: Served) -> None:
    """Also for an idempotency key; the same items are the same."""
    named = {"Idempotency-Key": "own"}
    few = {**ASKED, "items": OWN[:2]}

    first = await served.client.post("/v1/analyses", json=few, headers=named)
    again = await served.client.post("/v1/analyses", json=few, headers=named)
    other = await served.client.post("/v1/analyses", json={**ASKED, "items": OWN}, headers=named)

    assert again.json() == first.json()
    assert other.status_code == 409


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"items": []}, "`items` must be a list of 1 to 500, each an object, not of 0"),
        ({"items": [{"title": "mug"}] * 501}, "a list of 1 to 500, each an object, not of 501"),
        ({"items": [{"title": "mug"}, {"rating": 5}]}, "`items[1]`: no text in a field"),
        ({"items": [{}]}, "`items[0]`: no text in a field"),
        ({"items": [{"title": "mug", "id": []}]}, "`items[0]`: `id` must be text or a number, not"),
        ({"items": OWN, "sandbox": True}, "your `items` are no made-up data"),
        (
            {"items": OWN, "sources": ["reddit"]},
            "your `items` are the only source: leave `sources` out",
        ),
    ],
)
async def test_items_that_are_none_are_refused(served: Served, body: dict[str, Any], words: str) -> None:
    """422 with the item's number, and nobody was asked."""
    answer = await served.client.post("/v1/analyses", json={**ASKED, **body})

    assert answer.status_code == 422
    assert words in answer.json()["error"]["message"]
    assert upstreams(served) == set()


async def test_without_sources_own_items_are_no_sample(opening: Opening, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the mode says; in mode `sandbox` no model is asked about them."""
    for name in ("REDDIT_CLIENT_ID", "YOUTUBE_API_KEY", "AMAZON_PROVIDER"):
        monkeypatch.delenv(name)
    reports = {}
    for mode in ("auto", "sandbox"):
        async with opening(MODE=mode) as served:
            answer = await served.client.post("/v1/analyses", json={**ASKED, "items": OWN})
            reports[mode] = answer.json()

    assert {report["sample"] for report in reports.values()} == {False}
    judges = [report["sources"]["items"]["gate"]["model"] for report in reports.values()]
    assert judges[0] == "gpt-4o-mini"
    assert judges[1].startswith("local")


async def test_the_sandbox_answers_on_a_live_server(served: Served) -> None:
    """For this request alone: marked, and nobody outside is asked."""
    made_up = await served.client.post("/v1/analyses", json={**ASKED, "sandbox": True})
    asked = upstreams(served)
    live = await served.client.post("/v1/analyses", json=ASKED)

    assert (made_up.json()["sample"], live.json()["sample"]) == (True, False)
    assert made_up.json()["items"]
    assert asked == set()
    assert upstreams(served) == {"reddit", "youtube", "amazon", "openai"}


async def test_limit_and_sandbox_reach_one_source(served: Served) -> None:
    """
    One source is asked for so many items, in the sample data without anybody outside.
    """
    limited = await served.client.post("/v1/analyses", json={**ASKED, "limit": 3})
    before = upstreams(served)
    body = {**ASKED, "limit": 3, "sandbox": True}
    made_up = await served.client.post("/v1/fetch/reddit", json=body)

    assert limited.json()["sources"]["reddit"]["attempts"][0]["limit"] == 3
    assert made_up.json()["sample"]
    assert made_up.json()["attempts"][0]["limit"] == 3
    assert upstreams(served) == before


async def test_made_up_data_costs_a_tenant_nothing(opening: Opening) -> None:
    """Nobody outside is paid, so the day's USD stay; the day's analyses count."""
    async with opening("a", "a", LIMIT_USD_PER_DAY="0.0001", LIMIT_ANALYSES_PER_DAY="1") as served:
        made_up = {**ASKED, "sandbox": True}
        answers = [await served.client.post("/v1/analyses", json=made_up) for _ in range(2)]
        refused = await served.client.post("/v1/analyses", json=ASKED, headers=bearer("a"))

    assert [answer.status_code for answer in answers] == [200, 429]
    assert refused.status_code == 429


async def test_a_chat_over_own_items(served: Served) -> None:
    """It looks up nothing else, and what it found stays known to the session."""
    body = {"message": "What do people say about plaud.ai?", "items": OWN}
    turn = (await served.client.post("/v1/chat", json=body)).json()
    asked = upstreams(served)
    later = (
        await served.client.post(
            "/v1/chat",
            json={"message": "And the battery?", "session_id": turn["session_id"], "items": OWN},
        )
    ).json()

    assert asked == {"openai"}
    assert {cited["key"] for cited in turn["citations"]} & {"reddit:t3_one", "items:7"}
    assert turn["sample"] is False
    assert later["session_id"] == turn["session_id"]
    assert upstreams(served) == {"openai"}


async def test_a_chat_in_the_sandbox(served: Served) -> None:
    """A turn over made-up data is marked, and asks nobody outside."""
    body = {"message": "What do people say about plaud.ai?", "sandbox": True}
    turn = (await served.client.post("/v1/chat", json=body)).json()

    assert turn["sample"] is True
    assert turn["citations"]
    assert upstreams(served) == set()


@pytest.mark.parametrize("path", ["/v1/fetch/reddit", "/v1/analyses"])
async def test_about_reaches_the_judge(served: Served, path: str) -> None:
    """A name that several things share is told apart."""
    words = "a recorder that writes down what was said"
    answer = await served.client.post(path, json={**ASKED, "about": words})

    assert answer.status_code == 200
    judged = served.sandbox.requests("openai", "judge")
    assert judged
    assert all(words in str(request.body) for request in judged)


async def test_own_items_before_the_window_are_counted(served: Served) -> None:
    """In the report's notes, since nothing else says why there is none."""
    old = [{"title": "My Ember mug died", "created_at": "2001-01-01"}]
    body = {**ASKED, "items": old, "since": "week"}
    report = (await served.client.post("/v1/analyses", json=body)).json()

    assert "1 of 1 items are older than a week and were left out" in str(report)
    assert "these sources" not in str(report)


async def test_the_same_few_words_are_one_voice(served: Served) -> None:
    """However often they were handed in; a note says how many copies there were."""
    items = [{"title": "My Ember mug died"}] * 20
    body = {"query": "ember mug", "depth": "standard", "items": items}
    report = (await served.client.post("/v1/analyses", json=body)).json()

    assert len(report["items"]) == 1
    assert "19 posts were dropped: copies of others" in str(report)
