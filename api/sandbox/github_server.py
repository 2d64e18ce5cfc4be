"""GitHub's search of issues, their comments and its limits, in the fields of today."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from api.sandbox.corpus import DIGITS, Post, handle, spelled
from api.sandbox.site_search import Index
from api.sandbox.world import RequestGateway, SandboxCall, World

_DOCS = "https://docs.github.com/rest"
_MOST, _PAGE = 1_000, 100
# Seconds in which the requests of a kind are counted.
_WINDOWS = {"search": 60, "core": 3_600}
_WITH_TOKEN = {"search": 30, "core": 5_000}
# a qualifier outside of quotes: `is:issue`, `created:>=2026-10-01`
_QUALIFIER = re.compile(r'"[^"]*"|(?<!\S)-?(\w+):(\S+)')
_NEEDS_KIND = "Query must include 'is:issue' or 'is:pull-request'"


class GitHub:
    """Answers as api.github.com does, for one sandbox."""

    def __init__(self, world: World) -> None:
        """Build its index on first use."""
        self._world = world
        self._index = Index([post for post in world.of("github") if not post.deleted])
        self._used: Counter[tuple[str, str, int]] = Counter()

    def routes(self) -> list[Route]:
        """Its paths."""
        gateway = RequestGateway(self._world, "github", self.fault, self.guard)
        issue = "/repos/{owner}/{repo}/issues/{number}/comments"
        return [
            gateway.route("/search/issues", "search", self.search),
            gateway.route(issue, "comments", self.comments),
            gateway.route("/rate_limit", "limits", self.limits),
        ]

    def fault(self, kind: str, call: SandboxCall) -> Response | None:
        """Trouble in its words; `incomplete` only adds to an answer."""
        if kind == "401":
            return _error(401, "Bad credentials", "")
        if kind in {"403", "429"}:
            return self._spent(call, int(kind))
        if kind == "secondary":
            words = "You have exceeded a secondary rate limit. Please wait a few minutes."
            return _error(403, words, "", {"retry-after": "60"})
        return _needs_kind() if kind == "422" else None

    def guard(self, call: SandboxCall) -> Response | None:
        """So many searches a minute and other requests an hour; its limits may be read freely."""
        if call.request.url.path == "/rate_limit":
            return None
        if self._left(call, _kind(call)) <= 0:
            return self._spent(call, 403)
        self._used[self._window(call, _kind(call))] += 1
        return None

    def search(self, call: SandboxCall) -> Response:
        """Issues that hold every word, under the qualifiers of the query."""
        query, qualifiers = call.query.get("q", ""), dict[str, str]()
        for match in _QUALIFIER.finditer(query):
            if match[1]:
                qualifiers[match[1]] = match[2]
        words = _QUALIFIER.sub(lambda match: " " if match[1] else match[0], query)
        if qualifiers.pop("is", "") != "issue":
            return _needs_kind()
        after = qualifiers.pop("created", "").removeprefix(">=")
        posts = [
            post
            for post in self._index.search(words, exact=True, every=True)
            if f"{self._world.moment(post.age_days):%Y-%m-%d}" >= after
            if qualifiers in ({}, {"repo": post.place})
        ]
        size = min(call.number("per_page", 30), _PAGE)
        start = (max(call.number("page", 1), 1) - 1) * size
        if start >= _MOST:
            words = "Only the first 1000 search results are available"
            return _error(422, words, "/search/search")
        answer = {
            "total_count": len(posts),
            "incomplete_results": call.fault == "incomplete",
            "items": [self._issue(post) for post in posts[:_MOST][start : start + size]],
        }
        return JSONResponse(answer, headers=self._headers(call, "search"))

    def comments(self, call: SandboxCall) -> Response:
        """What was said about an issue, the oldest first."""
        given = call.request.path_params
        post = self._world.post("github", given["number"])
        if post is None or post.place != f"{given['owner']}/{given['repo']}":
            return _error(404, "Not Found", "/issues/comments", self._headers(call, "core"))
        page = f"https://github.com/{post.place}/issues/{post.id}"
        remarks = sorted(post.comments, key=lambda remark: -remark.age_days)
        rows = [
            {
                "id": int(remark.id), "html_url": f"{page}#issuecomment-{remark.id}",
                "user": _user(remark.id), "created_at": self._at(remark.age_days),
                "updated_at": self._at(remark.age_days), "author_association": "NONE",
                "body": remark.body, "reactions": _reactions(remark.votes),
            }
            for remark in remarks if not remark.deleted
        ]  # fmt: skip
        size = min(call.number("per_page", 30), _PAGE)
        return JSONResponse(rows[:size], headers=self._headers(call, "core"))

    def limits(self, call: SandboxCall) -> Response:
        """What is left of each kind."""
        resources = {
            kind: {
                "limit": self._most(call, kind), "used": self._used[self._window(call, kind)],
                "remaining": self._left(call, kind), "reset": self._reset(kind),
            }
            for kind in _WINDOWS
        }  # fmt: skip
        return JSONResponse({"resources": resources, "rate": resources["core"]})

    def _issue(self, post: Post) -> dict[str, Any]:
        api = f"https://api.github.com/repos/{post.place}"
        return {
            "url": f"{api}/issues/{post.id}", "repository_url": api,
            "comments_url": f"{api}/issues/{post.id}/comments",
            "html_url": f"https://github.com/{post.place}/issues/{post.id}",
            "id": 2_000_000_000 + int(post.id), "number": int(post.id), "title": post.title,
            "user": _user(post.id, post.bot), "labels": [], "state": "open", "locked": False,
            "comments": len(post.comments), "created_at": self._at(post.age_days),
            "updated_at": self._at(post.age_days), "closed_at": None,
            "author_association": "NONE", "body": post.body or None,
            "reactions": _reactions(post.votes), "state_reason": None, "score": 1.0,
        }  # fmt: skip

    def _at(self, age_days: float | None) -> str:
        return f"{self._world.moment(age_days):%Y-%m-%dT%H:%M:%SZ}"

    def _window(self, call: SandboxCall, kind: str) -> tuple[str, str, int]:
        number = int(self._world.clock() // _WINDOWS[kind])
        return call.request.headers.get("authorization", ""), kind, number

    def _most(self, call: SandboxCall, kind: str) -> int:
        options = self._world.options
        most = options.github_searches if kind == "search" else options.github_requests
        token = call.request.headers.get("authorization")
        return max(most, _WITH_TOKEN[kind]) if token else most

    def _left(self, call: SandboxCall, kind: str) -> int:
        return self._most(call, kind) - self._used[self._window(call, kind)]

    def _reset(self, kind: str) -> int:
        seconds = _WINDOWS[kind]
        return (int(self._world.clock() // seconds) + 1) * seconds

    def _headers(self, call: SandboxCall, kind: str) -> dict[str, str]:
        return {
            "x-ratelimit-limit": str(self._most(call, kind)),
            "x-ratelimit-remaining": str(self._left(call, kind)),
            "x-ratelimit-reset": str(self._reset(kind)),
            "x-ratelimit-resource": kind,
        }

    def _spent(self, call: SandboxCall, status: int) -> Response:
        headers = self._headers(call, _kind(call)) | {"x-ratelimit-remaining": "0"}
        words = "API rate limit exceeded for 203.0.113.7. (But here's the good news.)"
        return _error(status, words, "/rate-limit", headers)


def _kind(call: SandboxCall) -> str:
    return "search" if call.request.url.path.startswith("/search") else "core"


def _error(
    status: int, message: str, page: str, headers: Mapping[str, str] | None = None
) -> Response:
    answer = {"message": message, "documentation_url": f"{_DOCS}{page}", "status": str(status)}
    return JSONResponse(answer, status, headers)


def _needs_kind() -> Response:
    error = {"message": _NEEDS_KIND, "resource": "Search", "field": "q", "code": "invalid"}
    answer = {"message": "Validation Failed", "errors": [error], "status": "422"}
    return JSONResponse(answer | {"documentation_url": f"{_DOCS}/search/search"}, 422)


def _user(key: str, bot: bool = False) -> dict[str, Any]:
    login = handle("github", key).replace("_", "-")
    return {
        "login": f"{login}[bot]" if bot else login, "id": int("4" + spelled(DIGITS, 6, login)),
        "type": "Bot" if bot else "User", "site_admin": False,
        "html_url": f"https://github.com/{login}",
    }  # fmt: skip


def _reactions(votes: int) -> dict[str, int]:
    zero = ("-1", "laugh", "hooray", "confused", "heart", "rocket", "eyes")
    return {"total_count": votes, "+1": votes} | dict.fromkeys(zero, 0)
