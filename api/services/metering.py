"""Counting what upstream is asked, by run: upstream quota is money.

A source calls `charge()` once per HTTP request it sends (token, details and comments included,
failed ones too). Whoever wants the count opens a `metered()` block; blocks nest and an inner count
also reaches the outer one. Threads see the block through a copied context.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import Lock


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


_current: ContextVar[Calls | None] = ContextVar("listenpost_calls", default=None)


@contextmanager
def metered() -> Iterator[Calls]:
    """Count the requests of everything started inside."""
    calls = Calls(outer=_current.get())
    token = _current.set(calls)
    try:
        yield calls
    finally:
        _current.reset(token)


def charge(requests: int = 1) -> None:
    """Count requests sent upstream; without a block it does nothing."""
    calls = _current.get()
    while calls is not None:
        calls.add(requests)
        calls = calls.outer
