"""The MCP server, driven by a real client over stdin and stdout and over HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
import uvicorn
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from api import bootstrap
from api.bootstrap.app_context import AppContext, open_app_context
from api.interfaces.http.app import create_app
from api.sandbox.server import Sandbox
from api.settings import SourceSettings
from api.sources import SOURCES, default_sources
from tests.interfaces.one_minute import within_one_minute

PLACES = default_sources(SourceSettings())
"""Sources that are switched on by default: each has a tool."""
COMMAND = ["-c", "from api.interfaces.cli.main import run; run()", "mcp"]
UPSTREAMS = ("reddit", "youtube", "amazon")
EXCLUDED = ("exclude", "exclude_authors", "exclude_sites")
TOOLS = {
    **{
        f"fetch_{place}": {
            "query",
            "depth",
            "limit",
            "since",
            "about",
            "not_about",
            "aim",
            *EXCLUDED,
            "sandbox",
            "include_dropped",
        }
        for place in PLACES
    },
    "search_archive": {
        "query",
        "since",
        "source",
        "about",
        "language",
        "kept",
        "k",
        "sandbox",
    },
    "relevance_filter": {"query", "source", "items", "about", "not_about", "aim"},
    "analyze_product": {
        "query",
        "depth",
        "sources",
        "since",
        "limit",
        "about",
        "not_about",
        "aim",
        *EXCLUDED,
        "sandbox",
        "include_dropped",
    },
    "compare_products": {
        "products",
        "about",
        "not_about",
        "aim",
        *EXCLUDED,
        "depth",
        "sources",
        "since",
        "limit",
        "sandbox",
    },
    "correct_item": {"report_id", "key", "relevant"},
    "judge_again": {"report_id", "include_dropped", "about", "not_about", "aim", "sense"},
    "watch_product": {
        "query",
        "every",
        "tz",
        "about",
        "not_about",
        "aim",
        *EXCLUDED,
        "sources",
        "depth",
        "limit",
        "only",
        "notes",
        "name",
        "sandbox",
    },
    "list_watches": set(),
}
Connect = Callable[..., AbstractAsyncContextManager[Client]]


@pytest.fixture(scope="module")
def shared() -> Iterator[Sandbox]:
    """One sandbox for all."""
    with Sandbox.start() as started:
        yield started


@pytest.fixture
def sandbox(shared: Sandbox, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Sandbox]:
    """Healthy, with an empty log; the environment points at it and at a database of its own."""
    shared.forget()
    for name, value in shared.environment.items():
        if not name.startswith("LANGFUSE"):
            monkeypatch.setenv(name, value)
    monkeypatch.setenv("LISTENPOST_MODE", "live")
    monkeypatch.setenv("LISTENPOST_DATABASE_URL", f"sqlite+aiosqlite:///{tmp_path}/mcp.db")
    yield shared
    shared.heal()


@pytest.fixture
def process(sandbox: Sandbox, root: Path) -> Client:
    """A client of `listenpost mcp`."""
    environment = {**os.environ, "PYTHONPATH": str(root)}
    return Client(stdio_client(StdioServerParameters(command=sys.executable, args=COMMAND, env=environment)))


@asynccontextmanager
async def serving(app_context: AppContext) -> AsyncIterator[str]:
    """The HTTP app on a port of this machine."""
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(create_app(app_context), log_config=None, lifespan="on", ws="none")
    server = uvicorn.Server(config)
    running = asyncio.create_task(server.serve([listener]))
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
    finally:
        server.should_exit = True
        await running


@asynccontextmanager
async def keyed(url: str, key: str) -> AsyncIterator[Client]:
    """A client with this key."""
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}, timeout=60) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        yield client


@pytest.fixture
def connect(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> Connect:
    """Open a server and a client of it."""

    @asynccontextmanager
    async def connected(keys: str = "", key: str = "", **limits: str) -> AsyncIterator[Client]:
        for name, value in {"API_KEYS": keys, **limits}.items():
            monkeypatch.setenv(f"LISTENPOST_{name}", value)
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        async with (
            serving(await open_app_context(bootstrap.load_settings())) as url,
            httpx2.AsyncClient(headers=headers, timeout=60) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            yield client

    return connected


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """A tool's structured answer."""
    answer = await client.call_tool(tool, arguments)
    assert not answer.is_error, answer.content
    assert answer.structured_content is not None
    content: dict[str, Any] = answer.structured_content
    return content


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    """The words of a tool's error."""
    answer = await client.call_tool(tool, arguments)
    assert answer.is_error
    assert answer.structured_content is None
    return str(getattr(answer.content[0], "text", ""))


