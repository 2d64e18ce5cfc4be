"""What a client would rather have: `Accept` with its q-values.

Copies that clients keep: an answer is named by its `ETag`, and sent once.
"""

from __future__ import annotations

from email.message import Message
from hashlib import sha256

from starlette.requests import Request
from starlette.responses import Response

from api.interfaces.http.event_stream import MEDIA_TYPE


def accepted(accept: str) -> dict[str, float]:
    """Media types that an `Accept` header names with their q-values, the best liked first.

    What is refused (`q=0`) is not among them; a q-value that is none counts as 1.
    """
    liked: dict[str, float] = {}
    for part in accept.split(","):
        message = Message()
        message["content-type"] = part.strip()
        try:
            quality = float(str(message.get_param("q", "1")))
        except ValueError:
            quality = 1.0
        liked[part.partition(";")[0].strip().lower()] = quality
    ranked = sorted(liked.items(), key=lambda pair: -pair[1])
    return {media: quality for media, quality in ranked if quality > 0}


def wants_events(accept: str) -> bool:
    """Whether a stream is named, and JSON is not liked better."""
    liked = accepted(accept)
    return liked.get(MEDIA_TYPE, 0) >= liked.get("application/json", 0) and MEDIA_TYPE in liked


def wants_page(accept: str) -> bool:
    """Whether a browser shows the answer to a person: HTML is named, and liked better than JSON."""
    liked = accepted(accept)
    return liked.get("text/html", 0) > liked.get("application/json", 0)


def unless_kept(request: Request, answer: Response) -> Response:
    """The answer with its `ETag`; 304 without a body when `If-None-Match` names it.

    The tag is weak: it stands for what is said, compressed or not. A copy is asked about before it
    is shown, since what it is of may have been deleted.
    """
    tag = f'"{sha256(bytes(answer.body)).hexdigest()[:32]}"'
    answer.headers["ETag"] = f"W/{tag}"
    answer.headers["Cache-Control"] = "private, no-cache"
    answer.headers["Vary"] = "Accept"
    kept = request.headers.get("if-none-match", "")
    names = {name.strip().removeprefix("W/") for name in kept.split(",")}
    if not names & {tag, "*"}:
        return answer
    for name in ("content-length", "content-type", "content-disposition"):
        if name in answer.headers:
            del answer.headers[name]
    return Response(status_code=304, headers=answer.headers)
