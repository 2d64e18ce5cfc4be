"""Amazon over HTTP: its own pages, or a paid provider.

An item is a product. Before the gate it is its tile; the product page, with bullets and top
reviews, is read for kept items only. Cost: one request per result page, one per kept product.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeVar
from urllib.parse import urlsplit

from api.core.domain import FetchPlan
from api.core.items import Batch, Comment, Commented, Item
from api.core.ports import Probe
from api.core.text import clean, clean_query, one_line, unescape
from api.errors import Blocked, Broken, NotConfigured, QuotaExhausted, RateLimited, Refused, SourceError
from api.features.analyses.store_ports import SourceMemory
from api.settings import SourceSettings
from api.sources import setting_value
from api.sources.amazon_pages import (
    NAME,
    US,
    ProductPage,
    ResultPage,
    Tile,
    asin_of,
    block_path,
    block_reason,
    brand_of,
    count_of,
    day_of,
    item_of,
    parse_product_page,
    parse_search_page,
    price_of,
    review_body,
    review_title,
    shopper,
    site_of,
    stars_of,
    with_product,
)
from api.sources.item_fields import as_dict, as_list, visible_text
from api.sources.markup import is_too_deep
from api.sources.searched_source import SILENCES, Page, SearchedSource, read_each, status_failure, with_note
from api.sources.web_client import Reply, WebClient

# Amazon answers a browser's headers more often than those of programs
_BROWSER = {
    "User-Agent": (
        "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) "
        "Chrome/142.0.0.0 Safari/537.36"
    ),
    "Accept": "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8",
    "Accept-Language": "en-US,en;q=0.9",
}
# the ASIN in "https://www.amazon.com/x/dp/B0TESTAA00?ref=1"
_LINKED_ASIN = re.compile(r"/(?:dp|gp/product)/([A-Z0-9]{10})(?:[/?#]|$)")


Request = tuple[str, dict[str, str]]
"""Path and parameters of a GET."""


class Complaint(Exception):
    """A provider's answer reports a failure; `status` is 0 if unknown, `words` are never shown."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(f"status {status}")
        self.status, self.words = status, words


@dataclass(frozen=True, slots=True)
class AmazonProvider:
    """What to ask one provider, and how to read its answers.

    Both readers raise `Broken` for what is not in the known format, and `Complaint` for an answer
    that reports a failure.
    """

    name: str
    """Value of `AMAZON_PROVIDER` that selects it."""
    root: str
    """Address of its server when `AMAZON_URL` is not set."""
    paid: bool
    """Whether it needs a key and charges for each request."""
    headers: Callable[[str, str], dict[str, str]]
    """`headers(root, key)` of each request."""
    search: Callable[[str], Request]
    """`search(query)`; a page's number is added as `page`."""
    parse_search: Callable[[str], ResultPage]
    reviews: Callable[[str], Request]
    """`reviews(asin)`, with bullets where one request gives both."""
    parse_reviews: Callable[[str], ProductPage]


def _ninja_search(answer: str) -> ResultPage:
    tiles = tuple(
        _tile(
            row,
            asin=row.get("asin"),
            title=unescape(row.get("product_title")),
            stars=row.get("product_star_rating"),
            ratings=row.get("product_num_ratings"),
            price=row.get("product_price"),
        )
        for row in _rows(_data(answer), "products")
    )
    return ResultPage(tiles, more=bool(tiles))


def _ninja_reviews(answer: str) -> ProductPage:
    rows = (
        {name: unescape(value) if isinstance(value, str) else value for name, value in row.items()}
        for row in _rows(_data(answer), "reviews", required=False)
    )
    reviews = (
        _review(
            row,
            shopper(row.get("review_author_id"), row.get("review_author")),
            text=row.get("review_comment"),
            stars=row.get("review_star_rating"),
            helpful=row.get("helpful_vote_statement"),
        )
        for row in rows
    )
    return ProductPage(reviews=_distinct(reviews))


