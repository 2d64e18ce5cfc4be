"""Who asks, and by which door: what a trace is filed under. No answer depends on it.

One id for all that a request sets off: in its errors, the log, its trace and its answer.

Counting what upstream is asked, by run: upstream quota is money.

A source calls `count_requests()` for each HTTP request that it sends, also for tokens, details and
comments, and for one that fails. `with request_counter()` gives the count of a block; blocks nest,
an inner count is also the outer block's, and threads see the block through a copied context.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import Lock
from typing import Literal

InterfaceName = Literal["python", "tool", "cli", "http", "mcp"]


@dataclass(frozen=True, slots=True)
class Caller:
    """Whoever asks in this context; an empty text was not said."""

    interface: InterfaceName = "python"
    tenant: str = ""
    """Name of the API key, never the key; empty for whoever sits at this machine."""
    user: str = ""
    """What the caller's own program calls the person."""
    session: str = ""
    """The conversation."""


_ANYBODY = Caller()
_caller: ContextVar[Caller] = ContextVar("listenpost_caller", default=_ANYBODY)


def current_caller() -> Caller:
    """Who asks here: in this task, and in what it begins."""
    return _caller.get()


def set_caller(asker: Caller) -> None:
    """From now on this one asks; for a request's own task, which ends with it."""
    _caller.set(asker)


@contextmanager
def as_caller(asker: Caller) -> Iterator[None]:
    """In the block this one asks."""
    token = _caller.set(asker)
    try:
        yield
    finally:
        _caller.reset(token)


_current_trace: ContextVar[str] = ContextVar("listenpost_trace_id", default="")


def new_trace_id() -> str:
    """An id for this context and the tasks it begins: 32 hexadecimal digits, as W3C has them.

    Every digit is random, which those of a UUID are not: by the last 16 traces are sampled.
    """
    _current_trace.set(secrets.token_hex(16))
    return _current_trace.get()


def adopt_trace_id(trace_id: str) -> None:
    """What this context sets off belongs to a trace that another process began."""
    _current_trace.set(trace_id)


def current_trace_id() -> str:
    """The id that a trace must have which begins here; empty: any."""
    return _current_trace.get()


@dataclass(slots=True)
class Calls:
    """Requests sent so far in one block."""

    made: int = 0
    outer: Calls | None = None
    _lock: Lock = field(default_factory=Lock, repr=False)

    def add(self, requests: int) -> None:
        """Count requests, from any thread."""
        with self._lock:
            self.made += requests


_current_calls: ContextVar[Calls | None] = ContextVar("listenpost_calls", default=None)


@contextmanager
def request_counter() -> Iterator[Calls]:
    """Count the requests of everything started inside."""
    calls = Calls(outer=_current_calls.get())
    token = _current_calls.set(calls)
    try:
        yield calls
    finally:
        _current_calls.reset(token)


def count_requests(requests: int = 1) -> None:
    """Count requests sent upstream; without a block it does nothing."""
    calls = _current_calls.get()
    while calls is not None:
        calls.add(requests)
        calls = calls.outer
