"""Reading single values out of foreign answers: each is of the wanted type, or nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from api.services.text import clean, one_line

_LARGEST = 1e15
"""What is larger than this counts nothing."""


def record(value: object) -> Mapping[str, Any]:
    """The mapping, or an empty one."""
    return value if isinstance(value, dict) else {}


def entries(value: object) -> Sequence[Any]:
    """The list, or an empty one."""
    return value if isinstance(value, list) else ()


def is_text(value: object) -> bool:
    """Whether a field can hold words: text, or a number that stands for it."""
    return isinstance(value, (str, int, float)) and not isinstance(value, bool)


def number(value: object) -> float | None:
    """A number that something can have, also when it comes as text; a boolean is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        measure = float(value)
    except (ValueError, OverflowError):
        return None
    return measure if abs(measure) <= _LARGEST else None  # false for what is no number


def whole(value: object) -> int | None:
    """A whole number, also when it comes as text."""
    measure = number(value)
    return None if measure is None else int(measure)


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


def pseudonym(kind: str, *names: object) -> str | None:
    """A short name for an author, the same for the same author and not their own.

    It comes from the first of the names that says anything; None when none does.
    """
    name = next((text for name in names if (text := one_line(clean(name)))), "")
    return f"{kind}-{hashlib.sha256(f'{kind}:{name}'.encode()).hexdigest()[:8]}" if name else None
