"""`listenpost archive embed` over the sandbox's server of embeddings: the price, the vectors, and going on."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest

from api.sandbox.server import Sandbox
from tests.forked import COMMAND, Forked
from tests.interfaces.command import Here, bare, process
from tests.models.model_server import Reply, fails, serving


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sandbox]:
    """A server of embeddings, and a database of this test."""
    with Sandbox.start([]) as sandbox:
        monkeypatch.setenv("LISTENPOST_DATABASE_URL", f"sqlite:///{tmp_path / 'kept.db'}")
        monkeypatch.setenv("LISTENPOST_MODE", "live")
        monkeypatch.setenv("LISTENPOST_EMBEDDINGS_MODEL", "text-embedding-3-small")
        monkeypatch.setenv("LISTENPOST_EMBEDDINGS_DIMENSIONS", "256")
        monkeypatch.setenv("LISTENPOST_EMBEDDINGS_URL", f"{sandbox.url}/v1")
        yield sandbox


def bring(here: Here, count: int) -> None:
    """Import so many texts."""
    rows = [{"key": f"mine:{n}", "title": f"The recorder {n}", "body": f"word{n} lasts"} for n in range(count)]
    Path("posts.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
    assert here("import", "posts.jsonl").code == 0


def retrieval(here: Here, query: str) -> dict[str, Any]:
    """How a search went."""
    found: dict[str, Any] = json.loads(here("search", query, "--format", "json").out)["retrieval"]
    return found


def test_what_is_stored_is_embedded_and_a_search_asks_once(here: Here, server: Sandbox) -> None:
    """The texts are sent when they are stored, the question when it is asked, and nothing again."""
    bring(here, 3)
    assert len(server.requests("openai", "embeddings")) == 1
    found = retrieval(here, "recorder word1")
    assert (found["words_only"], found["unread"], found["embedding_failed"]) == (False, 0, None)
    sent = [request.body["input"] for request in server.requests("openai", "embeddings")]
    assert sent[1:] == [["recorder word1"]]
    assert here("archive", "embed", "--estimate").out.startswith("0 entries without a vector")


def test_the_price_is_said_before_and_what_failed_is_gone_on_with(here: Here, server: Sandbox) -> None:
    """A server that fails leaves what it gave; searches say what is missing."""
    server.fault("openai.embeddings=429@1x1")
    bring(here, 300)
    estimate = here("archive", "embed", "--estimate")
    assert "300 entries without a vector of `text-embedding-3-small` at 127.0.0.1: about " in estimate.out
    assert "USD" in estimate.out
    found = retrieval(here, "recorder word1")
    assert (found["words_only"], found["unread"]) == (True, 300)

    server.fault("openai.embeddings=500@6")  # four requests of the first step, one of the second
    failed = here("archive", "embed")
    assert failed.code == 3
    assert "128 entries embedded" in failed.out
    assert "goes on where this ended" in failed.err
    server.world.faults.clear()
    done = here("archive", "embed")
    assert (done.code, "172 entries embedded" in done.out) == (0, True)
    assert retrieval(here, "recorder word1")["unread"] == 0


def test_a_dead_server_leaves_words_alone(here: Here, server: Sandbox) -> None:
    """The answer says why; the word vectors of this machine are not put in their place."""
    bring(here, 3)
    server.fault("openai.embeddings=500")
    told = here("search", "recorder word1")
    assert "[E1] The recorder 1" in told.out
    assert "found by words alone" in told.err
    assert "`LISTENPOST_EMBEDDINGS_URL`" in told.err
    found = retrieval(here, "recorder word1")
    assert (found["words_only"], found["embedding_failed"]) == (True, "http_error")


def test_without_the_setting_or_in_the_sandbox_nothing_is_sent(
    here: Here, server: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command says what to set."""
    monkeypatch.setenv("LISTENPOST_MODE", "sandbox")
    assert "unset `LISTENPOST_MODE`" in here("archive", "embed").err
    assert here("search", "ember mug").code == 3
    monkeypatch.setenv("LISTENPOST_MODE", "live")
    monkeypatch.delenv("LISTENPOST_EMBEDDINGS_MODEL")
    assert "`LISTENPOST_EMBEDDINGS_MODEL`" in here("archive", "embed").err
    assert server.requests("openai", "embeddings") == ()


async def test_a_killed_command_is_gone_on_with(tmp_path: Path) -> None:
    """The next one sends what was not stored, and nothing else; what was under way is sent again."""
    database = tmp_path / "kept.db"
    async with serving() as model:
        env = bare(
            {
                "LISTENPOST_DATABASE_URL": f"sqlite:///{database}", "LISTENPOST_MODE": "live",
                "LISTENPOST_EMBEDDINGS_MODEL": "bge-m3", "LISTENPOST_EMBEDDINGS_URL": model.url,
            }
        )  # fmt: skip
        model.respond = lambda body: fails(503)
        rows = [{"key": f"mine:{n}", "title": "", "body": f"word{n}"} for n in range(200)]
        file = tmp_path / "posts.jsonl"
        file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
        await asyncio.to_thread(process, "import", str(file), env=env)
        model.asked.clear()

        model.respond = lambda body: vectors(body) if len(model.asked) <= STEP else Reply(hang=True)
        with Forked([COMMAND, "archive", "embed"], env=env, stdout=PIPE, stderr=PIPE) as killed:
            await model.saw(STEP + 1)
            killed.kill()
        with closing(sqlite3.connect(database)) as connection, connection:
            assert connection.execute("SELECT count(*), count(DISTINCT model) FROM embeddings").fetchone() == (128, 1)
            connection.execute("UPDATE asking SET until = '2026-01-01 00:00:00'")  # as after its seconds
        model.asked.clear()
        model.respond = vectors
        ended = await asyncio.to_thread(process, "archive", "embed", env=env)

    assert (ended.code, "72 entries embedded" in ended.out) == (0, True), ended.err
    assert {text for body in model.asked for text in body["input"]} == {f"word{n}" for n in range(128, 200)}


STEP = 4
"""Requests of the first step, of 128 entries."""


def vectors(body: dict[str, Any]) -> Reply:
    """All texts mean the same."""
    data = [{"index": n, "embedding": [1.0] * 64} for n in range(len(body["input"]))]
    return Reply(json.dumps({"data": data}).encode())
