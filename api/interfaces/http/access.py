"""Access over HTTP: a key's tenant, or this machine's while there is no key; and which origins may call (CORS)."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

from fastapi import Depends, FastAPI, Header, Request
from fastapi.security import HTTPBearer
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.bootstrap.app_context import AppContext
from api.core.addresses import is_this_machine, points_here
from api.core.context import Caller, InterfaceName, set_caller
from api.errors import AccessDenied, Forbidden, UsageError
from api.features.analyses.api_keys import Keys, Tenant

if TYPE_CHECKING:
    from api.interfaces.http.prometheus_metrics import Metrics


USER = "X-Listenpost-User"
"""The header in which a caller's program says which of its users asks, by a pseudonym."""
# visible ASCII: `u-4711`, `8f14e45fceea167a`; empty as if the header was not there
_PSEUDONYM = r"^[!-~]{0,128}$"
# scheme, host and port, and nothing else: `http://localhost:5173`, `http://[::1]`
_ORIGIN = re.compile(r"https?://(?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(?::([0-9]{1,5}))?")
_LAST_PORT = 65_535
PROXY_HEADERS = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip")
"""Headers of which each says that a proxy passed a request on."""
_scheme = HTTPBearer(auto_error=False, description="An API key; none is needed without keys.")


async def app_context_of(request: Request) -> AppContext:  # not `def`: FastAPI would hand each call to a thread
    """The app context of the app that serves this connection."""
    app_context: AppContext = request.app.state.app_context
    return app_context


OpenContext = Annotated[AppContext, Depends(app_context_of)]


async def authenticated(
    app_context: AppContext, connection: HTTPConnection, interface: InterfaceName = "http"
) -> Tenant:
    """The tenant of a request or WebSocket; nothing is counted.

    What the request begins is traced as theirs.

    Raises:
        AccessDenied: no key although one is needed, or one that is not valid.
        Forbidden: no key is configured, and this is not from this machine.
        UsageError: its `X-Listenpost-User` came twice, is too long, or no visible ASCII.
    """
    tenant = await _tenant_of(app_context, connection)
    users = connection.headers.getlist(USER)
    if len(users) > 1:
        raise UsageError(f"`{USER}` came {len(users)} times: send it once")
    user = "".join(users)
    if not re.match(_PSEUDONYM, user):
        raise UsageError(f"`{USER}` takes up to 128 visible ASCII characters without spaces")
    set_caller(Caller(interface, "" if tenant.origin == "local" else tenant.id, user))
    return tenant


async def _tenant_of(app_context: AppContext, connection: HTTPConnection) -> Tenant:
    header, key = connection.headers.get("authorization"), None
    if header is not None:
        scheme, _, token = header.partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            raise AccessDenied("send an API key: `Authorization: Bearer KEY`")
        key = token.strip().encode("latin-1").decode("utf-8", "replace")
    tenant = await app_context.keys.authenticate(key)
    if tenant.origin != "local":
        return tenant
    # refused: another machine, a page whose name was made to point here (DNS rebinding), what a proxy passes on
    peer = connection.client.host if connection.client else ""
    named = is_this_machine(host_of(connection.headers.get("host", "")))
    origin = connection.headers.get("origin")
    forwarded = any(name in connection.headers for name in PROXY_HEADERS)
    if forwarded or not (is_this_machine(peer) and named and (origin is None or is_loopback_origin(origin))):
        raise Forbidden("without API keys only this machine may call, by `localhost` or 127.0.0.1, and no proxy")
    return tenant


async def admitted(app_context: AppContext, connection: HTTPConnection, interface: InterfaceName = "http") -> Tenant:
    """The tenant of a request that counts.

    Raises:
        AccessDenied: see `authenticated`.
        Forbidden: see `authenticated`.
        LimitReached: too many requests in this minute.
        UsageError: see `authenticated`.
    """
    tenant = await authenticated(app_context, connection, interface)
    await app_context.limits.admit(tenant)
    return tenant


