"""Counting requests by run."""

from __future__ import annotations

import asyncio
import contextvars
import threading

from api.core.context import count_requests, request_counter


def test_without_a_block_nothing_is_counted() -> None:
    """
    A charge outside of any block is ignored, and a block starts at zero.
    """
    count_requests()
    with request_counter() as calls:
        pass
    count_requests()

    assert calls.made == 0


def test_blocks_nest() -> None:
    """
    An inner count reaches the outer block too, and ends with its own.
    """
    with request_counter() as outer:
        count_requests()
        with request_counter() as inner:
            count_requests(2)
        count_requests()

    assert (outer.made, inner.made) == (4, 2)


async def test_tasks_and_threads_count_into_the_block_they_were_started_in() -> None:
    """
    Concurrent blocks do not mix, and a thread with a copied context is counted.
    """

    async def ask(requests: int) -> int:
        with request_counter() as calls:
            context = contextvars.copy_context()
            thread = threading.Thread(target=context.run, args=(count_requests, requests))
            thread.start()
            await asyncio.to_thread(thread.join)
        return calls.made

    with request_counter() as outer:
        one, other = await asyncio.gather(ask(1), ask(2))

    assert (one, other, outer.made) == (1, 2, 3)
