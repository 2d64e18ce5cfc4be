"""How long the model client waits, and how many calls it lets run at once."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from pydantic import SecretStr

from api.errors import ModelError
from api.models.answer_parsing import Completion
from api.models.dialects import ModelCallLimiter
from api.models.model_client import ModelClient, Request
from api.settings import ModelSettings
from tests.models.model_server import KEY, ModelServer, Reply, client_of, fails, says, serving

ASKED = Request("answer", {"type": "object"}, "Be brief.", "Hello?", 40, "gpt-4o-mini", 5.0)
HASTY = Request("answer", {"type": "object"}, "Be brief.", "Hello?", 40, "gpt-4o-mini", 0.3)
PATIENT = Request("answer", {"type": "object"}, "Be brief.", "Hello?", 40, "gpt-4o-mini", 600.0)


async def hurried(client: ModelClient) -> str:
    """The reason code with which a question in a hurry fails."""
    with pytest.raises(ModelError) as caught:
        await client.ask(HASTY)
    return caught.value.reason


@pytest.mark.parametrize("reply", [Reply(hang=True), Reply(b" " * 1000, drip=True)])
async def test_deadline_is_real_time(model: ModelServer, client: ModelClient, reply: Reply) -> None:
    """A server that says nothing, or a byte now and then, is left at the deadline."""
    model.replies = [reply]

    async with asyncio.timeout(120):
        assert await hurried(client) == "timeout"
    assert len(model.asked) <= 1


@pytest.mark.parametrize(
    "wait",
    ["3600", "9e8", format_datetime(datetime.now(UTC) + timedelta(days=1))],
    ids=["an hour", "centuries", "a date"],  # the date is another one in each process
)
async def test_long_wait_is_not_waited(model: ModelServer, client: ModelClient, wait: str) -> None:
    """A `Retry-After` beyond the deadline ends the call long before the deadline."""
    model.replies = [fails(429, "rate_limit_exceeded", retry_after=wait)]

    async with asyncio.timeout(60):
        with pytest.raises(ModelError) as caught:
            await client.ask(PATIENT)
    assert caught.value.reason == "rate_limited"
    assert len(model.asked) == 1


async def test_schema_rejected_within_the_deadline(model: ModelServer, client: ModelClient) -> None:
    """The second question without the schema has no deadline of its own."""
    model.replies = [fails(400, message="no response_format here"), Reply(hang=True)]

    assert await hurried(client) == "timeout"


async def test_limit_holds_over_clients(model: ModelServer) -> None:
    """Thirty calls of three clients with one switchboard of 3 are never more than 3 at once."""
    gate = asyncio.Event()
    model.replies = [Reply(says("{}").body, hold=gate)]
    limiter = ModelCallLimiter(3)
    settings = ModelSettings(openai_api_key=SecretStr(KEY), openai_base_url=model.url)
    clients = [ModelClient(settings, limiter) for _ in range(3)]

    calls = [asyncio.ensure_future(client.ask(ASKED)) for client in clients for _ in range(10)]
    await model.saw(3)
    gate.set()
    await asyncio.gather(*calls)

    assert len(model.asked) == 30
    assert model.most_under_way == 3
    for client in clients:
        await client.aclose()


async def test_cancelled_calls_free_their_slot(model: ModelServer) -> None:
    """A call that is cancelled or too late makes room for the next."""
    model.replies = [Reply(hang=True), Reply(hang=True), says("{}")]
    async with client_of(model, limit=1) as client:
        call = asyncio.ensure_future(client.ask(ASKED))
        await model.saw(1)
        call.cancel()
        await asyncio.wait([call])
        assert await hurried(client) == "timeout"

        assert (await client.ask(ASKED)).text == "{}"
    assert call.cancelled()


class Shifted(asyncio.SelectorEventLoop):
    """A loop on which hours pass when a test says so."""

    passed = 0.0

    def time(self) -> float:
        """The clock of every deadline."""
        return super().time() + self.passed


def test_waiting_for_a_slot_is_not_the_servers_slowness() -> None:
    """A hundred calls over one line: the last has waited for hours, and has all of its seconds."""
    brief, endless = replace(ASKED, seconds=30.0), replace(ASKED, seconds=1e9)

    async def ask() -> list[str]:
        gate, loop = asyncio.Event(), asyncio.get_running_loop()
        assert isinstance(loop, Shifted)
        held = Reply(says("{}").body, hold=gate)
        async with serving(held) as model, client_of(model, limit=1) as client:
            first = asyncio.ensure_future(client.ask(endless))
            await model.saw(1)
            waiting = [asyncio.ensure_future(client.ask(brief)) for _ in range(99)]
            await asyncio.sleep(0)
            loop.passed = 7200.0
            gate.set()
            answers = await asyncio.gather(first, *waiting)
        assert len(model.asked) == 100
        return [answer.text for answer in answers]

    with asyncio.Runner(loop_factory=Shifted) as runner:
        assert runner.run(ask()) == ["{}"] * 100


async def test_a_cancelled_waiter_sends_nothing(model: ModelServer) -> None:
    """Of a hundred calls 24 are wanted to the end: as many are sent, and paid for."""
    gate = asyncio.Event()
    model.replies = [Reply(says("{}").body, hold=gate)]
    async with client_of(model, limit=8) as client:
        calls = [asyncio.ensure_future(client.ask(PATIENT)) for _ in range(100)]
        await model.saw(8)
        for call in calls[24:]:
            call.cancel()
        gate.set()
        ended = await asyncio.gather(*calls, return_exceptions=True)

    assert sum(isinstance(answer, Completion) for answer in ended) == 24
    assert len(model.asked) == 24


async def test_as_many_connections_as_slots(model: ModelServer) -> None:
    """A hundred slots are a hundred calls under way: none queues for a connection."""
    gate = asyncio.Event()
    model.replies = [Reply(says("{}").body, hold=gate)]
    async with client_of(model, limit=100) as client:
        calls = [asyncio.ensure_future(client.ask(PATIENT)) for _ in range(100)]
        await model.saw(100)
        gate.set()
        await asyncio.gather(*calls)

    assert model.most_under_way == 100


@pytest.mark.parametrize("close_early", [False, True])
async def test_streams_hold_their_slot(model: ModelServer, close_early: bool) -> None:
    """A streamed answer counts as under way until it is read to its end or closed."""
    model.replies = [Reply(b"data: [DONE]\n\n", headers={"content-type": "text/event-stream"})]
    settings = ModelSettings(openai_api_key=SecretStr(KEY), openai_base_url=model.url)
    limiter = ModelCallLimiter(1)
    client = ModelClient(settings, limiter)
    stream = await client.openai.chat.completions.create(model="gpt-4o-mini", messages=[], stream=True)
    assert limiter.slots().locked()
    if close_early:
        await stream.close()
    else:
        assert [chunk async for chunk in stream] == []

    assert not limiter.slots().locked()
    await client.aclose()


def test_switchboard_outlives_a_loop() -> None:
    """One switchboard serves loops that follow each other."""
    limiter = ModelCallLimiter(1)

    async def ask() -> str:
        async with serving(says("{}")) as model:
            settings = ModelSettings(openai_api_key=SecretStr(KEY), openai_base_url=model.url)
            client = ModelClient(settings, limiter)
            answers = await asyncio.gather(client.ask(ASKED), client.ask(ASKED))
            await client.aclose()
        return "".join(answer.text for answer in answers)

    assert [asyncio.run(ask()), asyncio.run(ask())] == ["{}{}", "{}{}"]
