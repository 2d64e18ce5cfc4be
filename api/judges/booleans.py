"""One boolean for each of up to 50 things, from one cheap call.

Which items are about the question, and which passages carry the sentences that cite them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from api.judges.answers import booleans
from api.judges.client import ModelClient, Request
from api.judges.prompting import excerpt, quote_question, strict_object
from api.services.bills import paying
from api.services.gate.excerpt import shown
from api.services.ports import Claim, Judgement, Support
from api.services.prompts import PackagedPrompts, PromptName, Prompts
from api.services.reporting.support import LONGEST_SENTENCE
from api.services.schemas import Item, Question, Usage, Verdict
from api.services.text import Fence

_PASSAGE, _CONTEXT = 800, 500
"""Characters of each part that the model sees beside the sentence."""
_TOKENS, _TOKENS_PER_BOOLEAN = 512, 8


@dataclass(frozen=True, slots=True)
class _BooleanModel:
    client: ModelClient
    model: str = "gpt-4o-mini"
    seconds: float = 15.0
    fence: Callable[[], Fence] = Fence
    prompts: Prompts = field(default_factory=PackagedPrompts)

    @property
    def name(self) -> str:
        """The model that was asked for."""
        return self.model

    async def _ask(
        self, name: PromptName, field: str, count: int, fence: Fence, user: str
    ) -> tuple[tuple[bool, ...], Usage]:
        """Exactly `count` booleans under `field`, by the prompt of that name."""
        array = {
            "type": "array", "items": {"type": "boolean"}, "minItems": count, "maxItems": count,
        }  # fmt: skip
        async with self.prompts.using(name) as prompt:
            answer = await self.client.ask(
                Request(
                    name=name,
                    schema=strict_object({field: array}),
                    system=prompt.filled(rule=fence.rule),
                    user=user,
                    max_tokens=_TOKENS + _TOKENS_PER_BOOLEAN * count,
                    model=self.model,
                    seconds=self.seconds,
                )
            )
        with paying(answer.usage):
            return booleans(answer.text, count, field), answer.usage


@dataclass(frozen=True, slots=True)
class OpenAIJudge(_BooleanModel):
    """Asks a model about title and 200 characters (`shown`); implements `Judge`."""

    async def judge(self, question: Question, items: Sequence[Item], source: str) -> Judgement:
        """One verdict per item, in order, from one request; see `Judge.judge`.

        Cost: about 85 input and 4 output tokens per item, and 200 per call.
        """
        if not items:
            return Judgement((), self.name)
        fence = self.fence()
        user = (
            f"source: {' '.join(excerpt(source, 40).split())}\n{quote_question(question, fence)}\n"
            f"{fence.quote_all(shown(question, item).line for item in items)}"
        )
        answers, usage = await self._ask("relevance", "relevant", len(items), fence, user)
        return Judgement(
            tuple(Verdict(relevant, self.name) for relevant in answers), self.name, usage
        )


@dataclass(frozen=True, slots=True)
class OpenAISupport(_BooleanModel):
    """Asks a model about (sentence, passage) pairs; implements `SupportChecker`."""

    async def check(self, question: Question, claims: Sequence[Claim]) -> Support:
        """One boolean per claim, in order, from one request; see `SupportChecker.check`.

        Cost: about 200 input and 4 output tokens per pair, and 250 per call.
        """
        if not claims:
            return Support((), self.name)
        fence = self.fence()
        lines = [quote_question(question, fence)]
        for number, claim in enumerate(claims, 1):
            lines += (
                fence.quote(excerpt(claim.sentence, LONGEST_SENTENCE), f"{number} sentence"),
                fence.quote(excerpt(claim.passage, _PASSAGE), f"{number} passage"),
                fence.quote(excerpt(claim.context, _CONTEXT), f"{number} context"),
            )
        answers, usage = await self._ask(
            "support", "supported", len(claims), fence, "\n".join(lines)
        )
        return Support(answers, self.name, usage)
