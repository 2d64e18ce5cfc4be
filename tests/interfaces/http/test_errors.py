"""One error shape for everything that can go wrong before, in and behind a route."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from fastapi import APIRouter

from api.core.context import current_trace_id
from api.errors import ListenpostError, UsageError
from api.interfaces.http.app import ROUTERS, create_app
from api.interfaces.http.errors_json import LARGEST
from api.sources import SOURCES
from tests.interfaces.http.api_keys import code
from tests.interfaces.http.conftest import QUESTION, Served
from tests.usual import EITHER

JSON = {"Content-Type": "application/json"}
SHORT = "it must be text of at most 500 characters"
SIZE = "must be a whole number from 1 to 500"
OURS = "the body is read as `ChatRequest`"
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
async def test_what_is_not_there(served: Served, method: str, path: str, status: int, name: str) -> None:
    """Routes, methods, ids and formats."""
    answer = await served.client.request(method, path)

    assert (answer.status_code, code(answer)) == (status, name)
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert ("allow" in answer.headers) == (status == 405)


@pytest.mark.parametrize(
    ("path", "content", "words"),
    [
        ("/v1/analyses", "", "the body is missing; it must be an object with `query`"),
        (
            "/v1/analyses",
            "{",
            "the body is no JSON: expecting property name enclosed in double quotes at character 2",
        ),
        ("/v1/analyses", "[" * 20_000, "the body is no JSON: it is nested too deep"),
        ("/v1/analyses", "1" * 5_000, "the body is no JSON: a number in it is too long"),
        ("/v1/analyses", '{"query": "\xff"}', "the body is no JSON: it is no UTF-8"),
        ("/v1/analyses", "[]", "the body must be an object with `query`, not a list"),
        ("/v1/analyses", "{}", f"`query` is missing; {SHORT}"),
        ("/v1/analyses", '{"query": null}', f"`query` {SHORT[3:]}, not `null`"),
        (
            "/v1/analyses",
            '{"query": "x", "depth": "abyss"}',
            "`depth` must be `quick`, `standard` or `deep`, not `abyss`",
        ),
        (
            "/v1/analyses",
            '{"query": "x", "since": "once"}',
            "`since` must be `day`, `week`, `month`, `year` or `all`, not `once`",
        ),
        (
            "/v1/analyses",
            '{"qeury": "x", "surprise": 1}',
            f"`query` is missing; {SHORT}; there is no field `qeury`, did you mean `query`? known "
            "are `query`, `about`, `not_about`, `aim`, `depth`, `limit`, `sandbox`, `exclude`, "
            "`exclude_authors`, `exclude_sites`, `sources`, `since` and `items`; there is no field `surprise`",
        ),
        (
            "/v1/analyses",
            '{"query": "x", "\\ud800": 1}',
            "the name of a field holds half a character (a lone surrogate)",
        ),
        (
            "/v1/analyses",
            '{"query": "\\ud800"}',
            "`query` holds half a character (a lone surrogate)",
        ),
        (
            "/v1/analyses",
            '{"query": "x", "sandbox": {}, "sources": [[]], "items": []}',
            f"`sandbox` must be true or false, not an object; `sources[0]` must be {EITHER}, not a "
            "list; `items` must be a list of 1 to 500, each an object, not of 0",
        ),
        (
            "/v1/analyses",
            '{"query": "x", "items": [{"title": "y"}], "sandbox": true}',
            "your `items` are no made-up data: leave `sandbox` out",
        ),
        ("/v1/fetch/reddit", '{"query": "mug", "limit": 0}', f"`limit` {SIZE}, not `0`"),
        ("/v1/fetch/reddit", '{"query": "mug", "limit": "501"}', f"`limit` {SIZE}, not `501`"),
        (
            f"/v1/fetch/{'x' * 101}",
            '{"query": "mug", "limit": 0}',
            f"`source` must be {EITHER}",
        ),
        ("/v1/fetch/myspace", '{"query": "mug"}', "there is no source `myspace`"),
        ("/v1/fetch/reddit", '{"query": "hello"}', "Hello! Say which product"),
        (
            "/v1/relevance",
            '{"query": "hello", "source": "y", "items": []}',
            "Hello! Say which product",
        ),
        ("/v1/relevance", '{"query": "", "source": "y", "items": []}', "Nothing was asked"),
        ("/v1/analyses", json.dumps({"query": "x" * 501}), f"`query` {SHORT[3:]}"),
        ("/v1/chat", "", "the body is missing; it must be an object with `message` or an object"),
        ("/v1/chat", "[]", f"the body must be an object with `message`, not a list; {OURS}"),
        ("/v1/chat", "{}", f"`message` is missing; {SHORT}; {OURS}"),
        (
            "/v1/chat",
            '{"mesage": "x"}',
            f"`message` is missing; {SHORT}; there is no field `mesage`, did you mean `message`? "
            f"known are `items`, `sandbox`, `message`, `session_id` and `report_id`; {OURS}",
        ),
        (
            "/v1/chat",
            '{"message": "x", "session_id": "a", "report_id": "b"}',
            f"`report_id` begins a session: leave `session_id` out; {OURS}",
        ),
        (
            "/v1/chat",
            '{"message": 5, "messages": []}',
            "`id` is missing; it must be text of 1 to 128 characters; the body is read as `UiChat`",
        ),
        (
            "/v1/chat",
            '{"id": "a", "messages": [{"role": "user"}]}',
            "`messages[0].parts` is missing; it must be a list, each an object; the body is read",
        ),
        (
            "/v1/chat",
            '{"id": "a", "messages": [{"parts": []}, 5]}',
            "`messages[0].role` is missing; it must be text; `messages[1]` must be an object with "
            "`role` and `parts`, not `5`; the body is read as `UiChat`",
        ),
        (
            "/v1/chat",
            '{"threadId": "a", "messages": [{"role": "user", "content": 5}]}',
            "`runId` is missing; it must be text of at most 200 characters; `messages[0].content` "
            "must be text or a list, each an object, not `5`; the body is read as `AgUiChat`",
        ),
        (
            "/v1/relevance",
            '{"query": "x", "source": "y", "items": ["text"]}',
            "`items[0]` must be an object, not `text`",
        ),
        (
            "/v1/relevance",
            '{"query": "x", "source": "y", "items": [{"n": NaN}]}',
            "`items` holds `NaN` or `Infinity`, which are no JSON",
        ),
        (
            "/v1/relevance",
            '{"query": "x", "source": "y", "items": [{"n": 1e999}]}',
            "`items` holds `NaN` or `Infinity`, which are no JSON",
        ),
    ],
)
async def test_a_wrong_body_is_named(served: Served, path: str, content: str, words: str) -> None:
    """422 with the place of the fault and what would be right there, and no validator's words."""
    answer = await served.client.post(path, content=content.encode("latin-1"), headers=JSON)
    message = answer.json()["error"]["message"]

    assert (answer.status_code, code(answer)) == (422, "invalid_request")
    assert message.startswith(words)
    assert "nput" not in message
    assert len(answer.content) < 600
    assert served.sandbox.log == ()


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"limit": "0"}, "`limit` must be a whole number from 1 to 100, not `0`"),
        (
            {"source": "redit"},
            "`source` names no source; there are `reddit`, `youtube`, `amazon`, ",
        ),
        ({"cursor": "x" * 501}, "`cursor` must be text of at most 500 characters"),
        (
            {"decison": "maybe"},
            "there is no parameter `decison`, did you mean `decision`? known are `limit`, `cursor`",
        ),
        (
            {"decision": "maybe"},
            "`decision` must be `full_report`, `short_report`, `insufficient_data`, `clarify` or "
            "`unjudged`, not `maybe`",
        ),
    ],
)
async def test_a_wrong_parameter_is_named(served: Served, query: dict[str, str], words: str) -> None:
    """The same of what stands in the address."""
    answer = await served.client.get("/v1/analyses", params=query)

    assert (answer.status_code, code(answer)) == (422, "invalid_request")
    assert answer.json()["error"]["message"].startswith(words)


