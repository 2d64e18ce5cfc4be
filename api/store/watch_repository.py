"""Stores watches, runs and seen posts; one conditional update decides which process runs a watch."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError
from sqlalchemy import ColumnElement, Row, Select, and_, case, delete, or_, select, text, update
from sqlalchemy import func as sql
from sqlalchemy.ext.asyncio import AsyncConnection

from api.core.items import Item
from api.core.published import Published
from api.errors import UsageError
from api.features.watches.watch import Watch, next_digest
from api.features.watches.watch_ports import STREAM_RUN, DigestClaim, KeptCounts, RunClaim, SeenPost
from api.features.watches.watch_run import Delivery, RunCounts, WatchRun
from api.store.database import unbroken
from api.store.inbox_repository import InboxRepository, add_to_inbox, drop_entries, forget_entries
from api.store.tables import batches, identity, stream_posts, watch_items, watch_runs, watches

P = TypeVar("P", bound=Published)
MOST_GATHERED = 3_000
"""Runs of one digest, the oldest that wait: more than a stream's in a week."""
_WATCH, _ITEM = TypeAdapter(Watch), TypeAdapter(Item)
# Fields of a watch that have columns of their own.
_KEPT = ("paused", "due_at", "began_at", "feed")
WATCH_COLUMNS = (watches.c.tenant, watches.c.id, watches.c.body, *(watches.c[name] for name in _KEPT))
"""Columns that `read_watch` reads."""
# Those of them that `change_watch` leaves alone: the first run and `set_feed` write them.
_UNCHANGED = ("began_at", "feed")


