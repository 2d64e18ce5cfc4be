"""YouTube through google-api-python-client; the only importer of it and of httplib2.

A search is one of about 100 a day, so pages are always 50 and every other call avoids searching.
The key is part of each URL: library messages are never passed on, and answers are checked in our
`Http` before the library can build an error that quotes the URL.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import logging
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from typing import Any

import googleapiclient.discovery
import googleapiclient.discovery_cache
import googleapiclient.errors
import httplib2

from api.core.addresses import points_here
from api.core.context import count_requests
from api.core.domain import FetchPlan
from api.core.http_limits import MAX_BYTES, TOO_LARGE, UNPACKABLE, no_connection
from api.core.items import Batch, Commented, Item
from api.core.ports import Probe
from api.core.shared_answers import SharedRun
from api.core.text import clean_query
from api.errors import Broken, RateLimited, Refused, SourceError, TimedOut, Unreachable
from api.features.analyses.store_ports import SourceMemory
from api.settings import SourceSettings
from api.sources import setting_value
from api.sources.searched_source import LIMITS, Page, SearchedSource, read_each, window_start, with_note
from api.sources.worker_threads import Workers, watch
from api.sources.youtube_answers import (
    NAME,
    NoComments,
    StalePage,
    answer_of,
    comments_of,
    details_of,
    failure_of,
    page_of,
    searches_of,
    with_details,
)

PAGE = 50
"""Most results per call; 50 cost what 5 cost."""
# the first video of YouTube, which a probe asks for
_FIRST_VIDEO = "jNQXAC9IVRw"
_SEARCH, _VIDEOS, _THREADS = "searchListResponse", "videoListResponse", "commentThreadListResponse"
_ANY = {"type": "any"}
Call = Callable[[Any], Any]


class YouTubeSource(SearchedSource):
    """Searches YouTube for videos and reads their comments."""

    name = NAME
    stops = (*LIMITS, Refused)

    def __init__(self, settings: SourceSettings, memory: SourceMemory | None = None, *, pause: float = 1.0) -> None:
        """`pause` is in seconds, before the one retry after a burst of requests."""
        # the libraries' log lines hold the key
        for name in ("googleapiclient.http", "googleapiclient.discovery"):
            logging.getLogger(name).setLevel(logging.ERROR)
        self._root, self._seconds = settings.youtube_url.rstrip("/"), settings.source_timeout
        super().__init__(settings, memory, self._root, PAGE)
        self._pause, self._searches = pause, searches_of(settings, memory)
        # read here, since a malformed variable must not fail at the first question
        scheme = "https" if self._root.startswith("https:") else "http"
        here = points_here(self._root)
        proxy = None if here else httplib2.proxy_info_from_environment(scheme)
        key = setting_value(settings, "YOUTUBE_API_KEY")
        client = partial(_client, key, self._root, self._seconds, proxy)
        # `videos.list` runs beside the readers of comments
        self._clients = self.parallel_items + 1
        self._workers = Workers(NAME, client, self._clients, lambda service: service.close())

    async def fetch(self, plan: FetchPlan) -> Batch:
        """Search videos, best match first; one of the day's searches per 50 of them."""
        batch = await super().fetch(plan)
        self._workers.prepare(self._clients)
        return batch

    async def _comments(self, items: Sequence[Item]) -> Commented:
        """Full texts and counts (1 unit per 50 videos) and the best comments (1 unit per video)."""
        chunks = [items[start : start + PAGE] for start in range(0, len(items), PAGE)]
        reading = read_each(items, self._commented, parallel=self.parallel_items, stops=self.stops)
        read, *answers = await asyncio.gather(reading, *map(self._details, chunks))
        listed = {id_: video for answer in answers for id_, video in (answer or {}).items()}
        lost = any(answer is None for answer in answers)
        full = []
        for item in read.items:
            if video := listed.get(item.id):
                full.append(with_details(item, video))
            else:
                full.append(item if lost else with_note(item, "the video is no longer listed"))
        notes = (*read.notes, "full texts and counts could not be read") if lost else read.notes
        return Commented(tuple(full), notes, partial=read.partial or lost)

    async def aclose(self) -> None:
        """End the worker threads and their connections."""
        self._workers.close()

    async def _probed(self) -> Probe:
        """Request one unit of `videos.list`, never a search."""
        await self._ask(_VIDEOS, lambda api: api.videos().list(part="id", id=_FIRST_VIDEO))
        return Probe("ok", quota_left=await self._searches.left())

    async def _search(self, plan: FetchPlan, cursor: str | None) -> Page:
        """One page; its cursor also carries the start of the window, which must stay the same."""
        start = window_start(plan.window)
        after = "" if start is None else start.strftime("%Y-%m-%dT%H:%M:%SZ")
        token: str | None = None
        if cursor is not None:
            after, token = cursor.split(" ", 1)
        try:
            page = await self._page(plan.query, after, token)
        except StalePage:  # once: the second page, reached from the first anew
            first = await self._page(plan.query, after, None)
            page = Page(())
            if first.cursor:
                page = await self._page(plan.query, after, first.cursor)
            page = replace(page, notes=("paging was restarted",))
        return replace(page, cursor=f"{after} {page.cursor}" if page.cursor else None)

    async def _page(self, query: str, after: str, token: str | None) -> Page:
        limits = {"publishedAfter": after, "pageToken": token}
        params = {name: value for name, value in limits.items() if value}
        answer = await self._ask(
            _SEARCH,
            lambda api: api.search().list(
                part="snippet", q=clean_query(query), type="video", maxResults=PAGE, **params
            ),
        )
        return page_of(answer)

    async def _admit(self, run: SharedRun) -> None:
        if run.tenant:
            await self._searches.take_share(run.tenant)

    async def _details(self, items: Sequence[Item]) -> Mapping[str, Mapping[str, Any]] | None:
        ids = ",".join(item.id for item in items)
        try:
            answer = await self._ask(_VIDEOS, lambda api: api.videos().list(part="snippet,statistics", id=ids))
            return details_of(answer)
        except SourceError:
            return None

    async def _commented(self, item: Item) -> Item:
        if not self._max_comments:
            return item
        try:
            answer = await self._ask(
                _THREADS,
                lambda api: api.commentThreads().list(
                    part="snippet,replies", videoId=item.id, order="relevance",
                    textFormat="plainText", maxResults=self._max_comments,
                ),
            )  # fmt: skip
        except NoComments as error:
            return with_note(item, error.detail)
        return item.edited(comments=comments_of(answer, item.id, self._max_comments))

    async def _ask(self, kind: str, call: Call) -> Mapping[str, Any]:
        """One call, and a second one after a rate limit when the wait is no longer than a call may take."""
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
        job = partial(_execute, call=call, url=self._root)
        try:
            return answer_of(await self._workers.run(job, self._seconds), kind)
        except _NotSent:
            await self._searches.give_back(day)
            raise


