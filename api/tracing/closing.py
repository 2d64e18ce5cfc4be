"""An end that takes a bounded time, whatever the server does."""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Callable
from contextlib import suppress


class Closer(threading.Thread):
    """Runs `close` in a daemon thread of its own, started ahead: none can be started at exit."""

    def __init__(self, close: Callable[[], None], seconds: float, late: Callable[[], None]) -> None:
        """`late` is called when `close` is not done after `seconds`."""
        super().__init__(name="langfuse-closer", daemon=True)
        self._close, self._seconds, self._late = close, seconds, late
        self._asked, self._done = threading.Event(), threading.Event()
        self._until = 0.0
        atexit.register(self._at_exit)
        self.start()

    def run(self) -> None:
        """Wait to be asked, then close."""
        self._asked.wait()
        try:
            self._close()
        finally:
            self._done.set()
            atexit.unregister(self._at_exit)

    def ask(self) -> None:
        """Start closing, without waiting."""
        if not self._asked.is_set():
            self._until = time.monotonic() + self._seconds
            self._asked.set()

    def wait(self) -> None:
        """Wait until closed, at most `seconds` from when it was first asked."""
        if not self._done.wait(max(0.0, self._until - time.monotonic())):
            self._late()

    def _at_exit(self) -> None:
        """Close all there are at the same time, so that the exit waits once."""
        for thread in threading.enumerate():
            if isinstance(thread, Closer):
                thread.ask()
        with suppress(KeyboardInterrupt):
            self.wait()
