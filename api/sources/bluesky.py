"""Bluesky by its stream: what Jetstream held since the window began, within bounds, newest part first.

A stream cannot be searched: it is read from a time on, and what does not name the product is thrown away. The AppView,
which answers without a key, adds counts and replies, and lacks what was deleted since.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, Final

from api.core.domain import BY_BOT, REMOVED, FetchPlan
from api.core.items import Comment, Item, pseudonym
from api.core.ports import Probe
from api.core.shared_answers import shared_run
from api.core.text import clean, cut, one_line, quantity, web_url
from api.errors import Broken, SourceError
from api.features.analyses.store_ports import SourceMemory
from api.pipeline.gate.name_matches import name_of
from api.settings import SourceSettings
from api.sources import has_bluesky_account
from api.sources.bluesky_search import BlueskySearch
from api.sources.item_fields import as_dict, as_int, as_list, as_time, make_item, plausible_time, says_something
from api.sources.jetstream import FIRST_FRAME, LOOK_BACK, JetstreamReader, ReadBounds, ReadCounts
from api.sources.jetstream_frames import COLLECTION, AccountChanged, PostDeleted, PostWritten, ServerNotice
from api.sources.json_source import JsonSource
from api.sources.name_filter import NameFilter
from api.sources.searched_source import Page, window_start
from api.sources.web_client import Limit, Pace, Reply

NAME: Final = "bluesky"
MOST_HITS = 100
"""Posts that are kept of one read; each 25 cost a request for their counts."""
PARTS = 8
"""Connections of one read at most, each for an earlier part of the window than the one before."""
# a time before the network; what a client states before it is wrong
_BEGAN = datetime(2022, 11, 1, tzinfo=UTC)
_FIRST_PART = timedelta(minutes=5)
# an earlier part takes this share of what is left, as the parts before it took; so its end is reached
_SHARE = 0.6
# the least that an earlier part is worth a connection for
_LEAST_PART = timedelta(minutes=1)
# a server that begins so much later than was wished has nothing before
_MISSING = timedelta(minutes=15)
# events may stand a little out of order
_OVERLAP = timedelta(seconds=2)
# the AppView learns of a post a little later than the stream
_INDEXED = timedelta(minutes=2)
_CHUNK = 25
# so many posts are not deleted all at once: an AppView that knows none of them has failed
_SUSPICIOUS = 3
_MOST_DELETED = 300_000
_TITLE = 120
# characters of a text, of an address, and that are looked at; a post may have 3,000 bytes, a record has a million
_LONGEST, _LONGEST_LINK, _MOST_READ = 5_000, 2_000, 20_000
# what an author or a moderator says of a post or account: it is not shown to everybody
_ADULT = frozenset({"porn", "sexual", "nudity", "graphic-media", "gore", "nsfl"})
_HIDDEN = frozenset({"!hide", "!takedown", "!no-unauthenticated"})


@dataclass(frozen=True, slots=True)
class Hit:
    """A post with the product's name."""

    post: PostWritten
    strength: float
    """How much of the name the text has, as in `Sighting.strength`."""
    part: int
    """Number of the part of the read that brought it, from 0, the newest."""