class WatchRepository(InboxRepository):
    """Watches, their runs, seen posts and inbox in the database."""

    @unbroken
    async def add_watch(self, watch: Watch, most: int) -> None:
        # alone, so that no two of one name come in at once
        async with self._database.writing(alone=True) as connection:
            count = select(sql.count()).where(watches.c.tenant == watch.tenant)
            if (await connection.scalar(count) or 0) >= most:
                raise UsageError(f"there are {most} watches; remove one first")
            await _check_name(connection, watch)
            row = self._database.insert(watches).values(
                tenant=watch.tenant, id=watch.id, created_at=watch.created_at, **columns_of_watch(watch),
                history_due=watch.as_it_happens or None,
            )  # fmt: skip
            await connection.execute(row)

    async def watches(self, tenant: str) -> Sequence[Watch]:
        wanted = select(watches).where(watches.c.tenant == tenant)
        wanted = wanted.order_by(watches.c.created_at, watches.c.id)
        rows = await self._rows(wanted)
        return [watch for row in rows if (watch := read_watch(row)) is not None]

    @unbroken
    async def change_watch(self, watch: Watch) -> bool:
        columns = {name: value for name, value in columns_of_watch(watch).items() if name not in _UNCHANGED}
        async with self._database.writing(alone=True) as connection:
            await _check_name(connection, watch)
            row = (await connection.execute(select(watches).where(*_is(watch.tenant, watch.id)))).one_or_none()
            before = None if row is None else read_watch(row)
            if not watch.as_it_happens:
                columns["history_due"] = None
            elif before is not None and not before.as_it_happens:
                columns["history_due"] = True
            if await connection.scalar(select(watch_runs.c.id).where(*_held(watch)).limit(1)):
                # for receivers that have no digest any more, or are gone; one that is due stays so
                columns["digest_at"] = min(filter(None, (datetime.now(UTC), row and row.digest_at)))
            if not watch.follows_streams:  # nor is notified of them when it goes on
                mine = stream_posts.c.tenant == watch.tenant, stream_posts.c.watch_id == watch.id
                await connection.execute(delete(stream_posts).where(*mine))
            changed = update(watches).where(*_is(watch.tenant, watch.id)).values(**columns)
            return (await connection.execute(changed)).rowcount > 0

    @unbroken
    async def drop_watch(self, tenant: str, watch_id: str) -> bool:
        async with self._database.writing() as connection:
            gone = await connection.execute(delete(watches).where(*_is(tenant, watch_id)))
            await drop_entries(connection, tenant, watch_id)
        return gone.rowcount > 0

    @unbroken
    async def claim_due(self, now: datetime, until: datetime, run_id: str) -> RunClaim | None:
        due = _due(now).limit(1).with_for_update(skip_locked=True)  # SQLite has one writer at a time
        async with self._database.writing() as connection:
            while (row := (await connection.execute(due)).one_or_none()) is not None:
                claim = await _claimed(connection, row, now, until, run_id)
                if claim is not None:
                    return claim
        return None

    async def due_watches(self, now: datetime, most: int) -> Sequence[Watch]:
        rows = await self._rows(_due(now).limit(most))
        return [watch for row in rows if (watch := read_watch(row)) is not None]

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
        free = or_(is_free(now), watches.c.claim == run_id)
        wanted = select(watches).where(*_is(tenant, watch_id), free)
        if due_at is not None:
            wanted = wanted.where(watches.c.due_at == due_at, watches.c.paused.is_(False))
        async with self._database.writing() as connection:
            row = (await connection.execute(wanted)).one_or_none()
            return None if row is None else await _claimed(connection, row, now, until, run_id)

    @unbroken
    async def finish_run(
        self,
        claim: RunClaim,
        run: WatchRun,
        learnt: Sequence[SeenPost],
        due_at: datetime,
        judged: Sequence[str] = (),
        judged_from: datetime | None = None,
        unjudged_before: int = 0,
    ) -> bool:
        watch = claim.watch
        began = None if run.counts is None else run.counts.until
        history = run.as_it_happens and run.state == "baseline"
        newly_unjudged = (0 if run.news else run.unjudged) - unjudged_before
        moved = update(watches).where(*_is(watch.tenant, watch.id), watches.c.claim == claim.run_id)
        moved = moved.values(
            # a person may have set another time meanwhile
            due_at=case((watches.c.due_at == watch.due_at, due_at), else_=watches.c.due_at),
            began_at=sql.coalesce(watches.c.began_at, began), claim=None, claimed_until=None,
            **{"judged_from": judged_from} if judged_from else {},
            **{"history_due": None} if history else {},
            # where nobody is notified of this run, the next one says so
            **{"unjudged": sql.coalesce(watches.c.unjudged, 0) + newly_unjudged} if newly_unjudged else {},
            # a person may have taken the digest away meanwhile
            **{"digest_at": sql.coalesce(watches.c.digest_at, run.created_at)} if run.waits_for_digest else {},
        )  # fmt: skip
        owner = {"tenant": watch.tenant, "watch_id": watch.id}
        # entries of the archive are numbered in the order in which they are committed
        async with self._database.writing(alone=bool(judged)) as connection:
            if not (await connection.execute(moved)).rowcount:
                return False
            if judged:  # what was deleted meanwhile is neither kept nor known
                left = {identity(key) for key in await _take_waiting(connection, watch, judged)}
                learnt = [post for post in learnt if identity(post.key) in left]
                run = run.model_copy(update={"new": tuple(post for post in run.new if identity(post.key) in left)})
            if run.state == "baseline" and not run.news:
                waiting = select(stream_posts.c.key).where(
                    stream_posts.c.tenant == watch.tenant, stream_posts.c.watch_id == watch.id
                )
                told_later = set(await connection.scalars(waiting))
                learnt = [post for post in learnt if identity(post.key) not in told_later]
            # of posts that came by a stream only those of notifications: others are looked at every second
            row = self._database.upsert(
                watch_runs, ("tenant", "watch_id", "id"), **owner, id=run.id, rule=watch.rule,
                counts=run.counts and run.counts.model_dump(mode="json"),
                body=run.model_dump(mode="json"), news=run.news, created_at=run.created_at,
                held=run.waits_for_digest or None,
            )  # fmt: skip
            if run.news or history or not run.as_it_happens:
                await connection.execute(row)
            await self._keep_seen(connection, owner, learnt, run.created_at)
            if run.news:
                await add_to_inbox(connection, self._database, watch, run, learnt)
            if judged:
                posts = [known.item for known in learnt if known.item is not None]
                await self._archive(connection, watch, posts, sample=run.sample)
        if judged:
            self._archived(watch)
        return True

    async def _keep_seen(
        self, connection: AsyncConnection, owner: Mapping[str, str], learnt: Sequence[SeenPost], seen_at: datetime
    ) -> None:
        if not learnt:
            return
        insert = self._database.insert(watch_items)
        changed = {name: insert.excluded[name] for name in ("dropped_by", "seen_at", "facts")}
        seen = insert.on_conflict_do_update(index_elements=["tenant", "watch_id", "key"], set_=changed)
        rows = [
            {
                **owner, "key": known.key, "dropped_by": known.dropped_by, "seen_at": seen_at,
                "facts": known.item and item_json(known.item),
            }
            for known in learnt
        ]  # fmt: skip
        await connection.execute(seen, rows)

    async def _archive(self, connection: AsyncConnection, watch: Watch, posts: Sequence[Item], *, sample: bool) -> None:
        """Put posts of a stream that were kept into the archive; `StreamRepository` does."""

    def _archived(self, watch: Watch) -> None:
        """Have posts embedded that `_archive` stored, once they are committed; `StreamRepository` does."""

    async def release_claim(self, claim: RunClaim) -> None:
        mine = *_is(claim.watch.tenant, claim.watch.id), watches.c.claim == claim.run_id
        await self._write(update(watches).where(*mine).values(claimed_until=None))

    @unbroken
    async def claim_digest(self, now: datetime, until: datetime) -> DigestClaim | None:
        free = or_(watches.c.digest_until.is_(None), watches.c.digest_until <= now)
        due = (
            select(watches).where(watches.c.digest_at <= now, free).order_by(watches.c.digest_at, watches.c.id).limit(1)
        )
        if not await self._rows(due):  # asked every few seconds, and seldom so
            return None
        claimed: tuple[Watch, datetime] | None = None
        bodies: list[Any] = []
        async with self._database.writing() as connection:
            locked = due.with_for_update(skip_locked=True)
            while (row := (await connection.execute(locked)).one_or_none()) is not None:
                same = _is(row.tenant, row.id)
                watch, runs = read_watch(row), row.digest_runs
                if watch is not None and runs is None:
                    held = (
                        select(watch_runs.c.id).where(*_held(watch)).order_by(watch_runs.c.created_at, watch_runs.c.id)
                    )
                    runs = list(await connection.scalars(held.limit(MOST_GATHERED)))
                if watch is None or not runs:
                    following = None if watch is None else next_digest(watch, now)
                    await connection.execute(update(watches).where(*same).values(digest_at=following, digest_runs=None))
                    continue
                await connection.execute(update(watches).where(*same).values(digest_until=until, digest_runs=runs))
                for some in batches(runs):
                    wanted = select(watch_runs.c.body).where(*_held(watch), watch_runs.c.id.in_(some))
                    bodies += await connection.scalars(wanted)
                claimed = watch, row.digest_at
                break
        if claimed is None:
            return None
        return DigestClaim(claimed[0], await asyncio.to_thread(_oldest_first, bodies), claimed[1], until)

    @unbroken
    async def finish_digest(
        self, claim: DigestClaim, deliveries: Mapping[str, Sequence[Delivery]], now: datetime
    ) -> None:
        mine = *_is(claim.watch.tenant, claim.watch.id), watches.c.digest_until == claim.until
        # alone, so that a message that is sent again meanwhile does not undo it
        async with self._database.writing(alone=True) as connection:
            row = (await connection.execute(select(watches).where(*mine))).one_or_none()
            if row is None:  # removed, or taken over by another process
                return
            for run_id, sent in deliveries.items():
                same = *_held(claim.watch), watch_runs.c.id == run_id
                body = await connection.scalar(select(watch_runs.c.body).where(*same))
                if (run := _read(WatchRun, body)) is not None:
                    run = run.model_copy(update={"deliveries": tuple(sent)})
                    values = {"body": run.model_dump(mode="json"), "held": run.waits_for_digest or None}
                    await connection.execute(update(watch_runs).where(*same).values(**values))
            watch = read_watch(row)
            following = None if watch is None else next_digest(watch, now)
            changed = watch is not None and watch.notify != claim.watch.notify
            if (changed or following is None) and await connection.scalar(
                select(watch_runs.c.id).where(*_held(claim.watch)).limit(1)
            ):
                following = now  # a person took a digest away meanwhile
            ended = update(watches).where(*mine).values(digest_at=following, digest_until=None, digest_runs=None)
            await connection.execute(ended)

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
                # what was no failure when it was sent again, or is none by now, stays
                pairs = zip(run.deliveries, deliveries, strict=True)
                merged = tuple(now if before.missed and not now.held else before for before, now in pairs)
                kept = run.model_copy(update={"deliveries": merged}).model_dump(mode="json")
                await connection.execute(update(watch_runs).where(*mine).values(body=kept))

    async def set_feed(self, watch: Watch, digest: str | None) -> bool:
        mine = _is(watch.tenant, watch.id)
        return await self._write(update(watches).where(*mine).values(feed=digest)) > 0

    async def watch_of_feed(self, watch_id: str, digest: str) -> Watch | None:
        wanted = select(watches).where(watches.c.feed == digest, watches.c.id == watch_id)
        rows = await self._rows(wanted)
        return read_watch(rows[0]) if rows else None

    async def watch_of_link(self, watch_id: str) -> Watch | None:
        rows = await self._rows(select(watches).where(watches.c.id == watch_id))
        return read_watch(rows[0]) if rows else None

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
            ~watch_runs.c.id.startswith(STREAM_RUN, autoescape=True),  # they count nothing, and did not fail
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
            facts = {key: read_item(facts) for key, facts in await connection.execute(worded)}
            rows = (await connection.execute(keys)).all()
        return [SeenPost(row.key, row.dropped_by, facts.get(row.key)) for row in rows]


