"""`Accept`: q-values are honoured, and what is refused is not sent."""

from __future__ import annotations

import pytest

from api.interfaces.http.analysis_routes import preferred
from api.interfaces.http.event_stream import wants_events
from tests.interfaces.http.conftest import Served


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("", "json"),
        ("text/html", "html"),
        ("text/html;q=0", "json"),
        ("text/html;q=0.1, text/csv", "csv"),
        ("text/HTML ; Q=0.9, text/csv;q=0.5", "html"),
        ("text/csv, text/html", "csv"),
        ("image/png, text/html;q=odd", "html"),
    ],
)
def test_the_best_liked_format_is_sent(accept: str, form: str) -> None:
    """Of equals the first; what is not known is passed over."""
    assert preferred(accept) == form


@pytest.mark.parametrize(
    ("accept", "streams"),
    [
        ("text/event-stream", True),
        ("application/json, text/event-stream", True),
        ("text/event-stream;q=0, application/json", False),
        ("text/event-stream;q=0.5, application/json", False),
        ("text/event-stream;q=0", False),
        ("*/*", False),
        ("", False),
    ],
)
def test_a_stream_is_sent_to_those_who_name_it(accept: str, streams: bool) -> None:
    """Unless they refuse it, or like JSON better."""
    assert wants_events(accept) is streams


@pytest.mark.parametrize(
    ("path", "body"), [("/v1/chat", {"message": "hello"}), ("/v1/analyses", {"query": "ember mug"})]
)
async def test_a_refused_stream_is_json(served: Served, path: str, body: dict[str, str]) -> None:
    """At both doors that could stream."""
    headers = {"Accept": "text/event-stream;q=0, application/json"}
    answer = await served.client.post(path, json=body, headers=headers)

    assert answer.headers["content-type"] == "application/json"


async def test_events_vary_with_what_is_accepted(served: Served) -> None:
    """As every other form of the same address does."""
    report = (await served.client.post("/v1/analyses", json={"query": "ember mug"})).json()
    answer = await served.client.get(f"/v1/analyses/{report['id']}", params={"format": "events"})

    assert "Accept" in answer.headers["vary"]
