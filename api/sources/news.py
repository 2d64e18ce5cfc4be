"""News by the article lists of the GDELT Project: files of a few minutes each, read back from the newest.

The lists cannot be searched. Those of the last hours are read, what does not name the product is thrown away, and
a file that was read once is kept packed in this process, since it never changes.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import re
import threading
import time
import zlib
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from typing import Any

import regex

from api.core.domain import FetchPlan
from api.core.items import Item, pseudonym
from api.core.ports import Probe
from api.core.text import clean, cut, one_line, quantity, unescape, web_url
from api.core.words import canonical, words
from api.core.work import SharedTasks
from api.errors import Blocked, Broken, SourceError, Unreachable
from api.features.analyses.store_ports import SourceMemory
from api.pipeline.evidence.duplicates import canonical_url
from api.pipeline.gate.name_matches import name_of
from api.settings import SourceSettings
from api.sources.item_fields import as_dict, make_item, parsed_date, plausible_time, time_since
from api.sources.json_source import JsonSource, ask_each, reply_failure
from api.sources.name_filter import NameFilter
from api.sources.searched_source import Page
from api.sources.web_client import Limit, Reply, host_of

NAME = "news"
LISTS = "/gdeltv3/gal"
QUARTER = timedelta(minutes=15)
MINUTES = range(8)
"""Minutes after a quarter of an hour at which a list may appear; two or three of them have one."""
MOST_HITS = 500
"""Articles of one answer: the most that a caller may ask for."""
MAX_LINE, MAX_UNPACKED = 64_000, 20_000_000
"""Bytes of one line, and of one list without its packing."""
MAX_KEPT = 64_000_000
"""Most bytes of packed lists kept in this process; the lists that were read first are removed first."""
# bytes of lists that one question reads anew, and seconds, at most two fifths of the crawl's
_MAX_READ, _MAX_SECONDS, _SHARE = 64_000_000, 20.0, 0.4
# lists that cannot be read, after which no further ones are asked for
_MAX_UNREAD = 4
# hits of which the best become items
_MAX_COLLECTED = 20 * MOST_HITS
# quarters after which only the minutes are asked for at which lists were
_LEARNT = 4
SETTLED = timedelta(minutes=45)
"""Lists appear late: an absent one is absent for good when the newest is so much younger."""
# seconds for which another one is not asked for again
_RECENT = 60.0
_MAX_ABSENT = 20_000
_STALE = timedelta(hours=1)
_PIECE = 65_536
STAMP = "%Y%m%d%H%M%S"
"""A minute as the file of its list is named."""
# characters of a headline and of what stands below it; lists have about 100 and 146
_MAX_TITLE, _MAX_TEXT = 500, 5_000
_NEWEST = re.compile(r"<lastBuildDate>([^<]{1,60})</lastBuildDate>")
# the outlet's name behind a headline: `Acme recalls headphones - Example News`
_OUTLET = regex.compile(r"(?<!\s)\s+[|–—-]\s+(?P<outlet>[^|–—]{2,60})$")
# `&uuml;`, `&#252;`: what the bytes of a line do not tell
_ENTITY = re.compile(rb"&#?[0-9A-Za-z]{2,8};")
# words from which two equal headlines are one story
_TELLING = 4
ATTRIBUTION = "the lists of articles are by the GDELT Project (gdeltproject.org)"


@dataclass(frozen=True, slots=True)
class ArticleHit:
    """An article with the product's name."""

    fields: Mapping[str, Any]
    """The JSON object of its line in a list."""
    titled: bool
    """Whether the headline has the name, not only the description."""
    stamp: str
    """The minute of its list, as its file is named."""


@dataclass(slots=True)
class ListCounts:
    """Numbers of lists that were read, of their articles, of lines that could not be read, and of damaged lists."""

    lists: int = 0
    articles: int = 0
    bad_lines: int = 0
    damaged: int = 0
    """Lists that ended too early or were too large; their beginnings were read."""

    def add(self, other: ListCounts) -> None:
        """Count what other lists held, too."""
        self.lists += other.lists
        self.articles += other.articles
        self.bad_lines += other.bad_lines
        self.damaged += other.damaged


