"""The inbox: new posts of all watches of a tenant, and what people made of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from hashlib import sha256
from typing import Any
from urllib.parse import urlsplit

from pydantic import TypeAdapter, ValidationError
from sqlalchemy import ColumnElement, Row, delete, not_, or_, select, update
from sqlalchemy import func as sql
from sqlalchemy.ext.asyncio import AsyncConnection

from api.core.items import Item
from api.core.text import clean, fold, one_line
from api.errors import UsageError
from api.features.watches.watch import Watch
from api.features.watches.watch_ports import UNTOUCHED, EntryState, InboxEntry, InboxFilter, InboxSettings, SeenPost
from api.features.watches.watch_run import NewPost, WatchRun
from api.store.database import Database, Repository, unbroken
from api.store.tables import batches, inbox, inbox_settings

MOST_KEPT = 20_000
"""Most entries in a tenant's inbox; beyond it the oldest without a star, a note or an assigned person are deleted."""
_LONGEST_SITE = 200
_SETTINGS = TypeAdapter(InboxSettings)
# where one account has pages of its own below a host: `bsky.app/profile/ada.example`, `example.social/@ada`
_ACCOUNT = re.compile(r"/(?:(?:profile|users?|u)/|@)[^/]+")
_COLUMNS = [column for column in inbox.c if column.name not in {"tenant", "key", "folded", "source", "complains"}]


class InboxRepository(Repository):
    """The inbox of every tenant in the database."""

    async def inbox(self, tenant: str, wanted: InboxFilter, limit: int, before: str = "") -> Sequence[InboxEntry]:
        if before and not (before.isascii() and before.isalnum()):
            raise UsageError("the cursor was not made here", field="cursor")
        entries: list[InboxEntry] = []
        async with self._database.reading() as connection:
            listed = select(*_COLUMNS).where(*await _fitting(connection, tenant, wanted)).order_by(inbox.c.id.desc())
            while (missing := limit - len(entries)) > 0:  # a damaged row hides no other
                older = listed.where(inbox.c.id < before) if before else listed
                rows = (await connection.execute(older.limit(missing))).all()
                entries += [entry for row in rows if (entry := _read(row)) is not None]
                if len(rows) < missing:
                    break
                before = rows[-1].id
        return entries

    async def inbox_count(self, tenant: str, wanted: InboxFilter, most: int) -> int:
        async with self._database.reading() as connection:
            some = select(inbox.c.id).where(*await _fitting(connection, tenant, wanted)).limit(most).subquery()
            return await connection.scalar(select(sql.count()).select_from(some)) or 0

    async def inbox_entry(self, tenant: str, entry_id: str) -> InboxEntry | None:
        rows = await self._rows(select(*_COLUMNS).where(inbox.c.tenant == tenant, inbox.c.id == entry_id))
        return _read(rows[0]) if rows else None

    async def inbox_entry_of(self, tenant: str, watch_id: str, key: str) -> InboxEntry | None:
        mine = inbox.c.tenant == tenant, inbox.c.watch_id == watch_id, inbox.c.key == key
        rows = await self._rows(select(*_COLUMNS).where(*mine))
        return _read(rows[0]) if rows else None

    @unbroken
    async def change_state(
        self, tenant: str, entry_id: str, state: EntryState, was: EntryState = UNTOUCHED
    ) -> EntryState | None:
        mine = inbox.c.tenant == tenant, inbox.c.id == entry_id
        names = [name for name in EntryState.__slots__ if getattr(state, name) != getattr(was, name)]
        values = {name: getattr(state, name) for name in names}
        async with self._database.writing() as connection:
            row = (await connection.execute(select(*_COLUMNS).where(*mine))).one_or_none()
            if row is None or (entry := _read(row)) is None:
                return None
            changed = replace(entry.state, **values)
            words = _words(entry.post, entry.site, entry.watch, changed.note)
            await connection.execute(update(inbox).where(*mine).values(folded=words, **values))
        return changed

    @unbroken
    async def mark_all_read(self, tenant: str, wanted: InboxFilter, read_at: datetime) -> int:
        async with self._database.writing() as connection:
            fitting = *await _fitting(connection, tenant, wanted), inbox.c.read_at.is_(None)
            return (await connection.execute(update(inbox).where(*fitting).values(read_at=read_at))).rowcount

    async def mark_unread(self, tenant: str, read_at: datetime) -> int:
        mine = inbox.c.tenant == tenant, inbox.c.read_at == read_at
        return await self._write(update(inbox).where(*mine).values(read_at=None))

    async def inbox_settings(self, tenant: str) -> InboxSettings:
        async with self._database.reading() as connection:
            return await _settings(connection, tenant)

    @unbroken
    async def change_inbox(self, tenant: str, change: Callable[[InboxSettings], InboxSettings]) -> InboxSettings:
        async with self._database.writing(alone=True) as connection:
            settings = change(await _settings(connection, tenant))
            body = _SETTINGS.dump_python(settings, mode="json", exclude={"has_feed"})
            await connection.execute(self._database.upsert(inbox_settings, ("tenant",), tenant=tenant, body=body))
        return settings

    @unbroken
    async def set_inbox_feed(self, tenant: str, digest: str | None) -> None:
        row = self._database.insert(inbox_settings).values(tenant=tenant, body={}, feed=digest)
        await self._write(row.on_conflict_do_update(index_elements=["tenant"], set_={"feed": digest}))

    async def tenant_of_inbox_feed(self, digest: str) -> str | None:
        tenant: str | None = await self._scalar(select(inbox_settings.c.tenant).where(inbox_settings.c.feed == digest))
        return tenant


