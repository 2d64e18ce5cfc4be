"""How long the model client waits, and how many calls it lets run at once."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from pydantic import SecretStr

from api.errors import ModelError
from api.judges import Limiter
from api.judges.client import ModelClient, Request
from api.settings import ModelSettings
from tests.judges.model_server import KEY, ModelServer, Reply, client_of, fails, says, serving

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

    async with asyncio.timeout(40):
        assert await hurried(client) == "timeout"
    assert len(model.asked) <= 1


@pytest.mark.parametrize(
    "wait", ["3600", "9e8", format_datetime(datetime.now(UTC) + timedelta(days=1))]
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
    """Thirty calls of three clients with one limiter of 3 are never more than 3 at once."""
    gate = asyncio.Event()
    model.replies = [Reply(says("{}").body, hold=gate)]
    limiter = Limiter(3)
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


async def test_waiting_for_a_slot_counts(model: ModelServer) -> None:
    """A call that gets no slot before its deadline is a timeout without a request."""
    model.replies = [Reply(hang=True)]
    async with client_of(model, limit=1) as client:
        call = asyncio.ensure_future(client.ask(ASKED))
        await model.saw(1)

        assert await hurried(client) == "timeout"

        assert len(model.asked) == 1
        call.cancel()
        await asyncio.wait([call])


async def test_streams_hold_their_slot(model: ModelServer) -> None:
    """A streamed answer counts as under way until it is read to its end or closed."""
    model.replies = [Reply(b"data: [DONE]\n\n", headers={"content-type": "text/event-stream"})]
    async with client_of(model, limit=1) as client:
        for close_early in (False, True):
            stream = await client.openai.chat.completions.create(
                model="gpt-4o-mini", messages=[], stream=True
            )
            assert await hurried(client) == "timeout"
            if close_early:
                await stream.close()
            else:
                assert [chunk async for chunk in stream] == []


def test_limiter_outlives_a_loop() -> None:
    """One limiter serves loops that follow each other."""
    limiter = Limiter(1)

    async def ask() -> str:
        async with serving(says("{}")) as model:
            settings = ModelSettings(openai_api_key=SecretStr(KEY), openai_base_url=model.url)
            client = ModelClient(settings, limiter)
            answers = await asyncio.gather(client.ask(ASKED), client.ask(ASKED))
            await client.aclose()
        return "".join(answer.text for answer in answers)

    assert [asyncio.run(ask()), asyncio.run(ask())] == ["{}{}", "{}{}"]
