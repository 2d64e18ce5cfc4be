"""Amazon's own pages: result page, product page and pages that block; and their values as items.

Selectors follow the markup of 2026; the review hooks of 2023 are still used on Kindle pages and for
foreign reviews, so both are read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from selectolax.lexbor import LexborHTMLParser, LexborNode

from api.core.items import Comment, Item
from api.core.text import clean, one_line
from api.errors import Broken
from api.sources.amazon_fields import (
    NAME,
    NONE_FOUND,
    asin_of,
    brand_of,
    count_of,
    day_of,
    price_of,
    ratings_of,
    review_body,
    review_title,
    stars_of,
)
from api.sources.item_fields import pseudonym, visible_text

# names of accounts that have none
_NO_NAMES = {"amazon customer", "kindle customer", "a customer", "anonymous"}


@dataclass(frozen=True, slots=True)
class Tile:
    """One product of a result page."""

    asin: str
    title: str
    stars: float | None = None
    ratings: int | None = None
    price: str = ""
    """As text, with its currency."""
    brand: str | None = None


@dataclass(frozen=True, slots=True)
class ResultPage:
    """One page of results."""

    tiles: tuple[Tile | None, ...]
    """In order, without advertisements; None for an entry that names no product."""
    more: bool
    """A next page exists."""


@dataclass(frozen=True, slots=True)
class ProductPage:
    """One product page."""

    title: str = ""
    bullets: tuple[str, ...] = ()
    description: str = ""
    brand: str | None = None
    stars: float | None = None
    ratings: int | None = None
    reviews: tuple[Comment, ...] = ()
    """Without their addresses, which are those of the shop that is searched."""


def item_of(tile: Tile, site: str) -> Item:
    """A product as the gate sees it; its text is "4.5 stars, 1,234 ratings, $159.00"."""
    stars = f"{tile.stars:g} stars" if tile.stars is not None else ""
    unit = "rating" if tile.ratings == 1 else "ratings"
    ratings = f"{tile.ratings:,} {unit}" if tile.ratings is not None else ""
    return Item(
        key=f"{NAME}:{tile.asin}", id=tile.asin, source=NAME, title=tile.title,
        body=", ".join(part for part in (stars, ratings, tile.price) if part),
        url=f"{site}/dp/{tile.asin}", engagement={"stars": tile.stars, "ratings": tile.ratings},
        place=tile.brand,
    )  # fmt: skip


def with_product(item: Item, product: ProductPage, most: int, site: str) -> Item:
    """The item of a tile with its product page: bullets as body, reviews as comments."""
    shown, page = item.title.rstrip(" .…"), {"stars": product.stars, "ratings": product.ratings}
    known = {name: value for name, value in item.engagement.items() if value is not None}
    return item.edited(
        title=product.title if shown and product.title.startswith(shown) else item.title,
        body="\n".join(product.bullets) or product.description or item.body,
        engagement=page | known,
        place=item.place or product.brand,
        comments=tuple(
            review.edited(url=f"{site}/gp/customer-reviews/{review.id}")
            for review in product.reviews[:most]
        ),
    )


def shopper(account: object, name: object = "") -> str | None:
    """A pseudonym from the account, else from the name; None where the account has no name."""
    shown = one_line(clean(name))
    return pseudonym("shopper", account, "" if shown.lower() in _NO_NAMES else shown)


_TILE = 'div[data-component-type="s-search-result"]'
_REVIEW = "[data-hook=review]"
_CONTENT = f"{_TILE}, #productTitle, #ebooksTitle, #dp, {_REVIEW}"
_INVISIBLE = ["script", "style", "noscript", "template"]
# what pages that block a client hold, and their names
_BLOCKS = (
    ("sign-in page", ('name="signIn"', "Amazon Sign-In</title>")),
    (
        "captcha page",
        (
            "/errors/validateCaptcha",
            "Enter the characters you see below",
            "Robot Check</title>",
            'id="auth-captcha',
            "/ap/cvf/",
            "opfcaptcha",
        ),
    ),
    ("bot challenge", ("AwsWafIntegration", "awswaf.com", "challenge-container")),
    ("throttle page", ("ref=cs_503_", "Sorry! Something went wrong!</title>")),
    ("block page", ("To discuss automated access to Amazon data", "api-services-support@amazon")),
)
# the paths of sign-in and captcha, in any language: "/ap/signin", "/-/es/ap/cvf/request"
_BLOCK_PATH = re.compile(r"(?:/-/\w+)?/(?:ap/(?P<login>signin)|ap/|errors/validateCaptcha)")
# the account in "/gp/profile/amzn1.account.AEXAMPLE/ref=x"
_ACCOUNT = re.compile(r"amzn1\.account\.(\w+)")
# ` - Kindle edition by Jo Doe. Mystery @ Amazon.com.`, ` : Amazon.com`
_TITLE_END = re.compile(r"(?<!\s)(?:\s++-\s++Kindle edition by .*$|\s*+[@:]\s*+Amazon\.com\.?$)")


def block_path(path: str) -> str | None:
    """The kind of blocking page at the path of a redirect, else None."""
    match = _BLOCK_PATH.match(path)
    return match and ("sign-in page" if match["login"] else "captcha page")


def block_reason(status: int, html: str) -> str | None:
    """The kind of blocking page that this is, else None; a page with data is never one."""
    why = next((why for why, marks in _BLOCKS if any(mark in html for mark in marks)), None)
    if why is None and status == 202:
        why = "bot challenge"
    if why is None or LexborHTMLParser(html).css_first(_CONTENT) is not None:
        return None
    return why


def parse_search_page(html: str) -> ResultPage:
    """The organic tiles; raises `Broken` for a page without tiles that does not say so."""
    tree = LexborHTMLParser(html)
    tree.strip_tags(_INVISIBLE)
    nodes = tree.css(_TILE)
    words = tree.body.text().lower() if tree.body and not nodes else ""
    if not nodes and not any(mark in words for mark in NONE_FOUND):
        raise Broken(NAME, "a result page without results that does not say so")
    organic = [node for node in nodes if node.attributes.get("data-asin") and not _sponsored(node)]
    more = tree.css_first("a.s-pagination-next") is not None
    return ResultPage(tuple(map(_tile, organic)), more)


def _sponsored(tile: LexborNode) -> bool:
    return (
        "AdHolder" in (tile.attributes.get("class") or "").split()
        or tile.css_first('h2[aria-label^="Sponsored Ad"]') is not None
        or tile.css_first('a[href*="/sspa/click"]') is not None
    )


def _tile(node: LexborNode) -> Tile | None:
    asin = asin_of(node.attributes.get("data-asin"))
    title, brand = _title_and_brand(node)
    if not asin or not title:
        return None
    labels = (link.attributes.get("aria-label") or "" for link in node.css("a[aria-label]"))
    exact = (ratings_of(label, named=True) for label in labels)
    shown = node.css('[data-csa-c-content-id*="ratings-count"], .s-underline-text')  # "84.7K"
    counts = (*exact, *(ratings_of(part.text()) for part in shown))
    prices = (price_of(price.text()) for price in node.css(".a-price .a-offscreen"))
    return Tile(
        asin, title, stars=stars_of(_text(node, ".a-icon-alt")),
        ratings=next((count for count in counts if count is not None), None),
        price=next(filter(None, prices), ""), brand=brand,
    )  # fmt: skip


def _title_and_brand(tile: LexborNode) -> tuple[str, str | None]:
    """Tiles of fashion have two headings: the brand, then the linked title."""
    heads = tile.css("[data-cy=title-recipe] h2") or tile.css("h2")[:1]
    linked = tile.css_first("[data-cy=title-recipe] a h2")
    head = linked or (heads[-1] if heads else None)
    if head is None:
        return "", None
    title = visible_text(one_line(clean(head.text())))
    first = one_line(clean(heads[0].text()))
    return title, first if len(heads) > 1 and first != title else None


def parse_product_page(html: str) -> ProductPage:
    """Bullets, rating and top reviews; raises `Broken` for another page, or when none is read."""
    tree = LexborHTMLParser(html)
    marks = tree.css_first(f"#productTitle, #ebooksTitle, #dp, #feature-bullets, {_REVIEW}")
    tree.strip_tags(_INVISIBLE)
    root = tree.root
    if marks is None or root is None:
        raise Broken(NAME, "a product page without a product")
    bullets = (
        one_line(clean(bullet.text()))
        for bullet in root.css("#feature-bullets li")
        if "aok-hidden" not in (bullet.attributes.get("class") or "").split()
        and bullet.attributes.get("id") != "replacementPartsFitmentBullet"
    )
    byline = root.css_first("#bylineInfo a") or root.css_first("#bylineInfo")
    reviews = {review.id: review for review in map(_review, root.css(_REVIEW)) if review}
    # Kindle pages have the title in other places than the rest
    named = _text(root, "#productTitle") or _text(root, "#ebooksTitle")
    head = re.sub(r"^Amazon\.com\s*:\s*", "", _text(root, "title"))
    product = ProductPage(
        title=named or _TITLE_END.sub("", head),
        bullets=tuple(bullet for bullet in bullets if bullet),
        description=_block(root, "#productDescription, #bookDescription_feature_div"),
        brand=brand_of(byline.text()) if byline else None,
        stars=stars_of(_text(root, "#acrPopover .a-icon-alt")),
        ratings=count_of(_text(root, "#acrCustomerReviewText")),
        reviews=tuple(reviews.values()),
    )
    if product == ProductPage():
        raise Broken(NAME, "a product page without a product")
    return product


def _review(node: LexborNode) -> Comment | None:
    review_id = clean(node.attributes.get("id"))
    title = _original(node, "[data-hook=reviewTitle], [data-hook=review-title]")
    body = review_body(
        _original(node, "[data-hook=reviewRichContentContainer]")
        or _original(node, "[data-hook=review-collapsed]")
        or _original(node, "[data-hook=review-body], [data-hook=reviewText]")
    )
    title, body = visible_text(review_title(title)), visible_text(body)
    if not re.fullmatch(r"[A-Z0-9]{8,20}", review_id) or not (title or body):
        return None
    profile = node.css_first("a.a-profile[href]")
    account = _ACCOUNT.search(profile.attributes.get("href") or "") if profile else None
    stars = "[data-hook=review-star-rating], [data-hook=cmps-review-star-rating]"
    helpful = count_of(_text(node, "[data-hook=helpful-vote-statement]")) or 0
    return Comment(
        id=review_id,
        body="\n".join(filter(None, (title, body))),
        author=shopper(account[1] if account else "", _text(node, ".a-profile-name")),
        created_at=day_of(_text(node, "[data-hook=review-date]")),
        engagement={"stars": stars_of(_text(node, stars)), "helpful": helpful},
    )


def _original(node: LexborNode, selector: str) -> str:
    """The text as its author wrote it, not its translation beside it."""
    return _block(node, f":is({selector}) .cr-original-review-content") or _block(node, selector)


def _text(node: LexborNode, selector: str) -> str:
    part = node.css_first(selector)
    return one_line(clean(part.text())) if part else ""


def _block(node: LexborNode, selector: str) -> str:
    """Text with its line breaks; else the words around `<br>` would be one."""
    part = node.css_first(selector)
    if part is None:
        return ""
    for edge in part.css("br, p, li, div"):
        edge.insert_before("\n")
    lines = (one_line(line) for line in clean(part.text()).split("\n"))
    return "\n".join(line for line in lines if line)
