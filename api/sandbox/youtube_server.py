"""YouTube Data API v3: search, videos, comment threads, replies; its two quotas.

Search results, videos and comment threads in the fields YouTube sends.
"""

from __future__ import annotations

import base64
import html
import re
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from api.sandbox.corpus import DIGITS, WEB, Post, Remark, handle, spelled
from api.sandbox.site_search import Index
from api.sandbox.world import RequestGateway, SandboxCall, World, whole

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


_QUOTA = (
    "The request cannot be completed because you have exceeded your "
    '<a href="/youtube/v3/getting-started#quota">quota</a>.'
)
_SEARCHES = (
    "Quota exceeded for quota metric 'Search Queries' and limit 'Search Queries per day' of "
    "service 'youtube.googleapis.com' for consumer 'project_number:000000000000'."
)
_VIDEO = (
    'The video identified by the <code><a href="/youtube/v3/docs/commentThreads/list#videoId">'
    "videoId</a></code> parameter {}."
)
_PACIFIC = 8 * 3600
_ORDERS = {
    "date": lambda post: post.age_days or 0,
    "viewCount": lambda post: -post.views,
    "rating": lambda post: -(post.likes or 0),
    "title": lambda post: post.title,
}


def refusal(
    code: int,
    reason: str,
    message: str,
    domain: str = "youtube.parameter",
    parameter: str | None = None,
    **more: Any,
) -> Response:
    """An error in Google's envelope, with the parameter it is about; `more` is added to it."""
    first = {"message": message, "domain": domain, "reason": reason}
    if parameter is not None:
        first |= {"location": parameter, "locationType": "parameter"}
    error = {"code": code, "message": message, "errors": [first], **more}
    return JSONResponse({"error": error}, code)


def _invalid_key() -> Response:
    message = "API key not valid. Please pass a valid API key."
    info = {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID",
        "domain": "googleapis.com", "metadata": {"service": "youtube.googleapis.com"},
    }  # fmt: skip
    return refusal(400, "badRequest", message, "global", status="INVALID_ARGUMENT", details=[info])


def _no_quota(bucket: str) -> Response:
    if bucket == "search":
        status = "RESOURCE_EXHAUSTED"
        return refusal(429, "rateLimitExceeded", _SEARCHES, "global", status=status)
    return refusal(403, "quotaExceeded", _QUOTA, "youtube.quota")


