"""Reading Amazon's pages: tiles, products, reviews in both markups, pages in the way."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from api.errors import Broken
from api.sources.amazon_pages import block_path, block_reason, parse_product_page, parse_search_page
from api.sources.markup import is_too_deep
from tests.sources.amazon_site import product_page, result_page, review, tile

ASIN = "B0TESTAAA1"


def _one_tile(html: str) -> object:
    found = parse_search_page(result_page(html))
    return found.tiles[0]


def test_a_tile_gives_its_exact_count() -> None:
    """The label's 1,234 wins over the visible 1.2K; title, stars and price come along."""
    found = parse_search_page(result_page(tile(ASIN, "Mug &amp; Lid"), following=True))

    assert found.more
    (first,) = found.tiles
    assert first is not None
    assert (first.asin, first.title, first.stars) == (ASIN, "Mug & Lid", 4.5)
    assert (first.ratings, first.price, first.brand) == (1234, "$159.00", None)


def test_a_tile_without_label_gives_the_rounded_count() -> None:
    """84.7K is 84,700 when nothing better is there."""
    html = tile(ASIN).replace('aria-label="1,234 ratings"', "").replace("(1.2K)", "(84.7K)")

    first = _one_tile(html)

    assert getattr(first, "ratings", None) == 84_700


@pytest.mark.parametrize(
    "price",
    [
        '<a class="s-underline-text"><span class="a-price"><span class="a-offscreen">$18.99</span></span></a>',
        '<a class="s-underline-text">￥15,592</a>',
        '<a class="s-underline-text">(18+ used &amp; new offers)</a>',
        '<a class="s-underline-text" aria-label="+18 other colors/patterns">+18</a> 18',
    ],
    ids=["us", "jp", "offers", "colors"],
)
def test_what_is_no_count_is_not_read_as_one(price: str) -> None:
    """A tile without ratings does not take its price, offers or colours for their number."""
    html = f"""<div data-component-type="s-search-result" data-asin="{ASIN}">
      <h2>New Mug</h2>{price}</div>"""

    first = _one_tile(html)

    assert (getattr(first, "title", ""), getattr(first, "ratings", 0)) == ("New Mug", None)


@pytest.mark.parametrize(
    ("label", "stars", "count"),
    [
        ("84.753 valoraciones", "4,5 de 5 estrellas", 84_753),
        ("84.753 Bewertungen", "4,5 von 5 Sternen", 84_753),
        ("84,753件の評価", "5つ星のうち4.5", 84_753),
        ("1,23,456 ratings", "4.5 out of 5 stars", 123_456),
    ],
)
def test_tiles_of_other_marketplaces(label: str, stars: str, count: int) -> None:
    """Stars and their number are read in the language of the shop."""
    html = tile(ASIN).replace("1,234 ratings", label).replace("4.5 out of 5 stars", stars)

    first = _one_tile(html)

    assert (getattr(first, "stars", None), getattr(first, "ratings", None)) == (4.5, count)


def test_an_unrated_tile_knows_nothing() -> None:
    """Missing rating, count and price are None, None and nothing, not zero."""
    html = f"""<div data-component-type="s-search-result" data-asin="{ASIN}">
      <h2>New Mug</h2></div>"""

    first = _one_tile(html)

    assert getattr(first, "title", "") == "New Mug"
    assert (getattr(first, "stars", 0), getattr(first, "ratings", 0)) == (None, None)
    assert getattr(first, "price", None) == ""


@pytest.mark.parametrize(
    "advertisement",
    [
        tile(ASIN, mark="AdHolder"),
        tile(ASIN, "Sponsored Ad - Mug"),
        tile(ASIN, extra='<a href="/sspa/click?ie=UTF8">x</a>'),
        tile(""),
    ],
    ids=["class", "label", "link", "empty asin"],
)
def test_advertisements_and_empty_tiles_are_no_results(advertisement: str) -> None:
    """Each of the three marks, and an empty ASIN, skips the tile without leaving a slot."""
    found = parse_search_page(result_page(advertisement, tile("B0TESTAAA2")))

    assert [each.asin for each in found.tiles if each] == ["B0TESTAAA2"]
    assert len(found.tiles) == 1


