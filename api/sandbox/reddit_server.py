"""Reddit's OAuth API: token, search, comments, more children, info, in the fields Reddit sends."""

from __future__ import annotations

import html
import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from api.sandbox.corpus import BASE36, DIGITS, Post, Remark, handle, spelled
from api.sandbox.site_search import Index
from api.sandbox.world import RequestGateway, SandboxCall, World

_DAYS = {"hour": 1 / 24, "day": 1, "week": 7, "month": 30, "year": 365}
_PAGE, _DEEPEST, _WINDOW = 100, 250, 600
_GRANTS = {"client_credentials", "password", "https://oauth.reddit.com/grants/installed_client"}
_TOKEN_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJ0123456789"
_ORDERS = {
    "new": lambda post: post.age_days or 0,
    "top": lambda post: -post.votes,
    "hot": lambda post: -post.votes,
    "comments": lambda post: -len(post.comments),
}
_GONE = {"[deleted]", "[removed]"}
_BLOCKED = """<!doctype html>
<html><head><title>Blocked</title></head><body><h1>whoa there, pardner!</h1>
<p>Your request has been blocked due to a network policy.</p>
<p>Try logging in or creating an account here to get back to browsing.</p></body></html>
"""
_LOGIN = """<!doctype html><html><head><title>reddit.com: Log in</title></head>
<body><form action="/login" method="post"><input name="username"><input name="password"></form></body></html>
"""  # noqa: E501
_TOO_MANY = """<!doctype html>
<html><head><title>Too Many Requests</title></head><body><h1>whoa there, pardner!</h1>
<p>we're sorry, but you appear to be a bot and we've seen too many requests from you lately.</p>
<p>please wait {} second(s) and try again.</p></body></html>
"""


