"""Discourse: the forums that the person names, each a server of its own."""

from __future__ import annotations

from api.settings import SourceSettings
from api.sources.spec import Price, SourceSpec

NAME = "discourse"


def forums_of(settings: SourceSettings) -> tuple[str, ...]:
    """The roots of the forums in the setting, each once; a bare host is asked by https."""
    given = (settings.discourse_forums or "").split(",")
    named = (forum.strip().rstrip("/") for forum in given if forum.strip())
    return tuple(dict.fromkeys(root if "://" in root else f"https://{root}" for root in named))


DISCOURSE = SourceSpec(
    name=NAME,
    title="Discourse",
    says="What owners of a product say in the Discourse forums that were named: topics and posts.",
    page="docs/sources/discourse.md",
    variables=("DISCOURSE_FORUMS",),
    address="DISCOURSE_FORUMS",
    module="api.sources.discourse.client",
    price=lambda settings: Price(entries=50, searches=len(forums_of(settings))),
)
