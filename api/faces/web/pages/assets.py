"""The style and the script of the pages."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import Response

from api.errors import NotFound
from api.faces.web.copies import unless_kept
from api.faces.web.pages.rendering import asset

router = APIRouter(include_in_schema=False)
_MEDIA = {"page.css": "text/css", "page.js": "text/javascript"}
_KEPT = "public, max-age=31536000, immutable"
"""Pages name them with their digest, so that another version has another address."""


@router.get("/static/{name}")
async def static_file(request: Request, name: str) -> Response:
    """One of the two; needs no key."""
    if name not in _MEDIA:
        raise NotFound("there is no such file")
    answer = unless_kept(request, Response(asset(name), media_type=_MEDIA[name]))
    answer.headers["Cache-Control"] = _KEPT if request.url.query else "no-cache"
    return answer
