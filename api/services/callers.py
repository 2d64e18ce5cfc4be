"""Who asks, and by which door: what a trace is filed under. No answer depends on it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal

Door = Literal["python", "tool", "cli", "http", "mcp"]


@dataclass(frozen=True, slots=True)
class Caller:
    """Whoever asks in this context; an empty text was not said."""

    door: Door = "python"
    tenant: str = ""
    """Name of the API key, never the key; empty for whoever sits at this machine."""
    user: str = ""
    """What the caller's own program calls the person."""
    session: str = ""
    """The conversation."""


_ANYBODY = Caller()
_caller: ContextVar[Caller] = ContextVar("listenpost_caller", default=_ANYBODY)


def caller() -> Caller:
    """Who asks here: in this task, and in what it begins."""
    return _caller.get()


def admit(asker: Caller) -> None:
    """From now on this one asks; for a request's own task, which ends with it."""
    _caller.set(asker)


@contextmanager
def asking(asker: Caller) -> Iterator[None]:
    """In the block this one asks."""
    token = _caller.set(asker)
    try:
        yield
    finally:
        _caller.reset(token)
