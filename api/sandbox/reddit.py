"""Reddit's OAuth API: token, search, comments, more children, info."""

from __future__ import annotations

import base64
import binascii
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qsl

from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from api.sandbox.corpus import Post, Remark, spelled
from api.sandbox.pages import render
from api.sandbox.reddit_shapes import comment, escaped, listing, more, submission
from api.sandbox.world import Call, Desk, World

_DAYS = {"hour": 1 / 24, "day": 1, "week": 7, "month": 30, "year": 365}
_PAGE, _DEEPEST, _WINDOW = 100, 250, 600
_GRANTS = {"client_credentials", "password", "https://oauth.reddit.com/grants/installed_client"}


class Reddit:
    """Answers as oauth.reddit.com and www.reddit.com do, for one sandbox."""

    def __init__(self, world: World) -> None:
        """Build its index on first use."""
        self._world, self._index = world, world.index("reddit")
        self._tokens: dict[str, str] = {}
        self._used: Counter[tuple[str, int]] = Counter()

    def routes(self) -> list[Route]:
        """Its paths."""
        desk = Desk(self._world, "reddit", self._fault)
        post = ("POST",)
        return [
            desk.route("/api/v1/access_token", "token", self._token, methods=post),
            desk.route("/r/{sub}/search", "search", self._search),
            desk.route("/r/{sub}/search/", "search", self._search),
            desk.route("/comments/{id}", "comments", self._comments),
            desk.route("/comments/{id}/", "comments", self._comments),
            desk.route("/api/morechildren", "more", self._more, methods=("GET", "POST")),
            desk.route("/api/morechildren/", "more", self._more, methods=("GET", "POST")),
            desk.route("/api/info", "info", self._info),
            desk.route("/api/info/", "info", self._info),
        ]

    def _fault(self, kind: str, call: Call) -> Response | None:
        if kind == "401":
            return self._unauthorized()
        if kind == "403":
            return JSONResponse({"message": "Forbidden", "error": 403}, 403)
        if kind == "403html":
            return HTMLResponse(render("reddit_blocked"), 403)
        if kind == "429":
            seconds = str(self._reset())
            limits = {
                "x-ratelimit-remaining": "0.0",
                "x-ratelimit-used": str(self._world.options.reddit_limit),
            }
            headers = {**limits, "x-ratelimit-reset": seconds, "retry-after": seconds}
            return HTMLResponse(render("reddit_too_many", seconds=seconds), 429, headers)
        return HTMLResponse(render("reddit_login")) if kind == "login" else None

    @staticmethod
    def _unauthorized() -> Response:
        headers = {"www-authenticate": 'Bearer realm="reddit", error="invalid_token"'}
        return JSONResponse({"message": "Unauthorized", "error": 401}, 401, headers)

    def _token(self, call: Call) -> Response:
        user, secret = _basic(call.request.headers.get("authorization", ""))
        known = self._world.options.reddit_credentials
        if not user or not secret or (known is not None and (user, secret) != known):
            return JSONResponse({"message": "Unauthorized", "error": 401}, 401)
        form = dict(parse_qsl(call.body.decode("utf-8", "replace")))
        if form.get("grant_type") not in _GRANTS:
            return JSONResponse({"error": "unsupported_grant_type"})
        token = spelled(
            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJ0123456789", 40, user, len(self._tokens)
        )
        self._tokens[token] = user
        return JSONResponse(
            {"access_token": token, "token_type": "bearer", "expires_in": 86_400, "scope": "*"}
        )

    def _reset(self) -> int:
        """Seconds left in this window; the first one is half over when the sandbox starts."""
        passed = self._world.clock() - self._world.started + _WINDOW / 2
        return max(1, math.ceil(_WINDOW - passed % _WINDOW))

    def _answer(self, call: Call, data: Any) -> Response:
        """The data with rate-limit headers, or what stands in its way."""
        kind, _, token = call.request.headers.get("authorization", "").partition(" ")
        client = self._tokens.get(token)
        if kind.casefold() != "bearer" or client is None:
            return self._unauthorized()
        window = int((self._world.clock() - self._world.started + _WINDOW / 2) // _WINDOW)
        self._used[client, window] += 1
        used, limit = self._used[client, window], self._world.options.reddit_limit
        headers = {
            "x-ratelimit-used": str(min(used, limit)),
            "x-ratelimit-remaining": str(float(max(limit - used, 0))),
            "x-ratelimit-reset": str(self._reset()),
        }
        if used > limit:
            return HTMLResponse(render("reddit_too_many", seconds=self._reset()), 429, headers)
        if data is None:
            return JSONResponse({"message": "Not Found", "error": 404}, 404, headers)
        raw = call.query.get("raw_json") == "1"
        return JSONResponse(data if raw else escaped(data), headers=headers)

    def _search(self, call: Call) -> Response:
        query, sub = call.query, call.request.path_params["sub"]
        if sub != "all" and not any(
            p.place.casefold() == sub.casefold() for p in self._index.posts
        ):
            return RedirectResponse(f"/subreddits/search?q={sub}", 302)
        found = self._found(query, sub)
        names = [f"t3_{post.id}" for post in found]
        after = query.get("after") or ""
        start = names.index(after) + 1 if after in names else 0
        size = min(max(_number(query.get("limit"), 25), 1), _PAGE)
        page = found[start : start + size]
        cursor = names[start + size - 1] if start + size < len(found) else None
        return self._answer(call, listing([submission(self._world, post) for post in page], cursor))

    def _found(self, query: dict[str, str], sub: str) -> list[Post]:
        days = _DAYS.get(query.get("t", "all"), math.inf)
        oldest = self._world.clock() - days * 86_400
        restricted = query.get("restrict_sr", "").casefold() in {"true", "1", "on"} and sub != "all"
        found = [
            post
            for post in self._index.search(query.get("q", ""), exact=True)
            if self._world.created(post.age_days) >= oldest
            and (not restricted or post.place.casefold() == sub.casefold())
        ]
        order = query.get("sort", "relevance")
        if order == "new":
            found.sort(key=lambda post: post.age_days or 0)
        elif order in {"top", "hot"}:
            found.sort(key=lambda post: -post.votes)
        elif order == "comments":
            found.sort(key=lambda post: -len(post.comments))
        return found[:_DEEPEST]

    def _comments(self, call: Call) -> Response:
        post = self._world.post("reddit", call.request.path_params["id"])
        if post is None:
            return self._answer(call, None)
        limit = max(_number(call.query.get("limit"), 200), 0)
        head = listing([submission(self._world, post)])
        return self._answer(
            call, [head, listing(self._forest(post, limit, call.query.get("sort", "")))]
        )

    def _forest(self, post: Post, limit: int, order: str) -> list[dict[str, Any]]:
        """Every third comment answers the one before it; what is over the limit becomes `more`."""
        remarks = list(post.comments)
        if order == "new":
            remarks.sort(key=lambda remark: remark.age_days)
        shown, rest = remarks[:limit], remarks[limit:]
        top: list[dict[str, Any]] = []
        for number, remark in enumerate(shown):
            if number % 3 == 2:
                above = top[-1]["data"]
                reply = comment(self._world, post, remark, above["name"], 1)
                above["replies"] = listing([reply])
            else:
                top.append(comment(self._world, post, remark, f"t3_{post.id}", 0))
        if rest:
            top.append(more(post, rest, f"t3_{post.id}", 0))
        return top

    def _more(self, call: Call) -> Response:
        form = {**call.query, **dict(parse_qsl(call.body.decode("utf-8", "replace")))}
        post = self._world.post("reddit", form.get("link_id", "").removeprefix("t3_"))
        wanted = form.get("children", "").split(",")[:_PAGE]
        things = (
            [] if post is None else self._things(post, [r for r in post.comments if r.id in wanted])
        )
        return self._answer(call, {"json": {"errors": [], "data": {"things": things}}})

    def _things(self, post: Post, remarks: Sequence[Remark]) -> list[dict[str, Any]]:
        return [comment(self._world, post, remark, f"t3_{post.id}", 0) for remark in remarks]

    def _info(self, call: Call) -> Response:
        things = []
        for name in call.query.get("id", "").split(","):
            post = self._world.post("reddit", name.removeprefix("t3_"))
            things += [submission(self._world, post)] if post is not None else []
        return self._answer(call, listing(things))


def _number(text: str | None, default: int) -> int:
    return int(text) if text and text.isascii() and text.isdigit() else default


def _basic(header: str) -> tuple[str, str]:
    kind, _, value = header.partition(" ")
    if kind.casefold() != "basic":
        return "", ""
    try:
        user, _, secret = base64.b64decode(value, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return "", ""
    return user, secret
