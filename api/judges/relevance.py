"""Which items are about the question: booleans from one cheap call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from api.judges.answers import booleans
from api.judges.client import ModelClient, Request
from api.judges.prompting import excerpt, quote_question, system
from api.services.gate.excerpt import shown
from api.services.schemas import Item, Judgement, Question, Verdict
from api.services.text import Fence

_TOKENS, _TOKENS_PER_ITEM = 512, 8


@dataclass(frozen=True, slots=True)
class OpenAIJudge:
    """Asks a model about title and 200 characters (`shown`); implements `Judge`."""

    client: ModelClient
    model: str = "gpt-4o-mini"
    seconds: float = 15.0
    fence: Callable[[], Fence] = Fence

    @property
    def name(self) -> str:
        """The model that was asked for."""
        return self.model

    async def judge(self, question: Question, items: Sequence[Item], source: str) -> Judgement:
        """One verdict per item, in order, from one request; see `Judge.judge`.

        Cost: about 85 input and 4 output tokens per item, and 200 per call.
        """
        if not items:
            return Judgement((), self.name)
        answer = await self.client.ask(self._request(question, items, source))
        verdicts = booleans(answer.text, len(items))
        return Judgement(
            tuple(Verdict(relevant, self.name) for relevant in verdicts), self.name, answer.usage
        )

    def _request(self, question: Question, items: Sequence[Item], source: str) -> Request:
        fence, count = self.fence(), len(items)
        user = (
            f"source: {' '.join(excerpt(source, 40).split())}\n{quote_question(question, fence)}\n"
            f"{fence.quote_all(shown(question, item).line for item in items)}"
        )
        return Request(
            name="relevance",
            schema=boolean_schema("relevant", count),
            system=system("relevance", fence),
            user=user,
            max_tokens=_TOKENS + _TOKENS_PER_ITEM * count,
            model=self.model,
            seconds=self.seconds,
        )


def boolean_schema(field: str, count: int) -> dict[str, Any]:
    """A strict schema of one object that holds exactly `count` booleans under `field`."""
    booleans = {
        "type": "array",
        "items": {"type": "boolean"},
        "minItems": count,
        "maxItems": count,
    }
    return {
        "type": "object",
        "additionalProperties": False,
        "required": [field],
        "properties": {field: booleans},
    }
