"""A product's name in all the ways people write it, and where a text holds it, how well.

A name is looked for in pieces, run together: so `plaud.ai`, `PlaudAI` and `plaud ai` are one, and
`WH-1000XM5` and `wh1000 xm5`. Capitals and accents never decide. A name that is an everyday word
too may be about anything; English word counts of the pyspellchecker wheel say which names are. A
sign that tells a name from a word (`C#`, `.NET`, `AT&T`), and a name of one letter, are looked for
in the text itself, since its words leave signs out.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from importlib.resources import files
from itertools import accumulate, chain, pairwise
from math import log10
from typing import NamedTuple

import regex

from api.core.text import clean, one_line
from api.core.words import MINOR_WORDS, Word, joined_pieces, split_words, stem
from api.pipeline.question.product_name import KINDS, judged_words

WHOLE, MODEL, NEARLY, PART, BRAND = 1.0, 0.8, 0.7, 0.6, 0.4
"""How much of a name a spelling is: all of it; the model without its maker (`XM5`) or initials; all
but for one letter; the name without the kind of thing it is; the first word of several."""
EVERYDAY, EVERYDAY_IN_PHRASE = 2.2, 3.0
"""Frequency (`zipf`) from which a name is an everyday word, and each word of a longer name is one:
`corona` has 2.3, `arc` 3.1; most brands that are no word have less than 2."""
TIERS = frozenset("air gen lite max mini plus pro se ultra".split())
"""Words that tell one model of a line from another."""
_ENDINGS = "ai app co com dev fm gg hq io ly me net org shop so tech to tv".split()
# Web endings that people write behind a name: `monday.com`, `Plaud AI`.
_SPOKEN = ("ai", "app", "com", "io")
# a script without blanks between words: the name is looked for in the running text
_BOUNDLESS = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Arabic}\p{Hangul}]")
# a web ending, dotted or spoken, at the end of the name: `plaud.ai`, `plaud ai`
_WEB = regex.compile(rf"(?<=\w)(?:\.(?:{'|'.join(_ENDINGS)})|\s+(?:ai|com|io))$", regex.I)
# what a description says in brackets: `(Ring Fit Adventure, RFA)`
_BRACKETS = regex.compile(r"\(([^()]*)\)")
# a figure of a code, its dots with it: `9`, `3.12`
_FIGURE = regex.compile(r"[\p{N}.]+")
_CODE_END = regex.compile(r"(?<=\p{N})\p{L}+\p{N}+$")
_APOSTROPHE = regex.compile(r"['’]")
_QUOTES = " \"'“”„‘’«»"
# Characters from which a code tells a thing without the words before it: `XM5`.
_TELLING_CODE = 3
# Words that another name in a description may have.
_OTHER_NAME = 4
# Words that stand beside a name in the names of its communities, without their plural.
_COMPANIONS = KINDS | frozenset(
    "channel circle club com community dev dotcom fan forum global group help hq inc io lounge llc"
    " official owner reddit sub subreddit support talk team tip uk us user".split()
)
# Letters from which a name that is no everyday word may be followed by anything: `ankimcat`.
_TELLING = 4


@dataclass(frozen=True)
class Name:
    """The spellings of a product's name to look for; built by `name_of`."""

    words: tuple[str, ...]
    """The query's words, stemmed, without small ones and the web ending."""
    forms: tuple[tuple[str, float], ...]
    """Spellings run together, each with its strength."""
    initials: str
    """`rdr2`, `cod`; may be empty. Without a figure it needs a capital: `cod` is a fish."""
    codes: frozenset[str] = frozenset()
    """What tells its version, run together: `s2` of "S2 Pro", `diablo4`, `xm5`."""
    version: frozenset[str] = frozenset()
    """The pieces of it that tell versions apart."""
    boundless: bool = False
    """Whether its script writes no blanks between words."""
    signed: str = ""
    """A pattern that finds it in a text, of a name that its sign tells from a word: `C#`."""

    @cached_property
    def whole(self) -> frozenset[str]:
        """The spellings that leave nothing out."""
        return frozenset(form for form, strength in self.forms if strength == WHOLE)

    @cached_property
    def own(self) -> frozenset[str]:
        """All its words and spellings."""
        return frozenset((*self.words, *(form for form, _ in self.forms)))

    def is_own(self, word: str) -> bool:
        """Whether a folded word is one of the name's."""
        return word in self.own or stem(word) in self.own


