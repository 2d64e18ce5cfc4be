"""Listenpost: what people really say about a product, and only what is about it.

The import package is `api`. Importing it loads no client library: the product behind
`relevance_filter` and the fetch tools is built on first use.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from api.services.ports import Provided, Provider, provide

if TYPE_CHECKING:
    from api.services.tools import (
        fetch_amazon_tool,
        fetch_reddit_tool,
        fetch_youtube_tool,
        listening_toolset,
        relevance_filter,
    )

__all__ = [
    "fetch_amazon_tool",
    "fetch_reddit_tool",
    "fetch_youtube_tool",
    "listening_toolset",
    "relevance_filter",
]


@cache
def _per_loop() -> Provider:
    """What builds products; it is imported with the first."""
    from api.wiring import PerLoop

    return PerLoop().product


async def _provided(own_items: bool) -> Provided:
    return await _per_loop()(own_items)


provide(_provided)


def __getattr__(name: str) -> Any:
    """Load the tools when one of them is asked for."""
    if name not in __all__:
        raise AttributeError(f"module `api` has no attribute `{name}`")
    from api.services import tools

    return getattr(tools, name)
