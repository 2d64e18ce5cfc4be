"""What Langfuse answers is not read beyond what we take, and what it is sent goes nowhere else."""

from __future__ import annotations

import httpx
import pytest
import requests

from api.core.http_limits import MAX_BYTES
from api.langfuse.tracing.masking import ScoreClient, SpanSession
from tests.langfuse.tracing.collector import settings_for
from tests.loopback import DRIP, Loopback, Reply


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_spans_that_are_redirected_have_failed(status: int) -> None:
    """The exporter would take the redirect for success, and they would be lost in silence."""
    with Loopback(lambda asked: Reply()) as other:
        there = {"location": f"{other.url}/traces"}
        with (
            Loopback(lambda asked: Reply(status, {}, there)) as server,
            SpanSession(settings_for(server.url)) as session,
            pytest.raises(requests.TooManyRedirects),
        ):
            session.post(f"{server.url}/traces", data=b"spans", allow_redirects=False)

        assert other.asked == []


def test_an_answer_to_spans_is_its_status() -> None:
    """A body that never ends holds up nothing."""
    with Loopback(lambda asked: DRIP) as server, SpanSession(settings_for(server.url)) as session:
        response = session.post(f"{server.url}/traces", data=b"spans", timeout=5)

    assert (response.status_code, response.content) == (200, b"")


def test_an_answer_to_scores_is_read_within_bounds() -> None:
    """A small one whole, an endless one not at all."""
    bodies = [b"{}", b" " * (MAX_BYTES + 1)]
    with Loopback(lambda asked: Reply(body=bodies.pop(0))) as server, ScoreClient() as client:
        assert client.post(f"{server.url}/ingestion", json={}).json() == {}
        with pytest.raises(httpx.DecodingError):
            client.post(f"{server.url}/ingestion", json={})


@pytest.mark.parametrize(("root", "asks"), [("http://127.0.0.1:3000", False), ("https://a.b", True)])
def test_a_proxy_is_not_asked_for_this_machine(root: str, asks: bool) -> None:
    """Spans to a server here take no way round."""
    assert SpanSession(settings_for(root)).trust_env is asks
