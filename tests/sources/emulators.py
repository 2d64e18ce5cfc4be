"""Small Reddit and YouTube servers with paging, comments and a switch for faults."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Self

from api.core.domain import FetchPlan
from api.core.items import Item
from api.core.ports import Source
from api.settings import SourceSettings
from api.sources import SOURCES
from api.sources.web_client import pace_of
from tests.loopback import Asked, Loopback, Reply
from tests.sources.amazon_site import product_page, result_page, review, tile

Fault = Callable[[Asked], Reply | None]
SECRET = "s3cr3t-value"
NOW = 1_790_000_000


def no_fault(asked: Asked) -> Reply | None:
    """Nothing goes wrong."""
    return None


def on(part: str, reply: Reply, times: int = 1_000) -> Fault:
    """`reply` to the first `times` requests whose path or query holds `part`."""
    left = [times]

    def fault(asked: Asked) -> Reply | None:
        if part not in f"{asked.path}?{asked.query}" or not left[0]:
            return None
        left[0] -= 1
        return reply

    return fault


async def found_by(source: Source, count: int) -> tuple[Item, ...]:
    """The first things a source finds."""
    return (await source.fetch(FetchPlan("mug", count))).items


class Emulator(AbstractContextManager["Emulator"]):
    """What the contract suite needs of an upstream: things to find, and faults."""

    name = ""
    search_path = ""
    comments_path = ""
    """Empty: comments cost no request, since they come with what was found or there are none."""
    page = 0
    requests = 1
    """What a page of results costs."""
    asked_by_query = True
    """Whether the question is sent to it."""
    has_comments = looks_twice = True
    """Whether anything has comments, and whether those of one dropped item can be asked for."""
    paged = True
    """It is searched, page by page; False for a stream, which is read once for all that it holds."""

    def __init__(self, count: int = 220) -> None:
        self.count = count
        self.fault: Fault = no_fault
        self.server = Loopback(lambda asked: self.fault(asked) or self.reply(asked))

    def __enter__(self) -> Self:
        pace_of.cache_clear()  # a port that another test had is no server that has asked to wait
        self.server.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.__exit__()

    @property
    def paths(self) -> list[str]:
        """What was asked, in order."""
        return [asked.path for asked in self.server.asked]

    def calls(self, method: str) -> list[Asked]:
        """What one method was asked."""
        return [asked for asked in self.server.asked if asked.path.endswith(f"/{method}")]

    @property
    def searches(self) -> list[Asked]:
        """The searches it was asked."""
        return [asked for asked in self.server.asked if self.search_path in asked.path]

    @property
    def named(self) -> list[Asked]:
        """The requests that hold the question's words."""
        return self.searches

    def settings(self, **more: Any) -> SourceSettings:
        """Settings that point here."""
        raise AssertionError

    def build(self, **more: Any) -> Source:
        """The real source that asks it."""
        return SOURCES[self.name].build(self.settings(**more))

    def later(self) -> None:
        """Let so much time pass that what was read may be asked anew."""

    def reply(self, asked: Asked) -> Reply:
        """The answer when nothing goes wrong; `q=nothing` finds nothing."""
        raise AssertionError

    def comments_of(self, number: int) -> str:
        """What the request for the comments of item `number` holds."""
        raise AssertionError

    def limited(self, headers: Mapping[str, str]) -> Reply:
        """How it says that it is asked too often."""
        return Reply(429, {"error": 429}, headers)

    def strange(self) -> tuple[Reply, Reply]:
        """A search and an item's comments with entries that have none of the fields we read."""
        raise AssertionError


