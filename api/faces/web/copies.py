"""Copies that clients keep: an answer is named by its `ETag`, and sent once."""

from __future__ import annotations

from hashlib import sha256

from starlette.requests import Request
from starlette.responses import Response


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
