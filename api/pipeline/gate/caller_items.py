"""Items of callers: the known fields of an object, and which of them hold title and body.

All interfaces use these rules. A value that cannot be used is refused with the field's name, since
it would be lost otherwise.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from numbers import Number
from types import MappingProxyType, NoneType
from typing import Any

from api.core.text import clean, cut, one_line
from api.errors import UsageError

TITLE_FIELDS = ("title", "summary")
BODY_FIELDS = (
    "body", "content", "description", "text", "selftext", "reviewText", "review", "body_text",
    "review_text", "reviews.text", "comment", "message", "feedback", "verbatim", "summary",
)  # fmt: skip
"""Fields of the body; the first with a text counts, and a `summary` beside another body is the
title, as in lists of reviews."""
TEXT_FIELDS = ("title", *BODY_FIELDS)
TEXT_FIELD_NAMES = ", ".join(f"`{name}`" for name in TEXT_FIELDS)
"""All fields for texts, for messages and schemas."""
DATE_FIELDS = (
    "created_at", "created_utc", "published_at", "publishedAt", "date", "timestamp",
    "unixReviewTime", "reviewTime",
)  # fmt: skip
"""Fields of the time of writing; the first with a value counts."""


@dataclass(frozen=True, slots=True)
class CallerItemFields:
    """What a field may hold beside null; booleans are never allowed."""

    words: str
    """The allowed values, for a message."""
    types: tuple[type, ...]
    each: tuple[type, ...] = ()
    """Types within a list or an object."""

    def fault(self, value: object) -> str:
        """Why the field cannot hold this value; empty when it can."""
        if not _is_of(value, (*self.types, NoneType)):
            return f"must be {self.words}, not {_kind(value)}"
        parts: Iterable[object] = ()
        if isinstance(value, Mapping):
            parts = value.values()
        elif isinstance(value, (list, tuple)):
            parts = value
        wrong = next((_kind(part) for part in parts if not _is_of(part, self.each)), "")
        return f"must be {self.words}, and holds {wrong}" if wrong else ""


_TEXTS = CallerItemFields("text, a number or a list of texts", (str, Number, list, tuple), (str,))
_WORD = CallerItemFields("text or a number", (str, Number))
FIELDS: Mapping[str, CallerItemFields] = MappingProxyType(
    {
        **dict.fromkeys(TEXT_FIELDS, _TEXTS),
        **dict.fromkeys(("id", "key", "source", "place", "author", "language"), _WORD),
        "url": CallerItemFields("text", (str,)),
        **dict.fromkeys(DATE_FIELDS, CallerItemFields("text or a number", (str, Number, date))),
        "engagement": CallerItemFields("an object of numbers", (Mapping,), (Number, NoneType)),
        "comments": CallerItemFields("a list of texts and objects", (list, tuple), (str, Number, Mapping, NoneType)),
    }
)
"""Every known field and what it may hold; all others are ignored."""
# how many fields of a refused object a message names, and how many characters of each
_NAMED, _MAX_NAME = 12, 40
# fields in which whole answers of APIs hold their items, and how to unpack them
_PACKED = {
    "data": "unpack an answer of Reddit with `jq -c '.data.children[].data'`",
    "items": "unpack an answer of YouTube with `jq -c '.items[].snippet'`",
    "snippet": "unpack it with `jq -c .snippet`",
}


def title_and_body(fields: Mapping[str, Any]) -> tuple[str, str]:
    """Title and body, each may be empty; raises `UsageError` without a field for a text."""
    if fields.keys().isdisjoint(TEXT_FIELDS):
        names = [cut(one_line(clean(str(name))), _MAX_NAME) for name in fields]
        seen = ", ".join(f"`{name}`" for name in names[:_NAMED]) or "none"
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        known = f"its fields are {seen}{more}, known are {TEXT_FIELD_NAMES}"
        hint = next((f"; {hint}" for name, hint in _PACKED.items() if name in fields), "")
        raise UsageError(f"no text in a field that is known; {known}{hint}")
    for name, holding in FIELDS.items():
        if fault := holding.fault(fields.get(name)):
            raise UsageError(f"`{name}` {fault}")
    texts = {name: clean(_one_text(fields.get(name))) for name in TEXT_FIELDS}
    body = next((name for name in BODY_FIELDS if texts[name]), "")
    title = next((name for name in TITLE_FIELDS if texts[name] and name != body), "")
    return texts.get(title, ""), texts.get(body, "")


def _is_of(value: object, types: tuple[type, ...]) -> bool:
    return isinstance(value, types) and not isinstance(value, bool)


def _kind(value: object) -> str:
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    kinds = (str, "text"), (Number, "a number"), (Mapping, "an object"), (list | tuple, "a list")
    return next((name for kind, name in kinds if isinstance(value, kind)), type(value).__name__)


def _one_text(value: Any) -> Any:
    """A list of paragraphs as one text; anything else as it is."""
    if isinstance(value, float) and math.isnan(value):  # an empty cell of a table
        return None
    return "\n\n".join(value) if isinstance(value, (list, tuple)) else value
