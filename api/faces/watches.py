"""A watch as its owner sees it, at every door: without its secret and the addresses it tells."""

from __future__ import annotations

from pydantic import BaseModel

from api.services.reporting.report import Timestamp
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
    """Kind and server of each, for an address may hold a secret."""
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
    return WatchView(**{**own, "tz": watch.zone, "notify": targets})
