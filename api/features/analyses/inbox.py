"""Actions in the inbox: read, star, annotate and correct entries, mute sites, save filters, undo.

Each change is remembered until the next one, so that the last can be taken back.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from api.choices import MAX_ASSIGNED_LENGTH, MAX_NOTE_LENGTH, MAX_SITE_LENGTH
from api.core.domain import Correction
from api.core.text import clean, cut, is_visible, one_line
from api.errors import NotFound, UsageError
from api.features.analyses.api_keys import Keys, Tenant, digest
from api.features.analyses.corrections import LONGEST_BODY, StoredCorrection, question_digest
from api.features.analyses.corrections import MOST as MOST_CORRECTIONS
from api.features.analyses.feedback import correct, withdraw
from api.features.analyses.limits import Limits
from api.features.analyses.store_ports import Store
from api.features.watches.watch_ports import EntryState, InboxAction, InboxEntry, InboxFilter, InboxSettings
from api.services.product import Ask

MOST_FILTERS, LONGEST_NAME, LONGEST_QUERY = 20, 60, 1_000
"""Saved filters of a tenant, and the characters of the name and the query string of each."""
MOST_MUTED = 50
"""Sites that a tenant mutes."""
MOST_COUNTED = 1_000
"""Most entries that are counted; beyond it the answer says "at least"."""
ENTRIES = 50
"""Entries in a feed of the inbox."""
UNREAD = InboxFilter()
# Time in milliseconds, place in its run, and a mark of watch and post: hexadecimal, so later ones are larger.
_ENTRY_ID = re.compile(r"[0-9a-f]{24}")


@dataclass(frozen=True, slots=True)
class EntryChange:
    """Changes to an entry; None leaves a field unchanged."""

    read: bool | None = None
    starred: bool | None = None
    note: str | None = None
    assigned: str | None = None
    """Name of the person who shall handle the entry; empty: nobody; None: unchanged."""
    not_about: bool | None = None
    """A correction of the gate; an entry marked as not about the product also becomes read."""


async def entry_of(store: Store, tenant: str, entry_id: str) -> InboxEntry:
    """An entry of a tenant's inbox.

    Raises:
        NotFound: there is none of this id.
        StoreUnavailable: the database cannot be used.
    """
    entry = await store.inbox_entry(tenant, entry_id) if entry_id.isascii() and entry_id.isalnum() else None
    if entry is None:
        raise NotFound(f"the inbox has no entry `{one_line(clean(entry_id))[:60]}`")
    return entry


async def change_entry(store: Store, tenant: str, entry_id: str, change: EntryChange) -> InboxEntry:
    """Change what was made of an entry.

    Raises:
        NotFound: there is no such entry, or its report and its watch are gone, so that it cannot be corrected.
        UsageError: the note or the name is too long, or the question has too many corrections.
        StoreUnavailable: the database cannot be used.
    """
    entry = await entry_of(store, tenant, entry_id)
    state, words = entry.state, ""
    if change.read is not None:
        state = replace(state, read_at=(state.read_at or datetime.now(UTC)) if change.read else None)
        words = "marked as read" if change.read else "marked as unread"
    if change.starred is not None:
        state, words = replace(state, starred=change.starred), "starred" if change.starred else "star removed"
    if change.note is not None:
        note = clean(change.note).strip()
        if len(note) > MAX_NOTE_LENGTH:
            raise UsageError(f"a note has {MAX_NOTE_LENGTH} characters at most; this has {len(note)}", field="note")
        state, words = replace(state, note=note), "note saved" if note else "note removed"
    if change.assigned is not None:
        name = one_line(clean(change.assigned))
        if len(name) > MAX_ASSIGNED_LENGTH or (name and not is_visible(name)):
            wrong = f"an entry is assigned to a name of at most {MAX_ASSIGNED_LENGTH} characters"
            raise UsageError(wrong, field="assigned")
        state, words = replace(state, assigned=name), f"assigned to {name}" if name else "assigned to nobody"
    if change.not_about is not None:
        read_at = (state.read_at or datetime.now(UTC)) if change.not_about else state.read_at
        state = replace(state, not_about=change.not_about, read_at=read_at)
        words = "marked as not about it" if change.not_about else "correction removed"
    if state == entry.state:
        return entry
    state = await _settle(store, tenant, entry, state)
    await _remember(store, tenant, InboxAction(words, entry.id, entry.state))
    return replace(entry, state=state)


async def read_all(store: Store, tenant: str, wanted: InboxFilter) -> int:
    """Mark all unread entries of a filter as read; how many they were.

    Raises:
        UsageError: its `newest` is no id of an entry.
        StoreUnavailable: the database cannot be used.
    """
    if wanted.newest and not _ENTRY_ID.fullmatch(wanted.newest):  # another word would be newer than all
        raise UsageError("`newest` is the id of an entry", field="newest")
    now = datetime.now(UTC)
    count = await store.mark_all_read(tenant, wanted, now)
    if count:
        noun = "entry" if count == 1 else "entries"
        await _remember(store, tenant, InboxAction(f"{count:,} {noun} marked as read", read_at=now))
    return count


async def mute(store: Store, tenant: str, site: str) -> None:
    """Leave a site out of every list, count and feed of the inbox; watches still read it.

    Raises:
        UsageError: it names nothing, or there are too many.
        StoreUnavailable: the database cannot be used.
    """
    site = one_line(clean(site))
    if not is_visible(site) or len(site) > MAX_SITE_LENGTH:
        raise UsageError(f"a site is a name of 1 to {MAX_SITE_LENGTH} characters, as an entry has it", field="site")

    def muted(settings: InboxSettings) -> InboxSettings:
        sites = tuple(dict.fromkeys((*settings.sites, site)))
        if len(sites) > MOST_MUTED:
            raise UsageError(f"{MOST_MUTED} sites are muted; show one of them again first", field="site")
        return replace(settings, sites=sites, last=InboxAction(f"muted {site}", site=site))

    await store.change_inbox(tenant, muted)


async def unmute(store: Store, tenant: str, site: str) -> None:
    """List a site's entries again; does nothing when the site is not muted."""

    def shown(settings: InboxSettings) -> InboxSettings:
        sites = tuple(name for name in settings.sites if name != site)
        muted = settings.last is not None and settings.last.site == site  # nothing of it is left to take back
        return replace(settings, sites=sites, last=None if muted else settings.last)

    await store.change_inbox(tenant, shown)


