"""The call of the model that says which stored passages answer a question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from api.core.domain import Question
from api.core.ports import Support
from api.models.model_calls import ModelStep, excerpt, quote_question, verdict_call

# Characters of each that the model sees.
_TITLE, _PASSAGE = 120, 600


@dataclass(frozen=True, slots=True)
class OpenAIAnswerChecker(ModelStep):
    """Asks a model about titles with their texts; implements `AnswerChecker`."""

    async def answering(self, question: Question, passages: Sequence[tuple[str, str]]) -> Support:
        """See `AnswerChecker.answering`; about 200 input and 4 output tokens a passage, 200 a call."""
        if not passages:
            return Support((), self.name)
        fence = self.fence()
        lines = quote_question(question, fence)
        for number, (title, text) in enumerate(passages, 1):
            lines.append(fence.quote(excerpt(f"{excerpt(title, _TITLE)} | {text}", _PASSAGE), f"{number} passage"))
        call = verdict_call("answers", "answered", len(passages))
        answered, usage = await self.ask(call, fence, lines)
        return Support(answered, self.name, usage)