@dataclass(slots=True)
class StreamRead:
    """One look back: parts of the window, the newest first, each read forward up to the part before it.

    The first part is short and shows what a minute of the stream costs; each further one is as long as its end can be
    reached with what is left of the bounds, until the window or the bounds end.
    """

    reader: JetstreamReader
    bounds: ReadBounds
    name: NameFilter
    start: datetime
    """Start of the window, aware UTC."""
    now: datetime
    counts: ReadCounts = field(default_factory=ReadCounts)
    """Counts of all parts of the read together."""
    parts: list[tuple[datetime, datetime]] = field(default_factory=list)
    """Start and end of each part that was read, the newest part first."""
    reading: float = 0.0
    """Seconds from the first event of each part to its end: connecting costs the same for a short one."""
    stopped: str = ""
    """The failure that ended it."""
    exhausted: bool = False
    """The servers hold nothing before the last part."""
    _hits: dict[str, Hit] = field(default_factory=dict)
    _deleted: set[str] = field(default_factory=set)
    _accounts: dict[str, tuple[int, bool]] = field(default_factory=dict)
    """Part in which an account was last changed, and whether it is active."""

    async def run(self) -> None:
        """Read; raises `SourceError` when the newest part cannot be read to its end and held nothing."""
        clock = asyncio.get_running_loop().time
        began, end = clock(), self.now
        for number in range(PARTS):
            used = clock() - began
            begin = self._begin_of(number, end, used)
            if begin is None:
                return
            seconds = (self.bounds.seconds or 0) - used
            bounds = ReadBounds((self.bounds.size or 0) - self.counts.size, seconds / 4 if number == 0 else seconds)
            counts = ReadCounts()
            try:
                await self._read_part(number, begin, end, bounds, counts)
            except SourceError as error:
                if not self.parts or (number == 0 and not self._hits):
                    raise
                self.stopped = f"the stream failed: {error.detail or error.code}"
            self.counts.posts += counts.posts
            self.counts.size += counts.size
            self.counts.malformed += counts.malformed
            if self.stopped or self.exhausted:
                return
            end = self.parts[-1][0]

    def _begin_of(self, number: int, end: datetime, used: float) -> datetime | None:
        """Start of the next part; None when the window or the bounds end."""
        if end <= self.start:
            return None
        if number == 0:
            return max(self.start, end - _FIRST_PART)
        length = sum((until - since for since, until in self.parts), timedelta())
        size, seconds = self.bounds.size or 0, self.bounds.seconds or 0
        times = min((size - self.counts.size) / max(self.counts.size, 1), (seconds - used) / max(self.reading, 0.001))
        affordable = min(max(length, _LEAST_PART) * _SHARE * max(times, 0), LOOK_BACK)
        return None if affordable < _LEAST_PART else max(self.start, end - affordable)

    async def _read_part(
        self, number: int, begin: datetime, end: datetime, bounds: ReadBounds, counts: ReadCounts
    ) -> None:
        first: datetime | None = None
        last, clamped, clock = begin, False, asyncio.get_running_loop().time
        began = clock()
        try:
            async with aclosing(self.reader.read(begin, bounds, self.name, counts)) as events:
                async for event in events:
                    if isinstance(event, ServerNotice):
                        clamped = clamped or event.name == "OutdatedCursor"
                        continue
                    if first is None:
                        first, began = event.at, clock()
                    last = max(last, event.at)
                    if event.at >= (end + _OVERLAP if number else end):
                        break
                    self._take(event, number)
        finally:
            self.reading += clock() - began
            if first is not None:
                clamped = clamped or first - begin > _MISSING
                self.parts.append((first if clamped else min(begin, first), min(last, end)))
        self.exhausted = clamped
        if first is None:
            raise Broken(NAME, "events without the fields that are read")

    def _take(self, event: object, part: int) -> None:
        """Apply an event, unless a newer part has already said something about the same post or account."""
        if isinstance(event, PostWritten):
            known = self._hits.get(event.uri)
            if event.uri in self._deleted or (known is not None and known.part < part):
                return
            if strength := self.name.strength(text_of(event.record)):
                self._hits[event.uri] = Hit(event, strength, part)
            else:
                self._hits.pop(event.uri, None)
            if len(self._hits) > 50 * MOST_HITS:
                self._hits = {hit.post.uri: hit for hit in self._ranked()[: 25 * MOST_HITS]}
        elif isinstance(event, PostDeleted):
            self._hits.pop(event.uri, None)
            if len(self._deleted) < _MOST_DELETED:
                self._deleted.add(event.uri)
        elif isinstance(event, AccountChanged) and self._accounts.get(event.did, (part, True))[0] >= part:
            self._accounts[event.did] = (part, event.active)

    def _ranked(self) -> list[Hit]:
        return sorted(self._hits.values(), key=lambda hit: (hit.strength, hit.post.at), reverse=True)

    def hits(self) -> list[Hit]:
        """Posts with the name by active accounts; best matches first, then newest."""
        return [hit for hit in self._ranked() if self._accounts.get(hit.post.did, (0, True))[1]]

    def note(self, window_is_longer: bool) -> str:
        """What was read and what was not: `read from 2026-11-30 14:05 to 16:40 UTC, 412,000 posts; ...`."""
        begin, end = self.parts[-1][0], self.parts[0][1]
        day = "" if begin.date() == end.date() else f"{end:%Y-%m-%d} "
        words = [
            f"read from {begin:%Y-%m-%d %H:%M} to {day}{end:%H:%M} UTC, {quantity(self.counts.posts, 'post')}",
            *(
                f"not read: {until:%Y-%m-%d %H:%M} to {since:%H:%M}"
                for (since, _), (_, until) in zip(self.parts, self.parts[1:], strict=False)
                if since - until > _LEAST_PART
            ),
        ]
        if self.stopped:
            words.append(self.stopped)
        lacking = begin - self.start
        if self.exhausted and lacking > _MISSING:
            words.append("the stream holds nothing earlier")
        if lacking > (_MISSING if self.exhausted else _LEAST_PART):
            words.append("the earlier part of the window was not read")
        elif window_is_longer:
            words.append(f"the stream reaches back {LOOK_BACK.total_seconds() / 3600:g} hours, not to the whole window")
        if self.counts.malformed:
            words.append(f"{quantity(self.counts.malformed, 'event')} could not be read")
        return "; ".join(words)


