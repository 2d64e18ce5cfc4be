"""Amazon's search and product pages in today's markup, from templates in `pages/`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from html import escape
from importlib import resources
from string import Template
from urllib.parse import urlencode

from api.sandbox.corpus import DIGITS, Post, Remark, handle, spelled
from api.sandbox.world import World

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
