"""Work in a task and a context of its own, and what it tells meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
_OVER = object()


async def apart(work: Callable[[Callable[[T], None]], Coroutine[Any, Any, T]]) -> AsyncGenerator[T]:
    """What `work` tells while it runs, then what it returns; closing the iterator cancels it.

    Spans and counters that `work` opens are closed in the context they were opened in, whichever
    tasks read the iterator.
    """
    told: asyncio.Queue[Any] = asyncio.Queue()
    task = asyncio.create_task(work(told.put_nowait))
    task.add_done_callback(lambda _: told.put_nowait(_OVER))
    try:
        while (one := await told.get()) is not _OVER:
            yield one
        yield await task
    finally:
        task.cancel()
        await asyncio.wait([task])