class RedditEmulator(Emulator):
    """Token, search and comments."""

    name, search_path, comments_path, page = "reddit", "/search", "/comments/", 100

    def __init__(self, count: int = 220) -> None:
        super().__init__(count)
        self.token = "token-1"
        self.limits: dict[str, str] = {}

    def settings(self, **more: Any) -> SourceSettings:
        return SourceSettings.model_validate(
            {
                "REDDIT_CLIENT_ID": "id",
                "REDDIT_CLIENT_SECRET": SECRET,
                "REDDIT_URL": self.server.url,
            }
            | more
        )

    def comments_of(self, number: int) -> str:
        return f"/comments/p{number}/"

    def strange(self) -> tuple[Reply, Reply]:
        found = [{"kind": "t3", "data": {"uid": n, "headline": "Mug"}} for n in range(3)]
        thread = listing([{"kind": "t1", "data": {"uid": n, "words": "yes"}} for n in range(3)])
        return Reply(body=listing(found)), Reply(body=[listing([]), thread])

    def reply(self, asked: Asked) -> Reply:
        if asked.path.endswith("access_token"):
            return Reply(
                body={"access_token": self.token, "expires_in": 3600, "scope": "*"},
                # a server that is asked to close says that it will, else the next request races with the end
                headers={"connection": "close"} if asked.headers.get("connection") == "close" else {},
            )
        if asked.headers.get("authorization") != f"bearer {self.token}":
            return Reply(401, {"message": "Unauthorized", "error": 401})
        if self.search_path in asked.path:
            return Reply(body=self._found(asked), headers=self.limits)
        children = [comment(number, score=number) for number in range(30)]
        return Reply(body=[listing([]), listing(children)], headers=self.limits)

    def _found(self, asked: Asked) -> dict[str, Any]:
        size = min(int(asked.query["limit"]), self.page)
        start = int(asked.query.get("after", "t3_p-1").removeprefix("t3_p")) + 1
        total = 0 if "nothing" in asked.query["q"] else self.count
        numbers = range(start, min(start + size, total))
        more = numbers and numbers[-1] + 1 < total
        return listing([post(n) for n in numbers], f"t3_p{numbers[-1]}" if more else None)


class YouTubeEmulator(Emulator):
    """Search, videos and comment threads."""

    name, search_path, comments_path, page = "youtube", "/search", "/commentThreads", 50

    def settings(self, **more: Any) -> SourceSettings:
        return SourceSettings.model_validate({"YOUTUBE_API_KEY": SECRET, "YOUTUBE_URL": self.server.url} | more)

    def comments_of(self, number: int) -> str:
        return f"'videoId': 'v{number}'"

    def strange(self) -> tuple[Reply, Reply]:
        entry = {"uid": "v1", "snippet": {"headline": "Mug", "words": "yes"}}
        return Reply(body=answer([entry, entry])), Reply(body=answer([entry, entry]))

    def limited(self, headers: Mapping[str, str]) -> Reply:
        return Reply(429, refusal(429, "rateLimitExceeded").body, headers)

    def reply(self, asked: Asked) -> Reply:
        if asked.query.get("key") != SECRET:
            return refusal(400, "keyInvalid")
        if self.search_path in asked.path:
            return Reply(body=self._found(asked))
        if "videos" in asked.path:
            return Reply(body=answer([video(id_) for id_ in asked.query["id"].split(",")]))
        return Reply(body=answer([thread(n) for n in range(int(asked.query["maxResults"]))]))

    def _found(self, asked: Asked) -> dict[str, Any]:
        start = int(asked.query.get("pageToken", "0"))
        total = 0 if "nothing" in asked.query["q"] else self.count
        end = min(start + int(asked.query["maxResults"]), total)
        more = {"nextPageToken": str(end)} if end < total else {}
        return answer([result(number) for number in range(start, end)]) | more