def _omkar_search(answer: str) -> ResultPage:
    # older answers name the ASIN only in the link and mark no advertisement
    rows = [(row, clean(row.get("link"))) for row in _rows(_data(answer), "results")]
    tiles = tuple(
        _tile(
            row,
            asin=row.get("asin") or "".join(_LINKED_ASIN.findall(link)[:1]),
            title=row.get("title"),
            stars=row.get("rating"),
            ratings=row.get("reviews"),
            price=row.get("price"),
        )
        for row, link in rows
        if "/sspa/" not in link
    )
    return ResultPage(tiles, more=bool(tiles))


def _omkar_reviews(answer: str) -> ProductPage:
    data = _data(answer)
    rows = _rows(data, "top_reviews" if "top_reviews" in data else "results", required=False)
    bullets = as_list(data.get("key_features") or data.get("features"))
    brand = as_dict(data.get("product_details")).get("Brand")
    reviews = (
        _review(
            row,
            shopper(row.get("reviewer_id"), row.get("reviewer_name")),
            text=row.get("review_text"),
            stars=row.get("rating"),
            helpful=row.get("helpful_votes"),
        )
        for row in rows
    )
    return ProductPage(
        title=one_line(clean(data.get("product_name") or data.get("title"))),
        bullets=tuple(text for bullet in bullets if (text := one_line(clean(bullet)))),
        description=clean(data.get("full_description") or data.get("description")),
        brand=brand_of(brand or data.get("brand_info")),
        stars=stars_of(data.get("rating")),
        ratings=count_of(data.get("reviews")),
        reviews=_distinct(reviews),
    )


PROVIDERS: Mapping[str, AmazonProvider] = {provider.name: provider for provider in (
    AmazonProvider(
        "html", US, paid=False, headers=lambda root, key: dict(_BROWSER),
        search=lambda query: ("/s", {"k": query}), parse_search=parse_search_page,
        reviews=lambda asin: (f"/dp/{asin}", {}), parse_reviews=parse_product_page,
    ),
    # OpenWeb Ninja's Real-Time Amazon Data, over RapidAPI or sold directly; bullets would cost a
    # second request
    AmazonProvider(
        "openwebninja", "https://real-time-amazon-data.p.rapidapi.com", paid=True,
        # RapidAPI's pair of headers, and the one of the provider's own server
        headers=lambda root, key: {
            "X-RapidAPI-Key": key, "X-RapidAPI-Host": urlsplit(root).netloc, "X-API-Key": key,
        },
        search=lambda query: ("/search", {"query": query, "country": "US"}),
        parse_search=_ninja_search,
        reviews=lambda asin: ("/top-product-reviews", {"asin": asin, "country": "US"}),
        parse_reviews=_ninja_reviews,
    ),
    # omkar.cloud's Amazon Scraper API
    AmazonProvider(
        "omkar", "https://amazon-scraper-api.omkar.cloud", paid=True,
        headers=lambda root, key: {"API-Key": key},
        search=lambda query: ("/amazon/search", {"query": query, "country_code": "US"}),
        parse_search=_omkar_search,
        reviews=lambda asin: ("/amazon/product-details", {"asin": asin, "country_code": "US"}),
        parse_reviews=_omkar_reviews,
    ),
)}  # fmt: skip


def _data(answer: str) -> dict[str, Any]:
    try:
        payload = json.loads(answer)
    except (ValueError, RecursionError) as error:
        raise Broken(NAME, "an answer that is not JSON") from error
    if not isinstance(payload, dict) or not payload:
        raise Broken(NAME, "an answer that is not an object, or an empty one")
    failed = payload.get("success") is False or str(payload.get("status")).upper() == "ERROR"
    if failed or payload.get("error"):
        report = as_dict(payload.get("error")) or payload
        names = ("code", "status_code", "status")
        code = next((report[name] for name in names if name in report), 0)
        status = int(code) if re.fullmatch(r"\d{3}", str(code)) else 0
        raise Complaint(status, json.dumps(payload))
    data = payload.get("data", payload)
    if not isinstance(data, dict):
        raise Broken(NAME, "an answer without data")
    return data


