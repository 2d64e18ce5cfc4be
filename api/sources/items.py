"""A person's own items as a source: nothing is asked, everything is handed over once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from api.errors import UsageError
from api.services.ports import Probe
from api.services.schemas import Batch, Comment, Commented, FetchPlan, Item
from api.services.text import clean, web_url
from api.sources.paging import within

NAME = "items"


class ItemsSource:
    """Serves a fixed list; the query does not select, since the gate does."""

    name = NAME

    def __init__(self, items: Sequence[Item]) -> None:
        """Keep the items in their order, each key once."""
        self._items = tuple({item.key: item for item in items}.values())

    async def fetch(self, plan: FetchPlan) -> Batch:
        """All items inside the window; never full, since there are no more."""
        items = tuple(item for item in self._items if within(plan.window, item.created_at))
        return Batch(plan, items, full=False)

    async def comments(self, items: Sequence[Item]) -> Commented:
        """They came with their comments."""
        return Commented(tuple(items))

    async def probe(self) -> Probe:
        """Always there."""
        return Probe("ok", f"{len(self._items)} items")

    async def aclose(self) -> None:
        """Nothing to close."""


def read_items(lines: Iterable[str]) -> list[Item]:
    """Items from JSON lines: `title`, `body` (or `content`, `description`), and what else there is.

    Known fields: id, key, source, title, body, url, author, created_at (ISO 8601 or epoch seconds),
    engagement, place, comments (texts or objects). Blank lines are skipped.

    Raises:
        UsageError: a line that is no JSON object, named by its number.
    """
    items = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            items.append(_item(_object(line, number), number))
    return items


def _object(line: str, number: int) -> Mapping[str, Any]:
    try:
        value = json.loads(line)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise UsageError(f"line {number} is no JSON object; write one object per line")
    return value


def _item(fields: Mapping[str, Any], number: int) -> Item:
    title, body = clean(fields.get("title")), _first(fields, "body", "content", "description")
    source = clean(fields.get("source")) or NAME
    known = clean(fields.get("id"))
    made = hashlib.sha256(f"{number}\n{title}\n{body}".encode()).hexdigest()[:12]
    comments = fields.get("comments")
    return Item(
        key=clean(fields.get("key")) or f"{source}:{known or made}",
        id=known or made,
        source=source,
        title=title,
        body=body,
        url=web_url(fields.get("url")),
        created_at=moment(fields.get("created_at")),
        engagement=_measures(fields.get("engagement")),
        place=clean(fields.get("place")) or None,
        comments=tuple(
            _comment(said, place)
            for place, said in enumerate(comments if isinstance(comments, list) else [], 1)
        ),
    )


def _first(fields: Mapping[str, Any], *names: str) -> str:
    return next((text for name in names if (text := clean(fields.get(name)))), "")


def _comment(said: object, number: int) -> Comment:
    fields: Mapping[str, Any] = said if isinstance(said, Mapping) else {"body": said}
    return Comment(
        id=clean(fields.get("id")) or str(number),
        body=clean(fields.get("body")),
        url=web_url(fields.get("url")),
        created_at=moment(fields.get("created_at")),
        engagement=_measures(fields.get("engagement")),
    )


def _measures(value: object) -> dict[str, float | int | None]:
    if not isinstance(value, Mapping):
        return {}
    return {
        clean(name): number
        for name, number in value.items()
        if number is None or (isinstance(number, int | float) and not isinstance(number, bool))
    }


def moment(value: object) -> datetime | None:
    """ISO 8601 or epoch seconds as aware UTC; None for anything else (a naive time is UTC)."""
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, UTC)
        found = datetime.fromisoformat(clean(value))
    except (ValueError, OverflowError, OSError):
        return None
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
