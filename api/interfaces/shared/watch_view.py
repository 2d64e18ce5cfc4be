"""A watch and the inbox as every interface shows them, and as feeds: Atom (RFC 4287) and JSON Feed.

Its secret and its receivers' addresses are left out.
"""

from __future__ import annotations

import re
import uuid
from calendar import day_name
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from html import escape
from typing import TYPE_CHECKING, Annotated, Any, Self
from xml.etree.ElementTree import Element, SubElement, tostring  # nosec B405 # it writes, it parses nothing

from pydantic import AwareDatetime, BaseModel, Field, create_model

from api.core.display_names import OUTCOME_REASONS, SourceLabels, title_in
from api.core.published import Timestamp
from api.core.text import clean, one_line, quantity, web_url
from api.errors import UsageError
from api.features.watches.notification import run_text, without_settings
from api.features.watches.watch import Watch, name_of_query, new_watch, schedule_of, target_of, zone_of
from api.features.watches.watch_ports import EntryState, InboxEntry
from api.features.watches.watch_run import Delivery, Gap, Held, NewPost, WatchRun
from api.features.watches.watch_service import utc_now
from api.interfaces.shared.watch_requests import WatchOptions, WatchPatch, WatchRequest
from api.pipeline.gate.name_matches import namesake

_UNITS = {"day": timedelta(days=1), "hour": timedelta(hours=1), "minute": timedelta(minutes=1)}
# What stands before the address, by the kind of a target.
_TOLD_BY: dict[str, str] = {
    "webhook": "a program (webhook) at",
    "slack": "Slack at",
    "discord": "Discord at",
    "teams": "Teams at",
    "telegram": "Telegram at",
    "ntfy": "ntfy at",
    "mail": "e-mail to",
    "file": "the file",
}


if TYPE_CHECKING:
    _ShownOptions = WatchRequest
else:  # the options of a request, without its bounds: what is stored is shown as it is
    _ShownOptions = create_model(
        "_ShownOptions",
        id=(str, ...),
        **{
            name: (Annotated[field.annotation, Field(description=field.description)], ...)
            for name, field in WatchRequest.model_fields.items()
        },
    )


class WatchView(_ShownOptions):
    """A watch as every interface shows it."""

    id: str
    notify: Annotated[
        tuple[str, ...],
        Field(description="Kind and server of each receiver, of e-mail and files the whole; then its rule."),
    ]
    feed: bool
    """Whether it has a feed, whose address was shown only once."""
    paused: bool
    created_at: Timestamp
    due_at: Timestamp
    began_at: Timestamp | None
    """When its first run asked; None before it."""


class WatchList(BaseModel):
    """Watches of the key that asks, oldest first."""

    watches: list[WatchView]


def watch_view(watch: Watch) -> WatchView:
    """A watch without its secrets."""
    own = {name: getattr(watch, name, None) for name in WatchView.model_fields}
    targets = tuple(target.described for target in watch.notify)
    given = {"tz": watch.zone, "notify": targets, "feed": watch.feed is not None}
    return WatchView(**{**own, **given})


def requested_watch(request: WatchOptions, tenant: str, *, files: bool = False) -> Watch:
    """A new watch; with `files` it may notify into one.

    Raises:
        UsageError: a receiver is no address.
    """
    new = new_watch(tenant, request.query, request.every, utc_now())
    return replace(new, **watch_fields(request, files=files))


def watch_fields(request: WatchOptions, *, files: bool = False) -> dict[str, Any]:
    """The fields of a request, or those that a patch changes, by the names that `Watch` has.

    Raises:
        UsageError: a receiver is no address.
    """
    fields = dict(request)
    if isinstance(request, WatchPatch):
        options = WatchRequest.model_fields
        fields = {
            name: fields[name]
            for name in request.model_fields_set
            # null is a value of those options whose default it is; else it leaves them as they are
            if fields[name] is not None or (name in options and options[name].default is None)
        }
    elif not request.name:
        fields["name"] = name_of_query(request.query)
    if "notify" in fields:
        fields["notify"] = tuple(target_of(text, files=files) for text in fields["notify"])
    return {{"tz": "zone"}.get(name, name): value for name, value in fields.items()}


