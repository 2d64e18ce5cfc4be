"""The examples of the pages on chat and agents, run as they stand there."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from api.sandbox.server import Sandbox
from tests.interfaces.http.process import threaded
from tests.interfaces.page_programs import ADDRESS, python
from tests.snippets import blocks


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server without keys, on sample data."""
    folder: Path = tmp_path_factory.mktemp("served")
    variables = {
        "LISTENPOST_DATABASE_URL": f"sqlite:///{folder / 'listenpost.db'}",
        "LISTENPOST_MODE": "sandbox",
    }
    with threaded(variables) as address:
        yield address


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    """For examples that need an OpenAI key."""
    with Sandbox.start() as started:
        yield started


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")
def test_a_turn_with_curl(server: str) -> None:
    """An answer with citations."""
    (call,) = (block for block in blocks("chat.md", "sh") if block.startswith("curl"))

    done = subprocess.run(["sh", "-c", call.replace(ADDRESS, server)], capture_output=True, timeout=120, check=True)
    turn = json.loads(done.stdout)

    assert turn["citations"]
    assert turn["session_id"]


def test_a_conversation_in_python(server: str) -> None:
    """A question and a follow-up; each citation with its address."""
    (code,) = blocks("chat.md", "python")

    printed = python(code.replace(ADDRESS, server))

    assert "battery" in printed.lower()
    assert re.search(r"^E\d+ .+ https://", printed, re.M)
