"""What is one row each: budgets, pages, API keys, chat sessions and idempotency keys.

Pages of rows, newest first: where the next one begins, whatever came in since.

What opens one report, or the pages, without a key: the digests of links and logins.

What people thought of reports: one row for each author and thing.
"""

from __future__ import annotations

import base64
import binascii
import json
import secrets
from collections.abc import Mapping, Sequence, Set
from datetime import UTC, date, datetime, timedelta
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    Row,
    Text,
    Update,
    and_,
    case,
    delete,
    insert,
    or_,
    select,
    type_coerce,
    update,
)
from sqlalchemy import func as sql
from sqlalchemy.ext.asyncio import AsyncConnection

from api.errors import UsageError
from api.features.analyses.store_ports import (
    UNBOUNDED,
    ApiKey,
    Feedback,
    KeptSession,
    SessionListing,
    Thumbs,
)
from api.store.database import Part, unbroken
from api.store.report_rows import unmentioned
from api.store.tables import (
    analyses,
    batches,
    charges,
    feedback,
    idempotency,
    identity,
    keys,
    ledger,
    logins,
    pages,
    sessions,
)

_TIME = len("2026-11-28 12:00:00")


def cursor_at(moment: datetime, identity: str) -> str:
    """What asks for the page after this row."""
    last = json.dumps([moment.isoformat(), identity])
    return base64.urlsafe_b64encode(last.encode()).decode().rstrip("=")


def below(cursor: str, moments: Column[Any], identities: Column[Any]) -> ColumnElement[bool]:
    """What stands below the last row of the page before.

    Raises:
        UsageError: the cursor is none of ours.
    """
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        written, identity = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
        moment, last = datetime.fromisoformat(written).astimezone(UTC), str(identity)
    except (binascii.Error, ValueError, TypeError, OverflowError, RecursionError):
        raise UsageError("the cursor is none of ours; leave it out for the first page") from None
    return or_(moments < moment, and_(moments == moment, identities < last))


def dated(moments: Column[Any]) -> ColumnElement[bool]:
    """Whether a row's time is one that SQLite can read: it keeps anything in any column."""
    text = type_coerce(moments, Text)
    read = sql.strftime("%Y-%m-%d", text).is_not(None)
    return and_(sql.typeof(moments) == "text", sql.length(moments) >= _TIME, read)


PAGE_LIFE = timedelta(days=1)
"""No page is kept longer."""


class LedgerPart(Part):
    """See `Ledger` for the contract; every step is one statement, so no two get the same unit."""

    @unbroken
    async def take(self, scope: str, day: date, units: int, limit: int) -> bool:
        """Reserve units if they fit: one conditional upsert."""
        async with self._database.writing() as connection:
            return await self._take(connection, scope, day, units, limit)

    @unbroken
    async def give_back(self, scope: str, day: date, units: int) -> None:
        """Release units; never below none."""
        async with self._database.writing() as connection:
            await connection.execute(_fewer(scope, day, units))

    @unbroken
    async def charge(self, work_id: str, scope: str, day: date, units: int, limit: int) -> bool:
        """Reserve units for a piece of work if they fit, or were reserved for it before."""
        row = self._database.insert(charges).values(
            work_id=work_id, scope=scope, day=day, units=units, settled=False
        )
        async with self._database.writing() as connection:
            if not (await connection.execute(row.on_conflict_do_nothing())).rowcount:
                return True
            fits = not units or await self._take(connection, scope, day, units, limit)
            if not fits:
                await connection.execute(delete(charges).where(*_is(work_id, scope)))
            return fits

    @unbroken
    async def settle(self, work_id: str, scope: str, units: int) -> None:
        """Correct what was reserved for a piece of work to what it used; once."""
        settled = update(charges).where(*_is(work_id, scope), charges.c.settled.is_(False))
        settled = settled.values(settled=True)
        async with self._database.writing() as connection:
            reservation = settled.returning(charges.c.day, charges.c.units)
            for day, reserved in await connection.execute(reservation):
                if units > reserved:
                    await self._take(connection, scope, day, units - reserved, UNBOUNDED)
                elif units < reserved:
                    await connection.execute(_fewer(scope, day, reserved - units))

    async def _take(
        self, connection: AsyncConnection, scope: str, day: date, units: int, limit: int
    ) -> bool:
        if units > limit:
            return False
        row = self._database.insert(ledger).values(scope=scope, day=day, units=units)
        total = ledger.c.units + row.excluded.units
        upsert = row.on_conflict_do_update(
            index_elements=[ledger.c.scope, ledger.c.day],
            set_={"units": total},
            where=total <= limit,
        )
        return (await connection.execute(upsert)).rowcount == 1

    @unbroken
    async def spent(self, scope: str, day: date) -> int:
        """Units taken so far."""
        units = select(ledger.c.units).where(ledger.c.scope == scope, ledger.c.day == day)
        async with self._database.reading() as connection:
            return await connection.scalar(units) or 0


