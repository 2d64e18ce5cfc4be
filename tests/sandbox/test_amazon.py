"""The sandbox's Amazon pages and providers, over httpx."""

from __future__ import annotations

import httpx
import pytest
from selectolax.lexbor import LexborHTMLParser, LexborNode

from api.sandbox.amazon_server import short_count
from api.sandbox.server import Sandbox
from api.sandbox.world import Options
from tests.sandbox.conftest import Start, amazon_row


def page(sandbox: Sandbox, path: str) -> LexborHTMLParser:
    """One page, parsed."""
    return LexborHTMLParser(httpx.get(sandbox.url + path).text)


def text(node: LexborHTMLParser | LexborNode, selector: str) -> str:
    """The text of the first match."""
    found = node.css_first(selector)
    assert found is not None, selector
    return " ".join(found.text().split())


def test_a_search_page_has_todays_markup(sandbox: Sandbox) -> None:
    """An advertisement, an empty tile to skip, titles, ratings and prices in their places."""
    tree = page(sandbox, "/s?k=glow+lamp")
    found = tree.css('[data-component-type="s-search-result"]')
    tiles = [tile for tile in found if tile.attributes["data-asin"]]
    assert len(found) == len(tiles) + 1

    adverts = [tile for tile in tiles if "AdHolder" in (tile.attributes["class"] or "")]
    assert [tile.css("h2")[-1].text().strip() for tile in adverts] == ["Glow Paint Sponsored"]
    lamp = next(t for t in tiles if t.css("h2")[-1].text() == "Glow Lamp, Portable & Foldable")
    assert [a.attributes["aria-label"] for a in lamp.css('a[aria-label$="ratings"]')] == ["1,143 ratings"]
    assert "(1.1K)" in lamp.text()
    assert text(lamp, ".a-icon-alt") == "4.3 out of 5 stars"
    assert text(lamp, ".a-price .a-offscreen") == "$49.50"
    stars = next(t for t in tiles if t.css("h2")[-1].text() == "Glow Stars for Ceilings")
    assert stars.css_first(".a-price") is None
    assert '1-2 of 2 results for "glow lamp"' in text(tree, '[data-component-type="s-result-info-bar"]')


def test_pages_hold_sixteen_and_end(start: Start) -> None:
    """Forty products are three pages; the last has no next link."""
    sandbox = start([amazon_row(n, f"Glow number{n}") for n in range(40)])
    pages = [page(sandbox, f"/s?k=glow&page={number}") for number in (1, 2, 3)]
    found = [[t.attributes["data-asin"] for t in p.css(".s-asin:not(.AdHolder)")] for p in pages]

    assert [len(asins) for asins in found] == [16, 16, 8]
    assert len({asin for asins in found for asin in asins}) == 40
    assert [bool(p.css("a.s-pagination-next")) for p in pages] == [True, True, False]


def test_nothing_found_says_so(sandbox: Sandbox) -> None:
    """A search without hits is a page of its own, not an empty one."""
    assert "No results for" in httpx.get(f"{sandbox.url}/s?k=zzzz").text


def test_a_product_page_holds_new_and_old_reviews(sandbox: Sandbox) -> None:
    """Bullets, histogram, a review in the new markup with its prefix, a foreign one in the old."""
    asin = next(post.id for post in sandbox.world.posts if post.title.startswith("Glow Lamp, P"))
    tree = page(sandbox, f"/dp/{asin}")

    assert text(tree, "#productTitle") == "Glow Lamp, Portable & Foldable"
    assert text(tree, "#acrCustomerReviewText") == "(1,143)"
    bullets = [" ".join(li.text().split()) for li in tree.css("#feature-bullets li")]
    assert bullets == ["Lights up", "Folds"]
    shares = [bar.attributes["aria-label"] or "" for bar in tree.css("#histogramTable a")]
    assert sum(int(share.split()[0]) for share in shares) == 100
    new, old = tree.css("[data-hook=review]")
    assert text(new, "[data-hook=reviewText]").startswith("Brief content visible, double tap")
    assert text(new, "[data-hook=reviewTitle]") == "Bright"
    assert text(old, "[data-hook=review-body]") == "Gutes Licht."
    assert text(old, "[data-hook=cmps-review-star-rating]") == "4.0 out of 5 stars"
    assert "Reviewed in Germany on " in text(old, "[data-hook=review-date]")


