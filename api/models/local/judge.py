"""The judge without a key: names, words and word vectors, on this machine alone.

`judge_features` turns a page of texts into numbers, fitted weights turn those into scores, and what
a person's corrections say of the question's other items moves these. Figures: docs/local-judge.md.

A Gaussian process over the texts takes up what the scores leave unexplained of the corrections: a
text that resembles a misjudged one moves with it. How much resemblance says differs by question, so
that this strength is learnt from the corrections themselves, by leaving out one after the other,
and stays 0 until they bear it out.
"""

from __future__ import annotations

import asyncio
import importlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from math import exp, log
from typing import Any, NamedTuple

from api.choices import MAX_QUESTION_LENGTH
from api.core.domain import Correction, Question, Verdict
from api.core.items import Item
from api.core.ports import Judgement
from api.core.text import clean, cut, one_line
from api.core.words import MINOR_WORDS, stem
from api.models.local.judge_features import AGAINST, AGAINST_ALL, FOR_ALL, Row, adverts, page
from api.models.local.likeness import sense_vectors
from api.models.local.parsed_text import Reading, Topic, topic_of
from api.models.local.word_vectors import Vectors, installed, vectors
from api.pipeline.gate.excerpt import Excerpt, excerpt_of, parse_excerpt
from api.pipeline.gate.name_matches import BRAND, NEARLY, best
from api.pipeline.question.exclusions import split_exclusions
from api.pipeline.question.product_name import judged_words

THRESHOLD = 0.5
"""Probability from which an item is kept."""
RULED_OUT, RULED_IN, ASIDE = 0.05, 0.6, 0.3
"""Probability after a rule decides against a text; least probability after a rule decides for one; highest
probability of a comment that strays from the subject in a place of the product, and of a text that only lists the
name."""
EXCLUSION = 8.0
"""Score that a text loses when it is nearer to an exclusion than to the description, for the largest possible
difference in likeness; the figures in docs/local-judge.md are the same from 4 to 12."""
LISTING = 6
"""Words of a name above which the question is a title copied from a shop."""


@dataclass(frozen=True, slots=True)
class Profile:
    """Intercept and weights by feature of one logistic model."""

    bias: float
    weights: Mapping[str, float]

    def score(self, row: Row) -> float:
        """Log odds that a text with these features is relevant, before corrections."""
        if any(row[rule] for rule in AGAINST_ALL):
            return _log_odds(RULED_OUT)
        score = self.bias + sum(weight * row[name] for name, weight in self.weights.items())
        if any(row[rule] for rule in FOR_ALL):
            score = max(score, _log_odds(RULED_IN))
        if row["aside"] or row["listed"]:
            score = min(score, _log_odds(ASIDE))
        return score - EXCLUSION * row["excluded"]


def _log_odds(chance: float) -> float:
    return log(chance / (1 - chance))


def profile_name(topic: Topic, excerpt: Excerpt, *, lexical: bool) -> str:
    """Name of the profile that judges a text, by the kind of question and whether the text has a title."""
    kind = "titled" if excerpt.title else "untitled"
    if len(topic.name.words) > LISTING:
        kind = "listing"
    return f"{kind}-lexical" if lexical else kind


@cache
def profiles() -> Mapping[str, Profile]:
    """The shipped weights: `titled`, `untitled`, `listing`, each also `-lexical`."""
    text = files("api.models.local").joinpath("local_weights.json").read_text("utf-8")
    return parse(json.loads(text)["profiles"])


def parse(stored: Mapping[str, Mapping[str, float]]) -> Mapping[str, Profile]:
    """Read profiles from their JSON form, which lists the bias among the weights."""
    return {
        name: Profile(weights["bias"], {k: v for k, v in weights.items() if k != "bias"})
        for name, weights in stored.items()
    }


# Characters of a name, and on each side of a mention, that a reason shows.
_NAME, _AROUND = 40, 24


def reason(question: Question, reading: Reading, row: Row, profile: Profile, *, kept: bool) -> str:
    """What spoke for a kept text, or weighed most against a dropped one."""
    name = cut(one_line(question.text), _NAME)
    if kept:
        return _for(name, reading, row)
    if row["job"]:
        return "a job post"
    if row["order"]:
        return "tells a model what to answer"
    if row["excluded"]:
        return f"nearer to what {name} is not"
    heaviest = min(AGAINST, key=lambda feature: profile.weights.get(feature, 0.0) * row[feature])
    if heaviest == "version" and row["version"]:
        return f"another version than {name}"
    if heaviest == "made_for" and row["made_for"]:
        return f"made for {name}, not {name} itself"
    if heaviest == "advert" and row["advert"]:
        words = adverts(reading.shown.title, reading.text, reading.topic.known)
        return f"advert words: {one_line(words[0])}"
    if row["listed"]:
        return f"names {name} only in a list or in brackets"
    if reading.overall < NEARLY:
        return _nameless(name, reading)
    if row["vague"] or row["small"]:
        return f"another {name}: {_around(reading)}"
    if row["late"]:
        return f"names {name} in passing"
    return f"says little of {name}"