async def assert_tools(client: Client) -> None:
    """The tools of the interface, each with typed arguments and a typed answer."""
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert {n: set(t.input_schema.get("properties", ())) for n, t in tools.items()} == TOOLS
    for name, tool in tools.items():
        schema = tool.output_schema or {}
        wanted = {
            "relevance_filter": "yield_ratio",
            "analyze_product": "findings",
            "search_archive": "hits",
            "compare_products": "contrasts",
            "correct_item": "relevant",
            "judge_again": "findings",
            "watch_product": "due_at",
            "list_watches": "watches",
        }
        assert wanted.get(name, "upstream_calls") in schema["required"]
        assert tool.description
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint == (name not in {"correct_item", "judge_again", "watch_product"})
    for source in PLACES:
        assert tools[f"fetch_{source}"].description == SOURCES[source].description
    depth = tools["fetch_reddit"].input_schema["properties"]["depth"]
    assert depth["enum"] == ["quick", "standard", "deep"]


async def assert_answers(client: Client, sandbox: Sandbox) -> None:
    """Fetch with progress, judge own items, analyze."""
    heard: list[tuple[float, str]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, message or ""))

    answer = await client.call_tool("fetch_reddit", {"query": "plaud.ai", "limit": 4}, progress_callback=note)
    fetched = answer.structured_content or {}
    assert (fetched["outcome"], fetched["attempts"][0]["limit"]) == ("ok", 4)
    assert {item["source"] for item in fetched["items"]} == {"reddit"}
    assert [number for number, _ in heard] == [*range(1, len(heard) + 1)]
    assert heard[0][1] == "Reddit: asking for 4 …"
    assert heard[-1][1].startswith("Reddit: ")
    assert not sandbox.requests("youtube")

    items = [{"title": "My Ember mug died", "mine": 7}, {"title": "Coupons for socks"}]
    judged = await call(client, "relevance_filter", query="ember mug", source="reddit", items=items)
    assert judged["relevant"] == items[:1]
    assert (judged["dropped"], judged["yield_ratio"], judged["status"]) == (items[1:], 0.5, "ok")

    report = await call(client, "analyze_product", query="plaud.ai", depth="quick")
    assert report["decision"] == "full_report"
    assert set(report["sources"]) == set(UPSTREAMS)
    cited = {key for finding in report["findings"] for key in finding["cites"]}
    assert cited <= {item["key"] for item in report["items"]}

    compared = await call(client, "analyze_product", query="plaud.ai vs otter", depth="quick")
    assert (compared["decision"], compared["compared"]) == ("clarify", ["plaud.ai", "otter"])
    assert compared["cost"]["upstream_calls"] == 0


async def assert_errors(client: Client, sandbox: Sandbox) -> None:
    """Our code and words, never an exception's; a source that fails is an answer."""
    own = {"source": "x", "items": [{"title": "My mug"}]}
    for tool, more in (("fetch_amazon", {}), ("analyze_product", {}), ("relevance_filter", own)):
        assert "invalid_request: Hello!" in await refused(client, tool, query="hello", **more)
        assert "Nothing was asked. Name a pr" in await refused(client, tool, query="", **more)
    unknown = await refused(client, "analyze_product", query="plaud", sources=["nope"])
    assert "invalid_request: there is no source `nope`" in unknown
    limited = await refused(client, "fetch_reddit", query="plaud", limit=0)
    assert limited == "invalid_request: `limit` must be a whole number from 1 to 500, not `0`"
    misspelt = await refused(client, "fetch_reddit", query="plaud", abuot="a recorder")
    assert "invalid_request: there is no argument `abuot`, did you mean `about`?" in misspelt
    sandbox.fault("youtube=quota")
    made_up = await call(client, "fetch_youtube", query="plaud.ai", limit=4, sandbox=True)
    assert (made_up["sample"], made_up["attempts"][0]["limit"]) == (True, 4)
    quota = await call(client, "fetch_youtube", query="oura ring")
    assert (quota["outcome"], quota["items"]) == ("quota_exhausted", [])


