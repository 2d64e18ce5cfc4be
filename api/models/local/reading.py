"""A question and a text taken apart once: where the name stands, and how well."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import regex

from api.core.words import MINOR_WORDS, Word, split_words, stem
from api.pipeline.gate.excerpt import Excerpt, contains_name
from api.pipeline.gate.name_matches import (
    MODEL,
    PART,
    Name,
    Sighting,
    best,
    everyday_parts,
    name_of,
    sightings,
)

# Letters from which a word may be part of a longer one: `Katze` in `Katzenfutter`.
_LONG = 5
# Other words that may stand between those of a name that is an everyday word.
_BETWEEN = 3
# How everyday a name of several everyday words is.
_TOGETHER = 0.3
# a model code with letters and figures (`MD095LL`), or a number
_FIGURE = regex.compile(
    r"(?:(?<!\p{L})(?=\p{L}++\p{N})|(?<!\p{N})(?=\p{N}++\p{L}))[\p{L}\p{N}]{4,}|\p{N}+(?:\.\p{N}+)?"
)


@dataclass(frozen=True, slots=True)
class Topic:
    """A question taken apart; see `topic_of`."""

    name: Name
    query: str
    """Its words, spelled as any question for the same name."""
    about: str
    """The description without the words of the name, which its namesakes hold too."""
    context: frozenset[str]
    """What is said of it where it is meant: the description's words."""
    known: frozenset[str]
    """The words of query and description, stemmed."""
    everyday: float
    """1 for a name that is an everyday word."""
    figures: frozenset[str]


@lru_cache(maxsize=256)
def topic_of(query: str, about: str) -> Topic:
    """Take a question apart."""
    name = name_of(query, about)
    details = [
        w.text
        for w in split_words(about)
        if w.text not in name.own and stem(w.text) not in name.own
    ]
    parts = everyday_parts(name)
    return Topic(
        name,
        " ".join(name.words),
        " ".join(details),
        frozenset({stem(word) for word in details} - MINOR_WORDS),
        frozenset(
            stem(word.text)
            for text in (f"{query} {about}", f"{query} {about}".lower())
            for word in split_words(text)
            if word.text not in MINOR_WORDS
        ),
        1.0 if parts == 1 else _TOGETHER * bool(parts),
        figures_of(query),
    )


def figures_of(text: str) -> frozenset[str]:
    """Model codes and numbers."""
    return frozenset(_FIGURE.findall(text.casefold()))


@dataclass(frozen=True)
class Reading:
    """A text taken apart; the title of a comment is no part of it."""

    topic: Topic
    shown: Excerpt

    @cached_property
    def lines(self) -> tuple[str, str]:
        """Its own title, and the passage."""
        return "" if self.shown.comment else self.shown.title, self.shown.passage

    @cached_property
    def text(self) -> str:
        """The title and the passage, each on a line."""
        return "\n".join(self.lines)

    @cached_property
    def words(self) -> tuple[list[Word], list[Word]]:
        """Those of title and passage."""
        return split_words(self.lines[0]), split_words(self.lines[1])

    @cached_property
    def mentions(self) -> tuple[list[Sighting], list[Sighting]]:
        """Where title and passage name the thing."""
        name, (title, passage) = self.topic.name, self.lines
        return sightings(name, self.words[0], title), sightings(name, self.words[1], passage)

    @cached_property
    def strong(self) -> list[tuple[int, Sighting]]:
        """Mentions of at least a part of the name, each after its line: 0 title, 1 passage."""
        return [
            (line, seen) for line in (0, 1) for seen in self.mentions[line] if seen.strength >= PART
        ]

    @cached_property
    def overall(self) -> float:
        """How well title and passage together name the thing."""
        return self.strength(0, 1)

    def strength(self, *lines: int) -> float:
        """How well title (0), passage (1) or both name the thing.

        All its words count as nearly the whole name, wherever they stand; so does a part of the
        name in a text that also holds a word of the description. Those of an everyday name count
        when they stand near one another: not "Ember 6 is out, here is my mug of champagne".
        """
        seen = best([sighting for line in lines for sighting in self.mentions[line]])
        if seen.strength >= MODEL:
            return seen.strength
        together = len(self.topic.name.words) > 1 and self.share(*lines) == 1
        if together and self.topic.everyday:
            width = len(self.topic.name.words) + _BETWEEN
            together = any(
                self._held([w for w in words if first.token <= w.token < first.token + width]) == 1
                for words in (self.words[line] for line in lines)
                for first in words
            )
        described = seen.strength == PART and any(
            stem(word.text) in self.topic.context for line in lines for word in self.words[line]
        )
        return max(seen.strength, MODEL * (together or described))

    def share(self, *lines: int) -> float:
        """Share of the name's words that are there; of its letters in a script without blanks."""
        return self._held(*(self.words[line] for line in lines))

    def _held(self, *texts: Sequence[Word]) -> float:
        name, runs = self.topic.name, set[str]()
        for words in texts:
            joined: dict[int, str] = {}
            for word in words:
                joined[word.token] = joined.get(word.token, "") + word.text
            runs |= {*joined.values(), *(word.text for word in words)}
        if name.boundless:
            running, letters = "".join(runs), "".join(name.words)
            return sum(letter in running for letter in letters) / len(letters)
        held = runs | {stem(run) for run in runs}
        several = len(name.words) > 1
        there = [word in held or (several and _within(word, runs)) for word in name.words]
        return sum(there) / (len(there) or 1)

    @cached_property
    def thread(self) -> bool:
        """It is a comment under a title that names the thing."""
        return self.shown.comment and contains_name(self.topic.name, self.shown.title)


def _within(word: str, runs: set[str]) -> bool:
    return len(word) >= _LONG and any(run.startswith(word) or run.endswith(word) for run in runs)
