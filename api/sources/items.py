"""A person's own items as a source: nothing is asked, everything is handed over once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from api.errors import UsageError
from api.services.ports import Place, Probe
from api.services.schemas import Batch, Comment, Commented, FetchPlan, Item, Measure
from api.services.text import clean, one_line, web_url
from api.sources.fields import entries, moment, number, pseudonym, record
from api.sources.paging import within

NAME = "items"
OWN_ITEMS = Place(NAME, "Your items", "Items that you handed in.")
_BOM = b"\xef\xbb\xbf"


class ItemsSource:
    """Serves a fixed list; the query does not select, since the gate does."""

    name = NAME

    def __init__(self, items: Sequence[Item]) -> None:
        """Keep the items in their order, the first of each key."""
        first: dict[str, Item] = {}
        for item in items:
            first.setdefault(item.key, item)
        self._items, again = tuple(first.values()), len(items) - len(first)
        note = f"{again} of {len(items)} items have the key of an earlier one and were left out"
        self._notes = (note,) if again else ()

    async def fetch(self, plan: FetchPlan) -> Batch:
        """All items inside the window; never full, since there are no more."""
        items = tuple(item for item in self._items if within(plan.window, item.created_at))
        return Batch(plan, items, full=False, notes=self._notes)

    async def comments(self, items: Sequence[Item]) -> Commented:
        """They came with their comments."""
        return Commented(tuple(items))

    async def remarked(self, item: Item) -> None:
        """Nothing: they are judged once, as they were handed in."""

    async def probe(self) -> Probe:
        """Always there."""
        return Probe("ok", f"{len(self._items)} items")

    async def aclose(self) -> None:
        """Nothing to close."""


@dataclass(frozen=True, slots=True)
class ItemLine:
    """One JSON object that a person wrote, and the bytes of its line, the end included."""

    number: int
    raw: bytes
    fields: Mapping[str, Any]


def read_lines(data: bytes) -> list[ItemLine]:
    """The objects of a text with one a line; blank lines count as lines but are skipped.

    Wrong UTF-8 is replaced and NaN is null. Only a line feed or carriage return ends a line: a JSON
    string may hold what else Unicode takes for an end.

    Raises:
        UsageError: a line that is no JSON object, named by its number.
    """
    lines = []
    for at, raw in enumerate(data.splitlines(keepends=True), 1):
        if text := raw.removeprefix(_BOM).decode("utf-8", "replace").strip():
            try:
                value = json.loads(text, parse_constant=number, parse_float=number)
            except (ValueError, RecursionError):
                value = None
            if not isinstance(value, dict):
                raise UsageError(f"line {at} is no JSON object; write one object per line")
            lines.append(ItemLine(at, raw, value))
    return lines


def read_items(data: bytes) -> list[Item]:
    """Items from JSON lines: `title`, `body` (or `content`, `description`), and what else there is.

    Known fields: id, key, source, title, body, url, author, created_at (ISO 8601 or epoch seconds),
    engagement, place, comments (texts or objects).

    Raises:
        UsageError: a line that is no JSON object, named by its number, or no line at all.
    """
    items = [item_of(line.fields, line.number) for line in read_lines(data)]
    if not items:
        raise UsageError("there is no item; write one JSON object per line")
    return items


def item_of(fields: Mapping[str, Any], at: int, source: str = "") -> Item:
    """One object as an item; what it lacks comes from its text and its line's number.

    `source` is where it is from, whatever the object says.
    """
    title, body = clean(fields.get("title")), _first(fields, "body", "content", "description")
    source = source or _word(fields.get("source")) or NAME
    made = hashlib.sha256(f"{at}\n{title}\n{body}".encode()).hexdigest()[:12]
    known = _word(fields.get("id")) or made
    return Item(
        key=_word(fields.get("key")) or f"{source}:{known}",
        id=known,
        source=source,
        title=title,
        body=body,
        url=web_url(fields.get("url")),
        author=pseudonym("author", fields.get("author")),
        created_at=moment(fields.get("created_at")),
        engagement=_measures(fields.get("engagement")),
        place=_word(fields.get("place")) or None,
        comments=tuple(
            _comment(record(comment) or {"body": comment}, place)
            for place, comment in enumerate(entries(fields.get("comments")), 1)
        ),
    )


def _first(fields: Mapping[str, Any], *names: str) -> str:
    return next((text for name in names if (text := clean(fields.get(name)))), "")


def _word(value: object) -> str:
    return one_line(clean(value))


def _comment(fields: Mapping[str, Any], at: int) -> Comment:
    return Comment(
        id=_word(fields.get("id")) or str(at),
        body=_first(fields, "body", "content", "text"),
        url=web_url(fields.get("url")),
        author=pseudonym("author", fields.get("author")),
        created_at=moment(fields.get("created_at")),
        engagement=_measures(fields.get("engagement")),
    )


def _measures(value: object) -> dict[str, Measure]:
    """Named numbers; null is one that is not known, and text is none."""
    return {
        _word(name): count
        for name, count in record(value).items()
        if count is None
        or (_word(name) and not isinstance(count, str) and number(count) is not None)
    }
