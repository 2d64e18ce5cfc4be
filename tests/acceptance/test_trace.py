"""One trace per run, as a loopback Langfuse received it from the command line."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from api import wiring
from api.sandbox.server import Sandbox
from api.tracing.client import REQUEST_SECONDS
from tests.acceptance.conftest import analyzed
from tests.faces.command import Ended, process
from tests.tracing.collector import Collector, collecting, settings_for

GATE_PATHS = {
    f"analyze > gather.{name} > {span}"
    for name in ("reddit", "youtube", "amazon")
    for span in (f"fetch.{name}", "relevance_filter", f"comments.{name}")
}


@pytest.fixture
def langfuse() -> Iterator[Collector]:
    """A Langfuse that behaves until told otherwise."""
    with collecting() as collector:
        yield collector


def _environment(sandbox: Sandbox, langfuse: Collector) -> dict[str, str]:
    keys = settings_for(langfuse.url)
    assert keys.langfuse_public_key
    assert keys.langfuse_secret_key
    return {
        **sandbox.environment,
        "LANGFUSE_BASE_URL": langfuse.url,
        "LANGFUSE_PUBLIC_KEY": keys.langfuse_public_key,
        "LANGFUSE_SECRET_KEY": keys.langfuse_secret_key.get_secret_value(),
        "LISTENPOST_USER_ID": "u-1",
        "LISTENPOST_SESSION_ID": "s-1",
    }


def _run(sandbox: Sandbox, langfuse: Collector) -> Ended:
    env = _environment(sandbox, langfuse)
    return process("analyze", "plaud.ai", "--format", "json", env=env)


def test_one_analysis_is_one_trace(sandbox: Sandbox, langfuse: Collector) -> None:
    """The tree of the design, with model, tokens and cost on each filter generation."""
    report = _run(sandbox, langfuse).json

    paths = {langfuse.path(span) for span in langfuse.spans}
    assert {span.trace for span in langfuse.spans} == {report["trace_id"]}
    assert paths >= GATE_PATHS
    assert any("chat" in path and path.startswith("analyze > ") for path in paths)
    for span in langfuse.named("relevance_filter"):
        usage, cost = span.told("usage_details"), span.told("cost_details")
        assert span.told("model.name") == "gpt-4o-mini"
        assert usage["input"] > 0
        assert cost["total"] > 0
    assert {span.attributes.get("user.id") for span in langfuse.spans} == {"u-1"}
    assert {span.attributes.get("session.id") for span in langfuse.spans} == {"s-1"}
    scores = langfuse.scored()
    assert scores["decision"] == ("CATEGORICAL", report["decision"])
    assert scores["items_kept"] == ("NUMERIC", len(report["items"]))
    assert scores["upstream_calls"] == ("NUMERIC", report["cost"]["upstream_calls"])


def test_a_dead_collector_does_not_hold_up_the_exit(sandbox: Sandbox, langfuse: Collector) -> None:
    """It answers in an hour; the whole report is there and the process has left."""
    langfuse.delay = 3600.0
    ended = _run(sandbox, langfuse)

    assert ended.code == 0
    assert ended.json["findings"]


async def test_no_langfuse_request_lies_on_the_path_of_a_run(
    sandbox: Sandbox, langfuse: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While Langfuse leaves a request unanswered the next question is asked and answered."""
    for name, value in _environment(sandbox, langfuse).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("LANGFUSE_FLUSH_INTERVAL", "0.01")
    monkeypatch.setenv("LISTENPOST_TRACE_FLUSH_TIMEOUT", "0.1")
    langfuse.delay = 3600.0
    product = wiring.build(wiring.load_settings())
    while not langfuse.arrivals:
        await analyzed(product, "plaud.ai", depth="quick")
    unanswered = langfuse.arrivals[0]
    report = await analyzed(product, "plaud.ai", depth="quick")
    await product.aclose()

    given_up = unanswered + REQUEST_SECONDS
    ran_on = [entry for entry in sandbox.log if unanswered < entry.started < given_up]
    assert report["findings"]
    assert ran_on, "the first request after it waited until it was given up"
