"""One id for all that a request sets off: in its errors, the log, its trace and its answer."""

from __future__ import annotations

from contextvars import ContextVar
from uuid import uuid4

_current: ContextVar[str] = ContextVar("listenpost_trace_id", default="")


def new_trace_id() -> str:
    """An id for this context and the tasks it begins: 32 hexadecimal digits, as W3C has them."""
    _current.set(uuid4().hex)
    return _current.get()


def current_trace_id() -> str:
    """The id that a trace must have which begins here; empty: any."""
    return _current.get()
