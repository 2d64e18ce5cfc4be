"""Laying out text in terminal columns, where a Chinese character takes two."""

from __future__ import annotations

import regex
from rich.cells import cell_len

from api.services.reporting.escaping import unlinked
from api.services.text import clean, one_line

_PIECE = regex.compile(
    r"[\p{Han}\p{Hiragana}\p{Katakana}\u3000-\u303f\uff00-\uffef]"
    r"|[^\s\p{Han}\p{Hiragana}\p{Katakana}\u3000-\u303f\uff00-\uffef]+"
)
"""What stays together: a word, or one character of a script that does not use spaces."""
_NO_START = frozenset("，。、！？；：）」』】》…")


def shown(text: object) -> str:
    """Anything as one line without control characters, escapes, overrides and links of its own."""
    return unlinked(one_line(clean(text)))


def padded(text: object, columns: int) -> str:
    """The text cut or filled up to so many columns."""
    line = shown(text)
    while cell_len(line) > columns:
        line = line[:-1]
    return line + " " * (columns - cell_len(line))


def wrapped(text: object, columns: int, lead: str = "") -> list[str]:
    """Lines of at most so many columns, the first after `lead`, the rest below its end.

    A word that is too long for a line (an address) keeps a line of its own.
    """
    line, margin = lead, " " * cell_len(lead)
    lines: list[str] = []
    filled = False
    words = shown(text)
    for piece in _PIECE.finditer(words):
        space = " " if filled and words[piece.start() - 1] == " " else ""
        fits = cell_len(line) + len(space) + cell_len(piece[0]) <= columns
        if filled and not fits and piece[0] not in _NO_START:
            lines.append(line)
            line, space = margin, ""
        line += space + piece[0]
        filled = True
    return [*lines, line] if filled else []
