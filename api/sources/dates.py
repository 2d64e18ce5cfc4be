"""Dates in the forms that people's own files have."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import regex

from api.services.text import clean, one_line
from api.sources.fields import moment, number

# seconds or milliseconds since 1970, but not `20230115`
_COUNTED = regex.compile(r"\d{9,16}(?:\.\d{1,9})?")
_ZONE = regex.compile(r" ?(?:UTC|GMT|Z)$", regex.I)
_MILLISECONDS = 1e11
"""Numbers from here on are milliseconds; as seconds they would lie beyond the year 5000."""
_FORMS = ("%m %d, %Y", "%B %d, %Y", "%b %d, %Y", "%Y/%m/%d", "%Y/%m/%d %H:%M:%S")
"""`09 4, 2015`, as in the files of Amazon's reviews; `September 4, 2015`; `2015/09/04`."""
_LONGEST = 60


def date_of(value: object) -> datetime | None:
    """Aware UTC (UTC when no zone is named); None when it cannot be read.

    ISO 8601, also as `2023-01-15 12:34:56 UTC`; seconds or milliseconds since 1970, also as text;
    RFC 2822 (`Sun, 15 Jan 2023 12:34:56 +0100`); `_FORMS`.
    """
    text = one_line(clean(value))
    if isinstance(value, bool) or len(text) > _LONGEST:
        return None
    if not isinstance(value, str) or _COUNTED.fullmatch(text):
        seconds = number(value)
        return moment(seconds / 1000 if seconds and abs(seconds) >= _MILLISECONDS else seconds)
    if at := moment(_ZONE.sub("+00:00", text)):
        return at
    for form in _FORMS:
        try:
            return datetime.strptime(text, form).replace(tzinfo=UTC)
        except ValueError:
            continue
    try:
        at = parsedate_to_datetime(text)
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, TypeError, LookupError, OverflowError):  # the parser's own stumbling
        return None