def text_of(record: Mapping[str, Any]) -> str:
    """The words of a post, then what its pictures show and the page it links to, as Markdown of others' words."""
    text, embed = record.get("text"), as_dict(record.get("embed"))
    media = as_dict(embed.get("media")) or embed
    lines = [cut(clean(text[:_MOST_READ]), _LONGEST) if isinstance(text, str) else ""]
    lines += [f"![{_bare(as_dict(image).get('alt'))}](image)" for image in as_list(media.get("images"))[:10]]
    lines.append(f"![{_bare(media.get('alt'))}](video)" if "video" in media else "")
    external = as_dict(media.get("external"))
    if title := _bare(external.get("title")):
        lines.append(f"[{title}]({_link_of(external) or 'link'})")
    return "\n".join(line for line in lines if line and not line.startswith("![]"))


def _bare(value: object) -> str:
    """Text without what would end a Markdown label."""
    return cut(one_line(clean(value[:_MOST_READ]).translate(_NO_LABEL)), 1_000) if isinstance(value, str) else ""


def _link_of(external: Mapping[str, Any]) -> str:
    uri = external.get("uri")
    return web_url(uri) if isinstance(uri, str) and len(uri) <= _LONGEST_LINK else ""


_NO_LABEL = str.maketrans("[]()", "    ")


def _root_of(record: Mapping[str, Any]) -> str:
    """For a reply, the address of the post that began the conversation; empty for a post."""
    uri = as_dict(as_dict(record.get("reply")).get("root")).get("uri")
    return uri if isinstance(uri, str) and _URI.fullmatch(uri) else ""


_URI = re.compile(
    rf"at://did:[a-z]{{1,20}}:[A-Za-z0-9._:%-]{{1,250}}/{re.escape(COLLECTION)}/[A-Za-z0-9._:~-]{{1,512}}"
)
# of nobody: the AppView answers with an empty list
_NOBODYS = f"at://did:plc:aaaaaaaaaaaaaaaaaaaaaaaa/{COLLECTION}/3aaaaaaaaaaaa"


def page_of(uri: str) -> str:
    """The page of a post on bsky.app."""
    did, _, rkey = uri.removeprefix("at://").partition(f"/{COLLECTION}/")
    return f"https://bsky.app/profile/{did}/post/{rkey}"


def item_of(post: PostWritten, view: Mapping[str, Any] | None, root: Mapping[str, Any] | None) -> Item:
    """A post, or a reply under the words of the post that began the conversation."""
    record = as_dict(as_dict(view).get("record")) or post.record
    title = cut(one_line(text_of(as_dict(as_dict(root).get("record")))), _TITLE)
    above, created = _root_of(post.record), plausible_time(as_time(str(post.record.get("createdAt"))), _BEGAN)
    notes = []
    if above and not title:
        notes.append("the post that it replies to could not be read")
    if created is None or abs(created - post.at) > timedelta(days=1):
        notes.append("the date that its author's program states is another one")
    external = as_dict(as_dict(record.get("embed")).get("external"))
    return make_item(
        NAME, post.uri, title, text_of(record), post.at,
        id=post.uri, url=page_of(post.uri), author=pseudonym("bsky", post.did), engagement=_counts(view),
        thread=f"{NAME}:{above}" if above and title else "", link=_link_of(external),
        unfit=_unfit_by_label(record, view), notes=tuple(notes),
    )  # fmt: skip


def _written(view: Mapping[str, Any]) -> PostWritten | None:
    """A post from the search in the stream's form; None when fields are missing."""
    uri, record, at = view.get("uri"), as_dict(view.get("record")), as_time(str(view.get("indexedAt")))
    if not isinstance(uri, str) or not _URI.fullmatch(uri) or at is None or "text" not in record:
        return None
    return PostWritten(uri, uri.split("/")[2], at, record)


def _removed(post: PostWritten) -> Item:
    """The item of a post that was deleted since the stream brought it."""
    return make_item(NAME, post.uri, "", "", post.at, id=post.uri, url=page_of(post.uri), unfit=REMOVED)


