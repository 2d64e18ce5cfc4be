"""What a server does in the background: durable work, and the runs of watches that are due."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Protocol, TypeVar

from pydantic import TypeAdapter

from api.bootstrap import mode_of
from api.core.work import Defect, GiveUp, ProcessStopping, Resume, Work, WorkLease, translated
from api.errors import AccessDenied, Conflict, ListenpostError, NotFound, StoreUnavailable, UsageError, extras_named
from api.features.analyses.api_keys import REVOKED
from api.features.analyses.rejudging import with_chosen_sense
from api.features.analyses.store_ports import WATCH, Store
from api.features.watches.watch import MOST_WATCHES, Watch, check_one_product, check_watch
from api.features.watches.watch_run import WatchRun
from api.features.watches.watch_service import MOST_NEWS, WatchRunner, find_watch, new_run_id, utc_now
from api.pipeline.gate.name_index import is_findable
from api.reports.report import Report
from api.services.product import Ask
from api.settings import Settings
from api.sources import ALL_SOURCES, ARCHIVE, SOURCES, check_askable

if TYPE_CHECKING:
    from api.features.analyses.api_keys import Keys
    from api.features.analyses.runner import Runner
    from api.notifications.delivery import Notifier
    from api.store.durable_engine import DurableEngine


T = TypeVar("T")
TEND_SECONDS = 10.0
"""Seconds between two looks for work that other processes left."""
MOST_DUE = 1_000
"""Watches that are queued at a time."""
WATCH_RUN = "watch"
"""Kind of durable work that is a run of a watch."""
LOST_SECONDS = 60.0
"""Time for which the engine may not know work that an analysis waits for. An analysis is marked as running before its
work is stored, which a busy server of two over one SQLite file has done after more than two looks."""
GIVEN_UP = "four processes died while they did it, so it is not continued; ask with fewer sources or items"
"""Reason of an analysis, or of a run of a watch, whose work is given up."""
LOST = "the record of its work is gone; ask its question again"
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class BackgroundEngine:
    """An `Engine` that is opened in the background; who needs it waits until it is open."""

    settings: Settings
    store: Store
    resume: Mapping[str, Resume]
    """Functions that continue work, by its kind."""
    give_up: GiveUp
    look: Callable[[], Awaitable[None]]
    """Called in each round in which work of other processes is searched."""
    pause: float = TEND_SECONDS
    patience: float = LOST_SECONDS
    _missing: dict[str, float] = field(default_factory=dict)
    """Work that the engine does not know, and since when (monotonic seconds)."""
    _opening: asyncio.Task[DurableEngine] | None = None
    _tending: asyncio.Task[None] | None = None

    async def opened(self) -> DurableEngine:
        """The engine; when it could not be opened, opening is tried again.

        Raises:
            StoreUnavailable: its database cannot be used.
        """
        if self._opening is None or (self._opening.done() and self._opening.exception()):
            self._opening = asyncio.create_task(self._open(), name="opening the engine")
        return await asyncio.shield(self._opening)

    async def run(self, kind: str, work_id: str, request: str, work: Work[T]) -> T:
        """See `Engine`; waits until it is open."""
        return await (await self.opened()).run(kind, work_id, request, work)

    async def enqueue(self, kind: str, work_id: str, request: str, tenant: str) -> None:
        """See `Engine`; waits until it is open."""
        await (await self.opened()).enqueue(kind, work_id, request, tenant)

    async def known(self, work_ids: Collection[str]) -> set[str]:
        """See `Engine`; waits until it is open."""
        return await (await self.opened()).known(work_ids)

    async def find(self, prefix: str) -> str | None:
        """See `Engine`; waits until it is open."""
        return await (await self.opened()).find(prefix)

    async def cancel(self, prefix: str) -> None:
        """See `Engine`; waits until it is open."""
        await (await self.opened()).cancel(prefix)

    async def aclose(self) -> None:
        """Stop looking; another process continues what still runs."""
        if self._opening is None:
            return
        await asyncio.wait({self._opening})  # which ends by beginning to look
        if self._tending is not None:
            self._tending.cancel()
            await asyncio.wait({self._tending})
        if not self._opening.exception():
            await self._opening.result().aclose()

    async def _open(self) -> DurableEngine:
        with extras_named():
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
        """Search for work in rounds; a failing part of a round stops neither the other parts nor the next round."""
        while True:
            for part in (
                partial(engine.tend, self.store.gone, self.give_up),
                partial(self._fail_lost_work, engine),
                self.look,
            ):
                try:
                    await translated(part(), "a look for work of other processes", Defect)
                except (ListenpostError, TimeoutError) as error:
                    _log.warning("work of other processes could not be looked for: %s", error)
                    if isinstance(error, StoreUnavailable):
                        break
            await asyncio.sleep(self.pause)

    async def _fail_lost_work(self, engine: DurableEngine) -> None:
        """Mark analyses as failed whose work the engine has not known for `patience` seconds."""
        running = {work.work_id: work for work in await self.store.durable()}
        known = await engine.known(running) if running else set()
        now = time.monotonic()
        self._missing = {work_id: self._missing.get(work_id, now) for work_id in running.keys() - known}
        for work_id, since in self._missing.items():
            if now - since > self.patience:
                work = running[work_id]
                await self.store.fail(work.tenant, work.analysis_id, LOST)


@dataclass(frozen=True, slots=True)
class RunRequest:
    """Data that a process needs to run a watch, or to continue a run that another began."""

    tenant: str
    watch_id: str
    run_id: str
    due_at: datetime | None
    """When it was due; None when a person requested the run."""


_REQUEST = TypeAdapter(RunRequest)


class WatchContext(Protocol):
    """The parts of an `AppContext` that running a watch needs."""

    settings: Settings
    store: Store
    keys: Keys
    runner: Runner
    engine: BackgroundEngine | None


def watching_of(context: WatchContext) -> WatchRunner:
    """Runs watches, each as an analysis of its tenant within that tenant's limits."""

    async def analyze(watch: Watch, ask: Ask, run_id: str) -> Report:
        tenant = await context.keys.tenant(watch.tenant)
        if tenant is None:
            raise AccessDenied(REVOKED)
        try:
            return await context.runner.run(tenant, ask, key=f"{WATCH}{run_id}:{ask.since}")
        except ProcessStopping:  # the run stops too, and counts as not failed
            raise asyncio.CancelledError from None

    return WatchRunner(
        context.store,
        analyze,
        notifier_of(context.settings).send,
        ALL_SOURCES,
        context.settings.ranking.duplicate_similarity,
        window=0 if mode_of(context.settings) == "sandbox" else context.settings.sources.page_ttl,
    )


