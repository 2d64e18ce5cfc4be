"""What a generation used, in Langfuse's words."""

from __future__ import annotations

from typing import Any

from api.services.schemas import Usage


def spent(usage: Usage) -> dict[str, Any]:
    """Tokens and cost; an unknown cost is left out, not zero."""
    total = usage.input_tokens + usage.output_tokens
    tokens = {"input": usage.input_tokens, "output": usage.output_tokens, "total": total}
    cost = {} if usage.usd is None else {"cost_details": {"total": usage.usd}}
    return {"usage_details": tokens, **cost}
