"""Reading the comments of many items at once, so that one bad item costs only itself."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from api.errors import (
    Blocked,
    QuotaExhausted,
    RateLimited,
    SourceError,
    TimedOut,
    Unreachable,
)
from api.services.schemas import Commented, Item

Read = Callable[[Item], Awaitable[Item]]

LIMITS = (RateLimited, QuotaExhausted, Blocked)
"""Failures after which asking for the next item makes no sense."""


@dataclass(slots=True)
class _Reading:
    """What is known while the items are read."""

    stop: SourceError | None = None
    succeeded: int = 0
    silent: int = 0
    """Failures to get any answer, before the first success."""


async def read_each(
    items: Sequence[Item],
    read: Read,
    *,
    width: int = 4,
    stops: tuple[type[SourceError], ...] = LIMITS,
) -> Commented:
    """Every item through `read`, `width` at a time, in order; a failed one keeps its place.

    Nothing more is asked after an error in `stops`, or after `width` silences and no answer.

    Raises:
        SourceError: what stopped the reading, when nothing had been read before.
    """
    state, room = _Reading(), asyncio.Semaphore(width)

    async def one(item: Item) -> tuple[Item, SourceError | None]:
        async with room:
            if state.stop is not None:
                return _unread(item, state.stop), state.stop
            try:
                done = await read(item)
            except SourceError as error:
                state.silent += isinstance(error, (TimedOut, Unreachable))
                if isinstance(error, stops) or (not state.succeeded and state.silent >= width):
                    state.stop = error
                return _unread(item, error), error
            state.succeeded += 1
            return done, None

    results = await asyncio.gather(*map(one, items))
    failed = [error for _, error in results if error is not None]
    if state.stop is not None and not state.succeeded:
        raise state.stop
    reasons = ", ".join(sorted({error.code for error in failed}))
    notes = (f"comments: {len(failed)} of {len(items)} failed ({reasons})",) if failed else ()
    return Commented(tuple(item for item, _ in results), notes)


def _unread(item: Item, error: SourceError) -> Item:
    what = error.code.replace("_", " ")
    return replace(item, notes=(*item.notes, f"comments could not be read: {what}"))
