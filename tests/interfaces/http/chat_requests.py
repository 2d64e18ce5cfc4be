"""Requests of a chat in each protocol."""

from __future__ import annotations

from typing import Any

from tests.interfaces.http.conftest import Served

URL = "/v1/chat"

ASKED = "What do people say about plaud.ai?"


async def say(served: Served, message: str, session: str | None = None) -> dict[str, Any]:
    """One turn as JSON."""
    body = {"message": message, **({"session_id": session} if session else {})}
    answer = await served.client.post(URL, json=body)
    assert answer.status_code == 200, answer.text
    turn: dict[str, Any] = answer.json()
    return turn


def ui(message: str, session: str = "chat-1", **more: Any) -> dict[str, Any]:
    """What `useChat` posts: the whole conversation as the front end has it."""
    before = {"id": "m0", "role": "assistant", "parts": [{"type": "step-start"}]}
    asked = {"id": "m1", "role": "user", "parts": [{"type": "text", "text": message}]}
    return {"id": session, "trigger": "submit-message", "messages": [before, asked], **more}


def ag_ui(message: str, thread: str = "thread-1") -> dict[str, Any]:
    """What an AG-UI client posts."""
    return {
        "threadId": thread, "runId": "run-1", "state": {}, "tools": [], "context": [],
        "forwardedProps": {}, "messages": [{"id": "m1", "role": "user", "content": message}],
    }  # fmt: skip
