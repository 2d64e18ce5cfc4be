"""Small servers of the places that answer without a key, for the contract of all sources."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Self

from api.settings import SourceSettings
from api.sources.lemmy import version_of
from api.sources.news import kept_lists
from tests.loopback import Asked, Reply
from tests.sources.emulators import NOW, Emulator


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


class LemmyEmulator(Emulator):
    """A server of Lemmy 0.19: its version, posts and comments apart, threads."""

    name, search_path, comments_path, page = "lemmy", "/api/v3/search", "/comment/list", 100
    requests = 2
    version = "0.19.20"

    def __enter__(self) -> Self:
        version_of.cache_clear()  # a port may have been another test's server before
        return super().__enter__()

    @property
    def paths(self) -> list[str]:
        return [asked.path for asked in self.server.asked if "nodeinfo" not in asked.path]

    @property
    def searches(self) -> list[Asked]:
        """Those for posts; as many were for comments."""
        return [asked for asked in super().searches if asked.query["type_"].lower() == "posts"]

    def settings(self, **more: Any) -> SourceSettings:
        return SourceSettings.model_validate({"LEMMY_URL": self.server.url} | more)

    def comments_of(self, number: int) -> str:
        # posts and comments take turns
        kind, first = ("parent_id", 500) if number % 2 else ("post_id", 180)
        return f"'{kind}': '{first + number // 2}'"

    def limited(self, headers: Mapping[str, str]) -> Reply:
        return Reply(400, {"error": "rate_limit_error"}, headers)

    def strange(self) -> tuple[Reply, Reply]:
        rows = [{"post": {"uid": 1, "headline": "Mug"}, "comment": {"uid": 1}} for _ in range(3)]
        return Reply(body={"posts": rows, "comments": rows}), Reply(body={"comments": rows})

    def reply(self, asked: Asked) -> Reply:
        if "nodeinfo" in asked.path:
            return Reply(body={"software": {"name": "lemmy", "version": self.version}})
        if self.comments_path in asked.path:
            return Reply(body={"comments": [remark(900 + n, f"Review {n}") for n in range(30)]})
        kind, start = asked.query["type_"].lower(), (int(asked.query["page"]) - 1) * 50
        rows = self.rows("nothing" in asked.query["q"], kind, start)
        return Reply(body={"posts": [], "comments": []} | {kind: rows})

    def rows(self, nothing: bool, kind: str, start: int) -> list[Any]:
        """Fifty results from there on."""
        numbers = range(start, min(start + 50, 0 if nothing else self.count // 2))
        return [talk(180 + n) if kind == "posts" else remark(500 + n, "It stays warm") for n in numbers]


class Lemmy1Emulator(LemmyEmulator):
    """A server of Lemmy 1.0: one list per search, and cursors."""

    search_path, version = "/api/v4/search", "1.0.0"

    def limited(self, headers: Mapping[str, str]) -> Reply:
        return Reply(429, {"error": "too_many_requests"}, headers)

    def strange(self) -> tuple[Reply, Reply]:
        search, thread = super().strange()
        return Reply(body={"items": search.body["posts"], "next_page": None}), thread

    def reply(self, asked: Asked) -> Reply:
        if self.search_path not in asked.path:
            return super().reply(asked)
        start = int(asked.query.get("page_cursor", "P0").removeprefix("P"))
        rows = self.rows("nothing" in asked.query["search_term"], asked.query["type_"], start)
        return Reply(body={"items": rows, "next_page": f"P{start + 50}" if rows else None})


def talk(number: int, **more: Any) -> dict[str, Any]:
    """A post as a search of 0.19 lists it."""
    post = {
        "id": number, "name": f"Mug {number}", "body": "It is *warm*", "nsfw": False,
        "ap_id": f"https://lemmy.example/post/{number}", "published": "2026-09-21T13:33:20.123456Z",
    }  # fmt: skip
    return {"post": post | more, "counts": {"score": 12, "comments": 3}, **_around("potter")}


def remark(number: int, text: str, **more: Any) -> dict[str, Any]:
    """A comment, wherever it is listed."""
    comment = {
        "id": number, "content": text, "path": f"0.{number}", "post_id": 180,
        "ap_id": f"https://lemmy.example/comment/{number}", "published": "2026-09-22T13:33:20Z",
    }  # fmt: skip
    post = talk(180)["post"]
    return {
        "comment": comment | more, "post": post, "counts": {"score": 3}, **_around(f"kiln{number}")
    }  # fmt: skip


def _around(name: str) -> dict[str, Any]:
    root = "https://lemmy.example"
    return {
        "creator": {"name": name, "actor_id": f"{root}/u/{name}", "bot_account": False},
        "community": {"name": "mugs", "title": "Mugs", "actor_id": f"{root}/c/mugs"},
    }


class DiscourseEmulator(Emulator):
    """A forum: search with topics beside the posts, and topics."""

    name, search_path, comments_path, page = "discourse", "/search.json", "/t/", 50

    def __init__(self, count: int = 120) -> None:
        super().__init__(count)

    def settings(self, **more: Any) -> SourceSettings:
        return SourceSettings.model_validate({"DISCOURSE_FORUMS": self.server.url} | more)

    def comments_of(self, number: int) -> str:
        return f"/t/{300 + number}.json"

    def strange(self) -> tuple[Reply, Reply]:
        rows = [{"uid": 1, "headline": "Mug"}]
        return Reply(body=results(rows, [])), Reply(body={"post_stream": {"posts": rows}})

    def reply(self, asked: Asked) -> Reply:
        if self.comments_path in asked.path:
            posts = [posted(number, f"<p>Review {number}</p>") for number in range(1, 21)]
            return Reply(body={"id": 300, "views": 70, "post_stream": {"posts": posts}})
        start = (int(asked.query["page"]) - 1) * self.page
        total = 0 if "nothing" in asked.query["q"] else self.count
        numbers = range(start, min(start + self.page, total))
        posts = [hit(number) for number in numbers]
        more = bool(numbers) and numbers[-1] + 1 < total
        return Reply(body=results(posts, [topic(number) for number in numbers], more=more))


def results(posts: Any, topics: Any, *, more: Any = None, error: Any = None) -> dict[str, Any]:
    """The envelope of a full-page search."""
    grouped = {"error": error, "more_full_page_results": more}
    return {"posts": posts, "topics": topics, "users": [], "grouped_search_result": grouped}


def hit(number: int, **more: Any) -> dict[str, Any]:
    """The first post of a topic, as a search lists it."""
    fields = {
        "id": 7000 + number, "topic_id": 300 + number, "post_number": 1, "username": "potter",
        "name": None, "blurb": "It&#39;s warm", "like_count": 4,
        "created_at": "2026-09-21T13:33:20.123Z",
    }  # fmt: skip
    return fields | more


def topic(number: int, **more: Any) -> dict[str, Any]:
    """A topic beside the posts of a search."""
    fields = {
        "id": 300 + number, "title": f"Mug & saucer {number}", "posts_count": 9,
        "fancy_title": f"Mug &amp; saucer {number}", "slug": "mug-saucer",
    }  # fmt: skip
    return fields | more


def posted(number: int, cooked: str, **more: Any) -> dict[str, Any]:
    """A post of a topic that is read whole."""
    fields = {
        "id": 8000 + number, "post_number": number, "post_type": 1, "username": f"kiln{number}",
        "cooked": cooked, "created_at": "2026-09-21T13:33:20.123Z", "deleted_at": None,
        "hidden": False, "actions_summary": [{"id": 2, "count": number}],
    }  # fmt: skip
    return fields | more


class SteamEmulator(Emulator):
    """Both of Steam's servers: the shop with one game of the asked name, and its reviews."""

    name, search_path, page = "steam", "/GetAppReviews/", 100
    looks_twice = False

    def settings(self, **more: Any) -> SourceSettings:
        return SourceSettings.model_validate({"STEAM_URL": self.server.url} | more)

    @property
    def paths(self) -> list[str]:
        return [asked.path for asked in self.server.asked if "storesearch" not in asked.path]

    @property
    def named(self) -> list[Asked]:
        return [asked for asked in self.server.asked if "storesearch" in asked.path]

    def strange(self) -> tuple[Reply, Reply]:
        rows = [{"uid": n, "words": "yes"} for n in range(3)]
        return Reply(body=reviewed(rows)), Reply(404)

    def reply(self, asked: Asked) -> Reply:
        if "storesearch" in asked.path:
            term = asked.query["term"]
            items = [] if "nothing" in term else [game(620, term), game(621, f"{term} II")]
            return Reply(body={"total": len(items), "items": items})
        start, size = int(asked.query["cursor"].strip("*=") or 0), int(asked.query["num_per_page"])
        numbers = range(start, min(start + size, self.count))
        return Reply(body=reviewed([review(n) for n in numbers], f"{numbers.stop}==", self.count))


