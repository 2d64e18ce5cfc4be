"""YouTube through google-api-python-client; the only importer of it and of httplib2.

A search is one of about 100 a day, so pages are always 50 and every other call avoids searching.
The key is part of each URL: library messages are never passed on, and answers are judged in our
`Http` before the library can build an error that quotes the URL.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import googleapiclient.discovery
import googleapiclient.errors
import httplib2

from api.errors import (
    Blocked,
    Broken,
    NotConfigured,
    QuotaExhausted,
    RateLimited,
    Refused,
    SourceError,
    TimedOut,
    Unreachable,
)
from api.services.keeping.storage import SourceMemory
from api.services.metering import charge
from api.services.ports import Probe
from api.services.schemas import Batch, Commented, FetchPlan, Item
from api.services.text import clean
from api.settings import SourceSettings
from api.sources import youtube_videos
from api.sources.commenting import LIMITS, read_each
from api.sources.fields import MAX_BYTES, TOO_LARGE, entries, record, retry_at
from api.sources.loopback import is_loopback
from api.sources.paging import Page, Shelf, exact_first, since
from api.sources.remembered import remembered
from api.sources.workers import Workers
from api.sources.youtube_searches import NAME, Searches, next_reset

PAGE = 50
"""Most results per call; 50 cost what 5 cost."""
_READERS = 4
"""Comment threads read at the same time."""
_PAIRS = _READERS + 1
"""Clients: `videos.list` runs beside the readers."""
_FIRST_VIDEO = "jNQXAC9IVRw"
_SPENT = {"quotaExceeded", "dailyLimitExceeded"}
_BURST = {"rateLimitExceeded", "userRateLimitExceeded", "RATE_LIMIT_EXCEEDED"}
_KEY = {"keyInvalid", "API_KEY_INVALID", "keyExpired"}
_ABSENT = {"commentsDisabled": "comments are turned off", "videoNotFound": "the video is gone"}
_SEARCH, _VIDEOS, _THREADS = (
    "searchListResponse",
    "videoListResponse",
    "commentThreadListResponse",
)
Call = Callable[[Any], Any]


def build(settings: SourceSettings, memory: SourceMemory | None = None) -> YouTubeSource:
    """The source for these settings; asks nothing. `memory` keeps pages and counts searches.

    Raises:
        NotConfigured: there is no key.
    """
    key = settings.youtube_api_key.get_secret_value().strip() if settings.youtube_api_key else ""
    if not key:
        raise NotConfigured(NAME, "`YOUTUBE_API_KEY` not set")
    for name in ("googleapiclient.http", "googleapiclient.discovery"):  # their lines hold the key
        logging.getLogger(name).setLevel(logging.ERROR)
    return YouTubeSource(key, settings, memory)


class YouTubeSource:
    """Videos and their comments; see `Source` for the contract."""

    name = NAME

    def __init__(
        self,
        key: str,
        settings: SourceSettings,
        memory: SourceMemory | None = None,
        *,
        pause: float = 1.0,
    ) -> None:
        """Use `build`; `pause` is in seconds, before the one retry after a burst."""
        self._seconds, self._most = settings.source_timeout, settings.comments_per_item
        self._pause = pause
        memory, root = memory or SourceMemory(), settings.youtube_url.rstrip("/")
        make = partial(_client, key, root, settings.source_timeout)
        self._workers = Workers(NAME, make, _PAIRS, _close)
        read = remembered(self._page, memory.pages, f"{NAME} {root}", settings.page_ttl)
        self._shelf = Shelf(read, settings.page_ttl)
        self._searches = Searches(memory.ledger, key, settings.youtube_searches_per_day)

    async def fetch(self, plan: FetchPlan) -> Batch:
        """Search videos, best match first; one of the day's searches per 50 of them.

        A quoted query that matches nothing is asked once more without its quotes.
        """
        batch = await exact_first(self._shelf, plan)
        self._workers.prepare(_PAIRS)
        return batch

    async def comments(self, items: Sequence[Item]) -> Commented:
        """Full texts and counts (1 unit per 50 videos) and the best comments (1 unit per video)."""
        chunks = [items[start : start + PAGE] for start in range(0, len(items), PAGE)]
        reading = read_each(items, self._commented, width=_READERS, stops=(*LIMITS, Refused))
        read, *answers = await asyncio.gather(reading, *map(self._details, chunks))
        videos = {id_: video for answer in answers for id_, video in (answer or {}).items()}
        lost = any(answer is None for answer in answers)
        notes = (*read.notes, "full texts and counts could not be read") if lost else read.notes
        return Commented(tuple(_completed(item, videos, lost) for item in read.items), notes)

    async def probe(self) -> Probe:
        """One unit of `videos.list`, never a search."""
        try:
            await self._ask(_VIDEOS, lambda api: api.videos().list(part="id", id=_FIRST_VIDEO))
        except SourceError as error:
            return Probe(error.code, error.detail)
        return Probe("ok", quota_left=await self._searches.left())

    async def aclose(self) -> None:
        """Let the threads end."""
        self._workers.close()

    async def _page(self, plan: FetchPlan, cursor: str | None) -> Page:
        """One page; the cursor also carries the start of the window, which must not move."""
        start = since(plan.window)
        after = "" if start is None else start.strftime("%Y-%m-%dT%H:%M:%SZ")
        token: str | None = None
        if cursor is not None:
            after, token = cursor.split(" ", 1)
        try:
            page = await self._search(plan.query, after, token)
        except _StalePage:
            page = await self._restarted(plan.query, after)
        return replace(page, cursor=f"{after} {page.cursor}" if page.cursor else None)

    async def _restarted(self, query: str, after: str) -> Page:
        """The second page, reached from the first anew, once."""
        first = await self._search(query, after, None)
        page = await self._search(query, after, first.cursor) if first.cursor else Page(())
        return replace(page, notes=("paging was restarted",))

    async def _search(self, query: str, after: str, token: str | None) -> Page:
        chosen = {"publishedAfter": after, "pageToken": token}
        params = {name: value for name, value in chosen.items() if value}
        answer = await self._ask(
            _SEARCH,
            lambda api: api.search().list(
                part="snippet", q=clean(query), type="video", maxResults=PAGE, **params
            ),
        )
        return youtube_videos.page(answer)

    async def _details(self, items: Sequence[Item]) -> Mapping[str, Mapping[str, Any]] | None:
        ids = ",".join(item.id for item in items)
        try:
            answer = await self._ask(
                _VIDEOS, lambda api: api.videos().list(part="snippet,statistics", id=ids)
            )
        except SourceError:
            return None
        return youtube_videos.details(answer)

    async def _commented(self, item: Item) -> Item:
        if not self._most:
            return item
        try:
            answer = await self._ask(
                _THREADS,
                lambda api: api.commentThreads().list(
                    part="snippet,replies", videoId=item.id, order="relevance",
                    textFormat="plainText", maxResults=self._most,
                ),
            )  # fmt: skip
        except _NoComments as error:
            return replace(item, notes=(*item.notes, error.detail))
        return replace(item, comments=youtube_videos.comments(answer, item.id, self._most))

    async def _ask(self, kind: str, call: Call) -> Mapping[str, Any]:
        """One call, and one more after a burst, if it need not wait longer than a call may take."""
        try:
            return await self._once(kind, call)
        except RateLimited as error:
            pause = timedelta(seconds=self._pause)
            if error.retry_at is not None:
                pause = max(pause, error.retry_at - datetime.now(UTC))
            if pause > timedelta(seconds=self._seconds):
                raise
        await asyncio.sleep(pause.total_seconds())
        return await self._once(kind, call)

    async def _once(self, kind: str, call: Call) -> Mapping[str, Any]:
        day = await self._searches.take() if kind == _SEARCH else None
        try:
            answer = await self._workers.run(partial(_execute, call=call), self._seconds)
        except _NotSent:
            await self._searches.give_back(day)
            raise
        found = youtube_videos.answered(answer, kind)
        if found is None:
            raise Broken(NAME, f"an answer that is no {kind}")
        return found


def _completed(item: Item, videos: Mapping[str, Mapping[str, Any]], lost: bool) -> Item:
    if video := videos.get(item.id):
        return youtube_videos.detailed(item, video)
    return item if lost else replace(item, notes=(*item.notes, "the video is no longer listed"))


def _client(key: str, root: str, seconds: float) -> Any:
    """One pair's service with an `Http` of its own; the description of the API is bundled."""
    proxy = None if is_loopback(root) else httplib2.proxy_info_from_environment
    http_client = _Http(
        timeout=seconds, proxy_info=proxy, decode_limit_hard=MAX_BYTES, decode_limit_chunk=4096
    )
    http_client.follow_redirects = False  # the key would go along
    return googleapiclient.discovery.build(
        "youtube", "v3", developerKey=key, http=http_client,
        client_options={"api_endpoint": root}, static_discovery=True, cache_discovery=False,
    )  # fmt: skip


