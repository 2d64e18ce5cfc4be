"""Reddit's OAuth API: token, search, comments, more children and info, with all their fields."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar
from urllib.parse import parse_qsl, urlsplit

from starlette.responses import RedirectResponse, Response

from api.sandbox.corpus import BASE36, DIGITS, Post, Remark, handle, spelled
from api.sandbox.site_search import Index
from api.sandbox.world import EmulatedServer, Quota, SandboxCall, SiteRefusal, World, fields, reply, serves

_DAYS = {"hour": 1 / 24, "day": 1, "week": 7, "month": 30, "year": 365}
_PAGE, _DEEPEST, _WINDOW = 100, 250, 600
_GRANTS = {"client_credentials", "password", "https://oauth.reddit.com/grants/installed_client"}
_TOKEN_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJ0123456789"
_ORDERS = {
    "new": lambda post: post.age_days or 0, "top": lambda post: -post.votes,
    "hot": lambda post: -post.votes, "comments": lambda post: -len(post.comments),
}  # fmt: skip
_GONE = {"[deleted]", "[removed]"}
_BLOCKED = """<!doctype html>
<html><head><title>Blocked</title></head><body><h1>whoa there, pardner!</h1>
<p>Your request has been blocked due to a network policy.</p>
<p>Try logging in or creating an account here to get back to browsing.</p></body></html>
"""
_LOGIN = """<!doctype html><html><head><title>reddit.com: Log in</title></head>
<body><form action="/login" method="post"><input name="username"><input name="password"></form></body></html>
"""
_TOO_MANY = """<!doctype html>
<html><head><title>Too Many Requests</title></head><body><h1>whoa there, pardner!</h1>
<p>we're sorry, but you appear to be a bot and we've seen too many requests from you lately.</p>
<p>please wait {} second(s) and try again.</p></body></html>
"""
_UNAUTHORIZED = (
    {"message": "Unauthorized", "error": 401}, 401,
    {"www-authenticate": 'Bearer realm="reddit", error="invalid_token"'},
)  # fmt: skip


class Reddit(EmulatedServer):
    """Answers as oauth.reddit.com and www.reddit.com do."""

    upstream = "reddit"
    fault_replies: ClassVar = {
        "401": _UNAUTHORIZED, "403": ({"message": "Forbidden", "error": 403}, 403),
        "403html": (_BLOCKED, 403), "login": (_LOGIN,),
    }  # fmt: skip

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._index = Index(world.of("reddit"))
        self._clients: dict[str, str] = {}
        # the first window of ten minutes is half over when the sandbox starts
        self._quota = Quota(world.clock, _WINDOW, _WINDOW / 2 - world.started)

    def fault(self, kind: str, call: SandboxCall) -> Any:
        if kind != "429":
            return super().fault(kind, call)
        headers = self._limits(self.world.options.reddit_limit)
        return self._too_many(headers | {"retry-after": headers["x-ratelimit-reset"]})

    @serves("token", "/api/v1/access_token", methods=("POST",))
    def _token(self, call: SandboxCall) -> Any:
        user, secret = call.basic
        known = self.world.options.reddit_credentials
        if not user or not secret or known not in (None, (user, secret)):
            raise SiteRefusal({"message": "Unauthorized", "error": 401}, 401)
        if _form(call).get("grant_type") not in _GRANTS:
            return {"error": "unsupported_grant_type"}
        token = spelled(_TOKEN_LETTERS, 40, user, len(self._clients))
        self._clients[token] = user
        lifetime = {"token_type": "bearer", "expires_in": 86_400, "scope": "*"}
        return {"access_token": token, **lifetime}

    def _limits(self, used: int) -> dict[str, str]:
        limit = self.world.options.reddit_limit
        return {
            "x-ratelimit-used": str(min(used, limit)),
            "x-ratelimit-remaining": str(float(max(limit - used, 0))),
            "x-ratelimit-reset": str(max(1, math.ceil(self._quota.window[1]))),
        }

    def _too_many(self, headers: dict[str, str]) -> Response:
        return reply(_TOO_MANY.format(headers["x-ratelimit-reset"]), 429, headers)

    def _answer(self, call: SandboxCall, data: Any) -> Response:
        """The data with rate-limit headers, unless token, limit or the data is missing."""
        kind, _, token = call.request.headers.get("authorization", "").partition(" ")
        client = self._clients.get(token)
        if kind.casefold() != "bearer" or client is None:
            raise SiteRefusal(*_UNAUTHORIZED)
        used = self._quota.spend(client)
        headers = self._limits(used)
        if used > self.world.options.reddit_limit:
            return self._too_many(headers)
        if data is None:
            raise SiteRefusal({"message": "Not Found", "error": 404}, 404, headers)
        return reply(data if call.query.get("raw_json") == "1" else escaped(data), headers=headers)

    @serves("search", "/r/{sub}/search", "/r/{sub}/search/")
    def _search(self, call: SandboxCall) -> Response:
        """Submissions everywhere or in one subreddit; one without posts answers as if missing."""
        query, sub = call.query, call.parameter("sub").casefold()
        if sub != "all" and all(post.place.casefold() != sub for post in self._index.posts):
            return RedirectResponse(f"/subreddits/search?q={call.parameter('sub')}", 302)
        oldest = self.world.clock() - _DAYS.get(query.get("t", "all"), math.inf) * 86_400
        restricted = query.get("restrict_sr", "").casefold() in {"true", "1", "on"} and sub != "all"
        hits = [
            post
            for post in self._index.search(query.get("q", ""), exact=True)
            if self.world.created(post.age_days) >= oldest and (not restricted or post.place.casefold() == sub)
        ]
        if query.get("sort") in _ORDERS:
            hits.sort(key=_ORDERS[query["sort"]])
        names = [f"t3_{post.id}" for post in hits[:_DEEPEST]]
        after = query.get("after") or ""
        start = names.index(after) + 1 if after in names else 0
        end = start + min(max(call.number("limit", 25), 1), _PAGE)
        things = [_submission(self.world, post) for post in hits[:_DEEPEST][start:end]]
        return self._answer(call, listing(things, names[end - 1] if end < len(names) else None))

    @serves("comments", "/comments/{id}", "/comments/{id}/")
    def _comments(self, call: SandboxCall) -> Response:
        """A submission and its comments; what is over the limit becomes `more`.

        Every third comment answers the one before it.
        """
        post = self.world.post("reddit", call.parameter("id"))
        if post is None:
            return self._answer(call, None)
        remarks, limit = list(post.comments), call.number("limit", 200)
        if call.query.get("sort") == "new":
            remarks.sort(key=lambda remark: remark.age_days)
        top: list[dict[str, Any]] = []
        for number, remark in enumerate(remarks[:limit]):
            if number % 3 == 2:
                above = top[-1]["data"]
                above["replies"] = listing([_comment(self.world, post, remark, above["name"])])
            else:
                top.append(_comment(self.world, post, remark))
        if ids := [remark.id for remark in remarks[limit:]]:
            data = {
                "count": len(ids), "name": f"t1_{ids[0]}", "id": ids[0],
                "parent_id": f"t3_{post.id}", "depth": 0, "children": ids,
            }  # fmt: skip
            top.append({"kind": "more", "data": data})
        return self._answer(call, [listing([_submission(self.world, post)]), listing(top)])

    @serves("more", "/api/morechildren", "/api/morechildren/", methods=("GET", "POST"))
    def _more(self, call: SandboxCall) -> Response:
        form = {**call.query, **_form(call)}
        post = self.world.post("reddit", form.get("link_id", "").removeprefix("t3_"))
        wanted = form.get("children", "").split(",")[:_PAGE]
        remarks = post.comments if post else ()
        things = [_comment(self.world, post, r) for r in remarks if post and r.id in wanted]
        return self._answer(call, {"json": {"errors": [], "data": {"things": things}}})

    @serves("info", "/api/info", "/api/info/")
    def _info(self, call: SandboxCall) -> Response:
        ids = [name.removeprefix("t3_") for name in call.query.get("id", "").split(",")]
        posts = [post for id_ in ids if (post := self.world.post("reddit", id_)) is not None]
        return self._answer(call, listing([_submission(self.world, post) for post in posts]))


def _form(call: SandboxCall) -> dict[str, str]:
    return dict(parse_qsl(call.body.decode("utf-8", "replace")))


def listing(children: Sequence[Mapping[str, Any]], after: str | None = None) -> dict[str, Any]:
    """A `Listing` of Reddit: one page of posts or comments, with the next cursor."""
    data = {"after": after, "dist": len(children), "children": list(children)}
    return {"kind": "Listing", "data": {**fields("reddit_listing"), **data}}


def permalink(post: Post) -> str:
    """Path of a submission on the site: `/r/gadgets/comments/1abcdef/glow_lamp_review/`."""
    slug = re.sub(r"\W+", "_", post.title.casefold()).strip("_")[:50].rstrip("_") or "_"
    return f"/r/{post.place}/comments/{post.id}/{slug}/"


def _html(text: str) -> str | None:
    if not text:
        return None
    lines = (f"<p>{html.escape(line, False)}</p>\n" for line in text.split("\n") if line.strip())
    return f'<!-- SC_OFF --><div class="md">{"".join(lines)}</div><!-- SC_ON -->'


def _origin(post: Post, deleted: bool, *parts: object) -> dict[str, Any]:
    subreddit = {
        "subreddit": post.place,
        "subreddit_id": f"t5_{spelled(BASE36, 5, post.place)}",
        "subreddit_name_prefixed": f"r/{post.place}",
    }
    if deleted:
        return {**subreddit, "author": "[deleted]"}
    name = handle("reddit", *parts)
    return {**subreddit, "author": name, "author_fullname": f"t2_{spelled(BASE36, 8, name)}"}


def _submission(world: World, post: Post) -> dict[str, Any]:
    """One submission (`t3`), with its crosspost's original inside when it has one."""
    parent = world.post("reddit", post.crosspost_parent)
    if parent is not None:
        url = permalink(parent)
        target = {"url_overridden_by_dest": url, "domain": f"self.{parent.place}"}
        target |= {"thumbnail": "default"}
    elif post.link:
        url = post.link
        target = {"url_overridden_by_dest": url, "domain": urlsplit(url).netloc}
        target |= {"post_hint": "link", "thumbnail": "default"}
    else:
        url = f"https://www.reddit.com{permalink(post)}"
        target = {"domain": f"self.{post.place}", "thumbnail": "self"}
    ups = max(post.votes, 0)
    data = {
        **fields("reddit_submission"), **_origin(post, post.deleted, post.id), **target,
        "id": post.id, "name": f"t3_{post.id}", "title": post.title, "url": url,
        "is_self": not post.link and parent is None, "permalink": permalink(post),
        "selftext": post.body, "selftext_html": _html(post.body),
        "created": world.created(post.age_days), "created_utc": world.created(post.age_days),
        "score": post.votes, "ups": ups, "num_comments": len(post.comments),
        "upvote_ratio": round(0.5 + min(ups, 1000) / 2100, 2) if ups else 0.4,
        "subreddit_subscribers": 900 + int(spelled(DIGITS, 6, post.place)),
    }  # fmt: skip
    if post.body == "[removed]":
        data |= {"removed_by_category": "moderator", "is_robot_indexable": False}
    elif post.deleted and post.body == "[deleted]":
        data |= {"removed_by_category": "deleted", "is_robot_indexable": False}
    if parent is not None:
        data["crosspost_parent"] = f"t3_{parent.id}"
        data["crosspost_parent_list"] = [_submission(world, parent)["data"]]
    return {"kind": "t3", "data": data}


