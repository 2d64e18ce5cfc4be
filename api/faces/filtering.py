"""The relevance gate for a caller's own items, the same over HTTP and MCP."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from api.faces.web.schemas import Relevance
from api.services.keeping.keys import Tenant
from api.services.schemas import Question
from api.services.text import clean
from api.wiring.serving import House


async def filtered(
    house: House, tenant: Tenant, question: Question, source: str, items: Sequence[dict[str, Any]]
) -> Relevance:
    """Judge the items within the tenant's limits, in one model call for 50 of them.

    Raises:
        LimitReached: the day's USD do not suffice.
        StoreUnavailable: the limits cannot be read.
    """
    await house.product()  # its libraries, which the import below needs, load in the background
    from api.services.tools import shown

    seen = [shown(item, source, number) for number, item in enumerate(items)]
    return Relevance.of(items, await house.judge(tenant, question, seen, clean(source)))
