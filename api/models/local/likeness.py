"""Likeness of texts to a question: by word vectors or, without them, by shared words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import regex

from api.core.words import split_words
from api.models.local.parsed_text import Reading, Topic, comparable, is_latin
from api.models.local.word_vectors import Vectors
from api.pipeline.gate.name_matches import NEARLY

# How much of an everyday name gives way to its description when texts are compared with it.
_GIVES_WAY = 0.7
# How much the name of a community counts beside the text, where both are nearer to an exclusion.
_SETTING = 0.5
# Words on each side of the name that show in which sense it is used.
_NEARBY = 12
# what says nothing by its letters: links, masked accounts, the marks of handles and hashtags
_NOISE = regex.compile(
    # a domain is taken whole and looked back upon, so that a long run of labels costs no more; it has at most 253
    # characters, so that labels between several dots are not read again from each of them on
    r"https?://\S+|(?<![\w-]|[\w-]\.)\b[\w-]++[\w.-]{0,253}+(?<=[\w-]\.\p{L}{2,4})/\S*|@user\w*|[#@]"
)
# One of these stands in all noise.
_NOISE_SIGNS = frozenset("/#@")


class Likeness(NamedTuple):
    """Likeness of one text to the question and its description; every number is from 0 to 1."""

    like: float
    """Likeness to the question, and to other texts of the page that name the product."""
    sense: float
    """Likeness of the text without the name to the description."""
    nearby: float
    """Likeness of the words around the name to the description."""
    setting: float
    """Likeness of its community's name to the description."""
    excluded: float
    """How much nearer the text is to an exclusion than to the description."""
    lexical: bool
    """Whether shared words were counted, since vectors could not tell."""


def likeness(topic: Topic, readings: Sequence[Reading], vectors: Vectors | None) -> list[Likeness]:
    """Measure the texts of one page.

    Word vectors tell texts in Latin letters apart; in other scripts they consist of pieces of
    letters that are all alike, so that these texts are compared by words.
    """
    if vectors is None or not readings or not is_latin(topic.query + topic.about):
        return [_by_words(reading) for reading in readings]
    return [
        measured if is_latin(reading.text) else _by_words(reading)
        for reading, measured in zip(readings, _by_vectors(topic, readings, vectors), strict=True)
    ]


def sense_vectors(readings: Sequence[Reading], vectors: Vectors) -> Any:
    """Unit vector of each text's words and its community's name, without the product's name."""
    return vectors.units([_without_noise(" ".join(reading.around)) for reading in readings])


def _without_noise(text: str) -> str:
    return _NOISE.sub(" ", text) if not _NOISE_SIGNS.isdisjoint(text) else text


def _by_vectors(topic: Topic, readings: Sequence[Reading], vectors: Vectors) -> list[Likeness]:
    numpy = vectors.numpy
    described, alone = vectors.unit(topic.about), vectors.unit(topic.query)
    plain = topic.everyday * _GIVES_WAY * bool(topic.about)
    units = vectors.units([_without_noise(reading.text.lower()) for reading in readings])
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
    excluded = numpy.zeros(len(readings))
    sense, nearby, setting = excluded, excluded, excluded
    if topic.everyday or topic.excluded:
        meant = vectors.unit(topic.about.lower())
        texts = sense_vectors(readings, vectors)
        settings = vectors.units([" ".join(reading.setting) for reading in readings])
        sense, setting = texts @ meant, settings @ meant
        nearby = vectors.units([" ".join(_nearby(reading)) for reading in readings]) @ meant
        for others in vectors.units([text.lower() for text in topic.excluded]):
            nearer = numpy.maximum(texts @ others - numpy.maximum(sense, 0), 0)
            nearer += _SETTING * numpy.maximum(settings @ others - numpy.maximum(setting, 0), 0)
            excluded = numpy.maximum(excluded, nearer)
    columns = numpy.clip((like, sense, nearby, setting, excluded), 0, 1).tolist()
    return [
        Likeness(to_page, to_meaning, around_name, place, to_others, lexical=False)
        for to_page, to_meaning, around_name, place, to_others in zip(*columns, strict=True)
    ]


def _nearby(reading: Reading) -> list[str]:
    """The words around the name, in title and passage."""
    return [
        word.text
        for words, mentions in zip(reading.words, reading.mentions, strict=True)
        for at, word in enumerate(words)
        if not reading.topic.name.is_own(word.text) and any(abs(at - mention.at) <= _NEARBY for mention in mentions)
    ]


def _by_words(reading: Reading) -> Likeness:
    topic = reading.topic
    text = comparable(word.text for words in reading.words for word in words)
    around = comparable(reading.around)
    sense = _shared(topic.context, around)
    own = topic.context | comparable(topic.name.own)
    others = [comparable(word.text for word in split_words(other)) - own for other in topic.excluded]
    return Likeness(
        len(topic.known & text) / (len(topic.known) or 1),
        sense,
        0.0,
        _shared(topic.context, comparable(reading.setting)),
        max((0.0, *(_shared(other, around) - sense for other in others))),
        lexical=True,
    )


def _shared(wanted: frozenset[str], there: frozenset[str]) -> float:
    """1 when two of the words are there, a half for one."""
    return min(len(wanted & there), 2) / 2