class Reddit:
    """Answers as oauth.reddit.com and www.reddit.com do, for one sandbox."""

    def __init__(self, world: World) -> None:
        """Build its index on first use."""
        self._world, self._index = world, Index(world.of("reddit"))
        self._tokens: dict[str, str] = {}
        self._used: Counter[tuple[str, int]] = Counter()

    def routes(self) -> list[Route]:
        """Its paths; clients write them with and without a slash at the end."""
        gateway = RequestGateway(self._world, "reddit", self.fault)
        routes = [gateway.route("/api/v1/access_token", "token", self.token, methods=("POST",))]
        for end in ("", "/"):
            routes += [
                gateway.route(f"/r/{{sub}}/search{end}", "search", self.search),
                gateway.route(f"/comments/{{id}}{end}", "comments", self.comments),
                gateway.route(
                    f"/api/morechildren{end}", "more", self.more, methods=("GET", "POST")
                ),
                gateway.route(f"/api/info{end}", "info", self.info),
            ]
        return routes

    def fault(self, kind: str, call: SandboxCall) -> Response | None:
        """Trouble in Reddit's words."""
        if kind == "401":
            return _unauthorized()
        if kind == "403":
            return JSONResponse({"message": "Forbidden", "error": 403}, 403)
        if kind == "403html":
            return HTMLResponse(_BLOCKED, 403)
        if kind == "429":
            seconds = str(self._window()[1])
            headers = {
                "x-ratelimit-remaining": "0.0",
                "x-ratelimit-used": str(self._world.options.reddit_limit),
                "x-ratelimit-reset": seconds,
                "retry-after": seconds,
            }
            return HTMLResponse(_TOO_MANY.format(seconds), 429, headers)
        return HTMLResponse(_LOGIN) if kind == "login" else None

    def token(self, call: SandboxCall) -> Response:
        """A bearer token for a client's credentials."""
        user, secret = call.basic
        known = self._world.options.reddit_credentials
        if not user or not secret or (known is not None and (user, secret) != known):
            return JSONResponse({"message": "Unauthorized", "error": 401}, 401)
        if _form(call).get("grant_type") not in _GRANTS:
            return JSONResponse({"error": "unsupported_grant_type"})
        token = spelled(_TOKEN_LETTERS, 40, user, len(self._tokens))
        self._tokens[token] = user
        return JSONResponse(
            {"access_token": token, "token_type": "bearer", "expires_in": 86_400, "scope": "*"}
        )

    def _window(self) -> tuple[int, int]:
        """Number of the ten minutes and the seconds left in them; the first is half over."""
        window, passed = divmod(
            self._world.clock() - self._world.started + _WINDOW / 2, float(_WINDOW)
        )
        return int(window), max(1, math.ceil(_WINDOW - passed))

    def _answer(self, call: SandboxCall, data: Any) -> Response:
        """The data with rate-limit headers, or what stands in its way."""
        kind, _, token = call.request.headers.get("authorization", "").partition(" ")
        client = self._tokens.get(token)
        if kind.casefold() != "bearer" or client is None:
            return _unauthorized()
        window, seconds = self._window()
        self._used[client, window] += 1
        used, limit = self._used[client, window], self._world.options.reddit_limit
        headers = {
            "x-ratelimit-used": str(min(used, limit)),
            "x-ratelimit-remaining": str(float(max(limit - used, 0))),
            "x-ratelimit-reset": str(seconds),
        }
        if used > limit:
            return HTMLResponse(_TOO_MANY.format(seconds), 429, headers)
        if data is None:
            return JSONResponse({"message": "Not Found", "error": 404}, 404, headers)
        raw = call.query.get("raw_json") == "1"
        return JSONResponse(data if raw else escaped(data), headers=headers)

    def search(self, call: SandboxCall) -> Response:
        """Submissions everywhere or in one subreddit; one without posts answers as if missing."""
        query, sub = call.query, call.request.path_params["sub"].casefold()
        if sub != "all" and all(post.place.casefold() != sub for post in self._index.posts):
            return RedirectResponse(f"/subreddits/search?q={call.request.path_params['sub']}", 302)
        oldest = self._world.clock() - _DAYS.get(query.get("t", "all"), math.inf) * 86_400
        restricted = query.get("restrict_sr", "").casefold() in {"true", "1", "on"} and sub != "all"
        hits = [
            post
            for post in self._index.search(query.get("q", ""), exact=True)
            if self._world.created(post.age_days) >= oldest
            and (not restricted or post.place.casefold() == sub)
        ]
        if query.get("sort") in _ORDERS:
            hits.sort(key=_ORDERS[query["sort"]])
        names = [f"t3_{post.id}" for post in hits[:_DEEPEST]]
        after = query.get("after") or ""
        start = names.index(after) + 1 if after in names else 0
        end = start + min(max(call.number("limit", 25), 1), _PAGE)
        things = [submission(self._world, post) for post in hits[:_DEEPEST][start:end]]
        return self._answer(call, listing(things, names[end - 1] if end < len(names) else None))

    def comments(self, call: SandboxCall) -> Response:
        """A submission and its comments.

        Every third comment answers the one before it; what is over the limit becomes `more`.
        """
        post = self._world.post("reddit", call.request.path_params["id"])
        if post is None:
            return self._answer(call, None)
        remarks, limit = list(post.comments), call.number("limit", 200)
        if call.query.get("sort") == "new":
            remarks.sort(key=lambda remark: remark.age_days)
        top: list[dict[str, Any]] = []
        for number, remark in enumerate(remarks[:limit]):
            if number % 3 == 2:
                above = top[-1]["data"]
                above["replies"] = listing([comment(self._world, post, remark, above["name"])])
            else:
                top.append(comment(self._world, post, remark))
        if ids := [remark.id for remark in remarks[limit:]]:
            data = {
                "count": len(ids), "name": f"t1_{ids[0]}", "id": ids[0],
                "parent_id": f"t3_{post.id}", "depth": 0, "children": ids,
            }  # fmt: skip
            top.append({"kind": "more", "data": data})
        return self._answer(call, [listing([submission(self._world, post)]), listing(top)])

    def more(self, call: SandboxCall) -> Response:
        """Comments that a `more` stands for."""
        form = {**call.query, **_form(call)}
        post = self._world.post("reddit", form.get("link_id", "").removeprefix("t3_"))
        wanted = form.get("children", "").split(",")[:_PAGE]
        remarks = post.comments if post else ()
        things = [comment(self._world, post, r) for r in remarks if post and r.id in wanted]
        return self._answer(call, {"json": {"errors": [], "data": {"things": things}}})

    def info(self, call: SandboxCall) -> Response:
        """Submissions by name; unknown ones are left out."""
        ids = [name.removeprefix("t3_") for name in call.query.get("id", "").split(",")]
        posts = [post for id_ in ids if (post := self._world.post("reddit", id_)) is not None]
        return self._answer(call, listing([submission(self._world, post) for post in posts]))


def _unauthorized() -> Response:
    headers = {"www-authenticate": 'Bearer realm="reddit", error="invalid_token"'}
    return JSONResponse({"message": "Unauthorized", "error": 401}, 401, headers)


def _form(call: SandboxCall) -> dict[str, str]:
    return dict(parse_qsl(call.body.decode("utf-8", "replace")))


@cache
def _fields() -> Mapping[str, Mapping[str, Any]]:
    """What every submission and comment has beside its own: the same for all of them."""
    file = resources.files("api.sandbox") / "data" / "reddit_fields.json"
    fields: Mapping[str, Mapping[str, Any]] = json.loads(file.read_text("utf-8"))
    return fields


