"""Lines and bodies that an MCP client gets wrong: mended or answered, never dropped."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest

from api.interfaces.mcp.mcp_transports import mended
from tests.forked import COMMAND, Forked
from tests.interfaces.http.process import threaded

HALF = "plaud.ai \\ud83d"
OPENING = (
    '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18",'
    '"capabilities":{},"clientInfo":{"name":"test","version":"1"}}}',
    '{"jsonrpc":"2.0","method":"notifications/initialized"}',
)


def calling(number: int, tool: str, arguments: str) -> str:
    """The message of a call, as text."""
    params = f'{{"name":"{tool}","arguments":{arguments}}}'
    return f'{{"jsonrpc":"2.0","id":{number},"method":"tools/call","params":{params}}}'


JUDGING = f'{{"query":"ember mug","source":"x","items":[{{"title":"{HALF}"}}]}}'
JUDGED = {"title": "plaud.ai \ufffd"}


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        (r'"\ud83d"', r'"\ufffd"'),
        (r'"\uDE00 \ud83d\ud83d\ude00"', r'"\ufffd \ufffd\ud83d\ude00"'),
        (r'"\\ud83d \n\u00e9"', r'"\\ud83d \n\u00e9"'),
        (r'"\ud83d\n\\"', r'"\ufffd\n\\"'),
    ],
)
def test_half_a_character_becomes_a_sign_for_one(text: str, whole: str) -> None:
    """Whole ones, and backslashes that are text, stay as they are."""
    assert mended(text) == whole
    json.loads(mended(text)).encode()


def test_every_line_on_stdin_is_answered(tmp_path: Path) -> None:
    """Half a character is mended; what is no message has an error without an id."""
    environment = {
        **os.environ,
        "LISTENPOST_MODE": "sandbox",
        "LISTENPOST_DATABASE_URL": f"sqlite+aiosqlite:///{tmp_path}/mcp.db",
    }
    lines = [
        "no JSON",
        *OPENING,
        "",
        calling(1, "fetch_reddit", f'{{"query":"{HALF}"}}'),
        calling(2, "relevance_filter", JUDGING),
        "[]",
        '{"jsonrpc":"2.0","id":"\\ud83d","method":7}',
    ]
    with Forked[bytes](
        [COMMAND, "mcp"], env=environment,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("".join(f"{line}\n" for line in lines).encode())
        process.stdin.flush()
        answers = [json.loads(process.stdout.readline()) for _ in range(6)]
        process.stdin.close()
        assert process.wait(60) == 0

    by_id: dict[Any, Any] = {answer["id"]: answer.get("result") for answer in answers}
    assert by_id[1]["structuredContent"]["query"] == "plaud.ai \ufffd"
    filtered = by_id[2]["structuredContent"]
    assert filtered["relevant"] + filtered["dropped"] == [JUDGED]
    errors = [answer["error"] for answer in answers if answer["id"] is None]
    assert [error["code"] for error in errors] == [-32700, -32600, -32600]
    words = "invalid_request: the line is no message of JSON-RPC 2.0"
    assert {error["message"] for error in errors} == {words}


def test_a_client_that_reads_no_more_is_no_defect(tmp_path: Path) -> None:
    """The server ends without a traceback."""
    variables = {"LISTENPOST_DATABASE_URL": f"sqlite:///{tmp_path / 'mcp.db'}"}
    with Forked[bytes](
        [COMMAND, "mcp", "--sandbox"], env=os.environ | variables,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        hello = {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
        process.stdin.write(f"{json.dumps(body)}\n".encode())
        process.stdin.close()
        errors = process.stderr.read().decode()

    assert "Traceback" not in errors
    assert process.returncode == 0


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A server on sample data."""
    folder = tmp_path_factory.mktemp("mcp")
    variables = {
        "LISTENPOST_MODE": "sandbox",
        "LISTENPOST_DATABASE_URL": f"sqlite+aiosqlite:///{folder}/mcp.db",
    }
    with threaded(variables) as address:
        yield f"{address}/mcp"


def post(url: str, body: str, accept: str = "application/json, text/event-stream") -> httpx.Response:
    """One message over HTTP."""
    headers = {"Accept": accept, "Content-Type": "application/json"}
    return httpx.post(url, content=body, headers=headers, timeout=60)


def test_half_a_character_over_http(url: str) -> None:
    """As over stdin; and what is no JSON has the code for that."""
    answer = post(url, calling(1, "relevance_filter", JUDGING))
    data = answer.text.partition("data: ")[2].splitlines()[0]
    refused = post(url, "{")

    filtered = json.loads(data)["result"]["structuredContent"]
    assert filtered["relevant"] + filtered["dropped"] == [JUDGED]
    assert (refused.status_code, refused.json()["id"]) == (400, None)
    assert refused.json()["error"]["code"] == -32700


@pytest.mark.parametrize("accept", ["application/json", "*/*", "application/json; q=0.9", ""])
def test_a_client_that_takes_json_alone_is_answered(url: str, accept: str) -> None:
    """With one object instead of a stream; one that takes neither is told what it must accept."""
    answer = post(url, calling(1, "relevance_filter", JUDGING), accept)
    refused = post(url, calling(1, "relevance_filter", JUDGING), "image/png")

    assert answer.headers["content-type"].startswith("application/json")
    filtered = answer.json()["result"]["structuredContent"]
    assert filtered["relevant"] + filtered["dropped"] == [JUDGED]
    assert refused.status_code == 406


def test_the_list_of_tools_is_small(url: str) -> None:
    """Names, types and choices of what comes back: about 70 kB, where words and bounds would be 130 kB."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}})
    tools = post(url, body, "application/json").json()["result"]["tools"]

    schemas = [json.dumps(tool["outputSchema"], separators=(",", ":")) for tool in tools]
    assert sum(map(len, schemas)) < 72_000
    assert all(tool["outputSchema"]["required"] and tool["outputSchema"]["properties"] for tool in tools)


@pytest.mark.parametrize(
    ("query", "text_only"),
    [("?text-only", True), ("?text-only=true", True), ("?text-only=False", False), ("", False)],
)
def test_the_address_says_whether_there_is_a_record(url: str, query: str, text_only: bool) -> None:
    """True and false mean what they say."""
    answer = post(url + query, calling(1, "relevance_filter", JUDGING))

    assert ("structuredContent" not in answer.text) is text_only


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("?text_only", "there is no parameter `text_only`; there is `text-only`"),
        ("?text-only=perhaps", "`text-only` must be `true` or `false`"),
    ],
)
def test_an_address_that_nobody_understands_is_refused(url: str, query: str, words: str) -> None:
    """Rather than answered as if nothing had been said."""
    answer = post(url + query, calling(1, "relevance_filter", JUDGING))

    assert answer.status_code == 400
    assert answer.json()["error"] == {"code": -32600, "message": f"invalid_request: {words}"}
