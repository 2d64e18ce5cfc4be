"""Small servers of the places that answer without a key, for the contract of all sources."""

from __future__ import annotations

from typing import Any

from api.settings import SourceSettings
from tests.loopback import Asked, Reply
from tests.sources.emulators import NOW, SECRET, Emulator


class HackerNewsEmulator(Emulator):
    """Search and threads, in the fields of 2026."""

    name, search_path, comments_path, page = "hackernews", "/search", "/items/", 100

    def settings(self, **more: Any) -> SourceSettings:
        return SourceSettings.model_validate({"HACKERNEWS_URL": self.server.url} | more)

    def comments_of(self, number: int) -> str:
        return f"/items/{4000 + number}"

    def strange(self) -> tuple[Reply, Reply]:
        found = {"hits": [{"uid": n, "headline": "Mug"} for n in range(3)], "nbPages": 1}
        return Reply(body=found), Reply(body={"children": [{"uid": 1, "words": "yes"}]})

    def reply(self, asked: Asked) -> Reply:
        if self.comments_path in asked.path:
            return Reply(body={"children": [reply(number) for number in range(30)]})
        start = int(asked.query.get("page", 0)) * int(asked.query["hitsPerPage"])
        total = 0 if "nothing" in asked.query["query"] else self.count
        numbers = range(start, min(start + int(asked.query["hitsPerPage"]), total))
        pages = -(-total // int(asked.query["hitsPerPage"]))
        return Reply(body={"hits": [story(n) for n in numbers], "nbPages": pages})


def story(number: int, **more: Any) -> dict[str, Any]:
    """A story as search lists it."""
    hit = {
        "objectID": str(4000 + number), "title": f"Mug {number}", "story_text": "<p>It&#x27;s warm",
        "author": "potter", "points": 12, "num_comments": 3, "created_at_i": NOW,
    }  # fmt: skip
    return hit | more


def reply(number: int, **more: Any) -> dict[str, Any]:
    """A reply in a thread, with one below it."""
    below = {"id": 9000 + number, "author": "kiln", "text": "Below", "created_at_i": NOW}
    fields = {
        "id": 5000 + number, "author": f"drinker{number}", "text": f"<p>Review {number}",
        "created_at_i": NOW, "points": None, "children": [below | {"children": []}],
    }  # fmt: skip
    return fields | more


SITES = ("superuser", "softwarerecs", "hardwarerecs")


class StackExchangeEmulator(Emulator):
    """Search and answers of three sites; only the first has more than a page."""

    name, search_path, comments_path, page = "stackexchange", "/search/advanced", "/answers", 300

    def __init__(self, count: int = 320) -> None:
        super().__init__(count)

    @property
    def searches(self) -> list[Asked]:
        """Those of the first site: one for each page that a person sees."""
        return [asked for asked in super().searches if asked.query["site"] == SITES[0]]

    def settings(self, **more: Any) -> SourceSettings:
        given = {"STACKEXCHANGE_URL": self.server.url, "stackexchange_key": SECRET}
        return SourceSettings.model_validate(given | more)

    def comments_of(self, number: int) -> str:
        return f"/{4000 + number}/answers"

    def strange(self) -> tuple[Reply, Reply]:
        entry = {"uid": 1, "headline": "Mug", "words": "yes"}
        return Reply(body=envelope([entry, entry])), Reply(body=envelope([entry]))

    def reply(self, asked: Asked) -> Reply:
        if self.comments_path in asked.path:
            ids = asked.path.split("/")[3].split(";")
            return Reply(body=envelope([answered(id_, n) for id_ in ids for n in range(3)]))
        if self.search_path not in asked.path:
            return Reply(body=envelope([{}]))
        site, size = SITES.index(asked.query["site"]), int(asked.query["pagesize"])
        numbers = [n for n in range(min(self.count, self.page)) if n % len(SITES) == site]
        numbers += range(self.page, self.count) if not site else ()
        start = (int(asked.query["page"]) - 1) * size
        listed = [] if "nothing" in asked.query["q"] else numbers[start:]
        return Reply(body=envelope([question(n) for n in listed[:size]], len(listed) > size))


def envelope(items: list[Any], has_more: bool = False, **more: Any) -> dict[str, Any]:
    """Stack Exchange's envelope."""
    return {"items": items, "has_more": has_more, "quota_max": 300, "quota_remaining": 296} | more


def owner(name: str) -> dict[str, Any]:
    """Somebody as Stack Exchange names them."""
    return {"display_name": name, "user_id": 7, "link": f"https://superuser.com/users/7/{name}"}


def question(number: int, **more: Any) -> dict[str, Any]:
    """A question as search lists it."""
    fields = {
        "question_id": 4000 + number, "title": f"Mug&#39;s {number}", "body": "<p>It&#39;s cold",
        "link": f"https://superuser.com/questions/{4000 + number}/mug", "owner": owner("potter"),
        "score": 12, "view_count": 900, "answer_count": 3, "creation_date": NOW,
    }  # fmt: skip
    return fields | more


def answered(question_id: int | str, number: int, **more: Any) -> dict[str, Any]:
    """An answer to a question."""
    fields = {
        "answer_id": 9000 + number, "question_id": int(question_id), "score": 9 - number,
        "body": f"<p>Review {number}</p>", "owner": owner(f"drinker{number}"),
        "creation_date": NOW,
    }  # fmt: skip
    return fields | more


class GitHubEmulator(Emulator):
    """Search of issues and their comments."""

    name, search_path, comments_path, page = "github", "/search/issues", "/comments", 100

    def settings(self, **more: Any) -> SourceSettings:
        given = {"GITHUB_URL": self.server.url, "github_token": SECRET}
        return SourceSettings.model_validate(given | more)

    def comments_of(self, number: int) -> str:
        return f"/issues/{1 + number}/comments"

    def strange(self) -> tuple[Reply, Reply]:
        found = {"total_count": 3, "items": [{"uid": n, "headline": "Mug"} for n in range(3)]}
        return Reply(body=found), Reply(body=[{"uid": 1, "words": "yes"}])

    def reply(self, asked: Asked) -> Reply:
        if asked.path == "/rate_limit":
            counts = {"limit": 30, "remaining": 29}
            return Reply(body={"resources": {"search": counts, "core": counts}})
        if self.comments_path in asked.path:
            return Reply(body=[remark(number) for number in range(30)])
        size = int(asked.query["per_page"])
        start = (int(asked.query["page"]) - 1) * size
        total = 0 if "nothing" in asked.query["q"] else self.count
        numbers = range(start, min(start + size, total))
        items = [issue(number) for number in numbers]
        found = {"total_count": total, "incomplete_results": False, "items": items}
        return Reply(body=found)


def issue(number: int, **more: Any) -> dict[str, Any]:
    """An issue as search lists it."""
    page = f"https://github.com/kiln/mugs/issues/{1 + number}"
    fields = {
        "number": 1 + number, "title": f"Mug {number}", "body": "It leaks", "html_url": page,
        "repository_url": "https://api.github.com/repos/kiln/mugs", "comments": 3,
        "user": {"login": "potter", "type": "User"}, "created_at": "2026-09-21T13:33:20Z",
        "reactions": {"total_count": 12},
    }  # fmt: skip
    return fields | more


def remark(number: int, **more: Any) -> dict[str, Any]:
    """A comment on an issue."""
    fields = {
        "id": 5000 + number, "body": f"Review {number}", "created_at": "2026-09-22T13:33:20Z",
        "html_url": f"https://github.com/kiln/mugs/issues/1#issuecomment-{5000 + number}",
        "user": {"login": f"drinker{number}", "type": "User"}, "reactions": {"total_count": 1},
    }  # fmt: skip
    return fields | more
