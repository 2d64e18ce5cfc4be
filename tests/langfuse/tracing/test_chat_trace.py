"""A chat turn inside a trace: one tree, whoever reads the stream, and its end when it is left."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessage, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel

from api.features.chat.chat_agent import Chat
from api.features.chat.chat_turn import Turn
from api.langfuse.tracing import Tracing
from api.settings import ChatSettings
from tests.langfuse.tracing.collector import Collector
from tests.langfuse.tracing.fakes import EvenJudge, ShopSource
from tests.services.kit import kit

ASKED = "What about the plaud note?"


async def answering(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | dict[int, DeltaToolCall]]:
    """Looks once, then answers."""
    if any(isinstance(part, ToolReturnPart) for message in messages for part in message.parts):
        yield "It works [E1]. "
        yield "It really does [E2]."
    else:
        arguments = json.dumps({"query": "plaud note"})
        yield {0: DeltaToolCall(name="fetch_reddit", json_args=arguments, tool_call_id="1")}


def chat(tracing: Tracing, source: ShopSource) -> Chat:
    """A chat whose every part is watched."""
    product = kit(judge=tracing.judge(EvenJudge()))
    product = replace(product, sources={"reddit": tracing.source(source)}, observer=tracing.observer)
    return Chat(product, tracing.model(FunctionModel(stream_function=answering)), ChatSettings())


async def test_a_streamed_turn_is_one_tree(
    langfuse: Collector, tracing: Tracing, caplog: pytest.LogCaptureFixture
) -> None:
    """B102: chat > agent > tool > gather, though each moment is read by a task of its own."""
    one = chat(tracing, ShopSource())
    stream = one.stream(one.begin(), ASKED)
    moments: list[Any] = []

    async def read() -> bool:
        try:
            moments.append(await anext(stream))
        except StopAsyncIteration:
            return False
        return True

    while await asyncio.create_task(read()):
        continue
    tracing.shutdown()

    turn = moments[-1]
    assert isinstance(turn, Turn)
    tool = "chat > invoke_agent chat > execute_tool fetch_reddit"
    paths = {langfuse.path(span) for span in langfuse.spans}
    assert {path for path in paths if path.startswith(tool)} == {
        tool,
        f"{tool} > gather.reddit",
        f"{tool} > gather.reddit > comments.reddit",
        f"{tool} > gather.reddit > fetch.reddit",
        f"{tool} > gather.reddit > relevance_filter",
    }
    assert {span.trace for span in langfuse.spans} == {turn.trace_id}
    assert {span.attributes["session.id"] for span in langfuse.spans} == {turn.session_id}
    assert langfuse.one("chat").attributes["langfuse.trace.tags"] == ["python", "quick"]
    assert langfuse.one("chat").told("level") != "ERROR"
    assert langfuse.scored() == {  # no cost: nobody knows the price of this model
        "turn_outcome": ("CATEGORICAL", "answered"),
        "items_judged": ("NUMERIC", 10.0),
        "items_kept": ("NUMERIC", 4.0),
        "items_cited": ("NUMERIC", 2.0),
        "upstream_calls": ("NUMERIC", 6.0),
        "run_yield": ("NUMERIC", 0.4),
        "run_refetched": ("BOOLEAN", 1.0),
        "run_fail_open": ("BOOLEAN", 0.0),
    }
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


async def test_a_turn_that_is_left_ends_as_cancelled(
    langfuse: Collector, tracing: Tracing, caplog: pytest.LogCaptureFixture
) -> None:
    """B86: every span is closed and says so; the next turn is a trace of its own."""
    hanging = ShopSource(hangs=asyncio.Event())
    one = chat(tracing, hanging)
    session = one.begin()
    stream = one.stream(session, ASKED)
    await anext(stream)
    assert hanging.hangs is not None
    await hanging.hangs.wait()
    await asyncio.create_task(stream.aclose())
    hanging.hangs = None
    turn = await one.answer(session, ASKED)
    tracing.shutdown()

    left, done = sorted(langfuse.named("chat"), key=lambda span: span.trace == turn.trace_id)
    assert left.told("status_message") == "cancelled"
    assert left.trace != done.trace == turn.trace_id
    gathers = langfuse.named("gather.reddit")
    assert {span.told("status_message") for span in gathers if span.trace == left.trace} == {"cancelled"}
    assert turn.citations
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []
