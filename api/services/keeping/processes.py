"""Processes that share a store, and the work that one of them may leave to the others."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class DurableWork:
    """An analysis under way that another process could go on with."""

    tenant: str
    analysis_id: str
    work_id: str


class Processes(Protocol):
    """Which of them live. All methods raise `StoreUnavailable`."""

    async def durable(self) -> Sequence[DurableWork]:
        """Analyses under way that do not end with their process."""
        ...

    async def appear(self) -> str:
        """Let other processes know that this one lives, until it is closed; its name."""
        ...

    async def gone(self, processes: Collection[str]) -> Collection[str]:
        """Of these names of processes, those that have ended or are silent for a minute."""
        ...
