"""YouTube Data API v3: search, videos, comment threads, replies; its two quotas."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import Any

from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from api.sandbox import youtube_shapes as shapes
from api.sandbox.corpus import Post
from api.sandbox.world import Answer, Call, Desk, World

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


def refusal(
    code: int, reason: str, message: str, domain: str = "youtube.parameter", **more: Any
) -> Response:
    """An error in Google's envelope; `more` is added to the error object."""
    first = {"message": message, "domain": domain, "reason": reason}
    return JSONResponse(
        {"error": {"code": code, "message": message, "errors": [first], **more}}, code
    )


def _invalid_key() -> Response:
    message = "API key not valid. Please pass a valid API key."
    info = {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID",
        "domain": "googleapis.com", "metadata": {"service": "youtube.googleapis.com"},
    }  # fmt: skip
    return refusal(400, "badRequest", message, "global", status="INVALID_ARGUMENT", details=[info])


class YouTube:
    """Answers as youtube.googleapis.com does, for one sandbox."""

    def __init__(self, world: World) -> None:
        """Build its index on first use."""
        self._world, self._index = world, world.index("youtube")
        self._spent: Counter[tuple[str, str, int]] = Counter()

    def routes(self) -> list[Route]:
        """Its paths."""
        desk = Desk(self._world, "youtube", self._fault)
        return [
            desk.route("/youtube/v3/search", "search", self._guarded("search", self._search)),
            desk.route("/youtube/v3/videos", "videos", self._guarded("units", self._videos)),
            desk.route(
                "/youtube/v3/commentThreads", "comments", self._guarded("units", self._threads)
            ),
            desk.route("/youtube/v3/comments", "comments", self._guarded("units", self._replies)),
        ]

    def _fault(self, kind: str, call: Call) -> Response | None:
        if kind == "quota":
            return refusal(403, "quotaExceeded", _QUOTA, "youtube.quota")
        if kind == "search_quota" and call.request.url.path.endswith("/search"):
            return refusal(
                429, "rateLimitExceeded", _SEARCHES, "global", status="RESOURCE_EXHAUSTED"
            )
        if kind == "keyinvalid":
            return _invalid_key()
        if kind == "disabled":
            message = (
                "YouTube Data API v3 has not been used in project 000000000000 or is disabled."
            )
            return refusal(
                403, "accessNotConfigured", message, "usageLimits", status="PERMISSION_DENIED"
            )
        if kind == "500":
            return refusal(
                500, "backendError", "Internal error encountered.", "global", status="INTERNAL"
            )
        return None

    def _guarded(self, bucket: str, answer: Answer) -> Answer:
        """The answer behind the key check and the quota; invalid requests cost too."""

        def serve(call: Call) -> Response:
            key, known = call.query.get("key", ""), self._world.options.youtube_key
            if not key:
                message = "The request is missing a valid API key."
                return refusal(403, "forbidden", message, "global", status="PERMISSION_DENIED")
            if known is not None and key != known:
                return _invalid_key()
            spent, limit = self._spend(key, bucket)
            if spent > limit and bucket == "search":
                return refusal(
                    429, "rateLimitExceeded", _SEARCHES, "global", status="RESOURCE_EXHAUSTED"
                )
            if spent > limit:
                return refusal(403, "quotaExceeded", _QUOTA, "youtube.quota")
            if not call.query.get("part"):
                return refusal(
                    400, "missingRequiredParameter", "No filter selected. Expected one of: part"
                )
            made = answer(call)
            assert isinstance(made, Response)
            return made

        return serve

    def _spend(self, key: str, bucket: str) -> tuple[int, int]:
        """Count one call; the day ends at midnight in California."""
        day = int((self._world.clock() - _PACIFIC) // 86_400)
        self._spent[key, bucket, day] += 1
        options = self._world.options
        limit = options.search_quota if bucket == "search" else options.unit_quota
        return self._spent[key, bucket, day], limit

    def _search(self, call: Call) -> Response:
        query = call.query
        size, start = (
            _size(query, 5, 0, 50),
            shapes.offset(query["pageToken"]) if query.get("pageToken") else 0,
        )
        if size is None:
            return _out_of_range(query["maxResults"], 0, 50)
        if start is None:
            return _bad_token()
        since = _moment(query.get("publishedAfter"))
        if since == "bad":
            return refusal(400, "invalidParameter", f"Invalid value '{query['publishedAfter']}'.")
        hits = self._hits(query, since)
        page = [shapes.found(self._world, post) for post in hits[start : start + size]]
        if query.get("type", "video,channel") != "video" and page and not start:
            page.insert(1, shapes.found_channel(self._world, hits[0]))
        more = start + size < len(hits)
        body = {
            "kind": "youtube#searchListResponse",
            "etag": shapes.etag("search", str(query.get("q")), start),
            **({"nextPageToken": shapes.token(start + size)} if more else {}),
            **({"prevPageToken": shapes.token(max(start - size, 0))} if start else {}),
            "regionCode": query.get("regionCode", "US"),
            "pageInfo": {"totalResults": min(len(hits) * 1871, 1_000_000), "resultsPerPage": size},
            "items": page,
        }
        return JSONResponse(body)

    def _hits(self, query: dict[str, str], since: object) -> list[Post]:
        found = [
            post
            for post in self._index.search(query.get("q", ""))
            if not isinstance(since, datetime) or self._world.moment(post.age_days) >= since
        ]
        order = query.get("order", "relevance")
        if order == "date":
            found.sort(key=lambda post: post.age_days or 0)
        elif order == "viewCount":
            found.sort(key=lambda post: -post.views)
        elif order == "rating":
            found.sort(key=lambda post: -(post.likes or 0))
        elif order == "title":
            found.sort(key=lambda post: post.title)
        return found[:500]

    def _videos(self, call: Call) -> Response:
        ids = [id_ for id_ in call.query.get("id", "").split(",") if id_]
        if not ids:
            return refusal(
                400, "missingRequiredParameter", "No filter selected. Expected one of: id, chart"
            )
        if len(ids) > 50:
            return refusal(400, "invalidFilters", "The request specifies too many ids.")
        parts = call.query["part"].split(",")
        posts = [post for id_ in ids if (post := self._world.post("youtube", id_)) is not None]
        body = {
            "kind": "youtube#videoListResponse",
            "etag": shapes.etag("videos", *ids),
            "items": [shapes.video(self._world, post, parts) for post in posts],
            "pageInfo": {"totalResults": len(posts), "resultsPerPage": len(posts)},
        }
        return JSONResponse(body)

    def _threads(self, call: Call) -> Response:
        query = call.query
        post, place = self._world.post("youtube", query.get("videoId")), "youtube.commentThread"
        at = {"location": "videoId", "locationType": "parameter"}
        if post is None:
            return _located(404, "videoNotFound", _VIDEO.format("could not be found"), place, at)
        if post.comments_disabled:
            return _located(
                403, "commentsDisabled", _VIDEO.format("has disabled comments"), place, at
            )
        size, start = (
            _size(query, 20, 1, 100),
            shapes.offset(query["pageToken"]) if query.get("pageToken") else 0,
        )
        if size is None:
            return _out_of_range(query["maxResults"], 1, 100)
        if start is None:
            return _bad_token()
        plain, parts = query.get("textFormat") == "plainText", query["part"].split(",")
        made = shapes.threads(post, query.get("order", "time"))
        page = made[start : start + size]
        more = start + size < len(made)
        body = {
            "kind": "youtube#commentThreadListResponse",
            "etag": shapes.etag("threads", post.id, start),
            **({"nextPageToken": shapes.token(start + size)} if more else {}),
            "pageInfo": {"totalResults": len(page), "resultsPerPage": size},
            "items": [shapes.thread(self._world, post, top, r, parts, plain) for top, r in page],
        }
        return JSONResponse(body)

    def _replies(self, call: Call) -> Response:
        parent, plain = call.query.get("parentId", ""), call.query.get("textFormat") == "plainText"
        for post in self._index.posts:
            for top, replies in shapes.threads(post, "time"):
                if top.id == parent:
                    items = [shapes.comment(self._world, post, r, plain, parent) for r in replies]
                    info = {"resultsPerPage": 20}
                    kind = "youtube#commentListResponse"
                    return JSONResponse(
                        {
                            "kind": kind,
                            "etag": shapes.etag(parent),
                            "pageInfo": info,
                            "items": items,
                        }
                    )
        return refusal(404, "commentNotFound", "The comment could not be found.", "youtube.comment")


def _located(status: int, reason: str, message: str, domain: str, at: dict[str, str]) -> Response:
    first = {"message": message, "domain": domain, "reason": reason, **at}
    return JSONResponse({"error": {"code": status, "message": message, "errors": [first]}}, status)


def _out_of_range(value: str, least: int, most: int) -> Response:
    message = f"Invalid value '{value}'. Values must be within the range: [{least}, {most}]"
    return refusal(400, "invalidParameter", message)


def _bad_token() -> Response:
    message = "The request specifies an invalid page token."
    return _located(
        400,
        "invalidPageToken",
        message,
        "youtube.parameter",
        {"location": "pageToken", "locationType": "parameter"},
    )


def _size(query: dict[str, str], default: int, least: int, most: int) -> int | None:
    text = query.get("maxResults", str(default))
    return int(text) if text.isascii() and text.isdigit() and least <= int(text) <= most else None


def _moment(text: str | None) -> datetime | str | None:
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return "bad"
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
