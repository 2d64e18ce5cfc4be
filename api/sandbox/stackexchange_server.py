"""Stack Exchange's API 2.3: search, answers and info, in the envelope and fields of today."""

from __future__ import annotations

import html
from typing import Any, ClassVar

from api.sandbox.corpus import DIGITS, Post, Remark, handle, spelled
from api.sandbox.site_search import Index
from api.sandbox.world import EmulatedServer, Quota, SandboxCall, SiteRefusal, World, reply, serves

# sites that are known, posts or not
_SITES = frozenset("superuser softwarerecs hardwarerecs apple android diy bicycles photo gaming money travel".split())
_OWN_HOSTS = {"superuser": "superuser.com", "stackoverflow": "stackoverflow.com"}
# requests per day with a key, rows of a page, and ids in a request
_WITH_KEY, _PAGE, _IDS = 10_000, 100, 100
_ORDERS = {
    "votes": lambda post: -post.votes,
    "creation": lambda post: post.age_days or 0,
    "activity": lambda post: post.age_days or 0,
}


def _error(id_: int, name: str, message: str) -> tuple[dict[str, Any], int]:
    """An error, which has HTTP status 400 whatever its own number is."""
    return {"error_id": id_, "error_message": message, "error_name": name}, 400


class StackExchange(EmulatedServer):
    """Answers as api.stackexchange.com does; each site is searched by itself."""

    upstream = "stackexchange"
    # `backoff` only adds to an answer
    fault_replies: ClassVar = {"429": ("<h1>Too many requests</h1>", 429)}

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._posts = [post for post in world.of("stackexchange") if not post.deleted]
        self._indexes = {
            site: Index([post for post in self._posts if post.place == site])
            for site in {*_SITES, *(post.place for post in self._posts)}
        }
        self._quota = Quota(world.clock, 86_400)

    def fault(self, kind: str, call: SandboxCall) -> Any:
        if kind in {"throttle", "bad_site"}:
            return reply(*(self._throttled() if kind == "throttle" else _no_site(call)))
        return super().fault(kind, call)

    def guard(self, call: SandboxCall) -> None:
        """Check the quota of the day, by key or for all without one, and the site."""
        key, limit = call.query.get("key", ""), self._limit(call)
        if self._quota.used(key) >= limit:
            raise SiteRefusal(*self._throttled())
        self._quota.spend(key)
        if call.query.get("site") not in self._indexes:
            raise SiteRefusal(*_no_site(call))

    def _limit(self, call: SandboxCall) -> int:
        return _WITH_KEY if call.query.get("key") else self.world.options.stackexchange_quota

    def _throttled(self) -> tuple[dict[str, Any], int]:
        seconds = int(self._quota.window[1]) + 1
        message = f"too many requests from this IP, more requests available in {seconds} seconds"
        return _error(502, "throttle_violation", message)

    @serves("search", "/2.3/search/advanced")
    def _search(self, call: SandboxCall) -> dict[str, Any]:
        query = call.query
        posts = [
            post
            for post in self._indexes[query["site"]].search(query.get("q", ""), exact=True)
            if self.world.created(post.age_days) >= call.number("fromdate", 0)
        ]
        if (order := _ORDERS.get(query.get("sort", "activity"))) is not None:
            posts.sort(key=order)
        return self._page(call, [self._question(post, call) for post in posts])

    @serves("answers", "/2.3/questions/{ids}/answers")
    def _answers(self, call: SandboxCall) -> dict[str, Any]:
        ids = call.parameter("ids").split(";")
        if len(ids) > _IDS or not all(id_.isdigit() for id_ in ids):
            raise SiteRefusal(*_error(400, "bad_parameter", "ids"))
        listed = [
            (remark, post)
            for post in self._posts
            if post.id in ids and post.place == call.query["site"]
            for remark in post.comments
            if not remark.deleted
        ]
        listed.sort(key=lambda entry: -entry[0].votes)
        rows = [
            self._written(post, remark, call) | {"is_accepted": False, "answer_id": int(remark.id)}
            for remark, post in listed
        ]
        return self._page(call, rows)

    @serves("info", "/2.3/info")
    def _info(self, call: SandboxCall) -> dict[str, Any]:
        posts = self._indexes[call.query["site"]].posts
        answers = sum(len(post.comments) for post in posts)
        row = {"total_questions": len(posts), "total_answers": answers, "api_revision": "2026.11.1"}
        return self._page(call, [row])

    def _page(self, call: SandboxCall, rows: list[dict[str, Any]]) -> dict[str, Any]:
        page, limit = call.page(min(call.number("pagesize", 30), _PAGE)), self._limit(call)
        return {
            "items": rows[page], "has_more": page.stop < len(rows), "quota_max": limit,
            "quota_remaining": limit - self._quota.used(call.query.get("key", "")),
            **({"backoff": 10} if call.fault == "backoff" else {}),
        }  # fmt: skip

    def _written(self, post: Post, remark: Remark | None, call: SandboxCall) -> dict[str, Any]:
        """Fields of a question, or of an answer to it; the body where the filter asks for it."""
        part = remark or post
        owner = _owner(post.place, handle("stackexchange", part.id), remark is None and post.bot)
        moment = int(self.world.created(part.age_days))
        paragraphs = (html.escape(p.strip(), quote=False) for p in part.body.split("\n\n"))
        body = "\n\n".join(f"<p>{paragraph}</p>" for paragraph in paragraphs if paragraph)
        return {
            "owner": owner, "score": part.votes, "last_activity_date": moment,
            "creation_date": moment, "question_id": int(post.id), "content_license": "CC BY-SA 4.0",
            **({"body": body} if call.query.get("filter") == "withbody" else {}),
        }  # fmt: skip

    def _question(self, post: Post, call: SandboxCall) -> dict[str, Any]:
        slug = "-".join(part for part in post.title.lower().split() if part.isalnum())
        accepted = len(post.comments) > 1
        return self._written(post, None, call) | {
            "tags": ["support"], "is_answered": bool(post.comments), "view_count": post.views,
            "answer_count": len(post.comments),
            "link": f"https://{_host(post.place)}/questions/{post.id}/{slug}",
            "title": html.escape(post.title).replace("&#x27;", "&#39;"),
            **({"accepted_answer_id": int(post.comments[0].id)} if accepted else {}),
        }  # fmt: skip


def _no_site(call: SandboxCall) -> tuple[dict[str, Any], int]:
    return _error(400, "bad_parameter", f"No site found for name `{call.query.get('site', '')}`")


def _host(site: str) -> str:
    return _OWN_HOSTS.get(site, f"{site}.stackexchange.com")


def _owner(site: str, name: str, bot: bool) -> dict[str, Any]:
    """The author; the site's own program is user -1."""
    number, name = (-1, "Community") if bot else (int("4" + spelled(DIGITS, 5, name)), name)
    return {
        "account_id": abs(number) + 7, "reputation": 101, "user_id": number,
        "user_type": "registered", "display_name": name,
        "link": f"https://{_host(site)}/users/{number}/{name.replace('_', '-').lower()}",
    }  # fmt: skip
