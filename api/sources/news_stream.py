"""Article lists of the GDELT Project for watches that notify as it happens, each read once; see `Stream`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from datetime import datetime, timedelta

from api.core.items import Item
from api.errors import Broken
from api.features.watches.watch_ports import StreamBatch
from api.settings import SourceSettings
from api.sources.news import (
    MINUTES,
    NAME,
    QUARTER,
    SETTLED,
    STAMP,
    NewsSource,
    articles_in,
    quarter_of,
    stamps_of,
    time_of,
)

ROUNDS, ROUND_SECONDS = 15, 20.0
"""Pauses between two checks for new lists, and seconds of one; the reader shows after each that it is alive."""
_LONGEST = timedelta(hours=24)


class NewsStream:
    """Articles of every list, from a cursor on, 24 hours back at most. Belongs to one event loop."""

    name = NAME

    def __init__(self, settings: SourceSettings, pause: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self._settings, self._pause = settings, pause

    async def read(self, cursor: str) -> AsyncGenerator[StreamBatch]:
        """Endless batches; a list that appears late is read within 45 minutes, an incomplete one again."""
        done: set[str] = set()
        async with aclosing(NewsSource(self._settings)) as source:
            newest = await source.newest()
            since = _begin_of(cursor, newest)
            while True:
                quarter = quarter_of(since)
                while quarter <= newest:
                    posts: list[Item] = []
                    for stamp in stamps_of(quarter, MINUTES, newest):
                        if stamp in done or time_of(stamp) <= since:
                            continue
                        try:
                            content = await source.list_of(stamp, newest)
                        except Broken:
                            continue
                        if content is None:
                            continue
                        articles, whole = await asyncio.to_thread(articles_in, content)
                        posts += articles
                        if whole:
                            done.add(stamp)
                        else:
                            source.forget(stamp)
                    yield StreamBatch(tuple(posts))
                    quarter += QUARTER
                since = max(since, newest - SETTLED)
                done = {stamp for stamp in done if time_of(stamp) > since}
                yield StreamBatch(cursor=f"{newest:{STAMP}}", at=newest)
                for _ in range(ROUNDS):
                    await self._pause(ROUND_SECONDS)
                    yield StreamBatch()
                newest = max(newest, await source.newest())


def _begin_of(cursor: str, newest: datetime) -> datetime:
    """The minute after which lists are read; without a cursor the newest, so that what comes next is the first."""
    try:
        return max(time_of(cursor) - SETTLED, newest - _LONGEST)
    except ValueError:
        return newest