def _counts(view: Mapping[str, Any] | None) -> dict[str, int | None]:
    if view is None:
        return {}
    fields = {"likes": "likeCount", "comments": "replyCount", "reposts": "repostCount", "quotes": "quoteCount"}
    return {name: as_int(view.get(count)) for name, count in fields.items()}


def _unfit_by_label(record: Mapping[str, Any], view: Mapping[str, Any] | None) -> str:
    """Why a post must not be shown, by labels of its author or a moderator; empty for most."""
    given = [*as_list(as_dict(record.get("labels")).get("values"))]
    if view is not None:
        given += [*as_list(view.get("labels")), *as_list(as_dict(view.get("author")).get("labels"))]
    values = {str(label.get("val")) for label in map(as_dict, given) if not label.get("neg")}
    if values & _HIDDEN:
        return "its author or a moderator hides it from people without an account"
    if values & _ADULT:
        return "labelled as adult content"
    return BY_BOT if "bot" in values else ""


def _replies(thread: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Posts below a post, without those that are deleted or blocked, level by level."""
    queue = [thread]
    for branch in queue:
        below = [reply for reply in map(as_dict, as_list(branch.get("replies"))) if "post" in reply]
        queue += below
        yield from (as_dict(reply.get("post")) for reply in below)


def _comment(view: Mapping[str, Any]) -> Comment | None:
    record, uri = as_dict(view.get("record")), view.get("uri")
    text = text_of(record)
    if not isinstance(uri, str) or not _URI.fullmatch(uri) or not says_something(text) or _unfit_by_label(record, view):
        return None
    return Comment(
        id=uri, body=text, url=page_of(uri), author=pseudonym("bsky", uri.split("/")[2]),
        created_at=plausible_time(as_time(str(view.get("indexedAt"))), _BEGAN), engagement=_counts(view),
    )  # fmt: skip


class BlueskySource(JsonSource):
    """Finds a name in the stream, and completes the posts found by the AppView."""

    name = NAME
    limits = (Limit(3_000, 300),)
    phrases: ClassVar[bool] = False

    def __init__(self, settings: SourceSettings, memory: SourceMemory | None = None) -> None:
        """`memory` keeps read pages for `page_ttl` seconds; sends no request."""
        super().__init__(settings, memory, roots=(settings.bluesky_appview_url,), parts=settings.jetstreams)
        patience = settings.source_timeout
        self._reader = JetstreamReader(
            NAME,
            settings.jetstreams,
            settings.bluesky_version,
            patience,
            settings.user_agent,
            min(patience, FIRST_FRAME),
        )
        self._account = BlueskySearch(settings) if has_bluesky_account(settings) else None
        seconds = min(settings.bluesky_seconds, 0.4 * settings.crawl_timeout)
        self._bounds = ReadBounds(settings.bluesky_megabytes * 1_000_000, seconds)

    async def aclose(self) -> None:
        """Close the connections."""
        await super().aclose()
        if self._account is not None:
            await self._account.aclose()

    async def _search(self, plan: FetchPlan, cursor: str | None) -> Page:
        """Read the stream once, whatever the limit; with an account, search too.

        A wider fetch uses what the first read left over.

        Raises:
            SourceError: the stream cannot be read, and nothing was found by the search.
        """
        now, name = datetime.now(UTC), NameFilter(name_of(plan.query))
        begin = window_start(plan.window, now)
        start = max(begin or now - LOOK_BACK, now - LOOK_BACK)
        read = StreamRead(self._reader, self._bounds, name, start, now)

        async def read_stream() -> SourceError | None:
            try:
                await read.run()
            except SourceError as error:
                return error
            return None

        failure, (hits, more) = await asyncio.gather(read_stream(), self._search_hits(plan.query, name, begin))
        if failure is not None and not hits:
            raise failure
        notes = [
            f"the stream could not be read: {failure.detail or failure.code}"
            if failure is not None
            else read.note(plan.window in {"week", "month", "year", "all"})
        ]
        hits = [*{hit.post.uri: hit for hit in (*hits, *read.hits())}.values()]
        hits.sort(key=lambda hit: (hit.strength, hit.post.at), reverse=True)
        if len(hits) > MOST_HITS:
            notes.append(f"{MOST_HITS} of {len(hits):,} posts that name it were taken, the newest of the best matches")
        items, missing = await self._completed(hits[:MOST_HITS], now)
        return Page(items, None, (*notes, *more, *missing), partial=failure is not None or bool(read.stopped))

    async def _search_hits(
        self, query: str, name: NameFilter, since: datetime | None
    ) -> tuple[list[Hit], tuple[str, ...]]:
        """Posts with the name that an account's search finds, with a note; none without an account, or for a watch."""
        if self._account is None or shared_run() is not None:
            return [], ()
        try:
            views = await self._account.posts(query, since)
        except SourceError as error:
            return [], (f"its search failed: {error.detail or error.code}",)
        posts = [post for view in views if (post := _written(view)) is not None]
        if views and not posts:
            return [], ("its search failed: posts without the fields that are read",)
        hits = [Hit(post, strength, 0) for post in posts if (strength := name.strength(text_of(post.record)))]
        return hits, (f"its search gave {quantity(len(hits), 'post')} that name it",)

    async def _completed(self, hits: Sequence[Hit], now: datetime) -> tuple[tuple[Item, ...], tuple[str, ...]]:
        """Hits as items with the AppView's counts, and replies with the text that they are under."""
        roots = {root: None for hit in hits if (root := _root_of(hit.post.record))}
        uris = list(dict.fromkeys([*(hit.post.uri for hit in hits), *roots]))
        try:
            views = await self._posts(uris)
        except SourceError as error:
            note = (
                f"counts, deletions and the posts that were replied to could not be read: {error.detail or error.code}"
            )
            return tuple(item_of(hit.post, None, None) for hit in hits), (note,)
        older = [hit for hit in hits if now - hit.post.at > _INDEXED]
        unknown = len(older) >= _SUSPICIOUS and not any(hit.post.uri in views for hit in older)
        items = []
        for hit in hits:
            view = views.get(hit.post.uri)
            if view is None and not unknown and now - hit.post.at > _INDEXED:
                items.append(_removed(hit.post))
            else:
                items.append(item_of(hit.post, view, views.get(_root_of(hit.post.record))))
        strengths = {f"{NAME}:{hit.post.uri}": hit.strength for hit in hits}
        items.sort(key=lambda item: (strengths[item.key], item.engagement.get("likes") or 0), reverse=True)
        return tuple(items), ("the AppView knows none of the posts, so deletions were not checked",) if unknown else ()

    async def _posts(self, uris: Sequence[str]) -> dict[str, Mapping[str, Any]]:
        """Posts as the AppView has them, by address; deleted ones are missing."""
        chunks = [uris[at : at + _CHUNK] for at in range(0, len(uris), _CHUNK)]
        answers = await asyncio.gather(*(self._chunk(chunk) for chunk in chunks))
        views = [as_dict(view) for answer in answers for view in answer]
        return {uri: view for view in views if isinstance(uri := view.get("uri"), str)}

    async def _chunk(self, uris: Sequence[str]) -> Sequence[Any]:
        query = "&".join(f"uris={uri}" for uri in uris)
        return self._list(await self._ask(f"/xrpc/app.bsky.feed.getPosts?{query}", pace=self._views), "posts")

    async def _commented(self, item: Item) -> Item:
        """The item with the replies to it, best liked first."""
        params: dict[str, str | int] = {"uri": item.id, "depth": 6, "parentHeight": 0}
        answer = as_dict(await self._ask("/xrpc/app.bsky.feed.getPostThread", params, pace=self._views))
        thread = as_dict(answer.get("thread"))
        if "post" not in thread:
            raise Broken(NAME, "it is no longer there" if thread else "a thread without its post")
        views = self._complete(_replies(thread), lambda view: isinstance(as_dict(view.get("record")).get("text"), str))
        views.sort(key=lambda view: -(as_int(view.get("likeCount")) or 0))
        return self._with_comments(item, views, _comment)

    async def _probed(self) -> Probe:
        began, counts = datetime.now(UTC), ReadCounts()
        async with aclosing(self._reader.read(began, ReadBounds(frames=1), counts=counts)) as events:
            async for _ in events:
                break
        seconds = (datetime.now(UTC) - began).total_seconds()
        await self._chunk([_NOBODYS])
        if self._account is not None:
            await self._account.session()
        return Probe("ok", f"the stream's first event came after {seconds:.1f} s")

    def _failure(self, reply: Reply) -> SourceError | None:
        if reply.status == 400 and as_dict(reply.data).get("error") == "NotFound":
            return Broken(NAME, "it is no longer there")
        return None

    @property
    def _views(self) -> Pace:
        return self._pace(self._roots[0])


build = BlueskySource
