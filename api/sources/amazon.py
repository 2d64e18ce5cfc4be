"""Amazon through httpx: its own pages, or a paid provider.

An item is a product. Before the gate it is its tile; the product page, with bullets and top
reviews, is read for kept items only. Cost: one request per result page, one per kept product.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from http.cookiejar import CookieJar, DefaultCookiePolicy
from ipaddress import ip_address
from typing import TypeVar

import httpx

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
from api.services.ports import Probe, Source
from api.services.schemas import Batch, Commented, FetchPlan, Item
from api.services.text import clean, web_url
from api.settings import SourceSettings
from api.sources.amazon_fields import Product
from api.sources.amazon_items import NAME, completed, item_of, noted
from api.sources.amazon_pages import block_path, block_reason
from api.sources.amazon_providers import PROVIDERS, Complaint, Provider, Request
from api.sources.fields import MAX_BYTES, TOO_LARGE
from api.sources.paging import Page, Shelf
from api.sources.remembered import remembered

SIGN_IN = "reviews need a sign-in"
NO_REVIEWS = "no reviews yet"
UNDATED = "Amazon does not date products: the time window was not applied"

_MAX_REDIRECTS = 3
_AT_ONCE = 4
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_LONGEST_WAIT = timedelta(days=31)
_CREDIT = re.compile(r"quota|credit|payment required", re.I)
_SPENT = re.compile(r"(?:daily|monthly) quota|credit", re.I)
_PACE = re.compile(r"rate.?limit|too many requests|too fast", re.I)
_KEY = re.compile(r"api.?key|token|unauthori[sz]ed|forbidden|not subscribed", re.I)
R = TypeVar("R")


def build(settings: SourceSettings, memory: SourceMemory | None = None) -> Source:
    """Make the source that `AMAZON_PROVIDER` names; nothing is asked yet.

    `memory` keeps pages between runs.

    Raises:
        NotConfigured: no provider, a paid one without its key, or an unusable `AMAZON_URL`.
    """
    if settings.amazon_provider is None:
        raise NotConfigured(NAME, "`AMAZON_PROVIDER` is not set")
    provider = PROVIDERS[settings.amazon_provider]
    secret = settings.amazon_api_key
    key = secret.get_secret_value().strip() if secret else ""
    if provider.paid and not key:
        raise NotConfigured(NAME, f"`AMAZON_API_KEY` is not set, `{provider.name}` needs it")
    if provider.paid and not (key.isascii() and key.isprintable()):
        raise NotConfigured(NAME, "`AMAZON_API_KEY` holds characters that no header can carry")
    root = (settings.amazon_url or provider.root).rstrip("/")
    if not _usable(root):
        raise NotConfigured(NAME, "`AMAZON_URL` is not an http or https address")
    return AmazonSource(provider, settings, root, key, memory)


class AmazonSource:
    """Products and their buyers' reviews; belongs to one event loop."""

    name = NAME

    def __init__(
        self,
        provider: Provider,
        settings: SourceSettings,
        root: str,
        key: str,
        memory: SourceMemory | None = None,
    ) -> None:
        """`root` has no slash at its end; `key` is empty for a provider without one."""
        self._provider, self._root = provider, root
        self._most = settings.comments_per_item
        self._seconds = settings.provider_timeout if provider.paid else settings.source_timeout
        pages = memory.pages if memory else None
        upstream = f"{NAME} {provider.name} {root}"
        read = remembered(self._read, pages, upstream, settings.page_ttl)
        self._shelf = Shelf(read, settings.page_ttl)
        self._client = httpx.AsyncClient(
            headers=provider.headers(root, key),
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            timeout=self._seconds,
            trust_env=not _loopback(root),
        )

    async def fetch(self, plan: FetchPlan) -> Batch:
        """Search products; see `Source.fetch` for the contract."""
        return await self._shelf.take(plan)

    async def comments(self, items: Sequence[Item]) -> Commented:
        """Read the product pages of kept items, four at a time; never raises a `SourceError`.

        After a refusal, a rate limit, used-up credits or four blocked pages the rest is not asked.
        """
        if not self._most:
            return Commented(tuple(items))
        silence = f"no reviews given by `{self._provider.name}`" if self._provider.paid else SIGN_IN
        reading = _Reading(self._product, self._most, silence)
        read = await asyncio.gather(*(reading.read(item) for item in items))
        return Commented(tuple(read), reading.notes(len(read)))

    async def probe(self) -> Probe:
        """Ask for the site's root page; a paid provider is not asked, since each call costs."""
        if self._provider.paid:
            return Probe("ok", f"key set for `{self._provider.name}`, not tried: calls are paid")
        try:
            reply = await self._reply(Request("/", {}))
            if reply.status != 404:
                self._checked(reply)
        except SourceError as error:
            return Probe(error.code, str(error))
        return Probe("ok", "the root page answers; no search was made")

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def _read(self, plan: FetchPlan, cursor: str | None) -> Page:
        page = int(cursor or 1)
        request = self._provider.search_request(clean(plan.query), page)
        found = await self._parsed(request, self._provider.parse_search)
        return Page(
            tuple(item_of(tile) if tile else None for tile in found.tiles),
            cursor=str(page + 1) if found.more else None,
            notes=() if plan.window == "all" else (UNDATED,),
        )

    async def _product(self, asin: str) -> Product:
        request = self._provider.reviews_request(asin)
        return await self._parsed(request, self._provider.parse_reviews)

    async def _parsed(self, request: Request, parse: Callable[[str], R]) -> R:
        reply = await self._reply(request)
        try:
            return parse(self._checked(reply))
        except Complaint as complaint:
            raise _failure(complaint.status or 200, complaint.words, reply.wait) from complaint

    async def _reply(self, request: Request) -> _Reply:
        """Send within the deadline of real time, redirects included; httpx's errors end here."""
        try:
            async with asyncio.timeout(self._seconds):
                return await self._follow(httpx.URL(self._root + request.path), request.params)
        except (TimeoutError, httpx.TimeoutException) as error:
            raise TimedOut(NAME, f"no full answer in {self._seconds:g} s") from error
        except (httpx.DecodingError, httpx.InvalidURL) as error:
            raise Broken(NAME, type(error).__name__) from error
        except httpx.HTTPError as error:
            raise Unreachable(NAME, f"no connection ({type(error).__name__})") from error

    async def _follow(self, url: httpx.URL, params: Mapping[str, str]) -> _Reply:
        target = url.copy_merge_params(params) if params else url
        for _ in range(_MAX_REDIRECTS + 1):
            reply = await self._get(target)
            if reply.target is None:
                return reply
            target = target.join(reply.target)
            if why := block_path(target.path):
                raise Blocked(NAME, f"redirected to a {why}")
            if (target.scheme, target.netloc) != (url.scheme, url.netloc):
                raise Broken(NAME, "redirected to another host, name that one in `AMAZON_URL`")
        raise Broken(NAME, f"more than {_MAX_REDIRECTS} redirects")

    async def _get(self, url: httpx.URL) -> _Reply:
        charge()
        async with self._client.stream("GET", url) as response:
            headers = response.headers
            target = headers.get("location") if response.status_code in _REDIRECTS else None
            body = bytearray()
            if target is None:
                async for chunk in response.aiter_bytes():
                    body += chunk
                    if len(body) > MAX_BYTES:
                        raise Broken(NAME, TOO_LARGE)
            return _Reply(
                response.status_code, headers, body.decode("utf-8-sig", "replace"), target
            )

    def _checked(self, reply: _Reply) -> str:
        """The body, when it can be the data."""
        if reply.html and (why := block_reason(reply.status, reply.body)):
            raise Blocked(NAME, why, retry_at=reply.wait)
        if reply.status == 200:
            return reply.body
        page = reply.html or not self._provider.paid
        if page and reply.status in {202, 401, 403, 429}:
            raise Blocked(NAME, f"a page with status {reply.status}", retry_at=reply.wait)
        raise _failure(reply.status, reply.body, reply.wait)


