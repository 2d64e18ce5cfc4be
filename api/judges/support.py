"""Whether a passage carries the sentence that cites it: booleans from one call for all pairs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from api.judges.answers import booleans
from api.judges.client import ModelClient, Request
from api.judges.prompting import excerpt, quote_question, system
from api.judges.relevance import boolean_schema
from api.services.ports import Claim, Support
from api.services.reporting.support import LONGEST_SENTENCE
from api.services.schemas import Question
from api.services.text import Fence

_PASSAGE, _CONTEXT = 800, 500
"""Characters of each part that the model sees beside the sentence."""
_TOKENS, _TOKENS_PER_PAIR = 512, 8


@dataclass(frozen=True, slots=True)
class OpenAISupport:
    """Asks a model about (sentence, passage) pairs; implements `SupportChecker`."""

    client: ModelClient
    model: str = "gpt-4o-mini"
    seconds: float = 15.0
    fence: Callable[[], Fence] = Fence

    @property
    def name(self) -> str:
        """The model that was asked for."""
        return self.model

    async def check(self, question: Question, claims: Sequence[Claim]) -> Support:
        """One boolean per claim, in order, from one request; see `SupportChecker.check`.

        Cost: about 200 input and 4 output tokens per pair, and 250 per call.
        """
        if not claims:
            return Support((), self.name)
        fence, count = self.fence(), len(claims)
        pairs = (
            "\n".join(
                (
                    fence.quote(excerpt(claim.sentence, LONGEST_SENTENCE), f"{number} sentence"),
                    fence.quote(excerpt(claim.passage, _PASSAGE), f"{number} passage"),
                    fence.quote(excerpt(claim.context, _CONTEXT), f"{number} context"),
                )
            )
            for number, claim in enumerate(claims, 1)
        )
        answer = await self.client.ask(
            Request(
                name="support",
                schema=boolean_schema("supported", count),
                system=system("support", fence),
                user="\n".join((quote_question(question, fence), *pairs)),
                max_tokens=_TOKENS + _TOKENS_PER_PAIR * count,
                model=self.model,
                seconds=self.seconds,
            )
        )
        return Support(booleans(answer.text, count, "supported"), self.name, answer.usage)