def _for(name: str, reading: Reading, row: Row) -> str:
    if row["named"]:
        return f"names {name}"
    if row["pointer"] or (row["home"] and reading.shown.comment):
        return f"comment of a thread about {name}"
    return f"stands in a place of {name}" if row["place"] else f"sounds like {name}"


def _nameless(name: str, reading: Reading) -> str:
    if reading.thread:
        return f"comment of a thread about {name}, says nothing of it"
    part = reading.overall >= BRAND
    return f"names only a part of {name}" if part else f"names no {name}"


def _around(reading: Reading) -> str:
    """The words around the first mention."""
    for line, mentions in zip(reading.lines, reading.mentions, strict=True):
        if (sighting := best(mentions)).strength:
            start = max(0, sighting.start - _AROUND)
            return one_line(line[start : sighting.start + _AROUND])
    return ""


STRENGTHS = (1.0, 2.0, 4.0, 8.0)
"""Variances of the process that are tried beside 0, in squared score units."""
CAUTION = 20.0
"""What each left out must gain in log likelihood over the judge alone, summed over all corrections
and multiplied by their number: 6.7 for three of them, 2 for ten."""
LATEST = 64
"""Most corrections that are used, the newest ones."""
SAME_PLACE, ANY = 0.5, 0.2
"""Similarity of two texts of one community, and of any two, beside that of their words."""
# Newton steps to the mode of the process; it is reached after five to ten.
_STEPS = 20


class _Posterior(NamedTuple):
    residuals: Any
    """What the fitted chances leave of the labels; similarity to these is the evidence."""
    left_out: Any
    """The score each correction would get from the others, less the judge's own."""


def shifts(scores: Sequence[float], relevant: Sequence[bool], alike: Any) -> list[float]:
    """What corrections add to the scores (log odds) of other texts, one number for each.

    `scores` are the judge's own of the corrected texts. `alike` is `similarity` of the corrected
    texts, in order, and the others behind them.
    """
    numpy = _numpy()
    count = len(scores)
    own, labels = numpy.array(scores), numpy.array(relevant, float)
    among, toward = alike[:count, :count], alike[count:, :count]

    def likelihood(of: Any) -> float:
        return -float(numpy.logaddexp(0, (1 - 2 * labels) * of).sum())

    best, evidence = likelihood(own) + CAUTION / count, numpy.zeros(len(toward))
    for strength in STRENGTHS:
        fitted = _posterior(own, labels, strength * among)
        of_left_out = likelihood(own + fitted.left_out)
        if of_left_out > best:
            best, evidence = of_left_out, strength * toward @ fitted.residuals
    shifted: list[float] = evidence.tolist()
    return shifted


def similarity(readings: Sequence[Reading], vectors: Vectors | None) -> Any:
    """Similarity of each text to each, by words and by a shared community.

    What all have in common is taken off, and a community in which all stand tells nothing.
    """
    numpy = _numpy()
    units = _word_rows(readings) if vectors is None else sense_vectors(readings, vectors)
    centred = units - units.mean(axis=0)
    lengths = numpy.linalg.norm(centred, axis=1, keepdims=True)
    centred = numpy.divide(centred, lengths, out=centred, where=lengths > 0)
    places = ["" if r.shown.comment else r.shown.place.casefold() for r in readings]
    together = [[bool(place) and place == other for other in places] for place in places]
    several = len(set(places)) > 1
    return centred @ centred.T + SAME_PLACE * several * numpy.array(together) + ANY


def _word_rows(readings: Sequence[Reading]) -> Any:
    """One row for each text with weights of its words; rare words weigh more."""
    numpy = _numpy()
    texts = [frozenset(map(stem, reading.around)) - MINOR_WORDS for reading in readings]
    columns = {word: at for at, word in enumerate(sorted(frozenset().union(*texts)))}
    held = numpy.array([[float(word in text) for word in columns] for text in texts])
    return held * numpy.log((len(texts) + 1) / (held.sum(axis=0) + 0.5))


def _posterior(scores: Any, labels: Any, among: Any) -> _Posterior:
    """Laplace's approximation: Rasmussen and Williams, Gaussian Processes, algorithm 3.1."""
    numpy = _numpy()
    mode = numpy.zeros(len(labels))
    for _ in range(_STEPS):
        chances = 1 / (1 + numpy.exp(-(scores + mode)))
        curve = chances * (1 - chances) + 1e-6
        root = numpy.sqrt(curve)
        target = curve * mode + labels - chances
        bend = numpy.eye(len(labels)) + root[:, None] * among * root[None]
        step = among @ (target - root * numpy.linalg.solve(bend, root * (among @ target)))
        done = bool(numpy.abs(step - mode).max() < 1e-6)
        mode = step
        if done:
            break
    chances = 1 / (1 + numpy.exp(-(scores + mode)))
    curve = chances * (1 - chances) + 1e-6
    precision = numpy.linalg.inv(among + numpy.diag(1 / curve))
    # leaving one out, in closed form: section 5.4.2 of the same book, on the fitted curve
    targets = mode + (labels - chances) / curve
    left_out = targets - precision @ targets / numpy.diag(precision)
    return _Posterior(labels - chances, left_out)


