"""Reddit through PRAW; the only importer of praw and prawcore.

Every answer is judged in the requestor, before prawcore sees it, because prawcore sleeps on rate
limits, retries with sleeps, and trips over some errors. JSON is read as it came, so no attribute of
a PRAW object can trigger a hidden request.

The requests session below PRAW: bodies with a limit, no redirects, connections with an end.
"""

from __future__ import annotations

import asyncio
import configparser
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.resources import files
from typing import Any, TypeVar

import praw
import prawcore
import requests
import urllib3
from praw.config import Config
from praw.exceptions import PRAWException

from api.core.context import count_requests
from api.core.domain import Batch, Commented, FetchPlan, Item
from api.core.http_limits import (
    TOO_LARGE,
    UNPACKABLE,
    TooLarge,
    no_connection,
    points_here,
    read_all,
)
from api.core.ports import Probe
from api.core.text import clean_query
from api.errors import Broken, ConfigurationError, Refused, SourceError, TimedOut, Unreachable
from api.features.analyses.store_ports import SourceMemory
from api.settings import SourceSettings
from api.sources import reddit_answers
from api.sources.keyless_source import read_each
from api.sources.paging import Page, PagedSearch, phrase_first
from api.sources.reddit_answers import Allowance, TokenRejected
from api.sources.source_specs import REDDIT_NAME, setting_value
from api.sources.worker_threads import Workers, watch


def _socket_of(line: Any) -> Any:
    """The socket itself; TLS to a server behind a proxy with TLS is an object around it."""
    return getattr(line, "socket", line)


class _WatchedPlain(urllib3.connection.HTTPConnection):
    """A connection that ends with the job for which it was made."""

    def connect(self) -> None:
        """Connect, and be watched."""
        super().connect()
        watch(_socket_of(self.sock))


class _WatchedSecure(urllib3.connection.HTTPSConnection):
    """The same with TLS."""

    def connect(self) -> None:
        """Connect, and be watched."""
        super().connect()
        watch(_socket_of(self.sock))


class _PlainPool(urllib3.HTTPConnectionPool):
    ConnectionCls = _WatchedPlain


class _SecurePool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _WatchedSecure


_POOLS = {"http": _PlainPool, "https": _SecurePool}


class _Adapter(requests.adapters.HTTPAdapter):
    """Makes such connections, through a proxy, too."""

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        """The manager of direct connections."""
        super().init_poolmanager(*args, **kwargs)
        self.poolmanager.pool_classes_by_scheme = _POOLS

    def proxy_manager_for(self, proxy: str, **kwargs: Any) -> Any:
        """The manager of a proxy's."""
        manager = super().proxy_manager_for(proxy, **kwargs)
        manager.pool_classes_by_scheme = _POOLS
        return manager


class CappedSession(requests.Session):
    """Leaves the reading of an answer to `body_of`, and follows no redirect."""

    def __init__(self) -> None:
        """With connections that end with their job."""
        super().__init__()
        for scheme in ("http://", "https://"):
            self.mount(scheme, _Adapter())

    def get_redirect_target(self, resp: requests.Response) -> str | None:
        """None, since the library would read a redirect's whole body."""
        return None

    def send(self, request: requests.PreparedRequest, **options: Any) -> requests.Response:
        """The answer without its body."""
        return super().send(request, **{**options, "stream": True})


def body_of(response: requests.Response) -> bytes:
    """The body of a session's answer.

    Raises:
        SourceError: it is too large, cannot be unpacked, or ends too early.
        OSError: the connection broke or fell silent.
    """
    try:
        return read_all(response.iter_content(65_536))
    except (TooLarge, requests.exceptions.ContentDecodingError) as error:
        response.close()
        what = TOO_LARGE if isinstance(error, TooLarge) else UNPACKABLE
        raise Broken(REDDIT_NAME, what) from None
    except requests.exceptions.ChunkedEncodingError:
        raise Unreachable(REDDIT_NAME, "the connection ended within an answer") from None


PAGE = 100
"""Entries Reddit gives at most per request."""
_PAIRS = 4
_TOKEN = "/api/v1/access_token"
_TRIPPED = (
    prawcore.PrawcoreException, PRAWException, LookupError, ValueError, TypeError, AttributeError,
    AssertionError, ArithmeticError, RecursionError,
)  # fmt: skip
_INI = threading.Lock()
R = TypeVar("R")


