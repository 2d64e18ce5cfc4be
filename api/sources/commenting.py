"""Reading the comments of many items at once, so that one bad item costs only itself."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial

from api.errors import (
    Blocked,
    Broken,
    QuotaExhausted,
    RateLimited,
    SourceError,
    TimedOut,
    Unreachable,
)
from api.services.containment import translated
from api.services.reasons import WHY
from api.services.schemas import Commented, Item, Outcome

LIMITS = (RateLimited, QuotaExhausted, Blocked)
"""Failures that concern the whole source: the next item is not asked for."""
SILENCES = (TimedOut, Unreachable)
"""Failures that may be one item's; when they come in a row, they are the source's."""


async def read_each(
    items: Sequence[Item],
    read: Callable[[Item], Awaitable[Item]],
    *,
    width: int = 4,
    stops: tuple[type[SourceError], ...] = LIMITS,
    doubts: tuple[type[SourceError], ...] = SILENCES,
    what: str = "comments",
) -> Commented:
    """Every item through `read`, `width` at a time, in order; a failed one keeps its place.

    What nobody foresaw about one item is its failure, too.

    Nothing more is asked after an error in `stops`, or after `width` of those in `doubts` without
    an answer in between. `what` is what the notes call it.

    Raises:
        SourceError: what stopped the reading, when nothing had been read before.
    """
    room = asyncio.Semaphore(width)
    failures: list[SourceError] = []
    stop: SourceError | None = None
    answers = in_a_row = 0

    async def attempt(item: Item) -> Item:
        nonlocal stop, answers, in_a_row
        async with room:
            if stop is not None:
                failures.append(stop)
                return noted(item, f"{what} not asked for: {stop.code.replace('_', ' ')}")
            try:
                defect = partial(Broken, item.source)
                full = await translated(read(item), f"{what} of {item.key}", defect)
            except SourceError as error:
                failures.append(error)
                in_a_row += isinstance(error, doubts)
                if isinstance(error, stops) or in_a_row >= width:
                    stop = stop or error
                return noted(item, f"{what} could not be read: {error.detail or error.code}")
            answers, in_a_row = answers + 1, 0
            return full

    read_items = await asyncio.gather(*map(attempt, items))
    if stop is not None and not answers:
        raise stop
    why = ", ".join(sorted({WHY[Outcome.of(error.code)] for error in failures}))
    notes = (f"{what}: {len(failures)} of {len(items)} failed ({why})",) if failures else ()
    return Commented(tuple(read_items), notes)


def noted(item: Item, note: str) -> Item:
    """The item with one more note."""
    return replace(item, notes=(*item.notes, note))
