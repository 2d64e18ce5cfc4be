"""Amazon: its own pages and the JSON of two paid providers, over the same products.

The pages are in today's markup, from templates in `pages/`. The providers are OpenWeb Ninja (`ninja`)
and omkar.cloud (`omkar`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from html import escape
from importlib import resources
from string import Template
from typing import Any, ClassVar
from urllib.parse import urlencode

from starlette.responses import RedirectResponse, Response

from api.sandbox.corpus import DIGITS, HEX, Post, Remark, handle, spelled
from api.sandbox.site_search import Index
from api.sandbox.world import EmulatedServer, SandboxCall, SiteRefusal, World, fields, reply, serves

TILES = 16  # products on a page of search results
# one tile in this many has its brand in a second heading, as in fashion
_TWO_HEADINGS = 6
_HOME = "the United States"
_LOCAL, _FOREIGN = 8, 5
_BARS = ("five_star", "four_star", "three_star", "two_star", "one_star")


class Markup(str):
    """HTML that is not escaped again."""


@cache
def _template(name: str) -> Template:
    return Template((resources.files("api.sandbox") / "pages" / f"{name}.html").read_text("utf-8"))


def render(name: str, **values: object) -> Markup:
    """The template `name` with these values, escaped unless they are `Markup`."""
    shown = {k: v if isinstance(v, Markup) else escape(str(v)) for k, v in values.items()}
    return Markup(_template(name).substitute(shown))


def _joined(pieces: Iterable[Markup]) -> Markup:
    return Markup("".join(pieces))


def short_count(count: int) -> str:
    """A count as the page shows it: `1.1K`."""
    if count < 1000:
        return str(count)
    scale, unit = (1000, "K") if count < 1_000_000 else (1_000_000, "M")
    return f"{count / scale:.1f}".removesuffix(".0") + unit


def shares(stars: float) -> list[int]:
    """Percentages of five, four, three, two and one stars that fit this average."""
    high = max(0.0, min(1.0, (stars - 1) / 4))
    best, worst = round(100 * high**1.5), round(100 * (1 - high) ** 1.5)
    rest = max(0, 100 - best - worst)
    four, two = round(rest * high * 0.7), round(rest * (1 - high) * 0.6)
    return [best, four, rest - four - two, two, 100 - best - rest]


def dated(world: World, remark: Remark) -> str:
    """Place and date of a review: `Reviewed in Germany on May 3, 2026`."""
    day = world.moment(remark.age_days)
    return f"Reviewed in {remark.country} on {day:%B} {day.day}, {day.year}"


def shopper(remark: Remark) -> str:
    """A reviewer's name, often the default one."""
    first, second, number = handle("amazon", remark.id).split("_")
    return "Amazon Customer" if number < "250" else f"{first.title()} {second[0].upper()}."


