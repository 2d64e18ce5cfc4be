"""Who looks at the pages: log in with an API key, or sit at this machine while there is none."""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated
from urllib.parse import parse_qsl

from fastapi import APIRouter, Depends, Request
from fastapi.responses import RedirectResponse, Response

from api.errors import AccessDenied, Forbidden, UsageError
from api.faces.web.access import Opened, authenticated
from api.faces.web.pages.screen import PageRoute, Visitor, page, server_of
from api.services.callers import Caller, admit
from api.services.keeping.keys import Tenant, digest
from api.wiring.serving import House

router = APIRouter(include_in_schema=False, route_class=PageRoute)
COOKIE = "listenpost_session"
LASTS = timedelta(hours=12)
"""After that whoever has logged in is asked for the key again."""


async def visitor(request: Request, house: Opened) -> Visitor:
    """Whoever may look, as a dependency; looking counts against the wide limit.

    Raises:
        AccessDenied: keys are needed, and there is no login.
        Forbidden: no key is configured, and this is not from this machine.
        LimitReached: too many looks in this minute.
    """
    guest = await _visitor(request, house)
    await house.limits.admit(guest.tenant, looks=True)
    return guest


async def _visitor(request: Request, house: House) -> Visitor:
    if not await house.keys.configured():
        tenant = await authenticated(house, request)
        return Visitor(tenant, request.app.state.csrf, keyed=False, signed_in=False)
    word = request.cookies.get(COOKIE, "")
    owner = await house.store.login(digest(word), datetime.now(UTC)) if word else None
    logged_in = None if owner is None else await house.keys.tenant(owner)
    if logged_in is None or logged_in.origin == "local":
        raise AccessDenied("this login has ended")
    admit(Caller("http", logged_in.id, ""))
    # made of what the cookie holds, so that every server knows it and no other page does
    return Visitor(logged_in, digest(f"csrf {word}"), keyed=True, signed_in=True)


Guest = Annotated[Visitor, Depends(visitor)]
"""Whoever looks at a page."""


@dataclass(frozen=True, slots=True)
class Submission:
    """A form that somebody has sent from a page of ours."""

    visitor: Visitor
    fields: dict[str, list[str]]

    def text(self, name: str, default: str = "") -> str:
        """The first value of a field."""
        return self.fields.get(name, [default])[0]


async def submission(request: Request, house: Opened) -> Submission:
    """`Filled`, as a dependency; it counts as a request.

    Raises:
        Forbidden: it comes from a page that is not ours.
        UsageError: it is no form.
        LimitReached: too many requests in this minute.
    """
    guest = await _visitor(request, house)
    await house.limits.admit(guest.tenant)
    return await _submitted(request, guest)


async def ending(request: Request, house: Opened) -> Submission:
    """`Ending`, as a dependency, which raises as `submission` does; it counts as a look."""
    return await _submitted(request, await visitor(request, house))


async def _submitted(request: Request, guest: Visitor) -> Submission:
    fields = await fields_of(request)
    given = fields.get("csrf", [""])[0]
    if not hmac.compare_digest(given.encode(), guest.csrf.encode()):
        raise Forbidden("this form is no longer valid: go back, load the page again, and repeat it")
    return Submission(guest, fields)


Filled = Annotated[Submission, Depends(submission)]
"""What a person does on a page."""
Ending = Annotated[Submission, Depends(ending)]
"""The same where it only ends something, which whoever has used up their requests still may."""


async def fields_of(request: Request) -> dict[str, list[str]]:
    """The fields of a form, of a page of this server.

    Raises:
        Forbidden: it comes from a page of another.
        UsageError: it is no form.
    """
    origin = request.headers.get("origin")
    if origin is not None and origin.partition("://")[2] != request.headers.get("host"):
        raise Forbidden("forms are taken from pages of this server only")
    fields: dict[str, list[str]] = {}
    try:
        text = (await request.body()).decode()
        for name, value in parse_qsl(text, keep_blank_values=True, max_num_fields=100):
            fields.setdefault(name, []).append(value)
    except ValueError:
        raise UsageError("the body is no form") from None
    return fields


@router.get("/login")
async def login_page(request: Request, next: str = "/") -> Response:  # noqa: A002
    """Asks for a key; where none is needed there is nothing to log in to."""
    return _login(request, next)


@router.post("/login")
async def login(request: Request, house: Opened) -> Response:
    """Take a key for a cookie; the same page again when it is wrong.

    Attempts are counted for each address, as the requests of a key are.
    """
    peer = request.client.host if request.client else ""
    await house.limits.admit(Tenant(f"login:{peer}", "environment"))
    fields = await fields_of(request)
    key, target = (fields.get(name, [""])[0] for name in ("key", "next"))
    try:
        tenant = await house.keys.authenticate(key.strip())
    except AccessDenied:
        return _login(request, target, wrong="This key is not valid.")
    word = secrets.token_urlsafe(32)
    await house.store.keep_login(digest(word), tenant.id, datetime.now(UTC) + LASTS)
    answer = RedirectResponse(_path(target), 303)
    answer.set_cookie(
        COOKIE,
        word,
        max_age=int(LASTS.total_seconds()),
        httponly=True,
        samesite="strict",
        secure=server_of(request).startswith("https:"),
    )
    return answer


@router.post("/logout")
async def logout(request: Request, form: Ending, house: Opened) -> Response:
    """End the login."""
    await house.store.drop_login(digest(request.cookies.get(COOKIE, "")))
    answer = RedirectResponse("/login", 303)
    answer.delete_cookie(COOKIE, httponly=True, samesite="strict")
    return answer


def _login(request: Request, target: str, wrong: str = "") -> Response:
    return page(
        request, None, "login.html", 401 if wrong else 200,
        title="Log in", next=_path(target), wrong=wrong,
    )  # fmt: skip


def _path(target: str) -> str:
    """A path of ours to go on to, `/analyses/8c1f`; never another server, `//evil.example`."""
    plain = target.startswith("/") and not target.startswith(("//", "/\\")) and target.isprintable()
    return target if plain else "/"
