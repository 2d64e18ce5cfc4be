"""Tables of small rows: quotas, pages, keys, links, logins, sessions, feedback, corrections, senses.

Lists are paged by a cursor that names the last row shown, so that rows that come in meanwhile repeat and hide none.
"""

from __future__ import annotations

import base64
import binascii
import json
import secrets
from collections.abc import Mapping, Sequence, Set
from dataclasses import asdict
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
    literal_column,
    or_,
    select,
    type_coerce,
    update,
)
from sqlalchemy import func as sql
from sqlalchemy.ext.asyncio import AsyncConnection

from api.core.domain import Correction
from api.core.ports import SampledPost
from api.errors import UsageError
from api.features.analyses.corrections import ChosenSense, StoredCorrection
from api.features.analyses.store_ports import UNBOUNDED, ApiKey, Feedback, KeptSession, SessionListing, Thumbs
from api.store.database import Database, Repository, unbroken
from api.store.report_json import without_mentions
from api.store.retention import PAGE_LIFE, SAMPLE_LIFE
from api.store.tables import (
    agreement_samples,
    analyses,
    batches,
    charges,
    corrections,
    feedback,
    idempotency,
    identity,
    keys,
    ledger,
    logins,
    pages,
    senses,
    sessions,
)

# What SQLite holds of a time; the fraction of a second may be missing.
_TIME_LENGTH = len("2026-11-28 12:00:00")
_CORRECTION_KEY = corrections.c.tenant, corrections.c.question, corrections.c.key
_FEEDBACK_KEY = (
    feedback.c.tenant, feedback.c.analysis_id, feedback.c.subject, feedback.c.target,
    feedback.c.author,
)  # fmt: skip


_NEWEST_SAMPLE = agreement_samples.c.stored_at.desc(), agreement_samples.c.digest


def _sample_of(tenant: str, question: str) -> tuple[ColumnElement[bool], ...]:
    return agreement_samples.c.tenant == tenant, agreement_samples.c.question == question


def cursor_at(moment: datetime, identity: str) -> str:
    """The cursor of the page after the row with this time and key."""
    last = json.dumps([moment.isoformat(), identity])
    return base64.urlsafe_b64encode(last.encode()).decode().rstrip("=")


def below(cursor: str, moments: Column[Any], identities: Column[Any]) -> ColumnElement[bool]:
    """The condition of rows that follow the cursor's row, newest first.

    Raises:
        UsageError: the cursor was not made here.
    """
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        written, identity = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
        moment, last = datetime.fromisoformat(written).astimezone(UTC), str(identity)
    except (binascii.Error, ValueError, TypeError, OverflowError, RecursionError):
        raise UsageError("the cursor is none of ours; leave it out for the first page") from None
    # `<=` before the alternatives, so that an index is read from that row on, not from the newest
    return and_(moments <= moment, or_(moments < moment, identities < last))


def dated(moments: Column[Any]) -> ColumnElement[bool]:
    """Whether SQLite can read a row's time: it keeps anything in any column."""
    readable = sql.strftime("%Y-%m-%d", type_coerce(moments, Text)).is_not(None)
    return and_(sql.typeof(moments) == "text", sql.length(moments) >= _TIME_LENGTH, readable)


def text_of(document: object) -> str | None:
    """A stored text; a document that is damaged into another value counts as missing."""
    return document if isinstance(document, str) else None


async def keep_page(database: Database, connection: AsyncConnection, key: str, text: str) -> None:
    """Store a page within a transaction, and delete those that are a day old."""
    now = datetime.now(UTC)
    await connection.execute(delete(pages).where(pages.c.stored_at < now - PAGE_LIFE))
    await connection.execute(database.upsert(pages, ("key",), key=key, text=text, stored_at=now))


