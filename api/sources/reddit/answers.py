"""What Reddit's answers mean before their JSON is read: pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from api.errors import Blocked, Broken, RateLimited, Refused, Unreachable
from api.services.wire import retry_at
from api.sources.fields import number
from api.sources.reddit import NAME

_WALLS = (b"/login", b"log in", b"whoa there", b"network security", b"captcha")


class TokenRejected(Refused):
    """An access token was revoked before its time."""


class Allowance:
    """What Reddit last said is left of the window, shared by all clients of one app."""

    def __init__(self) -> None:
        """Nothing is known yet."""
        self._until: datetime | None = None

    def check(self) -> None:
        """Refuse where prawcore would sleep until the window ends.

        Raises:
            RateLimited: nothing is left; `retry_at` is the end of the window.
        """
        until = self._until
        if until is not None and datetime.now(UTC) < until:
            raise RateLimited(NAME, "no requests left in this window", retry_at=until)

    def note(self, headers: Mapping[str, str]) -> None:
        """Remember the end of the window when nothing is left of it."""
        left, reset = headers.get("x-ratelimit-remaining"), headers.get("x-ratelimit-reset")
        if left is not None and reset is not None:
            spent = (number(left) or 0.0) < 1
            self._until = retry_at({"x-ratelimit-reset": reset}) if spent else None


def judge(status: int, headers: Mapping[str, str], body: bytes, *, token: bool) -> None:
    """Raise what the status and the kind of page mean; return when it is an answer.

    `token` says that an access token was asked for. Header names are looked up in lower case.
    """
    page = "html" in headers.get("content-type", "").lower() or body.lstrip()[:1] == b"<"
    if status in {200, 201, 202}:
        if page:
            wall = any(mark in body[:200_000].lower() for mark in _WALLS)
            raise (Blocked if wall else Broken)(NAME, "a web page instead of data")
        return
    if status == 429:
        raise RateLimited(NAME, "HTTP 429", retry_at=retry_at(headers))
    if 300 <= status < 400:
        login = "login" in headers.get("location", "")
        raise (Blocked if login else Broken)(NAME, "sent to the login" if login else "redirected")
    if status == 403:
        raise (Blocked if page else Refused)(NAME, f"HTTP 403{' page' if page else ''}")
    if status == 401 and not token:
        raise TokenRejected(NAME, "HTTP 401")
    if token and status in {400, 401}:
        raise Refused(NAME, f"HTTP {status} for the app's id and secret")
    if status == 408 or status >= 500:
        raise Unreachable(NAME, f"HTTP {status}")
    raise Broken(NAME, f"HTTP {status}")
