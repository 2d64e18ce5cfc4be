"""Judges of items and texts, and what all that ask models share."""

from __future__ import annotations

import asyncio

from api.models.dialects import Dialects

GRADED_AT_ONCE = 10
"""Items in one call that grades."""


class ModelCallLimiter:
    """What every model client of a process shares: its lines, and what servers speak."""

    def __init__(self, size: int = 8, dialects: Dialects | None = None) -> None:
        """At most `size` model calls are under way at once, in every event loop that uses it."""
        self.dialects = dialects or Dialects()
        self._size = size
        self._slots: dict[asyncio.AbstractEventLoop, asyncio.Semaphore] = {}

    def slots(self) -> asyncio.Semaphore:
        """The semaphore of the running loop."""
        loop = asyncio.get_running_loop()
        if loop not in self._slots:
            for dead in [known for known in self._slots if known.is_closed()]:
                del self._slots[dead]
            self._slots[loop] = asyncio.Semaphore(self._size)
        return self._slots[loop]
