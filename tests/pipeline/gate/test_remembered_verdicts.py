"""Asked for once, whoever needs it."""

from __future__ import annotations

import asyncio

import pytest

from api.core.work import RunCache


async def test_finds_once_and_remembers() -> None:
    """
    Only what is unknown is looked for, and what was forgotten is unknown again.
    """
    memory: RunCache[str, int] = RunCache()
    looked: list[list[str]] = []

    async def find(mine: dict[str, int]) -> dict[str, int]:
        looked.append(list(mine))
        return {key: 2 * value for key, value in mine.items()}

    assert await memory.values_of({"a": 1}, find) == {"a": 2}
    assert await memory.values_of({"a": 1, "b": 2}, find) == {"a": 2, "b": 4}
    memory.remove("a")
    memory.remove("nobody")
    assert await memory.values_of({"a": 5}, find) == {"a": 10}
    assert looked == [["a"], ["b"], ["a"]]


async def test_what_was_not_found_is_missing_and_free() -> None:
    """
    A finder that finds less is not asked again by the same caller, but by the next.
    """
    memory: RunCache[str, int] = RunCache()
    looked: list[list[str]] = []

    async def find(mine: dict[str, int]) -> dict[str, int]:
        looked.append(list(mine))
        return {"a": 1} if "a" in mine else {}

    assert await memory.values_of({"a": 0, "b": 0}, find) == {"a": 1}
    assert await memory.values_of({"b": 0}, find) == {}
    assert looked == [["a", "b"], ["b"]]


async def test_an_error_frees_the_claim() -> None:
    """
    The finder's error reaches its caller, and the next caller looks again.
    """
    memory: RunCache[str, int] = RunCache()

    async def fail(mine: dict[str, int]) -> dict[str, int]:
        raise LookupError

    async def find(mine: dict[str, int]) -> dict[str, int]:
        return mine

    with pytest.raises(LookupError):
        await memory.values_of({"a": 1}, fail)
    async with asyncio.timeout(120):
        assert await memory.values_of({"a": 1}, find) == {"a": 1}


async def test_what_is_given_up_is_found_anew_though_it_has_not_ended() -> None:
    """
    Who comes while a cancelled search still cleans up begins its own, which stays the one.
    """
    memory: RunCache[str, int] = RunCache()
    entered, cleaned = asyncio.Event(), asyncio.Event()
    go, looked = asyncio.Event(), list[str]()

    async def slow(mine: dict[str, int]) -> dict[str, int]:
        entered.set()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            await cleaned.wait()
        return mine

    async def find(mine: dict[str, int]) -> dict[str, int]:
        looked.append("again")
        await go.wait()
        return mine

    gone = asyncio.create_task(memory.values_of({"a": 1}, slow))
    await entered.wait()
    gone.cancel()
    late = [asyncio.create_task(memory.values_of({"a": 2}, find)) for _ in range(2)]
    while not looked:
        await asyncio.wait(late, timeout=0)
    cleaned.set()
    await asyncio.wait([gone])
    later = asyncio.create_task(memory.values_of({"a": 3}, find))
    await asyncio.wait([later], timeout=0)
    go.set()

    assert [await each for each in (*late, later)] == [{"a": 2}] * 3
    assert (gone.cancelled(), looked) == (True, ["again"])
