"""Amazon's pages as items, and the texts of pages and providers, in the languages of its shops.

Counts, ratings, dates and votes arrive as words ("84.7K", "Reviewed in Canada on October 29, 2023",
"One person found this helpful") or as numbers. Selectors follow the markup of 2026; the review
hooks of 2023 are still used on Kindle pages and for foreign reviews, so both are read.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import urlsplit

import regex as re
from selectolax.lexbor import LexborHTMLParser, LexborNode

from api.core.items import Comment, Item, pseudonym
from api.core.text import clean, one_line
from api.errors import Broken
from api.sources.item_fields import plausible_time, visible_text

NAME = "amazon"
US = "https://www.amazon.com"
# the month in which Amazon opened
BEGAN = datetime(1995, 7, 1, tzinfo=UTC)
# `www.amazon.com`, `amazon.es`, `www.amazon.co.jp`, `www.amazon.com.au`
_HOST = re.compile(r"(?:www\.)?amazon\.(?:(?:com?\.)?[a-z]{2}|com)")
# behind a shortened count: `84.7K`, `84,7 Tsd.`, `84,7 mil`, `5 тыс.`, `8.4万`, `2만`
_UNITS = {
    **dict.fromkeys(("k", "tsd", "mil", "tys", "bin", "тыс", "千", "천"), 1_000),
    **dict.fromkeys(("m", "mio", "mln", "млн"), 1_000_000),
    **dict.fromkeys(("万", "萬", "만"), 10_000),
    "lakh": 100_000,
}
# the number one as a word: "One person found this helpful"
_ONE_WORD = "one|eine|una|une|uma|één"
# names of ratings behind their number
_RATING_WORDS = (
    r"(?:global )?ratings?|(?:globale )?(?:sterne)?bewertung(?:en)?|valoraci(?:ón|ones)"
    r"|calificaci(?:ón|ones)|évaluations?|valutazion[ei]|recension[ei]|vot[oi]|beoordeling(?:en)?"
    r"|avaliaç(?:ão|ões)|classificaç(?:ão|ões)|betyg|ocen[ay]?|değerlendirme"
    r"|[件個]の(?:グローバル)?(?:評価|レビュー)"
)
# behind the stars of a review
_OF_FIVE = (
    "out of 5 stars|von 5 sternen|de 5 (?:estrellas|estrelas)|sur 5 étoiles|su 5 stelle"
    "|van 5 sterren|av 5 stjärnor|z 5 gwiazdek"
)
NONE_FOUND = (
    "no results for", "did not match any products", "keine ergebnisse", "no hay resultados para",
    "aucun résultat pour", "nessun risultato per", "geen resultaten voor", "nenhum resultado para",
    "inga resultat för", "brak wyników dla", "に一致する商品はありませんでした",
)  # fmt: skip
"""Sentences of pages without results, in lower case, in several languages."""
# months by their names in lower case, English ones also by their first three or four letters
_MONTHS = """
january february march april may june july august september october november december
januar februar märz april mai juni juli august september oktober november dezember
enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre
janvier février mars avril mai juin juillet août septembre octobre novembre décembre
gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre
januari februari maart april mei juni juli augustus september oktober november december
janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro
januari februari mars april maj juni juli augusti september oktober november december
stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października listopada grudnia
января февраля марта апреля мая июня июля августа сентября октября ноября декабря
ocak şubat mart nisan mayıs haziran temmuz ağustos eylül ekim kasım aralık
""".strip().split("\n")
_MONTH_NUMBERS = {name: month for line in _MONTHS for month, name in enumerate(line.split(), 1)} | {
    name[:length]: month for length in (3, 4) for month, name in enumerate(_MONTHS[0].split(), 1)
}


def site_of(root: str) -> str:
    """The shop whose pages a person can open: the one at `root`, or else the American one."""
    host = urlsplit(root).hostname or ""
    return f"https://{host}" if _HOST.fullmatch(host) else US


# the id of a product
_ASIN = re.compile(r"[A-Z0-9]{10}")
# "1,234", "4.5", "1.234.567", "1 234", "1’234": digits in groups, whatever stands between them
_NUMBER = re.compile(r"\d{1,3}(?: \d{3})+(?!\d)|\d{1,12}(?:[.,'’]\d{1,12})*+")
# "1,234,567", "1.234", "1 234" and "1,23,456": what stands between the groups is no decimal point
_GROUPED = re.compile(r"\d{1,3}(?:[., '’]\d{3})+|\d{1,2}(?:,\d{2})+,\d{3}")
# a larger number is no count
_MAX_COUNT = 10**12
# the unit right behind a number: "K", " Tsd", "万"; behind one sign of Chinese or Korean other words may follow: "万件"
_UNIT = re.compile(r" ?([千万萬천만]|[^\W\d_]++)")
# a price is no count: "￥15,592", "18,99 €", "EUR 18"
_MONEY = re.compile(r"\p{Sc}|円|\b(?:EUR|USD|GBP|JPY|AED|SAR|EGP|kr|zł|TL)\b", re.I)
# a count of ratings and nothing else: "(226)", "84.7K", "(84,7 Tsd.)", "1,23,456 ratings"
_RATINGS = re.compile(rf"\(?\d[\d., ]*+(?:{'|'.join(_UNITS)})?\.?\+?\)?\s*+(?P<words>{_RATING_WORDS})?", re.I)
# "5.0 out of 5 stars" or "5つ星のうち5.0" before a review's title
_STARS_PREFIX = re.compile(rf"^\s*+(?:\d(?:[.,]\d)?\s++(?:{_OF_FIVE})|5つ星のうち\d(?:\.\d)?)\s*+", re.I)
# words for screen readers before a review's text
_SCREEN_READER = re.compile(
    r"^\s*(?:brief content visible, double tap to read full content\.?"
    r"|full content visible, double tap to read brief content\.?"
    r"|the media could not be loaded\.?)\s*",
    re.I,
)
# "October 29, 2023", "29 October 2023", "29. Oktober 2023", "29 de octubre de 2023"; "2023-10-29"
# at the start; "2023年10月29日"
_DATES = (
    re.compile(r"\b(?P<month>\p{L}{3,12})\.? (?P<day>\d{1,2}), (?P<year>\d{4})\b"),
    re.compile(r"\b(?P<day>\d{1,2})\.? (?:de )?(?P<month>\p{L}{3,12})\.? (?:de )?(?P<year>\d{4})\b"),
    re.compile(r"^(?P<year>\d{4})-(?P<month>\d{2})-(?P<day>\d{2})"),
    re.compile(r"(?P<year>\d{4})年(?P<month>\d{1,2})月(?P<day>\d{1,2})日"),
)


def asin_of(value: object) -> str:
    """The id of a product, ten capital letters and digits; otherwise empty."""
    text = clean(value)
    return text if _ASIN.fullmatch(text) else ""


def stars_of(value: object) -> float | None:
    """Stars, above 0 to 5, from a number or a text such as "4.5 out of 5 stars"."""
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        numbers = [float(value)] if 0 < value <= 5 else []
    else:
        numbers = [_decimal(number) for number in _NUMBER.findall(clean(value))]
    best = min(numbers, default=0.0)
    return best if 0 < best <= 5 else None


def count_of(value: object) -> int | None:
    """A count from a number or a text: "(226)", "21,200 ratings", "84.7K"; None for a price."""
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        return int(value) if 0 <= value <= _MAX_COUNT else None
    text = one_line(clean(value)).lower()
    if _MONEY.search(text):
        return None
    number = _NUMBER.search(text)
    if number is None:
        return 1 if re.search(rf"\b(?:{_ONE_WORD})\b", text) else None
    unit = _UNIT.match(text, number.end())
    if unit and (scale := _UNITS.get(unit[1])):
        return round(_decimal(number[0]) * scale)
    if _GROUPED.fullmatch(number[0]):
        return int(re.sub(r"[., '’]", "", number[0]))
    return int(_decimal(number[0]))


def ratings_of(text: str, *, named: bool = False) -> int | None:
    """The number of ratings from a text with nothing else; `named`: with a word for ratings."""
    match = _RATINGS.fullmatch(one_line(clean(text)))
    return count_of(match[0]) if match and (match["words"] or not named) else None


def _decimal(number: str) -> float:
    if _GROUPED.fullmatch(number) and len(re.findall(r"[., '’]", number)) > 1:
        return float(re.sub(r"[., '’]", "", number))
    whole, *rest = re.split(r"[.,'’]", number)
    return float(f"{whole}.{''.join(rest) or '0'}")


def price_of(value: object, currency: object = "") -> str:
    """A price as text; a bare number gets its currency."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if not 0 < value <= _MAX_COUNT:
            return ""
        unit = clean(currency)
        return f"${value:,.2f}" if unit in {"", "$", "USD"} else f"{unit} {value:,.2f}"
    return one_line(clean(value))


