"""YouTube Data API v3: search, videos, comment threads, replies; its two quotas."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import Any

from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from api.sandbox import youtube_shapes as shapes
from api.sandbox.search import Index
from api.sandbox.world import Call, Gateway, World, whole

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
        gateway, v3 = Gateway(self._world, "youtube", self.fault, self.guard), "/youtube/v3"
        return [
            gateway.route(f"{v3}/search", "search", self.search),
            gateway.route(f"{v3}/videos", "videos", self.videos),
            gateway.route(f"{v3}/commentThreads", "comments", self.threads),
            gateway.route(f"{v3}/comments", "comments", self.replies),
        ]

    def fault(self, kind: str, call: Call) -> Response | None:
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

    def guard(self, call: Call) -> Response | None:
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

    def search(self, call: Call) -> Response:
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
        items = [shapes.result(self._world, post) for post in hits[start : start + size]]
        if query.get("type", "video,channel") != "video" and items and not start:
            items.insert(1, shapes.channel_result(self._world, hits[0]))
        mark = ("search", str(query.get("q")), start)
        more = start + size < len(hits)
        body = {
            **shapes.resource("searchListResponse", mark),
            **({"nextPageToken": shapes.token(start + size)} if more else {}),
            **({"prevPageToken": shapes.token(max(start - size, 0))} if start else {}),
            "regionCode": query.get("regionCode", "US"),
            "pageInfo": {"totalResults": min(len(hits) * 1871, 1_000_000), "resultsPerPage": size},
            "items": items,
        }
        return JSONResponse(body)

    def videos(self, call: Call) -> Response:
        """Videos by id; unknown ones are left out."""
        ids = [id_ for id_ in call.query.get("id", "").split(",") if id_]
        if not ids:
            message = "No filter selected. Expected one of: id, chart"
            return refusal(400, "missingRequiredParameter", message)
        if len(ids) > 50:
            return refusal(400, "invalidFilters", "The request specifies too many ids.")
        parts = call.query["part"].split(",")
        posts = [post for id_ in ids if (post := self._world.post("youtube", id_)) is not None]
        items = [shapes.video(self._world, post, parts) for post in posts]
        counts = {"totalResults": len(posts), "resultsPerPage": len(posts)}
        body = shapes.resource("videoListResponse", ("videos", *ids))
        return JSONResponse(body | {"items": items, "pageInfo": counts})

    def threads(self, call: Call) -> Response:
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
        all_ = shapes.threads(post, query.get("order", "time"))
        shown = all_[start : start + size]
        more = start + size < len(all_)
        body = {
            **shapes.resource("commentThreadListResponse", ("threads", post.id, start)),
            **({"nextPageToken": shapes.token(start + size)} if more else {}),
            "pageInfo": {"totalResults": len(shown), "resultsPerPage": size},
            "items": [shapes.thread(self._world, post, each, parts, plain) for each in shown],
        }
        return JSONResponse(body)

    def replies(self, call: Call) -> Response:
        """All replies to one comment."""
        parent, plain = call.query.get("parentId", ""), call.query.get("textFormat") == "plainText"
        for post in self._index.posts:
            for top, replies in shapes.threads(post, "time"):
                if top.id == parent:
                    items = [shapes.comment(self._world, post, r, plain, parent) for r in replies]
                    body = shapes.resource("commentListResponse", (parent,))
                    body |= {"pageInfo": {"resultsPerPage": 20}, "items": items}
                    return JSONResponse(body)
        return refusal(404, "commentNotFound", "The comment could not be found.", "youtube.comment")


def _page(call: Call, default: int, least: int, most: int) -> tuple[int, int] | Response:
    """Offset and size of the page that is asked for, or what is wrong with them."""
    size = whole(call.query.get("maxResults", str(default)), -1)
    if not least <= size <= most:
        value = call.query["maxResults"]
        message = f"Invalid value '{value}'. Values must be within the range: [{least}, {most}]"
        return refusal(400, "invalidParameter", message)
    start = shapes.offset(call.query["pageToken"]) if call.query.get("pageToken") else 0
    if start is None:
        message = "The request specifies an invalid page token."
        return refusal(400, "invalidPageToken", message, parameter="pageToken")
    return start, size
