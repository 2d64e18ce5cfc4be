"""YouTube's answers: which failure they are, and their JSON as items and comments; also `Searches`.

Any shape of an answer is safe. Google grants so many searches a day, and a day ends at midnight
Pacific time. Every process on one database counts them. A search is taken before its request is
sent, each try for itself, and given back only when the request cannot have reached Google: after a
timeout or an error it stays taken, since Google counts what it received.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from api.core.http_limits import retry_at
from api.core.items import Comment, Item, Measure, pseudonym
from api.core.text import clean, unescape
from api.errors import Blocked, Broken, QuotaExhausted, RateLimited, Refused, SourceError, StoreUnavailable, Unreachable
from api.features.analyses.store_ports import SourceMemory
from api.settings import SourceSettings
from api.sources import setting_value
from api.sources.item_fields import (
    IMPLAUSIBLE_TIME,
    as_dict,
    as_int,
    as_list,
    is_text,
    make_item,
    says_something,
    time_since,
    visible_text,
)
from api.sources.markup import words_of_html
from api.sources.searched_source import Page, status_failure

NAME = "youtube"
# the month of the first video
BEGAN = datetime(2005, 4, 1, tzinfo=UTC)
WATCH = "https://www.youtube.com/watch?v="
# tags and entities that YouTube writes into a displayed text; one that is plain keeps `<3` and `a <b`
_HTML = re.compile(r"<(?:br|/a|/b|/i|/s) ?/?>|&(?:amp|lt|gt|quot|#39|#\d{2,6}|nbsp);")
# Google's reasons: https://developers.google.com/youtube/v3/docs/errors
_QUOTA_REASONS = {"quotaExceeded", "dailyLimitExceeded"}
_BURST_REASONS = {"rateLimitExceeded", "userRateLimitExceeded", "RATE_LIMIT_EXCEEDED"}
_KEY_REASONS = {"keyInvalid", "API_KEY_INVALID", "keyExpired"}
_NO_COMMENTS = {
    "commentsDisabled": "comments are turned off",
    "videoNotFound": "the video is gone",
}


class NoComments(Broken):
    """This video has no comments to read; `detail` says why."""


class StalePage(Broken):
    """The token of a page is not known any more."""


class Searches:
    """The searches that one key has left today; without a memory nothing is counted."""

    def __init__(self, memory: SourceMemory | None, key: str, limit: int) -> None:
        """`limit` is per day; another key is another project, so it has a scope of its own."""
        self._memory, self._limit = memory, limit
        self.scope = f"{NAME}.search:{hashlib.sha256(key.encode()).hexdigest()[:8]}"

    async def take(self) -> date | None:
        """Count a search before its request and return its day; None without a memory.

        Raises:
            QuotaExhausted: the day's searches are used up.
            Unreachable: the database cannot be used.
        """
        if self._memory is None:
            return None
        day = pacific_day()
        try:
            taken = await self._memory.take(self.scope, day, 1, self._limit)
        except StoreUnavailable:
            detail = "searches cannot be counted: the database is away"
            raise Unreachable(NAME, detail) from None
        if not taken:
            detail = f"the day's {self._limit} searches are used up"
            raise QuotaExhausted(NAME, detail, retry_at=next_reset())
        return day

    async def take_share(self, tenant: str) -> None:
        """Take one of the half of the day's searches that the scheduled runs of one tenant may have.

        Raises as `take`.
        """
        if self._memory is None:
            return
        share = (self._limit + 1) // 2
        try:
            taken = await self._memory.take(f"{self.scope} of {tenant}", pacific_day(), 1, share)
        except StoreUnavailable:
            return  # `take` refuses
        if not taken:
            detail = f"the {share} searches that your watches may have of a day are used up"
            raise QuotaExhausted(NAME, detail, retry_at=next_reset())

    async def give_back(self, day: date | None) -> None:
        """Take back the count of a search that never reached Google; it stays while the database cannot be used."""
        if self._memory is None or day is None:
            return
        try:
            await self._memory.give_back(self.scope, day, 1)
        except StoreUnavailable:
            return

    async def left(self) -> int | None:
        """Searches left today; None when they are not counted."""
        if self._memory is None:
            return None
        try:
            return max(self._limit - await self._memory.spent(self.scope, pacific_day()), 0)
        except StoreUnavailable:
            return None


def searches_of(settings: SourceSettings, memory: SourceMemory | None) -> Searches:
    """The counter of `YOUTUBE_API_KEY`, with its daily limit."""
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


def answer_of(value: object, kind: str) -> Mapping[str, Any]:
    """An answer of this kind, perhaps without items; raises `Broken` for anything else."""
    answer = as_dict(value)
    listed, given = answer.get("items"), answer.get("kind")
    is_kind = given is None or given == f"youtube#{kind}"
    is_listed = isinstance(listed, list) or (listed is None and given is not None)
    if not is_kind or not is_listed:
        raise Broken(NAME, f"an answer that is no {kind}")
    return answer


def failure_of(status: int, content: bytes, headers: Mapping[str, str]) -> SourceError:
    """What a failed answer means, by Google's reason first and the status second."""
    if status >= 500 or status == 408:
        return status_failure(NAME, status)
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        if status == 429:
            return status_failure(NAME, status, retry_at=retry_at(headers))
        start = content[:100_000].lower()
        blocked = status == 403 or b"/login" in start or b"captcha" in start
        return (Blocked if blocked else Broken)(NAME, f"HTTP {status} without JSON")
    error = as_dict(as_dict(body).get("error"))
    listed = [*as_list(error.get("errors")), *as_list(error.get("details"))]
    reasons = {clean(as_dict(entry).get("reason")) for entry in listed}
    message = clean(error.get("message")).lower()
    if detail := next((words for reason, words in _NO_COMMENTS.items() if reason in reasons), None):
        return NoComments(NAME, detail)
    burst = bool(reasons & _BURST_REASONS) or status == 429
    if reasons & _QUOTA_REASONS or (burst and "per day" in message):
        return QuotaExhausted(NAME, "the day's calls are used up", retry_at=next_reset())
    if burst:
        return RateLimited(NAME, f"HTTP {status}", retry_at=retry_at(headers))
    if "invalidPageToken" in reasons:
        return StalePage(NAME, "invalidPageToken")
    if reasons & _KEY_REASONS or "api key not valid" in message:
        return Refused(NAME, "the key is not valid")
    if status in {401, 403}:
        return Refused(NAME, f"HTTP {status}, the key may not be used for this")
    return Broken(NAME, f"HTTP {status}")