def day_of(value: object) -> datetime | None:
    """The day in "Reviewed in ... on ..." in the language of a marketplace, or an ISO date."""
    text = one_line(clean(value))
    match = next((match for match in (shape.search(text) for shape in _DATES) if match), None)
    if match is None:
        return None
    name = match["month"].lower()
    month = int(name) if name.isdigit() else _MONTH_NUMBERS.get(name, 0)
    try:
        return plausible_time(datetime(int(match["year"]), month, int(match["day"]), tzinfo=UTC), BEGAN)
    except ValueError:
        return None


def review_title(value: object) -> str:
    """The title without the stars that older pages put before it."""
    return one_line(_STARS_PREFIX.sub("", clean(value)))


def review_body(value: object) -> str:
    """The text without the preceding words for screen readers."""
    text = clean(value)
    while (shorter := _SCREEN_READER.sub("", text)) != text:
        text = shorter
    return text


def brand_of(value: object) -> str | None:
    """The brand in "Visit the X Store", "Brand: X" or "X"."""
    text = one_line(clean(value))
    text = re.sub(r"^(?:brand:\s*|visit the\s+)", "", text, flags=re.I)
    return re.sub(r"(?<!\s)\s++store$", "", text, flags=re.I).strip() or None


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
    """Price as text, with its currency."""
    brand: str | None = None