async def test_over_stdin_and_stdout(process: Client, sandbox: Sandbox) -> None:
    """A client library starts the process, lists the tools and uses them."""
    async with asyncio.timeout(120), process as client:
        assert client.server_info is not None
        assert client.server_info.name == "listenpost"
        assert "strangers" in (client.instructions or "")
        await assert_tools(client)
        await assert_answers(client, sandbox)
        await assert_errors(client, sandbox)


async def test_over_http(connect: Connect, sandbox: Sandbox) -> None:
    """The same tools behind `/mcp`."""
    async with asyncio.timeout(120), connect() as client:
        await assert_tools(client)
        await assert_answers(client, sandbox)
        await assert_errors(client, sandbox)


async def test_products_are_compared(connect: Connect) -> None:
    """Products side by side: progress names which, the text has the table, the record the keys."""
    heard: list[str] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        heard.append(message or "")

    async with asyncio.timeout(120), connect() as client:
        answer = await client.call_tool(
            "compare_products",
            {"products": ["Oura", "Whoop"], "depth": "quick"},
            progress_callback=note,
        )
        same = await refused(client, "compare_products", products=["Oura", "OURA"])
    text = str(getattr(answer.content[0], "text", ""))
    record = answer.structured_content or {}
    assert not answer.is_error, text
    assert text.startswith("# Oura and Whoop, compared")
    assert "| about it |" in text
    assert [product["state"] for product in record["products"]] == ["compared", "compared"]
    assert any(words.startswith("Whoop: Reddit: ") for words in heard)
    assert same.startswith("invalid_request: “Oura” and “OURA” are the same product")


async def test_product_is_watched_and_listed(connect: Connect, sandbox: Sandbox) -> None:
    """Nobody is asked yet; whom to tell is no argument, and strangers' words are fenced."""
    async with asyncio.timeout(120), connect() as client:
        empty = await client.call_tool("list_watches", {})
        watch = await call(client, "watch_product", query="Oura", every="hourly")
        asked = list(sandbox.log)
        named = await call(client, "watch_product", query="Whoop", name="each morning")
        listed = await client.call_tool("list_watches", {})
        again = await refused(client, "watch_product", query="Oura", tz="Mars")
        nobody = await refused(client, "watch_product", query="Oura", notify=["https://a.example"])
    text = str(getattr(listed.content[0], "text", ""))
    assert getattr(empty.content[0], "text", "") == "Nothing is watched."
    assert (watch["name"], watch["every"], watch["notify"]) == ("Oura", "hourly", [])
    assert not asked
    assert {each["id"] for each in (listed.structured_content or {})["watches"]} == {watch["id"], named["id"]}
    assert "each morning (Whoop): " in text
    assert "it has not run yet" in text
    assert watch["id"] in text
    assert "Oura: hourly" in text
    assert again.startswith("invalid_request: there is no time zone “Mars”")
    assert "`notify`" in nobody


