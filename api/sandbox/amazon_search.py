"""Amazon's search page in today's markup."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlencode

from api.sandbox.corpus import Post, spelled
from api.sandbox.pages import Html, joined, render, when

TILES = 16
_DIGITS = "0123456789"
_TWO_HEADINGS = 6
"""One tile in so many has its brand in a heading of its own, as in fashion."""


def short_count(count: int) -> str:
    """A count as the page shows it: `1.1K`; the exact one is in the label."""
    if count < 1000:
        return str(count)
    scale, unit = (1000, "K") if count < 1_000_000 else (1_000_000, "M")
    return f"{count / scale:.1f}".removesuffix(".0") + unit


def page(query: str, found: Sequence[Post], number: int, advert: Post | None) -> Html:
    """Page `number` (from 1) of what was found, the advertisement first."""
    start = (number - 1) * TILES
    shown = found[start : start + TILES]
    if not shown:
        return render("nothing", query=query)
    tiles = [_tile(post, start + at) for at, post in enumerate(shown, 1)]
    if advert is not None:
        tiles.insert(0, _tile(advert, start, advert=True))
    last = -(-len(found) // TILES)
    link = f"/s?{urlencode({'k': query, 'page': number + 1})}"
    onward = render("search_next", next=number + 1, link=link)
    return render(
        "search",
        query=query,
        range=f"{start + 1}-{start + len(shown)} of {_total(len(found))}",
        tiles=joined(tiles),
        number=number,
        last=last,
        following=onward if number < last else render("search_end"),
    )


def _total(count: int) -> str:
    return f"over {count // 100 * 100:,}" if count >= 1000 else f"{count:,}"


def _tile(post: Post, position: int, *, advert: bool = False) -> Html:
    two = int(spelled(_DIGITS, 3, "layout", post.id)) % _TWO_HEADINGS == 0 and not advert
    path = f"/x/dp/{post.id}/ref=sr_1_1"
    return render(
        "tile",
        advert=" AdHolder" if advert else "",
        asin=post.id,
        position=position,
        uuid=spelled(_DIGITS, 12, post.id, position),
        link=f"/sspa/click?ie=UTF8&url={path}" if advert else path,
        label=("Sponsored Ad - " if advert else "") + post.title,
        title=post.title,
        image=f"https://m.media-amazon.com/images/I/{spelled(_DIGITS, 10, post.id)}._AC_UY218_.jpg",
        note=when(advert, render("tile_note")),
        brand=when(two and post.place, render("tile_brand", brand=post.place)),
        reviews=when(post.stars is not None, _reviews(post)),
        price=_price(post),
    )


def _reviews(post: Post) -> Html:
    count, link = post.ratings or 0, f"/x/dp/{post.id}#customerReviews"
    exact = f"{count:,} {'rating' if count == 1 else 'ratings'}"
    counted = render("tile_count", exact=exact, short=short_count(count), link=link)
    return render("tile_reviews", stars=post.stars, count=when(post.ratings is not None, counted))


def _price(post: Post) -> Html:
    if post.price is None:
        return render("tile_no_price")
    whole, _, cents = post.price[1:].partition(".")
    parts = {"symbol": post.price[:1], "whole": whole, "cents": cents or "00"}
    return render("tile_price", price=post.price, **parts)
