"""Clients of event streams that others wrote, whose connection is cut: one analysis, one report.

The programs are those of `docs/http.md`.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import httpx
import pytest

from api.sandbox.server import Sandbox
from tests.clients.environments import node_client, python_client
from tests.interfaces.http.cutting import Cutter, cutting
from tests.interfaces.http.process import ROOT, threaded

KEY = "a-key-of-a-test"
PAGE = (ROOT / "docs" / "http.md").read_text("utf-8")
SHIM = """\
globalThis.window = globalThis; // fetch-event-source is written for pages
globalThis.document = { addEventListener() {}, removeEventListener() {} };
"""


def program(language: str, names: str) -> str:
    """The page's example that imports this."""
    blocks = re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.M | re.S)
    (found,) = [block for block in blocks if re.search(rf"import.*{names}", block)]
    return str(found)


@pytest.fixture(scope="module")
def packages() -> Path:
    """A folder with the packages for JavaScript."""
    return node_client("events_node")


@pytest.fixture(scope="module")
def python() -> Path:
    """A Python with the packages for Python."""
    return python_client("events_python")


@pytest.fixture
def cutter(sandbox: Sandbox, tmp_path: Path) -> Iterator[Cutter]:
    """A server whose streams are cut once, behind the first source's first event."""
    sandbox.latency("openai=500ms")
    variables = {
        "LISTENPOST_DATABASE_URL": f"sqlite:///{tmp_path / 'listenpost.db'}",
        "LISTENPOST_API_KEYS": KEY,
    }
    with threaded(variables) as url, cutting(url, b"event: source.started") as cutter:
        yield cutter


def run(url: str, *command: str | Path) -> str:
    """What a program prints that talks to a server."""
    env = {**os.environ, "URL": url, "KEY": KEY}
    ended = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def node(cutter: Cutter, packages: Path, code: str) -> str:
    """The same for JavaScript, as a file among the packages."""
    file = packages / f"{uuid4().hex}.mjs"
    file.write_text(code, "utf-8")
    try:
        return run(cutter.url, "node", file)
    finally:
        file.unlink()


def assert_one(cutter: Cutter, sandbox: Sandbox) -> None:
    """It was cut and taken up again, and nothing was begun or asked twice."""
    listed = httpx.get(f"{cutter.url}/v1/analyses", headers={"Authorization": f"Bearer {KEY}"})

    assert cutter.made == 1
    assert cutter.streams > 1
    assert [each["state"] for each in listed.json()["analyses"]] == ["done"]
    assert len(sandbox.requests("reddit", "search")) == 1


def test_an_event_source_connects_again(cutter: Cutter, sandbox: Sandbox, packages: Path) -> None:
    """It follows the analysis that runs on its own, and hears of every source once."""
    printed = node(cutter, packages, program("js", '"eventsource"')).splitlines()

    assert printed[-1] == "full_report"
    assert sorted(line.partition(":")[0] for line in printed[:-1]) == [
        "amazon",
        "reddit",
        "youtube",
    ]
    assert_one(cutter, sandbox)


def test_an_event_source_that_is_never_closed_ends(cutter: Cutter, sandbox: Sandbox, packages: Path) -> None:
    """After the report it connects again, as it always does, and is told that this was all."""
    code = program("js", '"eventsource"').replace("  events.close();\n", "")
    printed = node(cutter, packages, code).splitlines()

    assert printed.count("full_report") == 1
    assert_one(cutter, sandbox)


def test_fetch_event_source_posts_again(cutter: Cutter, sandbox: Sandbox, packages: Path) -> None:
    """With the id of the last event: the analysis that it began goes on."""
    code = SHIM + program("js", "fetch-event-source").replace("import {", "const {", 1).replace(
        '} from "@microsoft/fetch-event-source"',
        '} = await import("@microsoft/fetch-event-source")',
    )

    assert node(cutter, packages, code).split() == ["full_report"]
    assert_one(cutter, sandbox)


def test_httpx_sse_posts_again(cutter: Cutter, sandbox: Sandbox, python: Path) -> None:
    """The same from Python."""
    assert run(cutter.url, python, "-c", program("python", "httpx_sse")).split() == ["full_report"]
    assert_one(cutter, sandbox)


def test_chat_front_ends_read_past_the_comments(sandbox: Sandbox, tmp_path: Path, packages: Path) -> None:
    """A comment every ten milliseconds, and both parsers read the answer that JSON gives."""
    sandbox.latency("openai=100ms")
    variables = {
        "LISTENPOST_DATABASE_URL": f"sqlite:///{tmp_path / 'listenpost.db'}",
        "LISTENPOST_API_KEYS": KEY,
        "LISTENPOST_STREAM_KEEPALIVE": "0.01",
    }
    with threaded(variables) as url:
        told = json.loads(run(url, "node", packages / "chats.mjs"))
        question = {"message": "What do people say about plaud.ai?"}
        headers = {"Authorization": f"Bearer {KEY}"}
        plain = httpx.post(f"{url}/v1/chat", json=question, headers=headers, timeout=60).json()

    # `- Battery: ...`, a line for each theme; labels follow the order in which sources answered
    themes = [re.findall(r"^- ([^:]+):", text, re.M) for text in (plain["text"], *told)]
    assert themes[0]
    assert themes == themes[:1] * 3
