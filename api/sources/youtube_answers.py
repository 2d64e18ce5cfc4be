"""What YouTube's answers mean: which failure they are, and their JSON as items and comments.

Pure, and safe for any shape.

Google's bucket of searches: so many a day, and a day ends at midnight Pacific time.

The ledger is shared by every process on one database. A search is taken before its request is
sent, each try for itself. It is given back only when the request cannot have reached Google: the
name was not resolved, or the connection was refused. After a timeout or an error it stays taken,
since Google counts what it received.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from api.core.domain import Comment, Item, Measure
from api.core.http_limits import retry_at
from api.core.text import clean, unescape
from api.errors import (
    Blocked,
    Broken,
    QuotaExhausted,
    RateLimited,
    Refused,
    SourceError,
    StoreUnavailable,
    Unreachable,
)
from api.features.analyses.store_ports import SourceMemory
from api.settings import SourceSettings
from api.sources.item_fields import (
    IMPLAUSIBLE,
    entries,
    is_said,
    is_text,
    moment,
    plausible,
    pseudonym,
    record,
    seen,
    whole,
    why_unfit,
)
from api.sources.paging import Page
from api.sources.source_specs import YOUTUBE_NAME, setting_value


class Searches:
    """The searches one key has left today; without a memory nothing is counted."""

    def __init__(self, memory: SourceMemory | None, key: str, limit: int) -> None:
        """`limit` is per day; another key is another project, so it has a scope of its own."""
        self._memory, self._limit = memory, limit
        self.scope = f"{YOUTUBE_NAME}.search:{hashlib.sha256(key.encode()).hexdigest()[:8]}"

    async def take(self) -> date | None:
        """Take one, before the request is sent; the day it was taken from.

        Raises:
            QuotaExhausted: the day's searches are gone.
            Unreachable: the database cannot be read, so nobody knows whether one is left.
        """
        if self._memory is None:
            return None
        day = pacific_day()
        try:
            taken = await self._memory.take(self.scope, day, 1, self._limit)
        except StoreUnavailable:
            raise Unreachable(
                YOUTUBE_NAME, "searches cannot be counted: the database is away"
            ) from None
        if not taken:
            detail = f"the day's {self._limit} searches are used up"
            raise QuotaExhausted(YOUTUBE_NAME, detail, retry_at=next_reset())
        return day

    async def give_back(self, day: date | None) -> None:
        """Return one that Google never saw; a database that cannot be used keeps it."""
        if self._memory is None or day is None:
            return
        try:
            await self._memory.give_back(self.scope, day, 1)
        except StoreUnavailable:
            return

    async def left(self) -> int | None:
        """How many are left today; None when nobody counts."""
        if self._memory is None:
            return None
        try:
            spent = await self._memory.spent(self.scope, pacific_day())
        except StoreUnavailable:
            return None
        return max(self._limit - spent, 0)


def searches_of(settings: SourceSettings, memory: SourceMemory | None) -> Searches:
    """Those of the key in the settings."""
    key = setting_value(settings, "YOUTUBE_API_KEY")
    return Searches(memory, key, settings.youtube_searches_per_day)


def pacific_day(now: datetime | None = None) -> date:
    """The day in Pacific time, by which Google counts."""
    return (now or datetime.now(UTC)).astimezone(_pacific()).date()


def next_reset(now: datetime | None = None) -> datetime:
    """The next midnight in Pacific time, when Google's quotas return, as UTC."""
    zone = _pacific()
    local = (now or datetime.now(UTC)).astimezone(zone)
    midnight = datetime(local.year, local.month, local.day, tzinfo=zone) + timedelta(days=1)
    return midnight.astimezone(UTC)


def _pacific() -> tzinfo:
    try:
        return ZoneInfo("America/Los_Angeles")
    except ZoneInfoNotFoundError:  # a slim system without zone data: at most an hour late
        return timezone(timedelta(hours=-8))


