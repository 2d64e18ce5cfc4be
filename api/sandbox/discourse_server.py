"""A Discourse forum: full-page search with topics beside the posts, and topics to read."""

from __future__ import annotations

import html
import re
from datetime import UTC, datetime
from typing import Any

from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from api.sandbox.corpus import Post, Remark, handle
from api.sandbox.site_search import Index
from api.sandbox.world import RequestGateway, SandboxCall, World

FORUM = "/forum.example"
"""The path below which it stands; so it has a name beside this machine's."""
_PAGE, _LAST, _SHORTEST, _BLURB = 50, 10, 3, 300
_SLOW = "You have performed this action too many times, please try again later."
_BUSY = "We are experiencing extremely high load, try again later."
# `after:2026-10-01` at any place of a query
_AFTER = re.compile(r"\bafter:(\d{4}-\d\d-\d\d)")


class Discourse:
    """Answers as a forum does, for one sandbox."""

    def __init__(self, world: World) -> None:
        """A topic is found by what its first post says, and by its title."""
        self._world = world
        self._index = Index([post for post in world.of("discourse") if not post.deleted])

    def routes(self) -> list[Route]:
        """Its paths."""
        gateway = RequestGateway(self._world, "discourse", self.fault)
        return [
            gateway.route(f"{FORUM}/search.json", "search", self.search),
            gateway.route(f"{FORUM}/t/{{id}}.json", "topic", self.topic),
        ]

    def fault(self, kind: str, call: SandboxCall) -> Response | None:
        """Trouble in its words; too much load is an answer like any other."""
        if kind == "overload":
            return JSONResponse(_results([], [], error=_BUSY))
        if kind == "429" and call.request.url.path.endswith("/search.json"):
            return JSONResponse({"failed": "FAILED", "message": _SLOW}, 429)
        if kind == "429":
            waits = {"extras": {"wait_seconds": 7, "time_left": "7 seconds"}}
            return JSONResponse({"errors": [_SLOW], "error_type": "rate_limit"} | waits, 429)
        if kind == "403":
            words = ["You need to be logged in to do that."]
            return JSONResponse({"errors": words, "error_type": "not_logged_in"}, 403)
        return HTMLResponse("<h1>503 Service Unavailable</h1>", 503) if kind == "503" else None

    def search(self, call: SandboxCall) -> Response:
        """Topics whose first post or title holds every word, at most ten pages of them."""
        query, number = call.query.get("q", ""), call.number("page", 1)
        if len(query) < _SHORTEST or not 1 <= number <= _LAST:
            words = ["You supplied invalid parameters to the request"]
            return JSONResponse({"errors": words, "error_type": "invalid_parameters"}, 400)
        after = _AFTER.search(query)
        start = datetime.fromisoformat(after[1]).replace(tzinfo=UTC) if after else None
        hits = [
            post
            for post in self._index.search(_AFTER.sub(" ", query), exact=True, every=True)
            if start is None or self._world.moment(post.age_days) >= start
        ]
        shown = hits[(number - 1) * _PAGE : number * _PAGE]
        more = True if len(hits) > number * _PAGE else None
        return JSONResponse(
            _results(list(map(self._hit, shown)), list(map(self._topic, shown)), more=more)
        )

    def topic(self, call: SandboxCall) -> Response:
        """A topic with its first twenty posts."""
        topic = self._world.post("discourse", call.request.path_params["id"])
        if topic is None or topic.deleted:
            words = ["The requested URL or resource could not be found."]
            return JSONResponse({"errors": words, "error_type": "not_found"}, 404)
        first = Remark(topic.id, topic.body, topic.age_days or 0, topic.votes)
        posts = [
            self._post(topic, number, remark)
            for number, remark in enumerate((first, *topic.comments), 1)
            if not remark.deleted
        ]
        stream = {"posts": posts[:20], "stream": [post["id"] for post in posts]}
        return JSONResponse({"post_stream": stream, "views": topic.views} | self._topic(topic))

    def _hit(self, topic: Post) -> dict[str, Any]:
        writer = handle("discourse", topic.id)
        return {
            "id": int(topic.id) * 10, "name": None, "username": writer, "avatar_template": "",
            "created_at": self._time(topic.age_days), "like_count": topic.votes, "post_number": 1,
            "blurb": html.escape(" ".join(topic.body.split())[:_BLURB]), "topic_id": int(topic.id),
        }  # fmt: skip

    def _topic(self, topic: Post) -> dict[str, Any]:
        slug = re.sub(r"[^a-z0-9]+", "-", topic.title.lower()).strip("-") or "topic"
        return {
            "id": int(topic.id), "title": topic.title, "fancy_title": html.escape(topic.title),
            "slug": slug, "posts_count": 1 + len(topic.comments), "archetype": "regular",
            "created_at": self._time(topic.age_days), "tags": [], "category_id": 1,
        }  # fmt: skip

    def _post(self, topic: Post, number: int, remark: Remark) -> dict[str, Any]:
        paragraphs = (html.escape(part.strip()) for part in remark.body.split("\n\n"))
        return {
            "id": int(topic.id) * 10 + number - 1, "username": handle("discourse", remark.id),
            "name": None, "created_at": self._time(remark.age_days), "post_number": number,
            "cooked": "".join(f"<p>{part}</p>" for part in paragraphs), "post_type": 1,
            "actions_summary": [{"id": 2, "count": remark.votes}] if remark.votes > 0 else [],
            "topic_id": int(topic.id), "hidden": False, "deleted_at": None, "user_deleted": False,
        }  # fmt: skip

    def _time(self, age_days: float | None) -> str:
        return f"{self._world.moment(age_days):%Y-%m-%dT%H:%M:%S}.000Z"


def _results(
    posts: list[Any], topics: list[Any], *, more: bool | None = None, error: str | None = None
) -> dict[str, Any]:
    """A search's answer; what it has none of is null."""
    grouped = {
        "more_posts": None, "more_full_page_results": more, "can_create_topic": False,
        "error": error, "post_ids": [post["id"] for post in posts],
    }  # fmt: skip
    return {
        "posts": posts, "topics": topics or None, "users": [], "categories": [], "groups": [],
        "grouped_search_result": grouped,
    }  # fmt: skip
