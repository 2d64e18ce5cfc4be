"""`/v1/analyses/{id}/feedback`: kept in a real store, and sent to the sandbox's Langfuse."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from api.features.analyses.api_keys import LOCAL
from api.sandbox.server import Sandbox
from tests.interfaces.http.api_keys import bearer, code
from tests.interfaces.http.conftest import QUESTION, Opening, Served
from tests.store.made import item, report, typed

URL = "/v1/analyses/r1/feedback"
TRACE = "0af7651916cd43dd8448eb211c80319c"
HOSTILE = "<img src=x onerror=alert(1)> '; DROP TABLE feedback; --"


@pytest.fixture
async def rated(served: Served) -> Served:
    """An app that keeps the report `r1`; nobody watches."""
    kept = report("r1", item("reddit:t3_1"), item("youtube:v1"), trace_id=TRACE)
    await served.app_context.store.finish(LOCAL.id, typed(kept))
    return served


@pytest.fixture
async def watched(opening: Opening, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Served]:
    """The same, with the sandbox's Langfuse watching."""
    for name, value in sandbox.environment.items():
        if name.startswith("LANGFUSE"):
            monkeypatch.setenv(name, value)
    async with opening() as served:
        kept = report("r1", item("reddit:t3_1"), item("youtube:v1"), trace_id=TRACE)
        await served.app_context.store.finish(LOCAL.id, typed(kept))
        yield served


def scores(served: Served) -> list[dict[str, Any]]:
    """The ratings that its Langfuse got."""
    bodies = [entry.body for entry in served.sandbox.log if entry.endpoint == "scores"]
    return [score for body in bodies for score in body]


@pytest.mark.parametrize(
    ("body", "subject"),
    [
        ({"rating": "up", "comment": HOSTILE}, "report"),
        ({"rating": "down", "finding": 2}, "finding"),
        ({"rating": "down", "item_key": "youtube:v1"}, "item"),
    ],
)
async def test_feedback_is_kept_and_read(rated: Served, body: dict[str, Any], subject: str) -> None:
    """As it was given, also text that would be a command elsewhere."""
    given = await rated.client.post(URL, json=body)
    kept = (await rated.client.get(URL)).json()["feedback"]

    shown = given.json()
    assert given.status_code == 201
    assert shown.pop("langfuse") == {"status": "off", "reason": None}
    assert kept == [shown]
    assert (shown["subject"], shown["rating"]) == (subject, body["rating"])
    assert {name: shown[name] for name in body} == body
    assert (await rated.client.get("/v1/stats?since=all")).json()["feedback"]["share"] == (
        1.0 if body["rating"] == "up" else 0.0
    )


async def test_a_second_thought_replaces_the_first(rated: Served) -> None:
    """Of the same caller on the same; the share counts it once."""
    for rating in ("up", "down"):
        await rated.client.post(URL, json={"rating": rating})
    kept = (await rated.client.get(URL)).json()["feedback"]
    stats = (await rated.client.get("/v1/stats?since=all")).json()

    assert [given["rating"] for given in kept] == ["down"]
    assert stats["feedback_by_decision"] == {"full_report": {"up": 0, "down": 1, "share": 0.0}}


async def test_each_user_of_a_key_has_a_word(rated: Served) -> None:
    """By the pseudonym that the caller's program sends; it is not shown."""
    for user, rating in (("u-ann", "up"), ("u-bob", "down"), ("u-ann", "down")):
        headers = {"X-Listenpost-User": user}
        await rated.client.post(URL, json={"rating": rating}, headers=headers)
    answer = await rated.client.get(URL)

    kept = answer.json()["feedback"]
    assert [given["rating"] for given in kept] == ["down", "down"]
    assert len({given["author"] for given in kept}) == 2
    assert "u-ann" not in answer.text


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 422),
        ({"rating": "meh"}, 422),
        ({"rating": "up", "stars": 5}, 422),
        ({"rating": "up", "comment": "x" * 2001}, 422),
        ({"rating": "up", "finding": 0}, 422),
        ({"rating": "up", "finding": 1, "item_key": "youtube:v1"}, 422),
        ({"rating": "up", "finding": 3}, 404),
        ({"rating": "up", "item_key": "youtube:v2\x00"}, 404),
    ],
)
async def test_what_makes_no_sense_is_refused(rated: Served, body: dict[str, Any], status: int) -> None:
    """Nothing is kept of it."""
    answer = await rated.client.post(URL, json=body)

    assert answer.status_code == status
    assert code(answer) == ("not_found" if status == 404 else "invalid_request")
    assert (await rated.client.get(URL)).json() == {"feedback": []}