def _fewer(scope: str, day: date, units: int) -> Update:
    left = case((ledger.c.units > units, ledger.c.units - units), else_=0)
    return update(ledger).where(ledger.c.scope == scope, ledger.c.day == day).values(units=left)


def _is(work_id: str, scope: str) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return charges.c.work_id == work_id, charges.c.scope == scope


class PagesPart(Part):
    """Pages of upstreams, by full plan; see `PageCache` for the contract."""

    @unbroken
    async def page(self, key: str, ttl: float) -> str | None:
        """The stored text, unless it is older than `ttl` seconds."""
        since = datetime.now(UTC) - timedelta(seconds=ttl)
        fresh = select(pages.c.text).where(pages.c.key == key, pages.c.stored_at > since)
        async with self._database.reading() as connection:
            return text_of(await connection.scalar(fresh))

    @unbroken
    async def keep_page(self, key: str, text: str) -> None:
        """Store or replace it, and drop what is a day old."""
        now = datetime.now(UTC)
        row = self._database.upsert(pages, ("key",), key=key, text=text, stored_at=now)
        async with self._database.writing() as connection:
            await connection.execute(delete(pages).where(pages.c.stored_at < now - PAGE_LIFE))
            await connection.execute(row)


class KeysPart(Part):
    """Digests of API keys, the key itself is nowhere; see `KeyRing` for the contract."""

    @unbroken
    async def add_key(self, name: str, digest: str) -> ApiKey:
        """Store a digest under a new id.

        Raises:
            UsageError: the name, or the key itself, is there already, revoked or not.
        """
        key = ApiKey(f"key_{secrets.token_hex(6)}", name, "store", datetime.now(UTC))
        row = self._database.insert(keys).values(
            id=key.id, name=name, digest=digest, created_at=key.created_at, revoked=False
        )
        async with self._database.writing() as connection:
            added = await connection.execute(row.on_conflict_do_nothing())
        if not added.rowcount:
            raise UsageError(f"a key named `{name}` is there already; choose another name")
        return key

    @unbroken
    async def keys(self) -> Sequence[ApiKey]:
        """All of them, revoked ones too, oldest first."""
        async with self._database.reading() as connection:
            rows = await connection.execute(select(keys).order_by(keys.c.created_at, keys.c.id))
        return tuple(map(_key, rows))

    @unbroken
    async def key_of(self, digest: str) -> ApiKey | None:
        """The unrevoked key with this digest."""
        wanted = select(keys).where(keys.c.digest == digest, keys.c.revoked.is_(False))
        async with self._database.reading() as connection:
            row = (await connection.execute(wanted)).one_or_none()
        return None if row is None else _key(row)

    @unbroken
    async def revoke_key(self, key: str) -> bool:
        """Revoke by id, else by name; again is fine; False when there is none."""
        async with self._database.writing() as connection:
            for column in (keys.c.id, keys.c.name):
                revoked = update(keys).where(column == key).values(revoked=True)
                if (await connection.execute(revoked)).rowcount:
                    return True
        return False


def text_of(document: object) -> str | None:
    """A stored text; a document that is damaged into another value is as good as none."""
    return document if isinstance(document, str) else None


def _key(row: Row[*tuple[Any, ...]]) -> ApiKey:
    return ApiKey(row.id, row.name, "store", row.created_at, row.revoked)


