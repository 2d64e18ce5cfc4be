"""Judges of items and texts, and how many of their calls to models may be under way at once."""

from __future__ import annotations

import asyncio

GRADED_AT_ONCE = 10
"""Items in one call that grades."""


class Limiter:
    """At most `size` model calls under way at once, in every event loop that uses it."""

    def __init__(self, size: int = 8) -> None:
        """Give one limiter to everything that calls models."""
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
