"""The words of a text in pieces that compare: runs of letters or of digits, folded."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import regex

from api.services.text import fold

SMALL = frozenset(
    "a about after all also am an and any are as at be but by can do for from get had has have he"
    " her his how i if in into is it its just me my no not of on one or our out she so than that"
    " the their them then they this to too up us vs was we were what when which who will with you"
    " your der die das und mit von la le les de du des et el los las".split()
)
"""Words that say nothing about a topic."""
_ROMAN = {"ii": "2", "iii": "3", "iv": "4", "vi": "6", "vii": "7", "viii": "8", "ix": "9"}
# a run of letters and digits with the mark of a handle or hashtag, possessive cut off: `@plaud`,
# a version with its dots: `3.12`
_TOKEN = regex.compile(
    r"([@#]?)([\p{L}\p{M}\p{N}]+(?:(?<=\p{N})\.\p{N}[\p{L}\p{N}]*)*)(?:['’]s(?!\p{L}))?"
)
# pieces of a run: `PlaudNote` is two, `XM5` is two, `USBHub` is two
_PIECE = regex.compile(
    r"\p{Lu}+(?=\p{Lu}\p{Ll})|\p{Lu}?[\p{Ll}\p{M}]+|\p{Lu}+|\p{N}+(?:\.\p{N}+)*|[\p{L}\p{M}]+"
)


class Word(NamedTuple):
    """One piece of a text, folded, and where it stands."""

    text: str
    start: int
    end: int
    marked: bool = False
    """It stands in a handle or hashtag."""
    token: int = 0
    """Which run of letters and digits it is a piece of."""


@lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """The word without its plural."""
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    return word[:-1] if len(word) > 3 and word[-1] == "s" and word[-2] not in "su" else word


def split(text: str) -> list[Word]:
    """The pieces of a text in order; a change of case or to digits ends one."""
    pieces: list[Word] = []
    for token, match in enumerate(_TOKEN.finditer(text)):
        run, begin, marked = match[2], match.start(2), bool(match[1])
        plain = run.isascii() and run.isalpha()
        if plain and (run[1:].islower() or run.isupper() or len(run) == 1):
            word = run.lower()  # most runs are one piece: `plaud`, `Plaud`, `USB`
            pieces.append(Word(_ROMAN.get(word, word), begin, begin + len(run), marked, token))
            continue
        for piece in _PIECE.finditer(run):
            start, word = begin + piece.start(), fold(piece[0])
            pieces.append(Word(_ROMAN.get(word, word), start, start + len(piece[0]), marked, token))
    return pieces


def run_together(text: str) -> str:
    """Letters and digits alone, folded, Roman numbers as figures."""
    return "".join(word.text for word in split(text))
