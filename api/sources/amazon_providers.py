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

from api.errors import Broken
from api.services.text import clean, one_line
from api.sources.amazon_fields import (
    Found,
    Product,
    Review,
    Tile,
    asin_of,
    brand_of,
    count_of,
    day_of,
    price_of,
    pseudonym,
    review_body,
    review_title,
    stars_of,
)
from api.sources.amazon_pages import parse_product_page, parse_search_page

_BROWSER = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) "
    "Chrome/142.0.0.0 Safari/537.36"
)
_FIVE = frozenset("12345")
_LINKED_ASIN = re.compile(r"/(?:dp|gp/product)/([A-Z0-9]{10})(?:[/?#]|$)")


@dataclass(frozen=True, slots=True)
class Request:
    """What to ask, below the provider's root; always a GET."""

    path: str
    params: Mapping[str, str]


class Complaint(Exception):
    """A provider's answer says that it failed; `status` as in HTTP, 0 when it does not say."""

    def __init__(self, status: int, words: str) -> None:
        """`words` are the provider's: read for their meaning, never shown."""
        super().__init__(f"status {status}")
        self.status, self.words = status, words


class Provider(Protocol):
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

    def search_request(self, query: str, page: int) -> Request:
        """Ask for one result page, from 1."""
        ...

    def parse_search(self, answer: str) -> Found:
        """Read a result page.

        Raises:
            Broken: not what the provider promises.
            Complaint: the answer reports a failure.
        """
        ...

    def reviews_request(self, asin: str) -> Request:
        """Ask for what buyers say, bullets included where one request gives both."""
        ...

    def parse_reviews(self, answer: str) -> Product:
        """Read a product; raises like `parse_search`."""
        ...


@dataclass(frozen=True, slots=True)
class Html:
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

    def search_request(self, query: str, page: int) -> Request:
        """`/s?k=...&page=N`."""
        return Request("/s", {"k": query, "page": str(page)})

    def parse_search(self, answer: str) -> Found:
        """Tiles; a page without any that does not say so is no empty shelf."""
        found = parse_search_page(answer)
        if found is None:
            raise Broken("amazon", "a result page without results that does not say so")
        return found

    def reviews_request(self, asin: str) -> Request:
        """`/dp/ASIN`, which holds the top reviews."""
        return Request(f"/dp/{asin}", {})

    def parse_reviews(self, answer: str) -> Product:
        """Bullets and top reviews."""
        product = parse_product_page(answer)
        if product is None:
            raise Broken("amazon", "a product page without a product")
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

    def search_request(self, query: str, page: int) -> Request:
        """`/search`."""
        return Request("/search", {"query": query, "page": str(page), "country": "US"})

    def parse_search(self, answer: str) -> Found:
        """`data.products`; ratings and prices are strings."""
        products = _rows(_data(answer), "products")
        tiles = tuple(
            _tile(row, asin=row.get("asin"), title=row.get("product_title"), **_ninja(row))
            for row in products
        )
        return Found(tiles, more=bool(tiles))

    def reviews_request(self, asin: str) -> Request:
        """`/top-product-reviews`; bullets would cost a second request."""
        return Request("/top-product-reviews", {"asin": asin, "country": "US"})

    def parse_reviews(self, answer: str) -> Product:
        """`data.reviews`."""
        rows = _rows(_data(answer), "reviews", required=False)
        return Product(reviews=_distinct(map(_ninja_review, rows)))


@dataclass(frozen=True, slots=True)
class Omkar:
    """omkar.cloud's Amazon Scraper API."""

    name: str = "omkar"
    root: str = "https://amazon-scraper-api.omkar.cloud"
    paid: bool = True

    def headers(self, root: str, key: str) -> dict[str, str]:
        """One header."""
        return {"API-Key": key}

    def search_request(self, query: str, page: int) -> Request:
        """`/amazon/search`."""
        params = {"query": query, "page": str(page), "country_code": "US"}
        return Request("/amazon/search", params)

    def parse_search(self, answer: str) -> Found:
        """`results`; older answers name the ASIN only in the link and mark no advertisement."""
        rows = [row for row in _rows(_data(answer), "results") if "/sspa/" not in _link(row)]
        tiles = tuple(
            _tile(
                row,
                asin=row.get("asin") or _asin_in(_link(row)),
                title=row.get("title"),
                stars=row.get("rating"),
                ratings=row.get("reviews"),
                price=price_of(row.get("price"), row.get("currency")),
            )
            for row in rows
        )
        return Found(tiles, more=bool(tiles))

    def reviews_request(self, asin: str) -> Request:
        """`/amazon/product-details`: bullets and top reviews for one request."""
        return Request("/amazon/product-details", {"asin": asin, "country_code": "US"})

    def parse_reviews(self, answer: str) -> Product:
        """Product details, or the plain list of top reviews."""
        data = _data(answer)
        rows = _rows(data, "top_reviews" if "top_reviews" in data else "results", required=False)
        details, shares = data.get("product_details"), data.get("detailed_rating")
        brand = details.get("Brand") if isinstance(details, dict) else None
        return Product(
            title=one_line(clean(data.get("product_name") or data.get("title"))),
            bullets=_texts(data.get("key_features") or data.get("features")),
            description=clean(data.get("full_description") or data.get("description")),
            brand=brand_of(brand or data.get("brand_info")),
            stars=stars_of(data.get("rating")),
            ratings=count_of(data.get("reviews")),
            histogram=_histogram(shares),
            reviews=_distinct(map(_omkar_review, rows)),
        )


