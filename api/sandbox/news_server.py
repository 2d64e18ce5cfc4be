"""The GDELT Project's article lists: a feed that names the newest, and packed files of a minute each."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

from starlette.responses import Response

from api.sandbox.corpus import Post
from api.sandbox.world import EmulatedServer, SandboxCall, World, reply, serves

_STAMP = "%Y%m%d%H%M%S"
# minutes after each quarter of an hour at which there is a list; all others have none
_MINUTES = (1, 2)
_NONE = "<?xml version='1.0' encoding='UTF-8'?><Error><Code>NoSuchKey</Code></Error>"
_TEXT = "Please limit requests to one every 5 seconds or contact the project for larger queries."
_TOO_LARGE = 8_500_000


class News(EmulatedServer):
    """Answers as the project's files do: most minutes are 404, and nothing can be searched."""

    upstream = "news"
    fault_replies: ClassVar = {
        "404": (_NONE, 404, {"content-type": "application/xml; charset=UTF-8"}),
        "429": (_TEXT, 429, {"content-type": "text/plain", "retry-after": "30"}),
    }

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._lists: dict[str, list[Post]] = defaultdict(list)
        for number, post in enumerate(post for post in world.of("news") if not post.deleted):
            quarter = _quarter(world.moment(post.age_days))
            minute = _MINUTES[number % len(_MINUTES)]
            self._lists[f"{quarter + timedelta(minutes=minute):{_STAMP}}"].append(post)

    def fault(self, kind: str, call: SandboxCall) -> Any:
        if kind == "text":  # what the project's other interfaces say with 200 when they are asked too often
            return Response(_TEXT, media_type="text/plain")
        if kind == "large":
            return Response(b"x" * _TOO_LARGE, media_type="application/gzip")
        return super().fault(kind, call)

    @serves("feed", "/gdeltv3/gal/feed.rss")
    def _feed(self, call: SandboxCall) -> Response:
        """The feed; its dates lack the day of the week, as in the original."""
        newest = self._newest() - timedelta(days=2 * (call.fault == "old"))
        text = (
            '<?xml version="1.0" encoding="UTF-8"?>\n<rss version="2.0"><channel><title>GDELT Article List</title>'
            f"<lastBuildDate>{newest:%d %b %Y %H:%M:%S} +0000</lastBuildDate></channel></rss>"
        )
        return Response(text, media_type="application/rss+xml")

    @serves("list", "/gdeltv3/gal/{stamp:int}.gal.json.gz")
    def _list(self, call: SandboxCall) -> Response:
        """The list of a minute, packed, one article a line."""
        stamp = call.parameter("stamp")
        try:
            moment = datetime.strptime(stamp, _STAMP).replace(tzinfo=UTC)
        except ValueError:
            moment = datetime.max.replace(tzinfo=UTC)
        if moment.minute % 15 not in _MINUTES or moment.second or moment > self._newest():
            return reply(*self.fault_replies["404"])
        lines = [json.dumps(self._article(post)) for post in self._lists.get(stamp, [])]
        lines.append(json.dumps(_filler(stamp)))
        if call.fault == "bad_lines":
            lines += ["not-json", "[]", '{"title": "without an address"}', "x" * 70_000]
        packed = gzip.compress("".join(f"{line}\n" for line in lines).encode(), mtime=0)
        # without checksum and length: a cut that takes the only line of a short list would be another fault
        return Response(packed[:-8] if call.fault == "truncated" else packed, media_type="application/gzip")

    def _newest(self) -> datetime:
        now = datetime.fromtimestamp(self.world.clock(), UTC)
        times = [_quarter(now) + timedelta(minutes=minute - 15 * back) for back in (0, 1) for minute in _MINUTES]
        return max(time for time in times if time <= now)

    def _article(self, post: Post) -> dict[str, Any]:
        return {
            "date": self.world.stamp(post.age_days, ".000"), "url": address_of(post), "domain": post.place,
            "outletName": post.place.partition(".")[0].title(), "outletLogo": "", "title": post.title,
            "desc": post.body, "lang": "en",
        }  # fmt: skip


def address_of(post: Post) -> str:
    """Address of a sample article, at which there is no page."""
    return post.link or f"https://{post.place}/{post.id}"


def _quarter(moment: datetime) -> datetime:
    return moment.replace(minute=moment.minute // 15 * 15, second=0, microsecond=0)


def _filler(stamp: str) -> dict[str, Any]:
    """An article about nothing that anybody asks for, so that no list is empty."""
    return {
        "date": "", "url": f"https://harbour.example/tides/{stamp}", "domain": "harbour.example",
        "title": f"High water at the harbour, bulletin {stamp}", "desc": "", "lang": "en",
    }  # fmt: skip
