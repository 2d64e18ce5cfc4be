"""Watches, their runs and what they have seen; one conditional update decides who runs one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError
from sqlalchemy import ColumnElement, Row, Select, and_, case, delete, or_, select, update
from sqlalchemy import func as sql
from sqlalchemy.ext.asyncio import AsyncConnection

from api.core.items import Item
from api.core.published import Published
from api.errors import UsageError
from api.features.watches.watch import Watch
from api.features.watches.watch_ports import KeptCounts, RunClaim, SeenPost
from api.features.watches.watch_run import Delivery, RunCounts, WatchRun
from api.store.database import Repository, unbroken
from api.store.tables import batches, watch_items, watch_runs, watches

P = TypeVar("P", bound=Published)
_WATCH, _ITEM = TypeAdapter(Watch), TypeAdapter(Item)
# Fields of a watch that have columns of their own.
_KEPT = ("paused", "due_at", "began_at", "feed")
# Those of them that `change_watch` leaves alone: the first run and `set_feed` write them.
_UNCHANGED = ("began_at", "feed")


class WatchRepository(Repository):
    """Watches, their runs and seen posts in the database."""

    @unbroken
    async def add_watch(self, watch: Watch, most: int) -> None:
        # alone, so that no two of one name come in at once
        async with self._database.writing(alone=True) as connection:
            count = select(sql.count()).where(watches.c.tenant == watch.tenant)
            if (await connection.scalar(count) or 0) >= most:
                raise UsageError(f"there are {most} watches; remove one first")
            await _check_name(connection, watch)
            row = self._database.insert(watches).values(
                tenant=watch.tenant, id=watch.id, created_at=watch.created_at, **_columns(watch)
            )
            await connection.execute(row)

    async def watches(self, tenant: str) -> Sequence[Watch]:
        wanted = select(watches).where(watches.c.tenant == tenant)
        wanted = wanted.order_by(watches.c.created_at, watches.c.id)
        rows = await self._rows(wanted)
        return [watch for row in rows if (watch := _watch(row)) is not None]

    @unbroken
    async def change_watch(self, watch: Watch) -> bool:
        columns = {name: value for name, value in _columns(watch).items() if name not in _UNCHANGED}
        async with self._database.writing(alone=True) as connection:
            await _check_name(connection, watch)
            changed = update(watches).where(*_is(watch.tenant, watch.id)).values(**columns)
            return (await connection.execute(changed)).rowcount > 0

    async def drop_watch(self, tenant: str, watch_id: str) -> bool:
        return await self._write(delete(watches).where(*_is(tenant, watch_id))) > 0

    @unbroken
    async def claim_due(self, now: datetime, until: datetime, run_id: str) -> RunClaim | None:
        due = _due(now).limit(1)
        async with self._database.writing() as connection:
            while (row := (await connection.execute(due)).one_or_none()) is not None:
                claim = await _claimed(connection, row, now, until, run_id)
                if claim is not None:
                    return claim
        return None

    async def due_watches(self, now: datetime, most: int) -> Sequence[Watch]:
        rows = await self._rows(_due(now).limit(most))
        return [watch for row in rows if (watch := _watch(row)) is not None]

    @unbroken
    async def claim_watch(
        self,
        tenant: str,
        watch_id: str,
        now: datetime,
        until: datetime,
        run_id: str,
        due_at: datetime | None = None,
    ) -> RunClaim | None:
        free = or_(_free(now), watches.c.claim == run_id)
        wanted = select(watches).where(*_is(tenant, watch_id), free)
        if due_at is not None:
            wanted = wanted.where(watches.c.due_at == due_at, watches.c.paused.is_(False))
        async with self._database.writing() as connection:
            row = (await connection.execute(wanted)).one_or_none()
            return None if row is None else await _claimed(connection, row, now, until, run_id)

    @unbroken
    async def finish_run(self, claim: RunClaim, run: WatchRun, learnt: Sequence[SeenPost], due_at: datetime) -> bool:
        watch = claim.watch
        began = None if run.counts is None else run.counts.until
        moved = update(watches).where(*_is(watch.tenant, watch.id), watches.c.claim == claim.run_id)
        moved = moved.values(
            # a person may have set another time meanwhile
            due_at=case((watches.c.due_at == watch.due_at, due_at), else_=watches.c.due_at),
            began_at=sql.coalesce(watches.c.began_at, began), claim=None, claimed_until=None,
        )  # fmt: skip
        owner = {"tenant": watch.tenant, "watch_id": watch.id}
        async with self._database.writing() as connection:
            if not (await connection.execute(moved)).rowcount:
                return False
            row = self._database.upsert(
                watch_runs, ("tenant", "watch_id", "id"), **owner, id=run.id, rule=watch.rule,
                counts=run.counts and run.counts.model_dump(mode="json"),
                body=run.model_dump(mode="json"), news=run.news, created_at=run.created_at,
            )  # fmt: skip
            await connection.execute(row)
            for known in learnt:
                seen = self._database.upsert(
                    watch_items, ("tenant", "watch_id", "key"), **owner, key=known.key,
                    dropped_by=known.dropped_by, seen_at=run.created_at,
                    facts=known.item and _ITEM.dump_python(known.item, mode="json"),
                )  # fmt: skip
                await connection.execute(seen)
        return True

    async def release_claim(self, claim: RunClaim) -> None:
        mine = *_is(claim.watch.tenant, claim.watch.id), watches.c.claim == claim.run_id
        await self._write(update(watches).where(*mine).values(claimed_until=None))

    async def watch_runs(self, tenant: str, watch_id: str, limit: int, *, news: bool = False) -> Sequence[WatchRun]:
        wanted = select(watch_runs.c.body).where(watch_runs.c.tenant == tenant, watch_runs.c.watch_id == watch_id)
        if news:
            wanted = wanted.where(watch_runs.c.news)
        wanted = wanted.order_by(watch_runs.c.created_at.desc(), watch_runs.c.id).limit(limit)
        rows = await self._rows(wanted)
        return [run for row in rows if (run := _read(WatchRun, row.body)) is not None]

    @unbroken
    async def keep_deliveries(self, watch: Watch, run_id: str, deliveries: Sequence[Delivery]) -> None:
        mine = (
            watch_runs.c.tenant == watch.tenant, watch_runs.c.watch_id == watch.id,
            watch_runs.c.id == run_id,
        )  # fmt: skip
        # alone, so that two processes that deliver at once do not undo each other
        async with self._database.writing(alone=True) as connection:
            body = await connection.scalar(select(watch_runs.c.body).where(*mine))
            run = _read(WatchRun, body)
            if run is not None:
                merged = tuple(
                    before if before.delivered else now for before, now in zip(run.deliveries, deliveries, strict=True)
                )
                kept = run.model_copy(update={"deliveries": merged}).model_dump(mode="json")
                await connection.execute(update(watch_runs).where(*mine).values(body=kept))

    async def set_feed(self, watch: Watch, digest: str | None) -> bool:
        mine = _is(watch.tenant, watch.id)
        return await self._write(update(watches).where(*mine).values(feed=digest)) > 0

    async def watch_of_feed(self, watch_id: str, digest: str) -> Watch | None:
        wanted = select(watches).where(watches.c.feed == digest, watches.c.id == watch_id)
        rows = await self._rows(wanted)
        return _watch(rows[0]) if rows else None

    async def watch_of_link(self, watch_id: str) -> Watch | None:
        rows = await self._rows(select(watches).where(watches.c.id == watch_id))
        return _watch(rows[0]) if rows else None

    async def past_counts(self, watch: Watch, since: datetime, most: int) -> Sequence[RunCounts]:
        wanted = select(watch_runs.c.counts).where(
            watch_runs.c.tenant == watch.tenant, watch_runs.c.watch_id == watch.id,
            watch_runs.c.rule == watch.rule, watch_runs.c.created_at >= since,
            watch_runs.c.counts.is_not(None),
        )  # fmt: skip
        wanted = wanted.order_by(watch_runs.c.created_at.desc()).limit(most)
        rows = await self._rows(wanted)
        return [counts for row in rows if (counts := _read(RunCounts, row.counts)) is not None]

    async def kept_counts(self, watch: Watch, since: datetime, most: int) -> Sequence[KeptCounts]:
        wanted = select(watch_runs.c.rule, watch_runs.c.created_at, watch_runs.c.counts).where(
            watch_runs.c.tenant == watch.tenant, watch_runs.c.watch_id == watch.id,
            watch_runs.c.created_at >= since,
        )  # fmt: skip
        wanted = wanted.order_by(watch_runs.c.created_at.desc()).limit(most)
        return [KeptCounts(row.rule, row.created_at, _read(RunCounts, row.counts)) for row in await self._rows(wanted)]

    async def holds_claim(self, claim: RunClaim) -> bool:
        mine = *_is(claim.watch.tenant, claim.watch.id), watches.c.claim == claim.run_id
        return await self._scalar(select(watches.c.id).where(*mine)) is not None

    @unbroken
    async def seen_posts(self, watch: Watch, most: int) -> Sequence[SeenPost]:
        mine = watch_items.c.tenant == watch.tenant, watch_items.c.watch_id == watch.id
        keys = select(watch_items.c.key, watch_items.c.dropped_by).where(*mine)
        worded = select(watch_items.c.key, watch_items.c.facts)
        worded = worded.where(*mine, watch_items.c.facts.is_not(None))
        worded = worded.order_by(watch_items.c.seen_at.desc(), watch_items.c.key).limit(most)
        async with self._database.reading() as connection:
            facts = {key: _item(facts) for key, facts in await connection.execute(worded)}
            rows = (await connection.execute(keys)).all()
        return [SeenPost(row.key, row.dropped_by, facts.get(row.key)) for row in rows]


async def forget_watched(connection: AsyncConnection, keys: Iterable[str]) -> None:
    """What watches hold of posts that are to be forgotten; the keys alone stay known."""
    for some in batches(keys):
        seen = update(watch_items).where(watch_items.c.key.in_(some))
        await connection.execute(seen.values(facts=None))
        holders = select(watch_items.c.tenant, watch_items.c.watch_id)
        holders = holders.where(watch_items.c.key.in_(some)).distinct()
        for tenant, watch_id in (await connection.execute(holders)).all():
            same = watch_runs.c.tenant == tenant, watch_runs.c.watch_id == watch_id
            runs = select(watch_runs.c.id, watch_runs.c.body).where(*same)
            for run_id, body in (await connection.execute(runs)).all():
                run = _read(WatchRun, body)
                if run is not None and any(post.key in some for post in run.new):
                    left = tuple(post for post in run.new if post.key not in some)
                    questions = tuple(question for question in run.questions if not set(some) & {*question.cites})
                    kept = run.model_copy(update={"new": left, "questions": questions})
                    changed = update(watch_runs).where(*same, watch_runs.c.id == run_id)
                    await connection.execute(changed.values(body=kept.model_dump(mode="json")))


def _is(tenant: str, watch_id: str) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return watches.c.tenant == tenant, watches.c.id == watch_id


def _due(now: datetime) -> Select[*tuple[Any, ...]]:
    due = watches.c.paused.is_(False), watches.c.due_at <= now, _free(now)
    return select(watches).where(*due).order_by(watches.c.due_at, watches.c.id)


def _free(now: datetime) -> ColumnElement[bool]:
    """Nobody's, or of a process whose time is over."""
    return or_(watches.c.claimed_until.is_(None), watches.c.claimed_until <= now)


