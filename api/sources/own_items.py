"""A person's own items as a source: nothing is asked, everything is handed over once.

JSON lines as a person wrote them, and what to do with a file that holds something else.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from api.core.domain import Batch, Comment, Commented, FetchPlan, Item, Measure
from api.core.ports import Probe
from api.core.text import clean, one_line, unescape, web_url
from api.errors import UsageError
from api.pipeline.gate.caller_items import DATE_FIELDS, title_and_body
from api.pipeline.gate.drop_reasons import BY_BOT
from api.sources import OWN_ITEMS
from api.sources.item_fields import (
    date_of,
    entries,
    is_bot,
    is_said,
    left,
    number,
    plausible,
    pseudonym,
    record,
    why_unfit,
)
from api.sources.paging import in_window

_BOM = b"\xef\xbb\xbf"
# First bytes of a file, and what it is then.
_SIGNS = {
    b"\x1f\x8b": "the input is compressed with gzip; unpack it with `gunzip`",
    b"PK\x03\x04": "the input is a zip archive or a spreadsheet; unpack it, or save it as CSV",
    b"\xff\xfe": "the input is UTF-16; write UTF-8, with `iconv -f UTF-16 -t UTF-8`",
    b"\xfe\xff": "the input is UTF-16; write UTF-8, with `iconv -f UTF-16 -t UTF-8`",
}
_SEPARATORS = (",", ";", "\t")
_CSV = (
    "the input looks like CSV; write one JSON object per line, with `python -c 'import csv, json, "
    "sys; [print(json.dumps(row)) for row in csv.DictReader(sys.stdin)]'`"
)


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
        UsageError: a line that is no JSON object, named by its number, or another kind of file.
    """
    for sign, words in _SIGNS.items():
        if data.startswith(sign):
            raise UsageError(words)
    lines: list[ItemLine] = []
    for at, raw in enumerate(data.splitlines(keepends=True), 1):
        if text := raw.removeprefix(_BOM).decode("utf-8", "replace").strip():
            try:
                value = json.loads(text, parse_constant=number, parse_float=number)
            except (ValueError, RecursionError):
                value = None
            if not isinstance(value, dict):
                raise UsageError(_refusal(text, at, first=not lines))
            lines.append(ItemLine(at, raw, value))
    return lines


def _refusal(text: str, at: int, first: bool) -> str:
    """What is wrong with a line; the first one tells what the whole file is."""
    if text.startswith("["):
        return f"line {at} begins a JSON array; write one object per line, with `jq -c '.[]'`"
    if first and text == "{":
        return f"line {at} begins an object of several lines; write each on one, with `jq -c .`"
    if first and "\0" in text:
        return _SIGNS[b"\xff\xfe"]
    if first and not text.startswith("{") and any(sign in text for sign in _SEPARATORS):
        return _CSV
    return f"line {at} is no JSON object; write one object per line"


NAME = OWN_ITEMS.name


@dataclass(frozen=True, slots=True)
class OwnItems:
    """What a person handed in, and what to know about it."""

    items: tuple[Item, ...]
    notes: tuple[str, ...] = ()


class ItemsSource:
    """Serves a fixed list; the query does not select, since the gate does."""

    name = NAME

    def __init__(self, own: OwnItems) -> None:
        """Keep the items in their order, the first of each key."""
        first: dict[str, Item] = {}
        for item in own.items:
            first.setdefault(item.key, item)
        count = len(own.items)
        self._items, again = tuple(first.values()), count - len(first)
        note = f"{again} of {count} items have the key of an earlier one and were left out"
        self._notes = (note, *own.notes) if again else own.notes

    async def fetch(self, plan: FetchPlan) -> Batch:
        """All items inside the window, with a note on those before it; never full."""
        items = tuple(item for item in self._items if in_window(plan.window, item.created_at))
        old, count = len(self._items) - len(items), len(self._items)
        note = f"{old} of {count} items are older than a {plan.window} and were left out"
        return Batch(plan, items, full=False, notes=(note, *self._notes) if old else self._notes)

    async def comments(self, items: Sequence[Item]) -> Commented:
        """They came with their comments."""
        return Commented(tuple(items))

    async def with_best_comments(self, item: Item) -> None:
        """Nothing: they are judged once, as they were handed in."""

    async def probe(self) -> Probe:
        """Always there."""
        return Probe("ok", f"{len(self._items)} items")

    async def aclose(self) -> None:
        """Nothing to close."""


