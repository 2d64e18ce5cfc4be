"""Analyses under way: which process runs them, and what becomes of them when it has ended.

A process on the same machine is looked up by its id and start time; of any other only its heartbeat
is known, a row that it renews every ten seconds.
"""

from __future__ import annotations

import asyncio
import math
import os
import secrets
import socket
import sys
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import ColumnElement, Insert, Row, Update, delete, literal_column, select, update

from api.errors import StoreUnavailable
from api.features.analyses.store_ports import DurableWork
from api.store.database import Database, Repository, unbroken
from api.store.retention import SILENCE, expired
from api.store.tables import analyses, runs

BEAT = 10.0
"""Seconds between two heartbeats."""
STOPPED = "the process that ran it stopped"
# in the words of the indexes that hold running analyses alone: SQLite uses none of them for a bound value
_RUNNING = analyses.c.state == literal_column("'running'")


@dataclass(frozen=True, slots=True)
class Owner:
    """One open store in one process."""

    place: str
    """Host, boot and process namespace, within which a process id is unique."""
    pid: int
    started: str
    """Start of the process in ticks since boot; empty when the system does not say."""
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
    """Whether a process has ended, or has sent no heartbeat for `SILENCE`.

    On this machine another process that got the same id does not count.
    """
    if owner.place == here.place and sys.platform != "win32":
        if owner.started and _started(owner.pid) != owner.started:
            return True
        if not owner.started:
            try:
                os.kill(owner.pid, 0)
            except ProcessLookupError:
                return True
            except PermissionError:  # it runs, as another user
                pass
    return now - seen_at > SILENCE


def _started(pid: int) -> str | None:
    """When a process began; None when it has ended, is a zombie, or the system does not say."""
    # `4711 (a (b) c) S 1 4711 ...`: the name may hold anything, so the fields follow the last `)`;
    # the first is the state, the start is the nineteenth after it
    state, *fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split() or ("",)
    return fields[18] if state not in {"", "Z", "X"} and len(fields) > 18 else None


def _read(path: str) -> str:
    try:
        return Path(path).read_text("utf-8", "replace").strip()
    except OSError:
        return ""


class RunningRepository(Repository):
    """Implements the part of `Store` that concerns analyses under way and processes."""

    def __init__(self, database: Database, beat: float = BEAT) -> None:
        """Start with no heartbeat, which begins with the first analysis or `appear`; `beat` is in seconds."""
        super().__init__(database)
        self._pause = beat
        self._owner = this_process()
        self._heart: asyncio.Task[None] | None = None
        self._beaten = -math.inf  # by the monotonic clock

    @unbroken
    async def begin(self, tenant: str, analysis_id: str, query: str, work_id: str = "", digest: str = "") -> datetime:
        now = datetime.now(UTC)
        here = {"state": "running", "run_id": self._owner.id, "work_id": work_id or None,
                "digest": digest}  # fmt: skip
        row = self._database.insert(analyses).values(tenant=tenant, id=analysis_id, created_at=now, query=query, **here)
        upsert = row.on_conflict_do_update(
            index_elements=[analyses.c.tenant, analyses.c.id],
            set_={**here, "reason": None},
            where=analyses.c.state != "done",
        )
        mine, beaten = (analyses.c.tenant == tenant, analyses.c.id == analysis_id), time.monotonic()
        async with self._database.writing() as connection:
            if beaten - self._beaten > 2 * self._pause:  # else the heart's own beat is fresh
                await connection.execute(self._heartbeat())
            else:
                beaten = self._beaten
            created_at = await connection.scalar(upsert.returning(analyses.c.created_at))
            if created_at is None:  # it is done already, and stays so
                created_at = await connection.scalar(select(analyses.c.created_at).where(*mine))
        self._beaten = max(self._beaten, beaten)
        self._start_beating()
        return created_at or now

    async def appear(self) -> str:
        await self._write(self._heartbeat())
        self._start_beating()
        return self._owner.id

    def _start_beating(self) -> None:
        if self._heart is None:
            self._heart = asyncio.create_task(self._keep_beating(), name="store heartbeat")

    async def fail(self, tenant: str, analysis_id: str, reason: str, work_id: str | None = None) -> bool:
        mine = analyses.c.tenant == tenant, analyses.c.id == analysis_id, *self._as_begun(work_id)
        return await self._write(_failed(reason, *mine)) > 0

    def _as_begun(self, work_id: str | None) -> tuple[ColumnElement[bool], ...]:
        """Conditions on a row that this process was the last to begin, for this work; none for None."""
        if work_id is None:
            return ()
        return analyses.c.run_id == self._owner.id, analyses.c.work_id.is_not_distinct_from(work_id or None)

    @unbroken
    async def sweep(self) -> int:
        now = datetime.now(UTC)
        running = (
            select(analyses.c.run_id, runs)
            .join_from(analyses, runs, analyses.c.run_id == runs.c.id, isouter=True)
            .where(
                _RUNNING,
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
                    swept += (await connection.execute(_stopped(run_id))).rowcount
            for past in expired(now):
                await connection.execute(past)
        return swept

    async def running(self, tenant: str, digest: str) -> str | None:
        wanted = select(analyses.c.id).where(
            analyses.c.tenant == tenant, analyses.c.digest == digest,
            _RUNNING, analyses.c.work_id.is_not(None),
        )  # fmt: skip
        analysis_id: str | None = await self._scalar(wanted.limit(1))
        return analysis_id

    async def durable(self) -> Sequence[DurableWork]:
        wanted = select(analyses.c.tenant, analyses.c.id, analyses.c.work_id)
        wanted = wanted.where(_RUNNING, analyses.c.work_id.is_not(None))
        return [DurableWork(*row) for row in await self._rows(wanted)]

    async def gone(self, processes: Collection[str]) -> Collection[str]:
        now = datetime.now(UTC)
        living = {
            owner.id
            for row in await self._rows(select(runs).where(runs.c.id.in_(processes)))
            if not gone(owner := _owner(row), row.seen_at, self._owner, now)
        }
        return set(processes) - living

    async def _stop(self) -> None:
        """Stop the heartbeat; running analyses of this process are marked as failed."""
        if self._heart is None:
            return
        self._heart.cancel()
        with suppress(asyncio.CancelledError):
            await self._heart
        self._heart = None
        with suppress(StoreUnavailable):
            async with self._database.writing() as connection:
                await connection.execute(_stopped(self._owner.id))
                await connection.execute(delete(runs).where(runs.c.id == self._owner.id))

    async def _keep_beating(self) -> None:
        while True:
            await asyncio.sleep(self._pause)
            with suppress(StoreUnavailable):  # the next beat tries again
                await self._write(self._heartbeat())
                self._beaten = time.monotonic()

    def _heartbeat(self) -> Insert:
        now = datetime.now(UTC)
        return self._database.upsert(runs, ("id",), **asdict(self._owner), seen_at=now)


def _owner(row: Row[*tuple[Any, ...]]) -> Owner:
    return Owner(row.place, row.pid, row.started, row.id)


def _stopped(run_id: str) -> Update:
    """Marks the analyses as failed that end with this process."""
    return _failed(STOPPED, analyses.c.run_id == run_id, analyses.c.work_id.is_(None))


def _failed(reason: str, *which: ColumnElement[bool]) -> Update:
    running = update(analyses).where(_RUNNING, *which)
    return running.values(state="failed", reason=reason)
