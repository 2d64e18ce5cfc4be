"""Who is asking: a key's tenant, or whoever sits at this machine while there is no key."""

from __future__ import annotations

import re
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Depends, Header, Request
from fastapi.security import HTTPBearer
from starlette.requests import HTTPConnection

from api.errors import AccessDenied, Forbidden, UsageError
from api.services.callers import Caller, Door, admit
from api.services.keeping.keys import Tenant
from api.services.wire import is_this_machine, points_here
from api.wiring.serving import House

USER = "X-Listenpost-User"
"""The header in which a caller's program says which of its users asks, by a pseudonym."""
# visible ASCII: `u-4711`, `8f14e45fceea167a`; empty as if the header was not there
_PSEUDONYM = r"^[!-~]{0,128}$"
# scheme, host and port, and nothing else: `http://localhost:5173`, `http://[::1]`
_ORIGIN = re.compile(r"https?://(?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(?::([0-9]{1,5}))?")
_LAST_PORT = 65_535
_scheme = HTTPBearer(auto_error=False, description="An API key; none is needed without keys.")


def house_of(request: Request) -> House:
    """What the app was made for."""
    house: House = request.app.state.house
    return house


Opened = Annotated[House, Depends(house_of)]


async def authenticated(house: House, connection: HTTPConnection, door: Door = "http") -> Tenant:
    """The tenant of a request or WebSocket; nothing is counted.

    What the request begins is traced as theirs.

    Raises:
        AccessDenied: no key although one is needed, or one that is not valid.
        Forbidden: no key is configured, and this is not from this machine.
        UsageError: its `X-Listenpost-User` came twice, is too long, or no visible ASCII.
    """
    tenant = await _tenant_of(house, connection)
    users = connection.headers.getlist(USER)
    if len(users) > 1:
        raise UsageError(f"`{USER}` came {len(users)} times: send it once")
    user = "".join(users)
    if not re.match(_PSEUDONYM, user):
        raise UsageError(f"`{USER}` takes up to 128 visible ASCII characters without spaces")
    admit(Caller(door, "" if tenant.origin == "local" else tenant.id, user))
    return tenant


async def _tenant_of(house: House, connection: HTTPConnection) -> Tenant:
    header, key = connection.headers.get("authorization"), None
    if header is not None:
        scheme, _, token = header.partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            raise AccessDenied("send an API key: `Authorization: Bearer KEY`")
        key = token.strip().encode("latin-1").decode("utf-8", "replace")
    tenant = await house.keys.authenticate(key)
    if tenant.origin != "local":
        return tenant
    # another machine, or a page whose name was made to point here (DNS rebinding)
    peer = connection.client.host if connection.client else ""
    named = is_this_machine(host_of(connection.headers.get("host", "")))
    origin = connection.headers.get("origin")
    if not (is_this_machine(peer) and named and (origin is None or is_loopback_origin(origin))):
        raise Forbidden("without API keys only this machine may call, by `localhost` or 127.0.0.1")
    return tenant


async def admitted(house: House, connection: HTTPConnection, door: Door = "http") -> Tenant:
    """The tenant of a request that counts.

    Raises:
        AccessDenied: see `authenticated`.
        Forbidden: see `authenticated`.
        LimitReached: too many requests in this minute.
        UsageError: see `authenticated`.
    """
    tenant = await authenticated(house, connection, door)
    await house.limits.admit(tenant)
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
    """For the OpenAPI document alone: `authenticated` reads both, also where there is none."""


_Shown = Annotated[None, Depends(identified)]


async def looker(request: Request, house: Opened, shown: _Shown) -> Tenant:
    """`Looker`, as a dependency."""
    tenant = await authenticated(house, request)
    await house.limits.admit(tenant, looks=True)
    return tenant


async def reader(request: Request, house: Opened, shown: _Shown) -> Tenant:
    """`Reader`, as a dependency."""
    return await authenticated(house, request)


async def asker(request: Request, house: Opened, shown: _Shown) -> Tenant:
    """`Asker`, as a dependency."""
    return await admitted(house, request)


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
    """The host without user and port; empty when there is none that can be read."""
    try:
        return urlsplit(f"//{netloc}").hostname or ""
    except ValueError:
        return ""
