"""What answers cost that cannot be used: a rejected, cut or malformed one is paid for, too."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

from api.core.domain import Usage
from api.core.ports import PER_CALL
from api.errors import ModelError


class UnusableAnswer(ModelError):
    """A model answered, and what it said cannot be used; the `usage` still counts."""

    def __init__(self, reason: str, detail: str = "", usage: Usage = Usage()) -> None:
        """Keep the bill."""
        super().__init__(reason, detail)
        self.usage = usage


class _Paid(Protocol):
    @property
    def usage(self) -> Usage: ...


T = TypeVar("T")
P = TypeVar("P", bound=_Paid)


def bill_of(error: BaseException | None) -> Usage:
    """What the work that failed so had used."""
    return error.usage if isinstance(error, UnusableAnswer) else Usage()


@contextmanager
def paying(usage: Usage) -> Iterator[None]:
    """Around reading an answer: what makes it useless leaves with its cost."""
    try:
        yield
    except ModelError as error:
        raise UnusableAnswer(error.reason, error.detail, usage + bill_of(error)) from None


async def all_of(calls: Sequence[Coroutine[Any, Any, P]]) -> list[P]:
    """Every answer, in order, asked for at once; one that fails stops the others and the whole.

    Raises:
        ModelError: the first failure, with what all calls had used by then.
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
    bills = (bill_of(e) if (e := task.exception()) else task.result().usage for task in ended)
    raise UnusableAnswer(first.reason, first.detail, sum(bills, Usage()))


async def flagged(
    things: Sequence[T],
    ask: Callable[[Sequence[T]], Coroutine[Any, Any, P]],
    flags: Callable[[P], Sequence[object]],
) -> list[P]:
    """The answers about all things, `PER_CALL` a call, at once: a boolean in `flags` for each.

    Raises:
        ModelError: no answer, or one without a boolean for each thing: `count_mismatch` leaves open
            which it is about, and "false" (`malformed`) would pass for true.
    """
    chunks = [things[at : at + PER_CALL] for at in range(0, len(things), PER_CALL)]
    answers = await all_of([ask(chunk) for chunk in chunks])
    with paying(sum((answer.usage for answer in answers), Usage())):
        for answer, chunk in zip(answers, chunks, strict=True):
            given = flags(answer)
            if len(given) != len(chunk):
                raise ModelError("count_mismatch", f"{len(given)} for {len(chunk)}")
            if not all(isinstance(flag, bool) for flag in given):
                raise ModelError("malformed", "an answer that is no boolean")
    return answers
