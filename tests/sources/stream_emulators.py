"""A small Jetstream and AppView, for the contract of all sources and for tests of the stream."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from api.settings import SourceSettings
from tests.loopback import Asked, Reply
from tests.sources.emulators import Emulator

NSID = "network.bsky.jetstream.subscribeEvents"
POST = "app.bsky.feed.post"


class BlueskyEmulator(Emulator):
    """A stream that holds `count` posts about mugs, all within one connection, and their threads."""

    name, search_path, comments_path, paged = "bluesky", "subscribeEvents", "getPostThread", False

    def __init__(self, count: int = 90) -> None:
        super().__init__(count)
        self.page = self.count
        self.began = datetime.now(UTC)

    def settings(self, **more: Any) -> SourceSettings:
        return SourceSettings.model_validate(
            {"BLUESKY_URL": self.server.url, "BLUESKY_APPVIEW_URL": self.server.url, "bluesky_seconds": 4} | more
        )

    def comments_of(self, number: int) -> str:
        return f"'uri': '{uri_of(number)}'"

    def strange(self) -> tuple[Reply, Reply]:
        frames = [v2("commit", number, self.began, headline="Mug") for number in range(3)]
        frames = [frame.replace('"did"', '"who"') for frame in frames]
        replies = [{"post": {"uid": number, "words": "yes"}} for number in range(3)]
        return stream(frames), Reply(body={"thread": {"post": {"uid": 1}, "replies": replies}})

    def reply(self, asked: Asked) -> Reply:
        if self.search_path in asked.path:
            return stream(self.frames())
        if self.comments_path in asked.path:
            replies = [{"post": view(500 + number, f"Review {number}")} for number in range(30)]
            return Reply(body={"thread": {"post": view(0, "Mug 0"), "replies": replies}})
        return Reply(body={"posts": [view(number, f"Mug {number} is warm") for number in range(self.count)]})

    def frames(self) -> Iterable[str]:
        """Posts since before the window, the newest last, and a deletion from after the question, which ends it."""
        yield written(9_998, self.began - timedelta(hours=37), "Kettle")
        for number in reversed(range(self.count)):
            yield written(number, self.began - timedelta(minutes=1, seconds=number), f"Mug {number} is warm")
        yield v2("commit", 9_999, datetime.now(UTC) + timedelta(seconds=1), **commit(9_999, "delete"))


def stream(frames: Iterable[str | bytes]) -> Reply:
    """A socket with these frames."""
    return Reply(101, list(frames), manner="stream")


def did_of(number: int) -> str:
    """The account that writes post `number`."""
    return f"did:plc:{number:024}"


def uri_of(number: int) -> str:
    """The address of post `number`."""
    return f"at://{did_of(number)}/{POST}/3m{number:011}"


def stamp(at: datetime) -> str:
    """A time as the second version writes it."""
    return f"{at:%Y-%m-%dT%H:%M:%S.%f}Z"


def v2(kind: str, number: int, at: datetime, **fields: Any) -> str:
    """A frame of the second version."""
    payload = {"$type": f"{NSID}#{kind}", "seq": 24_000_000_000 + number, "did": did_of(number), "time": stamp(at)}
    return compact({"$type": "message", "payload": payload | fields})


def commit(number: int, operation: str, text: str = "", **record: Any) -> dict[str, Any]:
    """What both versions say of a record."""
    fields: dict[str, Any] = {
        "rev": "3mptbypoy522s", "operation": operation, "collection": POST, "rkey": f"3m{number:011}",
    }  # fmt: skip
    if operation == "delete":
        return fields
    return fields | {"record": {"$type": POST, "text": text, "langs": ["en"], **record}, "cid": "bafyreib"}


def written(number: int, at: datetime, text: str, operation: str = "create", **record: Any) -> str:
    """A post as the second version brings it."""
    return v2("commit", number, at, **commit(number, operation, text, **{"createdAt": stamp(at)} | record))


def v1(kind: str, number: int, at: datetime, body: Any) -> str:
    """A frame of the first version."""
    return compact({"did": did_of(number), "time_us": int(at.timestamp() * 1e6), "kind": kind, kind: body})


def compact(value: Any) -> str:
    """JSON as the servers write it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def view(number: int, text: str, **more: Any) -> dict[str, Any]:
    """A post as the AppView shows it."""
    fields = {
        "uri": uri_of(number), "cid": "bafyreib", "author": {"did": did_of(number), "handle": f"kiln{number}.example"},
        "record": {"$type": POST, "text": text, "createdAt": "2026-09-21T13:33:20.123Z"}, "labels": [],
        "likeCount": 3, "replyCount": 2, "repostCount": 1, "quoteCount": 0, "indexedAt": "2026-09-21T13:33:20.123Z",
    }  # fmt: skip
    return fields | more