def read_items(data: bytes) -> OwnItems:
    """Items from JSON lines; see `item_of` for the fields.

    Raises:
        UsageError: a line that is no item, named by its number, or no line at all.
    """
    lines = read_lines(data)
    if not lines:
        raise UsageError("there is no item; write one JSON object per line")
    items = tuple(item_of(line.fields, line.number) for line in lines)
    return OwnItems(items, _undated([line.fields for line in lines]))


def own_items_of(objects: Sequence[Mapping[str, Any]]) -> OwnItems:
    """Items from objects that a program handed in; see `item_of` for the fields.

    Raises:
        UsageError: an object that is no item, named by its number from 0.
    """
    items = tuple(
        item_of(fields, number, named=f"items[{number - 1}]")
        for number, fields in enumerate(objects, 1)
    )
    return OwnItems(items, _undated(objects))


def _undated(items: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """A note on the times, of items and their comments, that are none."""
    objects = (
        fields for item in items for fields in (item, *map(record, entries(item.get("comments"))))
    )
    undated = sum(_date(fields) is not None and _created_at(fields) is None for fields in objects)
    note = f"{undated} time(s) could not be read or cannot be true; these count as undated"
    return (note,) if undated else ()


def item_of(fields: Mapping[str, Any], at: int, source: str = "", named: str = "") -> Item:
    """One object as an item; what it lacks comes from its text and its line's number.

    Known fields: the texts (`api.pipeline.gate.caller_items`), id, key, source, url, author,
    `DATE_FIELDS`, engagement, place, comments (texts or objects). `source` is its source, whatever
    the object says; `named` is the place that an error names, such as `items[0]`, if not its line.
    Texts that are gone or cannot be seen, and those of Reddit's bots, are unfit to be judged;
    comments of that kind are left out.

    Raises:
        UsageError: it or one of its comments has no field for a text, or one that is known holds
            what it cannot.
    """
    title, body = _texts(fields, f"`{named}`" if named else f"line {at}")
    before = f"`{named}." if named else f"line {at}, `"
    comments = tuple(
        comment
        for count, given in enumerate(entries(fields.get("comments")))
        if (comment := _comment(given, count, f"{before}comments[{count}]`")) is not None
    )
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
        created_at=_created_at(fields),
        engagement=_measures(fields.get("engagement")),
        place=_word(fields.get("place")) or None,
        comments=comments,
        unfit=why_unfit(unescape(title), unescape(body)) or (BY_BOT if _by_bot(fields) else ""),
    )


def _word(value: object) -> str:
    return one_line(clean(value))


def _date(fields: Mapping[str, Any]) -> object:
    """What an object says of its time, in any of the fields for it."""
    return next((fields[name] for name in DATE_FIELDS if fields.get(name) not in (None, "")), None)


def _created_at(fields: Mapping[str, Any]) -> datetime | None:
    return plausible(date_of(_date(fields)))


def _by_bot(fields: Mapping[str, Any]) -> bool:
    return is_bot(clean(fields.get("author")))


def _texts(fields: Mapping[str, Any], place: str) -> tuple[str, str]:
    """Title and body; an error names the place of the object that lacks them."""
    try:
        return title_and_body(fields)
    except UsageError as error:
        raise UsageError(f"{place}: {error}") from None


def _comment(given: object, count: int, place: str) -> Comment | None:
    fields = given if isinstance(given, Mapping) else {"body": given}
    body = "\n".join(filter(None, _texts(fields, place)))
    if _by_bot(fields) or not is_said(left(unescape(body))):
        return None
    return Comment(
        id=_word(fields.get("id")) or str(count + 1),
        body=body,
        url=web_url(fields.get("url")),
        author=pseudonym("author", fields.get("author")),
        created_at=_created_at(fields),
        engagement=_measures(fields.get("engagement")),
    )


def _measures(value: object) -> dict[str, Measure]:
    """Named numbers; null is one that is not known."""
    return {
        _word(name): count
        for name, count in record(value).items()
        if count is None or (_word(name) and number(count) is not None)
    }