async def _take_waiting(connection: AsyncConnection, watch: Watch, keys: Iterable[str]) -> list[str]:
    """Delete posts that wait for a watch; returns the keys of those that existed."""
    taken: list[str] = []
    for some in batches(keys):
        mine = stream_posts.c.tenant == watch.tenant, stream_posts.c.watch_id == watch.id
        gone = delete(stream_posts).where(*mine, stream_posts.c.key.in_(some)).returning(stream_posts.c.key)
        taken += await connection.scalars(gone)
    return taken


async def forget_watched(connection: AsyncConnection, keys: Iterable[str]) -> None:
    """Delete the content of posts that watches hold; only the keys stay known."""
    for some in batches(keys):
        seen = update(watch_items).where(watch_items.c.key.in_(some))
        await connection.execute(seen.values(facts=None))
        await forget_entries(connection, some)
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


def _oldest_first(bodies: Iterable[object]) -> list[WatchRun]:
    runs = [run for body in bodies if (run := _read(WatchRun, body)) is not None]
    return sorted(runs, key=lambda run: (run.created_at, run.id))


def _is(tenant: str, watch_id: str) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return watches.c.tenant == tenant, watches.c.id == watch_id


def _held(watch: Watch) -> tuple[ColumnElement[bool], ...]:
    """Conditions for the watch's runs that wait for a digest, in the form that its index needs."""
    mine = watch_runs.c.tenant == watch.tenant, watch_runs.c.watch_id == watch.id
    return *mine, watch_runs.c.held.is_not(None)


