"""Small servers of Stack Exchange and GitHub, for the contract of all sources."""

from __future__ import annotations

from typing import Any

from api.settings import SourceSettings
from tests.loopback import Asked, Reply
from tests.sources.emulators import NOW, SECRET, Emulator

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
