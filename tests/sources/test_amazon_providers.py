"""The paid providers: what they ask and how their answers read."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from api.errors import Broken
from api.sources.amazon import PROVIDERS, Complaint

NINJA, OMKAR, HTML = PROVIDERS["openwebninja"], PROVIDERS["omkar"], PROVIDERS["html"]
ASIN = "B0TESTAAA1"
DEEP = "[" * 100_000


def test_what_is_asked() -> None:
    """Path and parameters of each provider."""
    asked = [provider.search("mug") for provider in (HTML, NINJA, OMKAR)]

    assert [path for path, _ in asked] == ["/s", "/search", "/amazon/search"]
    assert all("mug" in params.values() for _, params in asked)
    assert HTML.reviews(ASIN) == (f"/dp/{ASIN}", {})
    assert NINJA.reviews(ASIN)[1]["asin"] == OMKAR.reviews(ASIN)[1]["asin"] == ASIN
    assert OMKAR.reviews(ASIN)[0] == "/amazon/product-details"


def test_where_the_key_goes() -> None:
    """In headers only, under the names the provider reads."""
    assert OMKAR.headers(OMKAR.root, "k") == {"API-Key": "k"}
    ninja = NINJA.headers("https://proxy.example:8443/amazon", "k")
    assert ninja["X-RapidAPI-Key"] == "k"
    assert ninja["X-RapidAPI-Host"] == "proxy.example:8443"
    assert "k" not in HTML.headers(HTML.root, "k").values()


def test_ninja_search() -> None:
    """Numbers that arrive as strings, a product without title, something that is no product."""
    product = {
        "asin": ASIN,
        "product_title": "Mug &amp; Lid &amp;lt;",
        "product_star_rating": "4.5",
        "product_num_ratings": 1234,
        "product_price": "$9.99",
    }
    rows = [product, {"asin": "B0TESTAAA2", "product_title": None}, "x"]

    found = NINJA.parse_search(json.dumps({"status": "OK", "data": {"products": rows}}))

    first = found.tiles[0]
    assert first is not None
    assert first.title == "Mug & Lid &lt;"
    assert (first.asin, first.stars, first.ratings, first.price) == (ASIN, 4.5, 1234, "$9.99")
    assert found.tiles[1:] == (None, None)
    assert found.more


def test_ninja_reviews() -> None:
    """Published field names, votes in words."""
    row = {
        "review_id": "R1TESTAAAA",
        "review_title": "Good &amp; cheap",
        "review_comment": "Keeps &#39;warm&#39;.",
        "review_star_rating": "5",
        "review_author": "Jo",
        "review_date": "Reviewed in the United States on November 12, 2025",
        "helpful_vote_statement": "3 people found this helpful",
    }

    product = NINJA.parse_reviews(json.dumps({"status": "OK", "data": {"reviews": [row, {}]}}))

    (first,) = product.reviews
    assert (first.id, first.body) == ("R1TESTAAAA", "Good & cheap\nKeeps 'warm'.")
    assert first.engagement == {"stars": 5.0, "helpful": 3}
    assert first.created_at == datetime(2025, 11, 12, tzinfo=UTC)


def test_omkar_search_old_and_new() -> None:
    """The ASIN may stand only in the link; sponsored links are skipped, lists no product."""
    new = {
        "title": "Mug",
        "price": 9.5,
        "rating": 4.1,
        "reviews": 7,
        "asin": ASIN,
        "currency": "USD",
    }
    links = [
        "https://www.amazon.com/Mug/dp/B0TESTAAA2/ref=sr_1_3?from=/dp/B0TESTAAA9",
        "https://www.amazon.com/sspa/click?url=%2Fdp%2FB0TESTAAA3",
        "https://www.amazon.com/gp/bestsellers/kitchen/123",
    ]
    old = [{"title": "Mug", "price": 0, "rating": 0, "reviews": 0, "link": link} for link in links]

    tiles = OMKAR.parse_search(json.dumps({"results": [new]})).tiles
    older = OMKAR.parse_search(json.dumps({"data": {"results": old}, "error": None})).tiles

    assert tiles[0] is not None
    assert (tiles[0].price, tiles[0].stars, tiles[0].ratings) == ("$9.50", 4.1, 7)
    assert [each.asin if each else None for each in older] == ["B0TESTAAA2", None]
    assert older[0] is not None
    assert (older[0].stars, older[0].ratings, older[0].price) == (None, 0, "")


def test_omkar_product() -> None:
    """Bullets, brand and top reviews of one answer; the plain list reads the same."""
    row = {
        "review_id": "R1TESTAAAA",
        "review_title": "Good",
        "review_text": "Warm.",
        "rating": 5,
        "review_date": "Reviewed in the United States on December 1, 2025",
        "helpful_votes": 32,
        "reviewer_name": "Jo",
    }
    details = {
        "product_name": "Brava Mug 350",
        "key_features": ["Steel ", None],
        "product_details": {"Brand": "Brava"},
        "rating": 4.7,
        "reviews": 1167,
        "top_reviews": [row],
    }

    product = OMKAR.parse_reviews(json.dumps(details))
    listed = OMKAR.parse_reviews(json.dumps({"results": [row]}))

    assert (product.title, product.brand) == ("Brava Mug 350", "Brava")
    assert product.bullets == ("Steel",)
    assert (product.stars, product.ratings) == (4.7, 1167)
    assert product.reviews == listed.reviews
    assert product.reviews[0].engagement == {"helpful": 32, "stars": 5.0}


@pytest.mark.parametrize("provider", [NINJA, OMKAR], ids=["openwebninja", "omkar"])
def test_reviews_nobody_understands_are_broken(provider: object) -> None:
    """Entries without the fields that are read are no missing reviews."""
    assert isinstance(provider, type(NINJA) | type(OMKAR))
    strange = [{"uid": 1, "words": "yes"}, {"uid": 2}]

    with pytest.raises(Broken):
        provider.parse_reviews(json.dumps({"data": {"reviews": strange, "top_reviews": strange}}))
    with pytest.raises(Broken):
        provider.parse_reviews("{}")


@pytest.mark.parametrize("provider", [NINJA, OMKAR], ids=["openwebninja", "omkar"])
def test_reviews_that_are_null(provider: object) -> None:
    """No reviews is an answer, not a failure."""
    assert isinstance(provider, type(NINJA) | type(OMKAR))
    null = {"reviews": None, "top_reviews": None}

    assert provider.parse_reviews(json.dumps({"data": null})).reviews == ()


@pytest.mark.parametrize(
    "answer",
    ["", "[]", "null", "<html>", '{"data": 3}', '{"data": {}}', '{"data": {"products": 3}}', DEEP],
)
def test_answers_that_are_none(answer: str) -> None:
    """Whatever is not the promised object is Broken, never a crash."""
    for provider in (NINJA, OMKAR):
        with pytest.raises(Broken):
            provider.parse_search(answer)


@pytest.mark.parametrize(
    ("payload", "status"),
    [
        ({"success": False}, 0),
        ({"status": "ERROR", "error": {"message": "x", "code": 429}}, 429),
        ({"status": "error"}, 0),
        ({"error": "bad key", "status_code": "401"}, 401),
    ],
)
def test_failures_inside_the_answer(payload: object, status: int) -> None:
    """A 200 that says it failed is a complaint with the status it names."""
    with pytest.raises(Complaint) as caught:
        NINJA.parse_search(json.dumps(payload))

    assert caught.value.status == status
