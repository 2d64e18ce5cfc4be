"""Corrections: a person's verdict on one item of a question, kept per tenant."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any

from sqlalchemy import Row, delete, select
from sqlalchemy import func as sql
from sqlalchemy.ext.asyncio import AsyncConnection

from api.core.domain import Correction
from api.errors import UsageError
from api.features.analyses.corrections import StoredCorrection
from api.store.database import Repository, unbroken
from api.store.tables import batches, corrections

_KEY = corrections.c.tenant, corrections.c.question, corrections.c.key


class CorrectionRepository(Repository):
    """Implements `CorrectionBook`."""

    @unbroken
    async def put_correction(self, tenant: str, entry: StoredCorrection, most: int) -> None:
        said = entry.correction
        row = self._database.insert(corrections).values(
            tenant=tenant, question=entry.question, key=said.key, item_key=said.key,
            relevant=said.relevant, title=said.title, body=said.body, place=said.place,
            source=entry.source, query=entry.query, about=entry.about, created_at=entry.created_at,
        )  # fmt: skip
        fields = ("relevant", "title", "body", "place", "source", "query", "about", "created_at")
        changed = {name: getattr(row.excluded, name) for name in fields}
        of_question = corrections.c.tenant == tenant, corrections.c.question == entry.question
        async with self._database.writing(alone=True) as connection:
            others = select(sql.count()).select_from(corrections)
            others = others.where(*of_question, corrections.c.key != said.key)
            if (await connection.scalar(others) or 0) >= most:
                raise UsageError(f"a question has {most} corrections at most; remove some first")
            upsert = row.on_conflict_do_update(index_elements=_KEY, set_=changed)
            await connection.execute(upsert)

    async def corrections(
        self, tenant: str, question: str | None = None
    ) -> Sequence[StoredCorrection]:
        wanted = select(corrections).where(corrections.c.tenant == tenant)
        if question is not None:
            wanted = wanted.where(corrections.c.question == question)
        wanted = wanted.order_by(corrections.c.created_at, corrections.c.key)
        return tuple(map(_correction, await self._rows(wanted)))

    async def remove_correction(self, tenant: str, question: str, key: str) -> bool:
        one = (
            corrections.c.tenant == tenant,
            corrections.c.question == question,
            corrections.c.key == key,
        )
        return await self._write(delete(corrections).where(*one)) > 0


async def forget_corrected(connection: AsyncConnection, keys: Set[str]) -> None:
    """What was deleted at its source teaches nothing more: its words go with its correction."""
    for some in batches(keys):
        await connection.execute(delete(corrections).where(corrections.c.key.in_(some)))


def _correction(row: Row[*tuple[Any, ...]]) -> StoredCorrection:
    said = Correction(row.item_key, bool(row.relevant), row.title, row.body, row.place)
    return StoredCorrection(said, row.question, row.query, row.about, row.source, row.created_at)