PROVIDERS: Mapping[str, Provider] = {
    provider.name: provider for provider in (Html(), OpenWebNinja(), Omkar())
}


def _data(answer: str) -> dict[str, Any]:
    """The part of the answer that holds the data, once it does not report a failure."""
    try:
        payload = json.loads(answer)
    except (ValueError, RecursionError) as error:
        raise Broken("amazon", "an answer that is not JSON") from error
    if not isinstance(payload, dict):
        raise Broken("amazon", "an answer that is not an object")
    failed = payload.get("success") is False or str(payload.get("status")).upper() == "ERROR"
    if failed or payload.get("error"):
        raise _complaint(payload)
    data = payload.get("data", payload)
    if not isinstance(data, dict):
        raise Broken("amazon", "an answer without data")
    return data


def _complaint(payload: Mapping[str, Any]) -> Complaint:
    inner = payload.get("error")
    told = inner if isinstance(inner, dict) else payload
    code = next((told[k] for k in ("code", "status_code", "status") if k in told), 0)
    status = int(code) if re.fullmatch(r"\d{3}", str(code)) else 0
    return Complaint(status, json.dumps(payload))


def _rows(data: Mapping[str, Any], name: str, *, required: bool = True) -> list[dict[str, Any]]:
    """A list of objects; anything in it that is none counts as an empty one."""
    rows = data.get(name)
    if rows is None and not required:
        return []
    if not isinstance(rows, list):
        raise Broken("amazon", f"an answer without `{name}`")
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
    known, text = asin_of(asin), one_line(clean(title))
    if not known or not text:
        return None
    brand = brand_of(row.get("brand") or row.get("product_brand"))
    return Tile(known, text, stars_of(stars), count_of(ratings), price, brand)


def _ninja(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "stars": row.get("product_star_rating"),
        "ratings": row.get("product_num_ratings"),
        "price": price_of(row.get("product_price"), row.get("currency")),
    }


def _ninja_review(row: Mapping[str, Any]) -> Review:
    text, stars, helpful = "review_comment", "review_star_rating", "helpful_vote_statement"
    return _review(row, text, stars, helpful, ("review_author_id", "review_author"))


def _omkar_review(row: Mapping[str, Any]) -> Review:
    return _review(row, "review_text", "rating", "helpful_votes", ("reviewer_id", "reviewer_name"))


def _review(
    row: Mapping[str, Any], text: str, stars: str, helpful: str, author: tuple[str, str]
) -> Review:
    """One review under the provider's field names; id, title and date are called the same."""
    return Review(
        clean(row.get("review_id")),
        review_title(row.get("review_title")),
        review_body(row.get(text)),
        pseudonym(row.get(author[0]), row.get(author[1])),
        stars=stars_of(row.get(stars)),
        helpful=count_of(row.get(helpful)),
        written=day_of(row.get("review_date")),
    )


def _distinct(reviews: Iterable[Review]) -> tuple[Review, ...]:
    """Reviews that can be cited and say something, each once."""
    said = (review for review in reviews if review.id and (review.title or review.body))
    return tuple({review.id: review for review in said}.values())


def _histogram(shares: object) -> dict[int, int]:
    pairs = shares.items() if isinstance(shares, dict) else ()
    counted = ((str(star), count_of(share)) for star, share in pairs)
    return {int(star): share for star, share in counted if star in _FIVE and share is not None}


def _texts(values: object) -> tuple[str, ...]:
    texts = (one_line(clean(value)) for value in values) if isinstance(values, list) else ()
    return tuple(text for text in texts if text)


def _link(row: Mapping[str, Any]) -> str:
    return clean(row.get("link"))


def _asin_in(link: str) -> str:
    match = _LINKED_ASIN.search(link)
    return match[1] if match else ""
