"""Search results, videos and comment threads in the fields YouTube sends."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from api.sandbox.corpus import Post, Remark, spelled
from api.sandbox.names import handle
from api.sandbox.world import World

_WEB = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
_SIZES = {
    "default": ("default", 120, 90),
    "medium": ("mqdefault", 320, 180),
    "high": ("hqdefault", 480, 360),
}
_SNIPPET = 120
_LINK = re.compile(r"https?://\S+")


def token(offset: int) -> str:
    """A page token as search sends them: the offset, in two bytes of protobuf each side."""
    number, varint = offset, bytearray()
    while True:
        number, rest = number >> 7, number & 0x7F
        varint.append(rest | (0x80 if number else 0))
        if not number:
            break
    return base64.urlsafe_b64encode(b"\x08" + bytes(varint) + b"\x10\x00").decode().rstrip("=")


def offset(text: str) -> int | None:
    """The offset inside a page token; None when it is none of ours."""
    for number in range(1001):
        if token(number) == text:
            return number
    return None


def etag(*parts: object) -> str:
    """A version mark."""
    return spelled(_WEB, 27, "etag", *parts)


def channel_id(place: str) -> str:
    """A channel's id."""
    return "UC" + spelled(_WEB, 22, "channel", place)


def stamp(moment: datetime) -> str:
    """RFC 3339 with seconds, in UTC."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def encoded(text: str) -> str:
    """Entities as search encodes titles."""
    return html.escape(text, quote=False).replace('"', "&quot;").replace("'", "&#39;")


def short(description: str) -> str:
    """What search shows of a description: one line, cut on a word."""
    line = " ".join(description.split())
    if len(line) <= _SNIPPET:
        return line
    return line[:_SNIPPET].rsplit(" ", 1)[0] + " ..."


def _thumbnails(id_: str) -> dict[str, Any]:
    return {
        name: {"url": f"https://i.ytimg.com/vi/{id_}/{file}.jpg", "width": width, "height": height}
        for name, (file, width, height) in _SIZES.items()
    }


def found(world: World, post: Post) -> dict[str, Any]:
    """One search result that is a video."""
    published = stamp(world.moment(post.age_days))
    return {
        "kind": "youtube#searchResult",
        "etag": etag("found", post.id),
        "id": {"kind": "youtube#video", "videoId": post.id},
        "snippet": {
            "publishedAt": published,
            "channelId": channel_id(post.place),
            "title": encoded(post.title),
            "description": encoded(short(post.body)),
            "thumbnails": _thumbnails(post.id),
            "channelTitle": encoded(post.place),
            "liveBroadcastContent": "none",
            "publishTime": published,
        },
    }


def found_channel(world: World, post: Post) -> dict[str, Any]:
    """One search result that is a channel, as they come when `type` is not given."""
    published, id_ = stamp(world.moment((post.age_days or 0) + 700)), channel_id(post.place)
    snippet = found(world, post)["snippet"]
    return {
        "kind": "youtube#searchResult",
        "etag": etag("channel", post.place),
        "id": {"kind": "youtube#channel", "channelId": id_},
        "snippet": {
            **snippet,
            "title": encoded(post.place),
            "publishedAt": published,
            "publishTime": published,
        },
    }


def video(world: World, post: Post, parts: Sequence[str]) -> dict[str, Any]:
    """One video with the parts asked for; nothing in it is entity-encoded."""
    snippet = {
        "publishedAt": stamp(world.moment(post.age_days)),
        "channelId": channel_id(post.place),
        "title": post.title,
        "description": post.body,
        "thumbnails": _thumbnails(post.id),
        "channelTitle": post.place,
        "tags": re.findall(r"#(\w+)", post.body),
        "categoryId": "28",
        "liveBroadcastContent": "none",
        "localized": {"title": post.title, "description": post.body},
    }
    if not snippet["tags"]:
        del snippet["tags"]
    known = {"snippet": snippet, "statistics": _statistics(post), "contentDetails": _content(post)}
    made = {"kind": "youtube#video", "etag": etag("video", post.id), "id": post.id}
    return made | {part: known[part] for part in parts if part in known}


def _statistics(post: Post) -> dict[str, str]:
    counts = {"viewCount": str(post.views), "favoriteCount": "0"}
    if post.likes is not None:
        counts["likeCount"] = str(post.likes)
    if not post.comments_disabled:
        counts["commentCount"] = str(len(post.comments))
    return counts


def _content(post: Post) -> dict[str, Any]:
    seconds = 61 + int(spelled("0123456789", 4, "length", post.id)) % 1400
    return {
        "duration": f"PT{seconds // 60}M{seconds % 60}S", "dimension": "2d", "definition": "hd",
        "caption": "false", "licensedContent": True, "contentRating": {},
        "projection": "rectangular",
    }  # fmt: skip


def comment(
    world: World, post: Post, remark: Remark, plain: bool, parent: str | None = None
) -> dict[str, Any]:
    """One comment; `textDisplay` is HTML unless plain text was asked for."""
    name, when = handle("youtube", remark.id), stamp(world.moment(remark.age_days))
    shown = remark.body
    if not plain:
        shown = _LINK.sub(lambda m: f'<a href="{m[0]}">{m[0]}</a>', encoded(shown)).replace(
            "\n", "<br>"
        )
    snippet = {
        "channelId": channel_id(post.place),
        "videoId": post.id,
        "textDisplay": shown,
        "textOriginal": remark.body,
        "authorDisplayName": f"@{name}",
        "authorProfileImageUrl": f"https://yt3.ggpht.com/ytc/{spelled(_WEB, 16, name)}=s48-c-k",
        "authorChannelUrl": f"http://www.youtube.com/@{name}",
        "authorChannelId": {"value": channel_id(name)},
        "canRate": True,
        "viewerRating": "none",
        "likeCount": remark.votes,
        "publishedAt": when,
        "updatedAt": when,
    }
    if parent is not None:
        snippet["parentId"] = parent
    return {"kind": "youtube#comment", "etag": etag(remark.id), "id": remark.id, "snippet": snippet}


def threads(post: Post, order: str) -> list[tuple[Remark, list[Remark]]]:
    """Top-level comments with their replies: every fourth comment answers the one before it."""
    made: list[tuple[Remark, list[Remark]]] = []
    for number, remark in enumerate(post.comments):
        if number % 4 == 3:
            made[-1][1].append(remark)
        else:
            made.append((remark, []))
    key = (lambda t: t[0].age_days) if order == "time" else (lambda t: -t[0].votes)
    return sorted(made, key=key)


def thread(
    world: World,
    post: Post,
    top: Remark,
    replies: Sequence[Remark],
    parts: Sequence[str],
    plain: bool,
) -> dict[str, Any]:
    """One comment thread; replies inside when their part was asked for, at most five."""
    made: dict[str, Any] = {
        "kind": "youtube#commentThread",
        "etag": etag("thread", top.id),
        "id": top.id,
    }
    if "snippet" in parts:
        made["snippet"] = {
            "channelId": channel_id(post.place),
            "videoId": post.id,
            "topLevelComment": comment(world, post, top, plain),
            "canReply": True,
            "totalReplyCount": len(replies),
            "isPublic": True,
        }
    if "replies" in parts and replies:
        made["replies"] = {
            "comments": [comment(world, post, r, plain, top.id) for r in replies[:5]]
        }
    return made
