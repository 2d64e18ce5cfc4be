"""Discourse: the forums that the person names, each a server of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from api.sources.spec import Price, SourceSpec

if TYPE_CHECKING:
    from api.settings import SourceSettings

NAME = "discourse"


def _price(settings: SourceSettings) -> Price:
    from api.settings.addresses import forums_in

    return Price(entries=50, phrases=True, searches=len(forums_in(settings.discourse_forums)))


DISCOURSE = SourceSpec(
    name=NAME,
    title="Discourse",
    says="What owners of a product say in the Discourse forums that were named: topics and posts.",
    page="docs/sources/discourse.md",
    variables=("DISCOURSE_FORUMS",),
    address="DISCOURSE_FORUMS",
    module="api.sources.discourse.client",
    price=_price,
)
