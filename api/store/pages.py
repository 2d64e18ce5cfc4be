"""Pages of upstreams, by full plan; what is a day old is dropped when another is kept."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from sqlalchemy import delete, select

from api.store.part import Part, unbroken
from api.store.tables import pages

LONGEST = timedelta(days=1)
"""No page is kept longer."""


class PagesPart(Part):
    """See `PageCache` for the contract."""

    @unbroken
    async def page(self, key: str, ttl: float) -> str | None:
        """The stored text, unless it is older than `ttl` seconds."""
        since = datetime.now(UTC) - timedelta(seconds=ttl)
        found = select(pages.c.text).where(pages.c.key == key, pages.c.stored_at > since)
        async with self._database.reading() as connection:
            text: str | None = await connection.scalar(found)
        return text

    @unbroken
    async def keep_page(self, key: str, text: str) -> None:
        """Store or replace it, and drop what is a day old."""
        now = datetime.now(UTC)
        row = self._database.insert(pages).values(key=key, text=text, stored_at=now)
        upsert = row.on_conflict_do_update(
            index_elements=[pages.c.key],
            set_={"text": row.excluded.text, "stored_at": row.excluded.stored_at},
        )
        async with self._database.writing() as connection:
            await connection.execute(delete(pages).where(pages.c.stored_at < now - LONGEST))
            await connection.execute(upsert)