async def _claimed(
    connection: AsyncConnection,
    row: Row[*tuple[Any, ...]],
    now: datetime,
    until: datetime,
    run_id: str,
) -> RunClaim | None:
    """The claim, unless another process was faster; a damaged watch is paused instead."""
    owned = row.claim or run_id
    watch = _watch(row)
    mine = or_(_free(now), watches.c.claim == run_id)
    same = and_(*_is(row.tenant, row.id), watches.c.due_at == row.due_at, mine)
    if watch is None:
        await connection.execute(update(watches).where(same).values(paused=True))
        return None
    taken = update(watches).where(same).values(claim=owned, claimed_until=until)
    if not (await connection.execute(taken)).rowcount:
        return None
    return RunClaim(watch, owned)


async def _check_name(connection: AsyncConnection, watch: Watch) -> None:
    same = select(watches.c.id).where(
        watches.c.tenant == watch.tenant, watches.c.name == watch.name, watches.c.id != watch.id
    )
    if (await connection.execute(same)).first() is not None:
        wrong = f"a watch named “{watch.name}” is there already; give it another `name`"
        raise UsageError(wrong, field="name")


def _columns(watch: Watch) -> dict[str, Any]:
    body = _WATCH.dump_python(watch, mode="json", exclude=set(_KEPT))
    return {"name": watch.name, "body": body} | {name: getattr(watch, name) for name in _KEPT}


def _watch(row: Row[*tuple[Any, ...]]) -> Watch | None:
    """The watch of a row; None when it is damaged."""
    columns = {name: getattr(row, name) for name in _KEPT}
    try:
        return _WATCH.validate_python({**row.body, **columns})
    except (ValidationError, TypeError):
        return None


def _item(facts: object) -> Item | None:
    try:
        return _ITEM.validate_python(facts)
    except ValidationError:
        return None


def _read(shape: type[P], body: object) -> P | None:
    try:
        return shape.model_validate(body)
    except ValidationError:
        return None
