"""Reddit through PRAW; the only importer of praw and prawcore.

Every answer is checked in the requestor, before prawcore sees it, because prawcore sleeps on rate
limits, retries with sleeps, and fails on some answers. JSON is read as it came, so no attribute of
a PRAW object can trigger a hidden request. The session below PRAW limits bodies, follows no
redirects, and its connections end with their job.
"""

from __future__ import annotations

import asyncio
import configparser
import hashlib
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from typing import Any, TypeVar

import praw
import prawcore
import requests
import urllib3
from praw.config import Config
from praw.exceptions import PRAWException

from api.core.addresses import points_here
from api.core.context import count_requests
from api.core.domain import FetchPlan
from api.core.http_limits import TOO_LARGE, UNPACKABLE, TooLarge, no_connection, read_all
from api.core.items import Batch, Item
from api.core.ports import Probe
from api.core.text import clean_query
from api.errors import Broken, ConfigurationError, RateLimited, Refused, SourceError, TimedOut, Unreachable
from api.features.analyses.store_ports import SourceMemory
from api.settings import SourceSettings
from api.sources import reddit_answers, setting_value
from api.sources.reddit_answers import NAME, Allowance, ServerTrouble, TokenRejected
from api.sources.searched_source import Page, SearchedSource
from api.sources.web_client import SharedPace
from api.sources.worker_threads import Workers, watch

PAGE = 100
"""Entries Reddit gives at most per request."""
_TOKEN_PATH = "/api/v1/access_token"
# what the libraries raise over answers that they do not expect
_LIBRARY_ERRORS = (
    prawcore.PrawcoreException, PRAWException, LookupError, ValueError, TypeError, AttributeError,
    AssertionError, ArithmeticError, RecursionError,
)  # fmt: skip
_CONFIG_LOCK = threading.Lock()
R = TypeVar("R")


class _Watched:
    """A connection that ends with the job for which it was made."""

    sock: Any

    def connect(self) -> None:
        super().connect()  # type: ignore[misc]
        # TLS through a proxy with TLS is an object around the socket
        watch(getattr(self.sock, "socket", self.sock))


class _PlainPool(urllib3.HTTPConnectionPool):
    class ConnectionCls(_Watched, urllib3.connection.HTTPConnection):
        pass


class _SecurePool(urllib3.HTTPSConnectionPool):
    class ConnectionCls(_Watched, urllib3.connection.HTTPSConnection):
        pass


_POOLS = {"http": _PlainPool, "https": _SecurePool}


class _Adapter(requests.adapters.HTTPAdapter):
    """Makes watched connections, direct ones and through a proxy."""

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs)
        self.poolmanager.pool_classes_by_scheme = _POOLS

    def proxy_manager_for(self, proxy: str, **kwargs: Any) -> Any:
        manager = super().proxy_manager_for(proxy, **kwargs)
        manager.pool_classes_by_scheme = _POOLS
        return manager


class _CappedSession(requests.Session):
    """Leaves the reading of an answer to `_body_of`, and follows no redirect."""

    def __init__(self) -> None:
        super().__init__()
        for scheme in ("http://", "https://"):
            self.mount(scheme, _Adapter())

    def get_redirect_target(self, resp: requests.Response) -> str | None:
        return None  # the library would read a redirect's whole body

    def send(self, request: requests.PreparedRequest, **options: Any) -> requests.Response:
        return super().send(request, **{**options, "stream": True})


def _body_of(response: requests.Response) -> bytes:
    """The body of a session's answer; raises `SourceError`, or `OSError` for a lost connection."""
    try:
        return read_all(response.iter_content(65_536))
    except (TooLarge, requests.exceptions.ContentDecodingError) as error:
        response.close()
        raise Broken(NAME, TOO_LARGE if isinstance(error, TooLarge) else UNPACKABLE) from None
    except requests.exceptions.ChunkedEncodingError:
        raise Unreachable(NAME, "the connection ended within an answer") from None


@dataclass(frozen=True, slots=True)
class _AccessToken:
    text: str
    until: int
    """End of its validity on the monotonic clock, in nanoseconds."""