class UndeliveredView(Delivery):
    """A receiver that was not notified of a run."""

    run_id: str
    created_at: AwareDatetime
    """When the run began."""


def undelivered_views(runs: Sequence[WatchRun]) -> list[UndeliveredView]:
    """Receivers that were not notified, of the newest run first."""
    return [
        UndeliveredView(**dict(delivery), run_id=run.id, created_at=run.created_at)
        for run in runs
        for delivery in run.deliveries
        if delivery.missed
    ]


class HeldView(BaseModel):
    """Runs of which a receiver was not notified, for one reason."""

    target: str
    held: Held
    reason: str
    runs: int
    run_id: str
    """Id of the newest of the held runs."""
    created_at: AwareDatetime
    """When the newest run began."""


def held_views(runs: Sequence[WatchRun]) -> list[HeldView]:
    """Deliveries that rules hold back in these runs (newest first): one for each receiver and reason."""
    views: dict[tuple[str, str, str], HeldView] = {}
    for run in runs:
        for delivery in run.deliveries:
            if delivery.held is not None:
                known = delivery.receiver, delivery.held, delivery.reason
                newest = HeldView(
                    target=delivery.target, held=delivery.held, reason=delivery.reason, runs=0,
                    run_id=run.id, created_at=run.created_at,
                )  # fmt: skip
                views.setdefault(known, newest).runs += 1
    return list(views.values())


def meaning_words(watch: Watch) -> str:
    """What a watch says of its product beside the name: `a ring; not a river; mentions count`."""
    counts = "mentions count" if watch.aim == "mention" else ""
    denied = (f"not {text}" for text in watch.not_about)
    left_out = ", ".join((*watch.exclude, *watch.exclude_authors, *watch.exclude_sites))
    return "; ".join(filter(None, (watch.about, *denied, counts, left_out and f"left out: {left_out}")))


def meaning_note(requested: Watch, kept: Watch) -> str:
    """Sense that a new watch uses, when its request named none and the name has several."""
    if (kept.about, kept.not_about) != (requested.about, requested.not_about):
        return f"watched as “{one_line(kept.about)}”, the meaning that was chosen before; set `about` for another"
    name = "" if kept.not_about else namesake(kept.query, kept.about)
    remedy = "to choose one, set `about` or pick a group in its first report"
    return f"“{name}” is also an everyday word, and all its meanings are watched; {remedy}" if name else ""


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
    """`Monday 30 November 2026, 08:00`; in UTC, with its name, when the zone is unknown here."""
    try:
        local, name = moment.astimezone(zone_of(zone)), ""
    except UsageError:
        local, name = moment.astimezone(UTC), " UTC"
    return f"{local:%A} {local.day} {local:%B %Y, %H:%M}{name}"


def gap_words(gap: Gap) -> str:
    """Why nothing is known of a place in a run."""
    return ": ".join(filter(None, (OUTCOME_REASONS.get(gap.outcome), gap.reason))) or "could not be judged"


def target_words(shown: str) -> str:
    """`e-mail to ann@example.org`, of what is shown as `mail:ann@example.org`."""
    kind, _, where = shown.partition(":")
    return f"{_TOLD_BY[kind]} {where}" if kind in _TOLD_BY else shown


MEDIA_TYPE = "application/atom+xml"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NAMESPACE = "http://www.w3.org/2005/Atom"
# what no XML may hold, escaped or not: U+FFFE, U+FFFF; control characters are gone by `clean`
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def atom(watch: Watch, runs: Sequence[WatchRun], places: SourceLabels) -> bytes:
    """The Atom feed of a watch; equal runs give equal bytes.

    XML is only written here, never read.

    It does not say where it is, as feeds should: its address holds its token.
    """
    feed = _feed(uuid.UUID(watch.id), watch.name, max([watch.created_at, *(run.created_at for run in runs)]))
    for run in runs:
        lines = _NO_XML.sub("", clean(run_text(watch, without_settings(run), places))).split("\n")
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


