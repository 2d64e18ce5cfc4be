"""One error shape for everything that can go wrong before, in and behind a route."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator

import httpx
import pytest
from fastapi import APIRouter

from api.errors import ListenpostError, UsageError
from api.faces.web.app import ROUTERS, create_app
from api.faces.web.errors import LARGEST
from api.services.trace_ids import current_trace_id
from tests.faces.web.conftest import QUESTION, Served
from tests.faces.web.test_access import code

JSON = {"Content-Type": "application/json"}
broken = APIRouter()


@broken.get("/v1/broken")
async def fault() -> None:
    """A route with a fault of ours."""
    raise ZeroDivisionError("secret detail")


@broken.get("/v1/vague")
async def vague() -> None:
    """An error of ours that says nothing more."""
    raise ListenpostError("secret detail")


@broken.get("/v1/named")
async def named() -> None:
    """An error that says which id a trace of its request has."""
    raise UsageError(current_trace_id())


@broken.get("/v1/odd")
async def odd() -> None:
    """A message with what terminals and JSON do not like."""
    raise UsageError("odd: \x1b[31m \u202e")


@pytest.mark.parametrize(
    ("method", "path", "status", "name"),
    [
        ("GET", "/nothing", 404, "not_found"),
        ("GET", "/v1/analyses/", 404, "not_found"),
        ("GET", "/v1/analyses/%00", 404, "not_found"),
        ("GET", "/v1/analyses/..%2f..%2fetc", 404, "not_found"),
        ("GET", f"/v1/analyses/{'x' * 5000}", 404, "not_found"),
        ("DELETE", "/v1/analyses/none", 404, "not_found"),
        ("GET", "/v1/analyses/none?format=pdf", 422, "invalid_request"),
        ("GET", "/v1/analyses/none?fromat=html", 422, "invalid_request"),
        ("PUT", "/v1/analyses", 405, "method_not_allowed"),
        ("GET", "/v1/fetch/reddit", 405, "method_not_allowed"),
        ("GET", "/docs", 404, "not_found"),
    ],
)
async def test_what_is_not_there(
    served: Served, method: str, path: str, status: int, name: str
) -> None:
    """Routes, methods, ids and formats."""
    answer = await served.client.request(method, path)

    assert (answer.status_code, code(answer)) == (status, name)
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert ("allow" in answer.headers) == (status == 405)


@pytest.mark.parametrize(
    ("path", "content", "where"),
    [
        ("/v1/analyses", "", "body"),
        ("/v1/analyses", "{", "body"),
        ("/v1/analyses", "[" * 20_000, ""),
        ("/v1/analyses", "[]", "body"),
        ("/v1/analyses", "{}", "body.query"),
        ("/v1/analyses", '{"query": null}', "body.query"),
        ("/v1/analyses", '{"query": "x", "depth": "abyss"}', "body.depth"),
        ("/v1/analyses", '{"query": "x", "since": "once"}', "body.since"),
        ("/v1/analyses", '{"query": "x", "surprise": 1}', "body.surprise"),
        ("/v1/analyses", '{"query": "x", "\\ud800": 1}', "body"),
        ("/v1/analyses", '{"query": "\\ud800"}', "body.query"),
        ("/v1/fetch/reddit", '{"query": "mug", "limit": 0}', "body.limit"),
        ("/v1/fetch/reddit", '{"query": "mug", "limit": 501}', "body.limit"),
        ("/v1/fetch/myspace", '{"query": "mug"}', "`reddit`"),
        ("/v1/fetch/reddit", '{"query": "hello"}', "product"),
        ("/v1/relevance", '{"query": "hello", "source": "y", "items": []}', "Say which product"),
        ("/v1/relevance", '{"query": "", "source": "y", "items": []}', "Nothing was asked"),
        ("/v1/relevance", '{"query": "x", "source": "y", "items": [{"n": NaN}]}', "body.items"),
        ("/v1/analyses", json.dumps({"query": "x" * 501}), "`body.query`: String should have at"),
        ("/v1/chat", "[]", "`body`: Input should be"),
        ("/v1/chat", "{}", "`body.message`: Field required"),
        ("/v1/chat", '{"message": 5, "messages": []}', "`body.id`: Field required"),
        ("/v1/chat", '{"id": "a", "messages": [{"role": "user"}]}', "`body.messages.0.parts`"),
        ("/v1/chat", '{"id": "a", "messages": [{"parts": []}]}', "`body.messages.0.role`"),
        ("/v1/chat", '{"threadId": "a", "messages": []}', "`body.runId`: Field required"),
        ("/v1/chat", '{"message": "x", "surprise": 1}', "`body.surprise`"),
        ("/v1/relevance", '{"query": "x", "source": "y", "items": ["text"]}', "body.items"),
        ("/v1/relevance", '{"query": "x", "source": "y", "items": [{"n": 1e999}]}', "body.items"),
    ],
)
async def test_a_wrong_body_is_named(served: Served, path: str, content: str, where: str) -> None:
    """422 with the place of the fault, without what was sent."""
    answer = await served.client.post(path, content=content.encode(), headers=JSON)

    assert (answer.status_code, code(answer)) == (422, "invalid_request")
    assert where in answer.json()["error"]["message"]
    assert len(answer.content) < 600
    assert served.sandbox.log == ()


async def test_a_body_of_another_type_is_refused(served: Served) -> None:
    """A page of another site can send plain text without asking first."""
    plain = {"Content-Type": "text/plain"}
    answer = await served.client.post("/v1/analyses", content=json.dumps(QUESTION), headers=plain)

    assert (answer.status_code, code(answer)) == (422, "invalid_request")


async def test_a_body_that_is_too_large(served: Served) -> None:
    """Whether it says so or not; one byte less is read."""
    start = b'{"query": "hi", "depth": "quick"}'

    async def chunks() -> AsyncIterator[bytes]:
        yield start
        for _ in range(10):
            yield b" " * (LARGEST // 10)

    path = "/v1/analyses"
    declared = await served.client.post(path, content=b" " * (LARGEST + 1), headers=JSON)
    streamed = await served.client.post(path, content=chunks(), headers=JSON)
    fits = await served.client.post(path, content=start.ljust(LARGEST), headers=JSON)

    assert [(answer.status_code, code(answer)) for answer in (declared, streamed)] == [
        (413, "too_large")
    ] * 2
    assert fits.status_code == 200


async def test_a_fault_of_ours_tells_nothing(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    """The log has the detail, under the id that the answer names."""
    caplog.set_level(logging.ERROR)
    app = create_app(served.house, (*ROUTERS, broken))
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        fault, vague, odd = [await client.get(f"/v1/{one}") for one in ("broken", "vague", "odd")]

    assert [(one.status_code, code(one)) for one in (fault, vague)] == [(500, "error")] * 2
    assert "secret" not in fault.text + vague.text
    assert "secret detail" in caplog.text
    assert fault.json()["error"]["trace_id"] in caplog.text
    assert (odd.status_code, code(odd)) == (422, "invalid_request")


async def test_an_error_names_the_trace_of_its_request(served: Served) -> None:
    """Each request has an id of its own, and what it begins is traced under that."""
    app = create_app(served.house, (broken,))
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        answers = [(await client.get("/v1/named")).json()["error"] for _ in range(2)]

    assert all(answer["message"] == answer["trace_id"] for answer in answers)
    assert len({answer["trace_id"] for answer in answers}) == 2
    assert all(len(answer["trace_id"]) == 32 for answer in answers)


async def test_items_come_back_as_they_went(served: Served) -> None:
    """Also with what UTF-8 cannot hold."""
    body = (
        '{"query": "ember mug", "source": "reddit", "items": '
        '[{"title": "Ember mug \\ud800 \\u0000", "n": 1.5, "deep": [null]}, {}, {"title": 7}]}'
    )
    answer = await served.client.post("/v1/relevance", content=body, headers=JSON)
    told = answer.json()

    assert answer.status_code == 200
    assert [*told["relevant"], *told["dropped"]] == json.loads(body)["items"]
    assert (told["status"], told["reason"]) == ("ok", None)


async def test_what_nobody_can_read_is_not_judged(served: Served) -> None:
    """The item is named by its place, with its fields and the names that are known."""
    body = {"query": "mug", "source": "reddit", "items": [{"title": "mug"}, {"Review": "mug"}]}
    answer = await served.client.post("/v1/relevance", json=body)
    message = answer.json()["error"]["message"]

    assert (answer.status_code, code(answer)) == (422, "invalid_request")
    assert message.startswith(
        "`items[1]`: no text in a field that is known; its fields are `Review`"
    )
    assert "`reviewText`" in message
    assert served.sandbox.log == ()


async def test_judging_nothing_is_skipped(served: Served) -> None:
    """No items, no call."""
    body = {"query": "mug", "source": "reddit", "items": []}
    told = (await served.client.post("/v1/relevance", json=body)).json()

    assert told == {
        "relevant": [], "dropped": [], "yield_ratio": 1.0, "status": "skipped", "reason": None,
    }  # fmt: skip
    assert served.sandbox.log == ()


async def test_a_judge_that_fails_lets_all_pass(served: Served) -> None:
    """With its reason."""
    served.sandbox.fault("openai=500")
    body = {"query": "mug", "source": "reddit", "items": [{"title": "mug"}, {"title": "bread"}]}
    told = (await served.client.post("/v1/relevance", json=body)).json()

    assert told["relevant"] == body["items"]
    assert (told["yield_ratio"], told["status"], told["reason"]) == (1.0, "degraded", "http_error")


async def test_a_fetch_that_fails_is_an_outcome(served: Served) -> None:
    """200 with what happened."""
    served.sandbox.fault("youtube=quota")
    answer = await served.client.post("/v1/fetch/youtube", json=QUESTION)

    assert answer.status_code == 200
    assert answer.json()["outcome"] == "quota_exhausted"


async def test_sources_say_whether_they_can_be_asked(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All three point at the sandbox here."""
    told = (await served.client.get("/v1/sources")).json()

    assert [one["name"] for one in told["sources"]] == ["reddit", "youtube", "amazon"]
    assert all(one["configured"] and one["reason"] is None for one in told["sources"])
    assert told["sample"] is False
