"""Addresses of servers, and names of their parts, as settings hold them."""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator

MOST_FORUMS = 10
"""Forums that are asked at most: each is searched by itself."""
MOST_SITES = 3
"""Sites of Stack Exchange that are asked at most: each takes one of 300 requests a day."""
# `https://hn.algolia.com`, `http://[::1]:8080/below/a/path`; a name or password in it, a query or
# a fragment would be sent, or shown, where nobody expects
_ROOT = re.compile(
    r"https?://(?:[^\s/?#@:\[\]\\]+|\[[\da-f:.]+\])(?::\d{1,5})?(?:/[^\s/?#@\\]+)*/*", re.I
)
# `superuser`, `meta.stackoverflow`
_SITE = re.compile(r"[a-z0-9]+(?:[.-][a-z0-9]+)*")
_NEEDED = "an http or https address of a server, without user, query and fragment"


def _root(text: str) -> str:
    if not is_root(text):
        raise ValueError(f"needs {_NEEDED}")
    return text


Root = Annotated[str, AfterValidator(_root)]
"""Where a server stands; paths are appended to it."""


def is_root(text: str) -> bool:
    """Whether paths can be appended to an address: http or https and a host, perhaps a port."""
    try:
        return bool(text.isprintable() and _ROOT.fullmatch(text) and (urlsplit(text).port or 1))
    except ValueError:  # no such port, or what is in brackets is no address
        return False


def forums_in(text: str | None) -> tuple[str, ...]:
    """The roots of the forums that a setting names, each once; a bare host is asked by https."""
    named = (forum.strip() for forum in (text or "").split(",") if forum.strip())
    roots = (forum if "://" in forum else f"https://{forum}" for forum in named)
    return tuple(dict.fromkeys(root.rstrip("/") for root in roots))


def _forums(text: str | None) -> str | None:
    roots = forums_in(text)
    places = {(urlsplit(root).hostname, urlsplit(root).path) for root in filter(is_root, roots)}
    if text is not None and not 0 < len(places) == len(roots) <= MOST_FORUMS:
        form = f"one to {MOST_FORUMS} forums, separated by commas, such as `forum.example.com`"
        raise ValueError(f"needs {form}; each is {_NEEDED}, and no host stands there twice")
    return text


Forums = Annotated[str | None, AfterValidator(_forums)]
"""Roots of forums."""


def sites_in(text: str) -> tuple[str, ...]:
    """The names of the sites in a setting, each once."""
    names = (name.strip().lower() for name in text.split(","))
    return tuple(dict.fromkeys(name for name in names if name))


def _sites(text: str) -> str:
    names = sites_in(text)
    if not (0 < len(names) <= MOST_SITES and all(map(_SITE.fullmatch, names))):
        raise ValueError(f"needs one to {MOST_SITES} names such as `superuser`")
    return text


Sites = Annotated[str, AfterValidator(_sites)]
"""Sites of Stack Exchange."""


def _header(text: str) -> str:
    if not (text.isascii() and text.isprintable()):
        raise ValueError("holds characters that no header can carry")
    return text


Header = Annotated[str, AfterValidator(_header)]
"""What is sent as the value of a header."""


# `ann@example.org`, `a.b+watch@mail.example.org`: no quotes, no comments, nothing that ends a
# command or a header, and nothing that means more in `mailto:` (`?`, `&`, `%`)
_LOCAL = r"[a-z0-9!#$'*+/=^_`{|}~-]+(?:\.[a-z0-9!#$'*+/=^_`{|}~-]+)*"
_DOMAIN = r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*"
_MAIL = re.compile(rf"\A{_LOCAL}@{_DOMAIN}\Z", re.I | re.A)
# Characters of an address, and of what stands before its `@` (RFC 5321).
_LONGEST_MAIL, _LONGEST_LOCAL = 254, 64


def is_mail_address(text: str) -> bool:
    """Whether mail can be sent there: one plain address in ASCII, without a name."""
    fits = len(text) <= _LONGEST_MAIL and text.find("@") <= _LONGEST_LOCAL
    return fits and _MAIL.fullmatch(text) is not None


def _mail(text: str) -> str:
    if not is_mail_address(text):
        raise ValueError("needs one address such as `listenpost@example.org`, without a name")
    return text


MailAddress = Annotated[str, AfterValidator(_mail)]
"""Of somebody who sends mail."""


def _server(text: str) -> str:
    try:
        ip_address(text)
    except ValueError:
        if not re.fullmatch(_DOMAIN, text, re.I | re.A):
            form = "such as `smtp.example.org`, without scheme and port"
            raise ValueError(f"needs the name of a server, {form}") from None
    return text


MailServer = Annotated[str, AfterValidator(_server)]
"""Name or address of a server that takes mail."""
