"""What useless answers cost, alone and among others."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import NoReturn

import pytest

from api.core.domain import Usage
from api.core.model_batches import UnusableAnswer, cost_on_failure, gather_answers, usage_of_error
from api.errors import ModelError


@dataclass(frozen=True)
class Answer:
    """Something that was paid for."""

    usage: Usage


async def answering(tokens: int) -> Answer:
    """An answer at once."""
    return Answer(Usage(tokens, 0, 0.5))


async def failing(error: Exception) -> NoReturn:
    """None, a moment later."""
    await asyncio.sleep(0)
    raise error


def test_the_bill_grows_on_its_way_out() -> None:
    """Whoever read an answer in vain adds what it cost; what costs nothing has no bill."""
    with (
        pytest.raises(UnusableAnswer) as caught,
        cost_on_failure(Usage(10, 1, 0.1)),
        cost_on_failure(Usage(5, 1, 0.2)),
    ):
        raise ModelError("malformed", "no list")

    assert (caught.value.reason, caught.value.detail) == ("malformed", "no list")
    assert usage_of_error(caught.value) == Usage(15, 2, 0.1 + 0.2)
    assert usage_of_error(ModelError("timeout")) == Usage()


async def test_answers_come_in_order() -> None:
    """All were asked at once."""
    answers = await gather_answers([answering(1), answering(2)])

    assert [answer.usage.input_tokens for answer in answers] == [1, 2]
    assert await gather_answers([]) == []


async def test_the_first_failure_is_the_whole_ones() -> None:
    """With what all had used by then; one that is still asking is stopped."""
    never = asyncio.get_running_loop().create_future()

    async def hanging() -> Answer:
        return Answer(await never)

    calls = [answering(7), failing(UnusableAnswer("refused", "", Usage(3, 0, 0.25))), hanging()]
    with pytest.raises(UnusableAnswer, match="refused") as caught:
        await gather_answers(calls)

    assert caught.value.usage == Usage(10, 0, 0.75)
    assert never.cancelled()
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_a_defect_is_not_translated() -> None:
    """What is no model's failure leaves as it is, also beside one."""
    with pytest.raises(KeyError):
        await gather_answers([failing(ModelError("timeout")), failing(KeyError("a"))])


async def test_an_outer_deadline_still_ends_the_caller() -> None:
    """After calls that failed together a deadline is a deadline, and no cancellation."""
    with pytest.raises(TimeoutError):  # noqa: PT012 - the deadline is what is tested
        async with asyncio.timeout(0.05):
            with pytest.raises(UnusableAnswer):
                await gather_answers([failing(ModelError("refused")), answering(1)])
            await asyncio.get_running_loop().create_future()


async def test_a_caller_that_is_cancelled_stops_them_all() -> None:
    """Nothing goes on behind its back."""
    never = asyncio.get_running_loop().create_future()

    async def hanging() -> Answer:
        return Answer(await never)

    asking = asyncio.ensure_future(gather_answers([hanging()]))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    asking.cancel()
    await asyncio.wait([asking])

    assert asking.cancelled()
    assert never.cancelled()
