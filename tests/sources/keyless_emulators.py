"""Small servers of the places that answer without a key, for the contract of all sources."""

from __future__ import annotations

from typing import Any

from api.settings import SourceSettings
from tests.loopback import Asked, Reply
from tests.sources.emulators import NOW, Emulator


class HackerNewsEmulator(Emulator):
    """Search and threads, in the fields of 2026."""

    name, search_path, comments_path, page = "hackernews", "/search", "/items/", 100

    def settings(self, **more: Any) -> SourceSettings:
        return SourceSettings.model_validate({"HACKERNEWS_URL": self.server.url} | more)

    def comments_of(self, number: int) -> str:
        return f"/items/{4000 + number}"

    def strange(self) -> tuple[Reply, Reply]:
        found = {"hits": [{"uid": n, "headline": "Mug"} for n in range(3)], "nbPages": 1}
        return Reply(body=found), Reply(body={"children": [{"uid": 1, "words": "yes"}]})

    def reply(self, asked: Asked) -> Reply:
        if self.comments_path in asked.path:
            return Reply(body={"children": [reply(number) for number in range(30)]})
        start = int(asked.query.get("page", 0)) * int(asked.query["hitsPerPage"])
        total = 0 if "nothing" in asked.query["query"] else self.count
        numbers = range(start, min(start + int(asked.query["hitsPerPage"]), total))
        pages = -(-total // int(asked.query["hitsPerPage"]))
        return Reply(body={"hits": [story(n) for n in numbers], "nbPages": pages})


def story(number: int, **more: Any) -> dict[str, Any]:
    """A story as search lists it."""
    hit = {
        "objectID": str(4000 + number), "title": f"Mug {number}", "story_text": "<p>It&#x27;s warm",
        "author": "potter", "points": 12, "num_comments": 3, "created_at_i": NOW,
    }  # fmt: skip
    return hit | more


def reply(number: int, **more: Any) -> dict[str, Any]:
    """A reply in a thread, with one below it."""
    below = {"id": 9000 + number, "author": "kiln", "text": "Below", "created_at_i": NOW}
    fields = {
        "id": 5000 + number, "author": f"drinker{number}", "text": f"<p>Review {number}",
        "created_at_i": NOW, "points": None, "children": [below | {"children": []}],
    }  # fmt: skip
    return fields | more
