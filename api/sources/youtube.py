"""YouTube through google-api-python-client; the only importer of it and of httplib2.

A search is one of about 100 a day, so pages are always 50 and every other call avoids searching.
The key is part of each URL: library messages are never passed on, and answers are judged in our
`Http` before the library can build an error that quotes the URL.
"""

from __future__ import annotations

import asyncio
import http.client
import logging
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import googleapiclient.discovery
import googleapiclient.errors
import httplib2

from api.core.context import count_requests
from api.core.domain import Batch, Commented, FetchPlan, Item
from api.core.http_limits import MAX_BYTES, TOO_LARGE, UNPACKABLE, no_connection, points_here
from api.core.ports import Probe
from api.core.text import clean_query
from api.errors import Broken, RateLimited, Refused, SourceError, TimedOut, Unreachable
from api.features.analyses.store_ports import SourceMemory
from api.settings import SourceSettings
from api.sources.keyless_source import LIMITS, noted, read_each
from api.sources.paging import Page, PagedSearch, phrase_first, window_start
from api.sources.source_specs import YOUTUBE_NAME, setting_value
from api.sources.worker_threads import Workers, watch
from api.sources.youtube_answers import (
    NoComments,
    StalePage,
    answer_of,
    comments_of,
    detailed,
    details_of,
    failure_of,
    page_of,
    searches_of,
)

PAGE = 50
"""Most results per call; 50 cost what 5 cost."""
# Comment threads read at the same time.
_READERS = 4
# Clients: `videos.list` runs beside the readers.
_PAIRS = _READERS + 1
_FIRST_VIDEO = "jNQXAC9IVRw"
_SEARCH, _VIDEOS, _THREADS = (
    "searchListResponse",
    "videoListResponse",
    "commentThreadListResponse",
)
Call = Callable[[Any], Any]


def build(settings: SourceSettings, memory: SourceMemory | None = None) -> YouTubeSource:
    """The source for settings that are there; `memory` keeps pages and counts searches."""
    for name in ("googleapiclient.http", "googleapiclient.discovery"):  # their lines hold the key
        logging.getLogger(name).setLevel(logging.ERROR)
    return YouTubeSource(settings, memory)


class YouTubeSource:
    """Videos and their comments; see `Source` for the contract."""

    name = YOUTUBE_NAME

    def __init__(
        self,
        settings: SourceSettings,
        memory: SourceMemory | None = None,
        *,
        pause: float = 1.0,
    ) -> None:
        """Use `build`; `pause` is in seconds, before the one retry after a burst."""
        self._seconds, self._most = settings.source_timeout, settings.comments_per_item
        self._pause = pause
        root = settings.youtube_url.rstrip("/")
        key = setting_value(settings, "YOUTUBE_API_KEY")
        # read here, since a malformed one must not stop at the first question
        scheme = "https" if root.startswith("https:") else "http"
        proxy = None if points_here(root) else httplib2.proxy_info_from_environment(scheme)
        make = partial(_client, key, root, settings.source_timeout, proxy)
        self._root = root
        self._workers = Workers(YOUTUBE_NAME, make, _PAIRS, lambda service: service.close())
        upstream = f"{YOUTUBE_NAME} {root}"
        self._shelf = PagedSearch(self._page, settings.page_ttl, memory, upstream, PAGE)
        self._searches = searches_of(settings, memory)

    async def fetch(self, plan: FetchPlan) -> Batch:
        """Search videos, best match first; one of the day's searches per 50 of them.

        A quoted query that matches nothing is asked once more without its quotes.
        """
        batch = await phrase_first(self._shelf, plan)
        self._workers.prepare(_PAIRS)
        return batch

    async def comments(self, items: Sequence[Item]) -> Commented:
        """Full texts and counts (1 unit per 50 videos) and the best comments (1 unit per video)."""
        chunks = [items[start : start + PAGE] for start in range(0, len(items), PAGE)]
        reading = read_each(items, self._commented, width=_READERS, stops=(*LIMITS, Refused))
        read, *answers = await asyncio.gather(reading, *map(self._details, chunks))
        listed = {id_: video for answer in answers for id_, video in (answer or {}).items()}
        lost = any(answer is None for answer in answers)
        full = []
        for item in read.items:
            if video := listed.get(item.id):
                full.append(detailed(item, video))
            else:
                full.append(item if lost else noted(item, "the video is no longer listed"))
        notes = (*read.notes, "full texts and counts could not be read") if lost else read.notes
        return Commented(tuple(full), notes)

    async def with_best_comments(self, item: Item) -> Item | None:
        """The item with its best comments, without full text and counts."""
        return await self._commented(item) if self._most else None

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
        start = window_start(plan.window)
        after = "" if start is None else start.strftime("%Y-%m-%dT%H:%M:%SZ")
        token: str | None = None
        if cursor is not None:
            after, token = cursor.split(" ", 1)
        try:
            page = await self._search(plan.query, after, token)
        except StalePage:  # once: the second page, reached from the first anew
            first = await self._search(plan.query, after, None)
            page = Page(())
            if first.cursor:
                page = await self._search(plan.query, after, first.cursor)
            page = replace(page, notes=("paging was restarted",))
        return replace(page, cursor=f"{after} {page.cursor}" if page.cursor else None)

    async def _search(self, query: str, after: str, token: str | None) -> Page:
        chosen = {"publishedAfter": after, "pageToken": token}
        params = {name: value for name, value in chosen.items() if value}
        answer = await self._ask(
            _SEARCH,
            lambda api: api.search().list(
                part="snippet", q=clean_query(query), type="video", maxResults=PAGE, **params
            ),
        )
        return page_of(answer)

    async def _details(self, items: Sequence[Item]) -> Mapping[str, Mapping[str, Any]] | None:
        ids = ",".join(item.id for item in items)
        try:
            answer = await self._ask(
                _VIDEOS, lambda api: api.videos().list(part="snippet,statistics", id=ids)
            )
            return details_of(answer)
        except SourceError:
            return None

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
        except NoComments as error:
            return noted(item, error.detail)
        return replace(item, comments=comments_of(answer, item.id, self._most))

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
            answer = await self._workers.run(
                partial(_execute, call=call, url=self._root), self._seconds
            )
        except _NotSent:
            await self._searches.give_back(day)
            raise
        return answer_of(answer, kind)


