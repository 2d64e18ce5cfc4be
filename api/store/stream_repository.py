"""Stores the positions of streams, and posts that wait for the gate of a watch."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Column, ColumnElement, Row, delete, or_, select, tuple_, update
from sqlalchemy import func as sql
from sqlalchemy.ext.asyncio import AsyncConnection

from api.core.items import Item
from api.features.archive.imports import FileIdentity
from api.features.watches.watch import Watch
from api.features.watches.watch_ports import StreamBatch, StreamPosition, WatchId
from api.store.database import unbroken
from api.store.import_repository import ImportRepository
from api.store.tables import (
    as_stored,
    batches,
    begins,
    corrections,
    inbox,
    items,
    replies,
    stream_posts,
    streams,
    watch_items,
    watches,
)
from api.store.watch_repository import WATCH_COLUMNS, WatchRepository, is_free, item_json, read_item, read_watch

# The end of a deleted key that stands for all keys that begin so.
_ALL = "*"
MOST_WAITING = 1_000
"""Most posts of one watch that wait for its gate: the newest. The next message counts the older ones."""
# Watches that are read in one transaction.
_PAGE = 1_000
_log = logging.getLogger(__name__)


class StreamRepository(ImportRepository, WatchRepository):
    """Streams in the database, beside the watches that follow them, and the archive that keeps their posts."""

    @unbroken
    async def take_stream(self, name: str, reader: str, now: datetime, until: datetime) -> StreamPosition | None:
        free = or_(streams.c.claimed_until.is_(None), streams.c.claimed_until <= now, streams.c.reader == reader)
        async with self._database.writing() as connection:
            new = self._database.insert(streams).values(name=name).on_conflict_do_nothing()
            await connection.execute(new)
            taken = update(streams).where(streams.c.name == name, free).values(reader=reader, claimed_until=until)
            if not (await connection.execute(taken)).rowcount:
                return None
            row = (await connection.execute(select(streams).where(streams.c.name == name))).one()
            return StreamPosition(row.cursor or "", row.read_until)

    @unbroken
    async def keep_stream(
        self, name: str, reader: str, batch: StreamBatch, matches: Mapping[str, Sequence[WatchId]], now: datetime
    ) -> bool:
        posts = {post.key: post for post in batch.posts if post.key in matches}
        async with self._database.writing() as connection:
            mine = streams.c.name == name, streams.c.reader == reader
            moved = {"cursor": batch.cursor, "read_until": batch.at} if batch.cursor else {}
            if not (await connection.execute(update(streams).where(*mine).values(reader=reader, **moved))).rowcount:
                return False
            known = await _known(connection, {watch_id for ids in matches.values() for watch_id in ids})
            rows = [
                {
                    "tenant": tenant, "watch_id": watch_id, "key": key, "came_at": now,
                    "facts": item_json(posts[key]),
                }
                for key, ids in matches.items()
                for tenant, watch_id in ids
                if (tenant, watch_id) in known
            ]  # fmt: skip
            if rows:
                await connection.execute(self._database.insert(stream_posts).on_conflict_do_nothing(), rows)
            for watch_id in await _over_full(connection, known):
                await _drop_oldest(connection, watch_id)
            for condition in self._matching(stream_posts.c.key, batch.deleted):
                await connection.execute(delete(stream_posts).where(condition))
        return True

    @unbroken
    async def held_keys(self, keys: Sequence[str]) -> Sequence[str]:
        held: set[str] = set()
        # posts that wait first, since one that is judged meanwhile is then in one of the other tables
        columns = stream_posts.c.key, items.c.key, watch_items.c.key, inbox.c.key, corrections.c.key, replies.c.reply
        async with self._database.reading() as connection:
            for column in columns:
                for condition in self._matching(column, keys):
                    held.update(await connection.scalars(select(column).where(condition)))
        return sorted(held)

    def _matching(self, column: Column[Any], keys: Sequence[str]) -> Iterator[ColumnElement[bool]]:
        """Conditions of which one holds for each of the keys, or for those that begin like one."""
        for some in batches(key for key in keys if not key.endswith(_ALL)):
            yield column.in_(some)
        for some in batches(key.removesuffix(_ALL) for key in keys if key.endswith(_ALL)):
            yield or_(*(begins(column, beginning, sqlite=self._database.sqlite) for beginning in some))

    async def streamed_watches(self, since: datetime | None) -> Sequence[Watch]:
        changed = () if since is None else (watches.c.streamed_at >= since,)
        rows = self._streamed(WATCH_COLUMNS, *changed)
        return [watch async for row in rows if (watch := read_watch(row)) is not None]

    async def streamed_ids(self) -> Sequence[WatchId]:
        return [(row.tenant, row.id) async for row in self._streamed([watches.c.tenant, watches.c.id])]

    async def streamed_count(self) -> int:
        return int(await self._scalar(select(sql.count()).where(watches.c.streamed_at.is_not(None))))

    async def _streamed(self, columns: Sequence[Any], *where: ColumnElement[bool]) -> AsyncIterator[Row[Any]]:
        """Rows of watches that follow streams, read `_PAGE` at a time, so that other tasks have their turn."""
        wanted = select(*columns).where(watches.c.streamed_at.is_not(None), *where)
        wanted = wanted.order_by(watches.c.tenant, watches.c.id).limit(_PAGE)
        page = await self._rows(wanted)
        while page:
            for row in page:
                yield row
            after = tuple_(watches.c.tenant, watches.c.id) > (page[-1].tenant, page[-1].id)
            page = await self._rows(wanted.where(after)) if len(page) == _PAGE else ()

    async def without_history(self, now: datetime, most: int) -> Sequence[WatchId]:
        due = watches.c.history_due.is_not(None), watches.c.streamed_at.is_not(None), is_free(now)
        wanted = (
            select(watches.c.tenant, watches.c.id).where(*due).order_by(watches.c.created_at, watches.c.id).limit(most)
        )
        return [(row.tenant, row.id) for row in await self._rows(wanted)]

    async def pending_watches(self, now: datetime, most: int) -> Sequence[WatchId]:
        owner = stream_posts.c.tenant, stream_posts.c.watch_id
        first = sql.min(stream_posts.c.came_at)
        followed = (watches.c.tenant == owner[0]) & (watches.c.id == owner[1]) & watches.c.streamed_at.is_not(None)
        its_turn = or_(watches.c.judged_from.is_(None), watches.c.judged_from <= now)
        wanted = (
            select(*owner).join(watches, followed).where(its_turn).group_by(*owner).order_by(first, *owner).limit(most)
        )
        rows = await self._rows(wanted)
        return [(row.tenant, row.watch_id) for row in rows]

    async def postpone_posts(self, watch_id: WatchId, until: datetime) -> None:
        await self._write(update(watches).where(*_is(watch_id)).values(judged_from=until))

    async def unjudged(self, watch_id: WatchId) -> int:
        return await self._scalar(select(watches.c.unjudged).where(*_is(watch_id))) or 0

    async def _archive(self, connection: AsyncConnection, watch: Watch, posts: Sequence[Item], *, sample: bool) -> None:
        if posts:
            holder = FileIdentity(f"posts of streams for “{watch.name}”", "stream", f"stream_{watch.id}")
            kept = [post.published for post in posts]
            await self.hold_posts(connection, watch.tenant, holder, kept, sample=sample)

    def _archived(self, watch: Watch) -> None:
        if self.embedding is not None:
            self.embedding.follow(watch.tenant)

    async def posts_of_watch(self, watch_id: WatchId, most: int) -> Sequence[Item]:
        mine = stream_posts.c.tenant == watch_id[0], stream_posts.c.watch_id == watch_id[1]
        wanted = select(stream_posts.c.key, stream_posts.c.facts).where(*mine)
        rows = await self._rows(wanted.order_by(stream_posts.c.came_at, stream_posts.c.key).limit(most))
        posts = {row.key: read_item(row.facts) for row in rows}
        if damaged := [key for key, post in posts.items() if post is None]:  # they would stand before the others
            await self._write(delete(stream_posts).where(*mine, as_stored(stream_posts.c.key).in_(damaged)))
        return [post for post in posts.values() if post is not None]


async def _known(connection: AsyncConnection, ids: set[WatchId]) -> set[WatchId]:
    """The watches of these ids that still follow streams, since one may be gone after its name was found."""
    known: set[WatchId] = set()
    for some in batches(ids):
        same = tuple_(watches.c.tenant, watches.c.id).in_(some), watches.c.streamed_at.is_not(None)
        rows = await connection.execute(select(watches.c.tenant, watches.c.id).where(*same))
        known.update((row.tenant, row.id) for row in rows)
    return known


async def _over_full(connection: AsyncConnection, ids: set[WatchId]) -> list[WatchId]:
    """Watches with more waiting posts than are kept."""
    full: list[WatchId] = []
    owner = stream_posts.c.tenant, stream_posts.c.watch_id
    for some in batches(ids):
        wanted = select(*owner).where(tuple_(*owner).in_(some)).group_by(*owner).having(sql.count() > MOST_WAITING)
        full += [(row.tenant, row.watch_id) for row in await connection.execute(wanted)]
    return full


async def _drop_oldest(connection: AsyncConnection, watch_id: WatchId) -> None:
    """Keep the newest of what waits for a watch."""
    mine = stream_posts.c.tenant == watch_id[0], stream_posts.c.watch_id == watch_id[1]
    newest = select(as_stored(stream_posts.c.key)).where(*mine)
    newest = newest.order_by(stream_posts.c.came_at.desc(), stream_posts.c.key).limit(MOST_WAITING)
    older = delete(stream_posts).where(*mine, as_stored(stream_posts.c.key).not_in(newest))
    # in the order of `finish_run`: first the watch, then its posts
    await connection.execute(select(watches.c.id).where(*_is(watch_id)).with_for_update())
    if dropped := (await connection.execute(older)).rowcount:
        count = sql.coalesce(watches.c.unjudged, 0) + dropped
        await connection.execute(update(watches).where(*_is(watch_id)).values(unjudged=count))
        _log.warning("the watch `%s` has more posts of streams than are judged; %d were dropped", watch_id[1], dropped)


def _is(watch_id: WatchId) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return watches.c.tenant == watch_id[0], watches.c.id == watch_id[1]