def _rows(data: Mapping[str, Any], name: str, *, required: bool = True) -> list[dict[str, Any]]:
    rows = data.get(name)
    if rows is None and not required:
        return []
    if not isinstance(rows, list):
        raise Broken(NAME, f"an answer without `{name}`")
    return [row if isinstance(row, dict) else {} for row in rows]


def _tile(
    row: Mapping[str, Any], *, asin: object, title: object, stars: object, ratings: object,
    price: object,
) -> Tile | None:  # fmt: skip
    known, text = asin_of(asin), visible_text(one_line(clean(title)))
    if not known or not text:
        return None
    brand, cost = row.get("brand") or row.get("product_brand"), price_of(price, row.get("currency"))
    return Tile(known, text, stars_of(stars), count_of(ratings), cost, brand_of(brand))


def _review(row: Mapping[str, Any], author: str | None, *, text: object, stars: object, helpful: object) -> Comment:
    """One review; every provider names id, title and date alike."""
    return Comment(
        id=clean(row.get("review_id")),
        body="\n".join(filter(None, (review_title(row.get("review_title")), review_body(text)))),
        author=author,
        created_at=day_of(row.get("review_date")),
        engagement={"stars": stars_of(stars), "helpful": count_of(helpful)},
    )


def _distinct(reviews: Iterable[Comment]) -> tuple[Comment, ...]:
    listed = list(reviews)
    if listed and not any(review.id for review in listed):
        raise Broken(NAME, "reviews without the fields of a review")
    usable = (review for review in listed if review.id and visible_text(review.body))
    return tuple({review.id: review for review in usable}.values())


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
        """Raises `NotConfigured` for a key that a header cannot carry; asks nothing."""
        self._provider = provider = PROVIDERS[setting_value(settings, "AMAZON_PROVIDER")]
        key = setting_value(settings, "AMAZON_API_KEY") if provider.paid else ""
        if not (key.isascii() and key.isprintable()):
            raise NotConfigured(NAME, "`AMAZON_API_KEY` holds characters that no header can carry")
        root = (settings.amazon_url or provider.root).rstrip("/")
        super().__init__(settings, memory, f"{provider.name} {root}")
        self._site = site_of(root)
        self._without_reviews = f"no reviews given by `{provider.name}`" if provider.paid else SIGN_IN
        seconds = settings.provider_timeout if provider.paid else settings.source_timeout
        self._web = WebClient(
            NAME, root, seconds,
            address="AMAZON_URL", headers=provider.headers(root, key), wall=block_path,
        )  # fmt: skip

    async def fetch(self, plan: FetchPlan) -> Batch:
        """Search products; quotes mean nothing to Amazon."""
        return await self._paged.take(plan)

    async def _with_comments_of(self, items: Sequence[Item]) -> Commented:
        doubts = (*SILENCES, Blocked)
        read = await read_each(items, self._commented, stops=self.stops, doubts=doubts, what="reviews")
        notes = {note for item in read.items for note in item.notes}
        missing = [note for note in (NO_REVIEWS, self._without_reviews) if note in notes]
        return replace(read, notes=(*read.notes, *missing))

    async def with_best_comments(self, item: Item) -> None:
        """Return None: a review is always about the product it belongs to."""

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
        path, params = self._provider.search(clean_query(plan.query))
        request = path, {**params, "page": str(number)}
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
        request = self._provider.reviews(item.id)
        product = await self._parsed(request, self._provider.parse_reviews)
        full = with_product(item, product, self._max_comments, self._site)
        if full.comments:
            return full
        return with_note(full, NO_REVIEWS if full.engagement["ratings"] == 0 else self._without_reviews)

    async def _parsed(self, request: Request, parse: Callable[[str], R]) -> R:
        reply = await self._web.get(*request)
        try:
            return parse(self._checked(reply))
        except Complaint as complaint:
            raise _failure(complaint.status or 200, complaint.words, reply.wait) from complaint

    def _checked(self, reply: Reply) -> str:
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
