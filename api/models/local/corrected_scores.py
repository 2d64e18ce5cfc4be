"""What a person's corrections of a question's items say about its other items.

A Gaussian process over the texts takes up what the judge's scores leave unexplained of the
corrections: a text that resembles a misjudged one moves with it. How much resemblance says differs
by question, so that this strength is learnt from the corrections themselves, by leaving out one
after the other, and stays 0 until they bear it out.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from api.core.words import MINOR_WORDS, stem
from api.models.local.likeness import sense_vectors
from api.models.local.reading import Reading
from api.models.local.word_vectors import Vectors

STRENGTHS = (1.0, 2.0, 4.0, 8.0)
"""Variances of the process that are tried beside 0, in squared score units."""
CAUTION = 15.0
"""What each left out must gain in log likelihood over the judge alone, summed over all corrections
and multiplied by their number: 5.0 for three of them, 1.5 for ten."""
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
    """What is added to the scores (log odds) of other texts, one number each.

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
    """How alike texts are, each with each: by words, and by standing in one community.

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
    """One row a text: which words it holds, rare ones counting more."""
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
