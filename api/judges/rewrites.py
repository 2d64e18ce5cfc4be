"""Other words under which the same product is discussed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from api.errors import ModelError
from api.judges.answers import entries
from api.judges.client import ModelClient, Request
from api.judges.prompting import excerpt, quote_question, strict_object
from api.services.bills import bill_of
from api.services.ports import Rewrites
from api.services.prompts import PackagedPrompts, Prompts
from api.services.schemas import Question, Usage
from api.services.text import Fence, clean, one_line

_QUERY, _GAP, _GAPS = 120, 200, 20
"""Characters of a query and of a gap, and gaps, that are taken."""
_TOKENS, _TOKENS_PER_QUERY = 512, 40
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OpenAIRewriter:
    """Asks a model for search queries; implements `Rewriter`."""

    client: ModelClient
    model: str = "gpt-4o-mini"
    seconds: float = 30.0
    fence: Callable[[], Fence] = Fence
    prompts: Prompts = field(default_factory=PackagedPrompts)

    async def rewrite(
        self, question: Question, variants: int, gaps: Sequence[str] = ()
    ) -> Rewrites:
        """At most `variants` queries, the original first; no call for one, see `Rewriter`."""
        if variants <= 1:
            return Rewrites((question.text,))
        fence, wanted = self.fence(), variants - 1
        seen = [fence.quote(excerpt(gap, _GAP), "seen") for gap in gaps[:_GAPS]]
        queries = {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": wanted}
        user = "\n".join((f"queries wanted: {wanted}", quote_question(question, fence), *seen))
        usage = Usage()
        try:
            async with self.prompts.using("rewrites") as prompt:
                answer = await self.client.ask(
                    Request(
                        name="rewrites",
                        schema=strict_object({"queries": queries}),
                        system=prompt.filled(rule=fence.rule),
                        user=user,
                        max_tokens=_TOKENS + _TOKENS_PER_QUERY * wanted,
                        model=self.model,
                        seconds=self.seconds,
                    )
                )
            usage = answer.usage
            rewritten = entries(answer.text, "queries")
        except ModelError as error:
            _log.warning("only the original query is asked: %s", error)
            return Rewrites((question.text,), usage + bill_of(error))
        # the original as it is, then what differs from it in more than case and blanks
        distinct = {_folded(question.text): question.text}
        for value in rewritten:
            query = one_line(clean(value)) if isinstance(value, str) else ""
            if query and len(query) <= _QUERY:
                distinct.setdefault(_folded(query), query)
        return Rewrites(tuple(distinct.values())[:variants], usage)


def _folded(query: str) -> str:
    return "".join(query.casefold().split())