def search_page(query: str, hits: Sequence[Post], number: int, advert: Post | None) -> Markup:
    """Page `number` (from 1) of the results, the advertisement first."""
    start = (number - 1) * TILES
    shown = hits[start : start + TILES]
    if not shown:
        return render("nothing", query=query)
    tiles = [_tile(post, start + at) for at, post in enumerate(shown, 1)]
    if advert is not None:
        tiles.insert(0, _tile(advert, start, advert=True))
    count, last = len(hits), -(-len(hits) // TILES)
    total = f"over {count // 100 * 100:,}" if count >= 1000 else f"{count:,}"
    link = f"/s?{urlencode({'k': query, 'page': number + 1})}"
    onward = render("search_next", next=number + 1, link=link)
    return render(
        "search", query=query, range=f"{start + 1}-{start + len(shown)} of {total}",
        tiles=_joined(tiles), number=number, last=last,
        following=onward if number < last else render("search_end"),
    )  # fmt: skip


def _tile(post: Post, position: int, *, advert: bool = False) -> Markup:
    path = f"/x/dp/{post.id}/ref=sr_1_1"
    note = brand = reviews = count = Markup("")
    price = render("tile_no_price")
    if advert:
        note = render("tile_note")
    elif post.place and int(spelled(DIGITS, 3, "layout", post.id)) % _TWO_HEADINGS == 0:
        brand = render("tile_brand", brand=post.place)
    if post.ratings is not None:
        exact = f"{post.ratings:,} {'rating' if post.ratings == 1 else 'ratings'}"
        link = f"/x/dp/{post.id}#customerReviews"
        count = render("tile_count", exact=exact, short=short_count(post.ratings), link=link)
    if post.stars is not None:
        reviews = render("tile_reviews", stars=post.stars, count=count)
    if post.price is not None:
        whole, _, cents = post.price[1:].partition(".")
        parts = {"symbol": post.price[:1], "whole": whole, "cents": cents or "00"}
        price = render("tile_price", price=post.price, **parts)
    return render(
        "tile", advert=" AdHolder" if advert else "", asin=post.id, position=position,
        uuid=spelled(DIGITS, 12, post.id, position),
        link=f"/sspa/click?ie=UTF8&url={path}" if advert else path,
        label=("Sponsored Ad - " if advert else "") + post.title, title=post.title,
        image=f"https://m.media-amazon.com/images/I/{spelled(DIGITS, 10, post.id)}._AC_UY218_.jpg",
        note=note, brand=brand, reviews=reviews, price=price,
    )  # fmt: skip


def product_page(world: World, post: Post) -> Markup:
    """Title, price, bullets, histogram, and reviews in new and old markup."""
    rating = count = histogram = Markup("")
    if post.stars is not None:
        rating = render("product_rating", stars=post.stars)
        histogram = _joined(
            render("product_bar", share=share, stars=stars, bar=bar, asin=post.id)
            for share, stars, bar in zip(shares(post.stars), range(5, 0, -1), _BARS, strict=True)
        )
    if post.ratings is not None:
        count = render("product_count", count=f"{post.ratings:,}")
    home = [remark for remark in post.comments if remark.country == _HOME]
    abroad = [remark for remark in post.comments if remark.country != _HOME]
    lines = [line for line in post.body.split("\n") if line.strip()]
    priced = render("product_price", price=post.price)
    return render(
        "product", title=post.title, brand=post.place, asin=post.id, rating=rating, count=count,
        price=priced if post.price else render("product_no_price"),
        bullets=_joined(render("product_bullet", line=line) for line in lines),
        histogram=histogram,
        home=_joined(_review(world, remark) for remark in home[:_LOCAL]),
        abroad=_joined(_review(world, remark, old=True) for remark in abroad[:_FOREIGN]),
    )  # fmt: skip


def _review(world: World, remark: Remark, *, old: bool = False) -> Markup:
    """A review in today's markup, or in the `old` one, which foreign reviews still have."""
    people = "One person" if remark.votes == 1 else f"{remark.votes:,} people"
    badge = helpful = Markup("")
    if remark.verified:
        badge = render("review_badge_old" if old else "review_badge")
    if remark.votes:
        helpful = render("review_helpful", people=people)
    paragraphs = (render("review_paragraph", line=line) for line in remark.body.split("\n"))
    return render(
        "review_old" if old else "review_new", id=remark.id, author=shopper(remark),
        stars=remark.stars, title=remark.title, dated=dated(world, remark), badge=badge,
        body=remark.body if old else _joined(paragraphs), helpful=helpful,
    )  # fmt: skip


def _link(post: Post) -> str:
    return f"https://www.amazon.com/dp/{post.id}"


def _image(post: Post) -> str:
    return f"https://m.media-amazon.com/images/I/{spelled(DIGITS, 10, post.id)}._AC_UY654_.jpg"


def _review_link(remark: Remark) -> str:
    return f"https://www.amazon.com/gp/customer-reviews/{remark.id}"


def _amount(post: Post) -> float | None:
    text = "".join(c for c in post.price or "" if c.isdigit() or c == ".")
    return float(text) if text.strip(".") else None


def _availability(post: Post) -> str:
    return "In Stock" if post.price else "Currently unavailable"


def _features(post: Post) -> list[str]:
    return [line for line in post.body.split("\n") if line.strip()]


def _distribution(post: Post) -> dict[str, int]:
    if post.stars is None:
        return {}
    return {str(5 - at): share for at, share in enumerate(shares(post.stars))}


def _ninja(parameters: dict[str, str], data: dict[str, Any]) -> dict[str, Any]:
    request = spelled(HEX, 32, *sorted(parameters.items()))
    return {"status": "OK", "request_id": request, "parameters": parameters, "data": data}


def _ninja_product(post: Post) -> dict[str, Any]:
    sold = f"{short_count(post.ratings or 0)}+ bought in past month"
    return fields("ninja_product") | {
        "asin": post.id, "product_title": post.title, "product_price": post.price,
        "product_star_rating": None if post.stars is None else f"{post.stars}",
        "product_num_ratings": post.ratings, "product_url": _link(post),
        "product_photo": _image(post), "product_minimum_offer_price": post.price,
        "sales_volume": sold if post.ratings else None,
        "product_badge": "Sponsored" if post.sponsored else None,
    }  # fmt: skip


def _ninja_details(post: Post) -> dict[str, Any]:
    return _ninja_product(post) | {
        "about_product": _features(post), "product_description": None,
        "product_byline": f"Visit the {post.place} Store",
        "product_availability": _availability(post), "rating_distribution": _distribution(post),
    }  # fmt: skip


def _ninja_review(world: World, post: Post, remark: Remark) -> dict[str, Any]:
    helpful = f"{remark.votes} people found this helpful"
    return fields("ninja_review") | {
        "review_id": remark.id, "review_title": remark.title, "review_comment": remark.body,
        "review_star_rating": str(remark.stars), "review_link": _review_link(remark),
        "review_author": shopper(remark), "review_date": dated(world, remark),
        "is_verified_purchase": remark.verified, "reviewed_product_asin": post.id,
        "helpful_vote_statement": helpful if remark.votes else None,
    }  # fmt: skip


def _omkar_product(post: Post) -> dict[str, Any]:
    amount = _amount(post)
    return fields("omkar_product") | {
        "title": post.title, "price": amount, "lowest_offer_price": amount, "rating": post.stars,
        "reviews": post.ratings, "asin": post.id, "link": _link(post), "image_url": _image(post),
        "is_sponsored": post.sponsored,
    }  # fmt: skip


def _omkar_review(world: World, post: Post, remark: Remark) -> dict[str, Any]:
    return fields("omkar_review") | {
        "review_id": remark.id, "product_asin": post.id, "review_title": remark.title,
        "review_text": remark.body, "review_link": _review_link(remark), "rating": remark.stars,
        "review_date": dated(world, remark), "is_verified_purchase": remark.verified,
        "helpful_votes": remark.votes, "reviewer_name": shopper(remark),
        "reviewer_id": spelled(HEX.upper(), 28, remark.id),
    }  # fmt: skip


def _omkar_details(world: World, post: Post, top: Sequence[Remark]) -> dict[str, Any]:
    return fields("omkar_details") | {
        "asin": post.id, "parent_asin": post.id, "landing_asin": post.id,
        "product_name": post.title, "link": _link(post), "main_image_url": _image(post),
        "brand_info": f"Visit the {post.place} Store", "current_price": _amount(post),
        "availability": _availability(post), "rating": post.stars, "reviews": post.ratings,
        "detailed_rating": _distribution(post), "key_features": _features(post),
        "top_reviews": [_omkar_review(world, post, remark) for remark in top],
        "technical_details": {"Manufacturer": post.place},
        "product_details": {"Brand": post.place},
    }  # fmt: skip


_TOP = 8
# pages by which Amazon refuses an answer, and their status
_BLOCKS = {"dogs": 503, "captcha": 200, "waf": 202}
_KEY_HEADERS = ("x-api-key", "x-rapidapi-key", "api-key")
_EMPTY = "<!doctype html><html><body><div id='a-page'></div></body></html>"
_UNREADABLE = {"message": "The upstream page could not be read.", "code": 502}


def _ninja_error(error: dict[str, Any]) -> dict[str, Any]:
    return {"status": "ERROR", "request_id": "0", "error": error}


class Amazon(EmulatedServer):
    """Answers as www.amazon.com, OpenWeb Ninja and omkar.cloud do."""

    upstream = "amazon"
    fault_replies: ClassVar = {
        "401": ({"message": "Invalid API key."}, 401),
        "429": ({"message": "You have exceeded the quota of your plan."}, 429),
    }

    def __init__(self, world: World) -> None:
        super().__init__(world)
        posts = world.of("amazon")
        self._index = Index([post for post in posts if not post.sponsored])
        self._adverts = Index([post for post in posts if post.sponsored])

    def fault(self, kind: str, call: SandboxCall) -> Any:
        """The shop's own answer, or that of a provider whose request to the shop fails."""
        if (answer := super().fault(kind, call)) is not None:
            return answer
        path = call.path
        if path == "/s" or "/dp/" in path or path.startswith(("/ap/", "/product-reviews/")):
            if kind in _BLOCKS:
                headers = {"x-amzn-waf-action": "challenge"} if kind == "waf" else None
                return reply(render(kind), _BLOCKS[kind], headers)
            if kind == "signin" and not path.startswith("/ap/"):
                return _to_sign_in("/")
            return _EMPTY if kind == "empty" else None
        if kind in {*_BLOCKS, "signin"}:
            return _ninja_error(_UNREADABLE)
        if kind == "empty":
            return {"status": "OK", "request_id": "0", "data": {}, "results": []}
        return None

    def guard(self, call: SandboxCall) -> None:
        """Refuse a request without the provider's key."""
        headers, known = call.request.headers, self.world.options.amazon_key
        key = next((headers[name] for name in _KEY_HEADERS if headers.get(name)), "")
        if not key or known not in (None, key):
            message = "Invalid API key. Go to the provider for more info."
            raise SiteRefusal({"message": message}, 401)

    def _hits(self, query: str) -> tuple[list[Post], Post | None]:
        """Search results, and their advertisement: the best match, else any, else a product."""
        hits = self._index.search(query)
        adverts = self._adverts.search(query) or list(self._adverts.posts) or hits
        return hits, adverts[0] if adverts else None

    @serves("search", "/s", guarded=False)
    def _search(self, call: SandboxCall) -> str:
        query = call.query.get("k", "")
        hits, advert = self._hits(query)
        return search_page(query, hits, max(call.number("page", 1), 1), advert)

    @serves("product", "/dp/{asin}", "/{slug}/dp/{asin}", guarded=False)
    def _product(self, call: SandboxCall) -> str:
        post = self.world.post("amazon", call.parameter("asin"))
        if post is None:
            raise SiteRefusal(render("missing"), 404)
        return product_page(self.world, post)

    @serves("reviews", "/product-reviews/{asin}", "/gp/customer-reviews/{id}", guarded=False)
    def _reviews(self, call: SandboxCall) -> Response:
        return _to_sign_in(call.path)

    @serves("signin", "/ap/signin", guarded=False)
    def _sign_in(self, call: SandboxCall) -> str:
        return render("sign_in")

    def _page(self, call: SandboxCall) -> tuple[list[Post], int]:
        hits, advert = self._hits(call.query.get("query", ""))
        page = hits[call.page(TILES)]
        if page and advert is not None and advert.sponsored:
            page = [advert, *page]
        return page, len(hits)

    def _post(self, call: SandboxCall) -> Post | None:
        return self.world.post("amazon", call.query.get("asin"))

    @serves("search", "/search")
    def _ninja_search(self, call: SandboxCall) -> dict[str, Any]:
        if not call.query.get("query"):
            error = {"message": "The query parameter is required.", "code": 400}
            raise SiteRefusal(_ninja_error(error))
        page, total = self._page(call)
        products = [_ninja_product(post) for post in page]
        site = {"country": "US", "domain": "www.amazon.com"}
        return _ninja(call.query, {"total_products": total, "products": products, **site})

    @serves("product", "/product-details")
    def _ninja_details(self, call: SandboxCall) -> dict[str, Any]:
        post = self._post(call)
        return _ninja(call.query, {} if post is None else _ninja_details(post))

    @serves("reviews", "/top-product-reviews")
    def _ninja_reviews(self, call: SandboxCall) -> dict[str, Any]:
        post = self._post(call)
        top = post.comments[:_TOP] if post else ()
        reviews = [_ninja_review(self.world, post, remark) for remark in top if post]
        site = {"country": "US", "domain": "www.amazon.com"}
        return _ninja(call.query, {"asin": call.query.get("asin"), "reviews": reviews, **site})

    @serves("search", "/amazon/search")
    def _omkar_search(self, call: SandboxCall) -> dict[str, Any]:
        if not call.query.get("query"):
            raise SiteRefusal({"message": "query is required"})
        return {"results": [_omkar_product(post) for post in self._page(call)[0]]}

    def _omkar_post(self, call: SandboxCall) -> Post:
        if (post := self._post(call)) is None:
            raise SiteRefusal({"message": "Product not found"}, 404)
        return post

    @serves("product", "/amazon/product-details")
    def _omkar_details(self, call: SandboxCall) -> dict[str, Any]:
        post = self._omkar_post(call)
        return _omkar_details(self.world, post, post.comments[:_TOP])

    @serves("reviews", "/amazon/product-reviews/top")
    def _omkar_reviews(self, call: SandboxCall) -> dict[str, Any]:
        post = self._omkar_post(call)
        return {"results": [_omkar_review(self.world, post, r) for r in post.comments[:_TOP]]}


def _to_sign_in(path: str) -> Response:
    """All reviews have been behind a sign-in since November 2024."""
    target = f"/ap/signin?openid.return_to=https%3A%2F%2Fwww.amazon.com{path}"
    return RedirectResponse(target, 302)