async def save_filter(store: Store, tenant: str, name: str, query: str) -> None:
    """Keep a query string under a name, in place of the one of the same name.

    Raises:
        UsageError: the name is none, or there are too many.
        StoreUnavailable: the database cannot be used.
    """
    name = one_line(clean(name))
    if not is_visible(name) or len(name) > LONGEST_NAME:
        raise UsageError(f"the name of a filter has 1 to {LONGEST_NAME} characters", field="name")
    if len(query) > LONGEST_QUERY:
        raise UsageError(f"a filter has {LONGEST_QUERY} characters at most", field="name")

    def saved(settings: InboxSettings) -> InboxSettings:
        filters = {**settings.filters, name: query}
        if len(filters) > MOST_FILTERS:
            raise UsageError(f"{MOST_FILTERS} filters are saved; remove one first", field="name")
        return replace(settings, filters=filters)

    await store.change_inbox(tenant, saved)


async def remove_filter(store: Store, tenant: str, name: str) -> None:
    """Delete a saved filter; raises `NotFound` when none has this name."""
    name = one_line(clean(name))

    def removed(settings: InboxSettings) -> InboxSettings:
        if name not in settings.filters:
            raise NotFound(f"there is no saved filter “{name[:60]}”")
        return replace(settings, filters={key: query for key, query in settings.filters.items() if key != name})

    await store.change_inbox(tenant, removed)


