"""Calls to a model in batches, and what they cost, answers that cannot be used (rejected, cut, malformed) included."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from api.core.domain import Usage
from api.core.ports import PER_CALL
from api.errors import ModelError


class UnusableAnswer(ModelError):
    """A model answered, and the answer cannot be used; `usage` is what it cost."""

    def __init__(self, reason: str, detail: str = "", usage: Usage = Usage()) -> None:
        super().__init__(reason, detail)
        self.usage = usage


class _Answer(Protocol):
    @property
    def usage(self) -> Usage: ...


T = TypeVar("T")
A = TypeVar("A", bound=_Answer)


def usage_of_error(error: BaseException | None) -> Usage:
    """Usage of the failed work, from its error."""
    return error.usage if isinstance(error, UnusableAnswer) else Usage()


@contextmanager
def cost_on_failure(usage: Usage) -> Iterator[None]:
    """Around reading an answer: a `ModelError` in the block leaves with the answer's cost."""
    try:
        yield
    except ModelError as error:
        total = usage + usage_of_error(error)
        raise UnusableAnswer(error.reason, error.detail, total) from None


async def gather_answers(calls: Sequence[Coroutine[Any, Any, A]]) -> list[A]:
    """Every answer, in order, from concurrent calls; the first failure cancels the others.

    Raises that failure; a `ModelError` has what all calls had used by then.
    """
    if not calls:
        return []
    tasks = [asyncio.ensure_future(call) for call in calls]
    try:  # a `TaskGroup` leaves its caller marked as cancelled, which an outer deadline misreads
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    ended = [task for task in tasks if not task.cancelled()]
    failures = [error for task in ended if (error := task.exception()) is not None]
    if not failures:
        return [task.result() for task in tasks]
    first = next((error for error in failures if not isinstance(error, ModelError)), failures[0])
    if not isinstance(first, ModelError):
        raise first
    used = (usage_of_error(e) if (e := task.exception()) else task.result().usage for task in ended)
    raise UnusableAnswer(first.reason, first.detail, sum(used, Usage()))


async def ask_in_batches(
    things: Sequence[T],
    ask: Callable[[Sequence[T]], Coroutine[Any, Any, A]],
    flags: Callable[[A], Sequence[object]],
) -> list[A]:
    """Ask about all things, `PER_CALL` in a call, concurrently; `flags` of an answer has one each.

    A call that is too long for the model is made again in two halves. Raises `ModelError` for other
    flags: after `count_mismatch` nobody knows which thing one is about, and the text "false"
    (`malformed`) would count as true.
    """

    async def answers_on(chunk: Sequence[T]) -> _Halves[A]:
        try:
            answer = await ask(chunk)
        except ModelError as error:
            if error.reason != "too_long" or len(chunk) < 2:
                raise
            middle, before = (len(chunk) + 1) // 2, usage_of_error(error)
        else:
            with cost_on_failure(answer.usage):
                given = flags(answer)
                if len(given) != len(chunk):
                    raise ModelError("count_mismatch", f"{len(given)} for {len(chunk)}")
                if not all(isinstance(flag, bool) for flag in given):
                    raise ModelError("malformed", "an answer that is no boolean")
            return _Halves([answer])
        # one after the other: the second half knows what the first learnt of the model's context
        with cost_on_failure(before):
            first = await answers_on(chunk[:middle])
        with cost_on_failure(before + first.usage):
            second = await answers_on(chunk[middle:])
        return _Halves([*first.answers, *second.answers])

    chunks = [things[start : start + PER_CALL] for start in range(0, len(things), PER_CALL)]
    halves = await gather_answers([answers_on(chunk) for chunk in chunks])
    return [answer for part in halves for answer in part.answers]


@dataclass(frozen=True, slots=True)
class _Halves(Generic[A]):
    """Answers about one chunk, whole or in parts."""

    answers: list[A]

    @property
    def usage(self) -> Usage:
        return sum((answer.usage for answer in self.answers), Usage())
