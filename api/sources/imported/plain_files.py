"""JSON lines of a person's own, by the rules of `api.sources.own_items`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from api.features.archive.imports import Entry
from api.sources.imported.file_formats import Fields, Setting, Shape, digest, entry_of
from api.sources.own_items import NAME, item_of


def _entries(fields: Fields, setting: Setting) -> Iterator[Entry]:
    """An object that says neither key nor place gets an id that its content makes.

    Numbers of two files would meet else: line 7 of one, or id 7, is not that of another.
    """
    item = item_of(fields, 0, named="the object")
    if not fields.get("key") and item.source == NAME:
        own = digest(fields.get("id"), item.title, item.body, item.created_at)
        item = replace(item, key=f"{NAME}:{own}")
    yield entry_of(item, setting)


SHAPE = Shape(
    "jsonl", "JSON lines", "JSON objects that no other format knows", lambda _: True, _entries
)