def test_fashion_has_brand_and_title() -> None:
    """Of two headings the first is the brand and the linked one the title."""
    html = f"""<div data-component-type="s-search-result" data-asin="{ASIN}">
      <div data-cy="title-recipe"><h2>Nordlys</h2><a href="#"><h2>Wool Hat</h2></a></div></div>"""

    first = _one_tile(html)

    assert (getattr(first, "title", ""), getattr(first, "brand", "")) == ("Wool Hat", "Nordlys")


def test_a_badge_heading_is_no_title() -> None:
    """A second heading outside the title block (a certificate) changes nothing."""
    first = _one_tile(tile(ASIN, extra="<h2>Climate badge</h2>"))

    assert (getattr(first, "title", ""), getattr(first, "brand", "")) == ("Brava Mug", None)


def test_a_tile_without_title_keeps_its_slot() -> None:
    """The source counted it, we cannot use it."""
    html = f'<div data-component-type="s-search-result" data-asin="{ASIN}"></div>'

    assert _one_tile(html) is None


@pytest.mark.parametrize(
    "words",
    [
        "No results for zzz.",
        "zzz did not match any products.",
        "Keine Ergebnisse für zzz.",
        "No hay resultados para zzz.",
        "zzz に一致する商品はありませんでした。",
    ],
)
def test_an_empty_shelf_says_so(words: str) -> None:
    """Only these words make a page without tiles an empty result."""
    found = parse_search_page(f"<html><body><p>{words}</p></body></html>")

    assert (found.tiles, found.more) == ((), False)


def test_words_in_a_script_do_not_make_an_empty_shelf() -> None:
    """A page without tiles that says nothing to a reader is no result page."""
    for html in ("<body><script>'No results for'</script></body>", ""):
        with pytest.raises(Broken):
            parse_search_page(html)


def test_tiles_without_ids_are_a_broken_page() -> None:
    """Results are there and none can be named: that is no empty result, which would be remembered."""
    with pytest.raises(Broken, match="results without the ids of products"):
        parse_search_page(result_page(tile(ASIN).replace("data-asin", "data-id")))


def test_product_page() -> None:
    """Title, brand, bullets, rating; hidden bullets are left out."""
    extra = """<span id="acrPopover"><span class="a-icon-alt">4.2 out of 5 stars</span></span>
      <span id="acrCustomerReviewText">(226)</span>"""
    bullets = '<li>Steel  inside</li><li class="aok-hidden">no</li><li> </li>'

    product = parse_product_page(product_page(extra, bullets=bullets))

    assert (product.title, product.brand) == ("Brava Mug", "Brava")
    assert product.bullets == ("Steel inside",)
    assert (product.stars, product.ratings) == (4.2, 226)


@pytest.mark.parametrize(
    ("head", "title"),
    [
        ('<span id="ebooksTitle">Tides</span>', "Tides"),
        ("<title>Tides - Kindle edition by Doe, Jo. Books @ Amazon.com.</title>", "Tides"),
        ("<title>Amazon.com: Tides : Books</title>", "Tides : Books"),
    ],
)
def test_titles_of_kindle_pages(head: str, title: str) -> None:
    """Without `#productTitle` the e-book's heading or the page's own title stands in."""
    product = parse_product_page(f'<html><head>{head}</head><body><div id="dp"></div></body></html>')

    assert product.title == title


def test_review_in_the_new_markup() -> None:
    """Text without the screen reader's words, line breaks kept, votes in words, a day in UTC."""
    product = parse_product_page(product_page(review("R1TESTAAAA")))

    (first,) = product.reviews
    assert (first.id, first.body) == (
        "R1TESTAAAA", "Keeps coffee hot\nStill warm\nafter lunch."
    )  # fmt: skip
    assert first.engagement == {"stars": 4.0, "helpful": 1}
    assert first.created_at == datetime(2026, 7, 30, tzinfo=UTC)
    assert first.author is not None
    assert first.author.startswith("shopper-")
    assert "Jo" not in first.author


