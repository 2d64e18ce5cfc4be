"""Routes with and without a key, and requests with one."""

from __future__ import annotations

import httpx

from tests.interfaces.http.conftest import QUESTION

CLARIFY = {"query": "hello there"}

ITEMS = {"query": "mug", "source": "reddit", "items": [{"title": "mug"}]}

ID = "0" * 32

KEYED = [
    ("POST", "/v1/analyses", CLARIFY),
    ("GET", "/v1/analyses", None),
    ("GET", f"/v1/analyses/{ID}", None),
    ("DELETE", f"/v1/analyses/{ID}", None),
    ("POST", f"/v1/analyses/{ID}/again", {}),
    ("POST", f"/v1/analyses/{ID}/replay", {}),
    ("POST", f"/v1/analyses/{ID}/feedback", {"rating": "up"}),
    ("GET", f"/v1/analyses/{ID}/feedback", None),
    ("PUT", f"/v1/analyses/{ID}/items/reddit:x/correction", {"relevant": True}),
    ("DELETE", f"/v1/analyses/{ID}/items/reddit:x/correction", None),
    ("GET", "/v1/corrections", None),
    ("GET", "/v1/search?query=plaud+transcription+quality", None),
    ("GET", "/v1/stats", None),
    ("POST", "/v1/fetch/reddit", QUESTION),
    ("POST", "/v1/relevance", ITEMS),
    ("POST", "/v1/chat", {"message": "hello there"}),
    ("GET", f"/v1/chat/{ID}/stream", None),
    ("POST", "/v1/chat/feedback", {"session_id": ID, "turn": 1, "rating": "up"}),
    ("GET", "/v1/chats", None),
    ("GET", f"/v1/chats/{ID}", None),
    ("DELETE", f"/v1/chats/{ID}", None),
    ("POST", "/v1/comparisons", {"products": ["plaud.ai", "Oura"], "depth": "quick"}),
    ("POST", "/v1/watches", {"query": "plaud.ai", "every": "daily 08:00"}),
    ("GET", "/v1/watches", None),
    ("GET", f"/v1/watches/{ID}", None),
    ("PATCH", f"/v1/watches/{ID}", {"paused": True}),
    ("DELETE", f"/v1/watches/{ID}", None),
    ("POST", f"/v1/watches/{ID}/run", None),
    ("GET", f"/v1/watches/{ID}/runs", None),
    ("GET", f"/v1/watches/{ID}/trend", None),
    ("POST", f"/v1/watches/{ID}/notify-test", None),
    ("GET", f"/v1/watches/{ID}/undelivered", None),
    ("POST", f"/v1/watches/{ID}/runs/run/notify-again", None),
    ("POST", f"/v1/watches/{ID}/feed", None),
    ("DELETE", f"/v1/watches/{ID}/feed", None),
    ("POST", "/v1/feeds", {"address": "https://feeds.invalid/rss"}),
    ("GET", "/v1/feeds", None),
    ("DELETE", "/v1/feeds?address=https://feeds.invalid/rss", None),
    ("GET", "/v1/inbox", None),
    ("GET", "/v1/inbox/settings", None),
    ("POST", "/v1/inbox/read", None),
    ("POST", "/v1/inbox/undo", None),
    ("PATCH", f"/v1/inbox/entries/{ID}", {"read": True}),
    ("PUT", "/v1/inbox/filters/mine", {"query": "show=all"}),
    ("DELETE", "/v1/inbox/filters/mine", None),
    ("POST", "/v1/inbox/muted", {"site": "r/deals"}),
    ("DELETE", "/v1/inbox/muted?site=r/deals", None),
    ("POST", "/v1/inbox/feed", None),
    ("DELETE", "/v1/inbox/feed", None),
    ("GET", "/v1/sources", None),
    ("GET", "/metrics", None),
]

OPEN = ["/healthz", "/readyz", "/openapi.json"]


def bearer(key: str) -> dict[str, str]:
    """The header of a key."""
    return {"Authorization": f"Bearer {key}"}


def code(answer: httpx.Response) -> str:
    """The error's code, once its shape was checked."""
    body = answer.json()
    assert list(body) == ["error"], answer.text
    assert list(body["error"]) == ["code", "message", "trace_id"]
    assert all(body["error"].values())
    return str(body["error"]["code"])
