"""The judge without a key: name variants and context words, on this machine alone."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from math import exp

import regex

from api.services.schemas import Item, Judgement, Question, Verdict
from api.services.text import clean, cut

BODY = 200
"""Characters of the body that count, as at the gate."""
THRESHOLD = 0.5
_WORD = regex.compile(r"[\p{L}\p{N}]+")
_BOUNDLESS = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Arabic}]")
_WEB = regex.compile(r"\.(?:ai|app|com|co|io|net|org|dev|me)\b", regex.I)
_SMALL = frozenset(
    ("a", "an", "and", "are", "as", "at", "for", "from", "in", "is", "it", "its", "of", "on", "or",
     "that", "the", "this", "to", "vs", "was", "with", "you")
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class LocalJudge:
    """Answers without network or key; implements `Judge`."""

    name: str = "local-1"

    async def judge(self, question: Question, items: Sequence[Item], source: str) -> Judgement:
        """One verdict per item, in order; see `Judge.judge`. Costs nothing."""
        found = probabilities(
            question.text, question.about, [_shown(item) for item in items], source
        )
        return Judgement(
            tuple(Verdict(p >= THRESHOLD, self.name, round(p, 4)) for p in found), self.name
        )


def probabilities(query: str, about: str, texts: Sequence[str], source: str) -> list[float]:
    """How likely each text is about `query`, from 0 to 1, in order."""
    name = _words(_WEB.sub("", clean(query)))
    context = {word for word in _words(clean(about)) if word not in name}
    return [_probability(name, context, clean(text)) for text in texts]


def _shown(item: Item) -> str:
    return f"{clean(item.title)}\n{cut(clean(item.body), BODY)}"


def _probability(name: list[str], context: set[str], text: str) -> float:
    words = _words(text)
    held = set(words)
    folded = "".join(words)
    run = "".join(name)
    if not run:
        return 0.5
    whole = run in folded if _BOUNDLESS.search(run) else _stands(run, name, words)
    share = sum(word in held for word in name) / len(name)
    near = len(context & held) / (len(context) or 1)
    return 1 / (1 + exp(-(-1.6 + 1.8 * whole + 0.9 * share + 5 * min(near, 0.4))))


def _stands(run: str, name: list[str], words: list[str]) -> bool:
    size = len(name)
    return run in words or any(words[i : i + size] == name for i in range(len(words) - size + 1))


def _words(text: str) -> list[str]:
    folded = unicodedata.normalize("NFKD", text.replace("’s", "").replace("'s", "")).casefold()
    plain = "".join(mark for mark in folded if not unicodedata.combining(mark))
    return [word for word in _WORD.findall(plain) if word not in _SMALL]