class YouTube:
    """Answers as youtube.googleapis.com does, for one sandbox."""

    def __init__(self, world: World) -> None:
        """Build its index on first use."""
        self._world, self._index = world, Index(world.of("youtube"))
        self._spent: Counter[tuple[str, str, int]] = Counter()

    def routes(self) -> list[Route]:
        """Its paths."""
        gateway, v3 = RequestGateway(self._world, "youtube", self.fault, self.guard), "/youtube/v3"
        return [
            gateway.route(f"{v3}/search", "search", self.search),
            gateway.route(f"{v3}/videos", "videos", self.videos),
            gateway.route(f"{v3}/commentThreads", "comments", self.threads),
            gateway.route(f"{v3}/comments", "comments", self.replies),
        ]

    def fault(self, kind: str, call: SandboxCall) -> Response | None:
        """Trouble in Google's words."""
        if kind == "quota":
            return _no_quota("units")
        if kind == "search_quota" and call.request.url.path.endswith("/search"):
            return _no_quota("search")
        if kind == "keyinvalid":
            return _invalid_key()
        if kind == "disabled":
            message = (
                "YouTube Data API v3 has not been used in project 000000000000 or is disabled."
            )
            status = "PERMISSION_DENIED"
            return refusal(403, "accessNotConfigured", message, "usageLimits", status=status)
        if kind == "500":
            message = "Internal error encountered."
            return refusal(500, "backendError", message, "global", status="INTERNAL")
        return None

    def guard(self, call: SandboxCall) -> Response | None:
        """The key check and the quota of a day that ends at midnight in California.

        Invalid requests cost too.
        """
        key, options = call.query.get("key", ""), self._world.options
        if not key:
            message = "The request is missing a valid API key."
            return refusal(403, "forbidden", message, "global", status="PERMISSION_DENIED")
        if options.youtube_key is not None and key != options.youtube_key:
            return _invalid_key()
        searching = call.request.url.path.endswith("/search")
        bucket, limit = ("search" if searching else "units"), options.unit_quota
        day = int((self._world.clock() - _PACIFIC) // 86_400)
        self._spent[key, bucket, day] += 1
        if self._spent[key, bucket, day] > (options.search_quota if searching else limit):
            return _no_quota(bucket)
        if not call.query.get("part"):
            message = "No filter selected. Expected one of: part"
            return refusal(400, "missingRequiredParameter", message)
        return None

    def search(self, call: SandboxCall) -> Response:
        """Videos, best match first unless another order is asked for; a channel among them."""
        query, page = call.query, _page(call, 5, 0, 50)
        if isinstance(page, Response):
            return page
        start, size = page
        try:
            since = datetime.fromisoformat(query.get("publishedAfter") or "0001-01-01")
        except ValueError:
            return refusal(400, "invalidParameter", f"Invalid value '{query['publishedAfter']}'.")
        since = since if since.tzinfo else since.replace(tzinfo=UTC)
        hits = [
            post
            for post in self._index.search(query.get("q", ""))
            if self._world.moment(post.age_days) >= since
        ]
        if query.get("order") in _ORDERS:
            hits.sort(key=_ORDERS[query["order"]])
        hits = hits[:500]
        items = [result(self._world, post) for post in hits[start : start + size]]
        if query.get("type", "video,channel") != "video" and items and not start:
            items.insert(1, channel_result(self._world, hits[0]))
        mark = ("search", str(query.get("q")), start)
        more = start + size < len(hits)
        body = {
            **resource("searchListResponse", mark),
            **({"nextPageToken": token(start + size)} if more else {}),
            **({"prevPageToken": token(max(start - size, 0))} if start else {}),
            "regionCode": query.get("regionCode", "US"),
            "pageInfo": {"totalResults": min(len(hits) * 1871, 1_000_000), "resultsPerPage": size},
            "items": items,
        }
        return JSONResponse(body)

    def videos(self, call: SandboxCall) -> Response:
        """Videos by id; unknown ones are left out."""
        ids = [id_ for id_ in call.query.get("id", "").split(",") if id_]
        if not ids:
            message = "No filter selected. Expected one of: id, chart"
            return refusal(400, "missingRequiredParameter", message)
        if len(ids) > 50:
            return refusal(400, "invalidFilters", "The request specifies too many ids.")
        parts = call.query["part"].split(",")
        posts = [post for id_ in ids if (post := self._world.post("youtube", id_)) is not None]
        items = [video(self._world, post, parts) for post in posts]
        counts = {"totalResults": len(posts), "resultsPerPage": len(posts)}
        body = resource("videoListResponse", ("videos", *ids))
        return JSONResponse(body | {"items": items, "pageInfo": counts})

    def threads(self, call: SandboxCall) -> Response:
        """Comments of a video with their first replies."""
        query, domain = call.query, "youtube.commentThread"
        post = self._world.post("youtube", query.get("videoId"))
        if post is None:
            message = _VIDEO.format("could not be found")
            return refusal(404, "videoNotFound", message, domain, "videoId")
        if post.comments_disabled:
            message = _VIDEO.format("has disabled comments")
            return refusal(403, "commentsDisabled", message, domain, "videoId")
        page = _page(call, 20, 1, 100)
        if isinstance(page, Response):
            return page
        start, size = page
        plain, parts = query.get("textFormat") == "plainText", query["part"].split(",")
        all_ = threads(post, query.get("order", "time"))
        shown = all_[start : start + size]
        more = start + size < len(all_)
        body = {
            **resource("commentThreadListResponse", ("threads", post.id, start)),
            **({"nextPageToken": token(start + size)} if more else {}),
            "pageInfo": {"totalResults": len(shown), "resultsPerPage": size},
            "items": [thread(self._world, post, each, parts, plain) for each in shown],
        }
        return JSONResponse(body)

    def replies(self, call: SandboxCall) -> Response:
        """All replies to one comment."""
        parent, plain = call.query.get("parentId", ""), call.query.get("textFormat") == "plainText"
        for post in self._index.posts:
            for top, replies in threads(post, "time"):
                if top.id == parent:
                    items = [comment(self._world, post, r, plain, parent) for r in replies]
                    body = resource("commentListResponse", (parent,))
                    body |= {"pageInfo": {"resultsPerPage": 20}, "items": items}
                    return JSONResponse(body)
        return refusal(404, "commentNotFound", "The comment could not be found.", "youtube.comment")


def _page(call: SandboxCall, default: int, least: int, most: int) -> tuple[int, int] | Response:
    """Offset and size of the page that is asked for, or what is wrong with them."""
    size = whole(call.query.get("maxResults", str(default)), -1)
    if not least <= size <= most:
        value = call.query["maxResults"]
        message = f"Invalid value '{value}'. Values must be within the range: [{least}, {most}]"
        return refusal(400, "invalidParameter", message)
    start = offset(call.query["pageToken"]) if call.query.get("pageToken") else 0
    if start is None:
        message = "The request specifies an invalid page token."
        return refusal(400, "invalidPageToken", message, parameter="pageToken")
    return start, size