@dataclass(frozen=True, slots=True)
class _Reply:
    """One answer, read to its end."""

    status: int
    headers: Mapping[str, str]
    body: str
    target: str | None
    """Where a redirect leads."""

    @property
    def html(self) -> bool:
        """It is a page, whatever was asked for."""
        return "html" in self.headers.get("content-type", "") or self.body.lstrip()[:1] == "<"

    @property
    def wait(self) -> datetime | None:
        """Until when to wait, aware UTC, when the answer says; RapidAPI has a header of its own."""
        text = self.headers.get("retry-after") or self.headers.get("x-ratelimit-requests-reset", "")
        now = datetime.now(UTC)
        try:
            at = (
                now + timedelta(seconds=int(text))
                if text.isdigit()
                else parsedate_to_datetime(text)
            )
        except (ValueError, OverflowError):
            return None
        at = at if at.tzinfo else at.replace(tzinfo=UTC)
        return at if now <= at <= now + _LONGEST_WAIT else None


def _failure(status: int, words: str, wait: datetime | None) -> SourceError:
    """The one place where a failed answer gets its meaning; `words` are read, never shown."""
    said = f"answered {status}" if status != 200 else "reported a failure"
    spent = status == 429 and wait is None and _SPENT.search(words)
    if status == 402 or spent or (status in {200, 403} and _CREDIT.search(words)):
        return QuotaExhausted(NAME, said, retry_at=wait)
    if status == 429 or (status == 200 and _PACE.search(words)):
        return RateLimited(NAME, said, retry_at=wait)
    if status in {401, 403} or (status == 200 and _KEY.search(words)):
        return Refused(NAME, said)
    if status >= 500:
        return Unreachable(NAME, said)
    return Broken(NAME, said)


