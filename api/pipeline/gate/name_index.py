"""Which of many names a text holds: one pass over the text, whatever the number of names.

As `sightings` finds one name, but for names that are one letter off. Some 0.1 ms a post; 0.3 ms and 2 kB a name.
What is kept of a name are texts and numbers alone, which the garbage collector does not look through.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from typing import Generic, TypeVar

import regex

from api.core.words import Word, content_words, split_words, stem
from api.pipeline.gate.name_matches import MODEL, PART, WHOLE, Name, everyday_parts, name_of, zipf
from api.pipeline.question.product_name import judged_words

K = TypeVar("K", bound=Hashable)
# Pieces of a text that one name may spread over, and characters of a form that is looked for.
_MOST_PIECES, _LONGEST = 8, 60
# Characters of a text that are read.
_MOST_READ = 4_000
# Letters of a name from which it needs no other word beside it.
_SHORT = 3
COMMON = 4.5
"""Frequency (`zipf`) from which a word is in too many posts to be looked for alone: of Bluesky's some 4.5 million words
an hour 140. `Things` has 5.9, `Bear` 4.8; `Notion` has 3.8, `Arc` 3.2, and what they mean is left to the gate."""
# Lengths of the beginnings by which most pieces of a text are known to begin no name.
_FIRST, _SECOND = 4, 8


# A form of a name is its number, from 0, times 4, and these: the form alone says that the name is meant; it counts
# only where it begins with a capital, since initials are small words, too.
_SURE, _CAPITAL = 1, 2


class NameIndex(Generic[K]):
    """Names by all their spellings, each under a key; belongs to one thread at a time while it changes."""

    def __init__(self) -> None:
        self._numbers: dict[K, int] = {}
        self._named: dict[tuple[str, str], int] = {}
        """Number of each pair of query and description; keys with the same pair share its forms."""
        self._names: dict[int, tuple[str, str]] = {}
        self._keys: dict[int, tuple[K, ...]] = {}
        self._hints: dict[int, frozenset[str]] = {}
        self._next = 0
        self._forms: dict[str, tuple[int, ...]] = {}
        self._heads: dict[str, int] = defaultdict(int)
        self._running: dict[str, tuple[int, ...]] = {}
        self._signed: dict[int, regex.Pattern[str]] = {}

    def __len__(self) -> int:
        """Number of keys."""
        return len(self._numbers)

    def add(self, key: K, query: str, about: str = "") -> None:
        """Look for the name of a query, too; `about` tells the thing from namesakes. Replaces the key's earlier one."""
        self.remove(key)
        number = self._named.setdefault((query, about), self._next)
        self._numbers[key], self._keys[number] = number, (*self._keys.get(number, ()), key)
        if number != self._next:
            return
        self._next += 1
        self._names[number] = query, about
        name, hints = _read(query, about)
        if hints:
            self._hints[number] = hints
        if name.signed:
            self._signed[number] = regex.compile(name.signed)
        for table, spelling, form in _forms(number, name, described=bool(hints)):
            known = self._running if table == "running" else self._forms
            known[spelling] = (*known.get(spelling, ()), form)
            for head in _heads(spelling):
                self._heads[head] += 1

    def remove(self, key: K) -> None:
        """Look for the name of this key no longer, if it is there."""
        number = self._numbers.pop(key, None)
        if number is None:
            return
        left = tuple(other for other in self._keys[number] if other != key)
        if left:
            self._keys[number] = left
            return
        del self._keys[number], self._named[self._names[number]]
        name, hints = _read(*self._names.pop(number))
        self._hints.pop(number, None)
        self._signed.pop(number, None)
        for table, spelling, form in _forms(number, name, described=bool(hints)):
            known = self._running if table == "running" else self._forms
            if others := tuple(other for other in known[spelling] if other != form):
                known[spelling] = others
            else:
                del known[spelling]
            for head in _heads(spelling):
                self._heads[head] -= 1
                if not self._heads[head]:
                    del self._heads[head]

    def find(self, text: str) -> list[K]:
        """Keys of the names that a text holds, those of names that were added first before others.

        A name that is a very common word, a short one and a part of a name count only beside a word of the
        description; without a description only the whole name counts.
        """
        text = text[:_MOST_READ]
        words = split_words(text)
        held: dict[int, int] = {}
        for form in self._held(text, words):
            held[form >> 2] = held.get(form >> 2, 0) | form & _SURE
        if not held:
            return []
        stems = {stem(word.text) for word in words}
        names = [number for number, sure in held.items() if sure or not stems.isdisjoint(self._hints.get(number, ()))]
        return [key for number in sorted(names) for key in self._keys[number]]

    def _held(self, text: str, words: Sequence[Word]) -> Iterable[int]:
        texts = [word.text for word in words]
        forms, heads = self._forms, self._heads
        for at, run in enumerate(texts):
            for piece in ("", *texts[at + 1 : at + _MOST_PIECES]):
                run += piece
                if run in forms:
                    yield from (form for form in forms[run] if not form & _CAPITAL or text[words[at].start].isupper())
                if len(run) >= _FIRST and (
                    run[:_FIRST] not in heads or (len(run) >= _SECOND and run[:_SECOND] not in heads)
                ):
                    break
        if self._running and not text.isascii():
            yield from self._held_in_running_text("".join(texts))
        yield from (number << 2 | _SURE for number, pattern in self._signed.items() if pattern.search(text))

    def _held_in_running_text(self, running: str) -> Iterable[int]:
        """Forms of scripts without blanks between words, which begin at any character."""
        for at, letter in enumerate(running):
            if not letter.isascii():
                for end in range(at + 1, at + _LONGEST):
                    part = running[at:end]
                    yield from self._running.get(part, ())
                    if end >= len(running) or (len(part) >= _FIRST and part[:_FIRST] not in self._heads):
                        break


def is_findable(query: str, about: str = "") -> bool:
    """Whether a stream can be searched for a name: it is no very short or common word, or is described."""
    name, hints = _read(query, about)
    whole = [form for form, strength in name.forms if strength == WHOLE]
    doubtful = _is_common(name) or not any(map(_is_long, whole))
    return not doubtful or bool(hints)


def _read(query: str, about: str) -> tuple[Name, frozenset[str]]:
    """The name of a query, and the words of its description beside which a doubtful form of it counts."""
    name = name_of(judged_words(query), about)
    return name, frozenset(map(stem, content_words(about))) - name.own if about else frozenset()


def _forms(number: int, name: Name, *, described: bool) -> Iterable[tuple[str, str, int]]:
    """Table, spelling and form of each spelling of a name; names with a sign, such as `C#`, have a pattern instead."""
    common = _is_common(name)
    for spelling, strength in name.forms:
        if len(spelling) <= _LONGEST and strength >= (PART if described else MODEL):
            doubtful = strength < MODEL or not _is_long(spelling) or common
            table = "running" if name.boundless and not spelling.isascii() else "words"
            yield table, spelling, number << 2 | (_SURE if not (doubtful and described) else 0)
    if name.initials and described:
        yield "words", name.initials, number << 2 | (_CAPITAL if name.initials.isalpha() else 0)


def _is_common(name: Name) -> bool:
    """Whether the whole name is one word that is everywhere; `Bear app` says what is meant."""
    return everyday_parts(name) > 0 and len(name.words) == 1 and zipf(name.words[0]) >= COMMON


def _is_long(form: str) -> bool:
    return len(form) >= _SHORT or not form.isascii()


def _heads(spelling: str) -> list[str]:
    return [spelling[:length] for length in (_FIRST, _SECOND) if len(spelling) >= length]
