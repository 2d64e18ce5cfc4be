"""Logs of the tracing libraries: those of their threads become one warning."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
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
