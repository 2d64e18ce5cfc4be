"""Reddit through PRAW; the only importer of praw and prawcore.

Every answer is judged in the requestor, before prawcore sees it, because prawcore sleeps on rate
limits, retries with sleeps, and trips over some errors. JSON is read as it came, so no attribute of
a PRAW object can trigger a hidden request.
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
from praw.config import Config
from praw.exceptions import PRAWException

from api.errors import (
    Broken,
    ConfigurationError,
    Refused,
    SourceError,
    TimedOut,
    Unreachable,
)
from api.services.keeping.storage import SourceMemory
from api.services.metering import charge
from api.services.ports import Probe
from api.services.schemas import Batch, Commented, FetchPlan, Item
from api.services.text import searchable
from api.services.wire import no_connection, points_here
from api.settings import SourceSettings
from api.sources.commenting import read_each
from api.sources.paging import Page, Shelf, exact_first
from api.sources.reddit import NAME, answers
from api.sources.reddit.answers import Allowance, TokenRejected
from api.sources.reddit.session import CappedSession, body_of
from api.sources.spec import value_of
from api.sources.workers import Workers

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

    name = NAME

    def __init__(self, settings: SourceSettings, memory: SourceMemory | None = None) -> None:
        """Use `build`, which checks the settings."""
        self._seconds, self._most = settings.source_timeout, settings.comments_per_item
        make = partial(_client, settings, Allowance())
        self._workers = Workers(NAME, make, _PAIRS, lambda reddit: _core(reddit).close())
        pages = memory.pages if memory else None
        upstream = f"{NAME} {settings.reddit_url or ''}"
        self._shelf = Shelf(self._search, settings.page_ttl, pages, upstream)
        self._grant: _Grant | None = None
        self._granting = asyncio.Lock()

    async def fetch(self, plan: FetchPlan) -> Batch:
        """Search submissions, best match first; one request per 100 of them.

        A quoted query that matches nothing is asked once more without its quotes.
        """
        batch = await exact_first(self._shelf, plan)
        self._workers.prepare(_PAIRS)
        return batch

    async def comments(self, items: Sequence[Item]) -> Commented:
        """The best voted comments of each submission; one request per item."""
        if not self._most:
            return Commented(tuple(items))
        return await read_each(items, self._commented, width=_PAIRS)

    async def remarked(self, item: Item) -> Item | None:
        """The item with its best voted comments."""
        return await self._commented(item) if self._most else None

    async def probe(self) -> Probe:
        """A fresh token and a search for one post, because a token alone does not show a block."""
        try:
            await self._granted(self._grant)
            await self._search(FetchPlan(NAME, 1), None, size=1)
        except SourceError as error:
            return Probe(error.code, error.detail)
        return Probe("ok")

    async def aclose(self) -> None:
        """Let the threads end."""
        self._workers.close()

    async def _search(self, plan: FetchPlan, cursor: str | None, size: int = PAGE) -> Page:
        params: dict[str, str | int] = {
            "q": searchable(plan.query),
            "restrict_sr": "False",
            "sort": "relevance",
            "syntax": "lucene",
            "t": plan.window,
            "limit": size,
        }
        if cursor:
            params["after"] = cursor
        page = answers.page(_listing(await self._get("r/all/search/", params)))
        if page is None:
            raise Broken(NAME, "a listing without submissions")
        return page

    async def _commented(self, item: Item) -> Item:
        params: dict[str, str | int] = {"limit": max(PAGE, 2 * self._most), "sort": "top"}
        answer = await self._get(f"comments/{item.id}/", params)
        tree = _listing(answer[1] if isinstance(answer, list) and len(answer) > 1 else None)
        comments = answers.comments(tree, item, self._most)
        if comments is None:
            raise Broken(NAME, "a thread without comments' texts")
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
    listing = answers.listing(answer)
    if listing is None:
        raise Broken(NAME, "an answer without a listing")
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
                client_id=value_of(settings, "REDDIT_CLIENT_ID"),
                client_secret=value_of(settings, "REDDIT_CLIENT_SECRET"),
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
        raise Refused(NAME, "the app was not given a token") from None
    except _TRIPPED as error:
        raise Broken(NAME, f"token: {type(error).__name__}") from None
    if not re.fullmatch(r"[!-~]+", grant.token):  # what a header can carry: `eyJhbGci...`
        raise Broken(NAME, "a token that no header can carry")
    return grant


def _get(reddit: praw.Reddit, *, grant: _Grant, path: str, params: dict[str, str | int]) -> Any:
    """The JSON at `path`, asked with the shared token."""
    authorizer = _core(reddit).authorizer
    authorizer.access_token = grant.token
    authorizer._expiration_timestamp_ns = grant.until
    try:
        return reddit.request(method="GET", path=path, params=params)
    except _TRIPPED as error:
        raise Broken(NAME, type(error).__name__) from None


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
                charge()
                response = send(allow_redirects=False)
            except prawcore.RequestException as error:
                if not _hung_up(error.original_exception):
                    raise
                charge()
                response = send(allow_redirects=False)
        except prawcore.RequestException as error:
            raise _failure(error.original_exception, str(args[1])) from None
        try:
            response._content = body_of(response)
        except OSError as error:
            raise _failure(error, str(args[1])) from None
        self._allowance.note(response.headers)
        token = str(args[1]).endswith(_TOKEN)
        answers.judge(response.status_code, response.headers, response.content, token=token)
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
        return TimedOut(NAME, "the connection fell silent")
    return Unreachable(NAME, no_connection(error, url))
