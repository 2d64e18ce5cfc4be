"""Every recorded Amazon answer through the real client: what each gives, file by file."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from api.core.domain import FetchPlan
from api.core.items import Comment, Item
from api.errors import SourceError
from api.settings import SourceSettings
from api.sources import SOURCES
from tests.replay import MISSING, UPSTREAM, replay

RECORDED = UPSTREAM / "amazon"
pytestmark = pytest.mark.skipif(not RECORDED.is_dir(), reason=MISSING)
EVERYTHING = FetchPlan("anything", 100)


@dataclass(frozen=True)
class Searched:
    """What one recorded result page gives."""

    provider: str
    entries: int
    """As the source counts: advertisements left out."""
    items: int
    rated: int
    """Items with stars, count and price in their text."""
    path: str = "/s"


@dataclass(frozen=True)
class Read:
    """What one recorded product gives."""

    provider: str
    comments: int
    helpful: int
    """Comments that somebody found helpful."""
    lines: int
    """Lines of the body, bullets each."""
    brand: bool = True
    path: str = "/dp/"


SEARCHES = {
    "search_portable_charger_2026_excerpt.html": Searched("html", 7, 7, 7),
    "provider_omkar_search_2026.json": Searched("omkar", 1, 1, 1, "/amazon/search"),
    "provider_omkar_search_2024.json": Searched("omkar", 17, 15, 12, "/amazon/search"),
}
PRODUCTS = {
    "product_portable_charger_2026_excerpt.html": Read("html", 8, 2, 6),
    "product_kindle_edition_2023_excerpt.html": Read("html", 13, 4, 1),
    "provider_omkar_product_details_2026.json": Read("omkar", 1, 1, 10, path="/amazon/"),
    "provider_omkar_top_reviews_2026.json": Read("omkar", 1, 1, 1, brand=False, path="/amazon/"),
    "provider_omkar_product_2024.json": Read("omkar", 0, 0, 10, brand=False, path="/amazon/"),
}
FAILURES = {
    "blocked_503_dogs.html": "blocked",
    "blocked_captcha_continue_shopping.html": "blocked",
    "blocked_waf_challenge.html": "blocked",
    "signin_login_wall.html": "blocked",
}
UNUSED = {"index.json": "says how the others were answered; the replay server reads it"}


def settings(provider: str, url: str) -> SourceSettings:
    """Point the provider at the replay server."""
    return SourceSettings.model_validate({"amazon_provider": provider, "amazon_api_key": "key", "amazon_url": url})


def test_every_file_is_accounted_for() -> None:
    """A recording that no table names is a gap in this test."""
    named = {*SEARCHES, *PRODUCTS, *FAILURES, *UNUSED}

    assert {path.name for path in RECORDED.iterdir()} == named


@pytest.mark.parametrize("file", SEARCHES)
async def test_searches(file: str) -> None:
    """So many items, each with identity, title, address, and so many with their numbers."""
    expected = SEARCHES[file]
    with replay("amazon", {expected.path: file}) as site:
        source = SOURCES["amazon"].build(settings(expected.provider, site.url))
        batch = await source.fetch(FetchPlan("anything", expected.entries))
        await source.aclose()

    assert (len(batch.items), batch.full) == (expected.items, True)
    assert len(site.asked) == 1
    assert sum(map(_rated, batch.items)) == expected.rated
    assert all(item.url == f"https://www.amazon.com/dp/{item.id}" for item in batch.items)
    assert all(item.title and "Sponsored" not in item.title for item in batch.items)


def _rated(item: Item) -> bool:
    known = None not in item.engagement.values()
    return known and all(word in item.body for word in (" stars", " ratings", "$"))


@pytest.mark.parametrize("file", PRODUCTS)
async def test_products(file: str) -> None:
    """So many reviews, each complete, dated in UTC and without a name."""
    expected = PRODUCTS[file]
    tile = Item(key="amazon:B0TESTAAA1", id="B0TESTAAA1", source="amazon", title="x", body="tile")
    with replay("amazon", {expected.path: file}) as site:
        source = SOURCES["amazon"].build(settings(expected.provider, site.url))
        read = await source.comments([tile])
        await source.aclose()

    (item,) = read.items
    assert len(item.comments) == expected.comments
    assert sum(bool(comment.engagement["helpful"]) for comment in item.comments) == expected.helpful
    assert len(item.body.split("\n")) == expected.lines
    assert bool(item.place) == expected.brand
    assert bool(item.notes) == (expected.comments == 0)
    assert all(map(_complete, item.comments))


def _complete(comment: Comment) -> bool:
    starts_clean = not comment.body.startswith(("Brief", "1", "2", "3", "4", "5"))
    named = (comment.author or "").startswith("shopper-")
    dated = comment.created_at is not None and comment.created_at.utcoffset() is not None
    return bool(comment.engagement["stars"] and starts_clean and named and dated)


@pytest.mark.parametrize("file", FAILURES)
async def test_failures(file: str) -> None:
    """A page in the way is an outcome when searching and a note when reading."""
    with replay("amazon", {"/s": file}) as site:
        source = SOURCES["amazon"].build(settings("html", site.url))
        with pytest.raises(SourceError) as caught:
            await source.fetch(EVERYTHING)
        await source.aclose()

    assert caught.value.code == FAILURES[file]
