"""State that all processes share about sources: who requests an answer now, and how often a source may be asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from pydantic import TypeAdapter, ValidationError
from sqlalchemy import delete, select

from api.store.database import Repository, unbroken
from api.store.record_repository import keep_page, text_of
from api.store.tables import asking, paces, pages

_Counts = dict[str, tuple[int, int, int]]
"""Number of the present window, and the requests in it and in the one before, by the limit's seconds."""
_COUNTS: TypeAdapter[_Counts] = TypeAdapter(_Counts)


class SharedRepository(Repository):
    """Implements the part of `Store` that concerns requests of all processes."""

    @unbroken
    async def claim_answer(self, key: str, asker: str, now: datetime, until: datetime) -> tuple[bool, str | None]:
        # one statement, so that exactly one of two processes gets it
        row = self._database.insert(asking).values(key=key, asker=asker, until=until)
        claim = row.on_conflict_do_update(
            index_elements=[asking.c.key], set_={"asker": asker, "until": until}, where=asking.c.until <= now
        )
        async with self._database.writing() as connection:
            if (await connection.execute(claim)).rowcount != 1:
                return False, None
            return True, text_of(await connection.scalar(select(pages.c.text).where(pages.c.key == key)))

    async def answer_claimed_until(self, key: str) -> datetime | None:
        until: datetime | None = await self._scalar(select(asking.c.until).where(asking.c.key == key))
        return until

    @unbroken
    async def keep_answer(self, key: str, asker: str, text: str | None) -> None:
        async with self._database.writing() as connection:
            if text is not None:
                await keep_page(self._database, connection, key, text)
            await connection.execute(delete(asking).where(asking.c.key == key, asking.c.asker == asker))

    @unbroken
    async def take_turn(
        self, scope: str, limits: Sequence[tuple[int, float]], now: datetime
    ) -> tuple[datetime, bool] | None:
        if not limits:
            ends = select(paces.c.paused_until, paces.c.spent).where(paces.c.scope == scope, paces.c.paused_until > now)
            return next(((row.paused_until, bool(row.spent)) for row in await self._rows(ends)), None)
        new = self._database.insert(paces).values(scope=scope, counts={}, spent=False, used_at=now)
        held = select(paces).where(paces.c.scope == scope).with_for_update()
        async with self._database.writing() as connection:
            await connection.execute(new.on_conflict_do_nothing())
            row = (await connection.execute(held)).one()
            if row.paused_until is not None and row.paused_until > now:
                return row.paused_until, bool(row.spent)
            counts, wait = counted(_counts(row.counts), limits, now.timestamp())
            if wait:
                return now + timedelta(seconds=wait), False
            taken = self._database.upsert(
                paces, ("scope",), scope=scope, counts=counts, paused_until=None, spent=False, used_at=now
            )
            await connection.execute(taken)
            return None

    @unbroken
    async def pause_source(self, scope: str, until: datetime, spent: bool, now: datetime) -> None:
        row = self._database.insert(paces).values(scope=scope, counts={}, paused_until=until, spent=spent, used_at=now)
        later = row.on_conflict_do_update(
            index_elements=[paces.c.scope],
            set_={"paused_until": until, "spent": spent, "used_at": now},
            where=paces.c.paused_until.is_(None) | (paces.c.paused_until < until),
        )
        async with self._database.writing() as connection:
            await connection.execute(later)


def counted(
    before: Mapping[str, tuple[int, int, int]], limits: Sequence[tuple[int, float]], now: float
) -> tuple[_Counts, float]:
    """The counts with one request more, or the seconds until there may be one: as few as 0 when it fits.

    The requests of the last so many seconds are those of the present window and the share of those of the window before
    that lies within them, as if they had come evenly.
    """
    counts, wait = _Counts(), 0.0
    for most, seconds in limits:
        name, number, past = f"{seconds:g}", int(now // seconds), now % seconds
        window, sent, earlier = before.get(name, (number, 0, 0))
        if window != number:
            sent, earlier = 0, sent if window == number - 1 else 0
        if sent + 1 > most:
            wait = max(wait, seconds - past)
        elif sent + 1 + earlier * (1 - past / seconds) > most:
            wait = max(wait, seconds * (1 - (most - sent - 1) / earlier) - past)
        counts[name] = (number, sent + 1, earlier)
    return counts, wait


def _counts(document: object) -> _Counts:
    """The stored counts; empty when they are damaged."""
    try:
        return _COUNTS.validate_python(document)
    except ValidationError:
        return {}
