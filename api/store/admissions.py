"""What opens one report, or the pages, without a key: the digests of links and logins."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import delete, insert, select, update

from api.store.database import Part, unbroken
from api.store.tables import analyses, logins


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
