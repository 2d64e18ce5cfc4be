"""Pages of rows, newest first: where the next one begins, whatever came in since."""

from __future__ import annotations

import base64
import binascii
import json
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Column, ColumnElement, Text, and_, or_, type_coerce
from sqlalchemy import func as sql

from api.errors import UsageError

_TIME = len("2026-11-28 12:00:00")


def cursor_at(moment: datetime, identity: str) -> str:
    """What asks for the page after this row."""
    last = json.dumps([moment.isoformat(), identity])
    return base64.urlsafe_b64encode(last.encode()).decode().rstrip("=")


def below(cursor: str, moments: Column[Any], identities: Column[Any]) -> ColumnElement[bool]:
    """What stands below the last row of the page before.

    Raises:
        UsageError: the cursor is none of ours.
    """
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        written, identity = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
        moment, last = datetime.fromisoformat(written).astimezone(UTC), str(identity)
    except (binascii.Error, ValueError, TypeError, OverflowError, RecursionError):
        raise UsageError("the cursor is none of ours; leave it out for the first page") from None
    return or_(moments < moment, and_(moments == moment, identities < last))


def dated(moments: Column[Any]) -> ColumnElement[bool]:
    """Whether a row's time is one that SQLite can read: it keeps anything in any column."""
    text = type_coerce(moments, Text)
    read = sql.strftime("%Y-%m-%d", text).is_not(None)
    return and_(sql.typeof(moments) == "text", sql.length(moments) >= _TIME, read)