async def switch_keys(store: Store, tenant: str, *, on: bool) -> None:
    """Let single keys do things on the page of the inbox, or not."""
    await store.change_inbox(tenant, lambda settings: replace(settings, keys=on))


async def undo(store: Store, tenant: str) -> InboxAction:
    """Take back the last change, which then cannot be taken back again.

    Raises:
        NotFound: there is none, or its entry is gone.
        StoreUnavailable: the database cannot be used.
    """
    action = (await store.inbox_settings(tenant)).last
    if action is None:
        raise NotFound("there is no change of the inbox to take back")
    if action.before is not None:
        await _settle(store, tenant, await entry_of(store, tenant, action.entry_id), action.before)
    elif action.read_at is not None:
        await store.mark_unread(tenant, action.read_at)

    def forgotten(settings: InboxSettings) -> InboxSettings:
        sites = tuple(site for site in settings.sites if site != action.site)
        return replace(settings, sites=sites, last=None)

    await store.change_inbox(tenant, forgotten)
    return action


async def open_inbox_feed(store: Store, tenant: str) -> str:
    """Make a new address for the feed of the inbox, below the server's address; it is shown only once.

    What read it before reads it no more. `.json` in place of `.atom` is a JSON Feed; any filter may follow.
    """
    token = secrets.token_urlsafe(32)
    await store.set_inbox_feed(tenant, digest(token))
    return f"/v1/inbox/feed.atom?token={token}"


async def inbox_feed(
    store: Store, keys: Keys, limits: Limits, token: str, wanted: InboxFilter
) -> tuple[Sequence[InboxEntry], int]:
    """The newest entries of the inbox that this token reads, and how many are unread; counted as one read.

    Raises:
        NotFound: no inbox has this token, or its key is no longer valid.
        LimitReached: too many looks in this minute.
        StoreUnavailable: the database cannot be used.
    """
    owner = await store.tenant_of_inbox_feed(digest(token))
    tenant: Tenant | None = None if owner is None else await keys.tenant(owner)
    if tenant is None:
        raise NotFound("there is no such feed")
    await limits.admit(tenant, looks=True)
    entries = await store.inbox(tenant.id, wanted, ENTRIES)
    return entries, await store.inbox_count(tenant.id, replace(wanted, show="unread"), MOST_COUNTED)


async def _settle(store: Store, tenant: str, entry: InboxEntry, state: EntryState) -> EntryState:
    """Store a state; where it differs in that, correct the gate first, or take the correction back."""
    if state.not_about != entry.state.not_about:
        await _correct(store, tenant, entry, withdrawn=not state.not_about)
    stored = await store.change_state(tenant, entry.id, state, entry.state)
    if stored is None:
        raise NotFound("the entry is gone")
    return stored


async def _correct(store: Store, tenant: str, entry: InboxEntry, *, withdrawn: bool) -> None:
    post = entry.post
    if entry.report_id is not None:
        with suppress(NotFound):  # the report is gone, perhaps before the correction, which then was of the watch
            if withdrawn:
                await withdraw(store, tenant, entry.report_id, post.key)
            else:
                await correct(store, tenant, entry.report_id, post.key, relevant=False)
            return
    watch = next((watch for watch in await store.watches(tenant) if watch.id == entry.watch_id), None)
    if watch is None:
        if withdrawn:
            return
        raise NotFound("the watch and the report of this post are gone, so nothing is left to correct")
    question = Ask.of(watch).question
    if withdrawn:
        await store.remove_correction(tenant, question_digest(question), post.key)
        return
    text = cut(one_line(clean(post.passage or post.title)), LONGEST_BODY)
    correction = Correction(post.key, False, post.title, text, entry.site)
    stored = StoredCorrection(
        correction, question_digest(question), watch.query, watch.about, post.source, datetime.now(UTC)
    )
    await store.put_correction(tenant, stored, MOST_CORRECTIONS)


async def _remember(store: Store, tenant: str, action: InboxAction) -> None:
    await store.change_inbox(tenant, lambda settings: replace(settings, last=action))
