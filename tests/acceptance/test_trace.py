"""One trace per run, as a loopback Langfuse received it from the command line."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from importlib.metadata import version

import pytest

from api.sandbox.server import Sandbox
from tests.forked import CODE, Forked
from tests.interfaces.command import Ended, bare, process
from tests.langfuse.tracing.collector import Collector, collecting, settings_for
from tests.langfuse.tracing.trees import roots

HANGS = 120
TWO_RUNS = """
import asyncio, sys
from api import bootstrap
from api.services.product import Ask, analyze
from api.langfuse.tracing import langfuse_client

langfuse_client.REQUEST_SECONDS = 3600

async def main():
    product = bootstrap.build(bootstrap.load_settings())
    for _ in range(2):
        report = await analyze(product, Ask("plaud.ai", "quick"))
        print(report.decision, flush=True)
        await asyncio.to_thread(sys.stdin.readline)
    await product.aclose()

asyncio.run(main())
"""
"""Two questions, each when it is told to go on."""
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
    assert {trace: root.name for trace, root in roots(langfuse).items()} == {report["trace_id"]: "analyze"}
    assert paths >= GATE_PATHS
    assert any("chat" in path and path.startswith("analyze > ") for path in paths)
    for span in langfuse.named("relevance_filter"):
        usage, cost = span.told("usage_details"), span.told("cost_details")
        assert span.told("model.name") == "gpt-4o-mini"
        assert usage["input"] > 0
        assert cost["total"] > 0
    assert {span.attributes.get("user.id") for span in langfuse.spans} == {"u-1"}
    assert {span.attributes.get("session.id") for span in langfuse.spans} == {"s-1"}
    release = {span.attributes["langfuse.release"] for span in langfuse.spans}
    (judged_by,) = {span.attributes["langfuse.version"] for span in langfuse.spans}
    assert release == {version("listenpost")}
    assert re.fullmatch(r"gpt-4o-mini\+[0-9a-f]{8}", judged_by)
    tags = ["cli", "standard", "reddit", "youtube", "amazon"]
    assert {tuple(span.attributes["langfuse.trace.tags"]) for span in langfuse.spans} == {(*tags,)}
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


def test_no_langfuse_request_lies_on_the_path_of_a_run(sandbox: Sandbox, langfuse: Collector) -> None:
    """While Langfuse leaves a request unanswered the next question is asked and answered.

    The request is given up after an hour, so that a run which waits for it does not end.
    """
    langfuse.delay = 3600.0
    variables = {"LANGFUSE_FLUSH_INTERVAL": "0.01", "LISTENPOST_TRACE_FLUSH_TIMEOUT": "0.1"}
    with Forked[str](
        [CODE, TWO_RUNS],
        env=bare(_environment(sandbox, langfuse) | variables),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as running:  # fmt: skip
        assert langfuse.arrived.wait(HANGS)
        answered, _ = running.communicate("next\n", timeout=HANGS)

    assert answered.split() == ["full_report", "full_report"]
