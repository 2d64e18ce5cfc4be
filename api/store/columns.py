"""Column types that hold the same on SQLite and PostgreSQL, whatever text a person or a site wrote.

PostgreSQL refuses NUL in text, both refuse lone surrogates, and PostgreSQL's indexes refuse long
keys; here none of these is an error.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import DateTime, Dialect, Text
from sqlalchemy.types import TypeDecorator

_log = logging.getLogger(__name__)
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_LONGEST = 200
_HASHED = "sha256:"


def identity(text: str) -> str:
    """The text itself as a key, or its digest when it is long or cannot be stored."""
    if len(text) <= _LONGEST and not _UNSTORABLE.search(text) and not text.startswith(_HASHED):
        return text
    return _HASHED + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def dumps(value: object) -> str:
    """JSON that any database can hold and `json.loads` reads back exactly."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


class Moment(TypeDecorator[datetime]):
    """An aware time, UTC."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """SQLite has no zones: what it holds is UTC."""
        if value is None:
            return None
        moment = value.astimezone(UTC)
        return moment.replace(tzinfo=None) if dialect.name == "sqlite" else moment

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Aware UTC again."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Name(TypeDecorator[str]):
    """A key: compared, never shown."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """See `identity`."""
        return None if value is None else identity(value)


class Prose(TypeDecorator[str]):
    """Words for people; what no database takes becomes U+FFFD."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Replace NUL and lone surrogates."""
        return None if value is None else _UNSTORABLE.sub("\ufffd", value)


class Document(TypeDecorator[Any]):
    """A JSON value, read back exactly; a text too, which then is kept to the last character."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        """Write it as JSON."""
        return None if value is None else dumps(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:
        """Read it; a text that is damaged is nothing, so that it hides no other row."""
        if value is None:
            return None
        try:
            return json.loads(value)
        except (ValueError, RecursionError) as error:
            _log.warning("a stored document is no JSON and is left out: %s", type(error).__name__)
            return None