build = YouTubeSource


def _client(key: str, root: str, seconds: float, proxy: httplib2.ProxyInfo | None) -> Any:
    """The service of one thread, which may not share it."""
    http_client = _CheckingHttp(timeout=seconds, proxy_info=proxy, decode_limit_hard=MAX_BYTES, decode_limit_chunk=4096)
    http_client.follow_redirects = False  # the key would go along
    return googleapiclient.discovery.build_from_document(
        _description(), developerKey=key, http=http_client, client_options={"api_endpoint": root}
    )


@cache
def _description() -> str:
    """The description of the API that is bundled with the library, of the methods that are called: a twentieth.

    A text, since the library writes into what it has read. It describes answers for `help` alone, by their schemas.
    """
    whole = json.loads(googleapiclient.discovery_cache.get_static_doc("youtube", "v3"))
    listed = {name: whole["resources"][name]["methods"]["list"] for name in ("search", "videos", "commentThreads")}
    resources = {name: {"methods": {"list": method | {"response": _ANY}}} for name, method in listed.items()}
    return json.dumps(whole | {"resources": resources, "schemas": {}})


def _execute(service: Any, *, call: Call, url: str) -> Any:
    """The parsed answer; errors of the libraries become ours, without their text."""
    try:
        return call(service).execute(num_retries=0)
    except TimeoutError:
        raise TimedOut(NAME, "the connection fell silent") from None
    except (httplib2.ServerNotFoundError, ConnectionRefusedError) as error:
        raise _NotSent(NAME, no_connection(error, url)) from None
    except (
        httplib2.FailedToDecompressContent, httplib2.decode.DecodeRatioError,
        httplib2.decode.DecodeLimitError,
    ):  # fmt: skip
        raise Broken(NAME, UNPACKABLE) from None
    except (httplib2.HttpLib2Error, http.client.HTTPException, OSError) as error:
        raise Unreachable(NAME, no_connection(error, url)) from None
    except (
        googleapiclient.errors.Error, LookupError, ValueError, TypeError, AttributeError,
        ArithmeticError, RecursionError,
    ) as error:  # fmt: skip
        raise Broken(NAME, type(error).__name__) from None


