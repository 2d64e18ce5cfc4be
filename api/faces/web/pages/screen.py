"""What every screen is: a page in the layout, and an error in words that a person reads."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from typing import Any
from urllib.parse import quote

from fastapi import Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from fastapi.routing import APIRoute

from api.errors import AccessDenied, LimitReached, ListenpostError, StoreUnavailable
from api.faces.web.errors import trace_id_of
from api.faces.web.media import wants_events, wants_page
from api.faces.web.pages.fields import plainly
from api.faces.web.pages.rendering import asset, rendered
from api.services.keeping.keys import Tenant

_log = logging.getLogger(__name__)
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""Content security policy of the pages: what this server itself has, and nothing inline."""
MENU = (
    ("Ask", "/"), ("History", "/history"), ("Compare", "/compare"), ("Watches", "/watches"),
    ("Search", "/search"), ("Sources", "/sources"), ("Gate", "/gate"),
)  # fmt: skip
"""The pages that stand at the top, by what they are called."""
_TITLES = {
    403: "This is not allowed", 404: "There is nothing here", 405: "This cannot be done here",
    409: "This cannot be done now", 413: "This is too much at once", 422: "This cannot be used",
    429: "Too many requests for now", 503: "This is not available now",
}  # fmt: skip
"""What a status says to people."""
_WORDS = {
    404: "The address may be mistyped, or what was here has been deleted.",
    405: "The address answers to a form: go on from one of the pages.",
    413: "What comes from a page has up to 1 MB.",
}
"""The same in a sentence, where nobody has a better one."""
PRIVATE = "private, no-store"
"""Nobody but whoever asked keeps it."""
_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": PRIVATE,
}


@dataclass(frozen=True, slots=True)
class Visitor:
    """Whose pages these are."""

    tenant: Tenant
    csrf: str
    """Stands in every form; a page of somebody else cannot know it."""
    keyed: bool
    """API keys are needed here."""
    signed_in: bool


def page(
    request: Request,
    visitor: Visitor | None,
    template: str,
    status: int = 200,
    **values: object,
) -> Response:
    """A page in the layout; `visitor` is None on pages that everybody may see."""
    shown = rendered(
        template,
        visitor=visitor or {"signed_in": False, "keyed": True},
        sample=request.app.state.house.sample,
        here=request.url.path,
        menu=MENU,
        version=_version(),
        **values,
    )
    return HTMLResponse(shown, status, _HEADERS)


def page_for_browser(request: Request, status: int) -> Response | None:
    """An error that no screen has words for, where a person sees it; else None."""
    if not wants_page(request.headers.get("accept", "")):
        return None
    fault = f"The fault is ours. The log says why, under {trace_id_of(request.scope)}."
    return _error_page(request, status, _WORDS.get(status, fault))


def _error_page(request: Request, status: int, message: str) -> Response:
    title = _TITLES.get(status, "Something went wrong")
    return page(request, None, "error.html", status, title=title, message=message)


def server_of(request: Request) -> str:
    """This server's address as the browser that sent a form knows it.

    That is its origin, which has been checked: what speaks HTTPS may stand before this server.
    """
    return request.headers.get("origin") or str(request.base_url).rstrip("/")


@cache
def _version() -> str:
    return sha256(asset("page.css") + asset("page.js")).hexdigest()[:12]


class PageRoute(APIRoute):
    """A route whose errors are pages; who has not logged in is asked to.

    A script that reads events is answered as the API would.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler, with its errors shown."""
        handler = super().get_route_handler()

        async def shown(request: Request) -> Response:
            if wants_events(request.headers.get("accept", "")):
                return await handler(request)
            try:
                return await handler(request)
            except AccessDenied:
                url = request.url
                path = f"{url.path}?{url.query}".rstrip("?") if request.method == "GET" else "/"
                if request.headers.get("sec-fetch-site") == "cross-site":
                    # a link elsewhere led here, with which no `SameSite=Strict` cookie comes
                    return page(request, None, "again.html", title="Listenpost", path=path)
                return RedirectResponse(f"/login?next={quote(path)}", 303)
            except ListenpostError as error:
                if isinstance(error, StoreUnavailable):
                    _log.warning("request %s: %s", trace_id_of(request.scope), error)
                answer = _error_page(request, error.status, plainly(error.public))
                if isinstance(error, LimitReached) and error.retry_after is not None:
                    answer.headers["Retry-After"] = str(error.retry_after)
                return answer

        return shown
