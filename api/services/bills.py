"""What answers cost that cannot be used: a rejected, cut or malformed one is paid for, too."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

from api.errors import ModelError
from api.services.schemas import Usage


class Wasted(ModelError):
    """A model answered, and what it said cannot be used; the `usage` still counts."""

    def __init__(self, reason: str, detail: str = "", usage: Usage = Usage()) -> None:
        """Keep the bill."""
        super().__init__(reason, detail)
        self.usage = usage


class _Paid(Protocol):
    @property
    def usage(self) -> Usage: ...


P = TypeVar("P", bound=_Paid)


def bill_of(error: BaseException | None) -> Usage:
    """What the work that failed so had used."""
    return error.usage if isinstance(error, Wasted) else Usage()


@contextmanager
def paying(usage: Usage) -> Iterator[None]:
    """Around reading an answer: what makes it useless leaves with its cost."""
    try:
        yield
    except ModelError as error:
        raise Wasted(error.reason, error.detail, usage + bill_of(error)) from None


async def all_of(calls: Sequence[Coroutine[Any, Any, P]]) -> list[P]:
    """Every answer, in order, asked for at once; one that fails stops the others and the whole.

    Raises:
        ModelError: the first failure, with what all calls had used by then.
    """
    tasks: list[asyncio.Task[P]] = []
    failed: ModelError | None = None
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(call) for call in calls]
    except* ModelError as errors:
        failed = next(error for error in errors.exceptions if isinstance(error, ModelError))
    if failed is None:
        return [task.result() for task in tasks]
    ended = [task for task in tasks if not task.cancelled()]
    used = sum((bill_of(e) if (e := t.exception()) else t.result().usage for t in ended), Usage())
    raise Wasted(failed.reason, failed.detail, used)
