"""API keys that were added at run time: digests only, the key itself is nowhere."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import UTC, datetime

from sqlalchemy import Row, select, update

from api.errors import UsageError
from api.services.keeping.storage import ApiKey
from api.store.part import Part, unbroken
from api.store.tables import keys


class KeysPart(Part):
    """See `KeyRing` for the contract."""

    @unbroken
    async def add_key(self, name: str, digest: str) -> ApiKey:
        """Store a digest under a new id.

        Raises:
            UsageError: the name, or the key itself, is there already, revoked or not.
        """
        made = ApiKey(f"key_{secrets.token_hex(6)}", name, "store", datetime.now(UTC))
        row = self._database.insert(keys).values(
            id=made.id, name=name, digest=digest, created_at=made.created_at, revoked=False
        )
        async with self._database.writing() as connection:
            added = await connection.execute(row.on_conflict_do_nothing())
        if not added.rowcount:
            raise UsageError(f"a key named `{name}` is there already; choose another name")
        return made

    @unbroken
    async def keys(self) -> Sequence[ApiKey]:
        """All of them, revoked ones too, oldest first."""
        async with self._database.reading() as connection:
            found = await connection.execute(select(keys).order_by(keys.c.created_at, keys.c.id))
            return tuple(map(_key, found))

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


def _key(row: Row[tuple[object, ...]]) -> ApiKey:
    return ApiKey(row.id, row.name, "store", row.created_at, row.revoked)
