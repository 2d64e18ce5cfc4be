"""Watches over an open house: who analyses, who tells, and which places there are."""

from __future__ import annotations

from api.errors import AccessDenied, UsageError
from api.notifying import Notifier
from api.services.listening import Ask
from api.services.reporting.report import Report
from api.services.watching.running import Watching
from api.services.watching.shelf import Watches
from api.services.watching.watch import Watch, check_watch
from api.settings import Settings
from api.sources import EVERYWHERE, check_askable
from api.wiring.serving import House

MOST = 100
"""Watches of one tenant."""


def watching_of(house: House) -> Watching:
    """What runs the watches of a house, each as its tenant's analysis within its limits."""

    async def analyze(watch: Watch, ask: Ask, run_id: str) -> Report:
        tenant = await house.keys.tenant(watch.tenant)
        if tenant is None:
            raise AccessDenied("the API key that it belongs to is no longer valid")
        return await house.runner.run(tenant, ask, key=f"watch:{run_id}:{ask.window}")

    return Watching(
        house.store,
        analyze,
        notifier_of(house.settings).send,
        EVERYWHERE,
        house.settings.ranking.duplicate_similarity,
    )


def notifier_of(settings: Settings) -> Notifier:
    """What tells others."""
    return Notifier(settings.general.notify_private)


async def keep_watch(store: Watches, watch: Watch, *, new: bool) -> None:
    """Add a watch, or change one, that could run.

    Raises:
        UsageError: it could never run, asks a place that is none, or its tenant has too many.
        StoreUnavailable: the database cannot be used.
    """
    check_watch(watch)
    check_askable(watch.sources)
    if new:
        await store.add_watch(watch, MOST)
    elif not await store.change_watch(watch):
        raise UsageError(f"the watch “{watch.name}” is gone")
