"""What an Amazon page or provider answer holds, and that as our own values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from api.services.schemas import Comment, Item
from api.services.text import clean, one_line
from api.sources.amazon import NAME
from api.sources.fields import pseudonym

_EVERYBODY = {"amazon customer", "kindle customer", "a customer", "anonymous"}


@dataclass(frozen=True, slots=True)
class Tile:
    """One product of a result page."""

    asin: str
    title: str
    stars: float | None = None
    ratings: int | None = None
    price: str = ""
    """As a person reads it, currency included."""
    brand: str | None = None


@dataclass(frozen=True, slots=True)
class ResultPage:
    """One page of results."""

    tiles: tuple[Tile | None, ...]
    """In order, without advertisements; None for an entry that names no product."""
    more: bool
    """A next page exists."""


@dataclass(frozen=True, slots=True)
class Review:
    """One buyer's review."""

    id: str
    title: str
    body: str
    author: str | None
    """Already a pseudonym."""
    stars: float | None = None
    helpful: int | None = None
    written: datetime | None = None
    """Midnight UTC of the day; None when the date is missing or in another language."""


@dataclass(frozen=True, slots=True)
class ProductPage:
    """One product page."""

    title: str = ""
    bullets: tuple[str, ...] = ()
    description: str = ""
    brand: str | None = None
    stars: float | None = None
    ratings: int | None = None
    reviews: tuple[Review, ...] = ()


def item_of(tile: Tile, site: str) -> Item:
    """A product of a shop as the gate sees it; its text is "4.5 stars, 1,234 ratings, $159.00"."""
    stars = f"{tile.stars:g} stars" if tile.stars is not None else ""
    unit = "rating" if tile.ratings == 1 else "ratings"
    ratings = f"{tile.ratings:,} {unit}" if tile.ratings is not None else ""
    return Item(
        key=f"{NAME}:{tile.asin}",
        id=tile.asin,
        source=NAME,
        title=tile.title,
        body=", ".join(part for part in (stars, ratings, tile.price) if part),
        url=f"{site}/dp/{tile.asin}",
        engagement={"stars": tile.stars, "ratings": tile.ratings},
        place=tile.brand,
    )


def completed(item: Item, product: ProductPage, most: int, site: str) -> Item:
    """The tile, completed: bullets as body, reviews as comments, what the tile did not know."""
    shown = item.title.rstrip(" .…")
    known = item.engagement
    return replace(
        item,
        title=product.title if shown and product.title.startswith(shown) else item.title,
        body="\n".join(product.bullets) or product.description or item.body,
        engagement={
            "stars": product.stars if known.get("stars") is None else known["stars"],
            "ratings": product.ratings if known.get("ratings") is None else known["ratings"],
        },
        place=item.place or product.brand,
        comments=tuple(
            Comment(
                id=review.id,
                body="\n".join(part for part in (review.title, review.body) if part),
                url=f"{site}/gp/customer-reviews/{review.id}",
                author=review.author,
                created_at=review.written,
                engagement={"stars": review.stars, "helpful": review.helpful},
            )
            for review in product.reviews[:most]
        ),
    )


def shopper(account: object, name: object = "") -> str | None:
    """A pseudonym from the account, else from the name; None where the name is everybody's."""
    shown = one_line(clean(name))
    return pseudonym("shopper", account, "" if shown.lower() in _EVERYBODY else shown)
