"""Analyses under way: which process runs them, and what becomes of them when it is gone.

A process on the same machine is looked up by its id and start time; of any other only its heartbeat
is known, a row that it renews every ten seconds.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import sys
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sqlalchemy import delete, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from api.errors import StoreUnavailable
from api.features.analyses.store_ports import DurableWork
from api.store.database import Database, Part, unbroken
from api.store.record_repository import PAGE_LIFE
from api.store.tables import analyses, charges, idempotency, ledger, logins, pages, runs, sessions

BEAT = 10.0
"""Seconds between two heartbeats."""
SILENCE = timedelta(seconds=60)
"""Without a heartbeat for this long a process counts as gone."""
STOPPED = "the process that ran it stopped"
LEDGER_DAYS = timedelta(days=90)
SESSION_DAYS = timedelta(days=30)
IDEMPOTENCY_DAYS = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class Owner:
    """One open store of one process."""

    place: str
    """Host, boot and process namespace: where a process id means something."""
    pid: int
    started: str
    """Start of the process in ticks since boot; empty where the system does not say."""
    id: str = field(default_factory=lambda: secrets.token_hex(8))


def this_process() -> Owner:
    """A new owner for this process."""
    boot = _read("/proc/sys/kernel/random/boot_id")
    try:
        namespace = os.readlink("/proc/self/ns/pid")
    except OSError:
        namespace = ""
    place = " ".join((socket.gethostname(), boot, namespace)).strip()
    return Owner(place, os.getpid(), _started(os.getpid()) or "")


def gone(owner: Owner, seen_at: datetime, here: Owner, now: datetime) -> bool:
    """Whether the process is known to have ended, or has been silent for too long.

    On this machine that is this very process, not another that got its id.
    """
    if owner.place == here.place and sys.platform != "win32":
        if owner.started and _started(owner.pid) != owner.started:
            return True
        if not owner.started:
            try:
                os.kill(owner.pid, 0)
            except ProcessLookupError:
                return True
            except PermissionError:  # it is there, and somebody else's
                pass
    return now - seen_at > SILENCE


def _started(pid: int) -> str | None:
    """When a process began; None when there is none, or it is a zombie, or nobody says."""
    # `4711 (a (b) c) S 1 4711 ...`: the name may hold anything, so the fields follow the last `)`;
    # the first is the state, the start is the nineteenth after it
    state, *fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split() or ("",)
    return fields[18] if state not in {"", "Z", "X"} and len(fields) > 18 else None


def _read(path: str) -> str:
    try:
        return Path(path).read_text("utf-8", "replace").strip()
    except OSError:
        return ""


class RunningPart(Part):
    """Begin, fail and sweep; see `Analyses` for the contract."""

    def __init__(self, database: Database, beat: float = BEAT) -> None:
        """No heart beats before the first analysis begins; `beat` is in seconds."""
        super().__init__(database)
        self._pause = beat
        self._owner = this_process()
        self._heart: asyncio.Task[None] | None = None

    @unbroken
    async def begin(
        self, tenant: str, analysis_id: str, query: str, work_id: str = "", digest: str = ""
    ) -> datetime:
        """Note that an analysis is under way here, and say since when; a done one stays done."""
        now = datetime.now(UTC)
        here = {"state": "running", "run_id": self._owner.id, "work_id": work_id or None,
                "digest": digest}  # fmt: skip
        row = self._database.insert(analyses).values(
            tenant=tenant, id=analysis_id, created_at=now, query=query, **here
        )
        upsert = row.on_conflict_do_update(
            index_elements=[analyses.c.tenant, analyses.c.id],
            set_={**here, "reason": None},
            where=analyses.c.state != "done",
        )
        mine = analyses.c.tenant == tenant, analyses.c.id == analysis_id
        async with self._database.writing() as connection:
            await self._beat(connection, now)
            await connection.execute(upsert)
            created_at = await connection.execute(select(analyses.c.created_at).where(*mine))
            began: datetime = created_at.scalar_one() or now
        self._live()
        return began

    @unbroken
    async def appear(self) -> str:
        """Let other processes know that this one lives, until it is closed; its name."""
        async with self._database.writing() as connection:
            await self._beat(connection, datetime.now(UTC))
        self._live()
        return self._owner.id

    def _live(self) -> None:
        if self._heart is None:
            self._heart = asyncio.create_task(self._keep_beating(), name="store heartbeat")

    @unbroken
    async def fail(self, tenant: str, analysis_id: str, reason: str) -> None:
        """Note that a running one ended without a report; any other stays as it is."""
        mine = analyses.c.tenant == tenant, analyses.c.id == analysis_id
        async with self._database.writing() as connection:
            await _mark_failed(connection, reason, *mine)

    @unbroken
    async def sweep(self) -> int:
        """Mark analyses failed whose process is gone, and drop what nobody needs any more."""
        now = datetime.now(UTC)
        running = (
            select(analyses.c.run_id, runs)
            .join_from(analyses, runs, analyses.c.run_id == runs.c.id, isouter=True)
            .where(
                analyses.c.state == "running",
                analyses.c.work_id.is_(None),
                analyses.c.run_id.is_distinct_from(self._owner.id),
            )
            .distinct()
        )
        swept = 0
        async with self._database.writing() as connection:
            for run_id, _, place, pid, started, seen_at in await connection.execute(running):
                owner = seen_at and Owner(place, pid, started, run_id)
                if owner is None or gone(owner, seen_at, self._owner, now):
                    swept += await _mark_stopped(connection, run_id)
            for past in (
                delete(charges).where(charges.c.day < (now - LEDGER_DAYS).date()),
                delete(pages).where(pages.c.stored_at < now - PAGE_LIFE),
                delete(sessions).where(sessions.c.saved_at < now - SESSION_DAYS),
                delete(idempotency).where(idempotency.c.claimed_at < now - IDEMPOTENCY_DAYS),
                delete(logins).where(logins.c.until < now),
                delete(ledger).where(ledger.c.day < (now - LEDGER_DAYS).date()),
                delete(runs).where(runs.c.seen_at < now - SILENCE - PAGE_LIFE),
            ):
                await connection.execute(past)
        return swept

    @unbroken
    async def running(self, tenant: str, digest: str) -> str | None:
        """The id of durable work under way for a question of this digest."""
        wanted = select(analyses.c.id).where(
            analyses.c.tenant == tenant, analyses.c.digest == digest,
            analyses.c.state == "running", analyses.c.work_id.is_not(None),
        )  # fmt: skip
        async with self._database.reading() as connection:
            analysis_id: str | None = await connection.scalar(wanted.limit(1))
            return analysis_id

    @unbroken
    async def durable(self) -> Sequence[DurableWork]:
        """Analyses under way that do not end with their process."""
        wanted = select(analyses.c.tenant, analyses.c.id, analyses.c.work_id)
        wanted = wanted.where(analyses.c.state == "running", analyses.c.work_id.is_not(None))
        async with self._database.reading() as connection:
            return [DurableWork(*row) for row in await connection.execute(wanted)]

    @unbroken
    async def gone(self, processes: Collection[str]) -> Collection[str]:
        """Of these names of processes, those that have ended or are silent for a minute."""
        now = datetime.now(UTC)
        wanted = select(runs).where(runs.c.id.in_(processes))
        async with self._database.reading() as connection:
            living = {
                row.id
                for row in await connection.execute(wanted)
                if not gone(Owner(row.place, row.pid, row.started, row.id), row.seen_at,
                            self._owner, now)
            }  # fmt: skip
        return set(processes) - living

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
                await _mark_stopped(connection, self._owner.id)
                await connection.execute(delete(runs).where(runs.c.id == self._owner.id))

    async def _keep_beating(self) -> None:
        async def beat() -> None:
            async with self._database.writing() as connection:
                await self._beat(connection, datetime.now(UTC))

        while True:
            await asyncio.sleep(self._pause)
            with suppress(StoreUnavailable):  # the next beat tries again
                await self._database.unbroken(beat())

    async def _beat(self, connection: AsyncConnection, now: datetime) -> None:
        owner = self._owner
        row = self._database.upsert(runs, ("id",), **asdict(owner), seen_at=now)
        await connection.execute(row)


async def _mark_stopped(connection: AsyncConnection, run_id: str) -> int:
    """Mark what ended with its process failed; how many."""
    ends = analyses.c.run_id == run_id, analyses.c.work_id.is_(None)
    return await _mark_failed(connection, STOPPED, *ends)


async def _mark_failed(connection: AsyncConnection, reason: str, *which: object) -> int:
    """Mark running analyses failed; how many."""
    failed = update(analyses).where(analyses.c.state == "running", *which)  # type: ignore[arg-type]
    result = await connection.execute(failed.values(state="failed", reason=reason))
    return result.rowcount
