"""What counts as somebody's words: not a picture or link, not what is gone or cannot be seen."""

from __future__ import annotations

import regex

from api.services.gate.unfit import REMOVED
from api.services.text import is_visible

UNSEEN = "no title and no text that can be seen"
# what is left of a deleted text: `[deleted]`, `[ removed by Reddit ]`
_GONE = regex.compile(r"\[\s*(?:deleted|removed)(?:\s+by\b[^][]*|\s*)\]", regex.I)
# what holds no words of its own: `![gif](giphy|x)`, `[label](https://x)`, `https://x`, `:emote:`
_WORDLESS = regex.compile(
    r"!?\[[^][]*+\]\([^()\s]*+(?:\s[^()]*+)?\)|https?://\S++|:[\p{L}\p{N}_~-]++:", regex.I
)
# a letter, a digit, or a sign that means something by itself: a heart, a thumb, a star
_WORD = regex.compile(r"[\p{L}\p{N}\p{So}]")


def seen(text: str) -> str:
    """The text, or nothing where a person would see nothing."""
    return text if is_visible(text) else ""


def left(text: str) -> str:
    """The text, or nothing where only the mark of a deletion is left, or nothing to see."""
    return "" if _GONE.fullmatch(text) else seen(text)


def why_unfit(*texts: str) -> str:
    """Why nobody can judge these texts of an item; nothing where something is left of one."""
    if any(map(left, texts)):
        return ""
    return REMOVED if any(map(_GONE.fullmatch, texts)) else UNSEEN


def is_said(text: str) -> bool:
    """Whether somebody says something: a comment of a picture, an emote or a link says nothing."""
    rest, removed = _WORDLESS.subn(" ", text)
    return _WORD.search(rest) is not None if removed else is_visible(text)
