"""Asked for once, whoever needs it."""

from __future__ import annotations

import asyncio

import pytest

from api.services.gate.memory import Memory


async def test_finds_once_and_remembers() -> None:
    """
    Only what is unknown is looked for, and what was forgotten is unknown again.
    """
    memory: Memory[str, int] = Memory()
    looked: list[list[str]] = []

    async def find(mine: dict[str, int]) -> dict[str, int]:
        looked.append(list(mine))
        return {key: 2 * value for key, value in mine.items()}

    assert await memory.recall({"a": 1}, find) == {"a": 2}
    assert await memory.recall({"a": 1, "b": 2}, find) == {"a": 2, "b": 4}
    memory.forget("a")
    memory.forget("nobody")
    assert await memory.recall({"a": 5}, find) == {"a": 10}
    assert looked == [["a"], ["b"], ["a"]]


async def test_what_was_not_found_is_missing_and_free() -> None:
    """
    A finder that finds less is not asked again by the same caller, but by the next.
    """
    memory: Memory[str, int] = Memory()
    looked: list[list[str]] = []

    async def find(mine: dict[str, int]) -> dict[str, int]:
        looked.append(list(mine))
        return {"a": 1} if "a" in mine else {}

    assert await memory.recall({"a": 0, "b": 0}, find) == {"a": 1}
    assert await memory.recall({"b": 0}, find) == {}
    assert looked == [["a", "b"], ["b"]]


async def test_an_error_frees_the_claim() -> None:
    """
    The finder's error reaches its caller, and the next caller looks again.
    """
    memory: Memory[str, int] = Memory()

    async def fail(mine: dict[str, int]) -> dict[str, int]:
        raise LookupError

    async def find(mine: dict[str, int]) -> dict[str, int]:
        return mine

    with pytest.raises(LookupError):
        await memory.recall({"a": 1}, fail)
    async with asyncio.timeout(5):
        assert await memory.recall({"a": 1}, find) == {"a": 1}
