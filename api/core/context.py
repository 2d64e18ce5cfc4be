"""What one task and the tasks it starts have in common: caller, trace id, count of requests.

The caller only labels traces; no answer depends on it. The trace id of a request is the same in its
errors, the log, its trace and its answer.

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
    """The origin of a request; an empty text is unknown."""

    interface: InterfaceName = "python"
    tenant: str = ""
    """Name of the API key, never the key itself; empty for a caller on this machine without a key."""
    user: str = ""
    """The caller's own name for the person."""
    session: str = ""
    """Id of the chat session; empty outside of one."""


_DEFAULT_CALLER = Caller()
_caller: ContextVar[Caller] = ContextVar("listenpost_caller", default=_DEFAULT_CALLER)


def current_caller() -> Caller:
    """The caller that `set_caller` set for this task, else the default caller."""
    return _caller.get()


def set_caller(caller: Caller) -> None:
    """Set the caller until the end of this task; for a request's own task."""
    _caller.set(caller)


@contextmanager
def as_caller(caller: Caller) -> Iterator[None]:
    """Set the caller for a block."""
    token = _caller.set(caller)
    try:
        yield
    finally:
        _caller.reset(token)


_trace_id: ContextVar[str] = ContextVar("listenpost_trace_id", default="")


def new_trace_id() -> str:
    """Set and return a random id (W3C, not a UUID) for this task and those it starts."""
    _trace_id.set(secrets.token_hex(16))
    return _trace_id.get()


def adopt_trace_id(trace_id: str) -> None:
    """Continue a trace that another process began."""
    _trace_id.set(trace_id)


def current_trace_id() -> str:
    """Id for a trace that begins in this task; empty when any id will do."""
    return _trace_id.get()


@dataclass(slots=True)
class Calls:
    """Requests sent so far in one block."""

    made: int = 0
    outer: Calls | None = None
    lock: Lock = field(default_factory=Lock, repr=False)


_current_calls: ContextVar[Calls | None] = ContextVar("listenpost_calls", default=None)


@contextmanager
def request_counter() -> Iterator[Calls]:
    """Count the requests of everything that the block starts."""
    calls = Calls(outer=_current_calls.get())
    token = _current_calls.set(calls)
    try:
        yield calls
    finally:
        _current_calls.reset(token)


def count_requests(requests: int = 1) -> None:
    """Count requests sent to a source, from any thread; does nothing outside of a block."""
    calls = _current_calls.get()
    while calls is not None:
        with calls.lock:
            calls.made += requests
        calls = calls.outer
