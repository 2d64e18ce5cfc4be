"""What an analysis was begun for, when nobody asked its question by itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

COMPARISON, WATCH = "comparison:", "watch:"
"""How the idempotency keys of such analyses begin."""


@dataclass(frozen=True, slots=True)
class Purpose:
    """Begun for a comparison, or by the run of a watch."""

    kind: Literal["comparison", "watch"]
    watch_id: str = ""
    """Empty while the run goes on, and of a comparison."""
    watch: str = ""
    """The watch's name."""


class Purposes(Protocol):
    """Purposes as far as they are known."""

    async def purposes(self, tenant: str, begun: Mapping[str, datetime]) -> Mapping[str, Purpose]:
        """By the id of each analysis that has one; `begun` says when each was.

        A comparison's is known as long as its idempotency keys are kept, a week; a watch's as long
        as the watch is.
        """
        ...
