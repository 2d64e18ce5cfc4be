"""Threads of the tracing libraries: their log becomes one warning, their shutdown has a timeout."""

from __future__ import annotations

import atexit
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")
_log = logging.getLogger("api.langfuse.tracing")
_quiet: ContextVar[bool] = ContextVar("listenpost_tracing_quiet", default=False)
_OTLP = "opentelemetry.exporter.otlp.proto"
_LOGGERS = (
    "langfuse", "opentelemetry.attributes", "opentelemetry.context",
    f"{_OTLP}.common._internal", f"{_OTLP}.common._internal.trace_encoder",
    f"{_OTLP}.http.trace_exporter", "opentelemetry.sdk._shared_internal", "opentelemetry.sdk.trace",
)  # fmt: skip


@contextmanager
def assigned(variable: ContextVar[T], value: T) -> Iterator[None]:
    """Give a context variable this value in the block."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def quiet() -> AbstractContextManager[None]:
    """Drop what the libraries log in the block."""
    return assigned(_quiet, True)


@contextmanager
def in_one_line() -> Iterator[None]:
    """Log what the libraries say of a variable they cannot read without its traceback."""

    def shorten(record: logging.LogRecord) -> bool:
        record.exc_info = None
        return True

    loggers = [logging.getLogger(f"opentelemetry.sdk.{n}") for n in ("trace.export", "resources")]
    for logger in loggers:
        logger.addFilter(shorten)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(shorten)


class Notice:
    """Logs once that traces are being lost, however often it is called."""

    def __init__(self, host: str) -> None:
        self._host, self._given = host, threading.Lock()

    def __call__(self) -> None:
        """Log the warning, the first time only."""
        if self._given.acquire(blocking=False):
            _log.warning("Langfuse at `%s` takes no traces; everything else goes on", self._host)


class LogFilter(logging.Filter):
    """Drops what the libraries log in our threads and in `quiet` blocks."""

    def __init__(self, notice: Notice) -> None:
        super().__init__()
        self._notice, self._threads = notice, set[int | None]()

    def cover(self, threads: set[threading.Thread]) -> None:
        """Drop what is logged in these threads from now on."""
        self._threads = {thread.ident for thread in threads}
        for name in _LOGGERS:
            logging.getLogger(name).addFilter(self)

    def remove(self) -> None:
        """Take the filter from the loggers again."""
        for name in _LOGGERS:
            logging.getLogger(name).removeFilter(self)

    def filter(self, record: logging.LogRecord) -> bool:
        """False for records of the library's threads, and of those that are made while it is quiet."""
        if record.thread in self._threads:
            if record.levelno >= logging.ERROR:
                self._notice()
            return False
        return not _quiet.get()


class ShutdownThread(threading.Thread):
    """Runs `close` in a daemon thread that is started early, since none can be started at exit."""

    def __init__(self, close: Callable[[], None], seconds: float, late: Callable[[], None]) -> None:
        super().__init__(name="langfuse-closer", daemon=True)
        self._close, self._seconds, self._late = close, seconds, late
        self._requested, self._done = threading.Event(), threading.Event()
        self._until = 0.0
        atexit.register(self._at_exit)
        self.start()

    def run(self) -> None:
        """See `Thread.run`."""
        self._requested.wait()
        try:
            self._close()
        finally:
            self._done.set()
            atexit.unregister(self._at_exit)

    def ask(self) -> None:
        """Start closing and return."""
        if not self._requested.is_set():
            self._until = time.monotonic() + self._seconds
            self._requested.set()

    def wait(self) -> None:
        """Wait until closed, at most `seconds` after the first `ask`."""
        if not self._done.wait(max(0.0, self._until - time.monotonic())):
            self._late()

    def _at_exit(self) -> None:
        """Close all of them at the same time, so that the exit waits once."""
        for thread in threading.enumerate():
            if isinstance(thread, ShutdownThread):
                thread.ask()
        with suppress(KeyboardInterrupt):
            self.wait()