async def test_a_wrong_header_is_named(served: Served) -> None:
    """And of a header."""
    headers = {"Idempotency-Key": ""}
    answer = await served.client.post("/v1/analyses", json=QUESTION, headers=headers)

    assert answer.status_code == 422
    assert answer.json()["error"]["message"] == ("`Idempotency-Key` must be text of 1 to 255 characters, not ``")


@pytest.mark.parametrize("path", ["/v1/analyses", "/v1/chat", "/mcp", "/mcp/"])
async def test_a_body_of_another_type_is_refused(served: Served, path: str) -> None:
    """A page of another site can send plain text without asking first."""
    plain = {"Content-Type": "text/plain"}
    async with served.app.router.lifespan_context(served.app):
        answer = await served.client.post(path, content=json.dumps(QUESTION), headers=plain)

    assert (answer.status_code, code(answer)) == (422, "invalid_request")
    assert answer.json()["error"]["message"] == ("the body must be JSON, sent with `Content-Type: application/json`")


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

    assert [(answer.status_code, code(answer)) for answer in (declared, streamed)] == [(413, "too_large")] * 2
    assert fits.status_code == 200


async def test_a_fault_of_ours_tells_nothing(served: Served, caplog: pytest.LogCaptureFixture) -> None:
    """The log has the detail, under the id that the answer names."""
    caplog.set_level(logging.ERROR)
    app = create_app(served.app_context, (*ROUTERS, broken))
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
    app = create_app(served.app_context, (broken,))
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
        '[{"title": "Ember mug \\ud800 \\u0000", "n": 1.5, "deep": [null]}, '
        '{"body": null}, {"title": 7}]}'
    )
    answer = await served.client.post("/v1/relevance", content=body, headers=JSON)
    told = answer.json()

    assert answer.status_code == 200
    assert [*told["relevant"], *told["dropped"]] == json.loads(body)["items"]
    assert (told["status"], told["reason"]) == ("ok", None)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (
            {"items": [{"title": "mug"}, {"Review": "mug"}]},
            "`items[1]`: no text in a field that is known; its fields are `Review`",
        ),
        ({"items": [{}]}, "`items[0]`: no text in a field that is known; its fields are none"),
        (
            {"items": [{"title": "mug", "created_at": True}]},
            "`items[0]`: `created_at` must be text or a number, not true",
        ),
        ({"source": " \u200b\n"}, "`source` names nothing; say where the items are from"),
    ],
)
async def test_what_nobody_can_read_is_not_judged(served: Served, wrong: dict[str, Any], words: str) -> None:
    """The item is named by its place, with what is wrong with it; a source has a name."""
    body = {"query": "mug", "source": "reddit", "items": [{"title": "mug"}], **wrong}
    answer = await served.client.post("/v1/relevance", json=body)

    assert (answer.status_code, code(answer)) == (422, "invalid_request")
    assert answer.json()["error"]["message"].startswith(words)
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


async def test_sources_say_whether_they_can_be_asked(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """All point at the sandbox here."""
    told = (await served.client.get("/v1/sources")).json()

    assert [one["name"] for one in told["sources"]] == list(SOURCES)
    assert all(one["configured"] and one["reason"] is None for one in told["sources"])
    assert told["sample"] is False
