"""Stores feeds, entries and followers; one conditional update decides which process requests a feed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError
from sqlalchemy import ColumnElement, delete, exists, or_, select, update
from sqlalchemy import func as sql

from api.errors import UsageError
from api.features.watches.followed_feeds import (
    ENTRY_LIFE,
    MAX_ENTRIES,
    UNFOLLOWED_LIFE,
    FeedEntry,
    FeedState,
    FollowedFeed,
)
from api.store.database import Repository, unbroken
from api.store.tables import as_stored, batches, feed_entries, feeds, followed_feeds, identity, watches

T = TypeVar("T")
_STATE, _ENTRY = TypeAdapter(FeedState), TypeAdapter(FeedEntry)


class FeedRepository(Repository):
    """Implements the part of `Store` that concerns feeds."""

    async def feeds(self, addresses: Collection[str]) -> Mapping[str, FeedState]:
        states: dict[str, FeedState] = {}
        for some in batches(addresses):
            rows = await self._rows(select(feeds.c.state).where(feeds.c.address.in_(some)))
            read = (_read(_STATE, row.state) for row in rows)
            states |= {state.address: state for state in read if state is not None}
        return states

    @unbroken
    async def claim_feed(self, address: str, now: datetime, until: datetime) -> bool:
        # one statement, so that exactly one of two processes gets it
        state = _STATE.dump_python(FeedState(address), mode="json")
        row = self._database.insert(feeds).values(address=address, state=state, next_at=until, asked_at=now)
        claim = row.on_conflict_do_update(
            index_elements=[feeds.c.address],
            set_={"next_at": until, "asked_at": now},
            where=feeds.c.next_at <= now,
        )
        async with self._database.writing() as connection:
            return (await connection.execute(claim)).rowcount == 1

    @unbroken
    async def keep_feed(self, state: FeedState, entries: Sequence[FeedEntry] | None, seen_before: datetime) -> None:
        address, now = state.address, state.asked_at or datetime.now(UTC)
        of_feed = feed_entries.c.address == address
        document = _STATE.dump_python(state, mode="json")
        row = self._database.upsert(
            feeds, ("address",), address=address, state=document, next_at=state.next_at, asked_at=now
        )
        async with self._database.writing() as connection:
            before = await connection.scalar(select(feeds.c.state).where(feeds.c.address == address))
            known = (earlier := _read(_STATE, before)) is not None and earlier.read_at is not None
            await connection.execute(row)
            if entries is None and state.outcome == "ok":
                still = update(feed_entries).where(of_feed, feed_entries.c.seen_at >= seen_before)
                await connection.execute(still.values(seen_at=now))
            for some in batches(entries or ()):
                rows = [
                    {
                        "address": address, "key": entry.key, "entry": _ENTRY.dump_python(entry, mode="json"),
                        "moment": entry.created_at or now, "seen_at": now, "came_at": now if known else None,
                    }
                    for entry in some
                ]  # fmt: skip
                insert = self._database.insert(feed_entries)
                changed = {"entry": insert.excluded.entry, "seen_at": insert.excluded.seen_at}
                upsert = insert.on_conflict_do_update(index_elements=["address", "key"], set_=changed)
                await connection.execute(upsert, rows)
            newest = (
                select(feed_entries.c.key).where(of_feed)
                .order_by(feed_entries.c.seen_at.desc(), feed_entries.c.moment.desc(), feed_entries.c.key)
                .limit(MAX_ENTRIES)
            )  # fmt: skip
            await connection.execute(delete(feed_entries).where(of_feed, feed_entries.c.key.not_in(newest)))
            await connection.execute(delete(feed_entries).where(of_feed, feed_entries.c.seen_at < now - ENTRY_LIFE))
            unfollowed = feeds.c.address.not_in(select(followed_feeds.c.address))
            old = (feeds.c.asked_at < now - ENTRY_LIFE) | (unfollowed & (feeds.c.asked_at < now - UNFOLLOWED_LIFE))
            await connection.execute(delete(feeds).where(old))

    async def release_feed(self, address: str, next_at: datetime) -> None:
        await self._write(update(feeds).where(feeds.c.address == address).values(next_at=next_at))

    async def feed_entries(self, addresses: Collection[str], most: int) -> Mapping[str, Sequence[FeedEntry]]:
        newest: list[tuple[datetime, str, Any]] = []
        by_key = {str(identity(address)): address for address in addresses}
        for some in batches(addresses):
            wanted = select(feed_entries.c.address, feed_entries.c.moment, feed_entries.c.entry)
            wanted = wanted.where(feed_entries.c.address.in_(some)).order_by(feed_entries.c.moment.desc()).limit(most)
            rows = await self._rows(wanted)
            newest += ((row.moment, by_key.get(row.address, row.address), row.entry) for row in rows if row.moment)
        newest.sort(key=lambda row: row[0], reverse=True)
        kept: dict[str, list[FeedEntry]] = {address: [] for address in addresses}
        for _, address, document in newest[:most]:
            if (entry := _read(_ENTRY, document)) is not None and address in kept:
                kept[address].append(entry)
        return kept

    async def due_feeds(self, now: datetime) -> Sequence[str]:
        states = followed_feeds.outerjoin(feeds, feeds.c.address == followed_feeds.c.address)
        wanted = select(followed_feeds.c.written).select_from(states)
        wanted = wanted.where(_streamed(), or_(feeds.c.address.is_(None), feeds.c.next_at <= now)).distinct()
        return [row.written for row in await self._rows(wanted) if isinstance(row.written, str)]

    async def new_entries(
        self, shared: Collection[str], since: datetime
    ) -> Mapping[str, tuple[Sequence[FeedEntry], Collection[str]]]:
        followed_one = exists().where(followed_feeds.c.address == feed_entries.c.address, _streamed())
        wanted = select(feed_entries.c.address, feed_entries.c.entry).where(feed_entries.c.came_at >= since)
        wanted = wanted.where(or_(feed_entries.c.address.in_(list(shared)), followed_one))
        listed: dict[str, list[FeedEntry]] = {}
        for row in await self._rows(wanted.order_by(feed_entries.c.came_at)):
            if (entry := _read(_ENTRY, row.entry)) is not None:
                listed.setdefault(row.address, []).append(entry)
        written = {str(identity(address)): address for address in shared}
        tenants: dict[str, set[str]] = {}
        for some in batches(listed):
            followers = select(followed_feeds).where(as_stored(followed_feeds.c.address).in_(some), _streamed())
            for row in await self._rows(followers):
                written.setdefault(row.address, row.written)
                tenants.setdefault(row.address, set()).add(row.tenant)
        return {
            written.get(address, address): (entries, tenants.get(address, ())) for address, entries in listed.items()
        }

    @unbroken
    async def follow(self, tenant: str, feed: FollowedFeed, most: int) -> bool:
        # alone, so that two at once do not exceed the limit
        async with self._database.writing(alone=True) as connection:
            mine = followed_feeds.c.tenant == tenant
            same = (mine, followed_feeds.c.address == feed.address)
            renamed = update(followed_feeds).where(*same).values(name=feed.name or followed_feeds.c.name)
            if (await connection.execute(renamed)).rowcount:
                return False
            if (await connection.scalar(select(sql.count()).select_from(followed_feeds).where(mine)) or 0) >= most:
                raise UsageError(f"{most} feeds are followed already; remove one first")
            row = self._database.insert(followed_feeds).values(
                tenant=tenant, address=feed.address, written=feed.address, name=feed.name,
                since=feed.since or datetime.now(UTC),
            )  # fmt: skip
            await connection.execute(row)
            return True

    async def followed(self, tenant: str) -> Sequence[FollowedFeed]:
        wanted = select(followed_feeds).where(followed_feeds.c.tenant == tenant)
        rows = await self._rows(wanted.order_by(followed_feeds.c.since, followed_feeds.c.address))
        return [FollowedFeed(row.written, row.name, row.since) for row in rows if isinstance(row.written, str)]

    async def unfollow(self, tenant: str, address: str) -> bool:
        row = followed_feeds.c.tenant == tenant, followed_feeds.c.address == address
        return await self._write(delete(followed_feeds).where(*row)) > 0


def _streamed() -> ColumnElement[bool]:
    """Whether a tenant has a watch that follows streams."""
    return exists().where(watches.c.tenant == followed_feeds.c.tenant, watches.c.streamed_at.is_not(None))


def _read(kind: TypeAdapter[T], document: object) -> T | None:
    """A stored value; None when it is damaged, so that the feed is read again."""
    try:
        return kind.validate_python(document)
    except ValidationError:
        return None
