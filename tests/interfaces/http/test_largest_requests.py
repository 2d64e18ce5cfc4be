"""The largest legal requests: how much processor time the event loop gives to one turn meanwhile."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import httpx
import pytest

from api import bootstrap
from api.bootstrap.app_context import open_app_context
from api.interfaces.http.app import create_app
from api.interfaces.mcp.mcp_tools import tools
from api.reports.report import Report
from api.sandbox import corpus
from api.sandbox.corpus import Post
from api.sandbox.server import Sandbox
from api.sandbox.world import Options
from largest_operations import HEAVY, Call, Values, form_calls, route_calls, tool_calls
from largest_request import BODY_BYTES, TEXTS, reading, requests
from tests.interfaces.http.conftest import Served

MOST_SECONDS = 0.5
LARGEST: Mapping[str, int] = {
    "reddit": 40_000, "youtube": 5_000, "amazon": 20_000, "hackernews": 40_000, "stackexchange": 30_000,
    "github": 65_536, "lemmy": 50_000, "discourse": 32_000,
}  # fmt: skip
"""Characters of the longest text that each place takes, where it says; elsewhere more than any that was seen."""
DAILY = ("20 of prose", "500 wrong items")
NIGHTLY = ("500 of prose", "20 of quoted lines", "20 of headings of quotes", "20 of line ends", ", deep")


class MeasuredLoop(asyncio.SelectorEventLoop):
    """A loop that keeps the longest processor time of its thread between two looks at the sockets."""

    longest = 0.0

    def _run_once(self) -> None:
        began = time.thread_time()
        super()._run_once()  # type: ignore[misc]
        self.longest = max(self.longest, time.thread_time() - began)


@pytest.fixture(autouse=True)
def small_heap() -> Iterator[None]:
    """Collections of garbage during a test leave out the objects of all tests before it, which a server has not."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


async def sent(client: httpx.AsyncClient, loop: MeasuredLoop, request: Call) -> tuple[int, float]:
    """Status, and the longest turn of the loop until the answer was there."""
    await asyncio.sleep(0)  # the turn that made the request is the test's own
    loop.longest = 0.0
    answer = await client.request(request.method, request.path, content=request.body, headers=request.headers)
    return answer.status_code, loop.longest


async def all_sent(loop: MeasuredLoop, kinds: tuple[str, ...]) -> dict[str, tuple[int, float]]:
    """Status and longest turn of each request, by its name."""
    app_context = await open_app_context(bootstrap.load_settings())
    await app_context.product()  # what is loaded once is loaded in threads, beside which a turn costs more
    transport = httpx.ASGITransport(create_app(app_context))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=300) as client:
        listed = [request for request in requests() if request.name.endswith(kinds)]
        answers = {request.name: await sent(client, loop, request) for request in listed}
        newest = (await client.get("/v1/analyses?limit=100")).json()["analyses"]
        listed = list(reading(str(newest[-1]["id"])))
        if kinds == NIGHTLY:
            document = (await client.get("/openapi.json")).json()
            listed += route_calls(document, {"analysis_id": newest[-1]["id"], "source": "reddit"}, BODY_BYTES)
        for request in listed:
            answers[request.name] = await sent(client, loop, request)
    await app_context.aclose()
    return answers


@pytest.mark.parametrize("kinds", [DAILY, pytest.param(NIGHTLY, marks=pytest.mark.nightly)])
def test_no_request_holds_the_event_loop(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, kinds: tuple[str, ...]
) -> None:
    """By processor time of the loop's thread, which no other process of the machine changes."""
    monkeypatch.delenv("OPENAI_API_KEY")
    loop = MeasuredLoop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        answers = runner.run(all_sent(loop, kinds))

    assert len(answers) > len(kinds)
    assert {name: status for name, (status, _) in answers.items() if status >= 500} == {}
    assert {name: seconds for name, (_, seconds) in answers.items() if seconds > MOST_SECONDS} == {}


