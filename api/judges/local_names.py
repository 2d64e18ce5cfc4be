"""A product's name in all the ways people write it."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import regex

from api.judges.local_words import KINDS, SMALL

_BOUNDLESS = regex.compile(
    r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Arabic}\p{Hangul}]"
)
_TOKEN = regex.compile(r"([@#]?)([\p{L}\p{M}\p{N}]+(?:_[\p{L}\p{M}\p{N}]+)*)(?:['’]s(?![\p{L}]))?")
_PIECE = regex.compile(
    r"\p{Lu}+(?=\p{Lu}\p{Ll})|\p{Lu}?[\p{Ll}\p{M}]+|\p{Lu}+|\p{N}+|[\p{L}\p{M}]+"
)
ENDINGS = frozenset(
    ("ai", "app", "co", "com", "de", "dev", "eu", "fm", "gg", "hq", "inc", "io", "ly", "me", "net",
     "org", "shop", "so", "tech", "to", "tv", "uk", "us", "xyz")
)  # fmt: skip
_DOTTED = regex.compile(r"\.(?:" + "|".join(sorted(ENDINGS)) + r")(?=$|[\s/,;:!?)\"'’.])", regex.I)
_SITE = regex.compile(r"[\p{L}\p{N}-]+\.(?:ai|app|com|io)\b", regex.I)
_SPOKEN = frozenset(("ai", "co", "com", "io"))
"""Web endings that people write as a word of its own ("plaud ai")."""
_STOPS = frozenset(".!?\n:|")
_QUOTES = " \"'“”„‘’«»"
PART = 0.6
"""Strength of a sighting of the name without the kind of thing it is."""
_MOST = 6
"""Pieces of text that one name may spread over."""


class Word(NamedTuple):
    """One word of a text, folded, with how it was written."""

    text: str
    mark: str = ""
    """`@` or `#` when a handle or hashtag began with it."""
    capital: bool = False
    shouted: bool = False
    opens: bool = False
    """It begins a sentence, where a capital says nothing."""
    token: int = 0
    """Which run of letters it is a piece of."""
    end: int = 0
    """Where it ends in the text."""


@dataclass(frozen=True, slots=True)
class Name:
    """What to look for; see `name_of`."""

    words: tuple[str, ...]
    """The query's words without small ones, possessives and web ending."""
    forms: frozenset[str]
    """The whole name run together, in every spelling."""
    head: frozenset[str]
    """The name without the kind of thing it is (`arc` of "Arc browser"); may be empty."""
    initials: frozenset[str]
    aliases: frozenset[str]
    """Proper names out of the description, run together."""
    proper: bool
    """The query is written with a capital, so a name in small letters is another word."""
    named: bool
    """The query is a name rather than a topic: capitals, digits, a web ending or its own script."""
    coded: bool
    """A word of it mixes letters and digits."""
    boundless: bool
    """A script without blanks between words."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """The best place where a text holds the name."""

    strength: float = 0.0
    """1 the whole name, less for a part, an inflection or initials; 0 not at all."""
    handle: bool = False
    lower: bool = False
    """A name that wants a capital stands only in small letters."""
    at: int = -1
    """Which word it begins with."""
    size: int = 0
    """How many words it takes."""
    count: int = 0
    first: bool = False
    """A sighting stands in the first line."""


def fold(text: str) -> str:
    """Case, accents and compatibility forms removed."""
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFKD", text).casefold()
    return unicodedata.normalize("NFC", "".join(c for c in plain if not unicodedata.combining(c)))


def stem(word: str) -> str:
    """The word without its plural."""
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    return word[:-1] if len(word) > 3 and word[-1] == "s" and word[-2] not in "su" else word


def split(text: str) -> list[Word]:
    """The words of a text, capitals inside a word splitting it (`PlaudNote` is two)."""
    found: list[Word] = []
    last = 0
    for number, match in enumerate(_TOKEN.finditer(text)):
        gap = text[last : match.start()]
        opens = not found or (gap != " " and not _STOPS.isdisjoint(gap))
        last = match.end()
        written = match[2]
        if written.islower() and written.isascii():
            found.append(Word(written, match[1], False, False, opens, number, last))
            continue
        shouted = len(written) > 1 and written.isupper()
        pieces = [written] if written.islower() or (shouted and written.isalpha()) else None
        for piece in pieces or _PIECE.findall(written):
            found.append(
                Word(fold(piece), match[1], piece[0].isupper(), shouted, opens, number, last)
            )
            opens = False
    return found


def spelled(query: str) -> str:
    """One spelling for one name: no quotes around it, a spoken web ending with its dot."""
    bare = query.strip(_QUOTES) or query
    words = bare.split()
    return ".".join(words) if len(words) == 2 and fold(words[1]) in _SPOKEN else bare


@lru_cache(maxsize=256)
def name_of(query: str, about: str = "") -> Name:
    """What to look for when `query` is asked, `about` telling it from its namesakes."""
    query = spelled(query)
    bare = _DOTTED.sub("", query)
    written = split(bare)
    words = [w for w in written if w.text not in SMALL] or written
    plain = tuple(w.text for w in words)
    if len(plain) > 1 and words[-1].token == words[-2].token and plain[-1] in ENDINGS:
        plain = plain[:-1]
    context = {stem(w.text) for w in split(about)}
    coded = {w.token for w in words if not w.text.isalpha()}
    head = tuple(
        w.text
        for w in words[: len(plain)]
        if w.token not in coded and w.text not in KINDS and not _kind(w.text, words, context)
    )
    forms = _joined(plain) | _joined(tuple(w.text for w in written)) | {_run(fold(query))}
    aliases, lead = _aliases(about)
    forms = {form for form in forms | lead if form}
    boundless = bool(_BOUNDLESS.search(query))
    return Name(
        words=_tokens(words[: len(plain)]) or plain,
        forms=frozenset(forms),
        head=frozenset(_joined(head) - forms) if 0 < len(head) < len(plain) else frozenset(),
        initials=_initials(written),
        aliases=frozenset(aliases - forms),
        proper=any(w.capital for w in words),
        named=boundless
        or bare != query
        or len(plain) < len(words)
        or bool(lead)
        or all(w.capital or w.token in coded or w.text in KINDS for w in words),
        coded=any(w.token in coded and not w.text.isdigit() for w in words),
        boundless=boundless,
    )


def sight(name: Name, words: Sequence[Word], text: str) -> Sighting:
    """The strongest sighting of the name in a text split into `words`."""
    best = Sighting()
    count, line, first = 0, text.find("\n"), False
    if name.boundless:
        folded = _run(fold(text))
        count = sum(folded.count(form) for form in name.forms)
        if count:
            best = Sighting(1.0, at=0, size=1)
            head = _run(fold(text[:line] if line >= 0 else text))
            first = any(form in head for form in name.forms)
    firsts = _firsts(name)
    for at, word in enumerate(words):
        seen = _sighting(name, words, at) if word.mark or word.text[:1] in firsts else None
        if seen is None:
            continue
        count += 1
        first = first or line < 0 or word.end <= line
        if (seen.strength, not seen.lower) > (best.strength, not best.lower) or best.at < 0:
            best = seen
    return Sighting(best.strength, best.handle, best.lower, best.at, best.size, count, first)


def aliased(name: Name, words: Sequence[Word]) -> bool:
    """A proper name out of the description stands in the text."""
    if not name.aliases:
        return False
    return any(word.capital and _longest(name.aliases, words, at) for at, word in enumerate(words))


def _sighting(name: Name, words: Sequence[Word], at: int) -> Sighting | None:
    word = words[at]
    size = _longest(name.forms, words, at)
    strength = 1.0
    if not size and name.initials:
        size, strength = _longest(name.initials, words, at), 0.9
        if not (word.shouted or any(c.isdigit() for c in word.text)):
            size = 0
    if not size and name.head:
        size, strength = _longest(name.head, words, at), PART
    if not size:
        size, strength = 1, _inside(name, word)
    if not strength:
        return None
    handle = bool(word.mark)
    # an all-small name is another word only when it is one word and the query has a capital
    lower = name.proper and not handle and not word.capital and size == 1
    return Sighting(strength, handle, lower, at, size)


def _longest(forms: frozenset[str], words: Sequence[Word], at: int) -> int:
    run, best, begins = "", 0, _beginnings(forms)
    if words[at].text not in begins:
        return 0
    for size in range(1, min(_MOST, len(words) - at) + 1):
        run += words[at + size - 1].text
        if run in forms:
            best = size
        elif run not in begins:
            break
    return best


@lru_cache(maxsize=256)
def _firsts(name: Name) -> frozenset[str]:
    """The letters a sighting can begin with."""
    return frozenset(form[0] for form in (*name.forms, *name.head, *name.initials))


@lru_cache(maxsize=1024)
def _beginnings(forms: frozenset[str]) -> frozenset[str]:
    return frozenset(form[:end] for form in forms for end in range(1, len(form) + 1))


def _inside(name: Name, word: Word) -> float:
    """A handle that holds the name, or the name with a case ending on it."""
    if not (word.mark or word.capital):
        return 0.0
    for form in (*name.forms, *name.head):
        if len(form) < 4:
            continue
        if word.mark and form in word.text:
            return 0.9
        inflected = word.text.startswith(form) and len(word.text) - len(form) <= 3
        if inflected and word.capital and len(form) > 4:
            return 0.7
    return 0.0


def _tokens(words: Sequence[Word]) -> tuple[str, ...]:
    """Words with letters and digits put together again (`r1`)."""
    tokens: dict[int, str] = {}
    coded = {w.token for w in words if not w.text.isalpha()}
    for at, word in enumerate(words):
        key = word.token if word.token in coded else -1 - at
        tokens[key] = tokens.get(key, "") + word.text
    return tuple(tokens.values())


def _kind(word: str, words: Sequence[Word], context: set[str]) -> bool:
    """A word in small letters beside a capitalised one, or one that the description explains."""
    capitals = {w.text for w in words if w.capital}
    return bool(capitals) and word not in capitals and stem(word) in context


def _joined(words: tuple[str, ...]) -> set[str]:
    if not words:
        return set()
    whole = "".join(words)
    bare = "".join(stem(w) for w in words)
    forms = {whole, bare, whole + "s", bare + "s"}
    if len(words) > 1:
        forms |= {"".join((stem(w) + "s") if w.endswith("s") else w for w in words)}
    return forms


def _run(text: str) -> str:
    return regex.sub(r"[^\p{L}\p{N}]+", "", text)


def _initials(words: Sequence[Word]) -> frozenset[str]:
    """`rdr2`, `cod`: two letters with a digit, or three letters."""
    firsts = "".join(w.text if w.text.isdigit() else w.text[:1] for w in words)
    letters = sum(c.isalpha() for c in firsts)
    enough = letters >= 3 or (letters == 2 and firsts[-1:].isdigit())
    return frozenset({firsts}) if len(words) > 2 and enough else frozenset()


def _aliases(about: str) -> tuple[set[str], set[str]]:
    """Capitalised runs of the description, and those it begins with: another name of the thing."""
    webs = {_run(fold(match[0])) for match in _SITE.finditer(about)}
    found, run, start = set(webs), [], 0
    words = split(about)
    lead: set[str] = set()
    for at, word in enumerate([*words, Word("")]):
        if word.capital and word.text not in SMALL and not word.shouted:
            run.append(word.text)
            continue
        if sum(map(len, run)) > 3:
            forms = {"".join(run), "".join(run) + "s"}
            found |= forms
            lead |= forms if start == 0 and len(run) == at else set()
        run, start = [], at + 1
    lead |= {web for web in webs if fold(_run(about)).startswith(web)}
    return found, lead
