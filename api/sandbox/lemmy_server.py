"""A Lemmy server of version 0.19.20: search by parts of words, and comments on what was found."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from api.sandbox.corpus import LEMMY, Post, Remark, handle
from api.sandbox.world import RequestGateway, SandboxCall, World

VERSION = "0.19.20"
_MOST = 50
_DAYS = {"TopDay": 1, "TopWeek": 7, "TopMonth": 30, "TopYear": 365}
# What the titles of programs' posts hold.
_AUTOMATIC = ("bot]", "auto-posted")
_ANUBIS = "<!doctype html><title>Making sure you're not a bot!</title><script>anubis</script>"


@dataclass(frozen=True, slots=True)
class _Listed:
    """What a search can find: a post, or a comment on it."""

    post: Post
    remark: Remark | None = None

    @property
    def texts(self) -> tuple[str, ...]:
        return (self.remark.body,) if self.remark else (self.post.title, self.post.body)

    @property
    def age(self) -> float:
        return (self.remark.age_days if self.remark else self.post.age_days) or 0

    @property
    def votes(self) -> int:
        return self.remark.votes if self.remark else self.post.votes


class Lemmy:
    """Answers as a server of the federation does, for one sandbox."""

    def __init__(self, world: World) -> None:
        """What was deleted is listed nowhere."""
        self._world = world
        posts = [post for post in world.of("lemmy") if not post.deleted]
        self._posts = [_Listed(post) for post in posts]
        self._comments = [
            _Listed(post, remark)
            for post in posts
            for remark in post.comments
            if not remark.deleted
        ]

    def routes(self) -> list[Route]:
        """Its paths."""
        gateway = RequestGateway(self._world, "lemmy", self.fault)
        return [
            gateway.route("/nodeinfo/2.1", "version", self.node),
            gateway.route(
                "/api/v3/site", "version", lambda call: JSONResponse({"version": VERSION})
            ),
            gateway.route("/api/v3/search", "search", self.search),
            gateway.route("/api/v3/comment/list", "comments", self.comments),
        ]

    def fault(self, kind: str, call: SandboxCall) -> Response | None:
        """Trouble in its words, and of the walls that stand before many servers."""
        if kind == "rate_limit":
            return JSONResponse({"error": "rate_limit_error"}, 400)
        if kind == "400":
            return JSONResponse({"error": "couldnt_get_posts"}, 400)
        if kind == "403html":
            page = "<!doctype html><title>Just a moment...</title>"
            return HTMLResponse(page, 403, {"cf-mitigated": "challenge"})
        return HTMLResponse(_ANUBIS) if kind == "anubis" else None

    def node(self, call: SandboxCall) -> Response:
        """What the server is."""
        return JSONResponse({"version": "2.1", "software": {"name": "lemmy", "version": VERSION}})

    def search(self, call: SandboxCall) -> Response:
        """Posts or comments in whose text the words stand in this order, as parts of words."""
        query, kind = call.query.get("q", ""), call.query.get("type_", "All")
        limit, number = call.number("limit", 10), max(call.number("page", 1), 1)
        if not 1 <= limit <= _MOST:
            return JSONResponse({"error": "couldnt_get_posts"}, 400)
        words = re.compile(".*".join(map(re.escape, query.split())), re.I | re.S)
        sort = call.query.get("sort", "Active")
        days = _DAYS.get(sort) if kind == "Posts" else None
        rows = self._posts if kind == "Posts" else self._comments if kind == "Comments" else []
        hits = [
            row
            for row in rows
            if any(map(words.search, row.texts)) and (days is None or row.age <= days)
        ]
        hits.sort(key=lambda row: row.age if sort == "New" else -row.votes)
        shown = [self._view(row) for row in hits[(number - 1) * limit : number * limit]]
        answer = {"type_": kind, "comments": [], "posts": [], "communities": [], "users": []}
        return JSONResponse(answer | ({kind.lower(): shown} if rows else {}))

    def comments(self, call: SandboxCall) -> Response:
        """What was said about a post, best voted first; below a comment there is only itself."""
        post, parent = call.query.get("post_id"), call.query.get("parent_id")
        rows = [
            row
            for row in self._comments
            if row.remark and (row.post.id == post or row.remark.id == parent)
        ]
        rows.sort(key=lambda row: -row.votes)
        shown = rows[: min(call.number("limit", 10), _MOST)]
        return JSONResponse({"comments": [self._view(row) for row in shown]})

    def _view(self, row: _Listed) -> dict[str, Any]:
        """A post or comment with everything around it; what has no value is no key of it."""
        post, remark = row.post, row.remark
        writer = handle("lemmy", remark.id if remark else post.id)
        automatic = remark is None and any(mark in post.title.casefold() for mark in _AUTOMATIC)
        counts: dict[str, Any] = {
            "score": row.votes, "upvotes": max(row.votes, 0), "downvotes": max(-row.votes, 0),
            "published": self._time(row.age),
        }  # fmt: skip
        below = {"child_count": 0} if remark else {"comments": len(post.comments)}
        view = {
            "post": {
                "id": int(post.id), "name": post.title, "creator_id": 1, "community_id": 1,
                "removed": False, "locked": False, "published": self._time(post.age_days),
                "deleted": False, "nsfw": False, "ap_id": f"{LEMMY}/post/{post.id}", "local": True,
                "language_id": 0, "featured_community": False, "featured_local": False,
                **({"body": post.body} if post.body else {}),
                **({"url": post.link} if post.link else {}),
            },
            "creator": {
                "id": 1, "name": writer, "actor_id": f"{LEMMY}/u/{writer}", "local": True,
                "banned": False, "deleted": False, "bot_account": automatic, "instance_id": 1,
            },
            "community": {
                "id": 1, "name": post.place, "title": post.place, "removed": False, "nsfw": False,
                "actor_id": f"{LEMMY}/c/{post.place}", "local": True, "visibility": "Public",
            },
            "counts": counts | below,
            "subscribed": "NotSubscribed", "saved": False, "creator_blocked": False,
        }  # fmt: skip
        if remark is None:
            return view
        comment = {
            "id": int(remark.id), "creator_id": 1, "post_id": int(post.id), "content": remark.body,
            "removed": False, "published": self._time(remark.age_days), "deleted": False,
            "ap_id": f"{LEMMY}/comment/{remark.id}", "local": True, "path": f"0.{remark.id}",
            "distinguished": False, "language_id": 0,
        }  # fmt: skip
        return {"comment": comment} | view

    def _time(self, age_days: float | None) -> str:
        return f"{self._world.moment(age_days):%Y-%m-%dT%H:%M:%S}.000000Z"
