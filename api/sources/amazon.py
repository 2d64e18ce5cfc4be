"""Amazon over HTTP: its own pages, or a paid provider.

An item is a product. Before the gate it is its tile; the product page, with bullets and top
reviews, is read for kept items only. Cost: one request per result page, one per kept product.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from api.core.domain import Batch, Commented, FetchPlan, Item
from api.core.ports import Probe
from api.core.text import clean_query
from api.errors import (
    Blocked,
    Broken,
    NotConfigured,
    QuotaExhausted,
    RateLimited,
    Refused,
    SourceError,
    Unreachable,
)
from api.features.analyses.store_ports import SourceMemory
from api.settings import SourceSettings
from api.sources.amazon_fields import site_of
from api.sources.amazon_pages import block_path, block_reason, completed, item_of
from api.sources.amazon_providers import PROVIDERS, AmazonProvider, Complaint, ProviderRequest
from api.sources.keyless_source import SILENCES, noted, read_each
from api.sources.markup import is_too_deep
from api.sources.paging import Page, PagedSearch
from api.sources.source_specs import AMAZON_NAME, setting_value
from api.sources.web_client import Reply, WebClient

SIGN_IN = "reviews need a sign-in"
NO_REVIEWS = "no reviews yet"
UNDATED = "Amazon does not date products: the time window was not applied"

# After these the next product is not asked for; a block page may be one product's.
_FINAL = (RateLimited, QuotaExhausted, Refused)
# what a failed answer is about, by the words of its provider: "You have exceeded the MONTHLY quota"
_CREDIT = re.compile(r"quota|credit|payment required", re.I)
_SPENT = re.compile(r"(?:daily|monthly) quota|credit", re.I)
_PACE = re.compile(r"rate.?limit|too many requests|too fast", re.I)
_KEY = re.compile(r"api.?key|token|unauthori[sz]ed|forbidden|not subscribed", re.I)
R = TypeVar("R")


def build(settings: SourceSettings, memory: SourceMemory | None = None) -> AmazonSource:
    """The source for settings that are there; asks nothing. `memory` keeps pages between runs.

    Raises:
        NotConfigured: a key that no header can carry.
    """
    provider = PROVIDERS[setting_value(settings, "AMAZON_PROVIDER")]
    key = setting_value(settings, "AMAZON_API_KEY") if provider.paid else ""
    if not (key.isascii() and key.isprintable()):
        raise NotConfigured(
            AMAZON_NAME, "`AMAZON_API_KEY` holds characters that no header can carry"
        )
    root = (settings.amazon_url or provider.root).rstrip("/")
    return AmazonSource(provider, settings, root, key, memory)


class AmazonSource:
    """Products and their buyers' reviews; belongs to one event loop."""

    name = AMAZON_NAME

    def __init__(
        self,
        provider: AmazonProvider,
        settings: SourceSettings,
        root: str,
        key: str,
        memory: SourceMemory | None = None,
    ) -> None:
        """`root` has no slash at its end; `key` is empty for a provider without one."""
        self._provider, self._site = provider, site_of(root)
        self._most = settings.comments_per_item
        self._silence = f"no reviews given by `{provider.name}`" if provider.paid else SIGN_IN
        seconds = settings.provider_timeout if provider.paid else settings.source_timeout
        upstream = f"{AMAZON_NAME} {provider.name} {root}"
        self._shelf = PagedSearch(self._search, settings.page_ttl, memory, upstream)
        self._web = WebClient(
            AMAZON_NAME, root, seconds,
            address="AMAZON_URL", headers=provider.headers(root, key), wall=block_path,
        )  # fmt: skip

    async def fetch(self, plan: FetchPlan) -> Batch:
        """Search products; see `Source.fetch` for the contract."""
        return await self._shelf.take(plan)

    async def comments(self, items: Sequence[Item]) -> Commented:
        """Read the product pages of kept items, four at a time; one request per item.

        After a refusal, a rate limit, used-up credits or four blocked pages in a row the rest is
        not asked.
        """
        if not self._most:
            return Commented(tuple(items))
        doubts = (*SILENCES, Blocked)
        read = await read_each(items, self._reviewed, stops=_FINAL, doubts=doubts, what="reviews")
        notes = {note for item in read.items for note in item.notes}
        silences = [note for note in (NO_REVIEWS, self._silence) if note in notes]
        return replace(read, notes=(*read.notes, *silences))

    async def with_best_comments(self, item: Item) -> None:
        """Nothing: a review speaks of the product it stands under."""

    async def probe(self) -> Probe:
        """Ask for the site's root page; a paid provider is not asked, since each call costs."""
        if self._provider.paid:
            return Probe("ok", f"key set for `{self._provider.name}`, not tried: calls are paid")
        try:
            reply = await self._reply(ProviderRequest("/", {}))
            if reply.status != 404:
                self._checked(reply)
        except SourceError as error:
            return Probe(error.code, str(error))
        return Probe("ok", "the root page answers; no search was made")

    async def aclose(self) -> None:
        """Close the connections."""
        await self._web.aclose()

    async def _search(self, plan: FetchPlan, cursor: str | None) -> Page:
        number = int(cursor or 1)
        request = self._provider.search_request(clean_query(plan.query), number)
        page = await self._parsed(request, self._provider.parse_search)
        if page.tiles and not any(page.tiles):
            raise Broken(AMAZON_NAME, "results without the fields of a product")
        return Page(
            tuple(item_of(tile, self._site) if tile else None for tile in page.tiles),
            cursor=str(number + 1) if page.more else None,
            notes=() if plan.window == "all" else (UNDATED,),
        )

    async def _reviewed(self, item: Item) -> Item:
        """The item with what its page holds, and with a note when that is no review."""
        request = self._provider.reviews_request(item.id)
        product = await self._parsed(request, self._provider.parse_reviews)
        full = completed(item, product, self._most, self._site)
        if full.comments:
            return full
        return noted(full, NO_REVIEWS if full.engagement["ratings"] == 0 else self._silence)

    async def _parsed(self, request: ProviderRequest, parse: Callable[[str], R]) -> R:
        reply = await self._reply(request)
        try:
            return parse(self._checked(reply))
        except Complaint as complaint:
            raise _failure(complaint.status or 200, complaint.words, reply.wait) from complaint

    async def _reply(self, request: ProviderRequest) -> Reply:
        return await self._web.get(request.path, request.params)

    def _checked(self, reply: Reply) -> str:
        """The body, when it can be the data."""
        if reply.html and is_too_deep(reply.body):
            raise Broken(AMAZON_NAME, "a page nested too deeply")
        if reply.html and (why := block_reason(reply.status, reply.body)):
            raise Blocked(AMAZON_NAME, why, retry_at=reply.wait)
        if reply.status == 200:
            return reply.body
        page = reply.html or not self._provider.paid
        if page and reply.status in {202, 401, 403, 429}:
            raise Blocked(AMAZON_NAME, f"a page with status {reply.status}", retry_at=reply.wait)
        raise _failure(reply.status, reply.body, reply.wait)


def _failure(status: int, words: str, wait: datetime | None) -> SourceError:
    """The one place where a failed answer gets its meaning; `words` are read, never shown."""
    what = f"answered {status}" if status != 200 else "reported a failure"
    spent = status == 429 and wait is None and _SPENT.search(words)
    if status == 402 or spent or (status in {200, 403} and _CREDIT.search(words)):
        return QuotaExhausted(AMAZON_NAME, what, retry_at=wait)
    if status == 429 or (status == 200 and _PACE.search(words)):
        return RateLimited(AMAZON_NAME, what, retry_at=wait)
    if status in {401, 403} or (status == 200 and _KEY.search(words)):
        return Refused(AMAZON_NAME, what)
    if status == 408 or status >= 500:
        return Unreachable(AMAZON_NAME, what)
    return Broken(AMAZON_NAME, what)