class _Reading:
    """The product pages of one batch; knows what went wrong so far."""

    def __init__(
        self, product: Callable[[str], Awaitable[Product]], most: int, silence: str
    ) -> None:
        self._product, self._most, self._silence = product, most, silence
        self._free = asyncio.Semaphore(_AT_ONCE)
        self._failures: list[SourceError] = []
        self._failed = 0
        self._silences: set[str] = set()

    async def read(self, item: Item) -> Item:
        """The item with what its page holds, or with a note why not."""
        async with self._free:
            if self._hopeless:
                self._failed += 1
                return noted(item, "reviews not asked for: the pages before failed")
            try:
                product = await self._product(item.id)
            except SourceError as error:
                self._failed += 1
                self._failures.append(error)
                return noted(item, f"reviews not read: {error.detail or error.code}")
        full = completed(item, product, self._most)
        if full.comments:
            return full
        why = NO_REVIEWS if full.engagement["ratings"] == 0 else self._silence
        self._silences.add(why)
        return noted(full, why)

    @property
    def _hopeless(self) -> bool:
        blocked = sum(isinstance(error, Blocked) for error in self._failures)
        final = (Refused, RateLimited, QuotaExhausted)
        return blocked >= _AT_ONCE or any(isinstance(error, final) for error in self._failures)

    def notes(self, asked: int) -> tuple[str, ...]:
        """What the whole batch lacks."""
        codes = ", ".join(sorted({error.code for error in self._failures}))
        failed = (f"{self._failed} of {asked} failed ({codes})",) if self._failed else ()
        return (*failed, *sorted(self._silences))


def _usable(root: str) -> bool:
    try:
        return bool(web_url(root) and httpx.URL(root).host)
    except httpx.InvalidURL:
        return False


def _loopback(root: str) -> bool:
    """Whether the root is this machine, which no proxy should be asked for."""
    host = httpx.URL(root).host
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
