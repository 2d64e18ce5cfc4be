"""Which pages of other origins may call from a browser: CORS, on every route and every error."""

from __future__ import annotations

from collections.abc import Collection

from fastapi import FastAPI
from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from api.faces.web.access import is_loopback_origin
from api.services.keeping.keys import Keys
from api.wiring.serving import House

EXPOSED = (
    "Allow", "Content-Disposition", "ETag", "Link", "Location", "Mcp-Session-Id",
    "Preference-Applied", "Retry-After", "WWW-Authenticate", "X-Vercel-AI-UI-Message-Stream",
)  # fmt: skip
"""Headers of answers that a page may read."""


def install(app: FastAPI, house: House) -> None:
    """Let the pages in that may call; to be added last, so that it stands before everything."""
    setting = house.settings.general.cors_origins
    named = [origin.strip() for origin in setting.split(",")] if setting else []
    app.add_middleware(Origins, keys=house.keys, named=named)


class Origins(CORSMiddleware):
    """The origins that a setting names and, while no key is needed, every page of this machine.

    This only lets pages read answers; who may call at all is decided in `access.py`.
    """

    def __init__(self, app: ASGIApp, keys: Keys, named: Collection[str]) -> None:
        """No cookies are in use, so none are allowed."""
        super().__init__(
            app,
            allow_origins=named,
            allow_methods="*",  # what a route lacks is its own 405, which the page may read
            allow_headers="*",
            allow_private_network=True,  # of a page elsewhere that is named, to a server within
            expose_headers=EXPOSED,
        )
        self._keys = keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a preflight, unless its origin is a stranger: to the app that is any `OPTIONS`."""
        if scope["type"] == "http" and scope["method"] == "OPTIONS":
            origin = Headers(scope=scope).get("origin")
            if origin is not None and not self.is_allowed_origin(origin):
                await self.app(scope, receive, send)
                return
        await super().__call__(scope, receive, send)

    def is_allowed_origin(self, origin: str) -> bool:
        """Whether pages of this origin may read what is answered."""
        local = not self._keys.needed and is_loopback_origin(origin)
        return local or super().is_allowed_origin(origin)
