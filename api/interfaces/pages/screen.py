"""The layout of every page, its error page, and who may see it: by log-in, or on this machine while there is no key."""

from __future__ import annotations

import hmac
import logging
import re
import secrets
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from hashlib import sha256
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Annotated, Any
from urllib.parse import parse_qsl, quote

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from fastapi.routing import APIRoute

from api.bootstrap.app_context import AppContext
from api.core.context import Caller, set_caller
from api.errors import AccessDenied, Forbidden, LimitReached, ListenpostError, StoreUnavailable, UsageError
from api.features.analyses.api_keys import Tenant, digest
from api.features.analyses.inbox import MOST_COUNTED, UNREAD
from api.features.analyses.store_ports import Store
from api.interfaces.http.access import OpenContext, authenticated
from api.interfaces.http.errors_json import trace_id_of
from api.interfaces.http.event_stream import wants_events, wants_page
from api.interfaces.pages.templates_rendering import asset, plainly, rendered
from api.settings.value_types import networks_in

_log = logging.getLogger(__name__)
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""Content security policy of the pages: what this server itself has, and nothing inline."""
MENU = (
    ("Ask", "/"), ("Inbox", "/inbox"), ("History", "/history"), ("Compare", "/compare"), ("Watches", "/watches"),
    ("Search", "/search"), ("Sources", "/sources"), ("Relevance", "/gate"),
)  # fmt: skip
"""The pages that stand at the top, by what they are called."""
# What a status says to people.
_TITLES = {
    403: "This is not allowed", 404: "There is nothing here", 405: "This cannot be done here",
    409: "This cannot be done now", 413: "This is too much at once", 422: "This cannot be used",
    429: "Too many requests for now", 503: "This is not available now",
}  # fmt: skip
# The same in a sentence, where nobody has a better one.
_WORDS = {
    404: "The address may be mistyped, or what was here has been deleted.",
    405: "The address answers to a form: go on from one of the pages.",
    413: "What comes from a page has up to 1 MB.",
}
PRIVATE = "private, no-store"
"""`Cache-Control` of pages for one visitor: no cache stores them."""
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
    """The tenant of a browser, and how its forms are protected."""

    tenant: Tenant
    csrf: str
    """Stands in every form; a page of somebody else cannot know it."""
    keyed: bool
    """API keys are needed here."""
    signed_in: bool
    unread: str
    """Number of unread entries of the inbox; empty when there are none or they cannot be counted."""


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
        root_of(request),
        visitor=visitor or {"signed_in": False, "keyed": True},
        sample=request.app.state.app_context.sample,
        here=request.url.path,
        section=section_of(request.url.path),
        menu=MENU,
        version=_version(),
        **values,
    )
    return HTMLResponse(shown, status, _HEADERS)


def section_of(path: str) -> str:
    """The page of the menu to which a path belongs; a report belongs to the history. Empty for none."""
    if path == "/analyses" or path.startswith("/analyses/"):
        return "/history"
    parts = path.split("/")
    return next((known for _, known in MENU if known == f"/{parts[1]}"), "") if len(parts) > 1 else ""


def page_for_browser(request: Request, status: int) -> Response | None:
    """Page for an error that no screen handles, when the client is a browser; otherwise None."""
    if not wants_page(request.headers.get("accept", "")):
        return None
    fault = f"The fault is ours. The log says why, under {trace_id_of(request.scope)}."
    return _error_page(request, status, _WORDS.get(status, fault))


def _error_page(request: Request, status: int, message: str) -> Response:
    title = _TITLES.get(status, "Something went wrong")
    return page(request, None, "error.html", status, title=title, message=message)


def root_of(request: Request) -> str:
    """Path that precedes every path of this server, from its settings; empty for none."""
    return request.app.state.app_context.settings.general.root_path or ""


def server_of(request: Request) -> str:
    """This server's address as the browser that sent a form knows it, to which paths are appended.

    That is its origin, which has been checked: what speaks HTTPS may stand before this server.
    """
    return (request.headers.get("origin") or str(request.base_url).rstrip("/")) + root_of(request)


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


router = APIRouter(include_in_schema=False, route_class=PageRoute)
COOKIE = "listenpost_session"
LASTS = timedelta(hours=12)
"""Lifetime of a login, after which the key is asked for again."""


async def visitor(request: Request, app_context: OpenContext) -> Visitor:
    """Dependency: the visitor of a page; each request counts against the limit of reads.

    Raises:
        AccessDenied: keys are needed, and there is no login.
        Forbidden: no key is configured, and this is not from this machine.
        LimitReached: too many looks in this minute.
    """
    guest = await _visitor(request, app_context)
    await app_context.limits.admit(guest.tenant, looks=True)
    return guest


async def _visitor(request: Request, app_context: AppContext) -> Visitor:
    if not await app_context.keys.configured():
        tenant = await authenticated(app_context, request)
        unread = await _unread_for_menu(request, app_context.store, tenant.id)
        return Visitor(tenant, request.app.state.csrf, keyed=False, signed_in=False, unread=unread)
    word = request.cookies.get(COOKIE, "")
    owner = await app_context.store.login(digest(word), datetime.now(UTC)) if word else None
    logged_in = None if owner is None else await app_context.keys.tenant(owner)
    if logged_in is None or logged_in.origin == "local":
        raise AccessDenied("this login has ended")
    set_caller(Caller("http", logged_in.id, ""))
    # made of what the cookie holds, so that every server knows it and no other page does
    unread = await _unread_for_menu(request, app_context.store, logged_in.id)
    return Visitor(logged_in, digest(f"csrf {word}"), keyed=True, signed_in=True, unread=unread)


async def _unread_for_menu(request: Request, store: Store, tenant: str) -> str:
    """Number of unread entries of the inbox, at most `1000+`; empty when there are none or counting failed."""
    try:
        count = await store.inbox_count(tenant, UNREAD, MOST_COUNTED)
    except StoreUnavailable as error:  # a page is worth more than that number
        _log.warning("request %s: the menu has no count of the inbox: %s", trace_id_of(request.scope), error)
        return ""
    return f"{count}{'+' if count == MOST_COUNTED else ''}" if count else ""


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


async def submission(request: Request, app_context: OpenContext) -> Submission:
    """Dependency for `Filled`; it counts as a request.

    Raises:
        Forbidden: it comes from a page that is not ours.
        UsageError: it is no form.
        LimitReached: too many requests in this minute.
    """
    guest = await _visitor(request, app_context)
    await app_context.limits.admit(guest.tenant)
    return await _submitted(request, guest)


async def ending(request: Request, app_context: OpenContext) -> Submission:
    """Dependency for `Ending`, which raises as `submission` does; it counts as a read."""
    return await _submitted(request, await visitor(request, app_context))


async def _submitted(request: Request, guest: Visitor) -> Submission:
    fields = await fields_of(request)
    given = fields.get("csrf", [""])[0]
    if not hmac.compare_digest(given.encode(), guest.csrf.encode()):
        raise Forbidden("this form is no longer valid: go back, load the page again, and repeat it")
    return Submission(guest, fields)


Filled = Annotated[Submission, Depends(submission)]
"""What a person does on a page."""
Ending = Annotated[Submission, Depends(ending)]
"""The same for actions that only end something or ask no source; allowed after the requests are used up."""


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
    """The page that asks for a key."""
    return _login(request, next)


@router.post("/login")
async def login(request: Request, app_context: OpenContext) -> Response:
    """Exchange a key for a cookie; shows the same page again when the key is wrong.

    Attempts are counted for each address, as the requests of a key are.
    """
    address = caller_address(request, networks_in(app_context.settings.general.trusted_proxies))
    await app_context.limits.admit(Tenant(f"login:{address}", "environment"))
    fields = await fields_of(request)
    key, target = (fields.get(name, [""])[0] for name in ("key", "next"))
    try:
        tenant = await app_context.keys.authenticate(key.strip())
    except AccessDenied:
        return _login(request, target, wrong="This key is not valid.")
    word = secrets.token_urlsafe(32)
    await app_context.store.keep_login(digest(word), tenant.id, datetime.now(UTC) + LASTS)
    answer = RedirectResponse(_path(target), 303)
    answer.set_cookie(
        COOKIE,
        word,
        max_age=int(LASTS.total_seconds()),
        path=root_of(request) or "/",
        httponly=True,
        samesite="strict",
        secure=server_of(request).startswith("https:"),
    )
    return answer


def caller_address(request: Request, trusted: Sequence[IPv4Network | IPv6Network]) -> str:
    """Address of a client; for IPv6 its network of 64 bits, which one person may own.

    Only what `trusted` proxies wrote of it is believed: the last entry of `X-Forwarded-For` that is none of theirs.
    """
    address = request.client.host if request.client else ""
    hops = [hop.strip() for line in request.headers.getlist("x-forwarded-for") for hop in line.split(",")]
    try:
        parsed = _address(address)
        while hops and any(parsed in network for network in trusted):
            parsed = _address(hops.pop())
    except ValueError:  # no address: what stood before it may be anybody's words
        return address
    return str(parsed if parsed.version == 4 else ip_network(f"{parsed}/64", strict=False))


# an address with a port, as some proxies write it: `192.0.2.1:5678`, `[2001:db8::1]:5678`
_WITH_PORT = re.compile(r"\[(?P<six>[^\]]{0,60})\](?::\d+)?|(?P<four>[\d.]{1,15}):\d+")


def _address(text: str) -> IPv4Address | IPv6Address:
    """The address in a text, of IPv4 inside IPv6 the former; raises `ValueError` for what is none."""
    match = _WITH_PORT.fullmatch(text)
    parsed = ip_address((match["six"] or match["four"]) if match else text)
    return parsed if parsed.version == 4 else parsed.ipv4_mapped or parsed


@router.post("/logout")
async def logout(request: Request, form: Ending, app_context: OpenContext) -> Response:
    """End the login of this browser."""
    await app_context.store.drop_login(digest(request.cookies.get(COOKIE, "")))
    answer = RedirectResponse("/login", 303)
    answer.delete_cookie(COOKIE, root_of(request) or "/", httponly=True, samesite="strict")
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
