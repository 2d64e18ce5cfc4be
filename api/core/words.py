"""Words of a text: folded pieces for comparing, index tokens, stop words and languages."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cache, lru_cache, partial
from itertools import chain, pairwise
from typing import NamedTuple, TypeVar

import regex
import snowballstemmer
import stopwordsiso

from api.core.text import clean, fold

T = TypeVar("T")
MINOR_WORDS = frozenset(
    "a about after all also am an and any are as at be but by can do for from get had has have he"
    " her his how i if in into is it its just me my no not of on one or our out she so than that"
    " the their them then they this to too up us vs was we were what when which who will with you"
    " your der die das und mit von la le les de du des et el los las".split()
)
"""Words without a topic, in the languages that are searched most: not in the archive's index."""
# numbers of models and versions; not `i`, `v` and `x`, which are words and letters
_ROMAN = {"ii": "2", "iii": "3", "iv": "4", "vi": "6", "vii": "7", "viii": "8", "ix": "9"}

# a run of letters and digits with the mark of a handle or hashtag, without its possessive:
# `@plaud`, `Plaud's`; a version with its dots: `3.12`
_TOKEN = regex.compile(r"([@#]?)([\p{L}\p{M}\p{N}]+(?:(?<=\p{N})\.\p{N}[\p{L}\p{N}]*)*)(?:['’]s(?!\p{L}))?")
# the same in ASCII, in a third of the time: unlike `re`, `regex` gives up the interpreter's lock for each match
_ASCII_TOKEN = re.compile(r"([@#]?)([A-Za-z0-9]+(?:(?<=[0-9])\.[0-9][A-Za-z0-9]*)*)(?:'s(?![A-Za-z]))?")

# pieces of a run: `PlaudNote` is two, `XM5` is two, `USBHub` is two
_PIECE = regex.compile(r"\p{Lu}+(?=\p{Lu}\p{Ll})|\p{Lu}?[\p{Ll}\p{M}]+|\p{Lu}+|\p{N}+(?:\.\p{N}+)*|[\p{L}\p{M}]+")


class Word(NamedTuple):
    """A run of letters or digits, folded, with its offsets in the text."""

    text: str
    start: int
    end: int
    marked: bool = False
    """Whether it belongs to a handle or hashtag."""
    token: int = 0
    """Number of the unbroken run of letters and digits that it is a piece of."""


# makes a `Word` of a tuple of all its fields, in half the time
_WORD: Callable[[tuple[str, int, int, bool, int]], Word] = partial(tuple.__new__, Word)


@lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """The word without an English plural ending."""
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    return word[:-1] if len(word) > 3 and word[-1] == "s" and word[-2] not in "su" else word


def snowball_stem(word: str, language: str = "english") -> str:
    """The stem of a folded word by Snowball, in a language by its English name."""
    return str(_stemmer(language).stemWord(word))


@cache
def _stemmer(language: str) -> snowballstemmer.stemmer:
    return snowballstemmer.stemmer(language)


# Characters of a text that is taken apart once for whoever reads it in the same moment (what a judge is shown, the
# judge itself), and the number of such texts, together some MB at most.
_SHARED_LENGTH, _SHARED = 1_200, 128


def split_words(text: str) -> tuple[Word, ...]:
    """The pieces of a text in order; a change of case, or between letters and digits, ends one."""
    if text.islower() and text.isascii() and text.isalpha():
        return (Word(_ROMAN.get(text, text), 0, len(text)),)
    return _shared_pieces(text) if len(text) <= _SHARED_LENGTH else _pieces_of(text)


def _pieces_of(text: str) -> tuple[Word, ...]:
    pieces: list[Word] = []
    matches: Iterable[re.Match[str] | regex.Match[str]] = (_ASCII_TOKEN if text.isascii() else _TOKEN).finditer(text)
    for token, match in enumerate(matches):
        run, begin, marked = match[2], match.start(2), bool(match[1])
        if run.isascii() and run.isalpha() and (run.islower() or run[1:].islower() or run.isupper() or len(run) == 1):
            word = run.lower()  # most runs are one piece: `plaud`, `Plaud`, `USB`
            pieces.append(_WORD((_ROMAN.get(word, word), begin, begin + len(run), marked, token)))
            continue
        for piece in _PIECE.finditer(run):
            start, word = begin + piece.start(), fold(piece[0])
            pieces.append(Word(_ROMAN.get(word, word), start, start + len(piece[0]), marked, token))
    return tuple(pieces)


_shared_pieces = lru_cache(maxsize=_SHARED)(_pieces_of)


def joined_pieces(text: str) -> str:
    """All letters and digits of a text, folded, Roman numbers as figures."""
    return "".join(word.text for word in split_words(text))


