"""A site with a feed, and a source whose clock a test moves on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from api.core.ports import Source
from api.features.watches.followed_feeds import FeedMemory
from api.settings import SourceSettings
from api.settings.value_types import feeds_in
from api.sources import feed_parsing
from api.sources.feeds import FeedReader, FeedsSource
from tests.loopback import Asked, Reply
from tests.sources.emulators import Emulator

RSS = {"content-type": "application/rss+xml; charset=utf-8"}
START = datetime(2026, 11, 29, 12, tzinfo=UTC)


def entry(title: str, link: str = "", **more: str) -> str:
    """An item of RSS; its guid is its link, if there is none among `more`."""
    fields = {"title": title, "link": link, "guid": link, "pubDate": "Sat, 28 Nov 2026 08:00:00 GMT"} | more
    return f"<item>{''.join(f'<{name}>{value}</{name}>' for name, value in fields.items() if value)}</item>"


def rss(*items: str, title: str = "Mugs") -> bytes:
    """A document of RSS."""
    channel = f"<title>{title}</title><link>https://mugs.example/</link><description/>{''.join(items)}"
    return f'<?xml version="1.0" encoding="utf-8"?><rss version="2.0"><channel>{channel}</channel></rss>'.encode()


class FeedsEmulator(Emulator):
    """A feed of mugs; all of it is one document, and no query is sent."""

    name, search_path, page, requests, asked_by_query = "feeds", "/feed.xml", 100, 0, False
    has_comments = looks_twice = False

    def __init__(self, count: int = 220) -> None:
        super().__init__(count)
        self.now = START
        self.body = rss(*(entry(f"Mug {n}", f"https://mugs.example/{n}") for n in range(count)))

    def settings(self, **more: Any) -> SourceSettings:
        return SourceSettings.model_validate({"FEEDS": f"{self.server.url}/feed.xml"} | more)

    def build(self, **more: Any) -> Source:
        settings = self.settings(**more)
        return FeedsSource(self.reader(settings), feeds_in(settings.feeds))

    def reader(
        self,
        settings: SourceSettings | None = None,
        memory: FeedMemory | None = None,
        parsing_seconds: int = feed_parsing.SECONDS,
    ) -> FeedReader:
        """Who asks it, by this clock."""
        return FeedReader(settings or self.settings(), memory, lambda: self.now, parsing_seconds)

    def later(self) -> None:
        self.now += timedelta(hours=2)

    def comments_of(self, number: int) -> str:
        return "never"

    def strange(self) -> tuple[Reply, Reply]:
        return Reply(200, b"<opml/>", {"content-type": "text/xml"}), Reply()

    def reply(self, asked: Asked) -> Reply:
        return Reply(200, self.body, RSS)