class EntryView(BaseModel):
    """A new post of a watch, with its state in the inbox."""

    id: str
    watch_id: str
    watch: str
    """The name of the watch when it found the post."""
    report_id: str | None
    """Id of the report; None for a post from a stream."""
    site: str
    """Site where it was written: a subreddit, a channel, or the host of its address."""
    sample: bool
    came_at: AwareDatetime
    read_at: AwareDatetime | None
    """When it was marked as read; None while unread."""
    starred: bool
    note: str
    assigned: str
    """Name of the person who shall handle it; empty: nobody."""
    not_about: bool
    """Whether it was marked as not about the product."""
    post: NewPost

    @classmethod
    def of(cls, entry: InboxEntry) -> Self:
        """Build it from the stored entry."""
        own = {name: getattr(entry, name) for name in cls.model_fields if hasattr(entry, name)}
        return cls(**own, **{name: getattr(entry.state, name) for name in EntryState.__slots__})


def entry_title(entry: InboxEntry) -> str:
    """Title of the post, or else its quote, on one line."""
    return one_line(clean(entry.post.title or entry.post.passage)) or entry.post.key


_INBOX = uuid.UUID("8f0a3c52-6e0b-4e57-9d3a-2f0d2c6f7b11")  # its entries are named within it


def inbox_atom(entries: Sequence[InboxEntry], unread: int, places: SourceLabels, address: str) -> bytes:
    """The inbox as an Atom feed; the title says how many entries are unread.

    Feeds of other addresses have other ids: no two feeds may share one.
    """
    feed = _feed(
        uuid.uuid5(_INBOX, address), f"Inbox: {unread} unread", max([_EPOCH, *(entry.came_at for entry in entries)])
    )
    for each in _feed_entries(entries, places):
        entry = SubElement(feed, "entry")
        _text(entry, "id", each["id"])
        _text(entry, "title", each["title"])
        _text(entry, "updated", each["date_published"])
        if "url" in each:
            SubElement(entry, "link", rel="alternate", href=_NO_XML.sub("", each["url"]))
        _text(entry, "summary", each["content_text"])
    written: bytes = tostring(feed, "utf-8", xml_declaration=True)
    return written


def inbox_json_feed(entries: Sequence[InboxEntry], unread: int, places: SourceLabels) -> dict[str, Any]:
    """The inbox as a JSON Feed; `_listenpost` says how many entries are unread."""
    return {
        "version": "https://jsonfeed.org/version/1.1",
        "title": f"Inbox: {unread} unread",
        "items": _feed_entries(entries, places),
        "_listenpost": {"unread": unread},
    }


def _feed_entries(entries: Sequence[InboxEntry], places: SourceLabels) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    for entry in entries:
        post = entry.post
        where = f"{title_in(places, post.source)}, {entry.site}" if entry.site != post.source else post.source
        quote = one_line(clean(post.passage))
        words = [f"{entry.watch}: {'a complaint' if post.complains else 'a post'} on {where}"]
        words += [f"“{quote}”"] if quote else []
        words += [f"Note: {entry.state.note}"] if entry.state.note else []
        item = {
            "id": uuid.uuid5(_INBOX, f"{entry.watch_id} {post.key}".encode("utf-8", "replace").decode()).urn,
            "title": entry_title(entry),
            "content_text": "\n".join(words),
            "date_published": _moment(entry.came_at),
        }
        # sample posts cannot be opened
        if url := "" if entry.sample else web_url(post.url):
            item["url"] = url
        items.append(item)
    return items


def _feed(mark: uuid.UUID, title: str, updated: datetime) -> Element:
    feed = Element("feed", xmlns=_NAMESPACE)
    _text(feed, "id", mark.urn)
    _text(feed, "title", title)
    _text(feed, "updated", _moment(updated))
    _text(SubElement(feed, "author"), "name", "Listenpost")
    return feed


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