async def add_to_inbox(
    connection: AsyncConnection,
    database: Database,
    watch: Watch,
    run: WatchRun,
    learnt: Sequence[SeenPost],
    most: int = MOST_KEPT,
) -> None:
    """Put the new posts of a run that is news into the inbox of the watch's tenant, each once."""
    posts = {known.key: known.item for known in learnt if known.item is not None}
    moment = f"{int(run.created_at.timestamp() * 1_000):012x}"
    rows = []
    for place, new in enumerate(run.new):
        mark = sha256(f"{watch.id}\n{new.key}".encode("utf-8", "surrogatepass")).hexdigest()[:8]
        site = site_of(new, posts.get(new.key))
        rows.append(
            {
                # the best of a run is listed first
                "tenant": watch.tenant, "id": f"{moment}{0xFFFF - place:04x}{mark}", "watch_id": watch.id,
                "key": new.key, "watch": watch.name, "source": new.source, "site": site, "complains": new.complains,
                "folded": _words(new, site, watch.name), "came_at": run.created_at,
                "starred": False, "note": "", "not_about": False,
                "body": {
                    "post": new.model_dump(mode="json"), "report_id": run.report_id, "sample": run.sample,
                },
            }
        )  # fmt: skip
    for some in batches(rows):
        await connection.execute(database.insert(inbox).on_conflict_do_nothing(), some)
    if rows:
        mine = inbox.c.tenant == watch.tenant
        oldest = select(inbox.c.id).where(mine).order_by(inbox.c.id.desc()).offset(most).limit(1)
        if (last := await connection.scalar(oldest)) is not None:
            await connection.execute(delete(inbox).where(mine, inbox.c.id <= last, not_(_wanted_still())))


async def drop_entries(connection: AsyncConnection, tenant: str, watch_id: str) -> None:
    """Delete the entries of a removed watch, except those with a star, a note or an assigned person."""
    mine = inbox.c.tenant == tenant, inbox.c.watch_id == watch_id
    await connection.execute(delete(inbox).where(*mine, not_(_wanted_still())))


async def forget_entries(connection: AsyncConnection, keys: Sequence[str]) -> None:
    """Delete the entries of posts that are to be forgotten, whatever was made of them."""
    await connection.execute(delete(inbox).where(inbox.c.key.in_(keys)))


def site_of(post: NewPost, item: Item | None) -> str:
    """Site where a post was written: its place, else its address's host, with the account when that names a page.

    A page to which the post links is not where it was written.
    """
    place = (item.place or "") if item is not None else ""
    if not place:
        try:
            parts = urlsplit(post.url)
            account = _ACCOUNT.match(parts.path)
            place = (parts.hostname or "").removeprefix("www.") + (account[0] if account else "")
        except ValueError:  # no address
            place = ""
    return one_line(clean(place))[:_LONGEST_SITE].strip() or post.source


def _words(post: NewPost, site: str, watch: str, note: str = "") -> str:
    return fold("\n".join((post.title, post.passage, site, watch, note)))


def _wanted_still() -> ColumnElement[bool]:
    return or_(inbox.c.starred, inbox.c.note != "", sql.coalesce(inbox.c.assigned, "") != "")


async def _fitting(connection: AsyncConnection, tenant: str, wanted: InboxFilter) -> list[ColumnElement[bool]]:
    fitting = [inbox.c.tenant == tenant]
    if sites := (await _settings(connection, tenant)).sites:
        fitting.append(inbox.c.site.not_in(sites))
    match wanted.show:
        case "unread":
            fitting.append(inbox.c.read_at.is_(None))
        case "read":
            fitting.append(inbox.c.read_at.is_not(None))
        case "starred":
            fitting.append(inbox.c.starred)
    if wanted.watch_id:
        fitting.append(inbox.c.watch_id == wanted.watch_id)
    if wanted.source:
        fitting.append(inbox.c.source == wanted.source)
    if wanted.complaints:
        fitting.append(inbox.c.complains)
    if wanted.assigned:
        # SQLite's `lower` knows ASCII alone
        named = inbox.c.assigned == wanted.assigned
        fitting.append(or_(named, sql.lower(inbox.c.assigned) == wanted.assigned.lower()))
    if wanted.newest:
        fitting.append(inbox.c.id <= wanted.newest)
    if text := fold(wanted.text.strip()):
        fitting.append(inbox.c.folded.contains(text, autoescape=True))
    return fitting


async def _settings(connection: AsyncConnection, tenant: str) -> InboxSettings:
    wanted = select(inbox_settings.c.body, inbox_settings.c.feed).where(inbox_settings.c.tenant == tenant)
    row = (await connection.execute(wanted)).one_or_none()
    if row is None:
        return InboxSettings()
    try:
        settings = _SETTINGS.validate_python(row.body or {})
    except ValidationError:  # damaged: the usual ones
        settings = InboxSettings()
    return replace(settings, has_feed=row.feed is not None)


def _read(row: Row[*tuple[Any, ...]]) -> InboxEntry | None:
    """The entry of a row; None when it is damaged."""
    try:
        post = NewPost.model_validate(row.body["post"])
    except (ValidationError, TypeError, KeyError):
        return None
    state = EntryState(row.read_at, bool(row.starred), row.note or "", row.assigned or "", bool(row.not_about))
    return InboxEntry(
        row.id, post, row.watch_id, row.watch, row.site, row.body.get("report_id"), bool(row.body.get("sample")),
        row.came_at, state,
    )  # fmt: skip
