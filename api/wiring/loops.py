"""One product per event loop, for callers that bring none."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from functools import cache

from api.judges import Limiter
from api.services.listening import Product
from api.wiring import build, build_gate, load_settings


class PerLoop:
    """Products by running event loop, since clients die with their loop.

    Beside them an unfinished generator is kept: a loop that ends as `asyncio.run` ends it closes
    the generator, and that closes the products.
    """

    def __init__(self) -> None:
        """Build nothing yet."""
        self._loops: dict[
            asyncio.AbstractEventLoop, tuple[Callable[[bool], Product], AsyncGenerator[None]]
        ] = {}

    async def product(self, own_items: bool = False) -> Product:
        """This loop's product, or the one that judges what a caller hands in.

        Each is built when it is first asked for; both share the limit on model calls.

        Raises:
            ConfigurationError: the environment holds an unknown or malformed setting.
        """
        loop = asyncio.get_running_loop()
        if loop not in self._loops:
            settings, products = load_settings(), list[Product]()
            limiter = Limiter(settings.models.model_concurrency)

            @cache
            def built(own_items: bool) -> Product:
                products.append((build_gate if own_items else build)(settings, limiter=limiter))
                return products[-1]

            for dead in [known for known in self._loops if known.is_closed()]:
                del self._loops[dead]
            ending = self._closing(loop, products)
            self._loops[loop] = built, ending
            await anext(ending)
        return self._loops[loop][0](own_items)

    async def _closing(
        self, loop: asyncio.AbstractEventLoop, products: list[Product]
    ) -> AsyncGenerator[None]:
        try:
            yield
        finally:
            self._loops.pop(loop, None)
            await asyncio.gather(*(product.aclose() for product in products))
