"""Why there is too little for a report, in a model's words."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from api.errors import ModelError
from api.judges.answers import record
from api.judges.client import ModelClient, Request
from api.judges.prompting import excerpt, quote_question, system
from api.services.reporting.explaining import MOST_DROPPED, Explanation, Shortfall, fitted, words
from api.services.text import Fence, clean, one_line

_FEWEST_WORDS = 60
_TOKENS = 1200
_LINE, _SUGGESTION = 200, 120
"""Characters of a quoted line and of a suggestion."""
# an address with or without its scheme: `https://example.org/x`, `www.example.org`
_URL = re.compile(r"(?:https?://|www\.)\S+", re.I)
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["explanation_text", "suggestions"],
    "properties": {
        "explanation_text": {"type": "string"},
        "suggestions": {"type": "array", "items": {"type": "string"}},
    },
}


@dataclass(frozen=True, slots=True)
class OpenAIExplainer:
    """Asks a model to explain a shortfall; implements `Explainer`."""

    client: ModelClient
    model: str = "gpt-4o-mini"
    seconds: float = 30.0
    fence: Callable[[], Fence] = Fence

    async def explain(self, shortfall: Shortfall) -> Explanation:
        """One call; links the model made up are removed, see `Explainer.explain`."""
        fence = self.fence()
        lines = [quote_question(shortfall.question, fence)]
        lines += [fence.quote(excerpt(query, _LINE), "query") for query in shortfall.queries]
        lines += [fence.quote(excerpt(line, _LINE), "source") for line in shortfall.coverage]
        for title, reason in shortfall.dropped[:MOST_DROPPED]:
            why = f" | reason: {excerpt(reason, _LINE)}" if reason else ""
            lines.append(fence.quote(excerpt(title, _LINE) + why, "dropped"))
        answer = await self.client.ask(
            Request(
                name="explanation",
                schema=_SCHEMA,
                system=system("insufficient", fence),
                user="\n".join(lines),
                max_tokens=_TOKENS,
                model=self.model,
                seconds=self.seconds,
            )
        )
        explained = record(answer.text)
        text = _URL.sub("", clean(explained.get("explanation_text")))
        if words(text) < _FEWEST_WORDS:
            raise ModelError("malformed", "the explanation is too short")
        return Explanation(fitted(text), _questions(explained.get("suggestions")), answer.usage)


def _questions(suggestions: Any) -> tuple[str, ...]:
    """At most three distinct ones; what is too long, or no text, is left out."""
    values = suggestions if isinstance(suggestions, list) else []
    lines = [one_line(clean(value)) for value in values if isinstance(value, str)]
    return tuple(dict.fromkeys(line for line in lines if 0 < len(line) <= _SUGGESTION))[:3]