def _close(service: Any) -> None:
    service.close()


def _execute(service: Any, *, call: Call) -> Any:
    """The parsed answer; every error of the libraries leaves as ours, without its text."""
    try:
        return call(service).execute(num_retries=0)
    except TimeoutError:
        raise TimedOut(NAME, "the connection fell silent") from None
    except (httplib2.ServerNotFoundError, ConnectionRefusedError) as error:
        raise _NotSent(NAME, type(error).__name__) from None
    except (httplib2.HttpLib2Error, http.client.HTTPException, OSError) as error:
        raise Unreachable(NAME, type(error).__name__) from None
    except (
        googleapiclient.errors.Error, httplib2.decode.DecodeRatioError,
        httplib2.decode.DecodeLimitError, LookupError, ValueError, TypeError, AttributeError,
        RecursionError,
    ) as error:  # fmt: skip
        raise Broken(NAME, type(error).__name__) from None


class _NotSent(Unreachable):
    """There was no connection, so nothing was asked."""


class _NoComments(Broken):
    """This video has no comments to read; `detail` says why."""


class _StalePage(Broken):
    """The token of a page is not known any more."""


class _Answer(http.client.HTTPResponse):
    """An answer of which no more is read than we take."""

    def read(self, amt: int | None = None) -> bytes:
        """The whole body, unless it is too large."""
        if self.length is not None and self.length <= MAX_BYTES:
            return super().read(amt)
        body = b"" if self.length else super().read(MAX_BYTES + 1)
        self.close()
        if self.length or len(body) > MAX_BYTES:
            raise Broken(NAME, TOO_LARGE)
        return body


