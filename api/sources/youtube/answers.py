"""What YouTube's answers mean before their items are read: pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from api.errors import (
    Blocked,
    Broken,
    QuotaExhausted,
    RateLimited,
    Refused,
    SourceError,
    Unreachable,
)
from api.services.text import clean
from api.services.wire import retry_at
from api.sources.fields import entries, record
from api.sources.youtube import NAME
from api.sources.youtube.searches import next_reset

_SPENT = {"quotaExceeded", "dailyLimitExceeded"}
_BURST = {"rateLimitExceeded", "userRateLimitExceeded", "RATE_LIMIT_EXCEEDED"}
_KEY = {"keyInvalid", "API_KEY_INVALID", "keyExpired"}
_GONE = {"commentsDisabled": "comments are turned off", "videoNotFound": "the video is gone"}


class NoComments(Broken):
    """This video has no comments to read; `detail` says why."""


class StalePage(Broken):
    """The token of a page is not known any more."""


def answer_of(value: object, kind: str) -> Mapping[str, Any]:
    """An answer of this kind with a list of items, which Google leaves out when it is empty.

    Raises:
        Broken: it is something else.
    """
    answer = record(value)
    listed, named = answer.get("items"), answer.get("kind")
    if (
        named not in (None, f"youtube#{kind}")  # a list, since what it is compared with may be any
        or not isinstance(listed, (list, type(None)))
        or (listed is None and named is None)
    ):
        raise Broken(NAME, f"an answer that is no {kind}")
    return answer


def failure_of(status: int, content: bytes, headers: Mapping[str, str]) -> SourceError:
    """What a failed answer says, by Google's reason first and the status second."""
    if status >= 500 or status == 408:
        return Unreachable(NAME, f"HTTP {status}")
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        if status == 429:
            return RateLimited(NAME, "HTTP 429", retry_at=retry_at(headers))
        blocked = status == 403 or b"/login" in content[:100_000]
        return (Blocked if blocked else Broken)(NAME, f"HTTP {status} without JSON")
    error = record(record(body).get("error"))
    listed = [*entries(error.get("errors")), *entries(error.get("details"))]
    reasons = {clean(record(entry).get("reason")) for entry in listed}
    message = clean(error.get("message")).lower()
    if gone := next((words for reason, words in _GONE.items() if reason in reasons), None):
        return NoComments(NAME, gone)
    burst = bool(reasons & _BURST) or status == 429
    if reasons & _SPENT or (burst and "per day" in message):
        return QuotaExhausted(NAME, "the day's calls are used up", retry_at=next_reset())
    if burst:
        return RateLimited(NAME, f"HTTP {status}", retry_at=retry_at(headers))
    if "invalidPageToken" in reasons:
        return StalePage(NAME, "invalidPageToken")
    if reasons & _KEY or "api key not valid" in message:
        return Refused(NAME, "the key is not valid")
    if status in {401, 403}:
        return Refused(NAME, f"HTTP {status}, the key may not be used for this")
    return Broken(NAME, f"HTTP {status}")
