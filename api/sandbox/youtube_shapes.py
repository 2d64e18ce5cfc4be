"""Search results, videos and comment threads in the fields YouTube sends."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from api.sandbox.corpus import DIGITS, WEB, Post, Remark, handle, spelled
from api.sandbox.world import World

_SIZES = {
    "default": ("default", 120, 90),
    "medium": ("mqdefault", 320, 180),
    "high": ("hqdefault", 480, 360),
}
_SNIPPET = 120
_LINK = re.compile(r"https?://\S+")


def token(offset: int) -> str:
    """A page token as search sends them: the offset as protobuf, so that 50 is `CDIQAA`."""
    number, varint = offset, bytearray()
    while number > 0x7F:
        varint.append(number & 0x7F | 0x80)
        number >>= 7
    varint.append(number)
    return base64.urlsafe_b64encode(b"\x08" + bytes(varint) + b"\x10\x00").decode().rstrip("=")


def offset(text: str) -> int | None:
    """The offset inside a page token; None when it is none of ours."""
    return next((number for number in range(1001) if token(number) == text), None)


def resource(kind: str, mark: Sequence[object], id_: object = None, **more: Any) -> dict[str, Any]:
    """What every answer and everything in one begins with; the version comes from `mark`."""
    head = {"kind": f"youtube#{kind}", "etag": spelled(WEB, 27, "etag", *mark)}
    return head | ({} if id_ is None else {"id": id_}) | more


def _channel_id(place: str) -> str:
    return "UC" + spelled(WEB, 22, "channel", place)


def _stamp(moment: datetime) -> str:
    """RFC 3339 with seconds, in UTC."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _encoded(text: str) -> str:
    """Entities as search encodes titles."""
    return html.escape(text, quote=False).replace('"', "&quot;").replace("'", "&#39;")


def _thumbnails(id_: str) -> dict[str, Any]:
    return {
        name: {"url": f"https://i.ytimg.com/vi/{id_}/{file}.jpg", "width": width, "height": height}
        for name, (file, width, height) in _SIZES.items()
    }


def result(world: World, post: Post) -> dict[str, Any]:
    """One search result that is a video; its description is one line, cut on a word."""
    published, line = _stamp(world.moment(post.age_days)), " ".join(post.body.split())
    if len(line) > _SNIPPET:
        line = line[:_SNIPPET].rsplit(" ", 1)[0] + " ..."
    snippet = {
        "publishedAt": published,
        "channelId": _channel_id(post.place),
        "title": _encoded(post.title),
        "description": _encoded(line),
        "thumbnails": _thumbnails(post.id),
        "channelTitle": _encoded(post.place),
        "liveBroadcastContent": "none",
        "publishTime": published,
    }
    id_ = {"kind": "youtube#video", "videoId": post.id}
    return resource("searchResult", ("found", post.id), id_, snippet=snippet)


def channel_result(world: World, post: Post) -> dict[str, Any]:
    """One search result that is a channel, as they come when `type` is not given."""
    published = _stamp(world.moment((post.age_days or 0) + 700))
    dates = {"publishedAt": published, "publishTime": published}
    snippet = result(world, post)["snippet"] | {"title": _encoded(post.place)} | dates
    id_ = {"kind": "youtube#channel", "channelId": _channel_id(post.place)}
    return resource("searchResult", ("channel", post.place), id_, snippet=snippet)


def video(world: World, post: Post, parts: Sequence[str]) -> dict[str, Any]:
    """One video with the parts asked for; nothing in it is entity-encoded."""
    tags = re.findall(r"#(\w+)", post.body)
    seconds = 61 + int(spelled(DIGITS, 4, "length", post.id)) % 1400
    hidden = post.comments_disabled
    known: dict[str, Any] = {
        "snippet": {
            "publishedAt": _stamp(world.moment(post.age_days)),
            "channelId": _channel_id(post.place),
            "title": post.title,
            "description": post.body,
            "thumbnails": _thumbnails(post.id),
            "channelTitle": post.place,
            **({"tags": tags} if tags else {}),
            "categoryId": "28",
            "liveBroadcastContent": "none",
            "localized": {"title": post.title, "description": post.body},
        },
        "statistics": {
            "viewCount": str(post.views),
            "favoriteCount": "0",
            **({} if post.likes is None else {"likeCount": str(post.likes)}),
            **({} if hidden else {"commentCount": str(len(post.comments))}),
        },
        "contentDetails": {
            "duration": f"PT{seconds // 60}M{seconds % 60}S", "dimension": "2d",
            "definition": "hd", "caption": "false", "licensedContent": True, "contentRating": {},
            "projection": "rectangular",
        },
    }  # fmt: skip
    wanted = {part: known[part] for part in parts if part in known}
    return resource("video", ("video", post.id), post.id, **wanted)


def comment(
    world: World, post: Post, remark: Remark, plain: bool, parent: str | None = None
) -> dict[str, Any]:
    """One comment; `textDisplay` is HTML unless plain text was asked for."""
    name, published = handle("youtube", remark.id), _stamp(world.moment(remark.age_days))
    shown = remark.body
    if not plain:
        linked = _LINK.sub(lambda match: f'<a href="{match[0]}">{match[0]}</a>', _encoded(shown))
        shown = linked.replace("\n", "<br>")
    snippet = {
        "channelId": _channel_id(post.place),
        "videoId": post.id,
        "textDisplay": shown,
        "textOriginal": remark.body,
        "authorDisplayName": f"@{name}",
        "authorProfileImageUrl": f"https://yt3.ggpht.com/ytc/{spelled(WEB, 16, name)}=s48-c-k",
        "authorChannelUrl": f"http://www.youtube.com/@{name}",
        "authorChannelId": {"value": _channel_id(name)},
        "canRate": True,
        "viewerRating": "none",
        "likeCount": remark.votes,
        "publishedAt": published,
        "updatedAt": published,
    }
    if parent is not None:
        snippet["parentId"] = parent
    return resource("comment", (remark.id,), remark.id, snippet=snippet)


Thread = tuple[Remark, list[Remark]]
"""A top-level comment and its replies."""


def threads(post: Post, order: str) -> list[Thread]:
    """Top-level comments with their replies: every fourth comment answers the one before it."""
    made: list[Thread] = []
    for number, remark in enumerate(post.comments):
        if number % 4 == 3:
            made[-1][1].append(remark)
        else:
            made.append((remark, []))
    key = (lambda t: t[0].age_days) if order == "time" else (lambda t: -t[0].votes)
    return sorted(made, key=key)


def thread(
    world: World, post: Post, comments: Thread, parts: Sequence[str], plain: bool
) -> dict[str, Any]:
    """One comment thread; replies inside when their part was asked for, at most five."""
    top, replies = comments
    made = resource("commentThread", ("thread", top.id), top.id)
    if "snippet" in parts:
        made["snippet"] = {
            "channelId": _channel_id(post.place),
            "videoId": post.id,
            "topLevelComment": comment(world, post, top, plain),
            "canReply": True,
            "totalReplyCount": len(replies),
            "isPublic": True,
        }
    if "replies" in parts and replies:
        shown = [comment(world, post, reply, plain, top.id) for reply in replies[:5]]
        made["replies"] = {"comments": shown}
    return made
