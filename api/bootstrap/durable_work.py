"""The durable engine of a house: opened in the background, tended while the house is open."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, TypeVar

from api.core.work import Resume, Work
from api.errors import StoreUnavailable
from api.features.analyses.store_ports import Store
from api.settings import Settings

if TYPE_CHECKING:
    from api.store.durable_engine import DurableEngine


T = TypeVar("T")
BEAT = 10.0
"""Seconds between two looks at what other processes have left."""
LOST = "the record of its work is gone; ask its question again"
_log = logging.getLogger(__name__)


async def nothing() -> None:
    """Nothing else is looked for."""


@dataclass(slots=True)
class DurableWorkEngine:
    """See `Engine` for the contract; whoever needs it waits until it is open."""

    settings: Settings
    store: Store
    resume: Mapping[str, Resume] = field(default_factory=dict)
    look: Callable[[], Awaitable[None]] = nothing
    """What else is looked for each time."""
    beat: float = BEAT
    _missing: frozenset[str] = frozenset()
    """Work unknown to the engine at the last look; it may have been about to be noted."""
    _opening: asyncio.Task[DurableEngine] | None = None
    _tending: asyncio.Task[None] | None = None

    async def opened(self) -> DurableEngine:
        """The engine; one that could not be opened is tried again.

        Raises:
            StoreUnavailable: its database cannot be used.
        """
        if self._opening is None or (self._opening.done() and self._opening.exception()):
            self._opening = asyncio.create_task(self._open(), name="opening the engine")
        return await asyncio.shield(self._opening)

    async def run(self, kind: str, work_id: str, request: str, work: Work[T]) -> T:
        """See `Engine`."""
        return await (await self.opened()).run(kind, work_id, request, work)

    async def enqueue(self, kind: str, work_id: str, request: str, tenant: str) -> None:
        """See `DurableEngine`."""
        await (await self.opened()).enqueue(kind, work_id, request, tenant)

    async def known(self, work_ids: Collection[str]) -> set[str]:
        """See `DurableEngine`."""
        return await (await self.opened()).known(work_ids)

    async def find(self, prefix: str) -> str | None:
        """See `Engine`."""
        return await (await self.opened()).find(prefix)

    async def cancel(self, prefix: str) -> None:
        """See `Engine`."""
        await (await self.opened()).cancel(prefix)

    async def aclose(self) -> None:
        """Look no more; what still runs is another process's."""
        if self._tending is not None:
            self._tending.cancel()
            await asyncio.wait({self._tending})
        if self._opening is not None:
            await asyncio.wait({self._opening})
            if not self._opening.exception():
                await self._opening.result().aclose()

    async def _open(self) -> DurableEngine:
        module = await asyncio.to_thread(import_module, "api.store.durable_engine")
        from api.store.database import work_url

        limits = self.settings.limits
        most = limits.at_once or 1_000
        engine: DurableEngine = await module.open_engine(
            work_url(self.settings.general.database_url),
            await self.store.appear(),
            version("listenpost"),
            module.Share(everywhere=10 * most, here=most, tenant=5 * most),
            self.resume,
        )
        self._tending = asyncio.create_task(self._tend(engine), name="tending the engine")
        return engine

    async def _tend(self, engine: DurableEngine) -> None:
        while True:
            try:
                await engine.tend(self.store.gone)
                await self._mourn(engine)
                await self.look()
            except StoreUnavailable as error:
                _log.warning("work of other processes could not be looked for: %s", error)
            await asyncio.sleep(self.beat)

    async def _mourn(self, engine: DurableEngine) -> None:
        """Mark analyses failed of which the engine has known no work at two looks."""
        running = {work.work_id: work for work in await self.store.durable()}
        known = await engine.known(running) if running else set()
        missing = frozenset(running.keys() - known)
        for work_id in missing & self._missing:
            work = running[work_id]
            await self.store.fail(work.tenant, work.analysis_id, LOST)
        self._missing = missing
