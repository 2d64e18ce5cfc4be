"""Lemmy: posts and comments of the federation, as one of its servers sees them."""

from __future__ import annotations

from api.sources.spec import Price, SourceSpec

NAME = "lemmy"
LEMMY = SourceSpec(
    name=NAME,
    title="Lemmy",
    says="What people on Lemmy, a federation of forums, say of a product: posts and comments.",
    page="docs/sources/lemmy.md",
    variables=(),
    address="LEMMY_URL",
    module="api.sources.lemmy.client",
    price=lambda settings: Price(entries=50, token=1, quotes=False, searches=2),
)