BEGAN = datetime(2005, 4, 1, tzinfo=UTC)
"""The month of the first video."""
WATCH = "https://www.youtube.com/watch?v="
_SPENT = {"quotaExceeded", "dailyLimitExceeded"}
_BURST = {"rateLimitExceeded", "userRateLimitExceeded", "RATE_LIMIT_EXCEEDED"}
_KEY = {"keyInvalid", "API_KEY_INVALID", "keyExpired"}
_GONE = {"commentsDisabled": "comments are turned off", "videoNotFound": "the video is gone"}


class NoComments(Broken):
    """This video has no comments to read; `detail` says why."""


class StalePage(Broken):
    """The token of a page is not known any more."""


def answer_of(value: object, kind: str) -> Mapping[str, Any]:
    """An answer of this kind with a list of items, which Google leaves out when it is empty.

    Raises:
        Broken: it is something else.
    """
    answer = record(value)
    listed, named = answer.get("items"), answer.get("kind")
    if (
        named not in (None, f"youtube#{kind}")  # a list, since what it is compared with may be any
        or not isinstance(listed, (list, type(None)))
        or (listed is None and named is None)
    ):
        raise Broken(YOUTUBE_NAME, f"an answer that is no {kind}")
    return answer


def failure_of(status: int, content: bytes, headers: Mapping[str, str]) -> SourceError:
    """What a failed answer says, by Google's reason first and the status second."""
    if status >= 500 or status == 408:
        return Unreachable(YOUTUBE_NAME, f"HTTP {status}")
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        if status == 429:
            return RateLimited(YOUTUBE_NAME, "HTTP 429", retry_at=retry_at(headers))
        start = content[:100_000].lower()
        blocked = status == 403 or b"/login" in start or b"captcha" in start
        return (Blocked if blocked else Broken)(YOUTUBE_NAME, f"HTTP {status} without JSON")
    error = record(record(body).get("error"))
    listed = [*entries(error.get("errors")), *entries(error.get("details"))]
    reasons = {clean(record(entry).get("reason")) for entry in listed}
    message = clean(error.get("message")).lower()
    if gone := next((words for reason, words in _GONE.items() if reason in reasons), None):
        return NoComments(YOUTUBE_NAME, gone)
    burst = bool(reasons & _BURST) or status == 429
    if reasons & _SPENT or (burst and "per day" in message):
        return QuotaExhausted(YOUTUBE_NAME, "the day's calls are used up", retry_at=next_reset())
    if burst:
        return RateLimited(YOUTUBE_NAME, f"HTTP {status}", retry_at=retry_at(headers))
    if "invalidPageToken" in reasons:
        return StalePage(YOUTUBE_NAME, "invalidPageToken")
    if reasons & _KEY or "api key not valid" in message:
        return Refused(YOUTUBE_NAME, "the key is not valid")
    if status in {401, 403}:
        return Refused(YOUTUBE_NAME, f"HTTP {status}, the key may not be used for this")
    return Broken(YOUTUBE_NAME, f"HTTP {status}")


def page_of(answer: Mapping[str, Any]) -> Page:
    """One page of search results, a slot per entry; the cursor is Google's token.

    Raises:
        Broken: there are entries, and none has the fields that are read.
    """
    token, listed = answer.get("nextPageToken"), entries(answer.get("items"))
    if listed and not any(map(_is_result, listed)):
        raise Broken(YOUTUBE_NAME, "results without the fields of a video")
    return Page(
        tuple(video_of(entry) for entry in listed),
        token if isinstance(token, str) and token else None,
    )


def _is_result(entry: object) -> bool:
    """Whether it names a video, channel or playlist, and holds a text."""
    named, snippet = record(record(entry).get("id")), record(record(entry).get("snippet"))
    ids = (named.get(name) for name in ("videoId", "channelId", "playlistId"))
    return any(map(clean, ids)) and (
        is_text(snippet.get("title")) or is_text(snippet.get("description"))
    )


