"""Asking a model server what the gate asks, once and as little as that can be."""

from __future__ import annotations

from api.errors import ModelError
from api.judges.booleans import OpenAIJudge
from api.judges.client import ModelClient
from api.services.bills import bill_of
from api.services.schemas import Item, Question, Usage
from api.settings import ModelSettings

_OUTCOMES = {
    "no_key": "not_configured",
    "unauthorized": "refused",
    "rate_limited": "rate_limited",
    "quota": "quota_exhausted",
    "timeout": "timed_out",
    "unreachable": "unreachable",
    "http_error": "unreachable",
}
"""Reason of a `ModelError` -> outcome; any other answer is `broken`."""
_ITEM = Item(
    key="example:1", id="1", source="example", title="Ember mug, two years later: worth it"
)


async def probe(client: ModelClient, models: ModelSettings) -> tuple[str, str]:
    """Outcome and detail of judging one item: how the server wants to be asked, and the cost.

    Cost: about 300 input and 10 output tokens, and what a reasoning model thinks.
    """
    judge = OpenAIJudge(client, models.filter_model, models.scoring_timeout)
    try:
        judged = await judge.judge(Question("ember mug"), (_ITEM,), _ITEM.source)
    except ModelError as error:
        usage, outcome = bill_of(error), _OUTCOMES.get(error.reason, "broken")
        detail = error.detail or error.reason
        if outcome == "broken":
            detail = f"{error.reason}: {detail}"
    else:
        usage, outcome = judged.usage, "ok"
        detail = f"`{models.filter_model}` judged one item"
    adapted = client.adaptations(models.filter_model)
    manner = [f"asked {', '.join(adapted)}"] if adapted else []
    return outcome, "; ".join([detail, *manner, *_cost(usage)])


def _cost(usage: Usage) -> list[str]:
    if usage.usd is None:
        tokens = usage.input_tokens + usage.output_tokens
        return [f"it took {tokens} tokens, whose price is not known"]
    return [f"it cost {usage.usd:.6f} USD"] if usage.usd else []