class RecordRepository(Repository):
    """Implements the part of `Store` that concerns these records."""

    async def page(self, key: str, ttl: float) -> str | None:
        since = datetime.now(UTC) - timedelta(seconds=ttl)
        fresh = select(pages.c.text).where(pages.c.key == key, pages.c.stored_at > since)
        return text_of(await self._scalar(fresh))

    @unbroken
    async def keep_page(self, key: str, text: str) -> None:
        async with self._database.writing() as connection:
            await keep_page(self._database, connection, key, text)

    @unbroken
    async def keep_agreement_sample(self, tenant: str, question: str, posts: Sequence[SampledPost], most: int) -> int:
        now, of_question = datetime.now(UTC), _sample_of(tenant, question)
        newest = select(agreement_samples.c.digest).where(*of_question).order_by(*_NEWEST_SAMPLE).limit(most)
        async with self._database.writing() as connection:
            for some in batches(posts):
                rows = [{"tenant": tenant, "question": question, "stored_at": now, **asdict(post)} for post in some]
                insert = self._database.insert(agreement_samples).on_conflict_do_nothing()
                await connection.execute(insert, rows)
            old = delete(agreement_samples)
            await connection.execute(old.where(*of_question, agreement_samples.c.digest.not_in(newest)))
            await connection.execute(old.where(agreement_samples.c.stored_at < now - SAMPLE_LIFE))
            count = select(sql.count()).select_from(agreement_samples).where(*of_question)
            return await connection.scalar(count) or 0

    async def agreement_sample(self, tenant: str, question: str, most: int) -> Sequence[SampledPost]:
        table = agreement_samples.c
        wanted = select(table.digest, table.sureness, table.agrees).where(*_sample_of(tenant, question))
        rows = await self._rows(wanted.order_by(*_NEWEST_SAMPLE).limit(most))
        return [SampledPost(row.digest, row.sureness, row.agrees) for row in rows]

    @unbroken
    async def take(self, scope: str, day: date, units: int, limit: int) -> bool:
        async with self._database.writing() as connection:
            return await self._take(connection, scope, day, units, limit)

    async def _take(self, connection: AsyncConnection, scope: str, day: date, units: int, limit: int) -> bool:
        # one statement, so that no two processes get the same unit
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

    async def give_back(self, scope: str, day: date, units: int) -> None:
        await self._write(_fewer(scope, day, units))

    async def spent(self, scope: str, day: date) -> int:
        units = select(ledger.c.units).where(ledger.c.scope == scope, ledger.c.day == day)
        return await self._scalar(units) or 0

    @unbroken
    async def charge(self, work_id: str, scope: str, day: date, units: int, limit: int) -> bool:
        row = self._database.insert(charges).values(work_id=work_id, scope=scope, day=day, units=units, settled=False)
        async with self._database.writing() as connection:
            if not (await connection.execute(row.on_conflict_do_nothing())).rowcount:
                return True
            fits = not units or await self._take(connection, scope, day, units, limit)
            if not fits:
                mine = charges.c.work_id == work_id, charges.c.scope == scope
                await connection.execute(delete(charges).where(*mine))
            return fits

    @unbroken
    async def settle(self, work_id: str, scope: str, units: int) -> None:
        mine = charges.c.work_id == work_id, charges.c.scope == scope
        settled = update(charges).where(*mine, charges.c.settled.is_(False)).values(settled=True)
        async with self._database.writing() as connection:
            reservation = settled.returning(charges.c.day, charges.c.units)
            for day, reserved in await connection.execute(reservation):
                if units > reserved:
                    await self._take(connection, scope, day, units - reserved, UNBOUNDED)
                elif units < reserved:
                    await connection.execute(_fewer(scope, day, reserved - units))

    @unbroken
    async def release(self, work_id: str, scope: str) -> None:
        mine = charges.c.work_id == work_id, charges.c.scope == scope, charges.c.settled.is_(False)
        async with self._database.writing() as connection:
            reservation = delete(charges).where(*mine).returning(charges.c.day, charges.c.units)
            for day, reserved in (await connection.execute(reservation)).all():
                await connection.execute(_fewer(scope, day, reserved))

    async def add_key(self, name: str, digest: str) -> ApiKey:
        key = ApiKey(f"key_{secrets.token_hex(6)}", name, "store", datetime.now(UTC))
        row = self._database.insert(keys).values(
            id=key.id, name=name, digest=digest, created_at=key.created_at, revoked=False
        )
        if not await self._write(row.on_conflict_do_nothing()):
            raise UsageError(f"a key named `{name}` is there already; choose another name")
        return key

    async def keys(self) -> Sequence[ApiKey]:
        rows = await self._rows(select(keys).order_by(keys.c.created_at, keys.c.id))
        return tuple(map(_key, rows))

    async def key_of(self, digest: str) -> ApiKey | None:
        rows = await self._rows(select(keys).where(keys.c.digest == digest, keys.c.revoked.is_(False)))
        return _key(rows[0]) if rows else None

    async def revoke_key(self, key: str) -> bool:
        for column in (keys.c.id, keys.c.name):
            if await self._write(update(keys).where(column == key).values(revoked=True)):
                return True
        return False

    async def set_link(self, tenant: str, analysis_id: str, digest: str | None) -> bool:
        mine = analyses.c.tenant == tenant, analyses.c.id == analysis_id
        return await self._write(update(analyses).where(*mine).values(link=digest)) > 0

    async def has_link(self, tenant: str, analysis_id: str) -> bool:
        mine = analyses.c.tenant == tenant, analyses.c.id == analysis_id
        return await self._scalar(select(analyses.c.link).where(*mine)) is not None

    async def owner_of_link(self, analysis_id: str, digest: str) -> str | None:
        # found by the index of digests: how long that takes tells nothing of a token
        opened = analyses.c.link == digest, analyses.c.id == analysis_id
        tenant: str | None = await self._scalar(select(analyses.c.tenant).where(*opened))
        return tenant

    async def keep_login(self, digest: str, tenant: str, until: datetime) -> None:
        await self._write(insert(logins).values(digest=digest, tenant=tenant, until=until))

    async def login(self, digest: str, now: datetime) -> str | None:
        valid = logins.c.digest == digest, logins.c.until > now
        tenant: str | None = await self._scalar(select(logins.c.tenant).where(*valid))
        return tenant

    async def drop_login(self, digest: str) -> None:
        await self._write(delete(logins).where(logins.c.digest == digest))

    async def session(self, tenant: str, session_id: str) -> str | None:
        mine = sessions.c.tenant == tenant, sessions.c.id == session_id
        return text_of(await self._scalar(select(sessions.c.text).where(*mine)))

    async def keep_session(self, tenant: str, session_id: str, text: str, report_id: str | None = None) -> None:
        row = self._database.upsert(
            sessions, ("tenant", "id"),
            tenant=tenant, id=session_id, text=text, saved_at=datetime.now(UTC), report_id=report_id,
        )  # fmt: skip
        await self._write(row)

    async def sessions(
        self, tenant: str, limit: int, cursor: str | None = None, report_id: str | None = None
    ) -> SessionListing:
        order = sessions.c.saved_at.desc(), sessions.c.id.desc()
        wanted = select(sessions).where(sessions.c.tenant == tenant).order_by(*order)
        if report_id is not None:
            wanted = wanted.where(sessions.c.report_id == report_id)
        if cursor is not None:
            wanted = wanted.where(below(cursor, sessions.c.saved_at, sessions.c.id))
        if self._database.sqlite:
            wanted = wanted.where(dated(sessions.c.saved_at))
        rows = await self._rows(wanted.limit(limit + 1))
        kept = tuple(KeptSession(row.id, text_of(row.text) or "", row.saved_at) for row in rows)
        if len(kept) <= limit:
            return SessionListing(kept, None)
        page = kept[:limit]
        return SessionListing(page, cursor_at(page[-1].saved_at, page[-1].id))

    async def drop_session(self, tenant: str, session_id: str) -> bool:
        mine = sessions.c.tenant == tenant, sessions.c.id == session_id
        return await self._write(delete(sessions).where(*mine)) > 0

    @unbroken
    async def claim(self, tenant: str, key: str, digest: str, analysis_id: str) -> tuple[str, bool]:
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

    @unbroken
    async def keep_feedback(self, tenant: str, given: Feedback, most: int) -> Feedback | None:
        target = given.item_key or str(given.finding or "")
        row = self._database.insert(feedback).values(
            tenant=tenant, analysis_id=given.analysis_id, author=given.author,
            subject=given.subject, target=target, item_key=given.item_key, rating=given.rating,
            comment=given.comment, created_at=datetime.now(UTC),
        )  # fmt: skip
        changed = {"rating": row.excluded.rating, "comment": row.excluded.comment}
        upsert = row.on_conflict_do_update(index_elements=_FEEDBACK_KEY, set_=changed)
        on_it = feedback.c.tenant == tenant, feedback.c.analysis_id == given.analysis_id
        same = (
            feedback.c.subject == given.subject,
            feedback.c.target == target,
            feedback.c.author == given.author,
        )
        there = select(analyses.c.id).where(analyses.c.tenant == tenant, analyses.c.id == given.analysis_id)
        # alone, so that nobody deletes the analysis meanwhile
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

    async def feedback(self, tenant: str, analysis_id: str) -> Sequence[Feedback]:
        wanted = select(feedback).order_by(feedback.c.created_at, *_FEEDBACK_KEY)
        wanted = wanted.where(feedback.c.tenant == tenant, feedback.c.analysis_id == analysis_id)
        return tuple(map(_feedback, await self._rows(wanted)))

    async def thumbs(self, tenant: str, since: datetime | None) -> Mapping[str, Thumbs]:
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
        for analysis_id, rating, number in await self._rows(wanted):
            more = Thumbs(up=number) if rating == "up" else Thumbs(down=number)
            thumbs[analysis_id] = thumbs.get(analysis_id, Thumbs()) + more
        return thumbs

    @unbroken
    async def choose_sense(self, tenant: str, question: str, sense: ChosenSense | None) -> None:
        mine = senses.c.tenant == tenant, senses.c.question == question
        async with self._database.writing() as connection:
            await connection.execute(delete(senses).where(*mine))
            if sense is not None:
                row = insert(senses).values(
                    tenant=tenant, question=question, about=sense.about,
                    not_about=list(sense.not_about), created_at=datetime.now(UTC),
                )  # fmt: skip
                await connection.execute(row)

    async def chosen_sense(self, tenant: str, question: str) -> ChosenSense | None:
        wanted = select(senses.c.about, senses.c.not_about).where(
            senses.c.tenant == tenant, senses.c.question == question
        )
        for about, not_about in await self._rows(wanted):
            listed = not_about if isinstance(not_about, list) else []
            return ChosenSense(about, tuple(text for text in listed if isinstance(text, str)))
        return None

    @unbroken
    async def put_correction(self, tenant: str, entry: StoredCorrection, most: int) -> None:
        correction = entry.correction
        row = self._database.insert(corrections).values(
            tenant=tenant, question=entry.question, key=correction.key, item_key=correction.key,
            relevant=correction.relevant, title=correction.title, body=correction.body,
            place=correction.place, source=entry.source, query=entry.query, about=entry.about,
            created_at=entry.created_at,
        )  # fmt: skip
        fields = ("relevant", "title", "body", "place", "source", "query", "about", "created_at")
        changed = {name: getattr(row.excluded, name) for name in fields}
        of_question = corrections.c.tenant == tenant, corrections.c.question == entry.question
        async with self._database.writing(alone=True) as connection:
            others = select(sql.count()).select_from(corrections)
            others = others.where(*of_question, corrections.c.key != correction.key)
            if (await connection.scalar(others) or 0) >= most:
                raise UsageError(f"a question has {most} corrections at most; remove some first")
            upsert = row.on_conflict_do_update(index_elements=_CORRECTION_KEY, set_=changed)
            await connection.execute(upsert)

    async def corrections(self, tenant: str, question: str | None = None) -> Sequence[StoredCorrection]:
        wanted = select(corrections).where(corrections.c.tenant == tenant)
        if question is not None:
            wanted = wanted.where(corrections.c.question == question)
        wanted = wanted.order_by(corrections.c.created_at, corrections.c.key)
        return tuple(map(_correction, await self._rows(wanted)))

    async def remove_correction(self, tenant: str, question: str, key: str) -> bool:
        mine = (
            corrections.c.tenant == tenant,
            corrections.c.question == question,
            corrections.c.key == key,
        )
        return await self._write(delete(corrections).where(*mine)) > 0


