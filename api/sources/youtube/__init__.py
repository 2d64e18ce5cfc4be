"""YouTube: videos and their comments, by the Data API."""

from __future__ import annotations

from typing import TYPE_CHECKING

from api.sources.spec import Price, SourceSpec

if TYPE_CHECKING:
    from api.services.keeping.ledger import Ledger
    from api.settings import SourceSettings

NAME = "youtube"


async def _left(settings: SourceSettings, ledger: Ledger) -> int | None:
    from api.sources.youtube.searches import searches_of

    return await searches_of(settings, ledger).left()


YOUTUBE = SourceSpec(
    name=NAME,
    title="YouTube",
    says="Videos about a product and what viewers say; a call may cost one of 100 searches a day.",
    page="docs/sources/youtube.md",
    variables=("YOUTUBE_API_KEY",),
    address="YOUTUBE_URL",
    module="api.sources.youtube.client",
    price=lambda settings: Price(entries=50, details=50, counted=True),
    left=_left,
)
