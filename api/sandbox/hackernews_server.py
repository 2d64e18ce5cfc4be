"""Algolia's search of Hacker News and the threads behind it, in the fields of 2026."""

from __future__ import annotations

import html
from dataclasses import replace
from typing import Any, ClassVar

from api.sandbox.corpus import Post, Remark, handle
from api.sandbox.site_search import Index
from api.sandbox.world import EmulatedServer, SandboxCall, SiteRefusal, World, serves

_MOST = 1_000
_TOO_DEEP = (
    "you can only fetch the 1000 hits for this query. You can extend the number of hits returned "
    "via the paginationLimitedTo index setting or use the browse method."
)
_POINTS = "invalid numeric attribute(points), attribute not specified in numericAttributesForFiltering setting"


class HackerNews(EmulatedServer):
    """Answers as hn.algolia.com does; stories and comments are searched alike."""

    upstream = "hackernews"
    fault_replies: ClassVar = {
        "400": ({"code": 400, "message": _POINTS}, 400),
        "403html": ("<h1>Forbidden</h1>", 403),
        "429": ("<h1>Too many requests</h1>", 429),
    }

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._remarks = {
            remark.id: (post, remark)
            for post in world.of("hackernews")
            for remark in post.comments
            if not remark.deleted
        }
        comments = [
            replace(
                post, id=id_, title="", body=remark.body, votes=0, age_days=remark.age_days,
                comments=(),
            )
            for id_, (post, remark) in self._remarks.items()
        ]  # fmt: skip
        self._index = Index([*world.of("hackernews"), *comments])

    @serves("search", "/api/v1/search")
    def _search(self, call: SandboxCall) -> dict[str, Any]:
        query, number = call.query.get("query", ""), call.number("page", 0)
        size = min(max(call.number("hitsPerPage", 20), 1), _MOST)
        after = call.query.get("numericFilters", "").partition("created_at_i>=")[2]
        hits = [
            post
            for post in self._index.search(query, exact=True, every=True)
            if self.world.created(post.age_days) >= float(after or 0)
        ]
        shown = hits[:_MOST]
        return {
            "hits": [self._hit(post) for post in shown[number * size : (number + 1) * size]],
            "nbHits": len(hits), "page": number, "nbPages": -(-len(shown) // size),
            "hitsPerPage": size, "exhaustiveNbHits": True, "query": query, "processingTimeMS": 1,
            **({"message": _TOO_DEEP} if number * size >= _MOST else {}),
        }  # fmt: skip

    @serves("item", "/api/v1/items/{id}")
    def _thread(self, call: SandboxCall) -> dict[str, Any]:
        id_ = call.parameter("id")
        story = self.world.post("hackernews", id_)
        if story is not None:
            below = [self._reply(story, remark) for remark in story.comments]
            return self._above(story, story.title, story.body) | {"children": below}
        if id_ not in self._remarks:
            raise SiteRefusal({"status": 404, "error": "Not Found"}, 404)
        return self._reply(*self._remarks[id_])

    def _hit(self, post: Post) -> dict[str, Any]:
        """One result; fields without a value are left out."""
        author, stamp = handle("hackernews", post.id), self.world.stamp(post.age_days)
        hit: dict[str, Any] = {
            "objectID": post.id, "author": author, "created_at": stamp, "updated_at": stamp,
            "created_at_i": int(self.world.created(post.age_days)),
        }  # fmt: skip
        if post.id in self._remarks:
            story = self._remarks[post.id][0]
            return hit | {
                "comment_text": _markup(post.body), "story_id": int(story.id),
                "story_title": story.title, "parent_id": int(story.id),
                "_tags": ["comment", f"author_{author}", f"story_{story.id}"],
            }  # fmt: skip
        hit |= {
            "title": post.title, "points": post.votes, "num_comments": len(post.comments),
            "story_id": int(post.id), "children": [int(remark.id) for remark in post.comments],
            "_tags": ["story", f"author_{author}", f"story_{post.id}"],
        }  # fmt: skip
        if post.body:
            hit["story_text"] = _markup(post.body)
        return hit | ({"url": post.link} if post.link else {})

    def _above(self, post: Post, title: str | None, text: str) -> dict[str, Any]:
        return {
            "id": int(post.id), "created_at": self.world.stamp(post.age_days, ".000"),
            "created_at_i": int(self.world.created(post.age_days)),
            "type": "story" if title else "comment",
            "author": handle("hackernews", post.id), "title": title, "url": post.link,
            "text": _markup(text) or None, "points": post.votes if title else None,
            "parent_id": None, "story_id": int(post.id), "options": [],
        }  # fmt: skip

    def _reply(self, story: Post, remark: Remark) -> dict[str, Any]:
        gone = {"author": None, "text": None} if remark.deleted else {}
        post = replace(story, id=remark.id, age_days=remark.age_days, link=None)
        below = {"parent_id": int(story.id), "story_id": int(story.id), "children": []}
        return self._above(post, None, remark.body) | below | gone


def _markup(text: str) -> str:
    """HTML as the site writes it: unclosed paragraphs, slashes and quotes as entities."""
    escaped = html.escape(text).replace("/", "&#x2F;")
    return "<p>".join(part.strip() for part in escaped.split("\n\n"))