@dataclass(eq=False)
class KeptLists:
    """The packed lists of one server that this process has read; shared by event loops and threads."""

    _contents: OrderedDict[str, bytes] = field(default_factory=OrderedDict)
    _without_list: OrderedDict[str, float] = field(default_factory=OrderedDict)
    """Minutes without a list, and when each is requested again, on the monotonic clock."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _size: int = 0

    def get(self, stamp: str) -> bytes | None:
        """The packed list of a minute; None when it is not kept."""
        return self._contents.get(stamp)

    def drop(self, stamp: str) -> None:
        """Forget a list that could not be read to its end."""
        with self._lock:
            self._size -= len(self._contents.pop(stamp, b""))

    def is_absent(self, stamp: str) -> bool:
        """Whether there is no list of this minute, as far as is known."""
        return self._without_list.get(stamp, 0.0) > time.monotonic()

    def keep(self, stamp: str, content: bytes) -> None:
        """Keep a list, and no more than `MAX_KEPT` bytes of all."""
        with self._lock:
            self._size += len(content) - len(self._contents.pop(stamp, b""))
            self._contents[stamp] = content
            while self._size > MAX_KEPT:
                self._size -= len(self._contents.popitem(last=False)[1])

    def forget_absent(self) -> None:
        """Have every minute without a list asked for again."""
        with self._lock:
            self._without_list.clear()

    def note_absent(self, stamp: str, *, settled: bool) -> None:
        """Keep that there is no list of this minute: for a minute, or for good when it is `settled`."""
        with self._lock:
            self._without_list[stamp] = math.inf if settled else time.monotonic() + _RECENT
            if len(self._without_list) > _MAX_ABSENT:
                self._without_list.popitem(last=False)


@cache
def kept_lists(root: str) -> KeptLists:
    """The lists of a server, one object in this process."""
    return KeptLists()


@dataclass(slots=True)
class SpanRead:
    """State of one question's reading."""

    newest: datetime
    counts: ListCounts = field(default_factory=ListCounts)
    hits: list[ArticleHit] = field(default_factory=list)
    begin: datetime | None = None
    """Start of the earliest quarter hour that was read."""
    size: int = 0
    """Bytes downloaded by this question."""
    broken: SourceError | None = None
    """The first list that could not be read."""
    unread: int = 0
    """Lists that could not be read."""
    stopped: str = ""
    """Why the earlier part was not read."""

    def notes(self, hours: int) -> tuple[str, ...]:
        """What was read, what could not be, and whose lists they are."""
        begin, end = self.begin or self.newest, self.newest
        day = "" if begin.date() == end.date() else f"{end:%Y-%m-%d} "
        count = quantity(self.counts.articles, "article")
        words = [f"looked back {hours} h: {count} listed from {begin:%Y-%m-%d %H:%M} to {day}{end:%H:%M} UTC"]
        if self.stopped:
            words.append(f"the earlier part was not read: {self.stopped}")
        if self.unread:
            words.append(f"{quantity(self.unread, 'list')} could not be read")
        if self.counts.damaged:
            words.append(f"{quantity(self.counts.damaged, 'list')} ended too early or too large")
        if self.counts.bad_lines:
            words.append(f"{quantity(self.counts.bad_lines, 'line')} could not be read")
        if datetime.now(UTC) - end > _STALE:
            words.append("nothing newer is listed")
        return "; ".join(words), ATTRIBUTION


