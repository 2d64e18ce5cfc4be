"""The judge without a key: names, words and word vectors, on this machine alone.

`local_names` finds the name in every spelling, `local_features` turns a page of texts into numbers,
`local_model` turns those into probabilities. What it can and cannot do: docs/local-judge.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from api.judges.local_features import page
from api.judges.local_model import THRESHOLD, profile_name, profiles
from api.judges.local_names import spelled
from api.judges.local_vectors import Vectors, vectors
from api.services.question.query import LONGEST
from api.services.schemas import Item, Judgement, Question, Verdict
from api.services.text import clean, cut

TITLE, BODY = 300, 200
"""Characters of title and body that count, as at the gate."""
VERSION = "local-1"


@dataclass(frozen=True, slots=True)
class LocalJudge:
    """Answers without network or key, the same for the same page; implements `Judge`."""

    load: Callable[[], Vectors | None] = vectors
    """Where the word vectors come from; loaded with the first question."""

    @property
    def name(self) -> str:
        """Name and version; `local-1-lexical` where no word vectors are installed."""
        return VERSION if self.load() is not None else f"{VERSION}-lexical"

    async def judge(self, question: Question, items: Sequence[Item], source: str) -> Judgement:
        """One verdict per item, in order; see `Judge.judge`. Costs nothing, under 1 ms an item."""
        texts = [_shown(item) for item in items]
        name = self.name
        found = judged(question.text, question.about, texts, source, self.load())
        return Judgement(
            tuple(Verdict(chance >= THRESHOLD, name, round(chance, 4)) for chance in found), name
        )


def probabilities(query: str, about: str, texts: Sequence[str], source: str) -> list[float]:
    """How likely each text is about `query`, from 0 to 1, in order; texts of one page together."""
    return judged(query, about, texts, source, vectors())


def judged(
    query: str, about: str, texts: Sequence[str], source: str, known: Vectors | None
) -> list[float]:
    """`probabilities` with the word vectors at hand; None: by names and words alone."""
    profile = profiles()[profile_name(source, lexical=known is None)]
    name, told = (cut(clean(text), LONGEST) for text in (query, about))
    return profile.probabilities(page(spelled(name), told, [clean(text) for text in texts], known))


def _shown(item: Item) -> str:
    return f"{cut(clean(item.title), TITLE)}\n{cut(clean(item.body), BODY)}"