def _numpy() -> Any:
    """Loaded with the first corrections: it costs a visible part of a second."""
    return importlib.import_module("numpy")


VERSION = "local-3"


class _Scored(NamedTuple):
    """A text with what the judge makes of it before corrections."""

    reading: Reading
    row: Row
    profile: Profile
    score: float


@dataclass(frozen=True, slots=True)
class LocalJudge:
    """Answers without network or key, the same for the same page; implements `Judge`."""

    load: Callable[[], Vectors | None] = vectors
    """Loads the word vectors at the first question."""
    weights: Callable[[], Mapping[str, Profile]] = profiles

    @property
    def name(self) -> str:
        """Name and version; `local-3-lexical` where no word vectors are installed.

        The installed ones are not loaded for it.
        """
        there = installed() if self.load is vectors else self.load()
        return VERSION if there is not None else f"{VERSION}-lexical"

    async def judge(self, question: Question, items: Sequence[Item], source: str) -> Judgement:
        """One verdict per item, in order; see `Judge.judge`. Costs nothing, under 1 ms an item.

        In a thread, so that the event loop never waits for it, nor for the vectors.
        """
        verdicts = await asyncio.to_thread(self.verdicts, question, items, source)
        return Judgement(tuple(verdicts), self.name)

    def verdicts(self, question: Question, items: Sequence[Item], source: str) -> list[Verdict]:
        """The verdicts of one page, in order; the question's corrections, oldest first, are applied."""
        question = _understood(question)
        judged = self._scored(question, items, source)
        verdicts, name = [], self.name
        for text, shift in zip(judged, self._shifts(question, judged, source), strict=True):
            chance = 1 / (1 + exp(-text.score - shift))
            kept = chance >= THRESHOLD
            if kept != (text.score >= 0):
                why = f"like texts marked as {'right' if kept else 'wrong'}"
            else:
                why = reason(question, text.reading, text.row, text.profile, kept=kept)
            verdicts.append(Verdict(kept, name, round(chance, 4), reason=why))
        return verdicts

    def _scored(self, question: Question, items: Sequence[Item], source: str) -> list[_Scored]:
        topic = topic_of(question.text, question.about, question.not_about, question.aim)
        readings = [Reading(topic, excerpt_of(question, item)) for item in items]
        scored = []
        for reading, row in zip(readings, page(topic, readings, source, self.load()), strict=True):
            kind = profile_name(topic, reading.shown, lexical=bool(row["lexical"]))
            profile = self.weights()[kind]
            scored.append(_Scored(reading, row, profile, profile.score(row)))
        return scored

    def _shifts(self, question: Question, judged: Sequence[_Scored], source: str) -> list[float]:
        """What corrections add to each score; 0 for a text that a rule excludes."""
        corrections = question.corrections[-LATEST:]
        if not corrections or not judged:
            return [0.0] * len(judged)
        items = [_corrected(correction, source) for correction in corrections]
        corrected = self._scored(question, items, source)
        texts = [*corrected, *judged]
        by_words = all(text.row["lexical"] for text in texts)
        moved = shifts(
            [text.score for text in corrected],
            [correction.relevant for correction in corrections],
            similarity([text.reading for text in texts], None if by_words else self.load()),
        )
        return [
            0.0 if any(text.row[rule] for rule in AGAINST_ALL) else shift
            for text, shift in zip(judged, moved, strict=True)
        ]


def _corrected(correction: Correction, source: str) -> Item:
    return Item(
        key=correction.key, id=correction.key, source=source,
        title=correction.title, body=correction.body, place=correction.place,
    )  # fmt: skip


def _understood(question: Question) -> Question:
    """The question with its name alone, clean texts, and exclusions out of its description."""
    about, excluded = split_exclusions(cut(clean(question.about), MAX_QUESTION_LENGTH))
    others = tuple(cut(clean(text), MAX_QUESTION_LENGTH) for text in question.not_about)
    name = cut(clean(judged_words(question.text)), MAX_QUESTION_LENGTH)
    return replace(question, text=name, about=about, not_about=(*others, *excluded))


def probabilities(query: str, about: str, texts: Sequence[str], source: str) -> list[float]:
    """Probability that each text is about `query`, from 0 to 1, in order; the texts are judged together as one page.

    A text is a line of a judge's prompt: title, ` | `, passage. A clause of `about` such as `; not
    the river` says what the product is not.
    """
    items = [parse_excerpt(text, source) for text in texts]
    verdicts = LocalJudge().verdicts(Question(query, about), items, source)
    return [verdict.probability or 0.0 for verdict in verdicts]
