"""The product as one object, and its tools for agents (`api.services.tools`), which get it by `provided`.

`api/__init__` hands over a function that builds the product on first use, so that `import api` loads no client
library and `services` does not import `bootstrap`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from api.services.product import Product


Provider = Callable[[bool], Awaitable["Product"]]
"""Gives the product of the running event loop; with True the one for a caller's own items."""
_provider: list[Provider] = []


def provide(provider: Provider) -> None:
    """Set the function that builds the product; called once by `api/__init__`."""
    _provider[:] = [provider]


async def provided(*, own_items: bool = False) -> Product:
    """The product, one instance per running event loop.

    With `own_items` it is to judge what the caller hands in; then it has no sources.

    Raises:
        ConfigurationError: the environment holds an unknown or malformed setting.
    """
    return await _provider[0](own_items)
