"""YouTube Data API v3: search, videos, comment threads and replies, with all their fields."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar

from api.sandbox.corpus import DIGITS, WEB, Post, Remark, handle, spelled
from api.sandbox.site_search import Index
from api.sandbox.world import EmulatedServer, Quota, SandboxCall, SiteRefusal, World, fields, reply, serves, whole

_SIZES = {
    "default": ("default", 120, 90),
    "medium": ("mqdefault", 320, 180),
    "high": ("hqdefault", 480, 360),
}
# characters of the description in a search result
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
    """The offset in a page token; None when the token is not from this server."""
    return next((number for number in range(1001) if token(number) == text), None)


def _resource(kind: str, mark: Sequence[object], id_: object = None, **more: Any) -> dict[str, Any]:
    """The head of every answer and every object in one; the version (`etag`) comes from `mark`."""
    head = {"kind": f"youtube#{kind}", "etag": spelled(WEB, 27, "etag", *mark)}
    return head | ({} if id_ is None else {"id": id_}) | more


def _channel_id(place: str) -> str:
    return "UC" + spelled(WEB, 22, "channel", place)


def _encoded(text: str) -> str:
    return html.escape(text, quote=False).replace('"', "&quot;").replace("'", "&#39;")


def _described(post: Post, title: str, description: str, published: str) -> dict[str, Any]:
    return {
        "publishedAt": published,
        "channelId": _channel_id(post.place),
        "title": title,
        "description": description,
        "thumbnails": {
            name: {"url": f"https://i.ytimg.com/vi/{post.id}/{file}.jpg", "width": w, "height": h}
            for name, (file, w, h) in _SIZES.items()
        },
        "liveBroadcastContent": "none",
    }


def _result(world: World, post: Post) -> dict[str, Any]:
    """One search result that is a video; its description is one line, cut on a word."""
    published, line = world.stamp(post.age_days), " ".join(post.body.split())
    if len(line) > _SNIPPET:
        line = line[:_SNIPPET].rsplit(" ", 1)[0] + " ..."
    snippet = _described(post, _encoded(post.title), _encoded(line), published)
    snippet |= {"channelTitle": _encoded(post.place), "publishTime": published}
    id_ = {"kind": "youtube#video", "videoId": post.id}
    return _resource("searchResult", ("found", post.id), id_, snippet=snippet)


def _channel_result(world: World, post: Post) -> dict[str, Any]:
    """One search result that is a channel, as they come when `type` is not given."""
    published = world.stamp((post.age_days or 0) + 700)
    dates = {"publishedAt": published, "publishTime": published}
    snippet = _result(world, post)["snippet"] | {"title": _encoded(post.place)} | dates
    id_ = {"kind": "youtube#channel", "channelId": _channel_id(post.place)}
    return _resource("searchResult", ("channel", post.place), id_, snippet=snippet)


def _video(world: World, post: Post, parts: Sequence[str]) -> dict[str, Any]:
    seconds = 61 + int(spelled(DIGITS, 4, "length", post.id)) % 1400
    snippet = _described(post, post.title, post.body, world.stamp(post.age_days))
    snippet |= {"channelTitle": post.place, **fields("youtube_video")}
    snippet["localized"] = {"title": post.title, "description": post.body}
    if tags := re.findall(r"#(\w+)", post.body):
        snippet["tags"] = tags
    statistics = {"viewCount": str(post.views), "favoriteCount": "0"}
    if post.likes is not None:
        statistics["likeCount"] = str(post.likes)
    if not post.comments_disabled:
        statistics["commentCount"] = str(len(post.comments))
    duration = {"duration": f"PT{seconds // 60}M{seconds % 60}S"}
    known: dict[str, Any] = {
        "snippet": snippet,
        "statistics": statistics,
        "contentDetails": duration | fields("youtube_details"),
    }
    wanted = {part: known[part] for part in parts if part in known}
    return _resource("video", ("video", post.id), post.id, **wanted)


def _comment(world: World, post: Post, remark: Remark, plain: bool, parent: str | None = None) -> dict[str, Any]:
    """One comment; `textDisplay` is HTML unless plain text was asked for."""
    name, published = handle("youtube", remark.id), world.stamp(remark.age_days)
    shown = remark.body
    if not plain:
        linked = _LINK.sub(lambda match: f'<a href="{match[0]}">{match[0]}</a>', _encoded(shown))
        shown = linked.replace("\n", "<br>")
    snippet = {
        "channelId": _channel_id(post.place), "videoId": post.id,
        "textDisplay": shown, "textOriginal": remark.body,
        "authorDisplayName": f"@{name}", "authorChannelUrl": f"http://www.youtube.com/@{name}",
        "authorProfileImageUrl": f"https://yt3.ggpht.com/ytc/{spelled(WEB, 16, name)}=s48-c-k",
        "authorChannelId": {"value": _channel_id(name)}, "likeCount": remark.votes,
        "publishedAt": published, "updatedAt": published, **fields("youtube_comment"),
    }  # fmt: skip
    if parent is not None:
        snippet["parentId"] = parent
    return _resource("comment", (remark.id,), remark.id, snippet=snippet)


Thread = tuple[Remark, list[Remark]]  # a top-level comment and its replies


def _threads(post: Post, order: str) -> list[Thread]:
    """Top-level comments with their replies: every fourth comment answers the one before it."""
    made: list[Thread] = []
    for number, remark in enumerate(post.comments):
        if number % 4 == 3:
            made[-1][1].append(remark)
        else:
            made.append((remark, []))
    key = (lambda t: t[0].age_days) if order == "time" else (lambda t: -t[0].votes)
    return sorted(made, key=key)


def _thread(world: World, post: Post, comments: Thread, parts: Sequence[str], plain: bool) -> dict[str, Any]:
    """One comment thread; replies inside when their part was asked for, at most five."""
    top, replies = comments
    made = _resource("commentThread", ("thread", top.id), top.id)
    if "snippet" in parts:
        made["snippet"] = {
            "channelId": _channel_id(post.place), "videoId": post.id,
            "topLevelComment": _comment(world, post, top, plain),
            "totalReplyCount": len(replies), **fields("youtube_thread"),
        }  # fmt: skip
    if "replies" in parts and replies:
        shown = [_comment(world, post, reply, plain, top.id) for reply in replies[:5]]
        made["replies"] = {"comments": shown}
    return made


_VIDEO = (
    'The video identified by the <code><a href="/youtube/v3/docs/commentThreads/list#videoId">'
    "videoId</a></code> parameter {}."
)
# the quotas' day ends at midnight Pacific time
_PACIFIC = -8 * 3600
_ORDERS = {
    "date": lambda post: post.age_days or 0, "viewCount": lambda post: -post.views,
    "rating": lambda post: -(post.likes or 0), "title": lambda post: post.title,
}  # fmt: skip


def _error(
    code: int, reason: str, message: str, domain: str = "youtube.parameter",
    parameter: str | None = None, **more: Any,
) -> tuple[dict[str, Any], int]:  # fmt: skip
    first = {"message": message, "domain": domain, "reason": reason}
    if parameter is not None:
        first |= {"location": parameter, "locationType": "parameter"}
    return {"error": {"code": code, "message": message, "errors": [first], **more}}, code


_INVALID_KEY = _error(
    400, "badRequest", "API key not valid. Please pass a valid API key.", "global",
    status="INVALID_ARGUMENT",
    details=[{
        "@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID",
        "domain": "googleapis.com", "metadata": {"service": "youtube.googleapis.com"},
    }],
)  # fmt: skip
_NO_UNITS = _error(
    403, "quotaExceeded",
    "The request cannot be completed because you have exceeded your "
    '<a href="/youtube/v3/getting-started#quota">quota</a>.',
    "youtube.quota",
)  # fmt: skip
_NO_SEARCHES = _error(
    429, "rateLimitExceeded",
    "Quota exceeded for quota metric 'Search Queries' and limit 'Search Queries per day' of "
    "service 'youtube.googleapis.com' for consumer 'project_number:000000000000'.",
    "global", status="RESOURCE_EXHAUSTED",
)  # fmt: skip
_DISABLED = "YouTube Data API v3 has not been used in project 000000000000 or is disabled."


class YouTube(EmulatedServer):
    """Answers as youtube.googleapis.com does."""

    upstream = "youtube"
    fault_replies: ClassVar = {
        "quota": _NO_UNITS,
        "keyinvalid": _INVALID_KEY,
        "disabled": _error(403, "accessNotConfigured", _DISABLED, "usageLimits", status="PERMISSION_DENIED"),
        "500": _error(500, "backendError", "Internal error encountered.", "global", status="INTERNAL"),
    }

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._index = Index(world.of("youtube"))
        self._quota = Quota(world.clock, 86_400, _PACIFIC)

    def fault(self, kind: str, call: SandboxCall) -> Any:
        if kind == "search_quota" and call.path.endswith("/search"):
            return reply(*_NO_SEARCHES)
        return super().fault(kind, call)

    def guard(self, call: SandboxCall) -> None:
        """Check the key and the quota of the day; invalid requests cost too."""
        key, options = call.query.get("key", ""), self.world.options
        if not key:
            message = "The request is missing a valid API key."
            raise SiteRefusal(*_error(403, "forbidden", message, "global", status="PERMISSION_DENIED"))
        if options.youtube_key not in (None, key):
            raise SiteRefusal(*_INVALID_KEY)
        searching = call.path.endswith("/search")
        limit = options.search_quota if searching else options.unit_quota
        if self._quota.spend((key, searching)) > limit:
            raise SiteRefusal(*(_NO_SEARCHES if searching else _NO_UNITS))
        if not call.query.get("part"):
            message = "No filter selected. Expected one of: part"
            raise SiteRefusal(*_error(400, "missingRequiredParameter", message))

    @serves("search", "/youtube/v3/search")
    def _search(self, call: SandboxCall) -> dict[str, Any]:
        """Videos, best match first unless another order is asked for; a channel among them."""
        query, (start, size) = call.query, _page(call, 5, 0, 50)
        try:
            since = datetime.fromisoformat(query.get("publishedAfter") or "0001-01-01")
        except ValueError:
            message = f"Invalid value '{query['publishedAfter']}'."
            raise SiteRefusal(*_error(400, "invalidParameter", message)) from None
        since = since if since.tzinfo else since.replace(tzinfo=UTC)
        hits = [post for post in self._index.search(query.get("q", "")) if self.world.moment(post.age_days) >= since]
        if query.get("order") in _ORDERS:
            hits.sort(key=_ORDERS[query["order"]])
        hits = hits[:500]
        items = [_result(self.world, post) for post in hits[start : start + size]]
        if query.get("type", "video,channel") != "video" and items and not start:
            items.insert(1, _channel_result(self.world, hits[0]))
        return {
            **_resource("searchListResponse", ("search", str(query.get("q")), start)),
            **_next_page(start, size, hits),
            **({"prevPageToken": token(max(start - size, 0))} if start else {}),
            "regionCode": query.get("regionCode", "US"),
            "pageInfo": {"totalResults": min(len(hits) * 1871, 1_000_000), "resultsPerPage": size},
            "items": items,
        }

    @serves("videos", "/youtube/v3/videos")
    def _videos(self, call: SandboxCall) -> dict[str, Any]:
        ids = [id_ for id_ in call.query.get("id", "").split(",") if id_]
        if not ids:
            message = "No filter selected. Expected one of: id, chart"
            raise SiteRefusal(*_error(400, "missingRequiredParameter", message))
        if len(ids) > 50:
            message = "The request specifies too many ids."
            raise SiteRefusal(*_error(400, "invalidFilters", message))
        parts = call.query["part"].split(",")
        posts = [post for id_ in ids if (post := self.world.post("youtube", id_)) is not None]
        items = [_video(self.world, post, parts) for post in posts]
        counts = {"totalResults": len(posts), "resultsPerPage": len(posts)}
        return _resource("videoListResponse", ("videos", *ids), items=items, pageInfo=counts)

    @serves("comments", "/youtube/v3/commentThreads")
    def _threads(self, call: SandboxCall) -> dict[str, Any]:
        query, domain = call.query, "youtube.commentThread"
        post = self.world.post("youtube", query.get("videoId"))
        if post is None:
            message = _VIDEO.format("could not be found")
            raise SiteRefusal(*_error(404, "videoNotFound", message, domain, "videoId"))
        if post.comments_disabled:
            message = _VIDEO.format("has disabled comments")
            raise SiteRefusal(*_error(403, "commentsDisabled", message, domain, "videoId"))
        start, size = _page(call, 20, 1, 100)
        plain, parts = query.get("textFormat") == "plainText", query["part"].split(",")
        rows = _threads(post, query.get("order", "time"))
        shown = rows[start : start + size]
        return {
            **_resource("commentThreadListResponse", ("threads", post.id, start)),
            **_next_page(start, size, rows),
            "pageInfo": {"totalResults": len(shown), "resultsPerPage": size},
            "items": [_thread(self.world, post, each, parts, plain) for each in shown],
        }

    @serves("comments", "/youtube/v3/comments")
    def _replies(self, call: SandboxCall) -> dict[str, Any]:
        parent, plain = call.query.get("parentId", ""), call.query.get("textFormat") == "plainText"
        for post in self._index.posts:
            for top, replies in _threads(post, "time"):
                if top.id == parent:
                    items = [_comment(self.world, post, r, plain, parent) for r in replies]
                    page = {"resultsPerPage": 20}
                    return _resource("commentListResponse", (parent,), pageInfo=page, items=items)
        message = "The comment could not be found."
        raise SiteRefusal(*_error(404, "commentNotFound", message, "youtube.comment"))


def _page(call: SandboxCall, default: int, least: int, most: int) -> tuple[int, int]:
    size = whole(call.query.get("maxResults", str(default)), -1)
    if not least <= size <= most:
        value = call.query["maxResults"]
        message = f"Invalid value '{value}'. Values must be within the range: [{least}, {most}]"
        raise SiteRefusal(*_error(400, "invalidParameter", message))
    start = offset(call.query["pageToken"]) if call.query.get("pageToken") else 0
    if start is None:
        message = "The request specifies an invalid page token."
        raise SiteRefusal(*_error(400, "invalidPageToken", message, parameter="pageToken"))
    return start, size


def _next_page(start: int, size: int, rows: Sequence[object]) -> dict[str, str]:
    return {"nextPageToken": token(start + size)} if start + size < len(rows) else {}
