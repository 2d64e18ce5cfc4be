"""A Lemmy server of version 0.19.20: search by parts of words, and comments on what was found."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar

from api.sandbox.corpus import LEMMY, Post, Remark, handle
from api.sandbox.world import EmulatedServer, SandboxCall, SiteRefusal, World, fields, serves

VERSION = "0.19.20"
_MOST = 50
_DAYS = {"TopDay": 1, "TopWeek": 7, "TopMonth": 30, "TopYear": 365}
# in the titles of posts by programs
_AUTOMATIC = ("bot]", "auto-posted")
_ANUBIS = "<!doctype html><title>Making sure you're not a bot!</title><script>anubis</script>"


@dataclass(frozen=True, slots=True)
class _Listed:
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


class Lemmy(EmulatedServer):
    """Answers as a server of the federation; deleted posts are in no list."""

    upstream = "lemmy"
    fault_replies: ClassVar = {
        "rate_limit": ({"error": "rate_limit_error"}, 400),
        "400": ({"error": "couldnt_get_posts"}, 400),
        "403html": (
            "<!doctype html><title>Just a moment...</title>", 403, {"cf-mitigated": "challenge"}
        ),
        "anubis": (_ANUBIS,),
    }  # fmt: skip

    def __init__(self, world: World) -> None:
        super().__init__(world)
        posts = [post for post in world.of("lemmy") if not post.deleted]
        self._posts = [_Listed(post) for post in posts]
        self._remarks = [_Listed(post, remark) for post in posts for remark in post.comments if not remark.deleted]

    @serves("version", "/nodeinfo/2.1")
    def _node(self, call: SandboxCall) -> dict[str, Any]:
        return {"version": "2.1", "software": {"name": "lemmy", "version": VERSION}}

    @serves("version", "/api/v3/site")
    def _site(self, call: SandboxCall) -> dict[str, Any]:
        return {"version": VERSION}

    @serves("search", "/api/v3/search")
    def _search(self, call: SandboxCall) -> dict[str, Any]:
        """Posts or comments in whose text the words stand in this order, as parts of words."""
        query, kind = call.query.get("q", ""), call.query.get("type_", "All")
        limit, sort = call.number("limit", 10), call.query.get("sort", "Active")
        if not 1 <= limit <= _MOST:
            raise SiteRefusal({"error": "couldnt_get_posts"})
        words = re.compile(".*".join(map(re.escape, query.split())), re.I | re.S)
        days = _DAYS.get(sort) if kind == "Posts" else None
        rows = {"Posts": self._posts, "Comments": self._remarks}.get(kind, [])
        hits = [row for row in rows if any(map(words.search, row.texts)) and (days is None or row.age <= days)]
        hits.sort(key=lambda row: row.age if sort == "New" else -row.votes)
        shown = [self._view(row) for row in hits[call.page(limit)]]
        answer = {"type_": kind, "comments": [], "posts": [], "communities": [], "users": []}
        return answer | ({kind.lower(): shown} if rows else {})

    @serves("comments", "/api/v3/comment/list")
    def _comments(self, call: SandboxCall) -> dict[str, Any]:
        post, parent = call.query.get("post_id"), call.query.get("parent_id")
        rows = [row for row in self._remarks if row.remark and (row.post.id == post or row.remark.id == parent)]
        rows.sort(key=lambda row: -row.votes)
        shown = rows[: min(call.number("limit", 10), _MOST)]
        return {"comments": [self._view(row) for row in shown]}

    def _view(self, row: _Listed) -> dict[str, Any]:
        """A post or comment with everything around it; fields without a value are left out."""
        post, remark = row.post, row.remark
        writer = handle("lemmy", remark.id if remark else post.id)
        automatic = remark is None and any(mark in post.title.casefold() for mark in _AUTOMATIC)
        below = {"child_count": 0} if remark else {"comments": len(post.comments)}
        view = fields("lemmy_view") | {
            "post": fields("lemmy_post") | {
                "id": int(post.id), "name": post.title, "ap_id": f"{LEMMY}/post/{post.id}",
                "published": self._time(post.age_days),
                **({"body": post.body} if post.body else {}),
                **({"url": post.link} if post.link else {}),
            },
            "creator": fields("lemmy_creator") | {
                "name": writer, "actor_id": f"{LEMMY}/u/{writer}", "bot_account": automatic,
            },
            "community": fields("lemmy_community") | {
                "name": post.place, "title": post.place, "actor_id": f"{LEMMY}/c/{post.place}",
            },
            "counts": {
                "score": row.votes, "upvotes": max(row.votes, 0), "downvotes": max(-row.votes, 0),
                "published": self._time(row.age), **below,
            },
        }  # fmt: skip
        if remark is None:
            return view
        comment = fields("lemmy_comment") | {
            "id": int(remark.id), "post_id": int(post.id), "content": remark.body,
            "published": self._time(remark.age_days), "path": f"0.{remark.id}",
            "ap_id": f"{LEMMY}/comment/{remark.id}",
        }  # fmt: skip
        return {"comment": comment, **view}

    def _time(self, age_days: float | None) -> str:
        return self.world.stamp(age_days, ".000000")
