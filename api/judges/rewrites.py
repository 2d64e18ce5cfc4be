"""Other words under which the same product is discussed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from api.errors import ModelError
from api.judges.answers import entries
from api.judges.client import ModelClient, Request
from api.judges.prompting import asked, excerpt, system
from api.services.ports import Rewrites
from api.services.schemas import Question
from api.services.text import Fence, clean, one_line

_QUERY, _GAP, _GAPS = 120, 200, 20
_TOKENS, _TOKENS_PER_QUERY = 512, 40
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OpenAIRewriter:
    """Asks a model for search queries; implements `Rewriter`."""

    client: ModelClient
    model: str = "gpt-4o-mini"
    seconds: float = 30.0
    fence: Callable[[], Fence] = Fence

    async def rewrite(
        self, question: Question, variants: int, gaps: Sequence[str] = ()
    ) -> Rewrites:
        """At most `variants` queries, the original first; no call for one, see `Rewriter`."""
        if variants <= 1:
            return Rewrites((question.text,))
        try:
            answer = await self.client.ask(self._request(question, variants, gaps))
        except ModelError as error:
            _log.warning("only the original query is asked: %s", error)
            return Rewrites((question.text,))
        try:
            found = entries(answer.text, "queries")
        except ModelError as error:
            _log.warning("only the original query is asked: %s", error)
            return Rewrites((question.text,), answer.usage)
        return Rewrites(_distinct(question.text, found)[:variants], answer.usage)

    def _request(self, question: Question, variants: int, gaps: Sequence[str]) -> Request:
        fence, wanted = self.fence(), variants - 1
        seen = [fence.quote(excerpt(gap, _GAP), "seen") for gap in gaps[:_GAPS]]
        return Request(
            name="rewrites",
            schema=_schema(wanted),
            system=system("rewrites", fence),
            user="\n".join((f"queries wanted: {wanted}", asked(question, fence), *seen)),
            max_tokens=_TOKENS + _TOKENS_PER_QUERY * wanted,
            model=self.model,
            seconds=self.seconds,
        )


def _distinct(original: str, found: Iterable[Any]) -> tuple[str, ...]:
    """The original as it is, then what differs from it in more than case and blanks."""
    queries = {_folded(original): original}
    for value in found:
        query = one_line(clean(value)) if isinstance(value, str) else ""
        if query and len(query) <= _QUERY:
            queries.setdefault(_folded(query), query)
    return tuple(queries.values())


def _folded(query: str) -> str:
    return "".join(query.casefold().split())


def _schema(wanted: int) -> dict[str, Any]:
    queries = {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": wanted}
    return {
        "type": "object",
        "additionalProperties": False,
        "required": ["queries"],
        "properties": {"queries": queries},
    }
