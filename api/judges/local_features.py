"""What the local judge knows about a text: numbers from 0 to 1, each with a fixed direction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import regex

from api.judges import local_marks as marks
from api.judges.local_names import (
    PART,
    Name,
    Sighting,
    Word,
    aliased,
    name_of,
    sight,
    split,
    stem,
)
from api.judges.local_vectors import Vectors
from api.judges.local_words import KINDS, PLAIN, SMALL

FOR = (
    "name", "name_rare", "name_foreign", "handle", "early", "repeated", "share", "alias", "about",
    "code", "numbers", "talk", "titled", "cosine", "gist", "gist_plain", "feedback",
)  # fmt: skip
"""Features that can only speak for a text."""
AGAINST = (
    "told_plain", "untitled", "nameless", "absent", "missing", "common", "namesake", "passing",
    "spam", "orders", "listed",
    "accessory", "code_clash", "successor", "many_words",
)  # fmt: skip
"""Features that can only speak against one, or against the query being easy."""
FEATURES = FOR + AGAINST
VECTOR_FEATURES = frozenset(
    ("cosine", "gist", "gist_plain", "told_plain", "feedback")
)  # fmt: skip
"""Features that need word vectors."""
Row = dict[str, float]
_SHORT = 4
"""Words up to which a query is the name of one thing, rather than a title copied from a shop."""
_NOISE = regex.compile(r"https?://\S+|\b[\w-]+(?:\.[\w-]+)*\.\p{L}{2,4}/\S*|@user\w*|[#@]")


@dataclass(frozen=True, slots=True)
class Topic:
    """A question taken apart once."""

    query: str
    about: str
    name: Name
    stems: tuple[str, ...]
    context: frozenset[str]
    proper: frozenset[str]
    """The query's words that do not say what kind of thing it is."""
    telling: frozenset[str]
    """Those of them that are no everyday words."""
    plain: bool
    """There are none: the name is an everyday word."""
    known: frozenset[str]
    """Every word of query and description."""
    codes: frozenset[str]
    numbers: frozenset[str]


class Text:
    """A text taken apart once."""

    __slots__ = (
        "absent",
        "common",
        "seen",
        "spam",
        "stems",
        "strength",
        "text",
        "titled",
        "untitled",
        "whole",
        "words",
    )

    def __init__(self, topic: Topic, text: str) -> None:
        self.text = text
        self.words: list[Word] = split(text)
        self.stems = frozenset([stem(word.text) for word in self.words]) | _whole(self.words)
        self.seen: Sighting = sight(topic.name, self.words, text)
        self.common = marks.common_use(self.seen, self.words, named=topic.name.named)
        self.spam = marks.spam(text)
        # an everyday word used as one is no mention
        self.strength = _strength(topic, self) * (1 - self.common * topic.plain)
        self.whole = all(text.partition("\n"))
        self.titled = self.whole and self.seen.at >= 0 and self.seen.first
        self.untitled = self.whole and self.seen.at >= 0 and not self.seen.first
        share = len(topic.telling & self.stems) / (len(topic.proper) or 1)
        short = topic.name.named and len(topic.stems) <= _SHORT
        self.absent = (1 - max(self.strength, share)) * short


@dataclass(frozen=True, slots=True)
class Page:
    """The texts judged together; `rows` lack `feedback`, which needs a first opinion of them."""

    rows: list[Row]
    wanted: Any = None
    units: Any = None
    vectors: Vectors | None = None

    def feedback(self, trust: Sequence[float]) -> list[float]:
        """Likeness of each text to the trusted others, and to the query where they are few."""
        if self.vectors is None:
            return [0.0] * len(self.rows)
        numpy = self.vectors.numpy
        weights = numpy.asarray(trust)[:, None]
        others = (weights * self.units).sum(axis=0) + self.wanted - weights * self.units
        lengths = numpy.sqrt((others * others).sum(axis=1))
        likeness = (others * self.units).sum(axis=1) / numpy.where(lengths > 0, lengths, 1.0)
        return [
            row["clear"] * max(float(near), 0.0)
            for row, near in zip(self.rows, likeness, strict=True)
        ]


