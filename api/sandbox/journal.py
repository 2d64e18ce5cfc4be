"""The request log: one frozen entry per request served, without secrets."""

from __future__ import annotations

import itertools
import threading
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

_SECRET = {"key", "api_key", "access_token"}
_KEPT = 20_000


@dataclass(frozen=True, slots=True)
class Entry:
    """One request, written when its answer was ready (or none will come)."""

    number: int
    """The order in which requests started, from 1."""
    upstream: str
    endpoint: str
    method: str
    path: str
    """Path and query; keys are starred."""
    query: Mapping[str, str]
    status: int
    """HTTP status of the answer; 0 when there will be none."""
    started: float
    """Monotonic seconds."""
    ended: float
    fault: str | None = None
    """The fault that answered, if one did."""
    body: Any = field(default=None, repr=False)
    """Decoded JSON sent to the model or to Langfuse; raw bytes of a protobuf; else None."""

    def public(self, bodies: bool = False) -> dict[str, Any]:
        """As JSON; bodies on request."""
        shown = {
            "number": self.number,
            "upstream": self.upstream,
            "endpoint": self.endpoint,
            "method": self.method,
            "path": self.path,
            "status": self.status,
            "started": self.started,
            "ended": self.ended,
            "fault": self.fault,
        }
        if bodies:
            shown["body"] = None if isinstance(self.body, bytes) else self.body
        return shown


@dataclass(frozen=True, slots=True)
class Started:
    """A request under way."""

    number: int
    upstream: str
    endpoint: str
    method: str
    path: str
    query: Mapping[str, str]
    started: float
    body: Any = None


class Journal:
    """Entries in the order their requests started; safe to read from any thread."""

    def __init__(self) -> None:
        """Start empty."""
        self._entries: deque[Entry] = deque(maxlen=_KEPT)
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()

    def start(
        self, upstream: str, endpoint: str, method: str, path: str, query: str, body: Any = None
    ) -> Started:
        """Note that a request came in."""
        pairs = [(k, "***" if k in _SECRET else v) for k, v in parse_qsl(query, True)]
        shown = path + ("?" + urlencode(pairs, safe="*", quote_via=quote) if pairs else "")
        clock = time.monotonic()
        return Started(
            next(self._numbers), upstream, endpoint, method, shown, dict(pairs), clock, body
        )

    def end(self, request: Started, status: int, fault: str | None = None) -> Entry:
        """Note how it was answered."""
        entry = Entry(
            request.number, request.upstream, request.endpoint, request.method, request.path,
            request.query, status, request.started, time.monotonic(), fault, request.body,
        )  # fmt: skip
        with self._lock:
            self._entries.append(entry)
        return entry

    def entries(
        self, upstream: str | None = None, endpoint: str | None = None
    ) -> tuple[Entry, ...]:
        """What was served so far, of everybody or of one upstream or endpoint."""
        with self._lock:
            kept = list(self._entries)
        return tuple(
            entry
            for entry in sorted(kept, key=lambda entry: entry.number)
            if upstream in (None, entry.upstream) and endpoint in (None, entry.endpoint)
        )

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._entries.clear()
