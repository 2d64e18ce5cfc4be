"""Stack Exchange's API 2.3: search, answers and info, in the envelope and fields of today."""

from __future__ import annotations

import html
from collections import Counter
from typing import Any

from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from api.sandbox.corpus import DIGITS, Post, Remark, handle, spelled
from api.sandbox.site_search import Index
from api.sandbox.world import RequestGateway, SandboxCall, World

# Names that are sites, also where there is no post of theirs.
_SITES = frozenset(
    "superuser softwarerecs hardwarerecs apple android diy bicycles photo gaming money "
    "travel".split()
)
_OWN_HOSTS = {"superuser": "superuser.com", "stackoverflow": "stackoverflow.com"}
_DAY, _WITH_KEY, _PAGE, _IDS = 86_400, 10_000, 100, 100
_ORDERS = {
    "votes": lambda post: -post.votes,
    "creation": lambda post: post.age_days or 0,
    "activity": lambda post: post.age_days or 0,
}


class StackExchange:
    """Answers as api.stackexchange.com does, for one sandbox."""

    def __init__(self, world: World) -> None:
        """Each site is searched by itself."""
        self._world = world
        self._posts = [post for post in world.of("stackexchange") if not post.deleted]
        self._indexes = {
            site: Index([post for post in self._posts if post.place == site])
            for site in {*_SITES, *(post.place for post in self._posts)}
        }
        self._used: Counter[tuple[str, int]] = Counter()

    def routes(self) -> list[Route]:
        """Its paths."""
        gateway = RequestGateway(self._world, "stackexchange", self.fault, self.guard)
        return [
            gateway.route("/2.3/search/advanced", "search", self.search),
            gateway.route("/2.3/questions/{ids}/answers", "answers", self.answers),
            gateway.route("/2.3/info", "info", self.info),
        ]

    def fault(self, kind: str, call: SandboxCall) -> Response | None:
        """Trouble in its words; `backoff` only adds to an answer."""
        if kind == "throttle":
            return self._throttled()
        if kind == "bad_site":
            return _no_site(call)
        return HTMLResponse("<h1>Too many requests</h1>", 429) if kind == "429" else None

    def guard(self, call: SandboxCall) -> Response | None:
        """An address without a key has 300 requests a day; a site has to exist."""
        if self._left(call) <= 0:
            return self._throttled()
        self._used[self._window(call)] += 1
        return None if call.query.get("site") in self._indexes else _no_site(call)

    def search(self, call: SandboxCall) -> Response:
        """Questions of one site that hold one of the words."""
        query = call.query
        posts = [
            post
            for post in self._indexes[query["site"]].search(query.get("q", ""), exact=True)
            if self._world.created(post.age_days) >= call.number("fromdate", 0)
        ]
        if (order := _ORDERS.get(query.get("sort", "activity"))) is not None:
            posts.sort(key=order)
        return self._page(call, [self._question(post, call) for post in posts])

    def answers(self, call: SandboxCall) -> Response:
        """Answers to the questions with these ids, of all of them in one order."""
        ids = call.request.path_params["ids"].split(";")
        if len(ids) > _IDS or not all(id_.isdigit() for id_ in ids):
            return _error(400, "bad_parameter", "ids")
        listed = [
            (remark, post)
            for post in self._posts
            if post.id in ids and post.place == call.query["site"]
            for remark in post.comments
            if not remark.deleted
        ]
        listed.sort(key=lambda entry: -entry[0].votes)
        return self._page(call, [self._answer(remark, post, call) for remark, post in listed])

    def info(self, call: SandboxCall) -> Response:
        """A few figures of a site."""
        posts = self._indexes[call.query["site"]].posts
        answers = sum(len(post.comments) for post in posts)
        row = {"total_questions": len(posts), "total_answers": answers, "api_revision": "2026.11.1"}
        return self._page(call, [row])

    def _page(self, call: SandboxCall, rows: list[dict[str, Any]]) -> Response:
        size = min(call.number("pagesize", 30), _PAGE)
        start = (max(call.number("page", 1), 1) - 1) * size
        answer = {
            "items": rows[start : start + size],
            "has_more": start + size < len(rows),
            "quota_max": self._most(call),
            "quota_remaining": self._left(call),
        }
        return JSONResponse(answer | ({"backoff": 10} if call.fault == "backoff" else {}))

    def _question(self, post: Post, call: SandboxCall) -> dict[str, Any]:
        moment, accepted = int(self._world.created(post.age_days)), len(post.comments) > 1
        slug = "-".join(part for part in post.title.lower().split() if part.isalnum())
        return {
            "tags": ["support"],
            "owner": _owner(post.place, handle("stackexchange", post.id), post.bot),
            "is_answered": bool(post.comments), "view_count": post.views,
            "answer_count": len(post.comments), "score": post.votes,
            "last_activity_date": moment, "creation_date": moment,
            "question_id": int(post.id), "content_license": "CC BY-SA 4.0",
            "link": f"https://{_host(post.place)}/questions/{post.id}/{slug}",
            "title": html.escape(post.title).replace("&#x27;", "&#39;"),
        } | ({"accepted_answer_id": int(post.comments[0].id)} if accepted else {}) | _body(
            post.body, call
        )  # fmt: skip

    def _answer(self, remark: Remark, post: Post, call: SandboxCall) -> dict[str, Any]:
        moment = int(self._world.created(remark.age_days))
        return {
            "owner": _owner(post.place, handle("stackexchange", remark.id)),
            "is_accepted": False, "score": remark.votes, "last_activity_date": moment,
            "creation_date": moment, "answer_id": int(remark.id), "question_id": int(post.id),
            "content_license": "CC BY-SA 4.0",
        } | _body(remark.body, call)  # fmt: skip

    def _window(self, call: SandboxCall) -> tuple[str, int]:
        return call.query.get("key", ""), int(self._world.clock() // _DAY)

    def _most(self, call: SandboxCall) -> int:
        return _WITH_KEY if call.query.get("key") else self._world.options.stackexchange_quota

    def _left(self, call: SandboxCall) -> int:
        return self._most(call) - self._used[self._window(call)]

    def _throttled(self) -> Response:
        seconds = int(_DAY - self._world.clock() % _DAY) + 1
        words = f"too many requests from this IP, more requests available in {seconds} seconds"
        return _error(502, "throttle_violation", words)


def _error(id_: int, name: str, message: str) -> Response:
    """An error, which is HTTP 400 whatever its own number is."""
    return JSONResponse({"error_id": id_, "error_message": message, "error_name": name}, 400)


def _no_site(call: SandboxCall) -> Response:
    return _error(400, "bad_parameter", f"No site found for name `{call.query.get('site', '')}`")


def _host(site: str) -> str:
    return _OWN_HOSTS.get(site, f"{site}.stackexchange.com")


def _owner(site: str, name: str, bot: bool = False) -> dict[str, Any]:
    """Whose it is; the sites' own program is user -1."""
    number, name = (-1, "Community") if bot else (int("4" + spelled(DIGITS, 5, name)), name)
    return {
        "account_id": abs(number) + 7, "reputation": 101, "user_id": number,
        "user_type": "registered", "display_name": name,
        "link": f"https://{_host(site)}/users/{number}/{name.replace('_', '-').lower()}",
    }  # fmt: skip


def _body(text: str, call: SandboxCall) -> dict[str, str]:
    """The text as the site writes it, where the filter asks for it."""
    paragraphs = (html.escape(part.strip(), quote=False) for part in text.split("\n\n"))
    body = "\n\n".join(f"<p>{part}</p>" for part in paragraphs if part)
    return {"body": body} if call.query.get("filter") == "withbody" else {}
