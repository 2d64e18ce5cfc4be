"""What is one row each: budgets, pages, API keys, chat sessions and idempotency keys."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Row, Update, case, delete, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from api.errors import UsageError
from api.services.keeping.ledger import UNBOUNDED
from api.services.keeping.storage import ApiKey, KeptSession, SessionListing
from api.store.database import Part, unbroken
from api.store.paging import below, cursor_at, dated
from api.store.tables import charges, idempotency, identity, keys, ledger, pages, sessions

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
