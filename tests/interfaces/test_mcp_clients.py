"""The MCP server as clients that others wrote see it, and its page's examples as they stand."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from api.sandbox.server import Sandbox
from api.settings import SourceSettings
from api.sources import default_sources
from tests.clients.environments import node_client, python_client
from tests.interfaces.command import COMMAND
from tests.interfaces.http.process import ROOT, threaded
from tests.interfaces.page_programs import ADDRESS, awaiting, python, started
from tests.snippets import blocks

PLACES = default_sources(SourceSettings())
"""Sources that are switched on by default: each has a tool."""
CALLS = ROOT / "tests" / "clients" / "mcp_python" / "calls.py"
INSTALLED = "/path/to/listenpost/.venv/bin/listenpost"


@dataclass(frozen=True)
class Served:
    """A server over the sandbox's sites and model, as if they were the real ones."""

    url: str
    environment: Mapping[str, str]
    """What points a process at the same."""

    def run(self, *command: str | Path, folder: Path | None = None, **more: str) -> str:
        """What a client's process printed."""
        done = subprocess.run(
            command, env={**os.environ, **self.environment, **more}, cwd=folder,
            capture_output=True, text=True, timeout=240, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One for all."""
    folder = tmp_path_factory.mktemp("served")
    with Sandbox.start() as sandbox:
        variables = {k: v for k, v in sandbox.environment.items() if not k.startswith("LANGFUSE")}
        variables |= {
            "LISTENPOST_MODE": "live",
            "LISTENPOST_DATABASE_URL": f"sqlite+aiosqlite:///{folder}/mcp.db",
        }
        with threaded(variables) as url:
            yield Served(url, {**variables, "PYTHONPATH": str(ROOT)})


def calls(served: Served, client: str) -> dict[str, Any]:
    """What a client heard, whichever it is."""
    if client == "typescript":
        folder = node_client("mcp_node")
        printed = served.run("node", folder / "calls.js", f"{served.url}/mcp")
    else:
        server = [f"{served.url}/mcp"] if client == "python 1, http" else [COMMAND, "mcp"]
        printed = served.run(python_client("mcp_python"), CALLS, *server)
    heard: dict[str, Any] = json.loads(printed)
    return heard


def text(answer: Mapping[str, Any]) -> str:
    """The one text of an answer."""
    (content,) = answer["content"]
    return str(content["text"])


@pytest.mark.parametrize(
    "client",
    ["python 1, http", *(pytest.param(each, marks=pytest.mark.nightly) for each in ("python 1, stdio", "typescript"))],
)
def test_older_and_other_clients_hear_text_and_a_record_that_they_validate(served: Served, client: str) -> None:
    """
    Each client checks records against the declared schemas itself, and shows our words of errors.
    """
    heard = calls(served, client)

    assert re.search(r"^E\d+: reddit, .*https://www\.reddit\.com/\S+$", text(heard["fetched"]), re.M)
    assert heard["fetched"]["structuredContent"]["items"]
    assert "dropped" not in heard["fetched"]["structuredContent"]
    assert heard["whole"]["structuredContent"]["dropped"]
    assert "1 of 2 items are about the query" in text(heard["judged"])
    assert heard["judged"]["structuredContent"]["relevant"] == [{"title": "My Ember mug died"}]
    assert text(heard["report"]).startswith("# What people say about plaud.ai")
    record = heard["report"]["structuredContent"]
    assert not any("dropped" in part for part in (record, *record["sources"].values()))
    assert heard["refused"]["isError"]
    assert "no argument `limits`, did you mean `limit`?" in text(heard["refused"])
    assert "Reddit: asking for 5 …" in heard["progress"]
    assert heard["report_text"]["text"].startswith("# What people say about plaud.ai")
    assert heard["report_text"]["mimeType"] == "text/markdown"
    assert (heard["missing"]["code"], heard["missing"]["data"]["code"]) == (-32602, "not_found")
    assert [prompt["name"] for prompt in heard["prompts"]] == ["product_check", "compare"]
    assert '["a mug", "a cup"]' in heard["messages"][0]["content"]["text"]
    assert all(tool["title"] for tool in heard["tools"])
    assert [tool["name"] for tool in heard["tools"] if not tool["annotations"]["readOnlyHint"]] == [
        "correct_item",
        "judge_again",
        "watch_product",
    ]


def test_the_inspector_lists_and_calls(served: Served) -> None:
    """The page's command line; a tool of every kind is listed."""
    inspector = node_client("mcp_node") / "node_modules" / ".bin" / "mcp-inspector"
    (line,) = (block for block in blocks("mcp.md", "sh") if block.startswith("npx"))
    program, package, *words = shlex.split(line.replace(ADDRESS, served.url))
    assert (program, package) == ("npx", "@modelcontextprotocol/inspector@1")

    tools = served.run(inspector, "--cli", f"{served.url}/mcp", "--method", "tools/list")
    answer = json.loads(served.run(inspector, *words))

    assert len(json.loads(tools)["tools"]) == len(PLACES) + 8
    assert re.search(r"^E\d+: reddit", text(answer), re.M)
    assert answer["structuredContent"]["outcome"] == "ok"


@pytest.mark.parametrize(
    ("library", "before", "messages"),
    [
        ("langchain", "", "answer['messages']"),
        pytest.param(  # the sandbox's model has no Responses API
            "agents",
            "from agents import set_default_openai_api as use; use('chat_completions')",
            "answer.new_items",
            marks=pytest.mark.nightly,
        ),
    ],
)
def test_an_agent_of_another_framework_answers_and_cites(
    served: Served, library: str, before: str, messages: str
) -> None:
    """
    The page's snippets; each label of the answer leads to a post that one tool alone showed.
    """
    (code,) = (block for block in blocks("mcp.md", "python") if f"from {library}" in block)
    places = "|".join(PLACES)
    after = f"print(*re.findall(r'(E\\d+): (?:{places})', str({messages})))"
    program = awaiting("import re", before, code.replace(ADDRESS, served.url), after)

    printed = served.run(python_client("mcp_python"), "-c", program, OPENAI_AGENTS_DISABLE_TRACING="1")

    answer, _, shown = printed.rstrip().rpartition("\n")
    labels = set(re.findall(r"\[(E\d+)\]", answer))
    assert "subscription" in answer.lower()
    assert len(labels) >= 3
    assert labels <= set(shown.split())


def test_a_snippet_of_the_typescript_sdk(served: Served) -> None:
    """It prints the report."""
    folder = node_client("mcp_node")
    (code,) = blocks("mcp.md", "js")
    (folder / "snippet.js").write_text(code.replace(ADDRESS, served.url), "utf-8")

    assert served.run("node", folder / "snippet.js").startswith("# What people say about plaud.ai")


def test_a_snippet_of_the_python_sdk(served: Served) -> None:
    """What a model reads, then each item with its address."""
    (code,) = (block for block in blocks("mcp.md", "python") if "from mcp" in block)
    environment = dict(served.environment)
    whole = code.replace('["mcp"])', f'["mcp"], env={{**os.environ, **{environment}}})')

    printed = python("import os", whole)

    assert re.search(r"^E\d+: reddit", printed, re.M)
    assert len(re.findall(r"^(?!E\d+: ).* https://\S+$", printed, re.M)) >= 2


@pytest.mark.parametrize("which", [0, *(pytest.param(which, marks=pytest.mark.nightly) for which in range(1, 4))])
async def test_each_command_of_the_page_starts_a_server(which: int, tmp_path: Path) -> None:
    """
    As a client starts it, on sample data; with `--text-only` there is no record and no schema.
    """
    command, environment = started()[which]
    if command[0] == "uvx":
        assert command[1:3] == ["--from", INSTALLED.partition("/.venv")[0] + "[mcp]"]
        command = [INSTALLED, *command[4:]]
    assert command[0] == INSTALLED
    database = f"sqlite+aiosqlite:///{tmp_path}/mcp.db"
    parameters = StdioServerParameters(
        command=COMMAND, args=command[1:], env={**environment, "LISTENPOST_DATABASE_URL": database}
    )

    async with Client(stdio_client(parameters)) as client:
        tools = (await client.list_tools()).tools
        answer = await client.call_tool("fetch_reddit", {"query": "plaud.ai"})

    assert len(started()) == 4
    assert len(tools) == len(PLACES) + 8
    assert "sample data" in str(answer.content)
    text_only = "--text-only" in command
    assert all((tool.output_schema is None) is text_only for tool in tools)
    assert (answer.structured_content is None) is text_only


async def test_the_configuration_over_http(tmp_path: Path) -> None:
    """Its key and address let a client in; `?text-only` leaves the records out."""
    (server,) = (
        json.loads(block)["mcpServers"]["listenpost"] for block in blocks("mcp.md", "json") if '"http"' in block
    )
    variables = {
        "LISTENPOST_MODE": "sandbox",
        "LISTENPOST_API_KEYS": server["headers"]["Authorization"].removeprefix("Bearer "),
        "LISTENPOST_DATABASE_URL": f"sqlite+aiosqlite:///{tmp_path}/mcp.db",
    }
    with threaded(variables) as url:
        address = server["url"].replace(ADDRESS, url)
        for query in ("", "?text-only"):
            async with (
                httpx2.AsyncClient(headers=server["headers"], timeout=60) as http,
                Client(streamable_http_client(address + query, http_client=http)) as client,
            ):
                tools = (await client.list_tools()).tools
                answer = await client.call_tool("fetch_reddit", {"query": "plaud.ai"})
            assert all((tool.output_schema is None) is bool(query) for tool in tools)
            assert (answer.structured_content is None) is bool(query)
            assert "sample data" in str(answer.content)
