"""Words of a text: pieces that compare, index tokens, stop words and languages.

A piece is a run of letters or of digits, folded. An index token is what the archive's index holds.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import regex
import stopwordsiso

from api.core.text import clean, fold

if TYPE_CHECKING:
    from api.settings import RankingSettings

T = TypeVar("T")
MINOR_WORDS = frozenset(
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


def split_words(text: str) -> list[Word]:
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


def joined_pieces(text: str) -> str:
    """Letters and digits alone, folded, Roman numbers as figures."""
    return "".join(word.text for word in split_words(text))


# what does not count: all punctuation but `#`, `&`, `%`, blanks, and a `#` that opens
_DROPPED = regex.compile(r"[[\p{P}\p{Z}\p{C}™®©`´]--[#&%]]|^#+", regex.V1)


def canonical(name: str) -> str:
    """One form for the variants of a name; empty when it holds punctuation only.

    Case, width (NFKC), Latin, Greek, Arabic and Hebrew diacritics, quotes, apostrophes, hyphens,
    dots and spaces do not count; `+`, `#`, `&` do (C++ is not C); other scripts stay as they are.
    """
    folded: str = _DROPPED.sub("", fold(_DROPPED.sub("", clean(name))))
    return folded


# In the English list, yet what people ask about.
_NAMES = frozenset(
    "ai bill computer fire microsoft mill mug netscape nothing novel open ring shell tv".split()
)

# the brackets and the full stop of `(what's up).`
_OUTER = regex.compile(r"^[^\w]+|[^\w]+$")


@cache
def stop_words(language: str) -> frozenset[str]:
    """The words of a language that carry no meaning; what people ask about is none of them."""
    return frozenset(stopwordsiso.stopwords(language)) - _NAMES


def words(text: str) -> tuple[str, ...]:
    """Lower-case words without outer punctuation; `plaud.ai` and `what's` stay whole."""
    parts = (_OUTER.sub("", part) for part in regex.split(r"[\s,;!?、。…]+", text.casefold()))
    return tuple(part for part in parts if part)


def content_words(text: str) -> tuple[str, ...]:
    """The words that carry meaning: no English stop words, in order, each once."""
    return tuple(dict.fromkeys(word for word in words(text) if word not in stop_words("en")))


def languages_of(text: str) -> frozenset[str]:
    """The languages that most words without meaning belong to; all, when there are none."""
    parts = set(words(text))
    counts = {language: len(parts & stop_words(language)) for language in LANGUAGES}
    most = max(counts.values())
    return frozenset(language for language, count in counts.items() if count == most)


LANGUAGES: tuple[str, ...] = tuple(sorted(stopwordsiso.langs()))
"""ISO 639-1 codes of the languages whose stop words are known (stopwords-iso)."""


def is_language(code: str) -> bool:
    """Whether `languages_of` can tell a language with this code."""
    return code in LANGUAGES


def is_not_english(text: str) -> bool:
    """Whether a text is in another language than English, as far as its small words tell."""
    return "en" not in languages_of(text)


LONGEST_WORD = 40
"""Characters of a token; what is longer is an address or a code, and is cut."""

UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
"""Scripts without blanks, for a class of characters."""

# `小米手环`, or a word of a script with blanks: `batteries`, `rtx4090`
INDEX_TOKEN = regex.compile(
    rf"(?P<run>[{UNSPACED}][{UNSPACED}\p{{M}}ー]*+)|[[\p{{L}}\p{{M}}\p{{N}}]--[{UNSPACED}]]++",
    regex.V1,
)

# two letters of a run without blanks, as `index_tokens` gives them: `米手`
LETTER_PAIR = regex.compile(rf"[{UNSPACED}][{UNSPACED}\p{{M}}ー]")

# the same words where all letters are English and small, in a tenth of the time
_PLAIN = re.compile(r"[a-z0-9]+")

_POSSESSIVE = regex.compile(r"['’]s(?!\p{L})")


def index_tokens(text: str) -> list[str]:
    """Its words folded and in the singular, without the smallest; letters in pairs without blanks.

    `小米手环` is `小米`, `米手`, `手环`, so that a word of two letters is found, too.
    """
    written: list[str] = []
    folded = fold(text)
    if "'" in folded or "’" in folded:
        folded = _POSSESSIVE.sub("", folded)
    if folded.isascii():
        return [
            stem(word)[:LONGEST_WORD] for word in _PLAIN.findall(folded) if word not in MINOR_WORDS
        ]
    for match in INDEX_TOKEN.finditer(folded):
        word = match[0]
        if match["run"] is None:
            if word not in MINOR_WORDS:
                written.append(stem(word)[:LONGEST_WORD])
        elif len(word) == 1:
            written.append(word)
        else:
            written.extend(map("".join, pairwise(word)))
    return written


def diversify(
    line: Sequence[T],
    groups: Callable[[T], Iterable[Hashable]],
    worth: Callable[[T], float],
    ranking: RankingSettings,
) -> list[T]:
    """At most `diversity_max` of a group before others not worth less by over `diversity_delta`."""
    left, chosen, seen = list(line), list[T](), Counter[Hashable]()
    most = ranking.diversity_max  # of 0 nobody is below, so that the first stays the first
    while left:
        at = next(
            (at for at, entry in enumerate(left) if all(seen[g] < most for g in groups(entry))), 0
        )
        if worth(left[0]) - worth(left[at]) > ranking.diversity_delta:
            at = 0
        entry = left.pop(at)
        seen.update(groups(entry))
        chosen.append(entry)
    return chosen
