"""Links that need no key: the feed of a watch, or one report.

A link's token reads that alone; a new token replaces the old one.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import replace

from api.errors import NotFound
from api.features.analyses.api_keys import Keys, digest
from api.features.analyses.limits import Limits
from api.features.analyses.store_ports import Store
from api.features.watches.watch import Watch
from api.features.watches.watch_ports import Watches
from api.features.watches.watch_run import WatchRun
from api.reports.report import Report

ENTRIES = 50
"""Runs in a feed, the newest that were worth telling."""


async def open_feed(shelf: Watches, watch: Watch) -> str:
    """Where its feed is from now on, below a server's address; shown this once.

    What read it before reads it no more.

    Raises:
        NotFound: the watch is gone.
        StoreUnavailable: the database cannot be used.
    """
    token = secrets.token_urlsafe(32)
    if not await shelf.set_feed(watch, digest(token)):
        raise NotFound(f"the watch “{watch.name}” is gone")
    return f"/v1/feeds/{watch.id}?token={token}"


async def feed_of(
    shelf: Watches, keys: Keys, limits: Limits, watch_id: str, token: str
) -> tuple[Watch, Sequence[WatchRun]]:
    """The watch whose feed this token reads, and its runs; counted as looks of its key.

    Raises:
        NotFound: no feed of this id has this token, or its key is no longer valid: which of these
            is said to nobody.
        LimitReached: too many looks in this minute.
        StoreUnavailable: the database cannot be used.
    """
    watch = await shelf.watch_of_feed(watch_id, digest(token))
    tenant = None if watch is None else await keys.tenant(watch.tenant)
    if watch is None or tenant is None:
        raise NotFound("there is no such feed")
    await limits.admit(tenant, looks=True)
    return watch, await shelf.watch_runs(watch.tenant, watch.id, ENTRIES, news=True)


async def open_link(store: Store, tenant_id: str, analysis_id: str) -> str:
    """Where a report can be read from now on, below a server's address; shown this once.

    Raises:
        NotFound: the tenant has no such analysis.
        StoreUnavailable: the database cannot be used.
    """
    token = secrets.token_urlsafe(32)
    if not await store.set_link(tenant_id, analysis_id, digest(token)):
        raise NotFound("there is no such analysis")
    return f"/shared/{analysis_id}?token={token}"


async def linked_report(store: Store, keys: Keys, limits: Limits, analysis_id: str, token: str) -> Report:
    """The report that this token reads; its readers have the limit of looks of a key of their own.

    Raises:
        NotFound: no report of this id has this token, or its key is no longer valid: which of
            these is said to nobody.
        LimitReached: too many looks in this minute.
        StoreUnavailable: the database cannot be used.
    """
    owner = await store.owner_of_link(analysis_id, digest(token))
    tenant = None if owner is None else await keys.tenant(owner)
    if tenant is not None:
        await limits.admit(replace(tenant, id=f"link:{analysis_id}"), looks=True)
        kept = await store.get(tenant.id, analysis_id)
        if kept is not None and kept.report is not None:
            return kept.report
    raise NotFound("this link shows nothing, or no longer: ask whoever sent it for another")
