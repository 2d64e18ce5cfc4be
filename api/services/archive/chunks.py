"""An item in the pieces that are searched: its text and, each by itself, its comments."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from api.services.archive.shelf import ChunkId
from api.services.reporting.report import ItemFacts, KeptComment
from api.services.text import one_line

LONGEST = 1000
"""Characters of one piece, without the title that goes before it."""
MOST = 20
"""Pieces of one text; what comes later (of a book in a post) is not searched."""
TITLE = 300
"""Characters of the title before each piece."""
_SHORTEST_NAME = 5
"""Characters of an id."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of an item's text, or of one of its comments."""

    key: str
    """The item's."""
    comment: str
    """The comment's number in its item, from 1; empty: the item's own text."""
    part: int
    """From 0 within that text."""
    title: str
    """The item's, or that of the thread it stands in."""
    text: str
    """On one line, without the title."""
    created_at: datetime | None = None
    name: str = ""
    """By which it may be asked for: the item's key or the comment's id, in the first piece."""

    @property
    def id(self) -> ChunkId:
        """What it is, within a tenant."""
        return self.key, self.comment, self.part

    @property
    def whole(self) -> str:
        """What is searched: the title and the piece."""
        return f"{self.title}\n{self.text}".strip()

    @property
    def worded(self) -> str:
        """What its words are taken from: those of `whole`, and its name."""
        return f"{self.whole}\n{self.name}"


def chunked(item: ItemFacts) -> list[Chunk]:
    """The pieces of an item in their order, its own before its comments'; none without any text."""
    title = one_line(item.title)[:TITLE]
    own = list(_pieces(item.body)) or ([""] if title else [])
    chunks = [
        Chunk(item.key, "", part, title, text, item.created_at, _name(item.key, item.id, part))
        for part, text in enumerate(own)
    ]
    for number, comment in enumerate(item.comments, 1):  # ids may be equal, or empty
        when = comment.created_at or item.created_at
        for part, text in enumerate(_pieces(comment.body)):
            name = _name(comment.id, comment.id, part)
            chunks.append(Chunk(item.key, str(number), part, title, text, when, name))
    return chunks


def comment_of(item: ItemFacts, piece: Chunk) -> KeptComment | None:
    """The comment that a piece of this item is of; None: it is of the item's own text."""
    return item.comments[int(piece.comment) - 1] if piece.comment else None


def _name(whole: str, id_: str, part: int) -> str:
    """What a first piece may be asked for by; a short id, such as a row's number, is any number."""
    return whole if part == 0 and len(id_) >= _SHORTEST_NAME else ""


def _pieces(text: str) -> Iterator[str]:
    """The text cut between words, each piece as long as may be."""
    left = one_line(text[: 2 * LONGEST * MOST])
    for _ in range(MOST):
        if not left:
            return
        end = len(left) if len(left) <= LONGEST else left.rfind(" ", LONGEST // 2, LONGEST) + 1
        end = end or LONGEST  # no blank anywhere: a script without them
        yield left[:end].strip()
        left = left[end:].lstrip()