def game(number: int, name: str, **more: Any) -> dict[str, Any]:
    """A game as the shop's search lists it."""
    return {"type": "app", "name": name, "id": number, "metascore": "", "streamingvideo": False} | more


def review(number: int, text: str = "It stays [b]warm[/b]", **more: Any) -> dict[str, Any]:
    """A review with the fields of November 2026."""
    author = {"steamid": f"7656119{number:010}", "num_reviews": 3, "playtime_at_review": 90, "playtime_forever": 600}
    fields = {
        "recommendationid": str(200_000 + number), "author": author, "language": "english", "review": text,
        "timestamp_created": NOW, "timestamp_updated": NOW, "voted_up": True, "votes_up": 5, "votes_funny": 0,
        "weighted_vote_score": 0.5, "comment_count": 1, "developer_response": "Thank you",
        "timestamp_dev_responded": NOW,
    }  # fmt: skip
    return fields | more


def reviewed(rows: list[Any], cursor: str = "*", matching: int | None = None) -> dict[str, Any]:
    """The envelope of a page of reviews; without any there is no list."""
    summary = {"num_reviews": len(rows), "total_reviews": 220}
    answer: dict[str, Any] = {"query_summary": summary, "cursor": cursor, "total_matching": matching or len(rows)}
    return {"response": answer | ({"reviews": rows} if rows else {})}


