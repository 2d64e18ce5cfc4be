"""Who answers for Amazon: its own pages, or a paid provider, behind one small port.

A provider says what to ask and reads what comes back; it never sends anything. `html` is Amazon
itself, `omkar` is built on recorded answers, `openwebninja` on its published field names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import urlsplit

from api.core.text import clean, one_line, unescape
from api.errors import Broken
from api.sources.amazon_fields import (
    asin_of,
    brand_of,
    count_of,
    day_of,
    price_of,
    review_body,
    review_title,
    stars_of,
)
from api.sources.amazon_pages import (
    ProductPage,
    ResultPage,
    Review,
    Tile,
    parse_product_page,
    parse_search_page,
    shopper,
)
from api.sources.item_fields import entries, record, seen
from api.sources.source_specs import AMAZON_NAME

_BROWSER = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) "
    "Chrome/142.0.0.0 Safari/537.36"
)
# the ASIN in "https://www.amazon.com/x/dp/B0TESTAA00?ref=1"
_LINKED_ASIN = re.compile(r"/(?:dp|gp/product)/([A-Z0-9]{10})(?:[/?#]|$)")


@dataclass(frozen=True, slots=True)
class ProviderRequest:
    """What to ask, below the provider's root; always a GET."""

    path: str
    params: Mapping[str, str]


class Complaint(Exception):
    """A provider's answer says that it failed; `status` as in HTTP, 0 when it does not say."""

    def __init__(self, status: int, words: str) -> None:
        """`words` are the provider's: read for their meaning, never shown."""
        super().__init__(f"status {status}")
        self.status, self.words = status, words


class AmazonProvider(Protocol):
    """Says what to ask and reads the answer."""

    @property
    def name(self) -> str:
        """Its value of `AMAZON_PROVIDER`."""
        ...

    @property
    def root(self) -> str:
        """Where it lives when `AMAZON_URL` is not set."""
        ...

    @property
    def paid(self) -> bool:
        """It needs a key, and each request costs."""
        ...

    def headers(self, root: str, key: str) -> dict[str, str]:
        """What goes with each request."""
        ...

    def search_request(self, query: str, page: int) -> ProviderRequest:
        """Ask for one result page, from 1."""
        ...

    def parse_search(self, answer: str) -> ResultPage:
        """Read a result page.

        Raises:
            Broken: not what the provider promises.
            Complaint: the answer reports a failure.
        """
        ...

    def reviews_request(self, asin: str) -> ProviderRequest:
        """Ask for what buyers say, bullets included where one request gives both."""
        ...

    def parse_reviews(self, answer: str) -> ProductPage:
        """Read a product; raises like `parse_search`."""
        ...


@dataclass(frozen=True, slots=True)
class OwnPages:
    """Amazon's own pages."""

    name: str = "html"
    root: str = "https://www.amazon.com"
    paid: bool = False

    def headers(self, root: str, key: str) -> dict[str, str]:
        """What a browser sends; there is no key."""
        return {
            "User-Agent": _BROWSER,
            "Accept": "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8",
            "Accept-Language": "en-US,en;q=0.9",
        }

    def search_request(self, query: str, page: int) -> ProviderRequest:
        """`/s?k=...&page=N`."""
        return ProviderRequest("/s", {"k": query, "page": str(page)})

    def parse_search(self, answer: str) -> ResultPage:
        """Tiles; a page without any that does not say so is no empty shelf."""
        page = parse_search_page(answer)
        if page is None:
            raise Broken(AMAZON_NAME, "a result page without results that does not say so")
        return page

    def reviews_request(self, asin: str) -> ProviderRequest:
        """`/dp/ASIN`, which holds the top reviews."""
        return ProviderRequest(f"/dp/{asin}", {})

    def parse_reviews(self, answer: str) -> ProductPage:
        """Bullets and top reviews."""
        product = parse_product_page(answer)
        if product is None:
            raise Broken(AMAZON_NAME, "a product page without a product")
        return product


@dataclass(frozen=True, slots=True)
class OpenWebNinja:
    """OpenWeb Ninja's Real-Time Amazon Data, over RapidAPI or sold directly."""

    name: str = "openwebninja"
    root: str = "https://real-time-amazon-data.p.rapidapi.com"
    paid: bool = True

    def headers(self, root: str, key: str) -> dict[str, str]:
        """RapidAPI's pair of headers, and the one of the direct host."""
        host = urlsplit(root).netloc
        return {"X-RapidAPI-Key": key, "X-RapidAPI-Host": host, "X-API-Key": key}

    def search_request(self, query: str, page: int) -> ProviderRequest:
        """`/search`."""
        return ProviderRequest("/search", {"query": query, "page": str(page), "country": "US"})

    def parse_search(self, answer: str) -> ResultPage:
        """`data.products`; ratings and prices are strings."""
        tiles = tuple(
            _tile(
                row,
                asin=row.get("asin"),
                title=unescape(row.get("product_title")),
                stars=row.get("product_star_rating"),
                ratings=row.get("product_num_ratings"),
                price=price_of(row.get("product_price"), row.get("currency")),
            )
            for row in _rows(_data(answer), "products")
        )
        return ResultPage(tiles, more=bool(tiles))

    def reviews_request(self, asin: str) -> ProviderRequest:
        """`/top-product-reviews`; bullets would cost a second request."""
        return ProviderRequest("/top-product-reviews", {"asin": asin, "country": "US"})

    def parse_reviews(self, answer: str) -> ProductPage:
        """`data.reviews`."""
        reviews = (
            _review(
                row,
                shopper(row.get("review_author_id"), row.get("review_author")),
                text=row.get("review_comment"),
                stars=row.get("review_star_rating"),
                helpful=row.get("helpful_vote_statement"),
            )
            for row in map(_unescaped, _rows(_data(answer), "reviews", required=False))
        )
        return ProductPage(reviews=_distinct(reviews))


