"""Work in a task and a context of its own, read as a stream of what it reports."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
_END = object()


async def streamed(
    work: Callable[[Callable[[T], None]], Coroutine[Any, Any, T]],
) -> AsyncGenerator[T]:
    """What `work` reports while it runs, then what it returns; closing the iterator cancels it.

    Spans and counters that `work` opens are closed in the context they were opened in, whichever
    tasks read the iterator.
    """
    moments: asyncio.Queue[Any] = asyncio.Queue()
    task = asyncio.create_task(work(moments.put_nowait))
    task.add_done_callback(lambda _: moments.put_nowait(_END))
    try:
        while (moment := await moments.get()) is not _END:
            yield moment
        yield await task
    finally:
        task.cancel()
        await asyncio.wait([task])