class RedditSource(SearchedSource):
    """Submissions of all of Reddit and their comments."""

    name = NAME

    def __init__(self, settings: SourceSettings, memory: SourceMemory | None = None) -> None:
        """Raises `ConfigurationError` for a user agent that is too short; asks nothing."""
        if len(settings.reddit_user_agent.strip()) < prawcore.Requestor.MIN_USER_AGENT_LENGTH:
            raise ConfigurationError("`REDDIT_USER_AGENT` needs 7 characters or more")
        super().__init__(settings, memory, settings.reddit_url or "")
        self._seconds = settings.source_timeout
        client = partial(_client, settings, Allowance())
        self._workers = Workers(NAME, client, self.parallel_items, lambda reddit: _core(reddit).close())
        app = hashlib.sha256(setting_value(settings, "REDDIT_CLIENT_ID").encode()).hexdigest()[:8]
        self._pace = SharedPace(NAME, memory, f"{NAME} {app}")
        self._token: _AccessToken | None = None
        self._token_lock = asyncio.Lock()

    async def fetch(self, plan: FetchPlan) -> Batch:
        """Search submissions, best match first; one request per 100 of them."""
        batch = await super().fetch(plan)
        self._workers.prepare(self.parallel_items)
        return batch

    async def aclose(self) -> None:
        """End the worker threads and their connections."""
        self._workers.close()

    async def _probed(self) -> Probe:
        # a fresh token and a search for one post: a token alone does not show a block
        await self._valid_token(self._token)
        await self._search(FetchPlan(NAME, 1), None, size=1)
        return Probe("ok")

    async def _search(self, plan: FetchPlan, cursor: str | None, size: int = PAGE) -> Page:
        params: dict[str, str | int] = {
            "q": clean_query(plan.query), "restrict_sr": "False", "sort": "relevance",
            "syntax": "lucene", "t": plan.window, "limit": size,
        }  # fmt: skip
        if cursor:
            params["after"] = cursor
        return reddit_answers.page(reddit_answers.listing(await self._get("r/all/search/", params)))

    async def _commented(self, item: Item) -> Item:
        params: dict[str, str | int] = {"limit": max(PAGE, 2 * self._max_comments), "sort": "top"}
        answer = await self._get(f"comments/{item.id}/", params)
        # the post, then its comments
        tree = answer[1] if isinstance(answer, list) and len(answer) > 1 else None
        listing = reddit_answers.listing(tree)
        return item.edited(comments=reddit_answers.comments(listing, item, self._max_comments))

    async def _get(self, path: str, params: dict[str, str | int]) -> Any:
        """Send one GET, and once more after a server failure, or with a new token after a rejected one.

        No process asks while Reddit wants one of them to wait.
        """
        await self._pace.turn()
        try:
            token = await self._valid_token()
            try:
                return await self._run(partial(_get, token=token, path=path, params=params))
            except ServerTrouble:
                pass  # everybody who asks for the same page waits for this answer
            except TokenRejected:
                token = await self._valid_token(token)
            return await self._run(partial(_get, token=token, path=path, params=params))
        except RateLimited as error:
            if error.retry_at is not None:
                await self._pace.pause(error.retry_at)
            raise

    async def _valid_token(self, rejected: _AccessToken | None = None) -> _AccessToken:
        """The token that all clients share; one token call at a time, on the event loop, so that no thread waits."""
        async with self._token_lock:
            held = self._token
            if held is None or held is rejected or held.until <= time.monotonic_ns():
                self._token = None
                held = self._token = await self._run(_new_token)
            return held

    async def _run(self, job: Callable[[praw.Reddit], R]) -> R:
        return await self._workers.run(job, self._seconds)


build = RedditSource