async def test_an_item_is_corrected_and_the_correction_is_removed(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one's own report alone; the answer says what was kept, and the next analysis follows."""
    monkeypatch.setenv("LISTENPOST_API_KEYS", "ada-key,eve-key")
    ada = {"Authorization": "Bearer ada-key"}
    async with (
        asyncio.timeout(120),
        serving(await open_app_context(bootstrap.load_settings())) as url,
    ):
        async with keyed(url, "ada-key") as client:
            report = await call(client, "analyze_product", query="plaud.ai", depth="quick")
            chosen = {"report_id": report["id"], "key": report["items"][0]["key"]}
            answer = await client.call_tool("correct_item", chosen | {"relevant": False})
            again = await call(client, "analyze_product", query="plaud.ai", depth="quick")
            anew = await call(client, "judge_again", report_id=report["id"])
            no_sense = await refused(client, "judge_again", report_id=report["id"], sense=9)
            unknown_item = await refused(client, "correct_item", **chosen | {"key": "reddit:none"}, relevant=True)
            unknown_report = await refused(client, "correct_item", **chosen | {"report_id": "none"}, relevant=True)
            forgotten = await refused(client, "correct_item", **chosen)
            wrong = await refused(client, "correct_item", **chosen, relevant="perhaps")
        async with keyed(url, "eve-key") as client:
            hers = await refused(client, "correct_item", **chosen, relevant=True)
            removed_by_her = await refused(client, "correct_item", **chosen, relevant=None)
        async with (
            keyed(url, "ada-key") as client,
            httpx.AsyncClient(base_url=url.removesuffix("/mcp"), headers=ada) as plain,
        ):
            kept = (await plain.get("/v1/corrections")).json()["corrections"]
            removed = await client.call_tool("correct_item", chosen | {"relevant": None})
            left = (await plain.get("/v1/corrections")).json()["corrections"]
            nothing = await refused(client, "correct_item", **chosen, relevant=None)

    report_id, key = chosen.values()
    uses = f"the next analysis of the same question uses this, or `judge_again` of `{report_id}`, which asks no source."
    assert answer.structured_content == chosen | {"relevant": False}
    assert getattr(answer.content[0], "text", "") == (f"Kept: `{key}` is not about “plaud.ai”; {uses}")
    assert key not in {item["key"] for item in again["items"]}
    assert key not in {item["key"] for item in anew["items"]}
    assert anew["cost"]["upstream_calls"] == 0
    assert no_sense.startswith("not_found: the report has no sense 9")
    assert unknown_item == "not_found: the report has no item `reddit:none`"
    assert unknown_report == "not_found: there is no report `none`"
    assert forgotten.startswith("invalid_request: `relevant` is missing")
    assert wrong == "invalid_request: `relevant` must be true or false, not `perhaps`"
    assert hers == removed_by_her == f"not_found: there is no report `{report_id}`"
    assert [(entry["key"], entry["relevant"]) for entry in kept] == [(key, False)]
    assert removed.structured_content == chosen | {"relevant": None}
    assert getattr(removed.content[0], "text", "") == (f"Removed: `{key}` has no correction any more; {uses}")
    assert left == []
    assert nothing == f"not_found: the item `{key}` has no correction"


def test_stdout_carries_the_protocol_alone(sandbox: Sandbox, root: Path) -> None:
    """Every line is JSON-RPC, also in the sandbox mode that talks to a person on stderr."""
    environment = {**os.environ, "PYTHONPATH": str(root), "LISTENPOST_MODE": "sandbox"}
    asked = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"}}},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    ]  # fmt: skip

    done = subprocess.run(
        [sys.executable, *COMMAND], input="".join(json.dumps(one) + "\n" for one in asked),
        capture_output=True, text=True, timeout=60, env=environment, check=False,
    )  # fmt: skip

    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer["jsonrpc"] for answer in answers] == ["2.0"] * len(answers)
    assert {answer.get("id") for answer in answers} >= {1}
    assert done.returncode == 0
    assert "sample data" in done.stderr


