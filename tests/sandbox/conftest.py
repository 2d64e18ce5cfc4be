"""A tiny corpus of its own, and a sandbox that serves it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from api.sandbox.server import Sandbox

Start = Callable[..., Sandbox]


def words(query: str, about: str, texts: list[str], source: str) -> list[float]:
    """A stand-in judge: all words of the name, or not."""
    name = set(re.findall(r"\w+", query.casefold()))
    return [0.9 if name <= set(re.findall(r"\w+", text.casefold())) else 0.1 for text in texts]


def reddit_row(n: int, title: str, body: str = "", **more: Any) -> dict[str, Any]:
    """One submission as the corpus writes it."""
    row = {"n": n, "source": "reddit", "place": "gadgets", "title": title, "body": body}
    return row | {"age_days": 3.0, "votes": 5, "comments": []} | more


def youtube_row(n: int, title: str, body: str = "", **more: Any) -> dict[str, Any]:
    """One video as the corpus writes it."""
    row = {"n": n, "source": "youtube", "place": "Lamp Lab", "title": title, "body": body}
    return row | {"age_days": 9.0, "views": 900, "likes": 40, "comments": []} | more


def amazon_row(n: int, title: str, body: str = "Lights up\nFolds", **more: Any) -> dict[str, Any]:
    """One product as the corpus writes it."""
    row = {"n": n, "source": "amazon", "place": "Glimmer", "title": title, "body": body}
    return row | {"price": "$49.50", "stars": 4.3, "ratings": 1143, "comments": []} | more


def remark(body: str, votes: int = 1, **more: Any) -> dict[str, Any]:
    """One comment."""
    return {"body": body, "votes": votes, "age_days": 1.0} | more


def review(title: str, body: str, country: str = "the United States") -> dict[str, Any]:
    """One review."""
    return {
        "title": title, "body": body, "stars": 4, "age_days": 30, "helpful": 2, "verified": True,
        "country": country,
    }  # fmt: skip


LAMPS: list[dict[str, Any]] = [
    reddit_row(1, "Glow Lamp after a month", "Battery <3 & bright.", comments=[
        remark("Mine flickers", 9), remark("[removed]", 0), remark("I love it", 4),
        remark("[deleted]", 1, deleted=True), remark("Where did you buy it?", 2),
    ]),
    reddit_row(2, "Ask me anything about glow worms", "They glow.", votes=9000, age_days=400),
    reddit_row(3, "Seen elsewhere", "", place="lamps", crosspost_of=1),
    reddit_row(4, "[deleted by user] glow", "[removed]", deleted=True),
    reddit_row(5, "Glow review", "", link="https://example.com/glow"),
    youtube_row(1, "Glow Lamp: Dara's & Bo's \"test\"", "Line one of the text. " * 12, comments=[
        remark("Nice & warm <b>", 7), remark("Too dim", 9), remark("Hm", 1), remark("Agreed", 2),
    ]),
    youtube_row(2, "Glow sticks for parties", likes=None, comments_disabled=True),
    amazon_row(1, "Glow Lamp, Portable & Foldable", comments=[
        review("Bright", "Lights the desk.\nLasts."),
        review("Hell genug", "Gutes Licht.", "Germany"),
    ]),
    amazon_row(2, "Glow Stars for Ceilings", price=None, stars=None, ratings=None),
    amazon_row(3, "Glow Paint Sponsored", sponsored=True),
]  # fmt: skip


@pytest.fixture
def start() -> Iterator[Start]:
    """Start sandboxes that end with the test."""
    running: list[Sandbox] = []

    def begin(posts: Any = None, **options: Any) -> Sandbox:
        options.setdefault("judge", words)
        running.append(Sandbox.start(LAMPS if posts is None else posts, **options))
        return running[-1]

    yield begin
    for sandbox in running:
        sandbox.stop()


@pytest.fixture
def sandbox(start: Start) -> Sandbox:
    """A sandbox with the lamps."""
    return start()
