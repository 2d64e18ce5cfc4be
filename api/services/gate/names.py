"""A product's name in all the ways people write it, and where a text holds it best.

Everything is folded first: capitals and accents never decide. A name is looked for in pieces (runs
of letters or of digits), so that `plaud.ai`, `PlaudAI` and `plaud ai` are one, and so are
`WH-1000XM5` and `wh1000 xm5`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import regex

from api.services.text import clean, fold

WHOLE, MODEL, NEARLY, PART, BRAND = 1.0, 0.8, 0.7, 0.6, 0.4
"""Strengths of a sighting: the whole name; the model without its maker (`XM5`), initials or a
case ending; one letter off; the name without the kind of thing it is; the first word of several."""
KINDS = frozenset(
    "app band bike board book browser camera car company console device display drone earbuds editor"
    " gadget game headphones headset keyboard lamp laptop light machine monitor mouse mug pad pen"
    " phone player printer recorder ring robot router scooter service shoe site software speaker"
    " tablet tool tracker vacuum watch website".split()
)
"""Words that say what kind of thing a product is."""
SMALL = frozenset(
    "a about after all also am an and any are as at be but by can do for from get had has have he"
    " her his how i if in into is it its just me my no not of on one or our out she so than that"
    " the their them then they this to too up us vs was we were what when which who will with you"
    " your der die das und mit von la le les de du des et el los las".split()
)
"""Words that say nothing about a topic."""
TIERS = frozenset("air gen lite max mini plus pro se ultra".split())
"""Words that tell one model of a line from another."""
_ENDINGS = frozenset("ai app co com dev fm gg hq io ly me net org shop so tech to tv".split())
_ROMAN = {"ii": "2", "iii": "3", "iv": "4", "vi": "6", "vii": "7", "viii": "8", "ix": "9"}
# a script without blanks between words: the name is looked for in the running text
_BOUNDLESS = regex.compile(
    r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Arabic}\p{Hangul}]"
)
# a run of letters and digits with the mark of a handle or hashtag, possessive cut off: `@plaud`,
# a version with its dots: `3.12`
_TOKEN = regex.compile(
    r"([@#]?)([\p{L}\p{M}\p{N}]+(?:(?<=\p{N})\.\p{N}[\p{L}\p{N}]*)*)(?:['’]s(?!\p{L}))?"
)
# pieces of a run: `PlaudNote` is two, `XM5` is two, `USBHub` is two
_PIECE = regex.compile(
    r"\p{Lu}+(?=\p{Lu}\p{Ll})|\p{Lu}?[\p{Ll}\p{M}]+|\p{Lu}+|\p{N}+(?:\.\p{N}+)*|[\p{L}\p{M}]+"
)
# a web ending, dotted or spoken, at the end of the name: `plaud.ai`, `plaud ai`
_WEB = regex.compile(rf"(?<=\w)(?:\.(?:{'|'.join(sorted(_ENDINGS))})|\s+(?:ai|com|io))$", regex.I)
# what a description says in brackets: `(Ring Fit Adventure, RFA)`
_BRACKETS = regex.compile(r"\(([^()]*)\)")
_QUOTES = " \"'“”„‘’«»"
_MOST = 8
"""Pieces of a text that one name may spread over."""
_LONG = 5
"""Letters from which one may be off, or a case ending may hang on."""
_OTHER_NAME = 4
"""Words that another name in a description may have."""


class Word(NamedTuple):
    """One piece of a text, folded, and where it stands."""

    text: str
    start: int
    end: int
    marked: bool = False
    """It stands in a handle or hashtag."""
    token: int = 0
    """Which run of letters and digits it is a piece of."""


class Sighting(NamedTuple):
    """A place where a text holds the name: strength, and the words from `at` on."""

    strength: float = 0.0
    at: int = -1
    size: int = 0
    start: int = 0
    """Characters before it."""


@dataclass(frozen=True, slots=True)
class Name:
    """What to look for; see `name_of`."""

    words: tuple[str, ...]
    """The query's words, stemmed, without small ones and the web ending."""
    forms: tuple[tuple[str, float], ...]
    """Spellings run together, each with its strength."""
    initials: str
    """`rdr2`, `cod`; may be empty. Without a figure it needs a capital: `cod` is a fish."""
    codes: frozenset[str]
    """What tells its version, run together: `s2` of "S2 Pro", `diablo4`, `xm5`."""
    version: frozenset[str]
    """The pieces of it that tell versions apart."""
    boundless: bool
    """Its script has no blanks between words."""

    @property
    def whole(self) -> frozenset[str]:
        """The spellings that leave nothing out."""
        return frozenset(form for form, strength in self.forms if strength == WHOLE)


