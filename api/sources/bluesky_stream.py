"""Bluesky's stream for watches that notify as it happens: posts as items, and what was deleted, in batches."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import UTC, datetime, timedelta

from pydantic import TypeAdapter, ValidationError

from api.core.items import Item
from api.features.watches.watch_ports import StreamBatch
from api.settings import SourceSettings
from api.sources.bluesky import NAME, item_of
from api.sources.jetstream import JetstreamReader
from api.sources.jetstream_frames import AccountChanged, Position, PostDeleted, PostWritten

# Posts and seconds after which a batch is handed on, at the next place in the stream.
_MOST_POSTS, _SECONDS = 500, 0.5
_POSITION = TypeAdapter(Position)


class BlueskyStream:
    """Every post of the network, from a cursor on; see `Stream`. Belongs to one event loop."""

    name = NAME

    def __init__(self, settings: SourceSettings, look_back: timedelta = timedelta()) -> None:
        """`look_back`: how far back a read without a cursor begins; at most `LOOK_BACK`, which the servers replay."""
        self._look_back = look_back
        self._reader = JetstreamReader(
            NAME, settings.jetstreams, settings.bluesky_version, settings.source_timeout, settings.user_agent
        )

    async def read(self, cursor: str) -> AsyncGenerator[StreamBatch]:
        """Batches without end; a server that cannot be reached is left for the next, and tried again."""
        posts: list[Item] = []
        deleted: list[str] = []
        begun = time.monotonic()
        async with aclosing(self._reader.follow(self._place(cursor))) as events:
            async for event in events:
                if isinstance(event, PostWritten):
                    item = item_of(event, None, None)
                    if not item.unfit:
                        posts.append(item)
                elif isinstance(event, PostDeleted):
                    deleted.append(f"{NAME}:{event.uri}")
                elif isinstance(event, AccountChanged) and not event.active:
                    deleted.append(f"{NAME}:at://{event.did}/*")
                elif isinstance(event, Position):
                    if len(posts) < _MOST_POSTS and time.monotonic() - begun < _SECONDS:
                        continue
                    cursor = _POSITION.dump_json(event).decode()
                    yield StreamBatch(tuple(posts), tuple(deleted), cursor, event.at)
                    posts, deleted, begun = [], [], time.monotonic()

    def _place(self, cursor: str) -> Position | datetime:
        """Where the reading begins; a cursor of another version is ignored."""
        try:
            return _POSITION.validate_json(cursor)
        except ValidationError:
            return datetime.now(UTC) - self._look_back
