"""Our tools in somebody else's program, which traces to Langfuse, elsewhere, or not at all."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from api.sandbox.server import Sandbox
from tests.acceptance.host_programs import PROGRAM, SALARY, TO_LANGFUSE
from tests.interfaces.command import bare
from tests.langfuse.tracing.collector import Collector, Seen, collecting, settings_for
from tests.langfuse.tracing.trees import roots

ELSEWHERE = """
from contextlib import nullcontext as filed
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
provider, kept = TracerProvider(), InMemorySpanExporter()
provider.add_span_processor(SimpleSpanProcessor(kept))
trace.set_tracer_provider(provider)
Agent.instrument_all()
"""
"""With a provider of its own, which keeps its spans."""
NOWHERE = "from contextlib import nullcontext as filed"


@pytest.fixture
def langfuse() -> Iterator[Collector]:
    """A Langfuse that behaves."""
    with collecting() as collector:
        yield collector


def run(sandbox: Sandbox, langfuse: Collector, tracing: str, end: str = "") -> str:
    """Run a program that traces like this; what it printed."""
    return ended(sandbox, langfuse, PROGRAM.format(tracing=tracing, salary=SALARY, end=end))


def ended(sandbox: Sandbox, langfuse: Collector, program: str) -> str:
    """Run a program to its end; what it printed."""
    keys = settings_for(langfuse.url)
    assert keys.langfuse_public_key
    assert keys.langfuse_secret_key
    variables = {
        **sandbox.environment,
        "LISTENPOST_MODE": "live",
        "LANGFUSE_BASE_URL": langfuse.url,
        "LANGFUSE_PUBLIC_KEY": keys.langfuse_public_key,
        "LANGFUSE_SECRET_KEY": keys.langfuse_secret_key.get_secret_value(),
    }
    done = subprocess.run([sys.executable, "-c", program], env=bare(variables), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def ours(langfuse: Collector) -> list[Seen]:
    """What our tools sent."""
    return [span for span in langfuse.spans if "langfuse.release" in span.attributes]


def rooted(langfuse: Collector) -> set[str]:
    """What Langfuse lists as roots: where a trace begins, or its first span that it has."""
    marks = ("langfuse.internal.is_app_root", "langfuse.internal.as_root")
    return {span.name for span in langfuse.spans if any(map(span.attributes.get, marks))}


def test_one_that_traces_to_langfuse(sandbox: Sandbox, langfuse: Collector) -> None:
    """Each run is one tree from its first on: tools hang under the agent, with its person."""
    run(sandbox, langfuse, TO_LANGFUSE, "client.shutdown()")

    runs = langfuse.named("invoke_agent research")
    assert len(runs) == 2
    assert [*map(roots(langfuse).get, [root.trace for root in runs])] == runs
    assert {span.trace for span in ours(langfuse)} == {root.trace for root in runs}
    tool = "invoke_agent research > execute_tool fetch_"
    for root in runs:
        paths = {langfuse.path(span) for span in ours(langfuse) if span.trace == root.trace}
        assert paths >= {
            f"{tool}reddit_tool > fetch",
            f"{tool}reddit_tool > fetch > gather.reddit > relevance_filter",
            f"{tool}amazon_tool > fetch > gather.amazon > fetch.amazon",
        }
        assert all(path.startswith(tool) for path in paths)
    for span in ours(langfuse):
        assert (span.attributes["user.id"], span.attributes["session.id"]) == ("grace", "s-9")
        assert span.attributes["langfuse.trace.tags"][:3] == ["desk", "tool", "quick"]
    for span in (*runs, *langfuse.named("execute_tool fetch_reddit_tool")):
        assert span.attributes["langfuse.trace.tags"] == ["desk"]
    assert rooted(langfuse) == {"invoke_agent research", "invoke_agent payroll_agent"}
    assert langfuse.scored() == {}, "its trace is not ours to score"


def test_the_program_of_the_page(sandbox: Sandbox, langfuse: Collector, root: Path) -> None:
    """What `docs/langfuse.md` shows runs as it stands: the tree, its person, and our tags."""
    page = (root / "docs" / "langfuse.md").read_text("utf-8")
    (program,) = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    asked = 'asyncio.run(answer("What annoys people about plaud.ai?", "u-1", "c-1"))'
    printed = ended(sandbox, langfuse, f"import asyncio\n{program}\nprint({asked})")

    assert printed.strip()
    (root_span,) = langfuse.named("invoke_agent research")
    asked_of = {langfuse.path(span) for span in langfuse.named("fetch")}
    assert "invoke_agent research > execute_tool fetch_reddit_tool > fetch" in asked_of
    assert {span.trace for span in langfuse.spans} == {root_span.trace}
    for span in langfuse.spans:
        assert (span.attributes["user.id"], span.attributes["session.id"]) == ("u-1", "c-1")


@pytest.mark.nightly
def test_one_that_traces_elsewhere(sandbox: Sandbox, langfuse: Collector) -> None:
    """Our spans are in the traces that it has, below its tools; of its own nothing is sent."""
    end = (
        "print(json.dumps([[span.name, format(span.context.span_id, '016x'),"
        "format(span.context.trace_id, '032x')] for span in kept.get_finished_spans()]))"
    )
    theirs: list[list[Any]] = json.loads(run(sandbox, langfuse, ELSEWHERE, end))

    parents = {(span, trace) for name, span, trace in theirs if name.startswith("execute_tool")}
    asked = langfuse.named("fetch")
    assert len(asked) == 4
    assert {(span.parent, span.trace) for span in asked} == parents
    assert ours(langfuse) == langfuse.spans
    assert rooted(langfuse) == {"fetch"}
    assert "invoke_agent payroll_agent" in {name for name, *_ in theirs}
    assert "gather.reddit" not in {name for name, *_ in theirs}
    assert SALARY not in str(langfuse.spans)
    assert "payroll" not in str(langfuse.spans)


@pytest.mark.nightly
def test_one_that_does_not_trace(sandbox: Sandbox, langfuse: Collector) -> None:
    """Each call of a tool is a trace of its own; its agents are nobody's business."""
    run(sandbox, langfuse, NOWHERE)

    roots = {span.name for span in langfuse.spans if span.parent == ""}
    assert roots == {"fetch"}
    assert len({span.trace for span in langfuse.spans}) == len(langfuse.named("fetch")) == 4
    assert {tuple(span.attributes["langfuse.trace.tags"]) for span in langfuse.named("fetch")} == {
        ("tool", "quick", "reddit"),
        ("tool", "quick", "amazon"),
    }
    assert SALARY not in str(langfuse.spans)
    assert "payroll" not in str(langfuse.spans)
    assert "research" not in str(langfuse.spans)