async def identified(
    key: Annotated[object, Depends(_scheme)],
    user: Annotated[
        str | None,
        Header(
            alias=USER,
            description="A pseudonym of your user: traces are filed under it.",
            json_schema_extra={"pattern": _PSEUDONYM},
        ),
    ] = None,
) -> None:
    """Describe key and user in the OpenAPI document; `authenticated` reads both."""


_Shown = Annotated[None, Depends(identified)]


async def looker(request: Request, app_context: OpenContext, shown: _Shown) -> Tenant:
    """`Looker`, as a dependency."""
    tenant = await authenticated(app_context, request)
    await app_context.limits.admit(tenant, looks=True)
    return tenant


async def reader(request: Request, app_context: OpenContext, shown: _Shown) -> Tenant:
    """`Reader`, as a dependency."""
    return await authenticated(app_context, request)


async def asker(request: Request, app_context: OpenContext, shown: _Shown) -> Tenant:
    """`Asker`, as a dependency."""
    return await admitted(app_context, request)


Reader = Annotated[Tenant, Depends(reader)]
"""A caller whose request is not counted."""
Looker = Annotated[Tenant, Depends(looker)]
"""A caller who looks at what was begun, or waits for it: with a wider limit of its own."""
Asker = Annotated[Tenant, Depends(asker)]
"""A caller whose request counts against its limit."""


def is_loopback_origin(origin: str) -> bool:
    """Whether pages of this origin come from a web server of this machine; `null` never does."""
    form = _ORIGIN.fullmatch(origin)
    return form is not None and int(form[1] or 0) <= _LAST_PORT and points_here(origin)


def host_of(netloc: str) -> str:
    """The host without user and port; empty when none can be read."""
    try:
        return urlsplit(f"//{netloc}").hostname or ""
    except ValueError:
        return ""


NOTICE = "Listenpost-Notice"
EXPOSED = (
    "Allow", "Content-Disposition", "ETag", "Link", "Location", "Mcp-Session-Id",
    NOTICE, "Preference-Applied", "Retry-After", "WWW-Authenticate", "X-Vercel-AI-UI-Message-Stream",
)  # fmt: skip
"""Headers of answers that a page may read."""


def install(app: FastAPI, app_context: AppContext) -> None:
    """Add the middleware that admits origins; added last, so that it runs before everything else."""
    setting = app_context.settings.general.cors_origins
    named = [origin.strip() for origin in setting.split(",")] if setting else []
    app.add_middleware(KeyNotice, keys=app_context.keys)
    app.add_middleware(Origins, keys=app_context.keys, named=named)


class KeyNotice:
    """Adds a header when a key is sent to a server without keys."""

    def __init__(self, app: ASGIApp, keys: Keys) -> None:
        self.app, self._keys = app, keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on; an `Authorization` header without keys here adds `Listenpost-Notice` to the answer."""
        sends_key = scope["type"] == "http" and any(name == b"authorization" for name, _ in scope["headers"])

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)[NOTICE] = "this server has no API keys: send none"
            await send(message)

        await self.app(scope, receive, sending if sends_key and not self._keys.needed else send)


class Origins(CORSMiddleware):
    """The origins that a setting names and, while no key is needed, every page of this machine.

    This only lets pages read answers; who may call at all is decided in `access.py`.
    """

    def __init__(self, app: ASGIApp, keys: Keys, named: Collection[str]) -> None:
        """Allow named origins, without cookies, since none are used."""
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


def metrics_of(app: FastAPI) -> Metrics:
    """The app's own counters; their library is loaded when they are first needed."""
    from api.interfaces.http.prometheus_metrics import Metrics

    made: Metrics | None = getattr(app.state, "metrics", None)
    if made is None:
        made = app.state.metrics = Metrics(app.state.app_context.sample)
    return made