@lru_cache(maxsize=256)
def name_of(query: str, about: str = "") -> Name:
    """What to look for when `query` is asked; `about` may hold other names of the thing.

    Such are what it says before its first comma, colon or bracket ("Xiaomi, the maker of phones")
    and what stands in brackets ("(Ring Fit Adventure, RFA)"), when that is short and no phrase.
    """
    plain = clean(query).strip(_QUOTES)
    if (signed := signed_spellings(plain)) is not None:
        pattern, spoken = signed
        forms = dict.fromkeys((plain.casefold(), *spoken), WHOLE)
        return Name((plain.casefold(),), tuple(sorted(forms.items())), "", signed=pattern)
    bare = _WEB.sub("", plain)
    written = split_words(bare)
    runs = Counter(word.token for word in written)
    words = [w for w in written if w.text not in MINOR_WORDS or runs[w.token] > 1] or written
    tokens = _tokens(words)
    forms = _parts(tokens)
    for whole in (
        [w.text for w in written],
        tokens,
        [joined_pieces(query)],
        [joined_pieces(_APOSTROPHE.sub("", bare))],
        *_other_names(clean(about)),
    ):
        forms |= dict.fromkeys(_spellings(whole), WHOLE)
    forms |= {"".join(tokens) + ending: WHOLE for ending in _SPOKEN if tokens}
    version = frozenset(w.text for w in words if w.text[:1].isdecimal() or w.text in TIERS)
    return Name(
        words=tuple(dict.fromkeys(stem(word) for word in tokens)),
        forms=tuple(sorted(forms.items())),
        initials=_initials(written),
        codes=_codes(tokens),
        version=version,
        boundless=bool(_BOUNDLESS.search(bare)),
    )


def shape_of(code: str) -> str:
    """A code with every figure the same: `s0` of `s2`; codes of one shape are versions."""
    return code if code.isalpha() else str(_FIGURE.sub("0", code))


def _tokens(words: Sequence[Word]) -> tuple[str, ...]:
    """Runs of letters and digits put together again: `r1`, `WH-1000XM5` as `wh`, `1000xm5`."""
    runs: dict[int, str] = {}
    for word in words:
        runs[word.token] = runs.get(word.token, "") + word.text
    return tuple(runs.values())


def _parts(tokens: Sequence[str]) -> dict[str, float]:
    """Short forms of a name of several words, each with the strength of a mention by it."""
    forms: dict[str, float] = {}

    def add(words: Sequence[str], strength: float) -> None:
        for form in _spellings(words):
            forms[form] = max(strength, forms.get(form, 0.0))

    if len(tokens) < 2:
        return forms
    kindless = [word for word in tokens if word not in KINDS]
    codes = [word for word in tokens if not word.isalpha() and not word.isdecimal()]
    coded = bool(codes) or len(tokens[-1]) == 1
    if 0 < len(kindless) < len(tokens):
        add(kindless, PART)
    else:
        add(tokens[:1], BRAND)
        add(tokens[:-1], BRAND if len(tokens) == 2 or coded else PART)
    if coded or len(tokens) > 2:
        # `R1` alone is many things; with a word of the description it is meant
        add(tokens[1:], MODEL if coded and len("".join(tokens[1:])) >= _TELLING_CODE else PART)
    for code in codes:
        add([_tail(code)], MODEL)
    if len(tokens) > 2 and tokens[-1].isdecimal():  # `Fold 7` of "Galaxy Z Fold 7"
        add(tokens[-2:], MODEL)
    return {form: strength for form, strength in forms.items() if not form.isdecimal()}


def _tail(code: str) -> str:
    """The letters and digits a long code ends with: `xm5` of `1000xm5`."""
    match = _CODE_END.search(code)
    return match[0] if match else ""


def _spellings(parts: Sequence[str]) -> set[str]:
    whole, bare = "".join(parts), "".join(stem(part) for part in parts)
    return {whole, bare, whole + "s"} if whole else set()


def _initials(words: Sequence[Word]) -> str:
    """Three letters, or two with a figure."""
    initials = "".join(w.text if w.text.isdecimal() else w.text[:1] for w in words)
    letters = sum(letter.isalpha() for letter in initials)
    enough = letters >= 3 or (letters >= 1 and initials[-1:].isdecimal())
    return initials if len(words) > 1 and enough else ""


