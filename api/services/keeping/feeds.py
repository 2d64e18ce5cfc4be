"""Feeds of watches: each has a token of its own, which reads this one feed and nothing else."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from api.errors import NotFound
from api.services.keeping.keys import Keys, digest
from api.services.keeping.limits import Limits
from api.services.watching.run import WatchRun
from api.services.watching.shelf import Watches
from api.services.watching.watch import Watch

ENTRIES = 50
"""Runs in a feed, the newest that were worth telling."""


async def open_feed(shelf: Watches, watch: Watch) -> str:
    """Where its feed is from now on, below a server's address; shown this once.

    What read it before reads it no more.

    Raises:
        NotFound: the watch is gone.
        StoreUnavailable: the database cannot be used.
    """
    token = secrets.token_urlsafe(32)
    if not await shelf.set_feed(watch, digest(token)):
        raise NotFound(f"the watch “{watch.name}” is gone")
    return f"/v1/feeds/{watch.id}?token={token}"


async def feed_of(
    shelf: Watches, keys: Keys, limits: Limits, watch_id: str, token: str
) -> tuple[Watch, Sequence[WatchRun]]:
    """The watch whose feed this token reads, and its runs; counted as looks of its key.

    Raises:
        NotFound: no feed of this id has this token, or its key is no longer valid: which of these
            is said to nobody.
        LimitReached: too many looks in this minute.
        StoreUnavailable: the database cannot be used.
    """
    watch = await shelf.watch_of_feed(watch_id, digest(token))
    tenant = None if watch is None else await keys.tenant(watch.tenant)
    if watch is None or tenant is None:
        raise NotFound("there is no such feed")
    await limits.admit(tenant, looks=True)
    return watch, await shelf.watch_runs(watch.tenant, watch.id, ENTRIES, news=True)