class NewsSource(JsonSource):
    """Searches article lists for a name, newest lists first."""

    name = NAME
    # no limit is known; a span of a day is 800 requests
    limits = (Limit(1_500, 60),)
    rest = timedelta(minutes=1)

    def __init__(self, settings: SourceSettings, memory: SourceMemory | None = None) -> None:
        self._hours = settings.news_hours
        super().__init__(settings, memory, parts=(f"{self._hours} h",))
        self._max_comments = 0  # a list has none
        self._root = self._roots[0]
        self._lists = kept_lists(self._root)
        self._reading: SharedTasks[str, bytes | None] = SharedTasks()
        self._seconds = min(_MAX_SECONDS, _SHARE * settings.crawl_timeout)

    async def _commented(self, item: Item) -> Item:
        return item

    async def _search(self, plan: FetchPlan, cursor: str | None) -> Page:
        """All articles of the span in one page."""
        span = await self._read_span(NameFilter(name_of(plan.query)))
        items = await asyncio.to_thread(items_of, span.hits)
        notes = span.notes(self._hours)
        if len(items) > MOST_HITS:
            notes = (f"the first {MOST_HITS} of {len(items):,} articles that name it", *notes)
        return Page(tuple(items[:MOST_HITS]), None, notes, partial=bool(span.stopped or span.unread))

    async def _read_span(self, names: NameFilter) -> SpanRead:
        """Quarter by quarter until the span or the bounds end; raises `SourceError` when no list could be read."""
        clock = asyncio.get_running_loop().time
        until, span = clock() + self._seconds, SpanRead(await self.newest())
        quarter, minutes = quarter_of(span.newest), set[int]()
        first = quarter
        while quarter > first - timedelta(hours=self._hours):
            learnt = first - quarter >= _LEARNT * QUARTER and bool(minutes)
            stamps = stamps_of(quarter, sorted(minutes) if learnt else MINUTES, span.newest)
            held = await self._read_quarter(span, names, stamps)
            if learnt and not held and not span.stopped:  # they come at other minutes than later
                stamps = stamps_of(quarter, [minute for minute in MINUTES if minute not in minutes], span.newest)
                held = await self._read_quarter(span, names, stamps)
            minutes |= {time_of(stamp).minute % 15 for stamp in held}
            if span.stopped:
                break
            span.begin, quarter = quarter, quarter - QUARTER
            if clock() > until or span.size > _MAX_READ:
                span.stopped = "its time is up" if clock() > until else "it would be too much"
                break
        if not span.counts.lists:
            self._lists.forget_absent()  # there are lists, as the feed of them says
            raise span.broken or Unreachable(NAME, f"no list of the last {self._hours} h")
        return span

    async def _read_quarter(self, span: SpanRead, names: NameFilter, stamps: Sequence[str]) -> list[str]:
        """Read the lists of these minutes; returns the stamps of those that exist."""
        fresh = {stamp for stamp in stamps if self._lists.get(stamp) is None}

        try:
            lists = partial(self.list_of, newest=span.newest)
            answers, failures = await ask_each(stamps, lists) if stamps else ({}, {})
        except SourceError as error:
            answers, failures = {}, dict.fromkeys(stamps, error)
        contents = {stamp: content for stamp, content in answers.items() if content is not None}
        span.size += sum(len(content) for stamp, content in contents.items() if stamp in fresh)
        for stamp, content in sorted(contents.items(), reverse=True):
            try:
                counts, hits = await asyncio.to_thread(read_list, content, names, stamp)
            except Broken as error:
                failures[stamp] = error
                self._lists.drop(stamp)
                continue
            if counts.damaged:  # it may be whole next time
                self._lists.drop(stamp)
            span.counts.add(counts)
            span.hits = [*span.hits, *hits][:_MAX_COLLECTED]
        for failure in failures.values():
            span.broken = span.broken or failure
            if isinstance(failure, Broken):  # of this list alone
                span.unread += 1
            else:
                span.stopped = span.stopped or failure.detail or failure.code
        if span.unread >= _MAX_UNREAD:  # each may be as large as is read of one at most
            span.stopped = span.stopped or "too many lists could not be read"
        if span.stopped and not span.counts.lists and span.broken is not None:
            raise span.broken
        return [*contents]

    async def newest(self) -> datetime:
        """The minute of the newest list, as the feed of them says; raises `SourceError`."""
        reply = await self._reply(f"{LISTS}/feed.rss")
        if reply.status == 404 or "<rss" not in reply.body[:1_000]:
            raise (Blocked if reply.html else Broken)(NAME, "no feed of its lists", retry_at=reply.wait)
        match = _NEWEST.search(reply.body)
        newest = parsed_date(match[1]) if match else None
        newest = None if newest is None else plausible_time(min(newest, datetime.now(UTC)))
        if newest is None:
            raise Broken(NAME, "a feed without lastBuildDate")
        return newest.replace(second=0, microsecond=0)

    async def list_of(self, stamp: str, newest: datetime) -> bytes | None:
        """The packed list of a minute, requested once in a process; None when it does not exist.

        Raises `SourceError`.
        """
        if self._lists.is_absent(stamp):
            return None
        return self._lists.get(stamp) or await self._reading.share(
            stamp, lambda listener: self._content_of(stamp, newest)
        )

    def forget(self, stamp: str) -> None:
        """Drop an incomplete list, so that it is requested again when needed."""
        self._lists.drop(stamp)

    async def _content_of(self, stamp: str, newest: datetime) -> bytes | None:
        reply = await self._reply(f"{LISTS}/{stamp}.gal.json.gz")
        if reply.status == 404:
            self._lists.note_absent(stamp, settled=newest - time_of(stamp) > SETTLED)
            return None
        if reply.html:
            raise Blocked(NAME, "a web page instead of data", retry_at=reply.wait)
        self._lists.keep(stamp, reply.content)
        return reply.content

    async def _reply(self, path: str) -> Reply:
        pace = self._pace(self._root)
        await pace.turn()
        reply = await self._servers[self._root].get(path)
        failure = None if reply.status in {200, 404} else reply_failure(NAME, reply)
        self.heed(pace, reply, failure)
        if failure is not None:
            raise failure
        return reply

    async def _probed(self) -> Probe:
        return Probe("ok", f"the newest list is of {await self.newest():%Y-%m-%d %H:%M} UTC")


