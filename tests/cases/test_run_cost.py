"""What a run costs and what is told about it, over real clients."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from api.core.domain import Question
from api.features.chat.chat_turn import streamed
from api.langfuse.tracing import start
from tests.cases.conftest import World
from tests.langfuse.tracing.collector import collecting, settings_for
from tests.services.fakes import items


@pytest.fixture
def three_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Room for three model calls in the whole process."""
    monkeypatch.setenv("LISTENPOST_MODEL_CONCURRENCY", "3")


@pytest.mark.usefixtures("three_at_once")
async def test_thirty_calls_of_three_sources_keep_to_one_limit(world: World) -> None:
    """B107: three sources with ten filter calls each are never more than three calls at once."""
    go, answer = asyncio.Event(), world.mind.answer
    world.model.respond = lambda request: replace(answer(request), hold=go)
    gate = world.built.gate

    sifts = [
        asyncio.ensure_future(gate.judge(Question("mug"), items(500, source), source))
        for source in ("reddit", "youtube", "amazon")
    ]
    await world.model.saw(3)
    go.set()
    gated = await asyncio.gather(*sifts)

    assert [one.status for one in gated] == ["ok"] * 3
    assert len(world.model.asked) == 30
    assert world.model.most_under_way == 3


async def test_a_span_is_as_long_as_its_stream(world: World) -> None:
    """B102: a streamed answer's span lasts from its first moment to its last, whoever reads it."""
    with collecting() as langfuse:
        tracing = start(settings_for(langfuse.url))
        assert tracing is not None

        async def work(tell: Callable[[int], None]) -> int:
            with tracing.observer.analysis("chat", Question("mug")):
                began = time.monotonic_ns()
                tell(0)
                await world.fetch("reddit")
                return time.monotonic_ns() - began

        stream = streamed(work)

        async def read() -> int:
            return await anext(stream)

        _, took = [await asyncio.create_task(read()) for _ in range(2)]
        await stream.aclose()
        tracing.shutdown()

    assert langfuse.one("chat").nanoseconds >= took > 0
