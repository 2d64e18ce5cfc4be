"""Analyses under way: who runs them, and what becomes of them when that process is gone."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from sqlalchemy import delete, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from api.errors import StoreUnavailable
from api.store.database import Database
from api.store.owners import BEAT, SILENCE, Owner, gone, this_process
from api.store.pages import LONGEST
from api.store.part import Part, unbroken
from api.store.tables import analyses, idempotency, ledger, pages, runs, sessions

STOPPED = "the process that ran it stopped"
LEDGER_DAYS = timedelta(days=90)
SESSION_DAYS = timedelta(days=30)
IDEMPOTENCY_DAYS = timedelta(days=7)


class RunningPart(Part):
    """Begin, fail and sweep; see `Analyses` for the contract."""

    def __init__(self, database: Database, beat: float = BEAT) -> None:
        """No heart beats before the first analysis begins; `beat` is in seconds."""
        super().__init__(database)
        self._pause = beat
        self._owner = this_process()
        self._heart: asyncio.Task[None] | None = None

    @unbroken
    async def begin(self, tenant: str, analysis_id: str, query: str) -> datetime:
        """Note that an analysis is under way here, and say since when; a done one stays done."""
        now = datetime.now(UTC)
        row = self._database.insert(analyses).values(
            tenant=tenant, id=analysis_id, state="running", run_id=self._owner.id,
            created_at=now, query=query,
        )  # fmt: skip
        again = {"state": "running", "run_id": self._owner.id, "reason": None}
        upsert = row.on_conflict_do_update(
            index_elements=[analyses.c.tenant, analyses.c.id],
            set_=again,
            where=analyses.c.state != "done",
        )
        async with self._database.writing() as connection:
            await self._beat(connection, now)
            await connection.execute(upsert)
            mine = analyses.c.tenant == tenant, analyses.c.id == analysis_id
            found = await connection.execute(select(analyses.c.created_at).where(*mine))
            began: datetime = found.scalar_one()
        if self._heart is None:
            self._heart = asyncio.create_task(self._beating(), name="store heartbeat")
        return began

    @unbroken
    async def fail(self, tenant: str, analysis_id: str, reason: str) -> None:
        """Note that a running one ended without a report; any other stays as it is."""
        mine = analyses.c.tenant == tenant, analyses.c.id == analysis_id
        async with self._database.writing() as connection:
            await _failed(connection, reason, *mine)

    @unbroken
    async def sweep(self) -> int:
        """Mark analyses failed whose process is gone, and drop what nobody needs any more."""
        now = datetime.now(UTC)
        running = (
            select(analyses.c.run_id, runs)
            .join_from(analyses, runs, analyses.c.run_id == runs.c.id, isouter=True)
            .where(analyses.c.state == "running")
            .distinct()
        )
        swept = 0
        async with self._database.writing() as connection:
            for run_id, *told, seen_at in (await connection.execute(running)).all():
                if run_id != self._owner.id and (not seen_at or self._gone(told, seen_at, now)):
                    swept += await _failed(connection, STOPPED, analyses.c.run_id == run_id)
            await _drop_old(connection, now)
        return swept

    def _gone(self, told: list[object], seen_at: datetime, now: datetime) -> bool:
        run_id, place, pid, started = told
        owner = Owner(str(place), int(str(pid)), str(started), str(run_id))
        return gone(owner, seen_at, self._owner, now)

    async def _stop(self) -> None:
        """End the heartbeat; what still runs here will never be finished."""
        if self._heart is None:
            return
        self._heart.cancel()
        with suppress(asyncio.CancelledError):
            await self._heart
        self._heart = None
        with suppress(StoreUnavailable):
            async with self._database.writing() as connection:
                await _failed(connection, STOPPED, analyses.c.run_id == self._owner.id)
                await connection.execute(delete(runs).where(runs.c.id == self._owner.id))

    async def _beating(self) -> None:
        while True:
            await asyncio.sleep(self._pause)
            with suppress(StoreUnavailable):  # the next beat tries again
                await self._renew()

    @unbroken
    async def _renew(self) -> None:
        async with self._database.writing() as connection:
            await self._beat(connection, datetime.now(UTC))

    async def _beat(self, connection: AsyncConnection, now: datetime) -> None:
        owner = self._owner
        row = self._database.insert(runs).values(
            id=owner.id, place=owner.place, pid=owner.pid, started=owner.started, seen_at=now
        )
        upsert = row.on_conflict_do_update(index_elements=[runs.c.id], set_={"seen_at": now})
        await connection.execute(upsert)


async def _failed(connection: AsyncConnection, reason: str, *which: object) -> int:
    """Mark running analyses failed; how many."""
    failed = update(analyses).where(analyses.c.state == "running", *which)  # type: ignore[arg-type]
    result = await connection.execute(failed.values(state="failed", reason=reason))
    return result.rowcount


async def _drop_old(connection: AsyncConnection, now: datetime) -> None:
    """Pages, sessions, idempotency keys, days of the ledger and dead processes past their time."""
    for old in (
        delete(pages).where(pages.c.stored_at < now - LONGEST),
        delete(sessions).where(sessions.c.saved_at < now - SESSION_DAYS),
        delete(idempotency).where(idempotency.c.claimed_at < now - IDEMPOTENCY_DAYS),
        delete(ledger).where(ledger.c.day < (now - LEDGER_DAYS).date()),
        delete(runs).where(runs.c.seen_at < now - SILENCE - LONGEST),
    ):
        await connection.execute(old)
