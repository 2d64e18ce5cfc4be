"""When the database is full, busy or broken: what is worked is answered, and no place is named."""

from __future__ import annotations

import resource
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from api.features.chat.chat_sessions import UNKEPT
from tests.interfaces.http.conftest import Opening

CHAT = {"message": "What do people say about plaud.ai?"}
USE_CHAT = {
    "id": "chat-1",
    "messages": [{"role": "user", "parts": [{"type": "text", "text": "plaud.ai?"}]}],
}


@contextmanager
def full_disk() -> Iterator[None]:
    """No file can be written past its first byte, as on a disk without room."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def without(file: Path, table: str) -> None:
    """Somebody takes a table away."""
    with closing(sqlite3.connect(file)) as other:
        other.execute(f"DROP TABLE {table}")


async def test_a_full_disk_is_not_ready(opening: Opening, tmp_path: Path) -> None:
    """Typed, without the path; with room again it is ready again."""
    async with opening(DATABASE_URL=f"sqlite:///{tmp_path}/a.db") as served:
        before = await served.client.get("/readyz")
        with full_disk():
            full = await served.client.get("/readyz")
        after = await served.client.get("/readyz")

    assert (before.status_code, full.status_code, after.status_code) == (200, 503, 200)
    error = full.json()["error"]
    assert error["code"] == "store_unavailable"
    assert error["message"].startswith("the database cannot be used: ")
    assert str(tmp_path) not in full.text


async def test_a_turn_that_cannot_be_stored_is_answered(opening: Opening, tmp_path: Path) -> None:
    """With a note; it was worked and paid for."""
    async with opening(DATABASE_URL=f"sqlite:///{tmp_path}/a.db") as served:
        without(tmp_path / "a.db", "sessions")
        answer = await served.client.post("/v1/chat", json=CHAT)
        turn: dict[str, Any] = answer.json()

    assert answer.status_code == 200
    assert "[E" in turn["text"]
    assert turn["notes"][-1] == UNKEPT


@pytest.mark.parametrize("body", [CHAT, USE_CHAT], ids=["json", "stream"])
async def test_a_chat_that_cannot_begin_names_no_place(
    opening: Opening, tmp_path: Path, body: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    """Refused before it is worked; the path and what to check are in the log alone."""
    async with opening("ann", "ann", DATABASE_URL=f"sqlite:///{tmp_path}/a.db") as served:
        await served.app_context.product()
        without(tmp_path / "a.db", "ledger")
        answer = await served.client.post("/v1/chat", json=body)

    assert answer.status_code == 503
    assert str(tmp_path) not in answer.text
    assert "check" not in answer.text
    assert str(tmp_path) in caplog.text
    assert served.sandbox.log == ()
