"""A watch as its owner sees it, at every door: without its secret and the addresses it tells.

A watch's runs as an Atom feed (RFC 4287): what changed, for whatever reads feeds.
"""

from __future__ import annotations

import re
import uuid
from calendar import day_name
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from html import escape
from xml.etree.ElementTree import Element, SubElement, tostring

from pydantic import AwareDatetime, BaseModel

from api.choices import DepthName
from api.core.display_names import OUTCOME_REASONS, SourceLabels
from api.core.text import clean, quantity, web_url
from api.errors import UsageError
from api.features.watches.notification import text_of
from api.features.watches.watch import Only, Watch, schedule_of, zone_of
from api.features.watches.watch_run import Delivery, Gap, WatchRun
from api.reports.report import Timestamp

_UNITS = {"day": timedelta(days=1), "hour": timedelta(hours=1), "minute": timedelta(minutes=1)}
# What stands before the address, by the kind of a target.
_TOLD_BY: dict[str, str] = {
    "webhook": "a program (webhook) at",
    "slack": "Slack at",
    "mail": "e-mail to",
    "file": "the file",
}


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
    return f"every {noun}" if number == 1 else f"every {quantity(number, noun)}"


def clock_words(moment: datetime, zone: str) -> str:
    """`Monday 30 November 2026, 08:00`; in UTC, and named so, where nobody here knows the zone."""
    try:
        local, name = moment.astimezone(zone_of(zone)), ""
    except UsageError:
        local, name = moment.astimezone(UTC), " UTC"
    return f"{local:%A} {local.day} {local:%B %Y, %H:%M}{name}"


def gap_words(gap: Gap) -> str:
    """Why nothing is known of a place in a run."""
    return (
        ": ".join(filter(None, (OUTCOME_REASONS.get(gap.outcome), gap.reason)))
        or "could not be judged"
    )


def target_words(shown: str) -> str:
    """`e-mail to ann@example.org`, of what is shown as `mail:ann@example.org`."""
    kind, _, where = shown.partition(":")
    return f"{_TOLD_BY[kind]} {where}" if kind in _TOLD_BY else shown


MEDIA_TYPE = "application/atom+xml"
_NAMESPACE = "http://www.w3.org/2005/Atom"
# what no XML may hold, escaped or not: U+FFFE, U+FFFF; control characters are gone by `clean`
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def atom(watch: Watch, runs: Sequence[WatchRun], places: SourceLabels) -> bytes:
    """The feed; the same runs are the same bytes. XML is only written here, never read.

    It does not say where it is, as feeds should: its address holds its token.
    """
    feed = Element("feed", xmlns=_NAMESPACE)
    _text(feed, "id", uuid.UUID(watch.id).urn)
    _text(feed, "title", watch.name)
    _text(feed, "updated", _moment(max([watch.created_at, *(run.created_at for run in runs)])))
    _text(SubElement(feed, "author"), "name", "Listenpost")
    for run in runs:
        lines = _NO_XML.sub("", clean(text_of(watch, run, places))).split("\n")
        entry = SubElement(feed, "entry")
        _text(entry, "id", uuid.UUID(run.id).urn)
        _text(entry, "title", lines[0])
        _text(entry, "updated", _moment(run.created_at))
        for line in lines:
            if url := web_url(line):  # alone on its line; within others nothing is to be opened
                SubElement(entry, "link", rel="related", href=url)
        _text(entry, "content", "<br>\n".join(map(_html, lines))).set("type", "html")
    written: bytes = tostring(feed, "utf-8", xml_declaration=True)
    return written


def _html(line: str) -> str:
    """A line as HTML, which the feed then holds as text: `<` of a stranger is `&amp;lt;` there."""
    words = escape(line.strip())
    return f'<a href="{words}">{words}</a>' if web_url(line) else words


def _moment(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def _text(parent: Element, name: str, words: str) -> Element:
    child = SubElement(parent, name)
    child.text = _NO_XML.sub("", words)
    return child
