"""What unusable answers of models cost: a rejected, cut or malformed answer is paid for, too."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

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
    """What the work that failed with this error had used."""
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

    Raises `ModelError` for other flags: after `count_mismatch` nobody knows which thing one is
    about, and the text "false" (`malformed`) would count as true.
    """
    chunks = [things[start : start + PER_CALL] for start in range(0, len(things), PER_CALL)]
    answers = await gather_answers([ask(chunk) for chunk in chunks])
    with cost_on_failure(sum((answer.usage for answer in answers), Usage())):
        for answer, chunk in zip(answers, chunks, strict=True):
            given = flags(answer)
            if len(given) != len(chunk):
                raise ModelError("count_mismatch", f"{len(given)} for {len(chunk)}")
            if not all(isinstance(flag, bool) for flag in given):
                raise ModelError("malformed", "an answer that is no boolean")
    return answers
