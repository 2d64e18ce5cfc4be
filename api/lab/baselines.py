"""Judges that a better one has to beat: keep all, words, names, BM25, cosine and a mix of both.

All but `keep_all` compute a score per text and keep it from a threshold on; the scores are no
probabilities, so the verdicts carry none. Each sees the query and the text, not what it is about.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import log

import regex

from api.errors import ConfigurationError
from api.judges.local_vectors import Vectors, vectors
from api.services.gate.excerpt import PASSAGE
from api.services.gate.names import name_of
from api.services.gate.sightings import best, sightings
from api.services.gate.words import split
from api.services.ports import Judgement
from api.services.schemas import Item, Question, Verdict
from api.services.text import clean, cut, fold

NAMES, BM25, COSINE, HYBRID = 0.8, 0.09, 0.25, 0.27
"""Thresholds: the best on the development data, by MCC over all."""
VECTOR_WEIGHT = 0.65
_SATURATION, _LENGTH = 1.2, 0.75
_BOUNDLESS = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}]"
# a word, or a letter of a script without blanks: `ember`, `mug2`; `小`, `米`
_WORD = regex.compile(rf"{_BOUNDLESS}|(?:(?!{_BOUNDLESS})[\p{{L}}\p{{N}}])+")
Scores = Callable[[str, Sequence[str]], Sequence[float]]
"""A query and the texts of one page in, one score per text out."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """Keeps every text whose score reaches a threshold; implements `Judge`."""

    name: str
    scores: Scores
    threshold: float

    async def judge(self, question: Question, items: Sequence[Item], source: str) -> Judgement:
        """One verdict per item, in order; see `Judge.judge`. Costs nothing.

        Raises:
            ConfigurationError: it needs word vectors and they are not installed.
        """
        texts = [f"{clean(item.title)}\n{cut(clean(item.body), PASSAGE)}" for item in items]
        scores = self.scores(clean(question.text), texts) if texts else ()
        return Judgement(
            tuple(Verdict(score >= self.threshold, self.name) for score in scores), self.name
        )


def everything(query: str, texts: Sequence[str]) -> list[float]:
    """One for each text."""
    return [1.0] * len(texts)


def share_of_words(query: str, texts: Sequence[str]) -> list[float]:
    """Share of the query's words in each text; characters count where a script has no blanks."""
    wanted = set(_words(query))
    return [len(wanted & set(_words(text))) / (len(wanted) or 1) for text in texts]


def name_strength(query: str, texts: Sequence[str]) -> list[float]:
    """How well each text holds the name in any of its spellings."""
    name = name_of(query)
    return [best(sightings(name, split(text), text)).strength for text in texts]


def bm25(query: str, texts: Sequence[str]) -> list[float]:
    """BM25 as a share of the most that any text could score; word weights are those of the page."""
    wanted = set(_words(query))
    counts = [Counter(_words(text)) for text in texts]
    mean = sum(count.total() for count in counts) / (len(counts) or 1) or 1.0
    held = {word: sum(word in count for count in counts) for word in wanted}
    rarity = {word: log(1 + (len(texts) - n + 0.5) / (n + 0.5)) for word, n in held.items()}
    most = sum(rarity.values()) * (_SATURATION + 1) or 1.0
    scores = []
    for count in counts:
        brake = _SATURATION * (1 - _LENGTH + _LENGTH * count.total() / mean)
        score = sum(
            weight * count[word] * (_SATURATION + 1) / (count[word] + brake)
            for word, weight in rarity.items()
        )
        scores.append(score / most)
    return scores


def cosine(
    query: str, texts: Sequence[str], load: Callable[[], Vectors | None] = vectors
) -> list[float]:
    """Cosine of the word vectors of query and text.

    Raises:
        ConfigurationError: the vectors are not installed.
    """
    known = load()
    if known is None:
        raise ConfigurationError("word vectors are missing here; install `wordllama`")
    wanted = known.unit(query)
    return [float(row @ wanted) for row in known.units(texts)]


def hybrid(query: str, texts: Sequence[str]) -> list[float]:
    """Cosine and BM25, each stretched from 0 to 1 over the page: some text always wins."""
    near, same = _stretched(cosine(query, texts)), _stretched(bm25(query, texts))
    return [VECTOR_WEIGHT * a + (1 - VECTOR_WEIGHT) * b for a, b in zip(near, same, strict=True)]


BASELINES: Mapping[str, Baseline] = {
    judge.name: judge
    for judge in (
        Baseline("keep_all", everything, 0.0),
        Baseline("keyword", share_of_words, 1.0),
        Baseline("names", name_strength, NAMES),
        Baseline("bm25", bm25, BM25),
        Baseline("cosine", cosine, COSINE),
        Baseline("hybrid", hybrid, HYBRID),
    )
}
"""Every baseline by name."""


def _words(text: str) -> list[str]:
    return [match[0] for match in _WORD.finditer(fold(text))]


def _stretched(scores: Sequence[float]) -> list[float]:
    low, high = min(scores), max(scores)
    return [(score - low) / (high - low) if high > low else 0.0 for score in scores]