def _codes(tokens: Sequence[str]) -> frozenset[str]:
    """Words with figures; a bare figure with the word before it."""
    codes = set()
    for before, token in pairwise(("", *tokens)):
        if shape_of(token) == "0":
            codes.add(before + token if before else "")
        elif shape_of(token) != token:
            codes |= {token, _tail(token)}
    return frozenset(codes - {""})


def _other_names(about: str) -> list[list[str]]:
    if not about:
        return []
    lead = regex.split(r"[,:(]", about, maxsplit=1)
    spoken = [lead[0]] if len(lead) > 1 else []
    spoken += [name for inner in _BRACKETS.findall(about) for name in inner.split(",")]
    names = [[word.text for word in split_words(text)] for text in spoken]
    return [
        words
        for words in names
        if 0 < len(words) <= _OTHER_NAME
        and MINOR_WORDS.isdisjoint(words)
        and KINDS.isdisjoint(words[:1])
        and not all(word.isdigit() for word in words)
        and len("".join(words)) > 2
    ]


@cache
def _counts() -> tuple[dict[str, int], int]:
    """Counts by word, and their sum; takes 0.2 s and some 20 MB, once per process.

    The file is read without the package's own loader, which takes four times as long to index the
    words for spelling.
    """
    data = files("spellchecker").joinpath("resources", "en.json.gz").read_bytes()
    counts: dict[str, int] = json.loads(gzip.decompress(data))
    return counts, sum(counts.values())


def zipf(word: str) -> float:
    """Frequency of a folded word on the Zipf scale: log10 of uses per thousand million words.

    `the` has 7.3, `notion` 3.8, `corona` 2.3; 0 for a word that is not listed, such as `plaud`.
    """
    counts, total = _counts()
    count = counts.get(word, 0)
    return log10(count / total * 1e9) if count else 0.0


# `.NET`; `C#`, `C++`, `D+`; `AT&T`; `R`: three letters at most on each side of a sign, since
# `Disney+` is known by its letters alone
_DOT = regex.compile(r"\.(\p{L}[\p{L}\p{N}]{1,9})")
_AFTER = regex.compile(r"(\p{L}{1,3})(\+\+|\+|#)")
_BETWEEN = regex.compile(r"(\p{L}{1,3})&(\p{L}{1,3})")
_LETTER = regex.compile(r"[A-Za-z]")
_SIGN_WORDS = {
    "#": ("sharp",),
    "+": ("plus",),
    "++": ("pp", "plusplus", "plus plus"),
}
_FREE, _END = r"(?<![\p{L}\p{N}])", r"(?![\p{L}\p{N}])"


def signed_spellings(query: str) -> tuple[str, tuple[str, ...]] | None:
    """A pattern that finds such a name in a text, and its forms without a sign; None for others.

    `C#` is also found as `CSharp` and `c sharp`, and `.NET` as `dotnet` and in `ASP.NET`. The forms
    are what communities are called: `csharp`, `dotnet`.
    """
    if match := _DOT.fullmatch(query):
        word = match[1]
        written = rf"{_FREE}(?i:\.{word}|dot ?{word}){_END}|(?<=\p{{Lu}})\.{word.upper()}{_END}"
        return written, (f"dot{word.casefold()}",)
    if match := _AFTER.fullmatch(query):
        letters, sign = match.groups()
        spoken = _SIGN_WORDS[sign]
        endings = "".join(rf"|[ -]?{ending}{_END}" for ending in spoken)
        written = rf"{_FREE}(?i:{letters}(?:{regex.escape(sign)}(?![\p{{L}}+#]){endings}))"
        return written, tuple(letters.casefold() + each for each in spoken if " " not in each)
    if match := _BETWEEN.fullmatch(query):
        first, second = match.groups()
        # the capitals alone (`ATT`) from three letters on: `HM` is Her Majesty
        alone = f"|{(first + second).upper()}" if len(first + second) > 2 else ""
        written = rf"{_FREE}(?:(?i:{first} ?(?:&|and) ?{second}){alone}){_END}"
        return written, tuple(f"{first}{join}{second}".casefold() for join in ("", "and"))
    if _LETTER.fullmatch(query):
        # a capital, not in `R&D`, `R-rated`, `R.I.P.`, `Toys'R`, `r/place` or a name's initials
        written = rf"(?<![\p{{L}}\p{{N}}'’&./-]){query.upper()}(?![\p{{L}}\p{{N}}'’&/-]|\.\p{{L}})"
        return written, (query.casefold(),)
    return None


