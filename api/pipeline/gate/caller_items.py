"""An object that a person handed in: which fields are known, and where its texts stand in it.

Every door reads it by these rules. What nobody could read is refused by name, since it would be
lost without a word.
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
    "comment", "message", "summary",
)  # fmt: skip
"""Names of the two texts; the first that says anything wins, and a `summary` beside another body
is the title, as in lists of reviews."""
TEXT_FIELDS = ("title", *BODY_FIELDS)
TEXT_FIELD_NAMES = ", ".join(f"`{name}`" for name in TEXT_FIELDS)
"""All of them, for a message."""
DATE_FIELDS = (
    "created_at", "created_utc", "published_at", "publishedAt", "date", "timestamp",
    "unixReviewTime", "reviewTime",
)  # fmt: skip
"""Names of the time something was said; the first that says anything wins."""


@dataclass(frozen=True, slots=True)
class CallerItemFields:
    """What a field may hold beside null; true and false are none of it."""

    words: str
    types: tuple[type, ...]
    each: tuple[type, ...] = ()
    """What a list or an object in it may hold."""

    def fault(self, value: object) -> str:
        """Why the field cannot hold this; empty when it can."""
        if not _is_of(value, (*self.types, NoneType)):
            return f"must be {self.words}, not {_kind(value)}"
        parts: Iterable[object] = ()
        if isinstance(value, Mapping):
            parts = value.values()
        elif isinstance(value, (list, tuple)):
            parts = value
        wrong = next((_kind(part) for part in parts if not _is_of(part, self.each)), "")
        return f"must be {self.words}, and holds {wrong}" if wrong else ""


_WORD = CallerItemFields("text or a number", (str, Number))
FIELDS: Mapping[str, CallerItemFields] = MappingProxyType(
    {
        **dict.fromkeys(
            TEXT_FIELDS,
            CallerItemFields(
                "text, a number or a list of texts", (str, Number, list, tuple), (str,)
            ),
        ),
        **dict.fromkeys(("id", "key", "source", "place", "author"), _WORD),
        "url": CallerItemFields("text", (str,)),
        **dict.fromkeys(DATE_FIELDS, CallerItemFields("text or a number", (str, Number, date))),
        "engagement": CallerItemFields("an object of numbers", (Mapping,), (Number, NoneType)),
        "comments": CallerItemFields(
            "a list of texts and objects", (list, tuple), (str, Number, Mapping, NoneType)
        ),
    }
)
"""Every field that is known, and what it may hold; others may hold anything, since nobody reads
them."""
# Fields of a refused object that are named, and characters of each.
_NAMED, _NAME = 12, 40
# Fields in which answers hold the items, and how they come out.
_PACKED = {
    "data": "unpack an answer of Reddit with `jq -c '.data.children[].data'`",
    "items": "unpack an answer of YouTube with `jq -c '.items[].snippet'`",
    "snippet": "unpack it with `jq -c .snippet`",
}


def title_and_body(fields: Mapping[str, Any]) -> tuple[str, str]:
    """Title and body; each may be missing, empty, null, a number or a list of paragraphs.

    Raises:
        UsageError: the object has no field for a text, or one that is known holds what it cannot.
    """
    if fields.keys().isdisjoint(TEXT_FIELDS):
        raise UsageError(_refusal(fields))
    for name, holding in FIELDS.items():
        if fault := holding.fault(fields.get(name)):
            raise UsageError(f"`{name}` {fault}")
    texts = {name: clean(_whole(fields.get(name))) for name in TEXT_FIELDS}
    body = next((name for name in BODY_FIELDS if texts[name]), "")
    title = next((name for name in TITLE_FIELDS if texts[name] and name != body), "")
    return texts.get(title, ""), texts.get(body, "")


def _is_of(value: object, types: tuple[type, ...]) -> bool:
    return isinstance(value, types) and not isinstance(value, bool)


def _kind(value: object) -> str:
    """What a value is, in the words of JSON where it has one."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    match value:
        case str():
            return "text"
        case Number():
            return "a number"
        case Mapping():
            return "an object"
        case list() | tuple():
            return "a list"
    return type(value).__name__


def _whole(value: Any) -> Any:
    """A list of paragraphs as one text, and no number as nothing; anything else as it is."""
    if isinstance(value, float) and math.isnan(value):  # a table's empty cell
        return None
    return "\n\n".join(value) if isinstance(value, (list, tuple)) else value


def _refusal(fields: Mapping[str, Any]) -> str:
    names = [cut(one_line(clean(str(name))), _NAME) for name in fields]
    seen = ", ".join(f"`{name}`" for name in names[:_NAMED]) or "none"
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    hint = next((f"; {hint}" for name, hint in _PACKED.items() if name in fields), "")
    known = f"its fields are {seen}{more}, known are {TEXT_FIELD_NAMES}"
    return f"no text in a field that is known; {known}{hint}"
