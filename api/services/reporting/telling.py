"""Telling words: nouns that several posts share, whatever the product is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import regex

from api.services.question.query import stop_words
from api.services.reporting.aspects import aspect_words
from api.services.reporting.subjects import OTHER_NAMES, Subject
from api.services.schemas import Question
from api.services.text import fold

# a noun for all that its neighbour tells: `the lanyard`, `my lanyard`, `der Clip`, `no clip`
_NOUN = regex.compile(
    r"\b(?:the|a|an|my|its|your|their|no|this|that|der|die|das|den|dem|ein|eine|mein|kein|el|la"
    r"|los|las|un"
    r"|una|le|les|une|o|os|as|um|uma)\s+(\p{L}[\p{L}-]{3,})\b",
    regex.I,
)
_WORD = regex.compile(r"\p{L}[\p{L}-]{3,}")
_VAGUE = frozenset(
    "thing things people person month months year years week weeks weekend hour hours minute "
    "minutes night morning evening time times money dollar dollars euro euros thread post "
    "video review comment channel link product products device gadget company maker brand "
    "model version unit issue issues problem problems feature features question questions "
    "answer reason point bit lot rest half part side kind sort place world life story idea "
    "fact case cases whole same other first second third last next best worst right wrong "
    "good great real only new old full free big small whole single entire current latest "
    "normal desk office home house work room team boss office partner wife husband kids "
    "mother father friend friends user users owner owners guys anyone everyone box list table "
    "page book chapter truth verdict result end code".split()
)
"""Nouns that name no theme."""


def telling_words(
    sentences: Iterable[tuple[str, str]], subject: Subject, question: Question, shared: int
) -> list[str]:
    """Words that stand as nouns in sentences of `shared` exhibits, the most shared first.

    A sentence comes with the label of its exhibit. No aspect, no word of the question, no name.
    """
    question_words = _WORD.findall(fold(f"{question.text} {question.about}"))
    idle = stop_words("en") | _VAGUE | aspect_words() | OTHER_NAMES | frozenset(question_words)
    nouns: Counter[str] = Counter()
    uses: Counter[str] = Counter()
    labels: dict[str, set[str]] = {}
    for label, sentence in sentences:
        text = fold(sentence)
        nouns.update(_singular(match[1]) for match in _NOUN.finditer(text))
        for match in _WORD.finditer(text):
            word = _singular(match[0])
            uses[word] += 1
            labels.setdefault(word, set()).add(label)
    telling = [
        word
        for word, holding in labels.items()
        if len(holding) >= shared
        and 2 * nouns[word] >= uses[word]
        and idle.isdisjoint((word, f"{word}s"))
        and not subject.is_named(word)
    ]
    return sorted(telling, key=lambda word: (-len(labels[word]), word))


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 4 and word.endswith("s") and not word.endswith("ss") else word