def _client(settings: SourceSettings, allowance: Allowance) -> praw.Reddit:
    """The client of one thread, made from our settings alone.

    PRAW reads `praw.ini` of the working directory and of the user, once per process, when its
    `Config` has none yet; ours sees the bundled defaults instead and puts back what was there.
    """
    root = (settings.reddit_url or "").rstrip("/")
    session = _CappedSession()
    session.trust_env = not points_here(root)
    defaults = configparser.ConfigParser(interpolation=None)
    defaults.read_string(files("praw").joinpath("praw.ini").read_text("utf-8"))
    timeout = settings.source_timeout
    with _CONFIG_LOCK:
        before, Config.CONFIG = Config.CONFIG, defaults
        try:
            return praw.Reddit(
                "DEFAULT", client_id=setting_value(settings, "REDDIT_CLIENT_ID"),
                client_secret=setting_value(settings, "REDDIT_CLIENT_SECRET"),
                user_agent=settings.reddit_user_agent.strip(), username=None, password=None,
                refresh_token=None, oauth_url=f"{root or 'https://oauth.reddit.com'}/",
                reddit_url=root or "https://www.reddit.com", check_for_updates=False,
                requestor_class=_Requestor,
                requestor_kwargs={"allowance": allowance, "session": session, "timeout": timeout},
            )  # fmt: skip
        finally:
            Config.CONFIG = before


def _core(reddit: praw.Reddit) -> Any:
    """PRAW's session, a private attribute, since PRAW has no public access to its token."""
    return reddit._core


def _new_token(reddit: praw.Reddit) -> _AccessToken:
    authorizer = _core(reddit).authorizer
    try:
        authorizer.refresh()
        token = _AccessToken(str(authorizer.access_token), authorizer._expiration_timestamp_ns)
    except prawcore.OAuthException:
        raise Refused(NAME, "the app was not given a token") from None
    except _LIBRARY_ERRORS as error:
        raise Broken(NAME, f"token: {type(error).__name__}") from None
    if not re.fullmatch(r"[!-~]+", token.text):  # visible ASCII, which a header can carry
        raise Broken(NAME, "a token that no header can carry")
    return token


def _get(reddit: praw.Reddit, *, token: _AccessToken, path: str, params: dict[str, str | int]) -> Any:
    """The JSON at `path`, asked with the shared token."""
    authorizer = _core(reddit).authorizer
    authorizer.access_token = token.text
    authorizer._expiration_timestamp_ns = token.until
    try:
        return reddit.request(method="GET", path=path, params=params)
    except _LIBRARY_ERRORS as error:
        raise Broken(NAME, type(error).__name__) from None


class _Requestor(prawcore.Requestor):
    """Sends every request of one client, counted and checked at once; `timeout` is per wait."""

    def __init__(self, *, allowance: Allowance, timeout: float, **rest: Any) -> None:
        super().__init__(timeout=timeout, **rest)
        self._allowance = allowance

    def request(self, *args: Any, timeout: float | None = None, **kwargs: Any) -> requests.Response:
        """The answer, when it is a good one; once more when a kept connection was closed."""
        self._allowance.check()
        url, tries = str(args[1]), 0
        kwargs |= {"timeout": self.timeout, "allow_redirects": False}
        while True:
            try:
                count_requests()
                tries += 1
                response = super().request(*args, **kwargs)
                break
            except prawcore.RequestException as error:
                if tries > 1 or not _was_closed(error.original_exception):
                    raise _failure(error.original_exception, url) from None
        try:
            response._content = _body_of(response)
        except OSError as error:
            raise _failure(error, url) from None
        self._allowance.note(response.headers)
        reddit_answers.check_answer(
            response.status_code, response.headers, response.content,
            token=url.endswith(_TOKEN_PATH),
        )  # fmt: skip
        for header in ("remaining", "used", "reset"):  # prawcore would sleep, or fail, on these
            response.headers.pop(f"x-ratelimit-{header}", None)
        return response


def _was_closed(error: Exception) -> bool:
    """Whether the server closed the connection without an answer."""
    inner = getattr(error.args[0] if error.args else None, "args", ())
    return any(isinstance(part, ConnectionError) for part in inner)


def _failure(error: Exception, url: str) -> SourceError:
    if isinstance(error, SourceError):
        return error
    inner = type(error.args[0]).__name__ if error.args else ""
    if isinstance(error, requests.Timeout) or "ReadTimeout" in inner:
        return TimedOut(NAME, "the connection fell silent")
    return Unreachable(NAME, no_connection(error, url))