# punctuation but `#`, `&`, `%`, and blanks; also a `#` at the beginning, which marks a hashtag
_DROPPED = regex.compile(r"[[\p{P}\p{Z}\p{C}™®©`´]--[#&%]]|^#+", regex.V1)


def canonical(name: str) -> str:
    """One form for all spellings of a name; empty for punctuation alone. C++ and C stay different."""
    return str(_DROPPED.sub("", fold(_DROPPED.sub("", clean(name)))))


# stop words of the English list that are also names or products
_NAMES = frozenset("ai bill computer fire microsoft mill mug netscape nothing novel open ring shell tv".split())

# punctuation around a word: the brackets and the full stop of `(what's up).`
_OUTER = regex.compile(r"^[^\w]+|[^\w]+$")
_BETWEEN = regex.compile(r"[\s,;!?、。…]+")
_ASCII_BETWEEN = re.compile(r"[\s,;!?]+", re.ASCII)


@cache
def stop_words(language: str) -> frozenset[str]:
    """Stop words of a language (ISO 639-1), without words that name products."""
    return frozenset(stopwordsiso.stopwords(language)) - _NAMES


def words(text: str) -> tuple[str, ...]:
    """Lower-case words without outer punctuation; `plaud.ai` and `what's` stay whole."""
    parts = (_ASCII_BETWEEN if text.isascii() else _BETWEEN).split(text.casefold())
    # most parts are plain words, which no pattern need look at
    bare = (part if part.isascii() and part.isalnum() else _OUTER.sub("", part) for part in parts)
    return tuple(part for part in bare if part)


def content_words(text: str) -> tuple[str, ...]:
    """The words that are no English stop words, in order, each once."""
    idle = stop_words("en")
    return tuple(dict.fromkeys(word for word in words(text) if word not in idle))


def languages_of(text: str) -> frozenset[str]:
    """The languages with the most stop words in a text; all of them when it has none."""
    parts, listing = set(words(text)), _languages_by_stop_word()
    counts = Counter(chain.from_iterable(listing[part] for part in parts if part in listing))
    most = max(counts.values(), default=0)
    return frozenset(language for language, count in counts.items() if count == most) or frozenset(LANGUAGES)


@cache
def _languages_by_stop_word() -> Mapping[str, tuple[str, ...]]:
    """The languages that list each stop word; some 4 MB."""
    listing: dict[str, list[str]] = {}
    for language in LANGUAGES:
        for word in stop_words(language):
            listing.setdefault(word, []).append(language)
    known: dict[tuple[str, ...], tuple[str, ...]] = {}  # most words are of one language: one tuple for all of them
    return {word: known.setdefault(tuple(names), tuple(names)) for word, names in listing.items()}


@lru_cache(maxsize=32)
def stop_words_of(languages: frozenset[str]) -> frozenset[str]:
    """The stop words of several languages together."""
    return frozenset[str]().union(*map(stop_words, languages))


LANGUAGES: tuple[str, ...] = tuple(sorted(stopwordsiso.langs()))
"""ISO 639-1 codes of the languages with a list of stop words (stopwords-iso)."""


def is_not_english(text: str) -> bool:
    """Whether the stop words of a text belong to a language other than English."""
    return "en" not in languages_of(text)


LONGEST_WORD = 40
"""Length to which a token is cut, in characters; a longer one is an address or a code."""

UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
"""Scripts without blanks between words, for a class of characters in a pattern."""

# `小米手环`, or a word of a script with blanks: `batteries`, `rtx4090`
INDEX_TOKEN = regex.compile(
    rf"(?P<run>[{UNSPACED}][{UNSPACED}\p{{M}}ー]*+)|[[\p{{L}}\p{{M}}\p{{N}}]--[{UNSPACED}]]++",
    regex.V1,
)

# a token of a script without blanks: `米手`
LETTER_PAIR = regex.compile(rf"[{UNSPACED}][{UNSPACED}\p{{M}}ー]")

# as `INDEX_TOKEN` for folded ASCII text, in a tenth of the time
_PLAIN = re.compile(r"[a-z0-9]+")

# the `'s` of `Plaud's`, but not that of `it'sy`
_POSSESSIVE = regex.compile(r"['’]s(?!\p{L})")


def index_tokens(text: str) -> list[str]:
    """Tokens of the archive's index: folded, singular; letter pairs in scripts without blanks."""
    written: list[str] = []
    folded = fold(text)
    if "'" in folded or "’" in folded:
        folded = _POSSESSIVE.sub("", folded)
    if folded.isascii():
        return [stem(word)[:LONGEST_WORD] for word in _PLAIN.findall(folded) if word not in MINOR_WORDS]
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