def _comment(world: World, post: Post, remark: Remark, above: str = "") -> dict[str, Any]:
    """One comment (`t1`) without replies; `above` is the name of the comment that it answers, if any."""
    gone = remark.deleted or remark.body in _GONE
    data = {
        **fields("reddit_comment"), **_origin(post, gone, post.id, remark.id),
        "id": remark.id, "name": f"t1_{remark.id}", "link_id": f"t3_{post.id}",
        "parent_id": above or f"t3_{post.id}", "depth": 1 if above else 0,
        "body": "[deleted]" if remark.deleted and remark.body not in _GONE else remark.body,
        "body_html": _html(remark.body), "score": remark.votes, "ups": remark.votes,
        "created": world.created(remark.age_days), "created_utc": world.created(remark.age_days),
        "is_submitter": False, "permalink": f"{permalink(post)}{remark.id}/", "replies": "",
    }  # fmt: skip
    return {"kind": "t1", "data": data}


def escaped(value: Any) -> Any:
    """Every text as Reddit sends it without `raw_json=1`: `<`, `>` and `&` as entities."""
    if isinstance(value, str):
        return html.escape(value, quote=False)
    if isinstance(value, dict):
        return {key: escaped(inner) for key, inner in value.items()}
    return [escaped(inner) for inner in value] if isinstance(value, list) else value
