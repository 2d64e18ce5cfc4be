"""A durable engine in a dictionary: what one process wrote, the next one reads."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar, cast

from api.core.work import Work, WorkLease
from api.errors import Conflict

T = TypeVar("T")


@dataclass
class Notebook:
    """Steps and requests by the id of their work."""

    steps: dict[tuple[str, str], object] = field(default_factory=dict)
    requests: dict[str, str] = field(default_factory=dict)
    queued: list[str] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    taken: list[str] = field(default_factory=list)
    """Names of steps that were really taken."""

    async def run(self, kind: str, work_id: str, request: str, work: Work[T]) -> T:
        self.requests[work_id] = request
        try:
            return await work(self.lease(work_id))
        except asyncio.CancelledError:
            raise Conflict("this process stops") from None

    async def enqueue(self, kind: str, work_id: str, request: str, tenant: str) -> None:
        self.requests[work_id] = request
        self.queued.append(work_id)

    async def find(self, prefix: str) -> str | None:
        return next((work_id for work_id in self.requests if work_id.startswith(prefix)), None)

    async def cancel(self, prefix: str) -> None:
        self.cancelled.append(prefix)

    def lease(self, work_id: str) -> WorkLease:
        """Of whichever process works at it."""

        async def keep(name: str, shape: type[T], step: Callable[[], Awaitable[T]]) -> T:
            if any(work_id.startswith(prefix) for prefix in self.cancelled):
                raise Conflict("it was cancelled")
            if (work_id, name) not in self.steps:
                self.taken.append(name)
                self.steps[work_id, name] = await step()
            return cast(T, self.steps[work_id, name])

        return WorkLease(work_id, keep)
