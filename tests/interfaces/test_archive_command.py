"""`listenpost archive embed` over the sandbox's server of embeddings: the price, the vectors, and going on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from api.sandbox.server import Sandbox
from tests.interfaces.command import Here


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
