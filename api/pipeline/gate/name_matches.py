"""Where a text holds a name, and how well."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, chain
from typing import NamedTuple

import regex

from api.core.words import Word
from api.pipeline.gate.name_spellings import (
    KINDS,
    MODEL,
    NEARLY,
    PART,
    TIERS,
    WHOLE,
    Name,
    shape_of,
)

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
    """Characters before it."""


def sightings(name: Name, words: Sequence[Word], text: str) -> list[Sighting]:
    """Every sighting of the name in a text split into `words`, in order of their place."""
    if name.signed:
        return _signed(name.signed, words, text)
    if name.boundless and (mentions := _in_running_text(name, words)):
        return mentions
    tries, at = _Tries.of(name), 0
    mentions = []
    while at < len(words):
        sighting = tries.at(words, at, text)
        if sighting is not None:
            mentions.append(sighting._replace(start=words[at].start))
        at += sighting.size if sighting else 1
    return mentions


def best(mentions: Sequence[Sighting]) -> Sighting:
    """The strongest, the earliest of equals; strength 0 when there is none."""
    return max(mentions, key=lambda sighting: sighting.strength, default=Sighting())


def other_version(name: Name, words: Sequence[Word], mentions: Sequence[Sighting]) -> bool:
    """Whether a text speaks of another version only: `S1` for "S2", `9 Pro` for "Pixel 9"."""
    if name.codes:
        shapes = {shape_of(code) for code in name.codes}
        alike = {run for run in _runs(words) if shape_of(run) in shapes}
        if alike and alike.isdisjoint(name.codes):
            return True
    named = [sighting for sighting in mentions if name.version]
    return bool(named) and all(_followed(name, words, sighting) for sighting in named)


def _runs(words: Sequence[Word]) -> set[str]:
    """Up to three neighbouring pieces run together."""
    return {
        "".join(word.text for word in words[at : at + size])
        for at in range(len(words))
        for size in (1, 2, 3)
    }


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
    """First letters of `near`."""

    @staticmethod
    @lru_cache(maxsize=256)
    def of(name: Name) -> _Tries:
        forms = dict(name.forms)
        # a letter sooner in other scripts, where an ending may stand for another: `Алису`, `Алиса`
        near = {
            form: _cuts(form)
            for form in name.whole
            if len(form) > _LONG - (not form.isascii()) and form.isalpha()
        }
        spelled = (*forms, name.initials)
        begins = frozenset(chain.from_iterable(accumulate(form) for form in spelled))
        whole = [form for form in name.whole if len(form) >= _WITHIN]
        kinded = frozenset(form + kind for form in whole for kind in KINDS)
        return _Tries(
            forms, name.initials, begins, kinded, near, frozenset(form[0] for form in near)
        )

    def at(self, words: Sequence[Word], at: int, text: str) -> Sighting | None:
        """The longest sighting that begins with this piece."""
        word = words[at]
        far = word.text not in self.begins and word.text[:1] not in self.near_begins
        if far and not word.marked and word.text not in self.kinded:
            return None
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
        if word.marked and any(len(form) >= _WITHIN and form in word.text for form in self.forms):
            return Sighting(PART, at, 1)
        if word.text in self.kinded:
            return Sighting(WHOLE, at, 1)
        near = len(word.text) >= _LONG and any(
            form[0] == word.text[0]
            and len(word.text) <= len(form) + 1
            and not cuts.isdisjoint(_cuts(word.text))
            for form, cuts in self.near.items()
        )
        return Sighting(NEARLY, at, 1) if near else None


@lru_cache(maxsize=4096)
def _cuts(word: str) -> frozenset[str]:
    """The word and what is left of it without one letter: two that share one are a typo apart."""
    return frozenset([word, *(word[:at] + word[at + 1 :] for at in range(len(word)))])
