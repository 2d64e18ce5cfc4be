"""Reading single values out of foreign answers: each is of the wanted type, or nothing."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

MAX_BYTES = 8_000_000
"""Most that is read of one answer, as sent and unpacked."""
TOO_LARGE = f"an answer above {MAX_BYTES // 1_000_000} MB"
_DAY = 86_400.0


def record(value: object) -> Mapping[str, Any]:
    """The mapping, or an empty one."""
    return value if isinstance(value, dict) else {}


def entries(value: object) -> Sequence[Any]:
    """The list, or an empty one."""
    return value if isinstance(value, list) else ()


def number(value: object) -> float | None:
    """A finite number, also when it comes as text; a boolean is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None


def whole(value: object) -> int | None:
    """A whole number, also when it comes as text."""
    found = number(value)
    return None if found is None else int(found)


def moment(value: object) -> datetime | None:
    """Aware UTC from seconds since 1970 or from ISO 8601 (UTC when it names no zone)."""
    try:
        if isinstance(value, str):
            read = datetime.fromisoformat(value)
            return (read if read.tzinfo else read.replace(tzinfo=UTC)).astimezone(UTC)
        seconds = number(value)
        return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def pseudonym(kind: str, name: object) -> str | None:
    """A short name for an author, the same for the same author and not their own."""
    if not isinstance(name, str) or not name.strip():
        return None
    digest = hashlib.sha256(f"{kind}:{name.strip()}".encode("utf-8", "replace")).hexdigest()
    return f"{kind}-{digest[:8]}"


def retry_at(headers: Mapping[str, str], now: datetime | None = None) -> datetime | None:
    """When asking again makes sense: `Retry-After` (seconds or a date), else `x-ratelimit-reset`.

    At most a day ahead; None when the headers do not say or cannot be read.
    """
    now = now or datetime.now(UTC)
    value = headers.get("retry-after") or headers.get("x-ratelimit-reset") or ""
    seconds = number(value)
    if seconds is None:
        try:
            date = parsedate_to_datetime(value)
        except ValueError:
            return None
        date = date if date.tzinfo else date.replace(tzinfo=UTC)
        seconds = (date - now).total_seconds()
    return now + timedelta(seconds=min(max(seconds, 0.0), _DAY))