def listing(children: Sequence[Mapping[str, Any]], after: str | None = None) -> dict[str, Any]:
    """A page of things."""
    data = {
        "after": after, "dist": len(children), "modhash": None, "geo_filter": "", "before": None,
    }  # fmt: skip
    return {"kind": "Listing", "data": {**data, "children": list(children)}}


def permalink(post: Post) -> str:
    """Its path on the site: `/r/gadgets/comments/1abcdef/glow_lamp_review/`."""
    slug = re.sub(r"\W+", "_", post.title.casefold()).strip("_")[:50].rstrip("_") or "_"
    return f"/r/{post.place}/comments/{post.id}/{slug}/"


def _html(text: str) -> str | None:
    if not text:
        return None
    lines = (f"<p>{html.escape(line, False)}</p>\n" for line in text.split("\n") if line.strip())
    return f'<!-- SC_OFF --><div class="md">{"".join(lines)}</div><!-- SC_ON -->'


def _origin(post: Post, deleted: bool, *parts: object) -> dict[str, Any]:
    """Subreddit and author, as submissions and comments have them."""
    subreddit = {
        "subreddit": post.place,
        "subreddit_id": f"t5_{spelled(BASE36, 5, post.place)}",
        "subreddit_name_prefixed": f"r/{post.place}",
    }
    if deleted:
        return {**subreddit, "author": "[deleted]"}
    name = handle("reddit", *parts)
    return {**subreddit, "author": name, "author_fullname": f"t2_{spelled(BASE36, 8, name)}"}


def submission(world: World, post: Post) -> dict[str, Any]:
    """One t3, its crosspost parent inside when it has one."""
    parent = world.post("reddit", post.crosspost_parent)
    if parent is not None:
        url, domain = permalink(parent), f"self.{parent.place}"
        target = {"is_self": False, "url": url, "url_overridden_by_dest": url}
        target |= {"domain": domain, "thumbnail": "default"}
    elif post.link:
        target = {"is_self": False, "url": post.link, "url_overridden_by_dest": post.link}
        target |= {"domain": urlsplit(post.link).netloc, "post_hint": "link"}
        target |= {"thumbnail": "default"}
    else:
        url = f"https://www.reddit.com{permalink(post)}"
        target = {"is_self": True, "url": url, "domain": f"self.{post.place}", "thumbnail": "self"}
    ups = max(post.votes, 0)
    data = {
        **_fields()["submission"],
        **_origin(post, post.deleted, post.id),
        **target,
        "id": post.id,
        "name": f"t3_{post.id}",
        "title": post.title,
        "selftext": post.body,
        "selftext_html": _html(post.body),
        "permalink": permalink(post),
        "created": world.created(post.age_days),
        "created_utc": world.created(post.age_days),
        "score": post.votes,
        "ups": ups,
        "upvote_ratio": round(0.5 + min(ups, 1000) / 2100, 2) if ups else 0.4,
        "num_comments": len(post.comments),
        "subreddit_subscribers": 900 + int(spelled(DIGITS, 6, post.place)),
    }
    if post.body == "[removed]":
        data |= {"removed_by_category": "moderator", "is_robot_indexable": False}
    elif post.deleted and post.body == "[deleted]":
        data |= {"removed_by_category": "deleted", "is_robot_indexable": False}
    if parent is not None:
        data |= {
            "crosspost_parent": f"t3_{parent.id}",
            "crosspost_parent_list": [submission(world, parent)["data"]],
        }
    return {"kind": "t3", "data": data}


def comment(world: World, post: Post, remark: Remark, above: str = "") -> dict[str, Any]:
    """One t1 without replies; `above` is the name of the comment it answers, if it does."""
    gone = remark.deleted or remark.body in _GONE
    data = {
        **_fields()["comment"],
        **_origin(post, gone, post.id, remark.id),
        "id": remark.id,
        "name": f"t1_{remark.id}",
        "link_id": f"t3_{post.id}",
        "parent_id": above or f"t3_{post.id}",
        "body": "[deleted]" if remark.deleted and remark.body not in _GONE else remark.body,
        "body_html": _html(remark.body),
        "created": world.created(remark.age_days),
        "created_utc": world.created(remark.age_days),
        "score": remark.votes,
        "ups": remark.votes,
        "depth": 1 if above else 0,
        "is_submitter": False,
        "permalink": f"{permalink(post)}{remark.id}/",
        "replies": "",
    }
    return {"kind": "t1", "data": data}


def escaped(value: Any) -> Any:
    """Every text as Reddit sends it without `raw_json=1`: `<`, `>` and `&` as entities."""
    if isinstance(value, str):
        return html.escape(value, quote=False)
    if isinstance(value, dict):
        return {key: escaped(inner) for key, inner in value.items()}
    return [escaped(inner) for inner in value] if isinstance(value, list) else value
