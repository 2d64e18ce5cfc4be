"""Calls of language models, the judge on this machine, and the limit on concurrent calls."""

from __future__ import annotations

import asyncio

from api.models.dialects import Dialects

GRADED_AT_ONCE = 10  # most items in one call of the grader


class ModelCallLimiter:
    """What all model clients of a process share: the slots for calls, and the known dialects."""

    def __init__(self, size: int = 8, dialects: Dialects | None = None) -> None:
        """At most `size` calls run at once in each event loop."""
        self.dialects = dialects or Dialects()
        self._size = size
        self._slots: dict[asyncio.AbstractEventLoop, asyncio.Semaphore] = {}

    def slots(self) -> asyncio.Semaphore:
        """The semaphore of the running loop."""
        loop = asyncio.get_running_loop()
        if loop not in self._slots:
            for closed in [other for other in self._slots if other.is_closed()]:
                del self._slots[closed]
            self._slots[loop] = asyncio.Semaphore(self._size)
        return self._slots[loop]