def video_of(entry: object) -> Item | None:
    """A video of a search, whose texts come escaped and cut; None for channels and playlists."""
    id_ = clean(record(record(entry).get("id")).get("videoId"))
    if not id_ or not _is_result(entry):
        return None
    snippet = record(record(entry).get("snippet"))
    title, body = (seen(unescape(snippet.get(name))) for name in ("title", "description"))
    created = plausible(moment(snippet.get("publishedAt")), BEGAN)
    return Item(
        key=f"{YOUTUBE_NAME}:{id_}",
        id=id_,
        source=YOUTUBE_NAME,
        title=title,
        body=body,
        url=WATCH + id_,
        author=pseudonym("channel", snippet.get("channelId")),
        created_at=created,
        engagement=_engagement({}),
        place=seen(unescape(snippet.get("channelTitle"))) or None,
        notes=(IMPLAUSIBLE,) if created is None and snippet.get("publishedAt") else (),
        unfit=why_unfit(title, body),
    )


def details_of(answer: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The videos of a `videos.list` answer by id.

    Raises:
        Broken: there are entries, and none has the fields that are read.
    """
    listed = [record(video) for video in entries(answer.get("items"))]
    videos = {id_: video for video in listed if (id_ := clean(video.get("id")))}
    if listed and not any(record(video.get("snippet")) for video in videos.values()):
        raise Broken(YOUTUBE_NAME, "details without the fields of a video")
    return videos


def detailed(item: Item, video: Mapping[str, Any]) -> Item:
    """The item with full text and counts; here nothing is escaped."""
    snippet = record(video.get("snippet"))
    return replace(
        item,
        title=seen(clean(snippet.get("title"))) or item.title,
        body=seen(clean(snippet.get("description"))) or item.body,
        place=seen(clean(snippet.get("channelTitle"))) or item.place,
        created_at=plausible(moment(snippet.get("publishedAt")), BEGAN) or item.created_at,
        engagement=_engagement(record(video.get("statistics"))),
    )


def comments_of(answer: Mapping[str, Any], video: str, most: int) -> tuple[Comment, ...]:
    """Up to `most` comments: threads as Google ranks them, then the replies that came with them.

    What the channel's owner says, and what holds no word, is left out.

    Raises:
        Broken: there are threads, and none has the fields that are read.
    """
    threads = [record(thread) for thread in entries(answer.get("items"))]
    values = [record(thread.get("snippet")).get("topLevelComment") for thread in threads]
    for thread in threads:
        values += entries(record(thread.get("replies")).get("comments"))
    owners = {clean(record(thread.get("snippet")).get("channelId")) for thread in threads} - {""}
    comments, read = [], False
    for value in values:
        id_, snippet = clean(record(value).get("id")), record(record(value).get("snippet"))
        texts = (snippet.get("textDisplay"), snippet.get("textOriginal"))
        read = read or bool(id_ and any(map(is_text, texts)))
        body = next((text for text in map(clean, texts) if text), "")
        channel = record(snippet.get("authorChannelId")).get("value")
        if not id_ or not is_said(body) or clean(channel) in owners:
            continue
        comment = Comment(
            id=id_,
            body=body,
            url=f"{WATCH}{video}&lc={id_}",
            author=pseudonym("viewer", channel, snippet.get("authorDisplayName")),
            created_at=plausible(moment(snippet.get("publishedAt")), BEGAN),
            engagement={"likes": whole(snippet.get("likeCount"))},
        )
        comments.append(comment)
    if threads and not read:
        raise Broken(YOUTUBE_NAME, "threads without the fields of a comment")
    return tuple(comments[:most])


def _engagement(statistics: Mapping[str, Any]) -> dict[str, Measure]:
    """Counts come as strings, and not at all when hidden or turned off."""
    names = {"views": "viewCount", "likes": "likeCount", "comments": "commentCount"}
    return {name: whole(statistics.get(field)) for name, field in names.items()}
