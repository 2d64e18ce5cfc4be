"""Hacker News: stories and comments, by Algolia's search."""

from __future__ import annotations

from api.sources.spec import Price, SourceSpec

NAME = "hackernews"
HACKERNEWS = SourceSpec(
    name=NAME,
    title="Hacker News",
    says="What Hacker News says of a tech product or launch: stories and comments on them.",
    page="docs/sources/hackernews.md",
    variables=(),
    address="HACKERNEWS_URL",
    module="api.sources.hackernews.client",
    price=lambda settings: Price(entries=100, phrases=True),
)