@dataclass(frozen=True, slots=True)
class Omkar:
    """omkar.cloud's Amazon Scraper API."""

    name: str = "omkar"
    root: str = "https://amazon-scraper-api.omkar.cloud"
    paid: bool = True

    def headers(self, root: str, key: str) -> dict[str, str]:
        """One header."""
        return {"API-Key": key}

    def search_request(self, query: str, page: int) -> ProviderRequest:
        """`/amazon/search`."""
        params = {"query": query, "page": str(page), "country_code": "US"}
        return ProviderRequest("/amazon/search", params)

    def parse_search(self, answer: str) -> ResultPage:
        """`results`; older answers name the ASIN only in the link and mark no advertisement."""
        rows = [(row, clean(row.get("link"))) for row in _rows(_data(answer), "results")]
        tiles = tuple(
            _tile(
                row,
                asin=row.get("asin") or "".join(_LINKED_ASIN.findall(link)[:1]),
                title=row.get("title"),
                stars=row.get("rating"),
                ratings=row.get("reviews"),
                price=price_of(row.get("price"), row.get("currency")),
            )
            for row, link in rows
            if "/sspa/" not in link
        )
        return ResultPage(tiles, more=bool(tiles))

    def reviews_request(self, asin: str) -> ProviderRequest:
        """`/amazon/product-details`: bullets and top reviews for one request."""
        return ProviderRequest("/amazon/product-details", {"asin": asin, "country_code": "US"})

    def parse_reviews(self, answer: str) -> ProductPage:
        """Product details, or the plain list of top reviews."""
        data = _data(answer)
        rows = _rows(data, "top_reviews" if "top_reviews" in data else "results", required=False)
        bullets = entries(data.get("key_features") or data.get("features"))
        brand = record(data.get("product_details")).get("Brand")
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


PROVIDERS: Mapping[str, AmazonProvider] = {
    provider.name: provider for provider in (OwnPages(), OpenWebNinja(), Omkar())
}


def _data(answer: str) -> dict[str, Any]:
    """The part of the answer that holds the data, once it does not report a failure."""
    try:
        payload = json.loads(answer)
    except (ValueError, RecursionError) as error:
        raise Broken(AMAZON_NAME, "an answer that is not JSON") from error
    if not isinstance(payload, dict) or not payload:
        raise Broken(AMAZON_NAME, "an answer that is not an object, or an empty one")
    failed = payload.get("success") is False or str(payload.get("status")).upper() == "ERROR"
    if failed or payload.get("error"):
        report = record(payload.get("error")) or payload
        code = next(
            (report[name] for name in ("code", "status_code", "status") if name in report), 0
        )
        status = int(code) if re.fullmatch(r"\d{3}", str(code)) else 0
        raise Complaint(status, json.dumps(payload))
    data = payload.get("data", payload)
    if not isinstance(data, dict):
        raise Broken(AMAZON_NAME, "an answer without data")
    return data


def _rows(data: Mapping[str, Any], name: str, *, required: bool = True) -> list[dict[str, Any]]:
    """A list of objects; anything in it that is none counts as an empty one."""
    rows = data.get(name)
    if rows is None and not required:
        return []
    if not isinstance(rows, list):
        raise Broken(AMAZON_NAME, f"an answer without `{name}`")
    return [row if isinstance(row, dict) else {} for row in rows]


def _tile(
    row: Mapping[str, Any],
    *,
    asin: object,
    title: object,
    stars: object,
    ratings: object,
    price: str,
) -> Tile | None:
    """One result, or None when it names no product."""
    known, text = asin_of(asin), seen(one_line(clean(title)))
    if not known or not text:
        return None
    brand = brand_of(row.get("brand") or row.get("product_brand"))
    return Tile(known, text, stars_of(stars), count_of(ratings), price, brand)


def _review(
    row: Mapping[str, Any], author: str | None, *, text: object, stars: object, helpful: object
) -> Review:
    """One review; id, title and date are called the same by every provider."""
    return Review(
        clean(row.get("review_id")),
        review_title(row.get("review_title")),
        review_body(text),
        author,
        stars=stars_of(stars),
        helpful=count_of(helpful),
        written=day_of(row.get("review_date")),
    )


def _unescaped(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row whose texts come escaped: `Mug &amp; Lid`."""
    return {
        name: unescape(value) if isinstance(value, str) else value for name, value in row.items()
    }


def _distinct(reviews: Iterable[Review]) -> tuple[Review, ...]:
    """Reviews that can be cited and say something, each once.

    Raises:
        Broken: there are entries, and none has the fields that are read.
    """
    listed = list(reviews)
    if listed and not any(review.id for review in listed):
        raise Broken(AMAZON_NAME, "reviews without the fields of a review")
    whole = (review for review in listed if review.id and seen(review.title + review.body))
    return tuple({review.id: review for review in whole}.values())