def stem(word: str) -> str:
    """The word without its plural."""
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    return word[:-1] if len(word) > 3 and word[-1] == "s" and word[-2] not in "su" else word


def split(text: str) -> list[Word]:
    """The pieces of a text in order; a change of case or to digits ends one."""
    found: list[Word] = []
    for token, match in enumerate(_TOKEN.finditer(text)):
        for piece in _PIECE.finditer(match[2]):
            start = match.start(2) + piece.start()
            word = fold(piece[0])
            found.append(
                Word(_ROMAN.get(word, word), start, start + len(piece[0]), bool(match[1]), token)
            )
    return found


def run_together(text: str) -> str:
    """Letters and digits alone, folded, Roman numbers as figures."""
    return "".join(word.text for word in split(text))


@lru_cache(maxsize=256)
def name_of(query: str, about: str = "") -> Name:
    """What to look for when `query` is asked; `about` may hold other names of the thing.

    Such are what it says before its first comma, colon or bracket ("Xiaomi, the maker of phones")
    and what stands in brackets ("(Ring Fit Adventure, RFA)"), when that is short and no phrase.
    """
    bare = _WEB.sub("", clean(query).strip(_QUOTES))
    written = split(bare)
    runs = Counter(word.token for word in written)
    words = [w for w in written if w.text not in SMALL or runs[w.token] > 1] or written
    tokens = _tokens(words)
    forms: dict[str, float] = {}

    def add(parts: Sequence[str], strength: float) -> None:
        for form in _spellings(parts):
            forms[form] = max(strength, forms.get(form, 0.0))

    add([word.text for word in written], WHOLE)
    add(tokens, WHOLE)
    add([run_together(query)], WHOLE)
    for other in _other_names(clean(about)):
        add(other, WHOLE)
    coded = [word for word in tokens if not word.isalpha() and not word.isdecimal()]
    lettered = len(tokens[-1:]) and len(tokens[-1]) == 1
    model, kindless = tokens[1:], [word for word in tokens if word not in KINDS]
    if len(tokens) > 1 and not "".join(model).isdecimal():
        if coded or lettered or len(tokens) > 2:
            add(model, MODEL if coded or lettered else PART)
        for code in coded:
            add([_tail(code)], MODEL)
    if 0 < len(kindless) < len(tokens):
        add(kindless, PART)
    elif len(tokens) > 1:
        add(tokens[:-1], BRAND if len(tokens) == 2 or coded or lettered else PART)
        add(tokens[:1], BRAND)
    version = frozenset(w.text for w in words if w.text[:1].isdecimal() or w.text in TIERS)
    return Name(
        words=tuple(dict.fromkeys(stem(word) for word in tokens)),
        forms=tuple(sorted((form, s) for form, s in forms.items() if form and s)),
        initials=_initials(written),
        codes=_codes(tokens),
        version=version,
        boundless=bool(_BOUNDLESS.search(bare)),
    )


def sightings(name: Name, words: Sequence[Word], text: str) -> list[Sighting]:
    """Every sighting of the name in a text split into `words`, in order of their place."""
    if name.boundless and (found := _in_running_text(name, words)):
        return found
    tries = _Tries.of(name)
    found = []
    skip = 0
    for at, word in enumerate(words):
        if at < skip:
            continue
        sighting = tries.at(words, at, text)
        if sighting is not None:
            found.append(sighting._replace(start=word.start))
            skip = at + sighting.size
    return found


def best(found: Sequence[Sighting]) -> Sighting:
    """The strongest, the earliest of equals; strength 0 when there is none."""
    return max(found, key=lambda sighting: sighting.strength, default=Sighting())


def other_version(name: Name, words: Sequence[Word], found: Sequence[Sighting]) -> bool:
    """Whether a text speaks of another version alone: `S1` for "S2", `Pixel 9 Pro` for "Pixel 9"."""
    if name.codes:
        shapes = {_shape(code) for code in name.codes}
        alike = {run for run in _runs(words) if _shape(run) in shapes}
        if alike and alike.isdisjoint(name.codes):
            return True
    named = [sighting for sighting in found if name.version]
    return bool(named) and all(_followed(name, words, sighting) for sighting in named)