def _due(now: datetime) -> Select[*tuple[Any, ...]]:
    # in the words of the index `watches_due`, which neither database uses for `paused IS FALSE`
    due = text("NOT watches.paused"), watches.c.due_at <= now, is_free(now)
    return select(watches).where(*due).order_by(watches.c.due_at, watches.c.id)


def is_free(now: datetime) -> ColumnElement[bool]:
    """Condition that a watch is claimed by no process, or its claim has ended."""
    return or_(watches.c.claimed_until.is_(None), watches.c.claimed_until <= now)


async def _claimed(
    connection: AsyncConnection,
    row: Row[*tuple[Any, ...]],
    now: datetime,
    until: datetime,
    run_id: str,
) -> RunClaim | None:
    """The claim, unless another process was faster; a damaged watch is paused instead."""
    # a run goes on under the id that it had; one of a stream is another run than one of the schedule
    same_kind = (row.claim or "").startswith(STREAM_RUN) == run_id.startswith(STREAM_RUN)
    owned = row.claim if row.claim and same_kind else run_id
    watch = read_watch(row)
    mine = or_(is_free(now), watches.c.claim == run_id)
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


def columns_of_watch(watch: Watch) -> dict[str, Any]:
    """Columns of a watch, except tenant, id and creation time."""
    body = _WATCH.dump_python(watch, mode="json", exclude=set(_KEPT))
    streamed = datetime.now(UTC) if watch.follows_streams else None
    digest_at = next_digest(watch, datetime.now(UTC))
    columns = {"name": watch.name, "body": body, "streamed_at": streamed, "digest_at": digest_at}
    return columns | {name: getattr(watch, name) for name in _KEPT}


def read_watch(row: Row[*tuple[Any, ...]]) -> Watch | None:
    """The watch of a row; None when it is damaged."""
    columns = {name: getattr(row, name) for name in _KEPT}
    try:
        return _WATCH.validate_python({**row.body, **columns})
    except (ValidationError, TypeError):
        return None


def item_json(item: Item) -> Any:
    """An item in its stored form."""
    return _ITEM.dump_python(item, mode="json")


def read_item(facts: object) -> Item | None:
    """The stored item; None when it is damaged."""
    try:
        return _ITEM.validate_python(facts)
    except ValidationError:
        return None


def _read(shape: type[P], body: object) -> P | None:
    try:
        return shape.model_validate(body)
    except ValidationError:
        return None
