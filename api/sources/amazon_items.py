"""From a tile or a product page to our own values."""

from __future__ import annotations

from dataclasses import replace

from api.services.schemas import Comment, Item
from api.sources.amazon_fields import Product, Review, Tile

NAME = "amazon"
_SITE = "https://www.amazon.com"


def noted(item: Item, note: str) -> Item:
    """The item with one more note."""
    return replace(item, notes=(*item.notes, note))


def item_of(tile: Tile) -> Item:
    """A product as the gate sees it."""
    return Item(
        key=f"{NAME}:{tile.asin}",
        id=tile.asin,
        source=NAME,
        title=tile.title,
        body=_short(tile),
        url=f"{_SITE}/dp/{tile.asin}",
        engagement={"stars": tile.stars, "ratings": tile.ratings},
        place=tile.brand,
    )


def _short(tile: Tile) -> str:
    """What a tile says besides the title: "4.5 stars, 1,234 ratings, $159.00"."""
    stars = f"{tile.stars:g} stars" if tile.stars is not None else ""
    unit = "rating" if tile.ratings == 1 else "ratings"
    ratings = f"{tile.ratings:,} {unit}" if tile.ratings is not None else ""
    return ", ".join(part for part in (stars, ratings, tile.price) if part)


def completed(item: Item, product: Product, most: int) -> Item:
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
        comments=tuple(_comment(review) for review in product.reviews[:most]),
    )


def _comment(review: Review) -> Comment:
    return Comment(
        id=review.id,
        body="\n".join(part for part in (review.title, review.body) if part),
        url=f"{_SITE}/gp/customer-reviews/{review.id}",
        author=review.author,
        created_at=review.written,
        engagement={"stars": review.stars, "helpful": review.helpful},
    )
