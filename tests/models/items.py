"""Items in every state in which sources and callers hand them over."""

from __future__ import annotations

from api.core.items import Comment, Item
from api.core.text import Fence

NONCE = "0badcafe"


def fixed() -> Fence:
    """A fence whose nonce a test knows."""
    return Fence(NONCE)


def item(title: str, body: str = "", *comments: str, key: str = "reddit:t3_a", place: str | None = None) -> Item:
    """An item with these texts."""
    said = tuple(Comment(id=f"c{n}", body=body) for n, body in enumerate(comments))
    return Item(key=key, id=key, source="reddit", title=title, body=body, comments=said, place=place)
