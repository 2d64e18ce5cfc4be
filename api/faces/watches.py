"""A watch as its owner sees it, at every door: without its secret and the addresses it tells."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import AwareDatetime, BaseModel

from api.services.reporting.report import Timestamp
from api.services.watching.run import Delivery, WatchRun
from api.services.watching.watch import Only, Watch
from api.settings import DepthName


class WatchView(BaseModel):
    """A watch."""

    id: str
    name: str
    query: str
    about: str
    sources: tuple[str, ...]
    """Empty: those of the settings."""
    depth: DepthName
    limit: int | None
    every: str
    tz: str
    only: Only | None
    notify: tuple[str, ...]
    """Kind and server of each, for a URL may hold a secret; of e-mail and files the whole."""
    feed: bool
    """It has a feed, whose address was shown once."""
    tell_first: bool
    sandbox: bool
    paused: bool
    created_at: Timestamp
    due_at: Timestamp
    began_at: Timestamp | None
    """When its first run asked."""


def watch_view(watch: Watch) -> WatchView:
    """What may be shown of it."""
    own = {name: getattr(watch, name, None) for name in WatchView.model_fields}
    targets = tuple(target.shown for target in watch.notify)
    given = {"tz": watch.zone, "notify": targets, "feed": watch.feed is not None}
    return WatchView(**{**own, **given})


class UndeliveredView(Delivery):
    """Somebody who was not told of a run."""

    run_id: str
    created_at: AwareDatetime
    """Of the run."""


def undelivered_views(runs: Sequence[WatchRun]) -> list[UndeliveredView]:
    """Each who was not told, of the newest run first."""
    return [
        UndeliveredView(**dict(delivery), run_id=run.id, created_at=run.created_at)
        for run in runs
        for delivery in run.deliveries
        if not delivery.delivered
    ]