class NewsEmulator(Emulator):
    """The feed of article lists, and one list a quarter, of which the newest has everything."""

    name, search_path = "news", ".gal.json.gz"
    paged = has_comments = looks_twice = False

    def __init__(self, count: int = 60) -> None:
        super().__init__(count)
        now = datetime.now(UTC).replace(second=0, microsecond=0)
        self.newest = now.replace(minute=now.minute // 15 * 15)
        """The minute of the newest list; the earlier ones are whole quarters before it."""

    def __enter__(self) -> Self:
        kept_lists.cache_clear()  # a port may have been another test's server before
        return super().__enter__()

    def settings(self, **more: Any) -> SourceSettings:
        return SourceSettings.model_validate({"NEWS_URL": self.server.url, "LISTENPOST_NEWS_HOURS": 2} | more)

    @property
    def searches(self) -> list[Asked]:
        """Each search asks for the feed once."""
        return [asked for asked in self.server.asked if asked.path.endswith("feed.rss")]

    @property
    def paths(self) -> list[str]:
        return [asked.path for asked in self.searches]

    @property
    def lists(self) -> list[str]:
        """The stamps that were asked for, in order."""
        return [asked.path[-26:-12] for asked in self.server.asked if asked.path.endswith(self.search_path)]

    def strange(self) -> tuple[Reply, Reply]:
        return gal([{"uid": 1, "headline": "Mug"}]), Reply(404)

    def reply(self, asked: Asked) -> Reply:
        if asked.path.endswith("feed.rss"):
            date = f"{self.newest:%d %b %Y %H:%M:%S} +0000"
            return Reply(200, f'<rss version="2.0"><lastBuildDate>{date}</lastBuildDate></rss>', RSS)
        age = self.newest - datetime.strptime(asked.path[-26:-12], "%Y%m%d%H%M%S").replace(tzinfo=UTC)
        if age % timedelta(minutes=15):
            return Reply(
                404, "<?xml version='1.0'?><Error><Code>NoSuchKey</Code></Error>", {"content-type": "text/xml"}
            )
        numbers = range(0 if age else self.count)
        return gal([article(n, f"https://daily.example/{n}") for n in numbers] + [article(0, title="Tides")])


RSS = {"content-type": "application/rss+xml"}


def article(number: int, url: str = "", **more: Any) -> dict[str, Any]:
    """An article as a list has it."""
    fields = {
        "date": "2026-11-29T13:33:20.000Z", "url": url or f"https://tides.example/{number}", "lang": "en",
        "domain": "daily.example", "outletName": "The Daily", "author": "A. Writer", "image": "",
        "title": f"Mug of number {number} stays warm and plaud note records", "desc": "A cup of the kind.",
    }  # fmt: skip
    return fields | more


def gal(rows: Iterable[Any]) -> Reply:
    """A packed list: one object a line, texts as they are."""
    lines = "\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows)
    return Reply(200, gzip.compress(lines.encode()), {"content-type": "application/gzip"})
