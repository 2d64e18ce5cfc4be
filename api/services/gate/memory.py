"""What one run found out, or is finding out: asked for once, whoever needs it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

K = TypeVar("K")
T = TypeVar("T")
V = TypeVar("V")


@dataclass(slots=True)
class Memory(Generic[K, V]):
    """Values by key; what a caller fails to find or gives up is free for the next one."""

    _known: dict[K, asyncio.Future[V]] = field(default_factory=dict)

    async def recall(
        self, wanted: Mapping[K, T], find: Callable[[dict[K, T]], Awaitable[Mapping[K, V]]]
    ) -> dict[K, V]:
        """What is known of `wanted`; `find` is asked for what nobody knows or is finding out.

        `find` may find less: then that is missing here too. What another caller gave up (its `find`
        failed, found less or was cancelled) is asked for by whoever still waits for it.
        """
        values: dict[K, V] = {}
        while missing := {key: thing for key, thing in wanted.items() if key not in values}:
            others = {key: self._known[key] for key in missing if key in self._known}
            mine = {key: thing for key, thing in missing.items() if key not in others}
            if mine:
                values.update(await self._claim(mine, find))
            values.update(await _settled(others))
            if not mine.keys() <= values.keys():
                break
        return values

    def forget(self, key: K) -> None:
        """Let the next caller look again; those already waiting keep what was found."""
        self._known.pop(key, None)

    async def _claim(
        self, mine: dict[K, T], find: Callable[[dict[K, T]], Awaitable[Mapping[K, V]]]
    ) -> Mapping[K, V]:
        """Find these; whoever asks meanwhile waits for the same."""
        loop = asyncio.get_running_loop()
        claims: dict[K, asyncio.Future[V]] = {key: loop.create_future() for key in mine}
        self._known.update(claims)
        values: Mapping[K, V] = {}
        try:
            values = await find(mine)
        finally:
            for key, claim in claims.items():
                if key in values:
                    claim.set_result(values[key])
                else:
                    del self._known[key]
                    claim.cancel()
        return values


async def _settled(others: Mapping[K, asyncio.Future[V]]) -> dict[K, V]:
    """What other callers found; a caller that stops waiting takes nothing from the rest."""
    if others:
        await asyncio.wait(others.values())
    return {key: future.result() for key, future in others.items() if not future.cancelled()}
