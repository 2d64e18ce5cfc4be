"""Agents of pydantic-ai inside a trace: one tree, tokens and cost counted once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.instrumented import InstrumentationSettings
from pydantic_ai.models.test import TestModel
from pydantic_ai.usage import RequestUsage

from api.core.domain import Question
from api.core.ports import Facts
from api.langfuse.tracing import Tracing, start
from tests.langfuse.tracing.collector import Collector, settings_for
from tests.langfuse.tracing.fakes import EvenJudge, ShopSource, run

PLAUD = Question("plaud")


@pytest.fixture(autouse=True)
def uninstrumented() -> Iterator[None]:
    """No test leaves its instrumentation behind."""
    yield
    Agent.instrument_all(False)


async def test_agent_in_the_tree(langfuse: Collector, tracing: Tracing) -> None:
    """Agent, model calls, tool and what the tool gathers hang under the question."""
    judge, source = tracing.judge(EvenJudge()), tracing.source(ShopSource())
    agent = Agent(tracing.model(TestModel()), name="report")

    @agent.tool_plain
    async def fetch_reddit(query: str) -> str:
        found = await run(tracing.observer, [source], judge, Question(query))
        return str(len(found))

    with tracing.observer.analysis("chat", PLAUD) as span:
        await agent.run("what is wrong with it?")
        span.record(Facts("full_report", 4, 6, 0.0004))
    tracing.shutdown()

    paths = sorted({langfuse.path(span) for span in langfuse.spans})
    tool = "chat > invoke_agent report > execute_tool fetch_reddit"
    assert paths == [
        "chat",
        "chat > invoke_agent report",
        "chat > invoke_agent report > chat test",
        tool,
        f"{tool} > analyze",
        f"{tool} > analyze > gather.reddit",
        f"{tool} > analyze > gather.reddit > comments.reddit",
        f"{tool} > analyze > gather.reddit > fetch.reddit",
        f"{tool} > analyze > gather.reddit > relevance_filter",
    ]
    assert len({span.trace for span in langfuse.spans}) == 1
    assert {one.attributes["user.id"] for one in langfuse.spans} == {"ada"}
    assert {one.attributes["langfuse.trace.name"] for one in langfuse.spans} == {"chat"}
    scored = langfuse.scored()
    assert scored["run_yield"] == ("NUMERIC", 0.4), "the tool's items count for the chat"
    assert scored["items_kept"] == ("NUMERIC", 4.0)


async def test_cost_counted_once(langfuse: Collector, tracing: Tracing) -> None:
    """Usage and cost stand on model calls alone, so their sum is what the providers charged."""

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return ModelResponse([TextPart("fine")], usage=RequestUsage(input_tokens=50, output_tokens=7))

    agent = Agent(tracing.model(FunctionModel(answer, model_name="gpt-4o")), name="report")
    judge, source = tracing.judge(EvenJudge()), tracing.source(ShopSource())
    with tracing.observer.analysis("chat", PLAUD) as span:
        await run(tracing.observer, [source], judge)
        await agent.run("write")
        span.record(Facts("full_report", 4, 6, 0.0004))
    tracing.shutdown()

    counted = {
        one.name: one.attributes["gen_ai.usage.input_tokens"]
        for one in langfuse.spans
        if "gen_ai.usage.input_tokens" in one.attributes
    }
    assert counted == {"chat gpt-4o": 50}
    priced = [one.name for one in langfuse.spans if "operation.cost" in one.attributes]
    assert priced == ["chat gpt-4o"]
    tokens = [one.told("usage_details") for one in langfuse.spans if one.told("usage_details")]
    assert [one["total"] for one in tokens] == [110, 110]


async def test_streamed_in_other_tasks(langfuse: Collector, tracing: Tracing, caplog: pytest.LogCaptureFixture) -> None:
    """A streamed answer that its reader leaves is one cancelled trace, without a context error."""

    async def chat() -> AsyncIterator[int]:
        with tracing.observer.analysis("chat", PLAUD):
            for number in range(9):
                with tracing.observer.gathering("reddit", "plaud"):
                    pass
                yield number

    stream = chat()

    async def read() -> int:
        return await anext(stream)

    assert [await asyncio.create_task(read()) for _ in range(2)] == [0, 1]
    closing = asyncio.create_task(stream.aclose())  # type: ignore[attr-defined]
    await closing
    with tracing.observer.analysis("chat", PLAUD) as span:
        span.record(Facts("clarify", 0, 0, 0.0))
    tracing.shutdown()

    first, second = sorted(langfuse.named("chat"), key=lambda one: one.told("level") or "")[::-1]
    assert first.told("status_message") == "cancelled"
    assert first.trace != second.trace
    assert langfuse.scored() == {"turn_outcome": ("CATEGORICAL", "clarify")}
    assert caplog.records == []


async def test_only_our_agents(langfuse: Collector, tracing: Tracing) -> None:
    """An agent of the program, in the midst of a question of ours, is nobody's business."""
    payroll = Agent(TestModel(custom_output_text="ada earns 4711"), name="payroll_agent")
    with tracing.observer.analysis("chat", PLAUD):
        await Agent(tracing.model(TestModel()), name="report").run("hello")
        await payroll.run("what does ada earn?")
    tracing.shutdown()

    assert {span.name for span in langfuse.spans} == {"chat", "invoke_agent report", "chat test"}
    assert "4711" not in str(langfuse.spans)
    assert "payroll" not in str(langfuse.spans)


async def test_their_instrumentation_stays(langfuse: Collector, tracing: Tracing) -> None:
    """A program that traces its agents goes on doing so, and gets none of ours."""
    kept = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(kept))
    theirs = InstrumentationSettings(tracer_provider=provider)
    Agent.instrument_all(theirs)

    with tracing.observer.analysis("chat", PLAUD):
        await Agent(tracing.model(TestModel()), name="report").run("hello")
        await Agent(TestModel(), name="payroll_agent").run("hello")
    tracing.shutdown()

    assert {span.name for span in langfuse.spans} == {"chat", "invoke_agent report", "chat test"}
    assert {span.name for span in kept.get_finished_spans()} == {
        "invoke_agent payroll_agent",
        "chat test",
    }
    assert Agent._instrument_default is theirs


async def test_each_agent_has_its_tracing(langfuse: Collector) -> None:
    """With two tracings in a process, an agent's spans go where its model was made."""
    first, second = start(settings_for(langfuse.url)), start(settings_for(langfuse.url))
    assert first is not None
    assert second is not None
    with first.observer.analysis("chat", PLAUD):
        await Agent(first.model(TestModel()), name="report").run("hello")
        await Agent(second.model(TestModel()), name="chat").run("hello")
    first.shutdown()
    names = {span.name for span in langfuse.spans}
    second.shutdown()

    assert names == {"chat", "invoke_agent report", "chat test"}
    assert langfuse.path(langfuse.one("invoke_agent chat")) == "chat > invoke_agent chat"
