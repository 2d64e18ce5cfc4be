"""GitHub's search of issues, their comments and its limits, in the fields of today."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar

from starlette.responses import Response

from api.sandbox.corpus import DIGITS, Post, handle, spelled
from api.sandbox.site_search import Index
from api.sandbox.world import EmulatedServer, Quota, SandboxCall, SiteRefusal, World, fields, reply, serves

_DOCS = "https://docs.github.com/rest"
_MOST, _PAGE = 1_000, 100
_WITH_TOKEN = {"search": 30, "core": 5_000}
# a qualifier outside of quotes: `is:issue`, `created:>=2026-10-01`
_QUALIFIER = re.compile(r'"[^"]*"|(?<!\S)-?(\w+):(\S+)')
_NEEDS_KIND = (
    {
        "message": "Validation Failed", "status": "422",
        "documentation_url": f"{_DOCS}/search/search",
        "errors": [{
            "message": "Query must include 'is:issue' or 'is:pull-request'", "resource": "Search",
            "field": "q", "code": "invalid",
        }],
    },
    422,
)  # fmt: skip
_SECONDARY = "You have exceeded a secondary rate limit. Please wait a few minutes."


def _error(
    status: int, message: str, page: str = "", headers: Mapping[str, str] | None = None
) -> tuple[Any, int, Mapping[str, str] | None]:
    body = {"message": message, "documentation_url": f"{_DOCS}{page}", "status": str(status)}
    return body, status, headers


class GitHub(EmulatedServer):
    """Answers as api.github.com does."""

    upstream = "github"
    # `incomplete` only adds to an answer
    fault_replies: ClassVar = {
        "401": _error(401, "Bad credentials"),
        "secondary": _error(403, _SECONDARY, headers={"retry-after": "60"}),
        "422": _NEEDS_KIND,
    }

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._index = Index([post for post in world.of("github") if not post.deleted])
        self._quotas = {"search": Quota(world.clock, 60), "core": Quota(world.clock, 3_600)}

    def fault(self, kind: str, call: SandboxCall) -> Any:
        if kind in {"403", "429"}:
            return reply(*self._exceeded(call, int(kind)))
        return super().fault(kind, call)

    def guard(self, call: SandboxCall) -> None:
        """Check the quota of searches per minute, or of other requests per hour."""
        if self._state(call, _kind(call))["remaining"] <= 0:
            raise SiteRefusal(*self._exceeded(call, 403))
        self._quotas[_kind(call)].spend(_token(call))

    @serves("search", "/search/issues")
    def _search(self, call: SandboxCall) -> Response:
        query, qualifiers = call.query.get("q", ""), dict[str, str]()
        for match in _QUALIFIER.finditer(query):
            if match[1]:
                qualifiers[match[1]] = match[2]
        words = _QUALIFIER.sub(lambda match: " " if match[1] else match[0], query)
        if qualifiers.pop("is", "") != "issue":
            raise SiteRefusal(*_NEEDS_KIND)
        after = qualifiers.pop("created", "").removeprefix(">=")
        posts = [
            post
            for post in self._index.search(words, exact=True, every=True)
            if f"{self.world.moment(post.age_days):%Y-%m-%d}" >= after
            if qualifiers in ({}, {"repo": post.place})
        ]
        page = call.page(min(call.number("per_page", 30), _PAGE))
        if page.start >= _MOST:
            message = "Only the first 1000 search results are available"
            raise SiteRefusal(*_error(422, message, "/search/search"))
        answer = {
            "total_count": len(posts),
            "incomplete_results": call.fault == "incomplete",
            "items": [self._issue(post) for post in posts[:_MOST][page]],
        }
        return reply(answer, headers=self._headers(call, "search"))

    @serves("comments", "/repos/{owner}/{repo}/issues/{number}/comments")
    def _comments(self, call: SandboxCall) -> Response:
        post = self.world.post("github", call.parameter("number"))
        repository = f"{call.parameter('owner')}/{call.parameter('repo')}"
        headers = self._headers(call, "core")
        if post is None or post.place != repository:
            raise SiteRefusal(*_error(404, "Not Found", "/issues/comments", headers))
        remarks = sorted(post.comments, key=lambda remark: -remark.age_days)
        rows = [
            {
                "html_url": f"https://github.com/{post.place}/issues/{post.id}"
                f"#issuecomment-{remark.id}",
                "id": int(remark.id), "user": _user(remark.id), "body": remark.body,
                "created_at": self.world.stamp(remark.age_days),
                "updated_at": self.world.stamp(remark.age_days),
                "author_association": "NONE", "reactions": _reactions(remark.votes),
            }
            for remark in remarks if not remark.deleted
        ]  # fmt: skip
        return reply(rows[: min(call.number("per_page", 30), _PAGE)], headers=headers)

    @serves("limits", "/rate_limit", guarded=False)
    def _limits(self, call: SandboxCall) -> dict[str, Any]:
        resources = {kind: self._state(call, kind) for kind in self._quotas}
        return {"resources": resources, "rate": resources["core"]}

    def _issue(self, post: Post) -> dict[str, Any]:
        api, created = f"https://api.github.com/repos/{post.place}", self.world.stamp(post.age_days)
        return fields("github_issue") | {
            "url": f"{api}/issues/{post.id}", "repository_url": api,
            "comments_url": f"{api}/issues/{post.id}/comments",
            "html_url": f"https://github.com/{post.place}/issues/{post.id}",
            "id": 2_000_000_000 + int(post.id), "number": int(post.id), "title": post.title,
            "user": _user(post.id, post.bot), "comments": len(post.comments), "created_at": created,
            "updated_at": created, "body": post.body or None, "reactions": _reactions(post.votes),
        }  # fmt: skip

    def _state(self, call: SandboxCall, kind: str) -> dict[str, int]:
        options, quota, token = self.world.options, self._quotas[kind], _token(call)
        limit = options.github_searches if kind == "search" else options.github_requests
        if token:
            limit = max(limit, _WITH_TOKEN[kind])
        used, reset = quota.used(token), (quota.window[0] + 1) * quota.seconds
        return {"limit": limit, "used": used, "remaining": limit - used, "reset": reset}

    def _headers(self, call: SandboxCall, kind: str) -> dict[str, str]:
        state = self._state(call, kind)
        names = ("limit", "remaining", "reset")
        return {f"x-ratelimit-{name}": str(state[name]) for name in names} | {"x-ratelimit-resource": kind}

    def _exceeded(self, call: SandboxCall, status: int) -> tuple[Any, int, Mapping[str, str] | None]:
        headers = self._headers(call, _kind(call)) | {"x-ratelimit-remaining": "0"}
        message = "API rate limit exceeded for 203.0.113.7. (But here's the good news.)"
        return _error(status, message, "/rate-limit", headers)


def _kind(call: SandboxCall) -> str:
    return "search" if call.path.startswith("/search") else "core"


def _token(call: SandboxCall) -> str:
    return call.request.headers.get("authorization", "")


def _user(key: str, bot: bool = False) -> dict[str, Any]:
    login = handle("github", key).replace("_", "-")
    return {
        "login": f"{login}[bot]" if bot else login, "id": int("4" + spelled(DIGITS, 6, login)),
        "type": "Bot" if bot else "User", "site_admin": False,
        "html_url": f"https://github.com/{login}",
    }  # fmt: skip


def _reactions(votes: int) -> dict[str, int]:
    return fields("github_reactions") | {"total_count": votes, "+1": votes}
