"""Links that need no key: the feed of a watch, one report, or what people do with one post.

The token of a feed or report reads that alone; a new token replaces the old one. A post's link is signed by the secret
of its watch, does each thing once until that is undone, and ends after `LINK_LIFETIME`.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Literal

from api.errors import Conflict, NotFound
from api.features.analyses.api_keys import Keys, digest
from api.features.analyses.corrections import question_digest
from api.features.analyses.feedback import correct, report_item
from api.features.analyses.inbox import EntryChange, change_entry
from api.features.analyses.limits import Limits
from api.features.analyses.store_ports import Store
from api.features.watches.notification import LINK_LIFETIME, correction_signature
from api.features.watches.watch import Watch
from api.features.watches.watch_ports import InboxEntry, Watches
from api.features.watches.watch_run import WatchRun
from api.reports.report import DroppedItem, KeptItem, Report

LinkAct = Literal["star", "read", "not_about"]
_CHANGES: Mapping[LinkAct, EntryChange] = MappingProxyType({
    "star": EntryChange(starred=True), "read": EntryChange(read=True), "not_about": EntryChange(not_about=True),
})  # fmt: skip
ENTRIES = 50
"""Runs in a feed, the newest that are news."""


async def open_feed(shelf: Watches, watch: Watch) -> str:
    """Make a new address for the watch's feed, below the server's address; it is shown only once.

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
    """Make a new address for a report, below the server's address; it is shown only once.

    Raises:
        NotFound: the tenant has no such analysis.
        StoreUnavailable: the database cannot be used.
    """
    token = secrets.token_urlsafe(32)
    if not await store.set_link(tenant_id, analysis_id, digest(token)):
        raise NotFound("there is no such analysis")
    return f"/shared/{analysis_id}?token={token}"


async def linked_report(store: Store, keys: Keys, limits: Limits, analysis_id: str, token: str) -> Report:
    """The report that this token reads; reads are limited for each report as for a key of its own.

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


@dataclass(frozen=True, slots=True)
class CorrectionLink:
    """Contents of a link in a watch's message; untrusted until `linked_post` has checked it."""

    watch_id: str
    report_id: str
    key: str
    until: int
    """When the link expires, in Unix seconds."""
    signature: str


@dataclass(frozen=True, slots=True)
class LinkedPost:
    """A post that a link may star, mark as read or correct."""

    watch: Watch
    report: Report
    item: KeptItem | DroppedItem
    entry: InboxEntry | None
    """Entry of the inbox; None when it holds none, so that the post can only be corrected."""


async def linked_post(store: Store, keys: Keys, limits: Limits, link: CorrectionLink) -> LinkedPost:
    """The post of a link that is still valid; counted as a read, with a limit of its own for each watch.

    Raises:
        NotFound: it is none of ours, its watch, report or post is gone, or it has expired.
        Conflict: it was used, or somebody corrected the post since.
        LimitReached: too many looks in this minute.
        StoreUnavailable: the database cannot be used.
    """
    watch = await store.watch_of_link(link.watch_id)
    sign = "" if watch is None else correction_signature(watch, link.report_id, link.key, link.until)
    if watch is None or not hmac.compare_digest(sign.encode(), link.signature.encode()):
        raise NotFound("this link is not valid: open it as it stands in the message")
    tenant = await keys.tenant(watch.tenant)
    if tenant is None:
        raise NotFound("this link is not valid any more")
    await limits.admit(replace(tenant, id=f"link:{watch.id}"), looks=True)
    until = datetime.fromtimestamp(link.until, UTC)
    if datetime.now(UTC) > until:
        raise NotFound(f"this link ended on {until:%Y-%m-%d}; correct the post where the report is")
    stored = await store.get(tenant.id, link.report_id)
    report = None if stored is None else stored.report
    item = None if report is None else report_item(report, link.key)
    if report is None or item is None:
        raise NotFound("the report of this link is gone")
    entries = await store.corrections(tenant.id, question_digest(report.question))
    since = [
        entry for entry in entries if entry.correction.key == link.key and entry.created_at >= until - LINK_LIFETIME
    ]
    if since:
        marked = "about it" if since[0].correction.relevant else "not about it"
        day = f"{since[0].created_at:%Y-%m-%d}"
        raise Conflict(f"this post was marked as {marked} on {day}; the link works again once that is undone")
    return LinkedPost(watch, report, item, await store.inbox_entry_of(tenant.id, watch.id, link.key))


async def act_by_link(store: Store, keys: Keys, limits: Limits, link: CorrectionLink, act: LinkAct) -> LinkedPost:
    """Star the post, mark it as read, or mark it as not about the product; returns its new state.

    Raises as `linked_post`, `change_entry` and `correct` do, and:
        NotFound: the inbox does not hold the post.
        Conflict: it is starred, or marked as read, already.
    """
    post = await linked_post(store, keys, limits, link)
    tenant, entry = post.watch.tenant, post.entry
    if act == "not_about" and (entry is None or entry.state.not_about):
        await correct(store, tenant, post.report.id, post.item.key, relevant=False)
        return post
    if entry is None:
        raise NotFound("the inbox does not hold this post, or no longer")
    if entry.state.starred if act == "star" else entry.state.read_at if act == "read" else False:
        raise Conflict(f"this post is {'starred' if act == 'star' else 'marked as read'} already; a link does so once")
    return replace(post, entry=await change_entry(store, tenant, entry.id, _CHANGES[act]))
