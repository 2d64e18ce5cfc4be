"""A Discourse forum: full-page search with topics beside the posts, and topics to read."""

from __future__ import annotations

import html
import re
from datetime import UTC, datetime
from typing import Any, ClassVar

from api.sandbox.corpus import Post, Remark, handle
from api.sandbox.site_search import Index
from api.sandbox.world import EmulatedServer, SandboxCall, SiteRefusal, World, fields, reply, serves

FORUM = "/forum.example"  # path of the forum, which gives it a name beside this machine's
_PAGE, _LAST, _SHORTEST, _BLURB = 50, 10, 3, 300
_SLOW = "You have performed this action too many times, please try again later."
_BUSY = "We are experiencing extremely high load, try again later."
# `after:2026-10-01` anywhere in a query
_AFTER = re.compile(r"\bafter:(\d{4}-\d\d-\d\d)")


def _error(kind: str, message: str, status: int, **more: Any) -> tuple[dict[str, Any], int]:
    return {"errors": [message], "error_type": kind, **more}, status


def _results(
    posts: list[Any], topics: list[Any], *, more: bool | None = None, error: str | None = None
) -> dict[str, Any]:
    """Answer of a search; empty lists become null."""
    grouped = {
        "more_posts": None, "more_full_page_results": more, "can_create_topic": False,
        "error": error, "post_ids": [post["id"] for post in posts],
    }  # fmt: skip
    return {
        "posts": posts, "topics": topics or None, "users": [], "categories": [], "groups": [],
        "grouped_search_result": grouped,
    }  # fmt: skip


class Discourse(EmulatedServer):
    """Answers as a forum does; a topic is found by its title and first post."""

    upstream = "discourse"
    fault_replies: ClassVar = {
        "overload": (_results([], [], error=_BUSY),),  # an answer like any other
        "429": _error("rate_limit", _SLOW, 429, extras={"wait_seconds": 7, "time_left": "7 seconds"}),
        "403": _error("not_logged_in", "You need to be logged in to do that.", 403),
        "503": ("<h1>503 Service Unavailable</h1>", 503),
    }

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._index = Index([post for post in world.of("discourse") if not post.deleted])

    def fault(self, kind: str, call: SandboxCall) -> Any:
        if kind == "429" and call.path.endswith("/search.json"):
            return reply({"failed": "FAILED", "message": _SLOW}, 429)
        return super().fault(kind, call)

    @serves("search", f"{FORUM}/search.json")
    def _search(self, call: SandboxCall) -> dict[str, Any]:
        query, number = call.query.get("q", ""), call.number("page", 1)
        if len(query) < _SHORTEST or not 1 <= number <= _LAST:
            message = "You supplied invalid parameters to the request"
            raise SiteRefusal(*_error("invalid_parameters", message, 400))
        after = _AFTER.search(query)
        start = datetime.fromisoformat(after[1]).replace(tzinfo=UTC) if after else None
        hits = [
            post
            for post in self._index.search(_AFTER.sub(" ", query), exact=True, every=True)
            if start is None or self.world.moment(post.age_days) >= start
        ]
        shown = hits[call.page(_PAGE)]
        posts = [
            fields("discourse_hit") | {
                "id": int(topic.id) * 10, "username": handle("discourse", topic.id),
                "created_at": self.world.stamp(topic.age_days, ".000"), "like_count": topic.votes,
                "blurb": html.escape(" ".join(topic.body.split())[:_BLURB]),
                "topic_id": int(topic.id),
            }
            for topic in shown
        ]  # fmt: skip
        more = True if len(hits) > number * _PAGE else None
        return _results(posts, list(map(self._topic, shown)), more=more)

    @serves("topic", f"{FORUM}/t/{{id}}.json")
    def _read_topic(self, call: SandboxCall) -> dict[str, Any]:
        topic = self.world.post("discourse", call.parameter("id"))
        if topic is None or topic.deleted:
            message = "The requested URL or resource could not be found."
            raise SiteRefusal(*_error("not_found", message, 404))
        first = Remark(topic.id, topic.body, topic.age_days or 0, topic.votes)
        posts = [
            self._post(topic, number, remark)
            for number, remark in enumerate((first, *topic.comments), 1)
            if not remark.deleted
        ]
        stream = {"posts": posts[:20], "stream": [post["id"] for post in posts]}
        return {"post_stream": stream, "views": topic.views} | self._topic(topic)

    def _topic(self, topic: Post) -> dict[str, Any]:
        slug = re.sub(r"[^a-z0-9]+", "-", topic.title.lower()).strip("-") or "topic"
        return fields("discourse_topic") | {
            "id": int(topic.id), "title": topic.title, "fancy_title": html.escape(topic.title),
            "slug": slug, "posts_count": 1 + len(topic.comments),
            "created_at": self.world.stamp(topic.age_days, ".000"),
        }  # fmt: skip

    def _post(self, topic: Post, number: int, remark: Remark) -> dict[str, Any]:
        paragraphs = (html.escape(part.strip()) for part in remark.body.split("\n\n"))
        return fields("discourse_post") | {
            "id": int(topic.id) * 10 + number - 1, "username": handle("discourse", remark.id),
            "created_at": self.world.stamp(remark.age_days, ".000"), "post_number": number,
            "cooked": "".join(f"<p>{part}</p>" for part in paragraphs), "topic_id": int(topic.id),
            "actions_summary": [{"id": 2, "count": remark.votes}] if remark.votes > 0 else [],
        }  # fmt: skip
