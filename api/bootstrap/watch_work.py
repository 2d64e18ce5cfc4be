"""Watches over an open house: who analyses, who tells, which places there are, and what is due."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from pydantic import TypeAdapter

from api.core.work import ProcessStopping, WorkLease
from api.errors import AccessDenied, Conflict, NotFound, UsageError
from api.features.analyses.api_keys import REVOKED
from api.features.analyses.store_ports import WATCH
from api.features.watches.watch import Watch, check_watch
from api.features.watches.watch_ports import Watches
from api.features.watches.watch_run import WatchRun
from api.features.watches.watch_service import Watching, new_run_id, utc_now, watch_of
from api.reports.report import Report
from api.services.product import Ask
from api.settings import Settings
from api.sources import ALL_SOURCES, ARCHIVE, SOURCES, check_askable

if TYPE_CHECKING:
    from api.bootstrap.durable_work import DurableWorkEngine
    from api.features.analyses.api_keys import Keys
    from api.features.analyses.runner import Runner
    from api.features.analyses.store_ports import Store
    from api.notifications import Notifier


MOST = 100
"""Watches of one tenant."""
KIND = "watch"
"""Of durable work."""
MOST_DUE = 1_000
"""Watches that are left to the queue at a time."""


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What a process needs to run a watch, or to go on with a run that another began."""

    tenant: str
    watch_id: str
    run_id: str
    due_at: datetime | None
    """When it was due; None: somebody wanted it now."""


_REQUEST = TypeAdapter(RunRequest)


class WatchContext(Protocol):
    """What running a watch needs of an `AppContext`."""

    settings: Settings
    store: Store
    keys: Keys
    runner: Runner
    engine: DurableWorkEngine | None


def watching_of(app_context: WatchContext) -> Watching:
    """What runs the watches of a house, each as its tenant's analysis within its limits."""

    async def analyze(watch: Watch, ask: Ask, run_id: str) -> Report:
        tenant = await app_context.keys.tenant(watch.tenant)
        if tenant is None:
            raise AccessDenied(REVOKED)
        try:
            return await app_context.runner.run(tenant, ask, key=f"{WATCH}{run_id}:{ask.since}")
        except ProcessStopping:  # so does the run, of which nobody is told that it failed
            raise asyncio.CancelledError from None

    return Watching(
        app_context.store,
        analyze,
        notifier_of(app_context.settings).send,
        ALL_SOURCES,
        app_context.settings.ranking.duplicate_similarity,
    )


async def run_watch(app_context: WatchContext, watch: Watch) -> WatchRun:
    """Run a watch now; when this process dies, the next one of a durable house goes on.

    Raises:
        Conflict: it is being run, or is gone.
        StoreUnavailable: the database cannot be used.
    """
    watching, run_id = watching_of(app_context), new_run_id()
    if app_context.engine is None:
        return await watching.run(watch, run_id)
    request = RunRequest(watch.tenant, watch.id, run_id, None)

    async def work(lease: WorkLease) -> WatchRun:
        return await watching.run(watch, run_id, lease.run_step)

    return await app_context.engine.run(
        KIND, f"watch.{watch.id}.{run_id}", _REQUEST.dump_json(request).decode(), work
    )


async def queue_due(app_context: WatchContext) -> None:
    """Leave what is due to whichever process has room; each once, however many look.

    Raises:
        StoreUnavailable: the database cannot be used.
    """
    assert app_context.engine is not None
    due = {
        f"watch.{watch.id}.{watch.due_at:%Y%m%dT%H%M%S.%f}": watch
        for watch in await app_context.store.due_watches(utc_now(), MOST_DUE)
    }
    if not due:
        return
    for work_id in due.keys() - await app_context.engine.known(due):
        watch = due[work_id]
        request = RunRequest(watch.tenant, watch.id, new_run_id(), watch.due_at)
        await app_context.engine.enqueue(
            KIND, work_id, _REQUEST.dump_json(request).decode(), watch.tenant
        )


async def resume_run(app_context: WatchContext, written: str, lease: WorkLease) -> None:
    """Run a watch that was due, or go on with a run that another process began."""
    request, watching = _REQUEST.validate_json(written), watching_of(app_context)
    if request.due_at is not None:
        await watching.run_as_due(
            request.tenant, request.watch_id, request.due_at, request.run_id, lease.run_step
        )
        return
    with suppress(Conflict, NotFound):  # it ended before, or the watch is gone
        watch = await watch_of(app_context.store, request.tenant, request.watch_id)
        ended = await app_context.store.watch_runs(watch.tenant, watch.id, 1)
        if not ended or ended[0].id != request.run_id:  # its process may have died behind that
            await watching.run(watch, request.run_id, lease.run_step)


def notifier_of(settings: Settings) -> Notifier:
    """What tells others."""
    from api.notifications import Notifier  # with clients, which a server starts without
    from api.notifications.delivery import Webhooks
    from api.notifications.mail import MailRoom

    return Notifier(Webhooks(settings.general.notify_private), MailRoom(settings.mail))


async def keep_watch(store: Watches, watch: Watch, *, new: bool) -> None:
    """Add a watch, or change one, that could run.

    Raises:
        UsageError: it could never run, asks a place that is none or the archive, or its tenant
            has too many. One over the archive can still be paused.
        StoreUnavailable: the database cannot be used.
    """
    check_watch(watch)
    check_askable(watch.sources)
    if ARCHIVE.name in watch.sources and not watch.paused:
        raise UsageError(
            f"a watch cannot ask `{ARCHIVE.name}`: it holds what is asked and imported beside the "
            f"watch, so its counts would follow that; name any of {', '.join(SOURCES)}"
        )
    if new:
        await store.add_watch(watch, MOST)
    elif not await store.change_watch(watch):
        raise UsageError(f"the watch “{watch.name}” is gone")
