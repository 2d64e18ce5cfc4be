"""The judge without a key: names, words and word vectors, on this machine alone.

`local_features` turns a page of texts into numbers, `local_model` turns those into probabilities.
What it can and cannot do: docs/local-judge.md.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from api.judges.local_features import page
from api.judges.local_model import THRESHOLD, Profile, profile_name, profiles
from api.judges.local_reading import Reading, topic_of
from api.judges.local_reasons import reason
from api.judges.local_vectors import Vectors, installed, vectors
from api.services.gate.excerpt import item_of, shown
from api.services.gate.names import KINDS
from api.services.ports import Judgement
from api.services.question.naming import named
from api.services.question.query import LONGEST
from api.services.schemas import Item, Question, Verdict
from api.services.text import clean, cut

VERSION = "local-2"


@dataclass(frozen=True, slots=True)
class LocalJudge:
    """Answers without network or key, the same for the same page; implements `Judge`."""

    load: Callable[[], Vectors | None] = vectors
    """Where the word vectors come from; loaded with the first question."""
    weights: Callable[[], Mapping[str, Profile]] = profiles

    @property
    def name(self) -> str:
        """Name and version; `local-2-lexical` where no word vectors are installed.

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
        """The verdicts of one page, in order."""
        known = self.load()
        question = Question(
            *(cut(clean(text), LONGEST) for text in (named(question.text, KINDS), question.about))
        )
        topic = topic_of(question.text, question.about)
        readings = [Reading(topic, shown(question, item)) for item in items]
        rows = page(topic, readings, source, known)
        verdicts, name = [], self.name
        for reading, row in zip(readings, rows, strict=True):
            profile = self.weights()[profile_name(topic, reading.shown, lexical=known is None)]
            chance = profile.probability(row)
            kept = chance >= THRESHOLD
            why = reason(question, reading, row, profile, kept=kept)
            verdicts.append(Verdict(kept, name, round(chance, 4), reason=why))
        return verdicts


def probabilities(query: str, about: str, texts: Sequence[str], source: str) -> list[float]:
    """How likely each text is about `query`, from 0 to 1, in order; texts of one page together.

    A text is a line of a judge's prompt: title, ` | `, passage.
    """
    items = [item_of(text, source) for text in texts]
    verdicts = LocalJudge().verdicts(Question(query, about), items, source)
    return [verdict.probability or 0.0 for verdict in verdicts]
