"""What counts as somebody's words: not a picture, not a link, not what nobody can see."""

from __future__ import annotations

import regex

from api.services.text import is_visible

# what holds no words of its own: `![gif](giphy|x)`, `[label](https://x)`, `https://x`, `:emote:`
_WORDLESS = regex.compile(
    r"!?\[[^][]*+\]\([^()\s]*+(?:\s[^()]*+)?\)|https?://\S++|:[\p{L}\p{N}_~-]++:", regex.I
)
# a letter, a digit, or a sign that means something by itself: a heart, a thumb, a star
_WORD = regex.compile(r"[\p{L}\p{N}\p{So}]")


def seen(text: str) -> str:
    """The text, or nothing where a person would see nothing."""
    return text if is_visible(text) else ""


def is_said(text: str) -> bool:
    """Whether somebody says something: a comment of a picture, an emote or a link says nothing."""
    rest, removed = _WORDLESS.subn(" ", text)
    return _WORD.search(rest) is not None if removed else is_visible(text)
