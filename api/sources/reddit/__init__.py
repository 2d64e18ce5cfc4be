"""Reddit: submissions of all of it, and their comments."""

from __future__ import annotations

from api.sources.spec import Price, SourceSpec

NAME = "reddit"
REDDIT = SourceSpec(
    name=NAME,
    title="Reddit",
    says="What people say on Reddit: posts with their best comments, only those about the product.",
    page="docs/sources/reddit.md",
    variables=("REDDIT_CLIENT_ID", "REDDIT_CLIENT_SECRET"),
    address="REDDIT_URL",
    module="api.sources.reddit.client",
    price=lambda settings: Price(entries=100, token=1),
)