def page(query: str, about: str, texts: Sequence[str], vectors: Vectors | None) -> Page:
    """Measure the texts of one page; features of vectors are absent without `vectors`."""
    topic = topic_of(query, about)
    taken = [Text(topic, text) for text in texts]
    rare = {part: _rarity(topic, vectors, part=part) for part in (False, True)}
    rarities = [rare[text.seen.strength == PART] for text in taken]
    rows = [_lexical(topic, text, each) for text, each in zip(taken, rarities, strict=True)]
    if vectors is None or not rows:
        return Page(rows)
    wanted, gist = vectors.unit(query), vectors.unit(_without(about, topic.name))
    units = vectors.units([_NOISE.sub(" ", text) for text in texts])
    columns = (texts, rarities, (units @ wanted).tolist(), (units @ gist).tolist())
    for row, text, rarity, cosine, near in zip(rows, *columns, strict=True):
        # without the name, sounding like the description is what rivals do
        named = 1 - row["absent"]
        row["clear"] = 0.3 if marks.other_script(text) else 1.0
        row["cosine"] = row["clear"] * max(cosine, 0.0)
        row["gist"] = named * max(near, 0.0)
        row["gist_plain"] = (1 - rarity) * row["gist"]
        row["told_plain"] = (1 - rarity) * named * bool(about)
    return Page(rows, vectors.normal(wanted + gist), units, vectors)


@lru_cache(maxsize=256)
def topic_of(query: str, about: str) -> Topic:
    """Take a question apart."""
    name = name_of(query, about)
    stems = tuple(dict.fromkeys(stem(word) for word in name.words))
    context = frozenset(stem(w.text) for w in split(about) if w.text not in SMALL) - set(stems)
    proper = frozenset(stem(word) for word in name.words if word not in KINDS)
    telling = frozenset(word for word in proper if word not in PLAIN and len(word) > 2)
    known = frozenset(w.text for w in split(f"{query} {about}"))
    return Topic(
        query=query,
        about=about,
        name=name,
        stems=stems,
        context=context,
        proper=proper,
        telling=telling,
        plain=proper <= PLAIN,
        known=known,
        codes=marks.codes(query),
        numbers=marks.numbers(query),
    )


def _lexical(topic: Topic, text: Text, rarity: float) -> Row:
    seen, words, strength = text.seen, text.words, text.strength
    found, clash = marks.code_fit(topic.codes, text.text)
    near = len(topic.context & text.stems)
    return {
        "name": strength,
        "name_rare": strength * rarity * topic.name.named,
        "name_foreign": strength * marks.foreign(words, text.text),
        "handle": float(seen.handle),
        "early": strength * float(0 <= seen.at < 8),
        "repeated": min(max(seen.count - 1, 0), 2) / 2,
        "share": _share(topic, text),
        "alias": float(aliased(topic.name, words)),
        "about": min(near, 2) / 2,
        "code": found,
        "numbers": _shared(topic.numbers, text.text),
        "talk": marks.talk(text.stems),
        "titled": strength * text.titled,
        "untitled": strength * text.untitled,
        "absent": text.absent,
        "nameless": text.absent * text.whole,
        "missing": 0.0 if topic.name.named or len(topic.stems) < 4 else 1 - _share(topic, text),
        "common": text.common * (1.0 if topic.plain else 0.5 * (1 - rarity)),
        "namesake": marks.namesake(seen, words, topic.known),
        "passing": (1 - rarity) * marks.passing(seen, words, text.text),
        "spam": text.spam,
        "orders": marks.orders(text.text),
        "listed": marks.listed(seen, words, text.text),
        "accessory": marks.accessory(topic.name.words, words, seen, text.text),
        "code_clash": clash,
        "successor": marks.successor(topic.name, seen, words),
        "many_words": min(len(topic.stems), 10) / 10,
    }


def _without(about: str, name: Name) -> str:
    """The description without the name, which its namesakes hold too."""
    return " ".join(w.text for w in split(about) if w.text not in name.words)


def _whole(words: Sequence[Word]) -> set[str]:
    """Pieces of one run with a digit, put together (`r1`)."""
    return {
        left.text + right.text
        for left, right in pairwise(words)
        if left.token == right.token and right.text.isdigit()
    }


def _share(topic: Topic, text: Text) -> float:
    return sum(s in text.stems for s in topic.stems) / (len(topic.stems) or 1)


def _shared(wanted: frozenset[str], text: str) -> float:
    return len(wanted & marks.numbers(text)) / len(wanted) if wanted else 0.0


def _strength(topic: Topic, text: Text) -> float:
    """A part of the name is nearly as good as all of it beside a word that says what it is."""
    strength = text.seen.strength
    if strength != PART:
        return strength
    part = text.words[text.seen.at].text
    if ({*topic.stems, *topic.context} - {stem(part)}) & text.stems:
        return 0.9
    return 0.3 if part in PLAIN else strength


def _rarity(topic: Topic, vectors: Vectors | None, *, part: bool) -> float:
    """How unlikely the name, or a part of it, is to be an ordinary word, from 0 to 1."""
    name = topic.name
    if (name.coded or name.head) and not part:
        return 1.0
    words = topic.proper if part and topic.proper else frozenset(name.words)
    if words <= PLAIN:
        return 0.6 if len(words) > 1 else 0.0
    if vectors is None:
        return 0.6
    return min((max(len(vectors.pieces(word)) for word in words) - 1) / 2, 1.0)
