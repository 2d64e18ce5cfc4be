"""The request log: one frozen entry per request served, without secrets."""

from __future__ import annotations

import itertools
import threading
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

_SECRET = {"key", "api_key", "access_token"}
_KEPT = 20_000


@dataclass(frozen=True, slots=True)
class LoggedRequest:
    """One request; it is in the log once its answer is ready (or none will come)."""

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
        shown = asdict(self)
        body = shown.pop("body")
        del shown["query"]
        return shown | ({"body": None if isinstance(body, bytes) else body} if bodies else {})


class Journal:
    """Requests in the order they started; safe to read from any thread."""

    def __init__(self) -> None:
        """Start empty."""
        self._entries: deque[LoggedRequest] = deque(maxlen=_KEPT)
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()

    def start(
        self, upstream: str, endpoint: str, method: str, path: str, query: str, body: Any = None
    ) -> LoggedRequest:
        """Note that a request came in."""
        pairs = [(k, "***" if k in _SECRET else v) for k, v in parse_qsl(query, True)]
        shown = path + ("?" + urlencode(pairs, safe="*", quote_via=quote) if pairs else "")
        now = time.monotonic()
        return LoggedRequest(
            next(self._numbers), upstream, endpoint, method, shown, dict(pairs),
            status=0, started=now, ended=now, body=body,
        )  # fmt: skip

    def end(self, request: LoggedRequest, status: int, fault: str | None = None) -> None:
        """Note how it was answered; it is in the log from now on."""
        entry = replace(request, status=status, fault=fault, ended=time.monotonic())
        with self._lock:
            self._entries.append(entry)

    def entries(
        self, upstream: str | None = None, endpoint: str | None = None
    ) -> tuple[LoggedRequest, ...]:
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
