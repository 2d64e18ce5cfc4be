"""Why there is too little for a report, in a model's words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import chain

from api.errors import ModelError
from api.judges.answers import record
from api.judges.client import ModelClient, Request
from api.judges.prompting import excerpt, quote_question, strict_object
from api.services.bills import paying
from api.services.prompts import PackagedPrompts, Prompts
from api.services.reporting.clearing import Clearing
from api.services.reporting.explaining import MOST_DROPPED, Explanation, Shortfall, fitted, words
from api.services.reporting.grounds import Ground, ground_of
from api.services.text import Fence, clean, one_line

_FEWEST_WORDS = 60
_TOKENS = 1200
_LINE, _SUGGESTION = 200, 120
"""Characters of a quoted line and of a suggestion."""
_SUGGESTIONS = 3
_SCHEMA = strict_object(
    {
        "explanation_text": {"type": "string"},
        "suggestions": {"type": "array", "items": {"type": "string"}},
    }
)


@dataclass(frozen=True, slots=True)
class OpenAIExplainer:
    """Asks a model to explain a shortfall; implements `Explainer`."""

    client: ModelClient
    model: str = "gpt-4o-mini"
    seconds: float = 30.0
    fence: Callable[[], Fence] = Fence
    prompts: Prompts = field(default_factory=PackagedPrompts)

    async def explain(self, shortfall: Shortfall) -> Explanation:
        """One call; links, names and numbers the model made up go, see `Explainer.explain`."""
        fence = self.fence()
        lines = [quote_question(shortfall.question, fence)]
        lines += [fence.quote(excerpt(query, _LINE), "query") for query in shortfall.queries]
        lines += [fence.quote(excerpt(line, _LINE), "source") for line in shortfall.coverage]
        lines.append(fence.quote(str(shortfall.kept), "kept"))
        if shortfall.own:
            lines.append(fence.quote("yes", "own"))
        for title, reason in shortfall.dropped[:MOST_DROPPED]:
            why = f" | reason: {excerpt(reason, _LINE)}" if reason else ""
            lines.append(fence.quote(excerpt(title, _LINE) + why, "dropped"))
        async with self.prompts.using("insufficient") as prompt:
            answer = await self.client.ask(
                Request(
                    name="explanation",
                    schema=_SCHEMA,
                    system=prompt.filled(rule=fence.rule),
                    user="\n".join(lines),
                    max_tokens=_TOKENS,
                    model=self.model,
                    seconds=self.seconds,
                )
            )
        ground = _ground(shortfall)
        with paying(answer.usage):
            explained = record(answer.text)
            text = _cleared(clean(explained.get("explanation_text")), ground).strip()
            if words(text) < _FEWEST_WORDS:
                raise ModelError("malformed", "the explanation is too short")
        suggestions = explained.get("suggestions")
        lines = [
            one_line(_cleared(line, ground))
            for line in (suggestions if isinstance(suggestions, list) else [])
            if isinstance(line, str)
        ]
        distinct = dict.fromkeys(line for line in lines if 0 < len(line) <= _SUGGESTION)
        return Explanation(
            fitted(text, shortfall.advice), tuple(distinct)[:_SUGGESTIONS], answer.usage
        )


def _ground(shortfall: Shortfall) -> Ground:
    """What the explanation may rest on: what the model is shown, and how many that is."""
    dropped = shortfall.dropped[:MOST_DROPPED]
    given = [*shortfall.queries, *shortfall.coverage, *chain.from_iterable(dropped)]
    counts = (len(shortfall.queries), len(shortfall.coverage), len(dropped), shortfall.kept)
    question = shortfall.question
    return ground_of({}, (question.text, question.about), [*given, *map(str, counts)])


def _cleared(text: str, ground: Ground) -> str:
    return Clearing(lambda _: ground, markdown=False).whole(text)
