"""How well each kept item answers the question: a grade from 1 to 5, in words and with a quote."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from api.errors import ModelError
from api.judges import GRADED_AT_ONCE
from api.judges.answers import entries
from api.judges.client import ModelClient, Request
from api.judges.prompting import excerpt, quote_question, strict_object
from api.services.bills import bill_of
from api.services.evidence.ranking import best_comments
from api.services.ports import UNGRADED, Grades
from api.services.prompts import PackagedPrompts, Prompt, Prompts
from api.services.reporting.verbatim import verbatim
from api.services.schemas import Grade, Item, Question, Usage
from api.services.text import Fence, clean, cut, one_line

_TOKENS, _TOKENS_PER_ITEM = 512, 300
_TITLE, _COMMENT, _EXPLANATION, _ASPECT = 300, 300, 300, 30
"""Characters of each that are shown or taken."""
_ASPECTS = 5
_GRADE = strict_object(
    {
        "score": {"type": "integer", "enum": [1, 2, 3, 4, 5]},
        "explanation": {"type": "string"},
        "sentiment": {"type": ["integer", "null"], "enum": [-1, 0, 1, None]},
        "aspects": {"type": "array", "items": {"type": "string"}, "maxItems": _ASPECTS},
        "quote": {"type": "string"},
    }
)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OpenAIGrader:
    """Asks a model about chunks of items, all chunks at once; implements `Grader`."""

    client: ModelClient
    model: str = "gpt-4o-mini"
    seconds: float = 15.0
    fence: Callable[[], Fence] = Fence
    prompts: Prompts = field(default_factory=PackagedPrompts)
    chunk: int = GRADED_AT_ONCE
    """Items per call at most."""
    body: int = 1500
    """Characters of the body that the model sees."""
    comments: int = 3
    """Comments per item that the model sees, those that fit the question first."""

    async def grade(self, question: Question, items: Sequence[Item]) -> Grades:
        """One grade per item, in order; what failed is a defaulted 3, logged once with causes."""
        chunks = [items[start : start + self.chunk] for start in range(0, len(items), self.chunk)]
        done = await asyncio.gather(*(self._chunk(question, chunk) for chunk in chunks))
        grades = tuple(chain.from_iterable(part.grades for part in done))
        causes = Counter(chain.from_iterable(part.causes for part in done))
        if causes:
            named = ", ".join(f"{cause}: {count}" for cause, count in causes.items())
            _log.warning("%d of %d grades defaulted to 3 (%s)", causes.total(), len(items), named)
        return Grades(grades, sum((part.usage for part in done), Usage()), self.model)

    async def _chunk(self, question: Question, items: Sequence[Item]) -> _Chunk:
        try:
            async with self.prompts.using("grades") as prompt:
                answer = await self.client.ask(self._request(prompt, question, items))
        except ModelError as error:
            return _defaulted(len(items), error.reason, bill_of(error))
        try:
            written = entries(answer.text, "grades")
        except ModelError as error:
            return _defaulted(len(items), error.reason, answer.usage)
        if len(written) != len(items):
            return _defaulted(len(items), "count_mismatch", answer.usage)
        grades = tuple(_grade(entry, item) for entry, item in zip(written, items, strict=True))
        return _Chunk(grades, tuple("malformed" for g in grades if g.defaulted), answer.usage)

    def _request(self, prompt: Prompt, question: Question, items: Sequence[Item]) -> Request:
        fence = self.fence()
        lines = [quote_question(question, fence)]
        for number, item in enumerate(items, 1):
            texts = (excerpt(item.title, _TITLE), excerpt(item.body, self.body))
            lines.append(fence.quote(" | ".join(text for text in texts if text), str(number)))
            best = (
                excerpt(comment.body, _COMMENT) for comment in best_comments(item, question.text)
            )
            comments = [text for text in best if text][: self.comments]
            lines += [fence.quote(text, f"{number} comment") for text in comments]
        grades = {"minItems": len(items), "maxItems": len(items), "type": "array", "items": _GRADE}
        return Request(
            name="grades",
            schema=strict_object({"grades": grades}),
            system=prompt.filled(rule=fence.rule),
            user="\n".join(lines),
            max_tokens=_TOKENS + _TOKENS_PER_ITEM * len(items),
            model=self.model,
            seconds=self.seconds,
        )


@dataclass(frozen=True, slots=True)
class _Chunk:
    """Grades of one call, and why some of them are defaults: one cause each."""

    grades: tuple[Grade, ...]
    causes: tuple[str, ...]
    usage: Usage


def _defaulted(count: int, cause: str, usage: Usage) -> _Chunk:
    return _Chunk((UNGRADED,) * count, (cause,) * count, usage)


def _grade(entry: Any, item: Item) -> Grade:
    """One entry of the answer, each field believed only as far as it is well-formed."""
    score = entry.get("score") if isinstance(entry, dict) else None
    if type(score) is not int or not 1 <= score <= 5:
        return UNGRADED
    words = entry.get("aspects")
    aspects = [
        one_line(clean(word)).lower()
        for word in (words if isinstance(words, list) else [])
        if isinstance(word, str)
    ]
    sentiment, quote = entry.get("sentiment"), verbatim(entry.get("quote"), item)
    return Grade(
        score,
        cut(one_line(clean(entry.get("explanation"))), _EXPLANATION),
        sentiment=sentiment if type(sentiment) is int and sentiment in {-1, 0, 1} else None,
        aspects=tuple(dict.fromkeys(word for word in aspects if 0 < len(word) <= _ASPECT))[
            :_ASPECTS
        ],
        quote=quote.text if quote is not None else "",
    )
