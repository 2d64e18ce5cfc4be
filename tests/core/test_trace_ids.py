"""One id for all that a request sets off."""

from __future__ import annotations

import asyncio

from api.core.context import current_trace_id, new_trace_id


async def test_tasks_have_the_id_of_what_began_them() -> None:
    """A request's id is that of its tasks, and of no other request."""

    async def requested() -> tuple[str, str]:
        wanted = new_trace_id()
        await asyncio.sleep(0)
        return wanted, await asyncio.create_task(inner())

    async def inner() -> str:
        return current_trace_id()

    first, second = await asyncio.gather(requested(), requested())

    assert first[0] == first[1] != second[0] == second[1]
    assert current_trace_id() == ""


async def test_every_digit_is_random() -> None:
    """By the second half traces are sampled, so that it may begin with any digit."""
    ids = {new_trace_id() for _ in range(500)}

    assert {len(trace_id) for trace_id in ids} == {32}
    assert {trace_id[16] for trace_id in ids} == set("0123456789abcdef")
