"""Followed feeds for watches that notify as it happens: each asked once an hour for all tenants, see `Stream`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta

from api.features.watches.followed_feeds import FeedStore
from api.features.watches.watch_ports import StreamBatch
from api.sources.feeds import NAME, FeedReader, item_of
from api.sources.web_client import host_of

ROUND_SECONDS = 20.0
"""Seconds between two looks for feeds that are due and for entries that came."""
# Feeds that are asked between two batches: the claim of whoever reads is prolonged with each.
_AT_ONCE = 16
# An entry counts as seen from when its feed was asked, and is stored when the answer is read.
_LATE = timedelta(minutes=5)


class FeedStream:
    """New entries of the feeds of all tenants, each for those who follow it. Belongs to one event loop."""

    name = NAME

    def __init__(
        self,
        reader: FeedReader,
        store: FeedStore,
        shared: Sequence[str] = (),
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`shared` are the addresses that the settings name, for everybody."""
        self._reader, self._store, self._shared = reader, store, tuple(shared)
        self._clock, self._pause = clock, pause

    async def read(self, cursor: str) -> AsyncGenerator[StreamBatch]:
        """Batches without end, one at least each round; a feed that fails is asked again when it is due."""
        since = _time_of(cursor) or self._clock()
        before: set[str] = set()
        while True:
            now = self._clock()
            due = [*dict.fromkeys([*self._shared, *await self._store.due_feeds(now)])]
            for start in range(0, len(due), _AT_ONCE):
                await self._reader.refreshed(due[start : start + _AT_ONCE])
                yield StreamBatch()
            entries = await self._store.new_entries(self._shared, since - _LATE)
            states = await self._store.feeds(entries)
            keys: set[str] = set()
            for address, (listed, tenants) in entries.items():
                place = states[address].title if address in states else ""
                posts = [item_of(entry, address, place or host_of(address)) for entry in listed]
                keys.update(post.key for post in posts)
                new = tuple(post for post in posts if post.key not in before)
                yield StreamBatch(new, tenants=None if address in self._shared else frozenset(tenants))
            since, before = now, keys
            yield StreamBatch(cursor=now.isoformat(), at=now)
            await self._pause(ROUND_SECONDS)


def _time_of(cursor: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(cursor)
    except ValueError:
        return None
    return moment if moment.tzinfo else None
