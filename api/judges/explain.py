"""Why there is too little for a report, in a model's words."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from api.errors import ModelError
from api.judges.answers import record
from api.judges.client import ModelClient, Request
from api.judges.prompting import asked, excerpt, system
from api.services.reporting.explaining import MOST_DROPPED, Explanation, Shortfall, fitted, words
from api.services.text import Fence, clean, one_line

_FEWEST_WORDS = 60
_TOKENS = 1200
_LINE, _SUGGESTION = 200, 120
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
        answer = await self.client.ask(self._request(shortfall))
        found = record(answer.text)
        text = _URL.sub("", clean(found.get("explanation_text")))
        if words(text) < _FEWEST_WORDS:
            raise ModelError("malformed", "the explanation is too short")
        return Explanation(fitted(text), _suggestions(found.get("suggestions")), answer.usage)

    def _request(self, shortfall: Shortfall) -> Request:
        fence = self.fence()
        lines = [asked(shortfall.question, fence)]
        lines += [fence.quote(excerpt(q, _LINE), "query") for q in shortfall.queries]
        lines += [fence.quote(excerpt(line, _LINE), "source") for line in shortfall.coverage]
        for title, reason in shortfall.dropped[:MOST_DROPPED]:
            why = f" | reason: {excerpt(reason, _LINE)}" if reason else ""
            lines.append(fence.quote(excerpt(title, _LINE) + why, "dropped"))
        return Request(
            name="explanation",
            schema=_SCHEMA,
            system=system("insufficient", fence),
            user="\n".join(lines),
            max_tokens=_TOKENS,
            model=self.model,
            seconds=self.seconds,
        )


def _suggestions(value: Any) -> tuple[str, ...]:
    """At most three distinct questions."""
    said = value if isinstance(value, list) else []
    found = [one_line(clean(text)) for text in said if isinstance(text, str)]
    return tuple(dict.fromkeys(text for text in found if 0 < len(text) <= _SUGGESTION))[:3]