def build(settings: SourceSettings, memory: SourceMemory | None = None) -> RedditSource:
    """The source for settings that are there; asks nothing. `memory` keeps pages between runs.

    Raises:
        ConfigurationError: the user agent is too short for Reddit.
    """
    if len(settings.reddit_user_agent.strip()) < prawcore.Requestor.MIN_USER_AGENT_LENGTH:
        raise ConfigurationError("`REDDIT_USER_AGENT` needs 7 characters or more")
    return RedditSource(settings, memory)


@dataclass(frozen=True, slots=True)
class _Grant:
    """An access token and until when it holds, on the monotonic clock in nanoseconds."""

    token: str
    until: int


class RedditSource:
    """Submissions of all of Reddit and their comments; see `Source` for the contract."""

    name = REDDIT_NAME

    def __init__(self, settings: SourceSettings, memory: SourceMemory | None = None) -> None:
        """Use `build`, which checks the settings."""
        self._seconds, self._most = settings.source_timeout, settings.comments_per_item
        make = partial(_client, settings, Allowance())
        self._workers = Workers(REDDIT_NAME, make, _PAIRS, lambda reddit: _core(reddit).close())
        upstream = f"{REDDIT_NAME} {settings.reddit_url or ''}"
        self._shelf = PagedSearch(self._search, settings.page_ttl, memory, upstream)
        self._grant: _Grant | None = None
        self._granting = asyncio.Lock()

    async def fetch(self, plan: FetchPlan) -> Batch:
        """Search submissions, best match first; one request per 100 of them.

        A quoted query that matches nothing is asked once more without its quotes.
        """
        batch = await phrase_first(self._shelf, plan)
        self._workers.prepare(_PAIRS)
        return batch

    async def comments(self, items: Sequence[Item]) -> Commented:
        """The best voted comments of each submission; one request per item."""
        if not self._most:
            return Commented(tuple(items))
        return await read_each(items, self._commented, width=_PAIRS)

    async def with_best_comments(self, item: Item) -> Item | None:
        """The item with its best voted comments."""
        return await self._commented(item) if self._most else None

    async def probe(self) -> Probe:
        """A fresh token and a search for one post, because a token alone does not show a block."""
        try:
            await self._granted(self._grant)
            await self._search(FetchPlan(REDDIT_NAME, 1), None, size=1)
        except SourceError as error:
            return Probe(error.code, error.detail)
        return Probe("ok")

    async def aclose(self) -> None:
        """Let the threads end."""
        self._workers.close()

    async def _search(self, plan: FetchPlan, cursor: str | None, size: int = PAGE) -> Page:
        params: dict[str, str | int] = {
            "q": clean_query(plan.query),
            "restrict_sr": "False",
            "sort": "relevance",
            "syntax": "lucene",
            "t": plan.window,
            "limit": size,
        }
        if cursor:
            params["after"] = cursor
        page = reddit_answers.page(_listing(await self._get("r/all/search/", params)))
        if page is None:
            raise Broken(REDDIT_NAME, "a listing without submissions")
        return page

    async def _commented(self, item: Item) -> Item:
        params: dict[str, str | int] = {"limit": max(PAGE, 2 * self._most), "sort": "top"}
        answer = await self._get(f"comments/{item.id}/", params)
        tree = _listing(answer[1] if isinstance(answer, list) and len(answer) > 1 else None)
        comments = reddit_answers.comments(tree, item, self._most)
        if comments is None:
            raise Broken(REDDIT_NAME, "a thread without comments' texts")
        return replace(item, comments=comments)

    async def _get(self, path: str, params: dict[str, str | int]) -> Any:
        """One GET; after a rejected token once more with a new one."""
        grant = await self._granted()
        try:
            return await self._run(partial(_get, grant=grant, path=path, params=params))
        except TokenRejected:
            grant = await self._granted(grant)
            return await self._run(partial(_get, grant=grant, path=path, params=params))

    async def _granted(self, rejected: _Grant | None = None) -> _Grant:
        """The token all pairs share; one token call at a time, on the loop so no thread waits."""
        async with self._granting:
            held = self._grant
            if held is None or held is rejected or held.until <= time.monotonic_ns():
                self._grant = None
                self._grant = await self._run(_grant)
                return self._grant
            return held

    async def _run(self, job: Callable[[praw.Reddit], R]) -> R:
        return await self._workers.run(job, self._seconds)


def _listing(answer: object) -> Mapping[str, Any]:
    listing = reddit_answers.listing(answer)
    if listing is None:
        raise Broken(REDDIT_NAME, "an answer without a listing")
    return listing


