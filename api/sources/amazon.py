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
)
from api.features.analyses.store_ports import SourceMemory
from api.settings import SourceSettings
from api.sources import setting_value
from api.sources.amazon_fields import NAME, site_of
from api.sources.amazon_pages import block_path, block_reason, item_of, with_product
from api.sources.amazon_providers import PROVIDERS, Complaint, ProviderRequest
from api.sources.markup import is_too_deep
from api.sources.paging import Page
from api.sources.searched_source import (
    SILENCES,
    SearchedSource,
    read_each,
    status_failure,
    with_note,
)
from api.sources.web_client import Reply, WebClient

SIGN_IN = "reviews need a sign-in"
NO_REVIEWS = "no reviews yet"
UNDATED = "Amazon does not date products: the time window was not applied"
# what a failed answer is about, by the words of its provider: "You have exceeded the MONTHLY quota"
_CREDIT = re.compile(r"quota|credit|payment required", re.I)
_SPENT = re.compile(r"(?:daily|monthly) quota|credit", re.I)
_PACE = re.compile(r"rate.?limit|too many requests|too fast", re.I)
_KEY = re.compile(r"api.?key|token|unauthori[sz]ed|forbidden|not subscribed", re.I)
R = TypeVar("R")


class AmazonSource(SearchedSource):
    """Products and their buyers' reviews; belongs to one event loop."""

    name = NAME
    # a block page may be one product's, so it is among the doubts below
    stops = (RateLimited, QuotaExhausted, Refused)

    def __init__(self, settings: SourceSettings, memory: SourceMemory | None = None) -> None:
        """Build the source without a request.

        Raises:
            NotConfigured: the key cannot be sent in a header.
        """
        self._provider = provider = PROVIDERS[setting_value(settings, "AMAZON_PROVIDER")]
        key = setting_value(settings, "AMAZON_API_KEY") if provider.paid else ""
        if not (key.isascii() and key.isprintable()):
            raise NotConfigured(NAME, "`AMAZON_API_KEY` holds characters that no header can carry")
        root = (settings.amazon_url or provider.root).rstrip("/")
        super().__init__(settings, memory, f"{provider.name} {root}")
        self._site = site_of(root)
        self._without_reviews = (
            f"no reviews given by `{provider.name}`" if provider.paid else SIGN_IN
        )
        seconds = settings.provider_timeout if provider.paid else settings.source_timeout
        self._web = WebClient(
            NAME, root, seconds,
            address="AMAZON_URL", headers=provider.headers(root, key), wall=block_path,
        )  # fmt: skip

    async def fetch(self, plan: FetchPlan) -> Batch:
        """Search products; quotes mean nothing to Amazon."""
        return await self._paged.take(plan)

    async def comments(self, items: Sequence[Item]) -> Commented:
        """The items with what their product pages hold; one request per item.

        After a refusal, a rate limit, used-up credits or four blocked pages in a row the rest is
        not asked.
        """
        if not self._max_comments:
            return Commented(tuple(items))
        doubts = (*SILENCES, Blocked)
        read = await read_each(
            items, self._commented, stops=self.stops, doubts=doubts, what="reviews"
        )
        notes = {note for item in read.items for note in item.notes}
        missing = [note for note in (NO_REVIEWS, self._without_reviews) if note in notes]
        return replace(read, notes=(*read.notes, *missing))

    async def with_best_comments(self, item: Item) -> None:
        """Nothing: a review is always about the product it belongs to."""

    async def aclose(self) -> None:
        """Close the connections."""
        await self._web.aclose()

    async def _probed(self) -> Probe:
        """Ask for the site's root page; a paid provider is not asked, since each call costs."""
        if self._provider.paid:
            return Probe("ok", f"key set for `{self._provider.name}`, not tried: calls are paid")
        reply = await self._web.get("/", {})
        if reply.status != 404:
            self._checked(reply)
        return Probe("ok", "the root page answers; no search was made")

    async def _search(self, plan: FetchPlan, cursor: str | None) -> Page:
        number = int(cursor or 1)
        request = self._provider.search_request(clean_query(plan.query), number)
        page = await self._parsed(request, self._provider.parse_search)
        if page.tiles and not any(page.tiles):
            raise Broken(NAME, "results without the fields of a product")
        return Page(
            tuple(item_of(tile, self._site) if tile else None for tile in page.tiles),
            cursor=str(number + 1) if page.more else None,
            notes=() if plan.window == "all" else (UNDATED,),
        )

    async def _commented(self, item: Item) -> Item:
        """The item with what its page holds, and with a note when that is no review."""
        request = self._provider.reviews_request(item.id)
        product = await self._parsed(request, self._provider.parse_reviews)
        full = with_product(item, product, self._max_comments, self._site)
        if full.comments:
            return full
        return with_note(
            full, NO_REVIEWS if full.engagement["ratings"] == 0 else self._without_reviews
        )

    async def _parsed(self, request: ProviderRequest, parse: Callable[[str], R]) -> R:
        reply = await self._web.get(request.path, request.params)
        try:
            return parse(self._checked(reply))
        except Complaint as complaint:
            raise _failure(complaint.status or 200, complaint.words, reply.wait) from complaint

    def _checked(self, reply: Reply) -> str:
        """The body, when it can be the data."""
        if reply.html and is_too_deep(reply.body):
            raise Broken(NAME, "a page nested too deeply")
        if reply.html and (why := block_reason(reply.status, reply.body)):
            raise Blocked(NAME, why, retry_at=reply.wait)
        if reply.status == 200:
            return reply.body
        page = reply.html or not self._provider.paid
        if page and reply.status in {202, 401, 403, 429}:
            raise Blocked(NAME, f"a page with status {reply.status}", retry_at=reply.wait)
        raise _failure(reply.status, reply.body, reply.wait)


build = AmazonSource


def _failure(status: int, words: str, wait: datetime | None) -> SourceError:
    """What a failed answer means; `words` are read, never shown."""
    what = f"answered {status}" if status != 200 else "reported a failure"
    spent = status == 429 and wait is None and _SPENT.search(words)
    if spent or (status in {200, 403} and _CREDIT.search(words)):
        return QuotaExhausted(NAME, what, retry_at=wait)
    if status == 200 and _PACE.search(words):
        return RateLimited(NAME, what, retry_at=wait)
    if status == 200 and _KEY.search(words):
        return Refused(NAME, what)
    return status_failure(NAME, status, what, wait)
