"""Chat sessions and idempotency keys."""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import select

from api.errors import UsageError
from api.store.columns import identity
from api.store.part import Part, unbroken
from api.store.tables import idempotency, sessions


class SessionsPart(Part):
    """See `Sessions` for the contract."""

    @unbroken
    async def session(self, tenant: str, session_id: str) -> str | None:
        """What was last saved."""
        wanted = select(sessions.c.text)
        wanted = wanted.where(sessions.c.tenant == tenant, sessions.c.id == session_id)
        async with self._database.reading() as connection:
            text: str | None = await connection.scalar(wanted)
        return text

    @unbroken
    async def keep_session(self, tenant: str, session_id: str, text: str) -> None:
        """Save it."""
        now = datetime.now(UTC)
        row = self._database.insert(sessions).values(
            tenant=tenant, id=session_id, text=text, saved_at=now
        )
        upsert = row.on_conflict_do_update(
            index_elements=[sessions.c.tenant, sessions.c.id],
            set_={"text": row.excluded.text, "saved_at": row.excluded.saved_at},
        )
        async with self._database.writing() as connection:
            await connection.execute(upsert)


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