class _Plain(httplib2.HTTPConnectionWithTimeout):  # type: ignore[misc]
    response_class = _Answer


class _Secure(httplib2.HTTPSConnectionWithTimeout):  # type: ignore[misc]
    response_class = _Answer


class _Http(httplib2.Http):  # type: ignore[misc]
    """Sends every request of one pair, counts it and judges the answer."""

    def request(self, uri: str, *args: Any, **kwargs: Any) -> tuple[httplib2.Response, bytes]:
        """The answer, when it is a good one."""
        charge()
        kind = _Secure if uri.startswith("https:") else _Plain
        try:
            response, content = super().request(uri, *args, connection_type=kind, **kwargs)
        except Broken:
            self.close()  # its connection holds the rest of an answer
            raise
        if response.status >= 300:
            raise _meaning(response.status, content, response)
        return response, content


def _meaning(status: int, content: bytes, headers: Mapping[str, str]) -> SourceError:
    """What a failed answer says, by Google's reason first and the status second."""
    if status >= 500 or status == 408:
        return Unreachable(NAME, f"HTTP {status}")
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        blocked = status == 403 or b"/login" in content[:100_000]
        return (Blocked if blocked else Broken)(NAME, f"HTTP {status} without JSON")
    error = record(record(body).get("error"))
    listed = [*entries(error.get("errors")), *entries(error.get("details"))]
    reasons = [clean(record(entry).get("reason")) for entry in listed]
    return _by_reason(status, set(reasons), clean(error.get("message")).lower(), headers)


def _by_reason(
    status: int, reasons: set[str], message: str, headers: Mapping[str, str]
) -> SourceError:
    for reason, words in _ABSENT.items():
        if reason in reasons:
            return _NoComments(NAME, words)
    if reasons & _SPENT or ((status == 429 or reasons & _BURST) and "per day" in message):
        return QuotaExhausted(NAME, "the day's calls are used up", retry_at=next_reset())
    if reasons & _BURST or status == 429:
        return RateLimited(NAME, f"HTTP {status}", retry_at=retry_at(headers))
    if "invalidPageToken" in reasons:
        return _StalePage(NAME, "invalidPageToken")
    if reasons & _KEY or "api key not valid" in message:
        return Refused(NAME, "the key is not valid")
    if status in {401, 403}:
        return Refused(NAME, f"HTTP {status}, the key may not be used for this")
    return Broken(NAME, f"HTTP {status}")
