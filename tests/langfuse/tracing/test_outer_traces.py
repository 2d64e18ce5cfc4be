"""Inside the trace of a program around us: its tree, its person, its decision, its own spans."""

from __future__ import annotations

from collections.abc import Iterator
from contextvars import copy_context
from dataclasses import dataclass

import pytest
from langfuse import propagate_attributes
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import Tracer, format_span_id, format_trace_id

from api.core.context import Caller, as_caller
from api.core.domain import Question
from api.core.ports import Facts
from api.langfuse.tracing import Tracing, start
from tests.langfuse.tracing.collector import Collector, settings_for
from tests.langfuse.tracing.fakes import EvenJudge, ShopSource, run

PLAUD = Question("plaud")


@dataclass
class Program:
    """What traces on its own, and not to us."""

    tracer: Tracer
    kept: InMemorySpanExporter

    def one(self, name: str) -> ReadableSpan:
        """Its only span of that name."""
        (span,) = (span for span in self.kept.get_finished_spans() if span.name == name)
        return span


@pytest.fixture
def program() -> Iterator[Program]:
    """A program with a provider of its own."""
    kept, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(kept))
    yield Program(provider.get_tracer("program"), kept)
    provider.shutdown()


async def test_below_its_span(langfuse: Collector, tracing: Tracing, program: Program) -> None:
    """What it asks hangs under the span that asks, in its trace; its span is left as it was."""
    with program.tracer.start_as_current_span("tool"):
        await run(tracing.observer, [tracing.source(ShopSource())], EvenJudge())
    tracing.shutdown()

    tool, ours = program.one("tool"), langfuse.one("analyze")
    assert tool.context is not None
    assert ours.parent == format_span_id(tool.context.span_id)
    assert {span.trace for span in langfuse.spans} == {format_trace_id(tool.context.trace_id)}
    assert not tool.attributes
    assert langfuse.named("tool") == []
    assert "langfuse.trace.name" not in ours.attributes


async def test_with_its_person(langfuse: Collector, tracing: Tracing, program: Program) -> None:
    """User, session and tags that it propagates are on all our spans, ours after its own."""
    with (
        program.tracer.start_as_current_span("tool"),
        propagate_attributes(user_id="grace", session_id="s-9", tags=["payroll"]),
    ):
        await run(tracing.observer, [tracing.source(ShopSource())], EvenJudge())
    tracing.shutdown()

    assert {(span.attributes["user.id"], span.attributes["session.id"]) for span in langfuse.spans} == {
        ("grace", "s-9")
    }
    assert langfuse.one("analyze").attributes["langfuse.trace.tags"] == ["payroll", "python"]
    for name in ("gather.reddit", "comments.reddit"):
        tags = langfuse.one(name).attributes["langfuse.trace.tags"]
        assert tags == ["payroll", "python", "reddit"]
    assert program.one("tool").attributes == {
        "user.id": "grace", "session.id": "s-9", "langfuse.trace.tags": ("payroll",)
    }  # fmt: skip


async def test_its_person_without_a_span(langfuse: Collector, tracing: Tracing) -> None:
    """What it propagates is kept where it has no span: then the trace is ours."""
    with propagate_attributes(user_id="grace", tags=["payroll"]):
        await run(tracing.observer, [tracing.source(ShopSource())], EvenJudge())
    tracing.shutdown()

    root = langfuse.one("analyze")
    assert root.parent == ""
    assert root.attributes["langfuse.trace.name"] == "analyze"
    assert {span.attributes["user.id"] for span in langfuse.spans} == {"grace"}
    assert {span.attributes["session.id"] for span in langfuse.spans} == {"s-1"}


async def test_two_tools_score_themselves(langfuse: Collector, tracing: Tracing, program: Program) -> None:
    """Two calls in its trace have two sets of scores, each at its span; its trace has none."""
    with program.tracer.start_as_current_span("agent"):
        for kept in (1, 4):
            with tracing.observer.analysis("fetch", PLAUD, "quick", "reddit") as span:
                span.record(Facts("ok", kept, 1, 0.0))
    tracing.shutdown()

    assert langfuse.scored() == {}
    scored = [langfuse.scored(span)["items_kept"] for span in langfuse.named("fetch")]
    assert scored == [("NUMERIC", 1.0), ("NUMERIC", 4.0)]


async def test_its_decision_to_record_nothing(langfuse: Collector, tracing: Tracing) -> None:
    """In a trace that it does not sample nothing of ours is sent, scores neither."""
    off = TracerProvider(sampler=ALWAYS_OFF, shutdown_on_exit=False).get_tracer("program")
    with off.start_as_current_span("tool"):
        found = await run(tracing.observer, [tracing.source(ShopSource())], EvenJudge())
        with tracing.observer.analysis("fetch", PLAUD):
            inside = tracing.observer.trace_id
    await run(tracing.observer, [tracing.source(ShopSource("youtube"))], EvenJudge())
    tracing.shutdown()

    assert found[0].kept
    assert inside is None
    assert {span.name for span in langfuse.spans if span.name.endswith("reddit")} == set()
    assert langfuse.one("analyze").parent == ""
    assert {score["traceId"] for score in langfuse.scores} == {langfuse.one("analyze").trace}


async def test_a_span_of_its_in_the_midst_of_ours(langfuse: Collector, tracing: Tracing, program: Program) -> None:
    """Instrumentation of the program that opens a span within a question tears no trace apart."""
    with (
        tracing.observer.analysis("analyze", PLAUD) as span,
        program.tracer.start_as_current_span("GET"),
        tracing.observer.gathering("reddit", "plaud"),
    ):
        span.record(Facts("ok", 1, 1, 0.0))
    tracing.shutdown()

    assert len({span.trace for span in langfuse.spans}) == 1
    assert {span.attributes["langfuse.trace.name"] for span in langfuse.spans} == {"analyze"}


def test_after_its_end_a_trace_begins(langfuse: Collector, tracing: Tracing) -> None:
    """Work that outlives a question of ours is a trace of its own, filed under nothing of it."""
    with (
        as_caller(Caller("http", "env_1", session="s-2")),
        tracing.observer.analysis("chat", PLAUD),
    ):
        context = copy_context()

    def late() -> None:
        with as_caller(Caller("cli")), tracing.client.observation("late", "span"):
            pass

    context.run(late)
    tracing.shutdown()

    first, second = langfuse.one("chat"), langfuse.one("late")
    assert first.trace != second.trace
    assert second.parent == ""
    assert second.attributes["langfuse.trace.tags"] == ["cli"]
    assert (second.attributes["user.id"], second.attributes["session.id"]) == ("ada", "s-1")


def test_two_of_ours_are_no_guests(langfuse: Collector, tracing: Tracing) -> None:
    """A question within that of another product of ours is scored as ever."""
    other = start(settings_for(langfuse.url))
    assert other is not None
    with tracing.observer.analysis("analyze", PLAUD):
        assert not other.client.is_guest
    other.shutdown()
