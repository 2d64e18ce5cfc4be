"""Where the texts stand in an object that a person handed in; what nobody could read is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from api.errors import UsageError
from api.services.text import clean, cut, one_line

TITLES = ("title", "summary")
BODIES = (
    "body", "content", "description", "text", "selftext", "reviewText", "review", "body_text",
    "comment", "message", "summary",
)  # fmt: skip
"""Names of the two texts; the first that says anything wins, and a `summary` beside another body
is the title, as in lists of reviews."""
KNOWN = ("title", *BODIES)
WORDS = ", ".join(f"`{name}`" for name in KNOWN)
"""All of them, for a message."""
_NAMED, _NAME = 12, 40
"""Fields of a refused object that are named, and characters of each."""
_PACKED = {
    "data": "unpack an answer of Reddit with `jq -c '.data.children[].data'`",
    "items": "unpack an answer of YouTube with `jq -c '.items[].snippet'`",
    "snippet": "unpack it with `jq -c .snippet`",
}
"""Fields in which answers hold the items, and how they come out."""


def texts_of(fields: Mapping[str, Any]) -> tuple[str, str]:
    """Title and body; each may be missing, null, a number or a list of paragraphs.

    Raises:
        UsageError: the object has fields, but no text in one that is known.
    """
    texts = {name: clean(_whole(fields.get(name))) for name in KNOWN}
    body = next((name for name in BODIES if texts[name]), "")
    title = next((name for name in TITLES if texts[name] and name != body), "")
    if not (title or body) and _is_unread(fields):
        raise UsageError(_refusal(fields))
    return texts.get(title, ""), texts.get(body, "")


def _whole(value: Any) -> Any:
    """A list of paragraphs as one text; anything else as it is."""
    paragraphs = isinstance(value, (list, tuple)) and all(isinstance(part, str) for part in value)
    return "\n\n".join(value) if paragraphs else value


def _is_unread(fields: Mapping[str, Any]) -> bool:
    """Whether something is there, none of it a text that is known (an empty one is)."""
    known = [fields[name] for name in KNOWN if name in fields]
    packed = [value for value in known if isinstance(value, (list, tuple, Mapping)) and value]
    return bool(fields) and len(packed) == len(known)


def _refusal(fields: Mapping[str, Any]) -> str:
    names = [cut(one_line(clean(str(name))), _NAME) for name in fields]
    seen = ", ".join(f"`{name}`" for name in names[:_NAMED])
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    hint = next((f"; {hint}" for name, hint in _PACKED.items() if name in fields), "")
    return f"no text in a field that is known; its fields are {seen}{more}, known are {WORDS}{hint}"
