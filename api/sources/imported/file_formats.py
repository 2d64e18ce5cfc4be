"""What readers of formats share: what a record becomes, and a stub for a comment's parent."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from api.core.domain import Item
from api.features.archive.import_file import STUB
from api.features.archive.imports import Entry, LeftOut

Fields = Mapping[str, Any]
WORDLESS = "says nothing: removed, a picture or a link, or a bot's"
"""Of a comment that is left out."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What a record does not say itself."""

    stem: str
    """The file's name without its endings."""
    product: str = ""
    """Title of what has none."""


@dataclass(frozen=True, slots=True)
class Shape:
    """One format's records."""

    name: str
    title: str
    """What a person calls it."""
    signs: str
    """By what it is recognised, in words."""
    recognises: Callable[[Fields], bool]
    entries: Callable[[Fields, Setting], Iterator[Entry]]
    """What a record holds.

    Raises:
        UsageError: it is none of this format; the message says why.
    """


def entry_of(item: Item, setting: Setting) -> Entry:
    """The item as it is stored: one without words of its own only with its comments."""
    if item.unfit:
        if not item.comments:
            return LeftOut(item.unfit)
        item = stub(replace(item, title="", body="", unfit=""))
    if not item.title and setting.product:
        return replace(item, title=setting.product)
    return item


def stub(item: Item) -> Item:
    """An item of which only comments are known."""
    return item if STUB in item.notes else replace(item, notes=(*item.notes, STUB))


def digest(*parts: object) -> str:
    """A short id of what has none: the same for the same content, whichever file it is in."""
    text = "\n".join(str(part) for part in parts)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def first(fields: Fields, names: tuple[str, ...]) -> object:
    """The value of the first of these names that has any."""
    return next((fields[name] for name in names if fields.get(name) not in (None, "")), None)