def _client(key: str, root: str, seconds: float, proxy: httplib2.ProxyInfo | None) -> Any:
    """One pair's service with an `Http` of its own; the description of the API is bundled."""
    http_client = _JudgingHttp(
        timeout=seconds, proxy_info=proxy, decode_limit_hard=MAX_BYTES, decode_limit_chunk=4096
    )
    http_client.follow_redirects = False  # the key would go along
    return googleapiclient.discovery.build(
        "youtube", "v3", developerKey=key, http=http_client,
        client_options={"api_endpoint": root}, static_discovery=True, cache_discovery=False,
    )  # fmt: skip


def _execute(service: Any, *, call: Call, url: str) -> Any:
    """The parsed answer; every error of the libraries leaves as ours, without its text."""
    try:
        return call(service).execute(num_retries=0)
    except TimeoutError:
        raise TimedOut(YOUTUBE_NAME, "the connection fell silent") from None
    except (httplib2.ServerNotFoundError, ConnectionRefusedError) as error:
        raise _NotSent(YOUTUBE_NAME, no_connection(error, url)) from None
    except (
        httplib2.FailedToDecompressContent, httplib2.decode.DecodeRatioError,
        httplib2.decode.DecodeLimitError,
    ):  # fmt: skip
        raise Broken(YOUTUBE_NAME, UNPACKABLE) from None
    except (httplib2.HttpLib2Error, http.client.HTTPException, OSError) as error:
        raise Unreachable(YOUTUBE_NAME, no_connection(error, url)) from None
    except (
        googleapiclient.errors.Error, LookupError, ValueError, TypeError, AttributeError,
        ArithmeticError, RecursionError,
    ) as error:  # fmt: skip
        raise Broken(YOUTUBE_NAME, type(error).__name__) from None


class _NotSent(Unreachable):
    """There was no connection, so nothing was asked."""


class _CappedResponse(http.client.HTTPResponse):
    """An answer of which no more is read than we take."""

    def read(self, amt: int | None = None) -> bytes:
        """The whole body, unless it is too large."""
        if self.length is not None and self.length <= MAX_BYTES:
            return super().read(amt)
        body = b"" if self.length else super().read(MAX_BYTES + 1)
        self.close()
        if self.length or len(body) > MAX_BYTES:
            raise Broken(YOUTUBE_NAME, TOO_LARGE)
        return body


class _HungUp(ConnectionError):
    """The server ended the connection before any answer; `kept`: it had given one before."""

    def __init__(self, kept: bool) -> None:
        super().__init__("no answer")
        self.kept = kept


class _Line:
    """What both kinds of connection add to their library's: their deadline, and how they end."""

    response_class = _CappedResponse
    answers = 0
    sock: socket.socket | None

    def connect(self) -> None:
        """A connection that has given nothing yet."""
        self.answers = 0
        super().connect()  # type: ignore[misc]
        if self.sock is not None:
            watch(self.sock)

    def request(self, *args: Any, **kwargs: Any) -> None:
        """Send; httplib2 would keep a connection that broke meanwhile."""
        try:
            super().request(*args, **kwargs)  # type: ignore[misc]
        except (BrokenPipeError, ConnectionResetError):
            raise _HungUp(self.answers > 0) from None

    def getresponse(self) -> http.client.HTTPResponse:
        """The beginning of the answer; httplib2 would send again, uncounted, when there is none."""
        try:
            response: http.client.HTTPResponse = super().getresponse()  # type: ignore[misc]
        except (ConnectionError, http.client.BadStatusLine):
            raise _HungUp(self.answers > 0) from None
        self.answers += 1
        return response


class _PlainLine(_Line, httplib2.HTTPConnectionWithTimeout):  # type: ignore[misc]
    """Without TLS, as on this machine."""


class _SecureLine(_Line, httplib2.HTTPSConnectionWithTimeout):  # type: ignore[misc]
    """With TLS."""


class _JudgingHttp(httplib2.Http):  # type: ignore[misc]
    """Sends every request of one pair, counts it and judges the answer."""

    def request(self, uri: str, *args: Any, **kwargs: Any) -> tuple[httplib2.Response, bytes]:
        """The answer, when it is a good one; once more when a kept connection had been closed.

        The server ends a kept connection that is idle; what was sent on it was not read.
        """
        kind = _SecureLine if uri.startswith("https:") else _PlainLine
        send = partial(super().request, uri, *args, connection_type=kind, **kwargs)
        try:
            try:
                count_requests()
                response, content = send()
            except _HungUp as error:
                if not error.kept:
                    raise
                self.close()
                count_requests()
                response, content = send()
        except (Broken, OSError, http.client.HTTPException, httplib2.HttpLib2Error):
            self.close()  # its connection is broken, or holds the rest of an answer
            raise
        if response.status >= 300 or content.lstrip()[:1] == b"<":  # a page is no answer
            raise failure_of(response.status, content, response)
        return response, content