@pytest.mark.parametrize("name", ["r2", "%00", "..%2f", "x" * 5000])
async def test_what_is_not_there_has_none(rated: Served, name: str) -> None:
    """Reading and giving."""
    url = f"/v1/analyses/{name}/feedback"

    answers = await rated.client.get(url), await rated.client.post(url, json={"rating": "up"})

    assert {(answer.status_code, code(answer)) for answer in answers} == {(404, "not_found")}
    assert len({answer.json()["error"]["message"] for answer in answers}) == 1


async def test_each_key_has_its_own(opening: Opening) -> None:
    """Another's report cannot be rated, and what was thought of it not be read."""
    async with opening(keys="ann,bob", token="ann") as served:
        posted = await served.client.post("/v1/analyses", json={"query": "hello there"})
        url = f"{posted.headers['location']}/feedback"
        await served.client.post(url, json={"rating": "up"})
        tried = [
            await served.client.get(url, headers=bearer("bob")),
            await served.client.post(url, json={"rating": "down"}, headers=bearer("bob")),
        ]
        own = (await served.client.get(url)).json()["feedback"]

    assert [answer.status_code for answer in tried] == [404, 404]
    assert [given["rating"] for given in own] == ["up"]


async def test_it_goes_with_its_report(rated: Served) -> None:
    """Nothing of a deleted report is left."""
    await rated.client.post(URL, json={"rating": "up"})
    await rated.client.delete("/v1/analyses/r1")

    assert (await rated.client.get(URL)).status_code == 404
    assert (await rated.client.get("/v1/stats?since=all")).json()["feedback"]["up"] == 0


async def test_langfuse_gets_a_score(watched: Served) -> None:
    """On the report's trace, true for a thumb up, with whose it is and of what in its metadata."""
    body = {"rating": "down", "item_key": "youtube:v1", "comment": "write to ada@example.org"}
    given = (await watched.client.post(URL, json=body)).json()
    await watched.client.post(URL, json={"rating": "up"})

    down, up = scores(watched)
    assert given["langfuse"] == {"status": "sent", "reason": None}
    assert given["comment"] == body["comment"]
    assert down["metadata"] == {
        "scope": "item", "author": given["author"], "decision": "full_report",
        "source": "youtube", "item_key": "youtube:v1",
    }  # fmt: skip
    assert (down["name"], down["dataType"], down["value"]) == ("user_feedback", "BOOLEAN", 0)
    assert (down["traceId"], down["comment"]) == (TRACE, "write to [masked]")
    assert "observationId" not in down
    assert (up["value"], up["metadata"]["scope"], "comment" in up) == (1, "report", False)
    assert up["id"] != down["id"]


async def test_a_second_thought_replaces_the_score(watched: Served) -> None:
    """Id, name and time are those of the first, by which Langfuse knows it."""
    for rating in ("up", "down"):
        await watched.client.post(URL, json={"rating": rating})

    first, second = scores(watched)
    assert (first["value"], second["value"]) == (1, 0)
    assert [first[name] for name in ("id", "name", "timestamp")] == [
        second[name] for name in ("id", "name", "timestamp")
    ]


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("langfuse.scores=500", "Langfuse does not take the score (HTTP 500)"),
        ("langfuse.scores=401", "Langfuse refuses the keys"),
    ],
)
async def test_a_failing_langfuse_loses_nothing(watched: Served, fault: str, reason: str) -> None:
    """It is kept, and the answer says that Langfuse does not know of it, and why."""
    watched.sandbox.fault(fault)
    given = await watched.client.post(URL, json={"rating": "up"})

    state = given.json()["langfuse"]
    assert given.status_code == 201
    assert state["status"] == "failed"
    assert state["reason"].startswith(reason)
    assert len((await watched.client.get(URL)).json()["feedback"]) == 1


@pytest.fixture
def switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """What Langfuse's own library is switched off by."""
    monkeypatch.setenv("LANGFUSE_TRACING_ENABLED", "false")


@pytest.mark.usefixtures("switched_off")
async def test_switched_off_nothing_is_sent(watched: Served) -> None:
    """With the keys in place, a server that was started so."""
    given = (await watched.client.post(URL, json={"rating": "up"})).json()

    assert given["langfuse"]["status"] == "off"
    assert scores(watched) == []


async def test_an_analysis_of_today_can_be_rated(watched: Served) -> None:
    """Its score stands on the very trace of the analysis."""
    posted = await watched.client.post("/v1/analyses", json=QUESTION)
    url = f"{posted.headers['location']}/feedback"
    given = (await watched.client.post(url, json={"rating": "up", "finding": 1})).json()
    metrics = (await watched.client.get("/metrics")).text

    ours = [score for score in scores(watched) if score["name"] == "user_feedback"]
    assert given["langfuse"]["status"] == "sent"
    assert [score["traceId"] for score in ours] == [posted.json()["trace_id"]]
    assert ours[0]["metadata"]["finding"] == 1
    assert 'listenpost_feedback_total{decision="full_report",rating="up"} 1.0' in metrics
