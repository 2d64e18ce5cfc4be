"""Whole sentences of what people wrote, word for word."""

from __future__ import annotations

import regex

READ = 40_000
"""Characters of one text that are read: as many as the longest post of any source has."""

# Where a sentence ends: after `.!?…` (and a closing quote) before a blank, after `。`, and at a
# line's end. Not after `e.g.`, `vs.`, `Dr.`, `3.` or a letter alone (`U. S.`).
_END = regex.compile(
    r"(?<=[.!?…][\"'”’)»]?)(?<!\b(?:e\.g|i\.e|vs|mr|mrs|dr|st|no|etc|approx|\d|\p{L})\.)\s++(?=\S)"
    r"|(?<=[。！？])(?![」』”’）])|\n\s*+",
    regex.I,
)
_ADDRESS = regex.compile(r"https?:|www\.", regex.I)
# chapters of a video's description, alone or on one line: `0:50 method`, `0:00 a 2:40 b`
_CHAPTER = regex.compile(r"^\W*\d{1,2}:\d{2}\b|\b\d{1,2}:\d{2}\b.*\b\d{1,2}:\d{2}\b")
# a row of hashtags: `#ember #mug`
_TAGS = regex.compile(r"^#\S++(?:\s++#\S++)*+$")


def beginning(text: str) -> str:
    """All of a text, or of one that is longer than `READ` the whole sentences before that.

    A person's own item may have millions of characters: looking through them takes seconds, in
    which nobody else is answered.
    """
    if len(text) <= READ:
        return text
    *_, end = (0, *(match.start() for match in _END.finditer(text, endpos=READ)))
    return text[:end]


def sentences(text: str) -> list[str]:
    """The sentences of a text as they stand; links, chapters and rows of hashtags left out."""
    parts = (part.strip() for part in _END.split(text))
    return [
        part
        for part in parts
        if part and not (_ADDRESS.search(part) or _CHAPTER.search(part) or _TAGS.match(part))
    ]