def test_all_reviews_are_behind_a_sign_in(sandbox: Sandbox) -> None:
    """`/product-reviews/` redirects to the sign-in page, and an unknown product is a 404."""
    asin = sandbox.world.of("amazon")[0].id
    answer = httpx.get(f"{sandbox.url}/product-reviews/{asin}", follow_redirects=True)

    assert answer.url.path == "/ap/signin"
    assert "Amazon Sign-In" in answer.text
    assert httpx.get(f"{sandbox.url}/dp/B000000000").status_code == 404


@pytest.mark.parametrize(
    ("kind", "status", "mark"),
    [
        ("dogs", 503, "ref=cs_503_"),
        ("captcha", 200, "/errors/validateCaptcha"),
        ("waf", 202, "awswaf"),
        ("signin", 302, ""),
        ("empty", 200, "a-page"),
        ("500", 500, ""),
    ],
)
def test_faults_look_like_amazons(start: Start, kind: str, status: int, mark: str) -> None:
    """Each way of saying no has its status and its mark."""
    answer = httpx.get(f"{start(faults=[f'amazon={kind}']).url}/s?k=glow")

    assert answer.status_code == status
    assert mark in answer.text


def test_openweb_ninja_sends_texts(sandbox: Sandbox) -> None:
    """Its ratings and prices are texts, its reviews have their own names, its key is checked."""
    url, key = sandbox.url, {"x-api-key": "k"}
    body = httpx.get(f"{url}/search?query=glow+lamp", headers=key).json()
    found = {p["product_title"]: p for p in body["data"]["products"]}
    lamp = found["Glow Lamp, Portable & Foldable"]
    asked = httpx.get(f"{url}/top-product-reviews?asin={lamp['asin']}", headers=key).json()
    details = httpx.get(f"{url}/product-details?asin={lamp['asin']}", headers=key).json()

    assert (lamp["product_star_rating"], lamp["product_price"]) == ("4.3", "$49.50")
    assert found["Glow Stars for Ceilings"]["product_star_rating"] is None
    assert [r["review_comment"] for r in asked["data"]["reviews"]][1] == "Gutes Licht."
    assert details["data"]["about_product"] == ["Lights up", "Folds"]
    assert httpx.get(f"{url}/search?query=glow").status_code == 401


def test_omkar_sends_numbers(start: Start) -> None:
    """Its ratings and prices are numbers; a wrong key, an unknown product and a fault are told."""
    sandbox = start(options=Options(amazon_key="right"))
    url, key = f"{sandbox.url}/amazon", {"API-Key": "right"}
    found = httpx.get(f"{url}/search?query=glow+lamp", headers=key).json()["results"]
    lamp = next(p for p in found if p["title"].startswith("Glow Lamp, P"))
    reviews = httpx.get(f"{url}/product-reviews/top?asin={lamp['asin']}", headers=key).json()
    details = httpx.get(f"{url}/product-details?asin={lamp['asin']}", headers=key).json()

    assert (lamp["rating"], lamp["price"], lamp["reviews"]) == (4.3, 49.5, 1143)
    assert reviews["results"][0]["review_text"] == "Lights the desk.\nLasts."
    assert details["key_features"] == ["Lights up", "Folds"]
    assert httpx.get(f"{url}/search?query=x", headers={"API-Key": "no"}).status_code == 401
    assert httpx.get(f"{url}/product-details?asin=B0", headers=key).status_code == 404
    sandbox.fault("amazon=captcha")
    assert httpx.get(f"{url}/search?query=glow", headers=key).json()["status"] == "ERROR"


@pytest.mark.parametrize(
    ("count", "shown"),
    [(7, "7"), (999, "999"), (1143, "1.1K"), (84_700, "84.7K"), (2_000_000, "2M")],
)
def test_counts_are_shortened(count: int, shown: str) -> None:
    """Large counts are shown rounded."""
    assert short_count(count) == shown
