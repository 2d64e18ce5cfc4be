"""What a server's traces are filed under: who asked, in which conversation, by which door."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from api.sandbox.server import Sandbox
from tests.interfaces.http.process import threaded
from tests.langfuse.tracing.collector import Collector, Seen, collecting, settings_for

USER = "X-Listenpost-User"


@pytest.fixture
def anyio_backend() -> str:
    """Our clients run on asyncio."""
    return "asyncio"


@pytest.fixture
def langfuse() -> Iterator[Collector]:
    """A Langfuse that behaves."""
    with collecting() as collector:
        yield collector


@pytest.fixture
def variables(sandbox: Sandbox, langfuse: Collector, tmp_path: Path) -> dict[str, str]:
    """A server that traces, of an owner with a name for what nobody asks by name."""
    keys = settings_for(langfuse.url)
    assert keys.langfuse_public_key
    assert keys.langfuse_secret_key
    return {
        "LANGFUSE_BASE_URL": langfuse.url,
        "LANGFUSE_PUBLIC_KEY": keys.langfuse_public_key,
        "LANGFUSE_SECRET_KEY": keys.langfuse_secret_key.get_secret_value(),
        "LISTENPOST_DATABASE_URL": f"sqlite+aiosqlite:///{tmp_path}/traces.db",
        "LISTENPOST_USER_ID": "owner",
        "LISTENPOST_SESSION_ID": "shift-1",
    }


def caller(url: str, key: str = "", user: str = "") -> httpx.AsyncClient:
    """Somebody with this key, for this user."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return httpx.AsyncClient(base_url=url, timeout=60, headers=headers | ({USER: user} if user else {}))


def filed(span: Seen) -> tuple[Any, Any, Any]:
    """Its user, session and tags."""
    attributes = span.attributes
    return (
        attributes.get("user.id"),
        attributes.get("session.id"),
        attributes.get("langfuse.trace.tags"),
    )


async def test_two_tenants_at_once(variables: dict[str, str], langfuse: Collector) -> None:
    """Every span of a chat turn is its user's and its session's; two at once do not mix."""

    async def turn(url: str, key: str, user: str, session: str, message: str) -> str:
        parts = [{"type": "text", "text": message}]
        body = {"id": session, "messages": [{"role": "user", "parts": parts}]}
        async with caller(url, key, user) as client:
            answer = await client.post("/v1/chat", json=body)
            assert answer.status_code == 200
        return message

    with threaded(variables | {"LISTENPOST_API_KEYS": "ann,bob"}) as url:
        await asyncio.gather(
            turn(url, "ann", "u-1", "chat-1", "What about plaud.ai?"),
            turn(url, "bob", "u-2", "chat-2", "What about the ember mug?"),
        )

    traces = {span.trace: span for span in langfuse.named("chat")}
    people = {
        root.told("input")["question"]: filed(root)[:2] for root in traces.values()
    }  # fmt: skip
    assert people == {
        "What about plaud.ai?": ("u-1", "chat-1"),
        "What about the ember mug?": ("u-2", "chat-2"),
    }
    for span in langfuse.spans:
        user, session, tags = filed(span)
        assert (user, session) == filed(traces[span.trace])[:2]
        assert tags[:2] == ["http", "quick"]
    assert {span.name for span in langfuse.spans} >= {"invoke_agent chat", "gather.reddit"}
    for span in langfuse.named("gather.reddit"):
        assert filed(span)[2] == ["http", "quick", "reddit"]
    tenants = {root.attributes["langfuse.trace.metadata.tenant"] for root in traces.values()}
    assert len(tenants) == 2
    assert all(tenant.startswith('"env_') for tenant in tenants)


async def test_a_tenant_s_name_or_the_owner_s(variables: dict[str, str], langfuse: Collector) -> None:
    """Without the header it is the key's tenant; without a key the owner's own setting."""
    question = {"query": "plaud.ai", "depth": "quick"}
    with threaded(variables | {"LISTENPOST_API_KEYS": "ann"}) as url:
        async with caller(url, "ann") as client:
            assert (await client.post("/v1/fetch/reddit", json=question)).status_code == 200
    with threaded(variables | {"LISTENPOST_API_KEYS": ""}) as url:
        async with caller(url) as client:
            sources = {"sources": ["youtube", "amazon"]}
            answer = await client.post("/v1/analyses", json=question | sources)
            assert answer.status_code == 200

    user, *rest = filed(langfuse.one("fetch"))
    assert user.startswith("env_")
    assert rest == ["shift-1", ["http", "quick", "reddit"]]
    (root,) = langfuse.named("analyze")
    assert filed(root) == ("owner", "shift-1", ["http", "quick", "youtube", "amazon"])
    assert "langfuse.trace.metadata.tenant" not in root.attributes


async def test_what_is_no_pseudonym(variables: dict[str, str], langfuse: Collector) -> None:
    """An address is masked; what is too long or no ASCII is refused, to those who may ask."""
    question = {"query": "plaud.ai", "depth": "quick"}
    with threaded(variables | {"LISTENPOST_API_KEYS": "ann"}) as url:
        async with caller(url, "ann", "ada@example.com") as client:
            assert (await client.post("/v1/fetch/reddit", json=question)).status_code == 200
            refused = [
                await client.get("/v1/sources", headers={USER.encode(): name})
                for name in (b"x" * 129, b"two words", b"ad\xe4")
            ]
            empty = await client.get("/v1/sources", headers={USER: ""})
        async with caller(url, "eve", "x" * 129) as client:
            stranger = await client.get("/v1/sources")

    assert filed(langfuse.one("fetch"))[0] == "[masked]"
    for answer in refused:
        assert answer.status_code == 422
        assert f"`{USER}` takes up to 128" in answer.json()["error"]["message"]
    assert empty.status_code == 200
    assert stranger.status_code == 401


async def test_mcp_over_http(variables: dict[str, str], langfuse: Collector) -> None:
    """The tools there are filed under the same people, with their own door."""
    with threaded(variables | {"LISTENPOST_API_KEYS": "ann"}) as url:
        headers = {"Authorization": "Bearer ann", USER: "u-7"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=60) as http,
            Client(streamable_http_client(f"{url}/mcp", http_client=http)) as client,
        ):
            await client.call_tool("fetch_reddit", {"query": "plaud.ai"})

    assert filed(langfuse.one("fetch")) == ("u-7", "shift-1", ["mcp", "quick", "reddit"])


async def test_mcp_on_stdin(variables: dict[str, str], langfuse: Collector, root: Path) -> None:
    """Whoever sits at this machine is the owner, at the same door."""
    words = ["-c", "from api.interfaces.cli.main import run; run()", "mcp"]
    environment = {**os.environ, **variables, "PYTHONPATH": str(root)}
    server = StdioServerParameters(command=sys.executable, args=words, env=environment)
    async with Client(stdio_client(server)) as client:
        await client.call_tool("fetch_reddit", {"query": "plaud.ai"})

    assert filed(langfuse.one("fetch")) == ("owner", "shift-1", ["mcp", "quick", "reddit"])
