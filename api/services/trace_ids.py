"""One id for all that a request sets off: in its errors, the log, its trace and its answer."""

from __future__ import annotations

import secrets
from contextvars import ContextVar

_current: ContextVar[str] = ContextVar("listenpost_trace_id", default="")


def new_trace_id() -> str:
    """An id for this context and the tasks it begins: 32 hexadecimal digits, as W3C has them.

    Every digit is random, which those of a UUID are not: by the last 16 traces are sampled.
    """
    _current.set(secrets.token_hex(16))
    return _current.get()


def keep_trace_id(trace_id: str) -> None:
    """What this context sets off belongs to a trace that another process began."""
    _current.set(trace_id)


def current_trace_id() -> str:
    """The id that a trace must have which begins here; empty: any."""
    return _current.get()