def everyday_parts(name: Name) -> int:
    """How many words a name has that is made of everyday words alone; 0 for any other.

    The kind of thing (`Bolt app`) is no part of it. A letter (`R`, `C#`) is such a word.
    """
    if name.signed:
        return int(len(name.words[0].rstrip("+#")) == 1)
    core = [word for word in name.words if word not in KINDS] or name.words
    least = EVERYDAY if len(core) == 1 else EVERYDAY_IN_PHRASE
    plain = not (name.codes or name.boundless) and all(zipf(word) >= least for word in core)
    return len(core) if plain else 0


def namesake(text: str, about: str = "") -> str:
    """The question's name when it is one everyday word and no description says what it is; otherwise empty.

    `Bolt app` says what it is, and so does `does the Ember mug last?`.
    """
    name = one_line(judged_words(text))
    alone = len(name.split()) == 1
    return name if alone and not about and everyday_parts(name_of(name)) else ""


# Pieces of a text that one name may spread over.
_MOST = 8
# Letters of a word from which one may be off.
_LONG = 5
# Letters of a name that may stand inside a handle or before its kind.
_WITHIN = 4


class Sighting(NamedTuple):
    """A place where a text holds the name: strength, and the words from `at` on."""

    strength: float = 0.0
    at: int = -1
    size: int = 0
    start: int = 0
    """Characters of the text before it."""


def sightings(name: Name, words: Sequence[Word], text: str) -> list[Sighting]:
    """Every sighting of the name in a text split into `words`, in order of their place."""
    if name.signed:
        return _signed(name.signed, words, text)
    if name.boundless and (mentions := _in_running_text(name, words)):
        return mentions
    tries, free = _Tries.of(name), 0
    begins, near_begins, kinded = tries.begins, tries.near_begins, tries.kinded
    mentions = []
    for at, word in enumerate(words):
        far = word.text not in begins and word.text[:1] not in near_begins
        if at < free or (far and not word.marked and word.text not in kinded):
            continue
        if (sighting := tries.at(words, at, text)) is not None:
            mentions.append(sighting._replace(start=word.start))
            free = at + sighting.size
    return mentions


def best(mentions: Sequence[Sighting]) -> Sighting:
    """The strongest, the earliest of equals; strength 0 when there is none."""
    return max(mentions, key=lambda sighting: sighting.strength, default=Sighting())


def other_version(name: Name, words: Sequence[Word], mentions: Sequence[Sighting]) -> bool:
    """Whether a text is only about another version: `S1` for "S2", `9 Pro` for "Pixel 9"."""
    if name.codes:
        shapes = {shape_of(code) for code in name.codes}
        alike = {run for run in _runs(words) if shape_of(run) in shapes}
        if alike and alike.isdisjoint(name.codes):
            return True
    named = [sighting for sighting in mentions if name.version]
    return bool(named) and all(_followed(name, words, sighting) for sighting in named)


def _runs(words: Sequence[Word]) -> set[str]:
    """Up to three neighbouring words joined into one."""
    return {"".join(word.text for word in words[at : at + size]) for at in range(len(words)) for size in (1, 2, 3)}


def _followed(name: Name, words: Sequence[Word], sighting: Sighting) -> bool:
    """Whether a mark of a version that the name lacks follows it: `Pro`, or the `a` of `9a`."""
    last = words[sighting.at + sighting.size - 1]
    for word in words[sighting.at + sighting.size :][:1]:
        if last.text[-1].isdecimal() and word.token == last.token:
            return True
        versioned = word.start - last.end <= 1 and (word.text[0].isdecimal() or word.text in TIERS)
        return versioned and word.text not in name.version
    return False


def _signed(pattern: str, words: Sequence[Word], text: str) -> list[Sighting]:
    """Sightings of a name with a sign: the words that a match of its pattern covers."""
    mentions = []
    for match in regex.finditer(pattern, text):
        begin, end = match.span()
        covered = [at for at, word in enumerate(words) if word.end > begin and word.start < end]
        mentions.append(Sighting(WHOLE, covered[0], len(covered), words[covered[0]].start))
    return mentions


