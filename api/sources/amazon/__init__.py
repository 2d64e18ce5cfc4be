"""Amazon: products and their buyers' reviews, from its own pages or a paid provider."""

from __future__ import annotations

from typing import TYPE_CHECKING

from api.sources.spec import Price, SourceSpec

if TYPE_CHECKING:
    from api.settings import SourceSettings

NAME = "amazon"


def _key(settings: SourceSettings) -> tuple[str, ...]:
    """Every provider but Amazon's own pages is paid, and knows its customers by a key."""
    free = settings.amazon_provider in {None, "html"}
    return () if free else ("AMAZON_API_KEY",)


AMAZON = SourceSpec(
    name=NAME,
    title="Amazon",
    says="Ratings and buyers' reviews of products on Amazon. Not for topics nobody sells.",
    page="docs/sources/amazon.md",
    variables=("AMAZON_PROVIDER",),
    address="AMAZON_URL",
    module="api.sources.amazon.client",
    price=lambda settings: Price(entries=10, quotes=False),
    further=_key,
)