class SessionsPart(Part):
    """See `Sessions` for the contract."""

    @unbroken
    async def session(self, tenant: str, session_id: str) -> str | None:
        """What was last saved."""
        wanted = select(sessions.c.text)
        wanted = wanted.where(sessions.c.tenant == tenant, sessions.c.id == session_id)
        async with self._database.reading() as connection:
            return text_of(await connection.scalar(wanted))

    @unbroken
    async def keep_session(self, tenant: str, session_id: str, text: str) -> None:
        """Save it."""
        row = self._database.upsert(
            sessions, ("tenant", "id"),
            tenant=tenant, id=session_id, text=text, saved_at=datetime.now(UTC),
        )  # fmt: skip
        async with self._database.writing() as connection:
            await connection.execute(row)

    @unbroken
    async def sessions(self, tenant: str, limit: int, cursor: str | None = None) -> SessionListing:
        """The last used first; one that is damaged is left out.

        Raises:
            UsageError: the cursor is none of ours.
        """
        order = sessions.c.saved_at.desc(), sessions.c.id.desc()
        wanted = select(sessions).where(sessions.c.tenant == tenant).order_by(*order)
        if cursor is not None:
            wanted = wanted.where(below(cursor, sessions.c.saved_at, sessions.c.id))
        if self._database.sqlite:
            wanted = wanted.where(dated(sessions.c.saved_at))
        async with self._database.reading() as connection:
            rows = (await connection.execute(wanted.limit(limit + 1))).all()
        kept = tuple(KeptSession(row.id, text_of(row.text) or "", row.saved_at) for row in rows)
        more = len(kept) > limit
        page = kept[:limit]
        return SessionListing(page, cursor_at(page[-1].saved_at, page[-1].id) if more else None)

    @unbroken
    async def drop_session(self, tenant: str, session_id: str) -> bool:
        """Delete it; False when there is none."""
        mine = sessions.c.tenant == tenant, sessions.c.id == session_id
        async with self._database.writing() as connection:
            return (await connection.execute(delete(sessions).where(*mine))).rowcount > 0


class IdempotencyPart(Part):
    """See `Idempotency` for the contract."""

    @unbroken
    async def claim(self, tenant: str, key: str, digest: str, analysis_id: str) -> tuple[str, bool]:
        """The analysis id that owns the key, and whether it is this call's.

        Raises:
            UsageError: the key was used for a different request.
        """
        row = self._database.insert(idempotency).values(
            tenant=tenant, key=key, digest=digest, analysis_id=analysis_id,
            claimed_at=datetime.now(UTC),
        )  # fmt: skip
        owner = select(idempotency.c.digest, idempotency.c.analysis_id)
        owner = owner.where(idempotency.c.tenant == tenant, idempotency.c.key == key)
        async with self._database.writing() as connection:
            if (await connection.execute(row.on_conflict_do_nothing())).rowcount:
                return analysis_id, True
            known, owned = (await connection.execute(owner)).one()
        if known != identity(digest):
            raise UsageError("the `Idempotency-Key` stands for a different request; use a new one")
        return owned, False


class AdmissionsPart(Part):
    """See `Admissions` for the contract."""

    @unbroken
    async def set_link(self, tenant: str, analysis_id: str, digest: str | None) -> bool:
        """One at a time; it goes with the analysis."""
        mine = analyses.c.tenant == tenant, analyses.c.id == analysis_id
        async with self._database.writing() as connection:
            changed = update(analyses).where(*mine).values(link=digest)
            return (await connection.execute(changed)).rowcount > 0

    @unbroken
    async def has_link(self, tenant: str, analysis_id: str) -> bool:
        """Whether some word opens it."""
        mine = analyses.c.tenant == tenant, analyses.c.id == analysis_id
        async with self._database.reading() as connection:
            return await connection.scalar(select(analyses.c.link).where(*mine)) is not None

    @unbroken
    async def owner_of_link(self, analysis_id: str, digest: str) -> str | None:
        """By the digest, which has an index; how long that takes tells nothing of a word."""
        opened = analyses.c.link == digest, analyses.c.id == analysis_id
        async with self._database.reading() as connection:
            return await connection.scalar(select(analyses.c.tenant).where(*opened))

    @unbroken
    async def keep_login(self, digest: str, tenant: str, until: datetime) -> None:
        """What has ended is dropped by `sweep`."""
        row = insert(logins).values(digest=digest, tenant=tenant, until=until)
        async with self._database.writing() as connection:
            await connection.execute(row)

    @unbroken
    async def login(self, digest: str, now: datetime) -> str | None:
        """The tenant of a login that lasts."""
        lasting = logins.c.digest == digest, logins.c.until > now
        async with self._database.reading() as connection:
            return await connection.scalar(select(logins.c.tenant).where(*lasting))

    @unbroken
    async def drop_login(self, digest: str) -> None:
        """End it."""
        async with self._database.writing() as connection:
            await connection.execute(delete(logins).where(logins.c.digest == digest))


_KEY = (
    feedback.c.tenant, feedback.c.analysis_id, feedback.c.subject, feedback.c.target,
    feedback.c.author,
)  # fmt: skip


