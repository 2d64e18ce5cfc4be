"""What the formats of collected files have in common, and the format of a person's JSON lines."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from api.core.domain import Comment, Item
from api.features.archive.import_file import STUB
from api.features.archive.imports import Entry, LeftOut
from api.sources.own_items import NAME, item_of

Fields = Mapping[str, Any]
WORDLESS = "says nothing: removed, a picture or a link, or a bot's"
"""Why a comment is left out."""


@dataclass(frozen=True, slots=True)
class FileContext:
    """What the records of a file do not say themselves."""

    stem: str
    """The file's name without its endings."""
    product: str = ""
    """Title of items without one."""


@dataclass(frozen=True, slots=True)
class FileFormat:
    """A format, recognised by the fields of its records."""

    name: str
    title: str
    """As a person writes it."""
    signs: str
    """The fields by which it is recognised, in words."""
    recognises: Callable[[Fields], bool]
    entries: Callable[[Fields, FileContext], Iterator[Entry]]
    """The entries of a record.

    Raises:
        UsageError: it is not of this format; the message says why.
    """


def entry_of(item: Item, context: FileContext) -> Entry:
    """The item as it is stored; one without usable text only with its comments."""
    if item.unfit:
        if not item.comments:
            return LeftOut(item.unfit)
        item = as_stub(replace(item, title="", body="", unfit=""))
    return item if item.title else replace(item, title=context.product)


def commented_entry(parent: Item, comments: tuple[Comment, ...], context: FileContext) -> Entry:
    """Comments with their parent, of which nothing else is known."""
    if not comments:
        return LeftOut(WORDLESS)
    return entry_of(as_stub(replace(parent, comments=comments)), context)


def as_stub(item: Item) -> Item:
    """The item, marked as one of which only comments are known."""
    return item if STUB in item.notes else replace(item, notes=(*item.notes, STUB))


def content_id(*parts: object) -> str:
    """A short id made of the content, so that it is the same in every file."""
    text = "\n".join(str(part) for part in parts)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def first_value(fields: Fields, names: tuple[str, ...]) -> object:
    """The value of the first of these fields that has one."""
    return next((fields[name] for name in names if fields.get(name) not in (None, "")), None)


def _json_entries(fields: Fields, context: FileContext) -> Iterator[Entry]:
    item = item_of(fields, 0, named="the object")
    if not fields.get("key") and item.source == NAME:
        # an id or a line's number is one of its file's: two files may have the same
        own = content_id(fields.get("id"), item.title, item.body, item.created_at)
        item = replace(item, key=f"{NAME}:{own}")
    yield entry_of(item, context)


JSON_LINES = FileFormat(
    "jsonl", "JSON lines", "JSON objects that no other format knows", lambda _: True, _json_entries
)