def _runs(words: Sequence[Word]) -> set[str]:
    """Up to three neighbouring pieces run together."""
    return {
        "".join(word.text for word in words[at : at + size])
        for at in range(len(words))
        for size in (1, 2, 3)
    }


def _shape(code: str) -> str:
    return str(regex.sub(r"[\p{N}.]+", "0", code))


def _followed(name: Name, words: Sequence[Word], sighting: Sighting) -> bool:
    """What tells versions apart, and the name has not, stands right behind: `Pro`, `2`, the `a` of
    `9a`.
    """
    last = words[sighting.at + sighting.size - 1]
    for word in words[sighting.at + sighting.size :][:1]:
        if last.text[-1].isdecimal() and word.token == last.token:
            return True
        apart = word.start - last.end <= 1 and (word.text[0].isdecimal() or word.text in TIERS)
        return apart and word.text not in name.version
    return False


def _in_running_text(name: Name, words: Sequence[Word]) -> list[Sighting]:
    """Sightings in a script without blanks, as pieces of the text run together."""
    running, begins = "", []
    for at, word in enumerate(words):
        begins += [at] * len(word.text)
        running += word.text
    found = []
    for form, strength in name.forms:
        start = running.find(form)
        while start >= 0:
            at, last = begins[start], begins[start + len(form) - 1]
            offset = start - begins.index(at)
            found.append(Sighting(strength, at, last - at + 1, words[at].start + offset))
            start = running.find(form, start + len(form))
    return sorted(found, key=lambda sighting: sighting.start)


@dataclass(frozen=True, slots=True)
class _Tries:
    """The forms of a name, ready to be compared with a text."""

    forms: dict[str, float]
    initials: str
    begins: frozenset[str]
    near: dict[str, frozenset[str]]

    @staticmethod
    @lru_cache(maxsize=256)
    def of(name: Name) -> _Tries:
        forms = dict(name.forms)
        near = {form: _cuts(form) for form in name.whole if len(form) > _LONG and form.isalpha()}
        spelled = (*forms, name.initials)
        begins = frozenset(form[:end] for form in spelled for end in range(1, len(form) + 1))
        return _Tries(forms, name.initials, begins, near)

    def at(self, words: Sequence[Word], at: int, text: str) -> Sighting | None:
        """The longest sighting that begins with this piece."""
        run, longest = "", None
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
        word = words[at]
        if word.marked and any(len(form) >= 4 and form in word.text for form in self.forms):
            return Sighting(MODEL, at, 1)
        near = len(word.text) >= _LONG and any(
            form[0] == word.text[0] and not cuts.isdisjoint(_cuts(word.text))
            for form, cuts in self.near.items()
        )
        return Sighting(NEARLY, at, 1) if near else None


@lru_cache(maxsize=4096)
def _cuts(word: str) -> frozenset[str]:
    """The word and what is left of it without one letter: two that share one are a typo apart."""
    return frozenset([word, *(word[:at] + word[at + 1 :] for at in range(len(word)))])


def _tokens(words: Sequence[Word]) -> tuple[str, ...]:
    """Runs of letters and digits put together again: `r1`, `WH-1000XM5` as `wh`, `1000xm5`."""
    runs: dict[int, str] = {}
    for word in words:
        runs[word.token] = runs.get(word.token, "") + word.text
    return tuple(runs.values())


def _tail(code: str) -> str:
    """The letters and digits a long code ends with: `xm5` of `1000xm5`."""
    match = regex.search(r"(?<=\p{N})\p{L}+\p{N}+$", code)
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
        if _shape(token) == "0":
            codes.add(before + token if before else "")
        elif _shape(token) != token:
            codes |= {token, _tail(token)}
    return frozenset(codes - {""})


def _other_names(about: str) -> list[list[str]]:
    lead = regex.split(r"[,:(]", about, maxsplit=1)
    spoken = [lead[0]] if len(lead) > 1 else []
    spoken += [name for inner in _BRACKETS.findall(about) for name in inner.split(",")]
    names = [[word.text for word in split(text)] for text in spoken]
    return [
        words
        for words in names
        if 0 < len(words) <= _OTHER_NAME
        and SMALL.isdisjoint(words)
        and KINDS.isdisjoint(words[:1])
        and not all(word.isdigit() for word in words)
        and len("".join(words)) > 2
    ]