def largest_posts(letters: Callable[[int], str]) -> list[Post]:
    """Of each place as many posts as are asked for at most, as long as they can be, with comments as long."""
    known = {post.source: post for post in (*corpus.keyless(), *corpus.load()) if post.comments}
    return [
        replace(
            post, id=corpus.native_id(source, number), title=f"Glow Lamp {number}", body=letters(LARGEST[source]),
            comments=tuple(
                replace(post.comments[0], id=corpus.remark_id(source, number, at), body=letters(LARGEST[source]))
                for at in range(3)
            ),
            comments_disabled=False, place="superuser" if source == "stackexchange" else post.place,
        )
        for source, post in known.items()
        for number in range(20)
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["prose", pytest.param("quoted lines", marks=pytest.mark.nightly)])
def test_no_post_of_a_place_holds_the_event_loop(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Twenty posts of each, as long as any stranger can write them there; who asks only asks for a lamp."""
    loop = MeasuredLoop()

    async def asked() -> tuple[int, Report]:
        app_context = await open_app_context(bootstrap.load_settings())
        await app_context.product()
        transport = httpx.ASGITransport(create_app(app_context))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=300) as client:
            loop.longest = 0.0
            answer = await client.post("/v1/analyses", json={"query": "Glow Lamp", "sources": [*LARGEST]})
        await app_context.aclose()
        return answer.status_code, Report.model_validate(answer.json())

    with Sandbox.start(largest_posts(TEXTS[text]), options=Options.endless()) as started:
        for name, value in {"MODE": "live", "CRAWL_TIMEOUT": "240", "SOURCE_TIMEOUT": "120"}.items():
            monkeypatch.setenv(f"LISTENPOST_{name}", value)
        for name, value in started.environment.items():
            if not name.startswith(("LANGFUSE", "OPENAI")):
                monkeypatch.setenv(name, value)
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            status, report = runner.run(asked())

    assert status == 200
    empty = {
        name: f"{source.outcome}: {source.reason}" for name, source in report.sources.items() if not source.fetched
    }
    assert (empty, report.sources.keys()) == ({}, LARGEST.keys())
    assert loop.longest <= MOST_SECONDS


async def test_every_route_has_a_largest_call(served: Served) -> None:
    """By its schema, no larger than a body may be; those that delete come last."""
    document = (await served.client.get("/openapi.json")).json()
    calls = list(route_calls(document, {}, BODY_BYTES))
    routes = {f"{method.upper()} {path}" for path, operations in document["paths"].items() for method in operations}
    deleting = [call.method == "DELETE" for call in calls]

    assert {route for route in routes - {call.name for call in calls} if not HEAVY.search(route)} == set()
    assert deleting == sorted(deleting)
    sizes = {call.name: len(call.body) for call in calls if call.body is not None}
    assert max(sizes.values()) <= BODY_BYTES
    assert all("{" not in call.path for call in calls)
    assert sizes.keys() == {
        f"{method.upper()} {path}"
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
        if "requestBody" in operation
    }


async def test_every_tool_and_form_has_a_largest_call(served: Served) -> None:
    """Each tool by its schema; each form with its token and one long field."""
    listed = [
        {"name": name, "inputSchema": tool.arguments.model_json_schema()}
        for name, tool in tools(served.app_context).items()
    ]
    calls = list(tool_calls(listed, {}, BODY_BYTES))
    page = await served.client.get("/")
    (form, *_) = form_calls({"/": page.text}, BODY_BYTES)

    assert [call.name for call in calls] == [f"tool {tool['name']}" for tool in listed]
    assert all(call.body and len(call.body) <= BODY_BYTES for call in calls)
    assert form.body is not None
    assert (form.path, form.body.startswith(b"csrf=&")) == ("/ask", False)
    assert BODY_BYTES - 5_000 < len(form.body) <= BODY_BYTES


def test_the_largest_value_is_what_a_schema_allows() -> None:
    """The longest text, list, choice and number; lists hold different texts, and a known name has its value."""
    text = {"type": "string", "maxLength": 5}
    schema = {
        "type": "object",
        "properties": {
            "text": text, "long": {"type": "string"}, "list": {"type": "array", "maxItems": 2, "items": text},
            "choice": {"enum": ["a", "abc", "ab"]}, "any": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/Part"}]},
            "number": {"type": "integer", "maximum": 7}, "known": text, "flag": {"type": "boolean"},
        },
    }  # fmt: skip

    value = Values({"known": "x"}, {"Part": {"type": "object", "properties": {"a": {"const": 1}}}}, 10).of(schema)

    assert value == {
        "text": "Glow ", "long": "Glow Lamp ", "list": ["0Glow", "1Glow"], "choice": "abc", "any": {"a": 1},
        "number": 7, "known": "x", "flag": True,
    }  # fmt: skip
