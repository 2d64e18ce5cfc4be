"""How alike a text and a question are, by word vectors or, without them, by shared words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import regex

from api.judges.local_reading import Reading, Topic
from api.judges.local_vectors import Vectors
from api.services.gate.names import NEARLY
from api.services.gate.words import SMALL, stem

_GIVES_WAY = 0.7
"""How much of an everyday name gives way to its description when texts are compared with it."""
# what says nothing by its letters: links, masked accounts, the marks of handles and hashtags
_NOISE = regex.compile(
    r"https?://\S+|(?<![\w-]|[\w-]\.)\b[\w-]++(?:\.[\w-]++)*\.\p{L}{2,4}/\S*|@user\w*|[#@]"
)


def likeness(
    topic: Topic, readings: Sequence[Reading], vectors: Vectors | None
) -> list[tuple[float, float]]:
    """For each text: how near it is to the question and to its page, and to the description alone.

    Of a page those other texts count that name the thing and are near the question. With vectors
    the second is measured where the name is an everyday word, and 0 elsewhere.
    """
    if vectors is None or not readings:
        return [_overlap(reading) for reading in readings]
    numpy = vectors.numpy
    described, alone = vectors.unit(topic.about), vectors.unit(topic.query)
    plain = topic.everyday * _GIVES_WAY * bool(topic.about)
    units = vectors.units([_NOISE.sub(" ", reading.text.lower()) for reading in readings])
    strengths = numpy.array([reading.overall for reading in readings])

    def near(wanted: Any) -> Any:
        trust = numpy.maximum(strengths / 2 + units @ wanted - 0.5, 0.0)[:, None]
        others = (trust * units).sum(axis=0) + wanted - trust * units
        lengths = numpy.sqrt((others * others).sum(axis=1))
        return (others * units).sum(axis=1) / numpy.where(lengths > 0, lengths, 1.0)

    # a description may only help a post that names the thing, never speak against it
    named = (strengths >= NEARLY) & numpy.array([bool(r.lines[0]) for r in readings])
    like = near(vectors.normal((1 - plain) * alone + described))
    like = numpy.where(named, numpy.maximum(like, near(alone)), like)
    sense = [0.0] * len(readings)
    if topic.everyday:  # to other names it makes no difference
        bare = [_without(topic, reading) for reading in readings]
        sense = (vectors.units(bare) @ described).tolist()
    return [
        (max(near_both, 0.0), max(near_description, 0.0))
        for near_both, near_description in zip(like.tolist(), sense, strict=True)
    ]


def _without(topic: Topic, reading: Reading) -> str:
    """The text without the name."""
    own = topic.name.own
    return " ".join(
        word.text
        for words in reading.words
        for word in words
        if word.text not in own and stem(word.text) not in own
    )


def _overlap(reading: Reading) -> tuple[float, float]:
    there = {stem(word.text) for words in reading.words for word in words}
    known = reading.topic.known
    described = {stem(word) for word in reading.topic.about.split()} - SMALL
    return len(known & there) / (len(known) or 1), min(len(described & there), 2) / 2
