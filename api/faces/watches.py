"""A watch as its owner sees it, at every door: without its secret and the addresses it tells."""

from __future__ import annotations

from calendar import day_name
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from pydantic import AwareDatetime, BaseModel

from api.errors import UsageError
from api.services.reasons import WHY
from api.services.reporting.report import Timestamp
from api.services.text import many
from api.services.watching.run import Delivery, Gap, WatchRun
from api.services.watching.schedule import schedule_of, zone_of
from api.services.watching.watch import Only, Watch
from api.settings import DepthName

_UNITS = {"day": timedelta(days=1), "hour": timedelta(hours=1), "minute": timedelta(minutes=1)}
_TOLD_BY: dict[str, str] = {
    "webhook": "a program (webhook) at",
    "slack": "Slack at",
    "mail": "e-mail to",
    "file": "the file",
}
"""What stands before the address, by the kind of a target."""


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


def schedule_words(every: str) -> str:
    """`every Monday and Thursday at 08:00`, of what is written `mon,thu 08:00`.

    Raises:
        UsageError: it is no schedule.
    """
    schedule = schedule_of(every)
    if not schedule.interval:
        names = [day_name[day] for day in sorted(schedule.days)]
        days = "day" if len(names) == len(day_name) else " and ".join(names)
        return f"every {days} at {schedule.at:%H:%M}"
    noun, unit = next(pair for pair in _UNITS.items() if not schedule.interval % pair[1])
    number = schedule.interval // unit
    return f"every {noun}" if number == 1 else f"every {many(number, noun)}"


def clock_words(moment: datetime, zone: str) -> str:
    """`Monday 30 November 2026, 08:00`; in UTC, and named so, where nobody here knows the zone."""
    try:
        local, name = moment.astimezone(zone_of(zone)), ""
    except UsageError:
        local, name = moment.astimezone(UTC), " UTC"
    return f"{local:%A} {local.day} {local:%B %Y, %H:%M}{name}"


def gap_words(gap: Gap) -> str:
    """Why nothing is known of a place in a run."""
    return ": ".join(filter(None, (WHY.get(gap.outcome), gap.reason))) or "could not be judged"


def target_words(shown: str) -> str:
    """`e-mail to ann@example.org`, of what is shown as `mail:ann@example.org`."""
    kind, _, where = shown.partition(":")
    return f"{_TOLD_BY[kind]} {where}" if kind in _TOLD_BY else shown
