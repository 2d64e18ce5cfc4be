"""Words by which the sandbox's model recognises what a sentence is about and how it is meant.

The words themselves, and the phrases of a report, are in `lexicon.json`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from typing import Any

_SENTENCE = re.compile(r"(?<=[.!?…])\s+(?=\S)|(?<=[。！？])|\s+(?=https?://)|\n+")


@dataclass(frozen=True)
class Aspect:
    """One thing people talk about, and how a report puts it into words."""

    name: str
    words: str
    """A pattern of words, without boundaries."""
    pairs: str
    """Characters of scripts without blanks; two in a row are a word."""
    noun: str
    praise: str
    complaint: str
    request: str
    question: str
    """What to ask next."""
    details: Sequence[tuple[str, str]]
    """Pattern and what it adds to a finding."""
    context: str = ""
    """Words of which one must occur somewhere, or the words mean something else."""
    rank: float = 1.0
    """How much it counts beside others; less for the vague."""

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Its words, standing on their own."""
        signs = f"|[{self.pairs}]{{2}}" if self.pairs else ""
        return re.compile(rf"(?<!\w)(?:{self.words})(?!\w){signs}", re.I)

    def fits(self, text: str) -> bool:
        """Whether the aspect makes sense for what all these texts are about."""
        return not self.context or bool(re.search(rf"(?<!\w)(?:{self.context})", text, re.I))

    def shades(self, text: str) -> list[str]:
        """The details that a text mentions."""
        return [said for words, said in self.details if re.search(rf"\b(?:{words})\b", text, re.I)]


@dataclass(frozen=True)
class Lexicon:
    """All the words."""

    aspects: tuple[Aspect, ...]
    good: re.Pattern[str]
    bad: re.Pattern[str]
    wish: re.Pattern[str]
    good_signs: re.Pattern[str]
    bad_signs: re.Pattern[str]
    denied: re.Pattern[str]

    def polarity(self, text: str) -> int:
        """-1, 0 or 1: praise or complaint; a denied word counts the other way."""
        total = len(self.good_signs.findall(text)) - len(self.bad_signs.findall(text))
        for pattern, sign in ((self.good, 1), (self.bad, -1)):
            for match in pattern.finditer(text):
                total += -sign if self.denied.search(text[: match.start()]) else sign
        return (total > 0) - (total < 0)

    def wishes(self, text: str) -> bool:
        """Whether a text asks for something."""
        return self.wish.search(text) is not None

    def about(self, text: str) -> list[Aspect]:
        """What a text talks about."""
        return [aspect for aspect in self.aspects if aspect.pattern.search(text)]


@cache
def lexicon() -> Lexicon:
    """The shipped words, read on first use."""
    file = resources.files("api.sandbox") / "lexicon.json"
    read: dict[str, Any] = json.loads(file.read_text("utf-8"))

    def words(name: str) -> re.Pattern[str]:
        return re.compile(rf"(?<!\w)(?:{read[name]})(?!\w)", re.I)

    return Lexicon(
        aspects=tuple(Aspect(**row) for row in read["aspects"]),
        good=words("good"),
        bad=words("bad"),
        wish=words("wish"),
        good_signs=re.compile(read["good_signs"]),
        bad_signs=re.compile(read["bad_signs"]),
        denied=re.compile(rf"(?<!\w){read['denied']}$", re.I),
    )


def sentences(text: str) -> list[str]:
    """The sentences of a text, links and hashtags left out."""
    found = (part.strip() for part in _SENTENCE.split(text))
    return [part for part in found if part and not part.startswith(("http", "#"))]
