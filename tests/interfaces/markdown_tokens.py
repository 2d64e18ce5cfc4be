"""Reads Markdown as a renderer does."""

from __future__ import annotations

from collections.abc import Iterator

from markdown_it import MarkdownIt
from markdown_it.token import Token

READER = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def tokens(text: str) -> Iterator[Token]:
    """Everything a reader of markdown sees, flat."""
    for block in READER.parse(text):
        yield block
        yield from block.children or []


def headings(text: str) -> list[str]:
    """The text of its headings."""
    parsed = READER.parse(text)
    return [
        "".join(child.content for child in parsed[at + 1].children or [])
        for at, token in enumerate(parsed)
        if token.type == "heading_open"
    ]
