"""Who answers for Amazon: its own pages, or a paid provider, as one table of `PROVIDERS`.

A provider says what to ask and reads what comes back; it sends nothing. `html` is Amazon itself,
`omkar` is built on recorded answers, `openwebninja` on its published field names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from api.core.text import clean, one_line, unescape
from api.errors import Broken
from api.sources.amazon_fields import (
    NAME,
    US,
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
from api.sources.item_fields import as_dict, as_list, visible_text

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


@dataclass(frozen=True, slots=True)
class ProviderRequest:
    """A GET below the provider's root."""

    path: str
    params: Mapping[str, str]


class Complaint(Exception):
    """A provider's answer says that it failed; `status` as in HTTP, 0 when it does not say.

    `words` are the provider's: read for their meaning, never shown.
    """

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
    """Its value of `AMAZON_PROVIDER`."""
    root: str
    """Its server when `AMAZON_URL` is not set."""
    paid: bool
    """It needs a key, and each request costs."""
    headers: Callable[[str, str], dict[str, str]]
    """`headers(root, key)` of each request."""
    search_request: Callable[[str, int], ProviderRequest]
    """`search_request(query, page)`, pages from 1."""
    parse_search: Callable[[str], ResultPage]
    reviews_request: Callable[[str], ProviderRequest]
    """`reviews_request(asin)`: reviews, and bullets where one request gives both."""
    parse_reviews: Callable[[str], ProductPage]


def _html_search(answer: str) -> ResultPage:
    page = parse_search_page(answer)
    if page is None:  # a page without results says so
        raise Broken(NAME, "a result page without results that does not say so")
    return page


def _html_reviews(answer: str) -> ProductPage:
    product = parse_product_page(answer)
    if product is None:
        raise Broken(NAME, "a product page without a product")
    return product


def _ninja_headers(root: str, key: str) -> dict[str, str]:
    # RapidAPI's pair of headers, and the one of the provider's own server
    return {"X-RapidAPI-Key": key, "X-RapidAPI-Host": urlsplit(root).netloc, "X-API-Key": key}


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
    """Product details, or the plain list of top reviews."""
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


PROVIDERS: Mapping[str, AmazonProvider] = {
    provider.name: provider
    for provider in (
        AmazonProvider(
            "html",
            US,
            paid=False,
            headers=lambda root, key: dict(_BROWSER),
            search_request=lambda query, page: ProviderRequest(
                "/s", {"k": query, "page": str(page)}
            ),
            parse_search=_html_search,
            reviews_request=lambda asin: ProviderRequest(f"/dp/{asin}", {}),
            parse_reviews=_html_reviews,
        ),
        # OpenWeb Ninja's Real-Time Amazon Data, over RapidAPI or sold directly; bullets would cost
        # a second request
        AmazonProvider(
            "openwebninja",
            "https://real-time-amazon-data.p.rapidapi.com",
            paid=True,
            headers=_ninja_headers,
            search_request=lambda query, page: ProviderRequest(
                "/search", {"query": query, "page": str(page), "country": "US"}
            ),
            parse_search=_ninja_search,
            reviews_request=lambda asin: ProviderRequest(
                "/top-product-reviews", {"asin": asin, "country": "US"}
            ),
            parse_reviews=_ninja_reviews,
        ),
        # omkar.cloud's Amazon Scraper API
        AmazonProvider(
            "omkar",
            "https://amazon-scraper-api.omkar.cloud",
            paid=True,
            headers=lambda root, key: {"API-Key": key},
            search_request=lambda query, page: ProviderRequest(
                "/amazon/search", {"query": query, "page": str(page), "country_code": "US"}
            ),
            parse_search=_omkar_search,
            reviews_request=lambda asin: ProviderRequest(
                "/amazon/product-details", {"asin": asin, "country_code": "US"}
            ),
            parse_reviews=_omkar_reviews,
        ),
    )
}


def _data(answer: str) -> dict[str, Any]:
    """The part of the answer that holds the data, unless it reports a failure."""
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
    """A list of objects; anything else in it counts as an empty one."""
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
    """One result, or None when it names no product."""
    known, text = asin_of(asin), visible_text(one_line(clean(title)))
    if not known or not text:
        return None
    brand, cost = row.get("brand") or row.get("product_brand"), price_of(price, row.get("currency"))
    return Tile(known, text, stars_of(stars), count_of(ratings), cost, brand_of(brand))


def _review(
    row: Mapping[str, Any], author: str | None, *, text: object, stars: object, helpful: object
) -> Review:
    """One review; id, title and date have the same names with every provider."""
    return Review(
        clean(row.get("review_id")),
        review_title(row.get("review_title")),
        review_body(text),
        author,
        stars=stars_of(stars),
        helpful=count_of(helpful),
        written=day_of(row.get("review_date")),
    )


def _distinct(reviews: Iterable[Review]) -> tuple[Review, ...]:
    """Reviews that can be cited and say something, each once."""
    listed = list(reviews)
    if listed and not any(review.id for review in listed):
        raise Broken(NAME, "reviews without the fields of a review")
    usable = (review for review in listed if review.id and visible_text(review.title + review.body))
    return tuple({review.id: review for review in usable}.values())
