"""Which product a text is about, among those that a conversation has looked up.

A subject is written as the words that name it in the look-up that brought it up: `ember mug`.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import regex

from api.services.question.comparing import compared, points_back
from api.services.question.guard import spellings, stem, telling_words
from api.services.question.query import languages_of
from api.services.reporting.aspects import aspects_named
from api.services.text import fold, one_line

WEB_ENDING = regex.compile(r"(?i)(?<=\w)\.(?:ai|app|co|com|dev|io|net|org|so)\b")
"""What a name may stand with or without: `.ai` of `plaud.ai`."""
# `Yeti`, `rtx4090`, `3m`, `cal.com`, but not `60`
_MARKED = regex.compile(r"\p{Lu}|\p{L}\d|\d\p{L}|\p{L}\.\p{L}")
# an aspect and whose it is: `the support of Oura`
_PART = regex.compile(r"(?i)\bthe (?P<part>\p{L}++) of (?P<owner>.*\S)")
_WEIGHING = regex.compile(
    r"(?i)\b(?:than|unlike|compared|versus|vs|both|either|neither|while|whereas|instead)\b"
)


def names_in(query: str) -> tuple[str, ...]:
    """The products that a query is about: those it compares, else one."""
    part = _PART.search(query)
    whose = part["owner"] if part and aspects_named(part["part"]) else query
    names = (WEB_ENDING.sub("", name) for name in compared(query) or (whose,))
    spelled = (" ".join(telling_words(name)) or one_line(fold(name)) for name in names)
    return tuple(dict.fromkeys(spelled))


def is_variant(name: str, of: str) -> bool:
    """Whether a name is another and something asked about it: `ember mug lid` of `ember mug`.

    With a number it is another product: `ember mug 2`.
    """
    words, shorter = ([stem(word) for word in text.split()] for text in (name, of))
    added = words[len(shorter) :]
    return words[: len(shorter)] == shorter and not any(map(str.isdigit, "".join(added)))


def named_in(text: str, subjects: Iterable[str]) -> tuple[str, ...]:
    """Those whose words a text holds; `ember mug` is not, where `ember mug 2` is."""
    known, folded = spellings(text), fold(text)

    def holds(word: str) -> bool:
        # in scripts that set no words apart, and languages that change their endings
        return word in known or (not word.isascii() and word in folded)

    stems = {subject: [stem(word) for word in subject.split()] for subject in subjects}
    named = {
        subject: set(words)
        for subject, words in stems.items()
        if "".join(words) in known or all(map(holds, words))
    }
    return tuple(
        subject
        for subject, words in named.items()
        if not any(words < other for other in named.values())
    )


def names_another(question: str) -> bool:
    """Whether a question by its form names a product: `ember mug`, `the Yeti`, `a8x`, `cal.com`.

    Not when it points back (`is its Zigbee good?`), and not `the weight`: one plain word may be
    what is asked about something. In another language than English nobody can tell by the form.
    """
    if points_back(question) or "en" not in languages_of(question):
        return False
    words = question.split()
    telling = [bool(telling_words(word)) for word in words]
    return any(map(all, pairwise(telling))) or any(
        _MARKED.search(word) for word, tells in list(zip(words, telling, strict=True))[1:] if tells
    )


def weighs(sentence: str) -> bool:
    """Whether a sentence sets one product against another, so that it may speak of several."""
    return _WEIGHING.search(sentence) is not None
