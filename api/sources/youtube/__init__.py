"""YouTube: videos and their comments, by the Data API."""

from __future__ import annotations

from api.sources.spec import Price, SourceSpec

NAME = "youtube"
YOUTUBE = SourceSpec(
    name=NAME,
    title="YouTube",
    says="Videos about a product and what viewers say; a call may cost one of 100 searches a day.",
    page="docs/sources/youtube.md",
    variables=("YOUTUBE_API_KEY",),
    address="YOUTUBE_URL",
    module="api.sources.youtube.client",
    price=lambda settings: Price(entries=50, details=50, counted=True),
    counter="api.sources.youtube.searches",
)