build = NewsSource


def quarter_of(moment: datetime) -> datetime:
    """The beginning of the quarter of an hour in which a moment lies."""
    return moment.replace(minute=moment.minute // 15 * 15)


def stamps_of(quarter: datetime, minutes: Sequence[int], newest: datetime) -> list[str]:
    """The names of possible lists of a quarter, up to the newest, which is always one."""
    times = {quarter + timedelta(minutes=minute) for minute in minutes}
    times |= {newest} if quarter_of(newest) == quarter else set()
    return [f"{time:{STAMP}}" for time in sorted(times) if time <= newest]


def time_of(stamp: str) -> datetime:
    """The minute of a list by the name of its file; raises `ValueError` for another text."""
    return datetime.strptime(stamp, STAMP).replace(tzinfo=UTC)


def read_list(content: bytes, names: NameFilter, stamp: str) -> tuple[ListCounts, list[ArticleHit]]:
    """The articles of a list that name the product; takes a hundredth of a second, so it runs in a thread.

    Raises:
        Broken: no line of it is an article.
    """
    counts, hits = ListCounts(lists=1), []
    for line in lines_of(content, counts):
        if counts.articles and not (names(line) or _ENTITY.search(line)):
            # nearly all lines, once one was read whole: whether they are sound JSON does not matter
            sound = line.startswith(b"{") and b'"url"' in line and b'"title"' in line
            counts.articles, counts.bad_lines = counts.articles + sound, counts.bad_lines + (not sound)
            continue
        try:
            fields = as_dict(json.loads(line))
        except (ValueError, RecursionError):
            fields = {}
        title, description, url = (fields.get(name) for name in ("title", "desc", "url"))
        if not isinstance(title, str) or not isinstance(url, str) or not web_url(url):
            counts.bad_lines += 1
            continue
        counts.articles += 1
        description = description if isinstance(description, str) else ""
        if "&" in title or "&" in description:
            title, description = unescape(title), unescape(description)
        if (titled := names_it(names, title)) or names_it(names, description):
            hits.append(ArticleHit(fields, titled, stamp))
    if not counts.articles:
        raise Broken(NAME, "a list without an article that can be read")
    return counts, hits


def articles_in(content: bytes) -> tuple[list[Item], bool]:
    """All articles of a list, each story once, and whether it is whole; lines that are none are left out."""
    hits, counts = [], ListCounts()
    for line in lines_of(content, counts):
        try:
            hits.append(ArticleHit(as_dict(json.loads(line)), True, ""))
        except (ValueError, RecursionError):
            continue
    return items_of(hits), not counts.damaged


def names_it(names: NameFilter, text: str) -> bool:
    """Whether a text names the product by the gate's rules; bytes alone exclude most texts."""
    return names(text.encode("utf-8", "replace")) and names.strength(text) > 0


def lines_of(content: bytes, counts: ListCounts) -> Iterator[bytes]:
    """The lines of a list, packed or not, in linear time and bounded memory; damage ends it and is counted."""
    buffer, size, skipping = b"", 0, False
    for piece in _unpacked(content, counts):
        size += len(piece)
        if size > MAX_UNPACKED:
            counts.damaged += 1
            return
        *whole, buffer = (buffer + piece).split(b"\n")
        for line in whole:
            if skipping or len(line) > MAX_LINE:
                counts.bad_lines += 1
                skipping = False
            elif line.strip():
                yield line
        if len(buffer) > MAX_LINE:
            buffer, skipping = b"", True
    if skipping:
        counts.bad_lines += 1
    elif buffer.strip() and not counts.damaged:  # else it is cut, too
        yield buffer


def _unpacked(content: bytes, counts: ListCounts) -> Iterator[bytes]:
    if content[:2] != b"\x1f\x8b":  # a server may have unpacked it, as its headers say
        yield from (content[at : at + _PIECE] for at in range(0, len(content), _PIECE))
        return
    inflate, rest = zlib.decompressobj(zlib.MAX_WBITS | 16), content
    try:
        while not inflate.eof:
            piece = inflate.decompress(rest, _PIECE)
            rest = inflate.unconsumed_tail
            if not piece and not rest:
                break
            yield piece
    except zlib.error:
        counts.damaged += 1
        return
    counts.damaged += not inflate.eof


def items_of(hits: Sequence[ArticleHit]) -> list[Item]:
    """Each story once: headlines that name the product first, of these the newest list first."""
    by_address: dict[str, Item] = {}
    places: dict[str, dict[str, None]] = {}
    by_title: dict[str, str] = {}
    for hit in sorted(hits, key=lambda hit: (hit.titled, hit.stamp), reverse=True):
        item = article_of(hit.fields)
        if item is None:
            continue
        address, title = item.key, canonical(item.title)
        if len(words(item.title)) >= _TELLING:
            address = by_title.setdefault(title, address)
        by_address.setdefault(address, item)
        places.setdefault(address, {})[item.place or ""] = None
    return [
        item if len(places[address]) == 1 else item.edited(places=tuple(places[address]))
        for address, item in by_address.items()
    ]


def article_of(fields: Mapping[str, Any]) -> Item | None:
    """An article under its headline; None when address or headline is missing."""
    url, title = web_url(fields.get("url")), fields.get("title")
    host = host_of(url).removeprefix("www.")
    if not host or not isinstance(title, str) or not title.strip():
        return None
    description, outlet = fields.get("desc"), fields.get("outletName")
    headline = cut(one_line(unescape(title)), _MAX_TITLE)
    if isinstance(outlet, str) and (match := _OUTLET.search(headline)):
        same = canonical(match["outlet"]) == canonical(outlet)
        headline = headline[: match.start()] if same else headline
    writer = fields.get("author")
    writer = one_line(clean(writer)) if isinstance(writer, str) else ""
    key = hashlib.sha256((canonical_url(url) or url).encode()).hexdigest()[:16]
    return make_item(
        NAME, key, headline, cut(unescape(description), _MAX_TEXT) if isinstance(description, str) else "",
        _time(fields.get("date")),
        id=key, url=url, place=host,
        author=pseudonym("press", f"{writer}@{host}") if writer else pseudonym("outlet", host),
    )  # fmt: skip


def _time(value: object) -> datetime | None:
    """`2026-09-08T01:31:00.000Z`, in older lists `20260908013100`: when it was published, else seen."""
    text = value.strip() if isinstance(value, str) else ""
    if len(text) == 14 and text.isascii() and text.isdigit():
        try:
            return plausible_time(time_of(text))
        except ValueError:
            return None
    return time_since(text) if text else None