def _in_running_text(name: Name, words: Sequence[Word]) -> list[Sighting]:
    """Sightings in a script without blanks, as pieces of the text run together."""
    running, begins = "", []
    for at, word in enumerate(words):
        begins += [at] * len(word.text)
        running += word.text
    mentions = []
    for form, strength in name.forms:
        start = running.find(form)
        while start >= 0:
            at, last = begins[start], begins[start + len(form) - 1]
            offset = start - begins.index(at)
            mentions.append(Sighting(strength, at, last - at + 1, words[at].start + offset))
            start = running.find(form, start + len(form))
    return sorted(mentions, key=lambda sighting: sighting.start)


@dataclass(frozen=True, slots=True)
class _Tries:
    """The forms of a name, ready to be compared with a text."""

    forms: dict[str, float]
    initials: str
    begins: frozenset[str]
    kinded: frozenset[str]
    """The whole name and its kind in one word: capitals may be all that parts them, as in
    `OuraRing`, `ouraring`."""
    near: dict[str, frozenset[str]]
    near_begins: frozenset[str]
    """The letters with which the words of `near` begin; other words are not compared."""

    @staticmethod
    @lru_cache(maxsize=256)
    def of(name: Name) -> _Tries:
        forms = dict(name.forms)
        # a letter sooner in other scripts, where an ending may stand for another: `Алису`, `Алиса`
        near = {form: _cuts(form) for form in name.whole if len(form) > _LONG - (not form.isascii()) and form.isalpha()}
        spelled = (*forms, name.initials)
        begins = frozenset(chain.from_iterable(accumulate(form) for form in spelled))
        whole = [form for form in name.whole if len(form) >= _WITHIN]
        kinded = frozenset(form + kind for form in whole for kind in KINDS)
        return _Tries(forms, name.initials, begins, kinded, near, frozenset(form[0] for form in near))

    def at(self, words: Sequence[Word], at: int, text: str) -> Sighting | None:
        """The longest sighting that begins with this piece."""
        word, run, longest = words[at], "", None
        for size in range(1, min(_MOST, len(words) - at) + 1):
            run += words[at + size - 1].text
            if run == self.initials and (not run.isalpha() or text[words[at].start].isupper()):
                longest = Sighting(MODEL, at, size)
            if run in self.forms:
                longest = Sighting(self.forms[run], at, size)
            elif run not in self.begins:
                break
        if longest is not None:
            return longest
        if word.marked and any(len(form) >= _WITHIN and form in word.text for form in self.forms):
            return Sighting(PART, at, 1)
        if word.text in self.kinded:
            return Sighting(WHOLE, at, 1)
        near = len(word.text) >= _LONG and any(
            form[0] == word.text[0] and len(word.text) <= len(form) + 1 and not cuts.isdisjoint(_cuts(word.text))
            for form, cuts in self.near.items()
        )
        return Sighting(NEARLY, at, 1) if near else None


@lru_cache(maxsize=4096)
def _cuts(word: str) -> frozenset[str]:
    """The word and what is left of it without one letter: two that share one are a typo apart."""
    return frozenset([word, *(word[:at] + word[at + 1 :] for at in range(len(word)))])


@lru_cache(maxsize=1024)
def is_community_of(name: Name, place: str, about: frozenset[str] = frozenset()) -> bool:
    """Whether a community, channel or author bears the whole name, alone or with such as `app`.

    `r/ArcBrowser` is Arc's when `about`, the stems of its description, holds `browser`, and
    `r/ArcRaiders`, `r/arcane` are not. A name that is no everyday word is its own wherever it
    stands as a word: `r/AnkiMCAT`.
    """
    place = place.removeprefix("r/")
    words = [word.text for word in split_words(place)]
    while len(words) > 1 and words[0] in MINOR_WORDS:
        words = words[1:]
    running, companions = "".join(words), _COMPANIONS | about
    for form in name.whole:
        if running.startswith(form) and _accompany(words, form, companions):
            return True
    if everyday_parts(name):
        return False
    return best(sightings(name, split_words(place), place)).strength >= PART or any(
        len(form) >= _TELLING and running.startswith(form) for form in name.whole
    )


def _accompany(words: list[str], form: str, companions: Set[str]) -> bool:
    """Whether all that follows `form` in the words run together is companions of a name."""
    rest, running = list(words), ""
    while rest and len(running) < len(form):
        running += rest.pop(0)
    rest += [running[len(form) :]] if len(running) > len(form) else []
    return all(stem(word) in companions for word in rest)
