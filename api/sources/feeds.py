"""Feeds as a source: RSS, Atom and JSON Feed that somebody named, each asked once an hour for everybody.

What was read is kept in the database, so that tenants and processes share it, and an entry that has left its feed is
still there; without a database this process remembers it.
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess  # nosec B404 # this program's own module, see `feed_parsing`
import sys
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit

from api.core.addresses import points_here
from api.core.domain import FetchPlan
from api.core.http_limits import LONGEST_WAIT
from api.core.items import Batch, Item, pseudonym
from api.core.ports import Probe
from api.core.progress import Listener
from api.core.text import clean_query, cut, fold, one_line, quantity
from api.core.words import index_tokens, split_words
from api.core.work import SharedTasks
from api.errors import (
    Blocked,
    Broken,
    NotConfigured,
    QuotaExhausted,
    RateLimited,
    Refused,
    SourceError,
    StoreUnavailable,
    TimedOut,
    Unreachable,
)
from api.features.analyses.store_ports import SourceMemory
from api.features.watches.followed_feeds import MAX_ENTRIES, FeedEntry, FeedMemory, FeedState
from api.pipeline.gate.name_matches import NEARLY, best, name_of, sightings
from api.settings import SourceSettings
from api.settings.value_types import feeds_in
from api.sources import feed_parsing
from api.sources.item_fields import make_item, plausible_time, time_since
from api.sources.markup import announced_feeds
from api.sources.own_items import LocalSource
from api.sources.searched_source import in_window, status_failure
from api.sources.web_client import Download, PublicClient, host_of

NAME = "feeds"
MAX_BYTES = 2_000_000
"""Most bytes read of one document; the largest of 200 feeds had 2.5 MB, nine in ten had less than 0.6."""
LEAST_WAIT = timedelta(hours=1)
"""Shortest time between two requests for one feed; the strictest rule that sites publish."""
UNREACHABLE_WAIT = timedelta(minutes=5)
"""Wait after a request without an answer."""
MOST_SEARCHED = 5_000
"""Entries of all followed feeds that one question looks at, the newest."""
MOST_READ = 2_000
"""Characters of an entry that are searched for the words of a question."""
# a process that was killed lets others ask its feed after so long
_CLAIM = timedelta(minutes=2)
_PAUSE = 0.2
_ACCEPT = "application/feed+json, application/atom+xml, application/rss+xml, application/xml;q=0.9, */*;q=0.5"
_TITLE = 80
UNDATED = "undated: its feed does not say when"
TEASER = "a teaser: its feed holds the beginning alone"
_MAX_AGE = re.compile(r"(?:^|[\s,])(?:s-maxage|max-age)\s*=\s*\"?(\d{1,9})", re.I)
# what a page says that wants to see a browser first
_WALL = re.compile(r"just a moment|not a bot|are you (?:a )?human|captcha|enable javascript|access denied|ddos", re.I)
# what differs between addresses of one page
_TRACKING = re.compile(r"utm_\w+|fbclid|gclid|mc_[ce]id|source", re.I)


class NoneFollowed(NotConfigured):
    """No feed is followed."""

    remedy = "follow one with `listenpost feeds add ADDRESS`, or name some in `FEEDS`"


class NoFeed(Broken):
    """The document at the address is not a readable feed."""

    remedy = "check its address, see `listenpost feeds list`"


class Ended(Refused):
    """The site says that the feed no longer exists, so it is not requested again."""

    remedy = "remove it with `listenpost feeds remove`"


_ERRORS: Mapping[str, type[SourceError]] = {
    error.code: error for error in (Blocked, NoFeed, QuotaExhausted, RateLimited, Refused, TimedOut, Unreachable)
}


class FeedReader:
    """Requests feeds when they are due, for all followers; belongs to one event loop."""

    def __init__(
        self,
        settings: SourceSettings,
        memory: FeedMemory | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        parsing_seconds: int = feed_parsing.SECONDS,
    ) -> None:
        self._memory, self._clock, self._seconds = memory or FeedsInProcess(), clock, settings.source_timeout
        self._parsing_seconds = parsing_seconds
        headers = {"User-Agent": settings.user_agent, "Accept": _ACCEPT}
        trusted = feeds_in(settings.feeds)
        self._client = PublicClient(NAME, self._seconds, MAX_BYTES, trusted=trusted, headers=headers)
        self._reading: SharedTasks[str, tuple[FeedState, SourceError | None]] = SharedTasks()
        self._requests, self._parsers = asyncio.Semaphore(8), asyncio.Semaphore(2)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def refreshed(self, addresses: Sequence[str]) -> Mapping[str, tuple[FeedState, SourceError | None]]:
        """Each feed, asked if it is due, with the error of its last request.

        Raises:
            Unreachable: the database cannot be used.
        """
        now = self._clock()
        try:
            known = await self._memory.feeds(addresses)
            answers = {address: (state, error_of(state)) for address, state in known.items()}
            due = [address for address in addresses if address not in known or known[address].is_due(now)]
            answers |= zip(due, await asyncio.gather(*map(self._shared, due)), strict=True)
            return answers
        except StoreUnavailable as error:
            raise Unreachable(NAME, error.public) from None

    async def entries(self, addresses: Sequence[str]) -> Mapping[str, Sequence[FeedEntry]]:
        """Stored entries of feeds; raises `Unreachable` when the database cannot be used."""
        try:
            return await self._memory.feed_entries(addresses, MOST_SEARCHED)
        except StoreUnavailable as error:
            raise Unreachable(NAME, error.public) from None

    async def _shared(self, address: str) -> tuple[FeedState, SourceError | None]:
        async def refresh(listener: Listener) -> tuple[FeedState, SourceError | None]:
            async with self._requests:
                return await self._refresh(address)

        return await self._reading.share(address, refresh)

    async def _refresh(self, address: str) -> tuple[FeedState, SourceError | None]:
        now = self._clock()
        if not await self._memory.claim_feed(address, now, now + _CLAIM):
            state = await self._asked_by_another(address)
            return state, error_of(state)
        answered = False
        try:
            before = (await self._memory.feeds([address])).get(address, FeedState(address))
            state, entries, error = await self._read_anew(before, now)
            answered = True
        finally:
            if not answered:  # cancelled, or a defect: it may be asked again at once
                await self._memory.release_feed(address, now)
        await self._memory.keep_feed(state, entries, before.read_at or now)
        return state, error

    async def _asked_by_another(self, address: str) -> FeedState:
        """State of a feed that another process is requesting; waits for it when nothing is stored yet."""
        loop = asyncio.get_running_loop()
        until = loop.time() + 2 * self._seconds + self._parsing_seconds
        while loop.time() < until:
            state = (await self._memory.feeds([address])).get(address)
            if state is not None and state.outcome:
                return state
            await asyncio.sleep(_PAUSE)
        raise TimedOut(NAME, "another process asks it and gets no answer")

    async def _read_anew(
        self, state: FeedState, now: datetime
    ) -> tuple[FeedState, Sequence[FeedEntry] | None, SourceError | None]:
        """The state after a request, the entries unless they are unchanged or unknown, and the failure."""
        headers = {"If-None-Match": state.etag, "If-Modified-Since": state.modified}
        conditions = {state.answered_by: {name: value for name, value in headers.items() if value}}
        state = replace(state, asked_at=now)
        try:
            download = await self._client.get(state.location or state.address, conditions)
            location = download.moved or state.location
            if download.status == 200:
                parsed = await self._parsed(download)
                if parsed is None:  # a page may say where its feed is
                    location = feed_of_page(download)
                    download = await self._client.get(location, {})
                    parsed = await self._parsed(download) if download.status == 200 else None
                    if parsed is None:
                        raise failure_of(download)
                held = (await self._memory.feed_entries([state.address], MAX_ENTRIES)).get(state.address, ())
                entries = merged(held, parsed["entries"], download.address, now)
                state = replace(
                    state, title=parsed["title"] or state.title, entries=len(entries), notes=_notes(parsed),
                    answered_by=download.address, etag=_sendable(download.headers.get("etag", ""), 500),
                    modified=_sendable(download.headers.get("last-modified", ""), 100),
                )  # fmt: skip
            elif download.status == 304 and state.read_at is not None:
                entries = None
            else:
                raise failure_of(download)
        except SourceError as error:
            least = UNREACHABLE_WAIT if isinstance(error, Unreachable | TimedOut) else LEAST_WAIT
            next_at = None if isinstance(error, Ended) else max(error.retry_at or now, now + least)
            return replace(state, outcome=error.code, detail=error.detail, next_at=next_at), None, error
        wait = min(max(fresh_for(download.headers, now), LEAST_WAIT), timedelta(seconds=LONGEST_WAIT))
        state = replace(state, outcome="ok", detail="", location=location, read_at=now, next_at=now + wait)
        return state, entries, None

    async def _parsed(self, download: Download) -> dict[str, Any] | None:
        async with self._parsers:
            return await asyncio.to_thread(parsed, download, self._parsing_seconds)


def parsed(download: Download, seconds: int = feed_parsing.SECONDS) -> dict[str, Any] | None:
    """What a document holds, as `document_of` returns it, read in a process of its own with so much processor time.

    Raises:
        Broken: that takes too long, or too much memory.
    """
    beginning = download.body.lstrip(b"\xef\xbb\xbf\xfe\xff\0 \t\r\n")[:1]
    if beginning != b"<":  # JSON is read in time
        return feed_parsing.document_of(download.body, "", download.address) if beginning == b"{" else None
    head = json.dumps([download.headers.get("content-type", ""), download.address]).encode()
    command = [sys.executable, "-P", "-c", f"from {feed_parsing.__name__} import main; main({seconds:d})"]
    try:
        done = subprocess.run(  # noqa: S603 # nosec B603 # no word of the command is a stranger's
            command, input=head + b"\n" + download.body, capture_output=True,
            timeout=2 * seconds, check=True,
        )  # fmt: skip
    except subprocess.SubprocessError as error:
        raise NoFeed(NAME, "a document that takes too long to read, or cannot be read") from error
    answer: dict[str, Any] | None = json.loads(done.stdout)
    return answer


def _sendable(header: str, longest: int) -> str:
    """A header that can be sent back unchanged; empty when a request cannot hold it, or it was truncated."""
    return header if header.isascii() and header.isprintable() and len(header) <= longest else ""


def _notes(parsed: Mapping[str, Any]) -> tuple[str, ...]:
    notes = ["the document was cut off; its last entry is left out"] if parsed["cut"] else []
    if (count := parsed["count"]) > feed_parsing.MOST:
        notes.append(f"the first {feed_parsing.MOST} of {count} entries are read")
    return tuple(notes)


def feed_of_page(download: Download) -> str:
    """The address of the feed that a page announces.

    Raises:
        Blocked: it wants to see a browser first.
        NoFeed: it announces none, or is no page.
    """
    text = download.body.decode("utf-8", "replace")
    for address in announced_feeds(text):
        with suppress(ValueError):  # `http://[`
            if (absolute := urljoin(download.address, address)) != download.address:
                return absolute
    if _WALL.search(text[:20_000]):
        raise Blocked(NAME, "a page for browsers instead of the feed")
    raise NoFeed(NAME, "no feed, and no page that announces one")


def failure_of(download: Download) -> SourceError:
    """The error of an answer without a feed."""
    status = download.status
    if status == 410:
        return Ended(NAME, "HTTP 410: the feed has ended")
    if status == 404:
        return NoFeed(NAME, "HTTP 404: nothing at its address")
    if status == 403 or (status == 401 and download.body.lstrip()[:1] == b"<"):
        return Blocked(NAME, f"HTTP {status}: the site lets no programs in", retry_at=download.wait)
    if status in {200, 304}:
        return NoFeed(NAME, "no feed, though a page announced it")
    return status_failure(NAME, status, retry_at=download.wait)


def error_of(state: FeedState) -> SourceError | None:
    """Error of the last request; None when it succeeded."""
    if state.outcome in {"", "ok"}:
        return None
    kind = Ended if state.next_at is None else _ERRORS.get(state.outcome, NoFeed)
    return kind(NAME, state.detail, retry_at=state.next_at)


def fresh_for(headers: Mapping[str, str], now: datetime) -> timedelta:
    """How long an answer may be reused, by `Cache-Control`, else `Expires`; zero when neither is given."""
    if match := _MAX_AGE.search(headers.get("cache-control", "")):
        return timedelta(seconds=int(match[1]))
    try:
        expires = parsedate_to_datetime(headers.get("expires", ""))
        return (expires if expires.tzinfo else expires.replace(tzinfo=UTC)) - now
    except (ValueError, TypeError, LookupError, OverflowError):  # `0` and whatever the parser stumbles over
        return timedelta()


def merged(
    held: Sequence[FeedEntry], read: Sequence[Mapping[str, Any]], address: str, now: datetime
) -> list[FeedEntry]:
    """The entries of a document, each with the key it had before.

    The same guid or the same link is the same entry: guids change, and links get other schemes. A guid that stands
    twice in a document tells nothing, and of two entries with one link the guids decide.
    """
    fresh = [_entry(fields, address, now) for fields in read]
    links: dict[str, set[str]] = {}
    for entry in fresh:
        links.setdefault(entry.guid, set()).add(entry.same_link)
    fresh = [entry if len(links[entry.guid]) == 1 else replace(entry, guid="") for entry in fresh]
    by_guid = {entry.guid: entry.key for entry in held if entry.guid}
    by_link = {entry.same_link: entry.key for entry in held if entry.same_link}
    known = {by_guid[entry.guid] for entry in fresh if entry.guid in by_guid}
    unique: dict[str, FeedEntry] = {}
    for entry in fresh:
        key = by_guid.get(entry.guid)
        if key is None:
            linked = by_link.get(entry.same_link)
            own = _digest(entry.guid or entry.same_link or f"{entry.title} {entry.created_at}")
            key = own if linked is None or linked in known or linked in unique else linked
        unique.setdefault(key, replace(entry, key=key))
    return list(unique.values())


def _entry(fields: Mapping[str, Any], address: str, now: datetime) -> FeedEntry:
    at = time_since(fields["at"])
    created = None if plausible_time(at, now=now) is None or at is None else min(at, now)
    url, link = (_elsewhere(fields[name], address) for name in ("url", "link"))
    notes = [UNDATED] if created is None else []
    return FeedEntry(
        key="", title=fields["title"], body=fields["body"], url=url, link=link, created_at=created,
        author=pseudonym("feed", f"{host_of(address)} {fields['author']}") or "" if fields["author"] else "",
        guid=_digest(fields["guid"]) if fields["guid"] else "",
        same_link=_digest(_same_link(fields["url"])) if fields["url"] else "",
        notes=(*notes, *([TEASER] if fields["teaser"] else ())),
    )  # fmt: skip


def _elsewhere(url: str, address: str) -> str:
    """The address, unless it is the publisher's own machine, which would be the reader's here."""
    return "" if points_here(url) and not points_here(address) else url


def _same_link(url: str) -> str:
    """An address without its scheme, `www.`, what counts visitors, and the slash at its end."""
    parts = urlsplit(url)
    query = urlencode([pair for pair in parse_qsl(parts.query, True) if not _TRACKING.fullmatch(pair[0])])
    host = parts.netloc.lower().removeprefix("www.")
    return f"{host}{parts.path.rstrip('/')}?{query}#{parts.fragment}"


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


class FeedsSource(LocalSource):
    """Entries of the followed feeds that match a question, without the network while none is due."""

    name = NAME

    def __init__(self, reader: FeedReader, addresses: Sequence[str]) -> None:
        """`reader` is closed with it."""
        self._reader, self._addresses = reader, tuple(dict.fromkeys(addresses))

    async def aclose(self) -> None:
        """Close the connections."""
        await self._reader.aclose()

    async def fetch(self, plan: FetchPlan) -> Batch:
        """The entries that name the product or hold the words, the best first; a wider plan asks nothing.

        A feed that fails leaves a note; its failure is the answer when nothing matches.
        """
        states = await self._refreshed()
        entries = await self._reader.entries(self._addresses)
        titles = {address: state.title or host_of(address) for address, (state, _) in states.items()}
        items = await asyncio.to_thread(matching, plan, entries, titles)
        failures = {address: error for address, (_, error) in states.items() if error is not None}
        if failures and not items:
            raise next(iter(failures.values()))
        notes = [f"{titles[address]} not read now: {error.detail}" for address, error in failures.items()]
        notes += [f"{titles[address]}: {note}" for address, (state, _) in states.items() for note in state.notes]
        count = sum(map(len, entries.values()))
        if count >= MOST_SEARCHED:
            notes.append(f"the newest {count} entries of the feeds were searched")
        return Batch(plan, tuple(items[: plan.limit]), full=len(items) > plan.limit, notes=tuple(notes))

    async def probe(self) -> Probe:
        """Whether any feed can be read; due feeds are requested."""
        try:
            states = await self._refreshed()
        except SourceError as error:
            return Probe(error.code, error.detail)
        errors = [error for _, error in states.values() if error is not None]
        if len(errors) == len(states):
            return Probe(errors[0].code, errors[0].detail)
        words = f"{quantity(len(states) - len(errors), 'feed')} read"
        return Probe("ok", f"{words}, {len(errors)} not: {errors[0].detail}" if errors else words)

    async def _refreshed(self) -> Mapping[str, tuple[FeedState, SourceError | None]]:
        if not self._addresses:
            raise NoneFollowed(NAME, "no feed is followed")
        return await self._reader.refreshed(self._addresses)


def matching(plan: FetchPlan, entries: Mapping[str, Sequence[FeedEntry]], titles: Mapping[str, str]) -> list[Item]:
    """The entries within the window that match, best first: those that name the product, then by words and time."""
    query = clean_query(plan.query)
    wanted, name = frozenset(index_tokens(query)), name_of(plan.name or query)
    ranked: list[tuple[bool, int, float, float, Item]] = []
    for address, listed in entries.items():
        for entry in listed:
            if not in_window(plan.window, entry.created_at):
                continue
            text = f"{entry.title}\n{entry.body[:MOST_READ]}"
            tokens = Counter(index_tokens(text))
            share = sum(word in tokens for word in wanted) / len(wanted) if wanted else 0.0
            # written together or with a letter wrong, it is worth a closer look
            folded = fold(text) if share < 1 else ""
            near = share == 1 or any(word in folded for word in wanted)
            named = share == 1 or (near and best(sightings(name, split_words(text), text)).strength >= NEARLY)
            if named or (not plan.name and share > 0.5):
                head = len(wanted & set(index_tokens(entry.title)))
                at = entry.created_at.timestamp() if entry.created_at else 0.0
                ranked.append((named, head, share, at, item_of(entry, address, titles.get(address, ""))))
    ranked.sort(key=lambda row: row[:4], reverse=True)
    return [item for *_, item in ranked]


def item_of(entry: FeedEntry, address: str, place: str) -> Item:
    """An entry as a post; `place` is the title of its feed."""
    key = f"{_digest(address)}:{entry.key}"
    title = entry.title or cut(one_line(entry.body), _TITLE)
    return make_item(
        NAME, key, title, entry.body, entry.created_at, id=key, url=entry.url, place=place, link=entry.link,
        author=entry.author or None, notes=entry.notes,
    )  # fmt: skip


class FeedsInProcess:
    """A `FeedMemory` without a database."""

    def __init__(self) -> None:
        self._states: dict[str, FeedState] = {}
        self._claims: dict[str, datetime] = {}
        self._entries: dict[str, dict[str, FeedEntry]] = {}

    async def feeds(self, addresses: Collection[str]) -> Mapping[str, FeedState]:
        """See `FeedMemory`."""
        return {address: self._states[address] for address in addresses if address in self._states}

    async def claim_feed(self, address: str, now: datetime, until: datetime) -> bool:
        """See `FeedMemory`."""
        if address in self._claims and self._claims[address] > now:
            return False
        self._claims[address] = until
        return True

    async def keep_feed(self, state: FeedState, entries: Sequence[FeedEntry] | None, seen_before: datetime) -> None:
        """See `FeedMemory`."""
        self._states[state.address] = state
        self._claims[state.address] = state.next_at or datetime.max.replace(tzinfo=UTC)
        held = {entry.key: entry for entry in entries or ()}
        kept = held | {key: entry for key, entry in self._entries.get(state.address, {}).items() if key not in held}
        self._entries[state.address] = dict(list(kept.items())[:MAX_ENTRIES])

    async def release_feed(self, address: str, next_at: datetime) -> None:
        """See `FeedMemory`."""
        self._claims[address] = next_at

    async def feed_entries(self, addresses: Collection[str], most: int) -> Mapping[str, Sequence[FeedEntry]]:
        """See `FeedMemory`."""
        each = max(most // max(len(addresses), 1), 1)
        return {address: list(self._entries.get(address, {}).values())[:each] for address in addresses}


def build(settings: SourceSettings, memory: SourceMemory | None = None) -> FeedsSource:
    """The source over the feeds of the settings, without a request."""
    return FeedsSource(FeedReader(settings, memory), feeds_in(settings.feeds))