class FeedbackPart(Part):
    """See `FeedbackBook` for the contract."""

    @unbroken
    async def keep_feedback(self, tenant: str, given: Feedback, most: int) -> Feedback | None:
        """Store it, alone, so that nobody deletes the analysis meanwhile.

        Raises:
            UsageError: the analysis has `most` of them already.
        """
        target = given.item_key or str(given.finding or "")
        row = self._database.insert(feedback).values(
            tenant=tenant, analysis_id=given.analysis_id, author=given.author,
            subject=given.subject, target=target, item_key=given.item_key, rating=given.rating,
            comment=given.comment, created_at=datetime.now(UTC),
        )  # fmt: skip
        changed = {"rating": row.excluded.rating, "comment": row.excluded.comment}
        upsert = row.on_conflict_do_update(index_elements=_KEY, set_=changed)
        on_it = feedback.c.tenant == tenant, feedback.c.analysis_id == given.analysis_id
        same = (
            feedback.c.subject == given.subject,
            feedback.c.target == target,
            feedback.c.author == given.author,
        )
        there = select(analyses.c.id).where(
            analyses.c.tenant == tenant, analyses.c.id == given.analysis_id
        )
        async with self._database.writing(alone=True) as connection:
            if await connection.scalar(there) is None:
                return None
            known = await connection.scalar(select(feedback.c.rating).where(*on_it, *same))
            count = select(sql.count()).select_from(feedback).where(*on_it)
            if known is None and (await connection.scalar(count) or 0) >= most:
                raise UsageError(f"`{given.analysis_id}` has {most} ratings; no more are taken")
            await connection.execute(upsert)
            kept = (await connection.execute(select(feedback).where(*on_it, *same))).one()
        return _feedback(kept)

    @unbroken
    async def feedback(self, tenant: str, analysis_id: str) -> Sequence[Feedback]:
        """All on one analysis, oldest first."""
        wanted = select(feedback).order_by(feedback.c.created_at, *_KEY)
        wanted = wanted.where(feedback.c.tenant == tenant, feedback.c.analysis_id == analysis_id)
        async with self._database.reading() as connection:
            return tuple(map(_feedback, await connection.execute(wanted)))

    @unbroken
    async def thumbs(self, tenant: str, since: datetime | None) -> Mapping[str, Thumbs]:
        """Counted by the database."""
        same = (analyses.c.tenant == feedback.c.tenant) & (analyses.c.id == feedback.c.analysis_id)
        wanted = (
            select(feedback.c.analysis_id, feedback.c.rating, sql.count().label("number"))
            .join_from(feedback, analyses, same)
            .where(feedback.c.tenant == tenant)
            .group_by(feedback.c.analysis_id, feedback.c.rating)
        )
        if since is not None:
            wanted = wanted.where(analyses.c.created_at >= since)
        thumbs: dict[str, Thumbs] = {}
        async with self._database.reading() as connection:
            for analysis_id, rating, number in await connection.execute(wanted):
                more = Thumbs(up=number) if rating == "up" else Thumbs(down=number)
                thumbs[analysis_id] = thumbs.get(analysis_id, Thumbs()) + more
        return thumbs


async def forget_feedback(connection: AsyncConnection, keys: Set[str]) -> None:
    """Items that are to be forgotten take what was thought of them along, and leave comments."""
    for some in batches(keys):
        of_items = feedback.c.subject == "item", feedback.c.target.in_(some)
        await connection.execute(delete(feedback).where(*of_items))
    for key in keys:
        naming = select(feedback).where(feedback.c.comment.contains(key, autoescape=True))
        for row in (await connection.execute(naming)).all():
            same = [column == getattr(row, column.name) for column in _KEY]
            left = unmentioned(row.comment, keys)
            await connection.execute(update(feedback).where(*same).values(comment=left))


async def forget_findings(connection: AsyncConnection, tenant: str, analysis_id: str) -> None:
    """A report lost a finding: the numbers of the others are no longer what was rated."""
    on_it = feedback.c.tenant == tenant, feedback.c.analysis_id == analysis_id
    await connection.execute(delete(feedback).where(*on_it, feedback.c.subject == "finding"))


def _feedback(row: Row[*tuple[Any, ...]]) -> Feedback:
    """A row again; a number that is damaged is none."""
    finding = row.target if row.subject == "finding" else ""
    return Feedback(
        row.analysis_id,
        row.author,
        row.subject,
        row.rating,
        int(finding) if finding.isdecimal() else None,
        row.item_key,
        row.comment,
        row.created_at,
    )