class _NotSent(Unreachable):
    """No connection was made, so no request was sent."""


class _CappedResponse(http.client.HTTPResponse):
    def read(self, amt: int | None = None) -> bytes:
        if self.length is not None and self.length <= MAX_BYTES:
            return super().read(amt)
        body = b"" if self.length else super().read(MAX_BYTES + 1)
        self.close()
        if self.length or len(body) > MAX_BYTES:
            raise Broken(NAME, TOO_LARGE)
        return body


class _ClosedConnection(ConnectionError):
    """The server closed the connection before any answer; `was_used`: it had given one before."""

    def __init__(self, was_used: bool) -> None:
        super().__init__("no answer")
        self.was_used = was_used


class _WatchedConnection:
    """A connection with a deadline and a limit, which tells when the server has closed it."""

    response_class = _CappedResponse
    answers = 0
    sock: socket.socket | None

    def connect(self) -> None:
        self.answers = 0
        super().connect()  # type: ignore[misc]
        if self.sock is not None:
            watch(self.sock)

    def request(self, *args: Any, **kwargs: Any) -> None:
        try:
            super().request(*args, **kwargs)  # type: ignore[misc]
        except (BrokenPipeError, ConnectionResetError):  # httplib2 would keep the connection
            raise _ClosedConnection(self.answers > 0) from None

    def getresponse(self) -> http.client.HTTPResponse:
        try:
            response: http.client.HTTPResponse = super().getresponse()  # type: ignore[misc]
        except (ConnectionError, http.client.BadStatusLine):  # httplib2 would send again, uncounted
            raise _ClosedConnection(self.answers > 0) from None
        self.answers += 1
        return response


_CONNECTIONS = {
    scheme: type("Connection", (_WatchedConnection, connection), {})
    for scheme, connection in (
        ("http", httplib2.HTTPConnectionWithTimeout), ("https", httplib2.HTTPSConnectionWithTimeout)
    )
}  # fmt: skip


class _CheckingHttp(httplib2.Http):  # type: ignore[misc]
    """Sends every request of one thread, counts it and checks the answer."""

    def request(self, uri: str, *args: Any, **kwargs: Any) -> tuple[httplib2.Response, bytes]:
        """The answer, when it is good; sent again when the server had closed a kept connection."""
        kwargs["connection_type"] = _CONNECTIONS[uri.partition(":")[0]]
        tries = 0
        while True:
            try:
                count_requests()
                tries += 1
                response, content = super().request(uri, *args, **kwargs)
                break
            except (Broken, OSError, http.client.HTTPException, httplib2.HttpLib2Error) as error:
                self.close()  # its connection is broken, or holds the rest of an answer
                if tries > 1 or not (isinstance(error, _ClosedConnection) and error.was_used):
                    raise
        if response.status >= 300 or content.lstrip()[:1] == b"<":  # a page is no answer
            raise failure_of(response.status, content, response)
        return response, content