async def run_watch(context: WatchContext, watch: Watch) -> WatchRun:
    """Run a watch now; with an engine another process continues the run if this one dies.

    Raises:
        Conflict: it is being run, or is gone.
        StoreUnavailable: the database cannot be used.
    """
    watching, run_id = watching_of(context), new_run_id()
    if context.engine is None:
        return await watching.run(watch, run_id)
    request = RunRequest(watch.tenant, watch.id, run_id, None)

    async def work(lease: WorkLease) -> WatchRun:
        return await watching.run(watch, run_id, lease.run_step)

    return await context.engine.run(WATCH_RUN, f"watch.{watch.id}.{run_id}", _REQUEST.dump_json(request).decode(), work)


async def queue_due(context: WatchContext) -> None:
    """Queue the watches that are due, for whichever process has room; each once.

    Raises:
        StoreUnavailable: the database cannot be used.
    """
    assert context.engine is not None
    due = {
        f"watch.{watch.id}.{watch.due_at:%Y%m%dT%H%M%S.%f}": watch
        for watch in await context.store.due_watches(utc_now(), MOST_DUE)
    }
    if not due:
        return
    for work_id in due.keys() - await context.engine.known(due):
        watch = due[work_id]
        request = RunRequest(watch.tenant, watch.id, new_run_id(), watch.due_at)
        await context.engine.enqueue(WATCH_RUN, work_id, _REQUEST.dump_json(request).decode(), watch.tenant)


async def resume_run(context: WatchContext, written: str, lease: WorkLease) -> None:
    """Run a watch that was due, or continue a run that another process began."""
    request, watching = _REQUEST.validate_json(written), watching_of(context)
    if request.due_at is not None:
        await watching.run_as_due(request.tenant, request.watch_id, request.due_at, request.run_id, lease.run_step)
        return
    with suppress(Conflict, NotFound):  # it ended before, or the watch is gone
        watch = await find_watch(context.store, request.tenant, request.watch_id)
        if not await _is_stored(context.store, request):
            await watching.run(watch, request.run_id, lease.run_step)


async def _is_stored(store: Store, request: RunRequest) -> bool:
    """Whether the run has ended, since its process may have died after storing it."""
    ended = await store.watch_runs(request.tenant, request.watch_id, MOST_NEWS)  # of streams, too
    return request.run_id in {run.id for run in ended}


async def give_up_work(context: WatchContext, kind: str, written: str) -> None:
    """Store that an analysis, or a run of a watch, has failed and is not continued; see `GiveUp`."""
    if kind != WATCH_RUN:
        await context.runner.give_up(written, GIVEN_UP)
        return
    request = _REQUEST.validate_json(written)
    if not await _is_stored(context.store, request):
        await watching_of(context).give_up(request.tenant, request.watch_id, request.due_at, request.run_id, GIVEN_UP)


def notifier_of(settings: Settings) -> Notifier:
    """Sends notifications as the settings say."""
    from api.notifications.delivery import (
        MailSender,
        Notifier,  # loads HTTP and mail clients
        Webhooks,
    )

    server = (settings.general.public_url or "").rstrip("/")
    return Notifier(Webhooks(settings.general.notify_private, server=server), MailSender(settings.mail, server=server))


async def keep_watch(store: Store, watch: Watch, *, new: bool) -> Watch:
    """Add or change a watch, if it could run, and return it as it is kept.

    A new one that describes nothing takes the sense that its tenant chose for the name.

    Raises:
        UsageError: it could never run, asks an unknown source or the archive, compares products and
            is new, or its tenant has too many. One over the archive can still be paused.
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
        watch = await with_chosen_sense(store, watch.tenant, watch)
        check_one_product(watch)
    _check_findable(watch)
    if new:
        await store.add_watch(watch, MOST_WATCHES)
    elif not await store.change_watch(watch):
        raise UsageError(f"the watch “{watch.name}” is gone")
    return watch


def _check_findable(watch: Watch) -> None:
    """Refuse one that notifies as it happens where a text of a stream cannot show its name; raises `UsageError`."""
    if watch.as_it_happens and not is_findable(watch.query, watch.about):
        raise UsageError(
            f"“{watch.query[:60]}” is a very common or short word, and a stream is searched for names alone: say with "
            "`--about` (`about`) what the product is, in words that people write beside its name",
            field="as_it_happens",
        )
