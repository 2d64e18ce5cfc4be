"""`fetch` and `relevance_filter` for a tenant: the same calls, within its limits."""

from __future__ import annotations

from collections.abc import Sequence

from api.services import listening
from api.services.gate.judging import Gate
from api.services.keeping.keys import Tenant
from api.services.keeping.limits import Limits
from api.services.listening import Ask, Heard, Product
from api.services.ports import Listener, silent
from api.services.schemas import Gated, Item, Question


async def fetch(
    limits: Limits, tenant: Tenant, usd: float, product: Product, source: str, ask: Ask,
    listener: Listener = silent,
) -> Heard:  # fmt: skip
    """Ask one source; `usd` is what that may cost at most.

    Raises:
        UsageError: an unknown source, a limit out of range, or a query that names nothing.
        LimitReached: the day's USD do not suffice.
        StoreUnavailable: the limits cannot be read.
    """
    async with limits.spending(tenant, usd=usd) as spent:
        heard = await listening.fetch(product, source, ask, listener=listener)
        spent.asked, spent.usd = bool(heard.usage.input_tokens), heard.usage.usd
    return heard


async def judge(
    limits: Limits, tenant: Tenant, usd: float, gate: Gate, question: Question,
    items: Sequence[Item], source: str,
) -> Gated:  # fmt: skip
    """Judge a tenant's own items; `usd` is what that may cost at most.

    Raises:
        LimitReached: the day's USD do not suffice.
        StoreUnavailable: the limits cannot be read.
    """
    async with limits.spending(tenant, usd=usd) as spent:
        spent.asked = bool(items)
        gated = await gate.judge(question, items, source)
        spent.usd = gated.usage.usd
    return gated
