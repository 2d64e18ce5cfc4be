"""Loopback Reddit and YouTube, and the real sources that ask them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from api.core.ports import Source
from api.sources import SOURCES
from api.sources.youtube import YouTubeSource
from tests.sources.emulators import RedditEmulator, YouTubeEmulator


@pytest.fixture
def reddit_server() -> Iterator[RedditEmulator]:
    """Reddit on loopback."""
    with RedditEmulator() as server:
        yield server


@pytest.fixture
async def reddit(reddit_server: RedditEmulator) -> AsyncIterator[Source]:
    """The source that asks it."""
    source = SOURCES["reddit"].build(reddit_server.settings())
    yield source
    await source.aclose()


@pytest.fixture
def youtube_server() -> Iterator[YouTubeEmulator]:
    """YouTube on loopback."""
    with YouTubeEmulator() as server:
        yield server


@pytest.fixture
async def youtube(youtube_server: YouTubeEmulator) -> AsyncIterator[YouTubeSource]:
    """The source that asks it, without the pause before its second try."""
    source = YouTubeSource(youtube_server.settings(), pause=0)
    yield source
    await source.aclose()
