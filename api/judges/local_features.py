"""What the local judge knows about a text: numbers from 0 to 1, each with a fixed direction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from importlib.resources import files

import regex

from api.judges import local_marks as marks
from api.judges.local_vectors import Vectors
from api.services.gate.excerpt import Shown, names_it
from api.services.gate.names import (
    KINDS,
    MODEL,
    NEARLY,
    PART,
    SMALL,
    WHOLE,
    Name,
    Sighting,
    Word,
    best,
    name_of,
    other_version,
    sightings,
    split,
    stem,
)
from api.services.schemas import Question

FOR = ("named", "handle", "words", "figures", "like", "named_like", "place", "pointer", "sense")
"""Features that can only speak for a text."""
AGAINST = ("late", "everyday", "small", "version", "made_for", "advert")
"""Features that can only speak against one."""
FEATURES = FOR + AGAINST
RULES = ("job", "order")
"""What decides alone, against: a job post, an order to a model."""
Row = dict[str, float]
_NOISE = regex.compile(r"https?://\S+|\b[\w-]+(?:\.[\w-]+)*\.\p{L}{2,4}/\S*|@user\w*|[#@]")
# a model code with letters and figures (`MD095LL`), or a number
_FIGURE = regex.compile(r"(?=\p{L}+\p{N}|\p{N}+\p{L})[\p{L}\p{N}]{4,}|\p{N}+(?:\.\p{N}+)?")
_CAPITAL = regex.compile(r"\b\p{Lu}\p{Ll}")
_CASED = 3
"""Capitals from which a text is one that uses them."""
_LONG = 5
"""Letters from which a word may be part of a longer one: `Katze` in `Katzenfutter`."""
_TOLD = 0.7
"""How much of an everyday name gives way to its description when texts are compared with it."""
_TOGETHER = 0.3
"""How everyday a name of several everyday words is."""


@dataclass(frozen=True, slots=True)
class Topic:
    """A question taken apart once."""

    name: Name
    query: str
    about: str
    """The description without the words of the name, which its namesakes hold too."""
    known: frozenset[str]
    """The words of query and description."""
    everyday: float
    """1 for a name that is an everyday word."""
    figures: frozenset[str]


@dataclass(frozen=True)
class Reading:
    """A text taken apart once; the title of a comment is no part of it."""

    topic: Topic
    shown: Shown

    @cached_property
    def lines(self) -> tuple[str, str]:
        """Its own title, and the passage."""
        return "" if self.shown.comment else self.shown.title, self.shown.passage

    @cached_property
    def words(self) -> tuple[list[Word], list[Word]]:
        """Those of title and passage."""
        return split(self.lines[0]), split(self.lines[1])

    @cached_property
    def found(self) -> tuple[list[Sighting], list[Sighting]]:
        """Sightings of the name in title and passage."""
        name, (title, passage) = self.topic.name, self.lines
        return sightings(name, self.words[0], title), sightings(name, self.words[1], passage)

    def strength(self, *lines: int) -> float:
        """How well title (0), passage (1) or both name the thing; all its words are nearly it."""
        together = len(self.topic.name.words) > 1 and self.share(*lines) == 1
        found = [sighting for line in lines for sighting in self.found[line]]
        return max(best(found).strength, MODEL * together)

    def share(self, *lines: int) -> float:
        """Share of the name's words that are there; of its letters in a script without blanks."""
        name, runs = self.topic.name, set[str]()
        for line in lines:
            joined: dict[int, str] = {}
            for word in self.words[line]:
                joined[word.token] = joined.get(word.token, "") + word.text
            runs |= {*joined.values(), *(word.text for word in self.words[line])}
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
        return self.shown.comment and names_it(self.topic.name, self.shown.title)


@lru_cache(maxsize=256)
def topic_of(query: str, about: str) -> Topic:
    """Take a question apart."""
    name = name_of(query, about)
    own = {*name.words, *(form for form, _ in name.forms)}
    told = [w.text for w in split(about) if w.text not in own and stem(w.text) not in own]
    core = [word for word in name.words if word not in KINDS] or name.words
    plain = not (name.codes or name.boundless) and everyday_words().issuperset(core)
    return Topic(
        name,
        query,
        " ".join(told),
        frozenset(w.text for w in split(f"{query} {about}") if w.text not in SMALL),
        plain * (1.0 if len(core) == 1 else _TOGETHER),
        frozenset(_FIGURE.findall(query.casefold())),
    )


@cache
def everyday_words() -> frozenset[str]:
    """Words that brands like to take as their names, from general knowledge of English."""
    text = files("api.judges").joinpath("local_everyday.txt").read_text("utf-8")
    return frozenset(text.split())