class AmazonEmulator(Emulator):
    """Result pages and product pages."""

    name, search_path, comments_path, page = "amazon", "/s", "/dp/", 16
    looks_twice = False

    def __init__(self, count: int = 40) -> None:
        super().__init__(count)

    def settings(self, **more: Any) -> SourceSettings:
        return SourceSettings.model_validate({"AMAZON_PROVIDER": "html", "AMAZON_URL": self.server.url} | more)

    def comments_of(self, number: int) -> str:
        return f"/dp/{_asin(number)}"

    def strange(self) -> tuple[Reply, Reply]:
        tiles = (tile(_asin(n)).replace("<h2", "<h6").replace("</h2", "</h6") for n in range(3))
        return Reply(body=result_page(*tiles)), Reply(body='<div id="dp"><p>Mug</p></div>')

    def reply(self, asked: Asked) -> Reply:
        if asked.path.startswith("/dp/"):
            return Reply(body=product_page(*(review(f"R{n}TESTAAAA") for n in range(3))))
        if asked.path == "/":
            return Reply(body="<title>Shop</title>")
        if asked.query["k"] == "nothing":
            return Reply(body="<html><body><span>No results for nothing</span></body></html>")
        start = (int(asked.query.get("page", "1")) - 1) * self.page
        numbers = range(start, min(start + self.page, self.count))
        more = numbers.stop < self.count
        return Reply(body=result_page(*(tile(_asin(n)) for n in numbers), following=more))


def _asin(number: int) -> str:
    return f"B0TEST{number:04}"


def listing(children: list[Any], after: str | None = None) -> dict[str, Any]:
    """Reddit's envelope."""
    return {"kind": "Listing", "data": {"children": children, "after": after}}


def post(number: int | str, **more: Any) -> dict[str, Any]:
    """A submission as search lists it."""
    data = {
        "id": f"p{number}", "title": f"Post {number}", "selftext": f"Body {number}",
        "subreddit": "mugs", "author": "potter", "created_utc": float(NOW), "score": 12,
        "num_comments": 3, "upvote_ratio": 0.9, "is_self": True,
        "permalink": f"/r/mugs/comments/p{number}/post/",
    }  # fmt: skip
    return {"kind": "t3", "data": data | more}


def comment(number: int, **more: Any) -> dict[str, Any]:
    """A comment of a thread."""
    data = {
        "id": f"c{number}", "body": f"Comment {number}", "author": f"drinker{number}", "score": 1,
        "created_utc": NOW, "permalink": f"/r/mugs/comments/p0/post/c{number}/", "replies": "",
    }  # fmt: skip
    return {"kind": "t1", "data": data | more}


def answer(items: list[Any]) -> dict[str, Any]:
    """YouTube's envelope."""
    return {"items": items}


def result(number: int | str, **more: Any) -> dict[str, Any]:
    """A video as search lists it."""
    snippet = {
        "title": f"Video {number}", "description": "Cut ...", "channelId": "UC1",
        "channelTitle": "Mugs &amp; Co", "publishedAt": "2026-09-21T13:33:20Z",
    }  # fmt: skip
    return {"id": {"kind": "youtube#video", "videoId": f"v{number}"}, "snippet": snippet | more}


def video(id_: str, **statistics: Any) -> dict[str, Any]:
    """A video as `videos.list` gives it."""
    counts = {"viewCount": "1200", "likeCount": "30", "commentCount": "4"} | statistics
    snippet = {"title": f"Full {id_}", "description": "All of it", "channelTitle": "Mugs & Co"}
    return {"id": id_, "snippet": snippet, "statistics": counts}


def thread(number: int, replies: list[Any] | None = None, **snippet: Any) -> dict[str, Any]:
    """A comment thread."""
    top = {"id": f"T{number}", "snippet": {"textDisplay": f"Thread {number}", "likeCount": 2}}
    top["snippet"] |= snippet  # type: ignore[operator]
    made: dict[str, Any] = {"id": f"T{number}", "snippet": {"topLevelComment": top}}
    return made | ({"replies": {"comments": replies}} if replies else {})


def refusal(status: int, reason: str, message: str = "no", domain: str = "youtube") -> Reply:
    """An error in Google's envelope."""
    entry = {"reason": reason, "message": message, "domain": domain}
    return Reply(status, {"error": {"code": status, "message": message, "errors": [entry]}})