async def forget_feedback(connection: AsyncConnection, keys: Set[str]) -> None:
    """Delete feedback on these items, and their keys from the comments of other feedback."""
    for some in batches(keys):
        of_items = feedback.c.subject == literal_column("'item'"), feedback.c.target.in_(some)
        await connection.execute(delete(feedback).where(*of_items))
    for key in keys:
        naming = select(feedback).where(feedback.c.comment.contains(key, autoescape=True))
        for row in (await connection.execute(naming)).all():
            same = [column == getattr(row, column.name) for column in _FEEDBACK_KEY]
            left = without_mentions(row.comment, keys)
            await connection.execute(update(feedback).where(*same).values(comment=left))


async def forget_findings(connection: AsyncConnection, tenant: str, analysis_id: str) -> None:
    """Delete feedback on a report's findings, once one is gone and the others are renumbered."""
    on_it = feedback.c.tenant == tenant, feedback.c.analysis_id == analysis_id
    await connection.execute(delete(feedback).where(*on_it, feedback.c.subject == "finding"))


async def forget_corrections(connection: AsyncConnection, keys: Set[str]) -> None:
    """Delete the corrections of these items."""
    for some in batches(keys):
        await connection.execute(delete(corrections).where(corrections.c.key.in_(some)))


def _fewer(scope: str, day: date, units: int) -> Update:
    left = case((ledger.c.units > units, ledger.c.units - units), else_=0)
    return update(ledger).where(ledger.c.scope == scope, ledger.c.day == day).values(units=left)


def _key(row: Row[*tuple[Any, ...]]) -> ApiKey:
    return ApiKey(row.id, row.name, "store", row.created_at, row.revoked)


def _feedback(row: Row[*tuple[Any, ...]]) -> Feedback:
    number = row.target if row.subject == "finding" else ""
    return Feedback(
        row.analysis_id, row.author, row.subject, row.rating,
        int(number) if number.isdecimal() else None,  # it may be damaged
        row.item_key, row.comment, row.created_at,
    )  # fmt: skip


def _correction(row: Row[*tuple[Any, ...]]) -> StoredCorrection:
    correction = Correction(row.item_key, bool(row.relevant), row.title, row.body, row.place)
    return StoredCorrection(correction, row.question, row.query, row.about, row.source, row.created_at)
