"""Quotes: words that stand in an item or one of its comments, exactly so, with their address.

Whole sentences of what people wrote, word for word.
"""

from __future__ import annotations

import html
from bisect import bisect_right
from functools import lru_cache
from unicodedata import normalize

import regex

from api.core.items import Item
from api.core.text import clean
from api.reports.report import Quote

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


LONGEST_QUOTE = 600
"""Characters of a quote; more is no quote."""

_ALIKE = str.maketrans(
    dict.fromkeys("’‘‛`´′", "'") | dict.fromkeys("“”„‟«»″", '"') | dict.fromkeys("‐‑", "-")
)
_OUTER = "\"'「」『』 "
# what is compared at once: `I’m fine` is `I`, `’`, `m`, a blank and `fine`; a run of plain signs
# ends before the one to which an accent behind it may belong
_PART = regex.compile(r"\s+|(?P<plain>[!-~]+)(?=[\t-\r -~]|\Z)|\X")
_INVISIBLE = regex.compile(r"\p{Cf}+")
# A letter or digit of a script that sets words apart.
_SPACED = (
    r"[[\p{L}\p{M}\p{N}]--[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}"
    r"\p{Myanmar}\p{Tibetan}]]"
)
# Between two letters of one word: `batt|ery`, `can|'t`, `non|-stick`, `4.|5` of `4.5`.
_WITHIN = regex.compile(
    rf"(?<={_SPACED})(?=['-]?{_SPACED})|(?<={_SPACED}['-])(?={_SPACED})"
    r"|(?<=\p{N})(?=[.,]\p{N})|(?<=\p{N}[.,])(?=\p{N})",
    regex.V1,
)


def verbatim(words: object, item: Item) -> Quote | None:
    """The quote with its link, if the item or one of its comments holds it word for word.

    White space, invisible characters, Unicode form and width, the kind of quotation mark and HTML
    entities may differ; what comes back is theirs. No word is cut (`attery las`, `I can` of
    `I can't`), and something must be said in letters.
    """
    quote = clean(words)
    if len(quote) > LONGEST_QUOTE:
        return None
    spelled = (_comparable(text).letters.strip(_OUTER) for text in (quote, html.unescape(quote)))
    needles = [letters for letters in dict.fromkeys(spelled) if regex.search(r"\p{L}", letters)]
    places: list[tuple[str, str, str | None]]
    places = [] if item.thread else [(item.title, item.url, None)]
    places.append((item.body, item.url, None))
    places += [(comment.body, comment.url or item.url, comment.id) for comment in item.comments]
    for text, url, comment_id in places:
        if passage := _comparable(beginning(text)).passage(needles):
            return Quote(passage, item.key, url, comment_id)
    return None


class _Comparable:
    """A text as it is compared, and where each letter of that stands in the text itself."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._parts: list[tuple[int, int, bool]] = []
        """From where to where in the text, and whether each sign there is a letter of its own."""
        self._begins: list[int] = []
        """Letters before each part."""
        letters, count = [], 0
        for match in _PART.finditer(text):
            plain = match["plain"] is not None
            if plain:
                form = match[0].translate(_ALIKE)
            elif match[0].isspace():
                form = " "
            else:
                form = _INVISIBLE.sub("", normalize("NFKC", match[0].translate(_ALIKE)))
            if form:
                self._parts.append((*match.span(), plain))
                self._begins.append(count)
                letters.append(form)
                count += len(form)
        self.letters = "".join(letters)

    def _span(self, at: int) -> tuple[int, int]:
        """Where in the text a letter stands."""
        part = bisect_right(self._begins, at) - 1
        start, end, plain = self._parts[part]
        start += (at - self._begins[part]) * plain
        return start, start + 1 if plain else end

    def passage(self, needles: list[str]) -> str:
        """The first needle that stands here in whole words, as it stands here."""
        for needle in needles:
            at = self.letters.find(needle)
            while at >= 0:
                end = at + len(needle)
                if not (_WITHIN.match(self.letters, at) or _WITHIN.match(self.letters, end)):
                    return self._text[self._span(at)[0] : self._span(end - 1)[1]]
                at = self.letters.find(needle, at + 1)
        return ""


@lru_cache(maxsize=256)
def _comparable(text: str) -> _Comparable:
    """The text, not taken apart again for the next words that may stand in it."""
    return _Comparable(text)