@dataclass(frozen=True, slots=True)
class ResultPage:
    """Listings of one page of Amazon's search, and whether there is a next page."""

    tiles: tuple[Tile | None, ...]
    """Products in the order of the page without advertisements; None for an entry without a product."""
    more: bool
    """Whether there is a next page."""


@dataclass(frozen=True, slots=True)
class ProductPage:
    """Details and reviews that a product page of Amazon shows."""

    title: str = ""
    bullets: tuple[str, ...] = ()
    description: str = ""
    brand: str | None = None
    stars: float | None = None
    ratings: int | None = None
    reviews: tuple[Comment, ...] = ()
    """Reviews without their addresses, which depend on the shop that is searched."""


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
            review.edited(url=f"{site}/gp/customer-reviews/{review.id}") for review in product.reviews[:most]
        ),
    )


def shopper(account: object, name: object = "") -> str | None:
    """A pseudonym from the account, else from the name; None when neither is given."""
    shown = one_line(clean(name))
    return pseudonym("shopper", account, "" if shown.lower() in _NO_NAMES else shown)


_TILE = 'div[data-component-type="s-search-result"]'
_REVIEW = "[data-hook=review]"
_CONTENT = f"{_TILE}, #productTitle, #ebooksTitle, #dp, {_REVIEW}"
_INVISIBLE = ["script", "style", "noscript", "template"]
# what pages that block a client hold, and their names
_BLOCKS = (
    ("sign-in page", ('name="signIn"', "Amazon Sign-In</title>")),
    ("captcha page", (
        "/errors/validateCaptcha", "Enter the characters you see below", "Robot Check</title>",
        'id="auth-captcha', "/ap/cvf/", "opfcaptcha",
    )),
    ("bot challenge", ("AwsWafIntegration", "awswaf.com", "challenge-container")),
    ("throttle page", ("ref=cs_503_", "Sorry! Something went wrong!</title>")),
    ("block page", ("To discuss automated access to Amazon data", "api-services-support@amazon")),
)  # fmt: skip
# the paths of sign-in and captcha, in any language: "/ap/signin", "/-/es/ap/cvf/request"
_BLOCK_PATH = re.compile(r"(?:/-/\w+)?/(?:ap/(?P<login>signin)|ap/|errors/validateCaptcha)")
# the account in "/gp/profile/amzn1.account.AEXAMPLE/ref=x"
_ACCOUNT = re.compile(r"amzn1\.account\.(\w+)")
# ` - Kindle edition by Jo Doe. Mystery @ Amazon.com.`, ` : Amazon.com`
_TITLE_END = re.compile(r"(?<!\s)(?:\s++-\s++Kindle edition by .*$|\s*+[@:]\s*+Amazon\.com\.?$)")


def block_path(path: str) -> str | None:
    """The kind of blocking page at the path of a redirect; None for any other path."""
    match = _BLOCK_PATH.match(path)
    return match and ("sign-in page" if match["login"] else "captcha page")


def block_reason(status: int, html: str) -> str | None:
    """The kind of blocking page that this is; None for any other, such as a page with data."""
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
    named = [node for node in nodes if node.attributes.get("data-asin")]
    if nodes and not named:
        raise Broken(NAME, "results without the ids of products")
    organic = [node for node in named if not _sponsored(node)]
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
    """Text of an element with its line breaks, without which words around `<br>` would join."""
    part = node.css_first(selector)
    if part is None:
        return ""
    for edge in part.css("br, p, li, div"):
        edge.insert_before("\n")
    lines = (one_line(line) for line in clean(part.text()).split("\n"))
    return "\n".join(line for line in lines if line)