def page_of(answer: Mapping[str, Any]) -> Page:
    """A page of results, the cursor is Google's token; raises `Broken` when none is readable."""
    token, listed = answer.get("nextPageToken"), as_list(answer.get("items"))
    if listed and not any(map(_is_result, listed)):
        raise Broken(NAME, "results without the fields of a video")
    return Page(tuple(map(video_of, listed)), token if isinstance(token, str) and token else None)


def _is_result(entry: object) -> bool:
    id_, snippet = (as_dict(as_dict(entry).get(name)) for name in ("id", "snippet"))
    ids = (clean(id_.get(name)) for name in ("videoId", "channelId", "playlistId"))
    return any(ids) and any(is_text(snippet.get(name)) for name in ("title", "description"))


def video_of(entry: object) -> Item | None:
    """A video of a search, whose texts are escaped and truncated; None for channels and playlists."""
    id_ = clean(as_dict(as_dict(entry).get("id")).get("videoId"))
    if not id_ or not _is_result(entry):
        return None
    snippet = as_dict(as_dict(entry).get("snippet"))
    title, body, channel = (
        visible_text(unescape(snippet.get(name))) for name in ("title", "description", "channelTitle")
    )
    created = time_since(snippet.get("publishedAt"), BEGAN)
    return make_item(
        NAME, id_, title, body, created,
        id=id_,
        url=WATCH + id_,
        author=pseudonym("channel", snippet.get("channelId")),
        engagement=_engagement({}),
        place=channel or None,
        notes=(IMPLAUSIBLE_TIME,) if created is None and snippet.get("publishedAt") else (),
    )  # fmt: skip


def details_of(answer: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The videos of a `videos.list` answer by id; raises `Broken` when none is readable."""
    listed = [as_dict(video) for video in as_list(answer.get("items"))]
    videos = {id_: video for video in listed if (id_ := clean(video.get("id")))}
    if listed and not any(as_dict(video.get("snippet")) for video in videos.values()):
        raise Broken(NAME, "details without the fields of a video")
    return videos


def with_details(item: Item, video: Mapping[str, Any]) -> Item:
    """The item with full text and counts; here nothing is escaped."""
    snippet = as_dict(video.get("snippet"))
    title, body, channel = (visible_text(clean(snippet.get(name))) for name in ("title", "description", "channelTitle"))
    return item.edited(
        title=title or item.title, body=body or item.body, place=channel or item.place,
        created_at=time_since(snippet.get("publishedAt"), BEGAN) or item.created_at,
        engagement=_engagement(as_dict(video.get("statistics"))),
    )  # fmt: skip


def comments_of(answer: Mapping[str, Any], video: str, most: int) -> tuple[Comment, ...]:
    """Up to `most` comments as Google ranks them, then replies, without the owner's.

    Raises `Broken` when no thread can be read.
    """
    threads = [as_dict(thread) for thread in as_list(answer.get("items"))]
    snippets = [as_dict(thread.get("snippet")) for thread in threads]
    values = [snippet.get("topLevelComment") for snippet in snippets]
    for thread in threads:
        values += as_list(as_dict(thread.get("replies")).get("comments"))
    owners = {clean(snippet.get("channelId")) for snippet in snippets} - {""}
    comments, read = [], False
    for value in values:
        id_, snippet = clean(as_dict(value).get("id")), as_dict(as_dict(value).get("snippet"))
        texts = (snippet.get("textOriginal"), snippet.get("textDisplay"))
        read = read or bool(id_ and any(map(is_text, texts)))
        body = comment_text(*texts)
        channel = as_dict(snippet.get("authorChannelId")).get("value")
        if not id_ or not says_something(body) or clean(channel) in owners:
            continue
        comment = Comment(
            id=id_,
            body=body,
            url=f"{WATCH}{video}&lc={id_}",
            author=pseudonym("viewer", channel, snippet.get("authorDisplayName")),
            created_at=time_since(snippet.get("publishedAt"), BEGAN),
            engagement={"likes": as_int(snippet.get("likeCount"))},
        )
        comments.append(comment)
    if threads and not read:
        raise Broken(NAME, "threads without the fields of a comment")
    return tuple(comments[:most])


def comment_text(original: object, display: object) -> str:
    """The words of a comment: as they were written, else of what is displayed, which is plain text or HTML."""
    plain = clean(original) or clean(display)
    return words_of_html(plain) if _HTML.search(plain) else plain


def _engagement(statistics: Mapping[str, Any]) -> dict[str, Measure]:
    """Counts come as strings, and not at all when hidden or turned off."""
    names = {"views": "viewCount", "likes": "likeCount", "comments": "commentCount"}
    return {name: as_int(statistics.get(field)) for name, field in names.items()}