async def test_an_analysis_is_kept_and_is_its_tenant_s(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a key's client asked for is in that key's listing over HTTP, and in no other's."""
    monkeypatch.setenv("LISTENPOST_API_KEYS", "ada-key,eve-key")
    ada, eve = ({"Authorization": f"Bearer {name}-key"} for name in ("ada", "eve"))
    async with (
        asyncio.timeout(120),
        serving(await open_app_context(bootstrap.load_settings())) as url,
    ):
        async with keyed(url, "ada-key") as client:
            report = await call(client, "analyze_product", query="plaud.ai", depth="quick")
        async with httpx.AsyncClient(base_url=url.removesuffix("/mcp")) as plain:
            mine = (await plain.get("/v1/analyses", headers=ada)).json()["analyses"]
            hers = (await plain.get("/v1/analyses", headers=eve)).json()["analyses"]

    assert [one["id"] for one in mine] == [report["id"]]
    assert hers == []


async def test_the_door_has_the_keys_of_the_http_api(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """401 without a key, 429 beyond the limit, in the one error shape; and nothing is asked."""
    monkeypatch.setenv("LISTENPOST_API_KEYS", "ada-key")
    monkeypatch.setenv("LISTENPOST_LIMIT_REQUESTS_PER_MINUTE", "1")
    ada = {"Authorization": "Bearer ada-key"}
    async with (
        asyncio.timeout(60),
        serving(within_one_minute(await open_app_context(bootstrap.load_settings()))) as url,
        httpx.AsyncClient() as plain,
    ):
        nobody = await plain.post(url, json={})
        wrong = await plain.post(url, json={}, headers={"Authorization": "Bearer eve"})
        limited = [await plain.post(url, json={}, headers=ada) for _ in range(3)]

    assert [one.status_code for one in (nobody, wrong)] == [401, 401]
    assert nobody.json()["error"]["code"] == "unauthorized"
    assert nobody.headers["www-authenticate"] == "Bearer"
    assert limited[-1].status_code == 429
    assert limited[-1].json()["error"]["code"] == "limit_reached"
    assert sandbox.log == ()


async def test_a_limit_within_a_call_is_a_tool_error(connect: Connect, sandbox: Sandbox) -> None:
    """The day's USD do not suffice for an analysis: nobody is asked."""
    async with (
        asyncio.timeout(60),
        connect(keys="ada-key", key="ada-key", LIMIT_USD_PER_DAY="0.000001") as client,
    ):
        words = await refused(client, "analyze_product", query="plaud.ai")

    assert "limit_reached: the day's 1e-06 USD are used up" in words
    assert sandbox.log == ()


async def test_giving_up_a_call_ends_its_work(connect: Connect, sandbox: Sandbox) -> None:
    """B86: a client that stops waiting leaves nothing running."""
    sandbox.latency("openai.judge=3s")
    async with asyncio.timeout(60), connect() as client:
        asking = asyncio.create_task(client.call_tool("fetch_reddit", {"query": "plaud.ai"}))
        while not sandbox.requests("reddit", "search"):
            await asyncio.wait([asking], timeout=0.05)
        asking.cancel()
        await asyncio.wait([asking])
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.Event().wait(), 5)
        assert await client.list_tools()

    assert {entry.endpoint for entry in sandbox.requests("reddit")} == {"token", "search"}


async def test_identical_calls_at_once_share_one_fetch(connect: Connect, sandbox: Sandbox) -> None:
    """Ten at the same time are searched and judged as one."""
    async with connect() as client:
        sandbox.latency("reddit=200ms", "openai=200ms")
        fetched = await asyncio.gather(*(call(client, "fetch_reddit", query="plaud.ai", limit=4) for _ in range(10)))

    assert len(sandbox.requests("reddit", "search")) == 1
    assert len(sandbox.requests("openai", "judge")) == len(fetched[0]["attempts"])
    assert all(answer == fetched[0] for answer in fetched)


async def test_a_model_reads_text_and_a_program_the_record(connect: Connect, sandbox: Sandbox) -> None:
    """
    No JSON in the text; what was dropped only where it is asked for; `about` reaches the judge.
    """
    async with asyncio.timeout(60), connect() as client:
        answer = await client.call_tool("fetch_reddit", {"query": "plaud.ai", "about": "a voice recorder"})
        whole = await call(client, "fetch_reddit", query="plaud.ai", include_dropped=True)
        asked = {"query": "plaud.ai", "depth": "quick"}
        report = await client.call_tool("analyze_product", asked | {"include_dropped": True})

    (text,) = answer.content
    lines = getattr(text, "text", "").splitlines()
    record = answer.structured_content or {}
    assert lines[0] == "Reddit: 3 of 10 results were about it, searched twice."
    links = [line.rpartition(", ")[2] for line in lines if line.startswith("E")]
    assert links == [item["url"] for item in record["items"]]
    assert "{" not in "".join(lines)
    assert "dropped" not in record
    assert len(whole["dropped"]) == 7
    assert any("a voice recorder" in str(entry.body) for entry in sandbox.requests("openai", "judge"))
    (markdown,) = report.content
    record = report.structured_content or {}
    assert getattr(markdown, "text", "").startswith("# What people say about plaud.ai")
    assert record["dropped"]
    assert "## Dropped" not in getattr(markdown, "text", "")
    assert f"listenpost://reports/{record['id']}" in getattr(markdown, "text", "")


async def test_labels_are_one_callers_own_and_go_on(connect: Connect, sandbox: Sandbox) -> None:
    """
    What three tools show at once has three times as many labels; what is shown again keeps its own.
    """
    async with asyncio.timeout(60), connect() as client:
        answers = await asyncio.gather(
            *(client.call_tool(f"fetch_{place}", {"query": "plaud.ai"}) for place in UPSTREAMS)
        )
        again = await client.call_tool("fetch_reddit", {"query": "plaud.ai"})

    shown = [set(re.findall(r"^E\d+", str(a.content[0].text), re.M)) for a in answers]  # type: ignore[union-attr]
    assert len(set.union(*shown)) == sum(map(len, shown)) == 10
    assert set(re.findall(r"^E\d+", str(again.content[0].text), re.M)) == shown[0]  # type: ignore[union-attr]


async def test_a_long_text_is_cut_and_says_how_much(connect: Connect, sandbox: Sandbox) -> None:
    """
    Of 100 items of one's own as many are named as a quick look may show; the record has all.
    """
    items = [{"title": f"My Ember mug died {number} " + "x" * 150} for number in range(100)]
    async with asyncio.timeout(60), connect() as client:
        answer = await client.call_tool("relevance_filter", {"query": "ember mug", "source": "mine", "items": items})

    text = str(getattr(answer.content[0], "text", ""))
    assert 7_500 < len(text) <= 8_000
    assert re.search(r"\n\nCut: \d+ of \d+ characters are not shown. `relevant` holds", text)
    assert len((answer.structured_content or {})["relevant"]) == 100


async def test_reports_and_places_can_be_read(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    A report is its key's alone; for anybody else it is not there, with a code for programs.
    """
    monkeypatch.setenv("LISTENPOST_API_KEYS", "ada-key,eve-key")
    async with (
        asyncio.timeout(120),
        serving(await open_app_context(bootstrap.load_settings())) as url,
    ):
        async with keyed(url, "ada-key") as ada:
            report = await call(ada, "analyze_product", query="plaud.ai", depth="quick")
            address = f"listenpost://reports/{report['id']}"
            listed = (await ada.list_resources()).resources
            read = (await ada.read_resource(address)).contents[0]
            places = (await ada.read_resource("listenpost://places")).contents[0]
        async with keyed(url, "eve-key") as eve:
            hers = (await eve.list_resources()).resources
            with pytest.raises(MCPError) as refusal:
                await eve.read_resource(address)
            with pytest.raises(MCPError) as other:
                await eve.read_resource("file:///etc/passwd")

    assert [resource.uri for resource in listed] == ["listenpost://places", address]
    assert [resource.uri for resource in hers] == ["listenpost://places"]
    assert read.mime_type == places.mime_type == "text/markdown"
    assert str(getattr(read, "text", "")).startswith("# What people say about plaud.ai")
    table = str(getattr(places, "text", ""))
    assert all(f"| `{place}` |" in table for place in SOURCES)
    off = [name for name, spec in SOURCES.items() if not spec.switched_on(SourceSettings())]
    assert table.count("| ready |") == len(SOURCES) - len(off)
    assert table.count("| off: ") == len(off)
    assert re.search(r"^\| deep \| \d+ \| \d+ \| \d\.\d{4} \|$", table, re.M)
    assert refusal.value.error.data == other.value.error.data == {"code": "not_found"}
    assert "there is no report" in refusal.value.error.message


async def test_a_place_that_cannot_be_asked_says_why(
    connect: Connect, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the resource as in the tool's answer."""
    monkeypatch.delenv("YOUTUBE_API_KEY")
    async with asyncio.timeout(60), connect() as client:
        places = (await client.read_resource("listenpost://places")).contents[0]

    assert "cannot be asked: `YOUTUBE_API_KEY` not set" in str(getattr(places, "text", "")).replace("\\_", "_").replace(
        "\\`", "`"
    )


async def test_prompts_name_the_tool_and_take_what_was_filled_in(connect: Connect) -> None:
    """
    An argument that is missing is named; an empty one is none.
    """
    async with asyncio.timeout(60), connect() as client:
        prompts = (await client.list_prompts()).prompts
        check = await client.get_prompt("product_check", {"product": "plaud.ai", "about": ""})
        filled = {"product": "Notion\nCalendar", "about": "notes\n\nand dates"}
        about = await client.get_prompt("product_check", filled)
        with pytest.raises(MCPError, match=r"invalid_request: Nothing was asked\. Name a product"):
            await client.get_prompt("product_check", {"product": " "})
        with pytest.raises(MCPError, match="invalid_request: Hello!"):
            await client.get_prompt("compare", {"first": "plaud.ai", "second": "hello"})
        with pytest.raises(MCPError, match="`second` is missing"):
            await client.get_prompt("compare", {"first": "plaud.ai"})
        with pytest.raises(MCPError, match="there is no prompt `nope`; there are `product_check`"):
            await client.get_prompt("nope")
        with pytest.raises(MCPError, match="there is no tool `nope`; there are `fetch_reddit`"):
            await client.call_tool("nope", {})

    asked = {prompt.name: [a.name for a in prompt.arguments or ()] for prompt in prompts}
    assert asked == {"product_check": ["product", "about"], "compare": ["first", "second"]}
    assert '`query` = "plaud.ai". Then' in str(check.messages[0].content)
    assert '`query` = "Notion Calendar"' in str(about.messages[0].content)
    assert '`about` = "notes and dates"' in str(about.messages[0].content)


@pytest.mark.parametrize("body", ["{", "[]", '{"a": 1}', '{"jsonrpc": "2.0", "id": []}'])
async def test_what_is_no_message_is_refused_without_a_validator_s_words(sandbox: Sandbox, body: str) -> None:
    """In the protocol's shape."""
    headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    async with (
        asyncio.timeout(60),
        serving(await open_app_context(bootstrap.load_settings())) as url,
        httpx.AsyncClient(headers=headers) as plain,
    ):
        answer = await plain.post(url, content=body)

    assert answer.status_code == 400
    assert answer.json()["error"]["message"] == ("invalid_request: the body is no message of JSON-RPC 2.0")


async def test_the_skill_calls_what_there_is(connect: Connect, root: Path) -> None:
    """Every tool that it names exists, and each of its examples is answered from sample data."""
    text = (root / "skills/listenpost/SKILL.md").read_text("utf-8")
    head = re.match(r"---\nname: (\S+)\ndescription: (.+)\n---\n", text)
    examples = [json.loads(block) for block in re.findall(r"^```json\n(.*?)^```", text, re.M | re.S)]
    async with connect() as client:
        there = {tool.name: tool for tool in (await client.list_tools()).tools}
        answers = [await client.call_tool(example["tool"], example["arguments"]) for example in examples]

    assert head is not None
    assert head[1] == "listenpost"
    assert len(head[2]) <= 1024
    named = set(re.findall(r"`((?:fetch|analyze|compare|watch|search|relevance)_[a-z]+)`", text))
    assert named <= there.keys()
    assert named >= {example["tool"] for example in examples}
    assert len(examples) >= 4
    assert [str(answer.content[0]) for answer in answers if answer.is_error] == []
    arguments = set(re.findall(r"`(query|about|not_about|depth|since|sandbox)`", text))
    assert arguments <= set(there["analyze_product"].input_schema["properties"])
