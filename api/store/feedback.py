"""What people thought of reports: one row for each author and thing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Row, delete, select, update
from sqlalchemy import func as sql
from sqlalchemy.ext.asyncio import AsyncConnection

from api.errors import UsageError
from api.services.keeping.storage import Feedback, Thumbs
from api.store.contents import unmentioned
from api.store.database import Part, unbroken
from api.store.tables import analyses, batches, feedback

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
