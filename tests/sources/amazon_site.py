"""A loopback server for the Amazon tests, and pages written by hand in the shapes Amazon sends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from api.core.items import Item
from api.core.ports import Source
from api.settings import SourceSettings
from api.sources import SOURCES

HTML = "text/html;charset=UTF-8"
JSON = "application/json"


@dataclass(frozen=True)
class Answer:
    """What the server says to one request."""

    body: str = ""
    status: int = 200
    kind: str = HTML
    headers: Mapping[str, str] = field(default_factory=dict)
    drip: float = 0.0
    """Seconds between two bytes of the body; 0: at once."""


@dataclass
class Site:
    """Answers by path (without the query) and keeps what it was asked."""

    answers: dict[str, Answer | Callable[[dict[str, str]], Answer]] = field(default_factory=dict)
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    busy: int = 0
    busiest: int = 0
    url: str = ""
    closing: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, one request."""
        self.busy += 1
        self.busiest = max(self.busiest, self.busy)
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("ascii")
            first, *rest = head.split("\r\n")
            target = urlsplit(first.split(" ")[1])
            params = dict(parse_qsl(target.query))
            self.asked.append((target.path, params))
            pairs = (line.split(": ", 1) for line in rest if line)
            self.headers.append({name.lower(): value for name, value in pairs})
            found = self.answers.get(target.path, Answer("missing", 404, "text/plain"))
            await self._send(writer, found(params) if callable(found) else found)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self.busy -= 1
            writer.close()

    async def _send(self, writer: asyncio.StreamWriter, answer: Answer) -> None:
        body = answer.body.encode()
        lines = [
            f"HTTP/1.1 {answer.status} X",
            f"content-type: {answer.kind}",
            f"content-length: {len(body)}",
            "connection: close",
            *(f"{name}: {value}" for name, value in answer.headers.items()),
        ]
        writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
        step = 1 if answer.drip else max(len(body), 1)
        for start in range(0, len(body), step):
            writer.write(body[start : start + step])
            await writer.drain()
            if answer.drip:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self.closing.wait(), answer.drip)


@asynccontextmanager
async def open_site() -> AsyncIterator[Site]:
    """A running site on a free port."""
    site = Site()
    server = await asyncio.start_server(site.serve, "127.0.0.1", 0)
    site.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield site
    finally:
        site.closing.set()
        server.close()


@asynccontextmanager
async def open_source(site: Site, provider: str = "html", **fields: Any) -> AsyncIterator[Source]:
    """The real source against the site."""
    values = {"amazon_provider": provider, "amazon_url": site.url, "amazon_api_key": "s3cret"}
    source = SOURCES["amazon"].build(SourceSettings.model_validate(values | fields))
    try:
        yield source
    finally:
        await source.aclose()


def item(asin: str) -> Item:
    """A kept product as the search gave it."""
    return Item(
        key=f"amazon:{asin}",
        id=asin,
        source="amazon",
        title="Brava Mug",
        body="4.5 stars",
        engagement={"stars": 4.5, "ratings": 12},
    )


def tile(asin: str, title: str = "Brava Mug", *, mark: str = "", extra: str = "") -> str:
    """One tile as result pages have them; `mark` is a class, `extra` further markup."""
    return f"""<div class="s-result-item s-asin {mark}" data-asin="{asin}"
      data-component-type="s-search-result"><div data-cy="title-recipe">
      <a href="/x/dp/{asin}/ref=sr_1"><h2 aria-label="{title}"><span>{title}</span></h2></a></div>
      <span class="a-icon-alt">4.5 out of 5 stars</span>
      <a aria-label="1,234 ratings" href="#"><span class="s-underline-text">(1.2K)</span></a>
      <span class="a-price"><span class="a-offscreen">$159.00</span></span>{extra}</div>"""


def result_page(*tiles: str, following: bool = False) -> str:
    """A result page."""
    link = '<a class="s-pagination-item s-pagination-next" href="/s?page=2">Next</a>'
    last = '<span class="s-pagination-item s-pagination-next s-pagination-disabled">Next</span>'
    return f"<html><body>{''.join(tiles)}{link if following else last}</body></html>"


def review(review_id: str, **changes: str) -> str:
    """One review in the markup of 2026."""
    parts = {
        "author": "Jo Doe",
        "title": "Keeps coffee hot",
        "date": "Reviewed in the United States on July 30, 2026",
        "text": "Still warm<br>after lunch.",
        "helpful": "One person found this helpful",
    } | changes
    return f"""<div data-hook="review" id="{review_id}">
      <span class="a-profile-name">{parts["author"]}</span>
      <i data-hook="review-star-rating"><span class="a-icon-alt">4 out of 5 stars</span></i>
      <h5 data-hook="reviewTitle">{parts["title"]}</h5>
      <span data-hook="review-date">{parts["date"]}</span><div data-hook="reviewText">
      Brief content visible, double tap to read full content.
      <div data-hook="reviewRichContentContainer"><span>{parts["text"]}</span></div></div>
      <span data-hook="helpful-vote-statement">{parts["helpful"]}</span></div>"""


def product_page(*reviews: str, title: str = "Brava Mug", bullets: str = "") -> str:
    """A product page."""
    listed = bullets or "<li>Steel inside </li><li>Holds 350 ml</li>"
    return f"""<html><body id="dp"><span id="productTitle"> {title} </span>
      <a id="bylineInfo">Visit the Brava Store</a><div id="feature-bullets"><ul>{listed}</ul></div>
      {"".join(reviews)}</body></html>"""
