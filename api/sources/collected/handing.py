"""A collected file as a person's own items: all in memory, for one question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from api.errors import UsageError
from api.services.archive.imports import LeftOut, Mark, Refusal
from api.services.archive.merging import MOST_COMMENTS, STUB
from api.services.schemas import Item
from api.sources.collected.detecting import Wish, understood
from api.sources.collected.opening import opened_bytes
from api.sources.items import OwnItems, read_items

MOST_BYTES = 64_000_000
"""Of its unpacked text."""


def read_collected(data: bytes) -> OwnItems:
    """Items from any file that can be imported; JSON lines of one's own by the rules for those.

    Of others a line that cannot be read is a note.

    Raises:
        UsageError: it is none of the formats, or holds too much or nothing; or a line of one's own
            JSON lines is no item, named by its number.
    """
    try:
        file = understood(opened_bytes("items", data), Wish())
    except UsageError:
        return read_items(data)  # which says what it is instead
    if file.card.form == "jsonl" and not file.opened.packing and file.opened.encoding == "utf-8":
        return read_items(data)
    items: list[Item] = []
    aside: list[str] = []
    gone: Counter[str] = Counter()
    for portion in file.portions(Mark()):
        if portion.mark.offset > MOST_BYTES:
            most = f"{MOST_BYTES // 1_000_000} MB"
            raise UsageError(f"holds more than {most}; bring it in with `listenpost import`")
        for entry in portion.entries:
            match entry:
                case Refusal():
                    aside.append(f"line {entry.line}: {entry.reason}")
                case LeftOut():
                    gone[entry.reason] += 1
                case _:
                    items.append(entry)
    if not items and not file.opened.packing:
        return read_items(data)
    if not items:
        raise UsageError("; ".join(["there is no item", *aside[:1]]))
    notes = [f"{count} left out: {reason}" for reason, count in gone.items()]
    if aside:
        notes.append(f"{len(aside)} line(s) could not be read; {aside[0]}")
    return OwnItems(tuple(joined(items)), tuple(notes))


def joined(items: Iterable[Item]) -> list[Item]:
    """Each item once, with the comments of all that have its key."""
    known: dict[str, Item] = {}
    for item in items:
        first = known.setdefault(item.key, item)
        if first is not item:
            own = item if STUB in first.notes and STUB not in item.notes else first
            comments = {comment.id: comment for comment in (*first.comments, *item.comments)}
            known[item.key] = replace(own, comments=tuple(comments.values())[:MOST_COMMENTS])
    return list(known.values())