def test_review_in_the_old_markup() -> None:
    """The stars before the title go, as does "Read more"; a foreign rating hook is read."""
    html = """<div data-hook="review" id="R2TESTAAAA"><span class="a-profile-name">Jo</span>
      <a data-hook="review-title"><i data-hook="cmps-review-star-rating">
      <span class="a-icon-alt">5.0 out of 5 stars</span></i> <span>Solid story</span></a>
      <span data-hook="review-date">Reviewed in Canada on October 29, 2023</span>
      <span data-hook="review-body"><div data-hook="review-collapsed">
      <span class="cr-original-review-content">Bello.</span>
      <span class="cr-translated-review-content aok-hidden">Nice.</span></div>
      <a>Read more</a></span></div>"""

    product = parse_product_page(html)

    (first,) = product.reviews
    assert first.body == "Solid story\nBello."
    assert first.engagement == {"stars": 5.0, "helpful": 0}
    assert first.created_at == datetime(2023, 10, 29, tzinfo=UTC)


def test_review_text_without_its_own_container() -> None:
    """When only the outer container is there, its first sentence is not the buyer's."""
    html = review("R1TESTAAAA").replace("reviewRichContentContainer", "gone")

    product = parse_product_page(html)

    assert product.reviews[0].body == "Keeps coffee hot\nStill warm\nafter lunch."


def test_reviews_are_distinct_and_identified() -> None:
    """The same review twice is one; one without a usable id or any words is none."""
    empty = review("R3TESTAAAA", title="", text="")
    html = product_page(review("R1TESTAAAA"), review("R1TESTAAAA"), review("<x>"), empty)

    product = parse_product_page(html)

    assert [each.id for each in product.reviews] == ["R1TESTAAAA"]


@pytest.mark.parametrize(
    ("html", "why"),
    [
        ('<form action="/errors/validateCaptcha"></form>', "captcha page"),
        ("<p>Enter the characters you see below</p>", "captcha page"),
        ("<title>Robot Check</title>", "captcha page"),
        ('<img id="auth-captcha-image" src="x">', "captcha page"),
        ('<form action="/ap/cvf/verify"></form>', "captcha page"),
        ("<script>AwsWafIntegration.getToken()</script>", "bot challenge"),
        ('<a href="/ref=cs_503_logo"></a>', "throttle page"),
        ('<form name="signIn"></form>', "sign-in page"),
        ("<!-- To discuss automated access to Amazon data -->", "block page"),
    ],
)
def test_pages_in_the_way(html: str, why: str) -> None:
    """Each known page is named; the same marks beside data (a review quoting them) are not one."""
    assert block_reason(200, html) == why
    assert block_reason(200, html + product_page()) is None


def test_a_challenge_needs_no_words() -> None:
    """Status 202 without data is the challenge, whatever the page says."""
    assert block_reason(202, "<html></html>") == "bot challenge"
    assert block_reason(200, result_page(tile(ASIN))) is None


@pytest.mark.parametrize("html", ["<div>" * 20_000, "<div><UL>" * 600, "<section></b>" * 1_001, "<div></ul>" * 1_001])
def test_a_page_may_be_too_deep(html: str) -> None:
    """What nests so far that parsing it would take seconds is known beforehand."""
    assert is_too_deep(html)


def test_real_pages_are_not_too_deep() -> None:
    """Many boxes beside each other, or left open by a slip, are no trouble."""
    assert not is_too_deep("<div><ul></ul></div>" * 5_000)
    assert not is_too_deep("</div>" * 5_000 + "<div>" * 900)


def test_redirects_that_block() -> None:
    """Sign-in and captcha are known by their path."""
    assert block_path("/ap/signin") == "sign-in page"
    assert block_path("/-/es/ap/signin") == "sign-in page"
    assert block_path("/errors/validateCaptcha") == "captcha page"
    assert block_path("/ap/cvf/request") == "captcha page"
    assert block_path("/dp/B0TESTAAA1") is None