def _client(settings: SourceSettings, allowance: Allowance) -> praw.Reddit:
    """One pair's client, made from our settings alone.

    PRAW reads `praw.ini` of the working directory and of the user, once per process, when its
    `Config` has none yet; ours sees the bundled defaults instead and puts back what was there.
    """
    root = (settings.reddit_url or "").rstrip("/")
    session = CappedSession()
    session.trust_env = not points_here(root)
    defaults = configparser.ConfigParser(interpolation=None)
    defaults.read_string(files("praw").joinpath("praw.ini").read_text("utf-8"))
    with _INI:
        before, Config.CONFIG = Config.CONFIG, defaults
        try:
            return praw.Reddit(
                "DEFAULT",
                client_id=setting_value(settings, "REDDIT_CLIENT_ID"),
                client_secret=setting_value(settings, "REDDIT_CLIENT_SECRET"),
                user_agent=settings.reddit_user_agent.strip(),
                username=None,
                password=None,
                refresh_token=None,
                oauth_url=f"{root or 'https://oauth.reddit.com'}/",
                reddit_url=root or "https://www.reddit.com",
                check_for_updates=False,
                requestor_class=_Requestor,
                requestor_kwargs={
                    "allowance": allowance,
                    "session": session,
                    "timeout": settings.source_timeout,
                },
            )
        finally:
            Config.CONFIG = before


def _core(reddit: praw.Reddit) -> Any:
    """PRAW's session; it has no public way to its token."""
    return reddit._core


def _grant(reddit: praw.Reddit) -> _Grant:
    """Ask for an access token."""
    authorizer = _core(reddit).authorizer
    try:
        authorizer.refresh()
        grant = _Grant(str(authorizer.access_token), authorizer._expiration_timestamp_ns)
    except prawcore.OAuthException:
        raise Refused(REDDIT_NAME, "the app was not given a token") from None
    except _TRIPPED as error:
        raise Broken(REDDIT_NAME, f"token: {type(error).__name__}") from None
    if not re.fullmatch(r"[!-~]+", grant.token):  # what a header can carry: `eyJhbGci...`
        raise Broken(REDDIT_NAME, "a token that no header can carry")
    return grant


def _get(reddit: praw.Reddit, *, grant: _Grant, path: str, params: dict[str, str | int]) -> Any:
    """The JSON at `path`, asked with the shared token."""
    authorizer = _core(reddit).authorizer
    authorizer.access_token = grant.token
    authorizer._expiration_timestamp_ns = grant.until
    try:
        return reddit.request(method="GET", path=path, params=params)
    except _TRIPPED as error:
        raise Broken(REDDIT_NAME, type(error).__name__) from None


class _Requestor(prawcore.Requestor):
    """Sends every request of one pair: counted, with our timeout, and judged at once.

    prawcore passes its own timeout of 16 s, which is overruled here.
    """

    def __init__(self, *, allowance: Allowance, timeout: float, **rest: Any) -> None:
        """`timeout` in seconds is for each wait on the socket; the wall clock is `Workers`'."""
        super().__init__(timeout=timeout, **rest)
        self._allowance = allowance

    def request(self, *args: Any, timeout: float | None = None, **kwargs: Any) -> requests.Response:
        """The answer, when it is a good one; once more when a kept connection was closed."""
        self._allowance.check()
        send = partial(super().request, *args, timeout=self.timeout, **kwargs)
        try:
            try:
                count_requests()
                response = send(allow_redirects=False)
            except prawcore.RequestException as error:
                if not _hung_up(error.original_exception):
                    raise
                count_requests()
                response = send(allow_redirects=False)
        except prawcore.RequestException as error:
            raise _failure(error.original_exception, str(args[1])) from None
        try:
            response._content = body_of(response)
        except OSError as error:
            raise _failure(error, str(args[1])) from None
        self._allowance.note(response.headers)
        token = str(args[1]).endswith(_TOKEN)
        reddit_answers.judge(response.status_code, response.headers, response.content, token=token)
        for header in ("remaining", "used", "reset"):  # prawcore would sleep, or trip, on these
            response.headers.pop(f"x-ratelimit-{header}", None)
        return response


def _hung_up(error: Exception) -> bool:
    """Whether the server closed the connection without an answer."""
    inner = getattr(error.args[0] if error.args else None, "args", ())
    return any(isinstance(part, ConnectionError) for part in inner)


def _failure(error: Exception, url: str) -> SourceError:
    """A request without an answer."""
    if isinstance(error, SourceError):
        return error
    inner = type(error.args[0]).__name__ if error.args else ""
    if isinstance(error, requests.Timeout) or "ReadTimeout" in inner:
        return TimedOut(REDDIT_NAME, "the connection fell silent")
    return Unreachable(REDDIT_NAME, no_connection(error, url))