def page(
    question: Question, texts: Sequence[Shown], source: str, vectors: Vectors | None
) -> list[Row]:
    """Measure the texts of one page; without `vectors` likeness is a share of words."""
    topic = topic_of(question.text, question.about)
    readings = [Reading(topic, shown) for shown in texts]
    rows = [_row(reading, shop=source == "amazon") for reading in readings]
    if vectors is None:
        pairs = [_overlap(reading) for reading in readings]
    else:
        pairs = _likeness(topic, readings, vectors) if readings else []
    for row, reading, (like, sense) in zip(rows, readings, pairs, strict=True):
        row["like"], row["named_like"] = like, reading.strength(0, 1) * like
        row["sense"] = row["named"] * topic.everyday * sense
    return rows


def _row(reading: Reading, *, shop: bool) -> Row:
    topic, (title, passage), text = reading.topic, reading.lines, "\n".join(reading.lines)
    strength, comment = reading.strength(0, 1), reading.shown.comment
    named = float(strength >= NEARLY)
    strong = [
        (line, sighting)
        for line in (0, 1)
        for sighting in reading.found[line]
        if sighting.strength >= PART
    ]
    made_for = [marks.made_for(reading.lines[at], seen) for at, seen in strong][:1] == [True]
    small = bool(strong) and all(reading.lines[at][seen.start].islower() for at, seen in strong)
    cased = len(_CAPITAL.findall(text)) >= _CASED
    other_title, other_passage = (
        other_version(topic.name, reading.words[line], reading.found[line]) for line in (0, 1)
    )
    return {
        "named": named,
        "handle": float(any(reading.words[at][seen.at].marked for at, seen in strong)),
        "words": reading.share(0, 1) * (len(topic.name.words) > 1),
        "figures": _held(topic.figures, text),
        "place": float(names_it(topic.name, reading.shown.place) or bool(reading.shown.author)),
        "pointer": float(reading.thread and strength < PART and marks.points(passage)),
        "late": float(bool(title) and reading.strength(1) >= NEARLY > reading.strength(0)),
        "everyday": topic.everyday * named * (bool(title or topic.about) and not comment),
        "small": topic.everyday * named * (small and cased),
        "version": float(other_title or (strength < WHOLE and other_passage)),
        "made_for": float(shop and made_for),
        "advert": min(len(marks.adverts("" if shop else title, text, topic.known)), 2) / 2,
        "job": float(marks.job(text)),
        "order": float(marks.order(text, topic.known)),
    }


def _likeness(
    topic: Topic, readings: Sequence[Reading], vectors: Vectors
) -> list[tuple[float, float]]:
    """How near each text is to question and page, and how near to the description alone.

    The page counts by those other texts that name the thing and are near the question. For a name
    that is an everyday word the description says what is near.
    """
    numpy, name = vectors.numpy, topic.name
    told = vectors.unit(topic.about)
    plain = topic.everyday * _TOLD * bool(topic.about)
    wanted = vectors.normal((1 - plain) * vectors.unit(topic.query.lower()) + told)
    units = vectors.units([_NOISE.sub(" ", "\n".join(r.lines).lower()) for r in readings])
    strengths = numpy.array([reading.strength(0, 1) for reading in readings])
    trust = numpy.maximum(strengths / 2 + units @ wanted - 0.5, 0.0)[:, None]
    others = (trust * units).sum(axis=0) + wanted - trust * units
    lengths = numpy.sqrt((others * others).sum(axis=1))
    near = (others * units).sum(axis=1) / numpy.where(lengths > 0, lengths, 1.0)
    own = {*name.words, *(form for form, _ in name.forms)}
    bare = [
        " ".join(w.text for words in r.words for w in words if not {w.text, stem(w.text)} & own)
        for r in readings
    ]
    senses = vectors.units(bare) @ told
    return [
        (max(like, 0.0), max(sense, 0.0))
        for like, sense in zip(near.tolist(), senses.tolist(), strict=True)
    ]


def _overlap(reading: Reading) -> tuple[float, float]:
    """`_likeness` by shared words."""
    there = {stem(word.text) for words in reading.words for word in words}
    known = {stem(word) for word in reading.topic.known}
    told = {stem(word) for word in reading.topic.about.split()} - SMALL
    return len(known & there) / (len(known) or 1), min(len(told & there), 2) / 2


def _within(word: str, runs: set[str]) -> bool:
    return len(word) >= _LONG and any(run.startswith(word) or run.endswith(word) for run in runs)


def _held(wanted: frozenset[str], text: str) -> float:
    """Share of the question's figures that a text holds."""
    return len(wanted.intersection(_FIGURE.findall(text.casefold()))) / (len(wanted) or 1)
