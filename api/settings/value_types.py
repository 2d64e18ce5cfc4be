"""Types of settings' values, checked when they are read: addresses, names, shares, seconds."""

from __future__ import annotations

import re
from collections.abc import Callable
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field
from pydantic_settings import SettingsConfigDict

MAX_FORUMS = 10
"""Most Discourse forums, since each is searched by itself."""
MAX_SITES = 3
"""Most sites of Stack Exchange, since each takes one of 300 requests a day."""
# `https://hn.algolia.com`, `http://[::1]:8080/below/a/path`; a name or password in it, a query or
# a fragment would be sent, or shown, where nobody expects
_ROOT = re.compile(r"https?://(?:[^\s/?#@:\[\]\\]+|\[[\da-f:.]+\])(?::\d{1,5})?(?:/[^\s/?#@\\]+)*/*", re.I)
# `superuser`, `meta.stackoverflow`
_SITE = re.compile(r"[a-z0-9]+(?:[.-][a-z0-9]+)*")
# `/listenpost`, `/tools/listenpost`; the path alone is the server's own root
_ROOT_PATH = re.compile(r"(?:/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*/?")
_ROOT_FORM = "an http or https address of a server, without user, query and fragment"
# what a browser sends: `https://app.example`, `http://localhost:5173`
_ORIGIN = re.compile(r"https?://(?:(?:[a-z0-9_-]+\.)*[a-z0-9_-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?")
# `ann@example.org`, `a.b+watch@mail.example.org`: no quotes, no comments, nothing that ends a
# command or a header, and nothing that means more in `mailto:` (`?`, `&`, `%`)
_LOCAL = r"[a-z0-9!#$'*+/=^_`{|}~-]+(?:\.[a-z0-9!#$'*+/=^_`{|}~-]+)*"
_DOMAIN = r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*"
_MAIL = re.compile(rf"\A{_LOCAL}@{_DOMAIN}\Z", re.I | re.A)
# characters of an address, and of the part before its `@` (RFC 5321)
_MAX_MAIL, _MAX_LOCAL = 254, 64


def is_root(text: str) -> bool:
    """Whether paths can be appended to an address: http or https and a host, perhaps a port."""
    try:
        return bool(text.isprintable() and _ROOT.fullmatch(text) and (urlsplit(text).port or 1))
    except ValueError:  # a port above 65535, or brackets without an address
        return False


def forums_in(text: str | None) -> tuple[str, ...]:
    """The roots of the forums that a setting names, each once; a bare host is asked by https."""
    forums = (forum.strip() for forum in (text or "").split(",") if forum.strip())
    roots = (forum if "://" in forum else f"https://{forum}" for forum in forums)
    return tuple(dict.fromkeys(root.rstrip("/") for root in roots))


MAX_FEEDS = 50
"""Most feeds of the settings, since each is asked by itself."""
MAX_FEED_ADDRESS = 1_000
"""Longest address of a feed, in characters."""
# `https://forum.example/latest.rss`, `https://news.example/rss/search?q=mug+when:7d`
_FEED = re.compile(rf"{_ROOT.pattern}(?:\?[^\s#\\<>\"]*)?", re.I)


def feed_address(text: str) -> str:
    """A feed's address as stored: with its scheme, without a fragment; empty when it is not an address."""
    address = text.strip().partition("#")[0]
    address = address if "://" in address else f"https://{address}"
    scheme, _, rest = address.partition("://")
    host, slash, path = rest.partition("/")
    address = f"{scheme.lower()}://{host.lower()}{slash}{path}"
    try:
        valid = address.isprintable() and _FEED.fullmatch(address) and (urlsplit(address).port or 1)
    except ValueError:
        return ""
    return address if valid and len(address) <= MAX_FEED_ADDRESS else ""


def feeds_in(text: str | None) -> tuple[str, ...]:
    """The addresses of the feeds that a setting names, each once."""
    return tuple(dict.fromkeys(feed_address(part) for part in (text or "").split(",") if part.strip()))


def _are_feeds(text: str | None) -> bool:
    addresses = feeds_in(text)
    return text is None or (0 < len(addresses) <= MAX_FEEDS and all(addresses))


# `gpt-oss-120b=0.1/0.4`, `*=0/0`: a model's name, USD per million tokens in and out
_MODEL_PRICE = re.compile(r"([^\s=,]{1,200})=(\d{1,6}(?:\.\d{1,6})?)/(\d{1,6}(?:\.\d{1,6})?)")


def model_prices_in(text: str | None) -> dict[str, tuple[float, float]]:
    """USD per million tokens in and out by the name of a model, as a setting states them."""
    stated = (_MODEL_PRICE.fullmatch(part.strip()) for part in (text or "").split(",") if part.strip())
    return {match[1]: (float(match[2]), float(match[3])) for match in stated if match is not None}


def _are_model_prices(text: str) -> bool:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    return bool(parts) and all(map(_MODEL_PRICE.fullmatch, parts))


def names_in(text: str) -> tuple[str, ...]:
    """The comma-separated names in a setting, in small letters, each once."""
    names = (name.strip().lower() for name in text.split(","))
    return tuple(dict.fromkeys(name for name in names if name))


def is_mail_address(text: str) -> bool:
    """Whether mail can be sent there: one plain address in ASCII, without a name."""
    fits = len(text) <= _MAX_MAIL and text.find("@") <= _MAX_LOCAL
    return fits and _MAIL.fullmatch(text) is not None


def _are_forums(text: str | None) -> bool:
    roots = forums_in(text)
    # items are named by host and path, so two forums with the same would be taken for one
    places = {(urlsplit(root).hostname, urlsplit(root).path) for root in filter(is_root, roots)}
    return text is None or 0 < len(places) == len(roots) <= MAX_FORUMS


def _are_servers(text: str) -> bool:
    roots = forums_in(text)
    return 0 < len(roots) <= MAX_FORUMS and all(map(is_root, roots))


def _are_sites(text: str) -> bool:
    names = names_in(text)
    return 0 < len(names) <= MAX_SITES and all(map(_SITE.fullmatch, names))


def _are_mail_targets(text: str) -> bool:
    return all(name == "*" or is_mail_address(f"a{name}" if name[0] == "@" else name) for name in names_in(text))


def networks_in(text: str | None) -> tuple[IPv4Network | IPv6Network, ...]:
    """The addresses and networks that a setting names; raises `ValueError` for what is neither."""
    return tuple(map(ip_network, names_in(text or "")))


def _are_networks(text: str) -> bool:
    try:
        return bool(networks_in(text))
    except ValueError:
        return False


def _is_server(text: str) -> bool:
    try:
        return bool(re.fullmatch(_DOMAIN, text, re.I | re.A) or ip_address(text))
    except ValueError:
        return False


def _checked(is_valid: Callable[..., bool], message: str) -> AfterValidator:
    """Refuse a value that is not valid with the message."""

    def check(text: str | None) -> str | None:
        if not is_valid(text):
            raise ValueError(message)
        return text

    return AfterValidator(check)


Root = Annotated[str, _checked(is_root, f"needs {_ROOT_FORM}")]
"""Address of a server, to which paths are appended."""
RootPath = Annotated[
    str,
    _checked(_ROOT_PATH.fullmatch, "needs a path such as `/listenpost`, of letters, digits and `-._~`"),
    AfterValidator(lambda path: path.rstrip("/")),
]
"""Path that precedes every path of this server; empty for none."""
Forums = Annotated[str | None, _checked(
    _are_forums,
    f"needs one to {MAX_FORUMS} forums, separated by commas, such as `forum.example.com`; "
    f"each is {_ROOT_FORM}, and no host stands there twice",
)]  # fmt: skip
Feeds = Annotated[str | None, _checked(
    _are_feeds,
    f"needs one to {MAX_FEEDS} addresses of feeds, separated by commas, such as `https://forum.example/latest.rss`, "
    "without user and fragment",
)]  # fmt: skip
Servers = Annotated[str, _checked(
    _are_servers, f"needs one to {MAX_FORUMS} addresses, separated by commas; each is {_ROOT_FORM}"
)]  # fmt: skip
Sites = Annotated[str, _checked(_are_sites, f"needs one to {MAX_SITES} names such as `superuser`")]
Header = Annotated[str, _checked(
    lambda text: text.isascii() and text.isprintable(), "holds characters that no header can carry"
)]  # fmt: skip
Origins = Annotated[str, _checked(
    lambda text: all(_ORIGIN.fullmatch(origin.strip()) for origin in text.split(",")),
    "needs origins such as `https://app.example`, in small letters, without path or `*`",
)]  # fmt: skip
MailAddress = Annotated[str, _checked(
    is_mail_address, "needs one address such as `listenpost@example.org`, without a name"
)]  # fmt: skip
MailTargets = Annotated[str, _checked(
    _are_mail_targets, "needs addresses or domains such as `ann@example.org, @example.com`, or `*` for all"
)]  # fmt: skip
Networks = Annotated[str, _checked(
    _are_networks, "needs addresses or networks such as `10.0.0.7, 172.16.0.0/12, ::1`"
)]  # fmt: skip
MailServer = Annotated[str, _checked(
    _is_server, "needs the name of a server, such as `smtp.example.org`, without scheme and port"
)]  # fmt: skip
ModelPrices = Annotated[str, _checked(
    _are_model_prices,
    "needs prices such as `some-model=0.15/0.6, *=0/0`: USD per million tokens in and out, `*` for all other models",
)]  # fmt: skip
Share = Annotated[float, Field(ge=0, le=1)]
Seconds = Annotated[float, Field(gt=0, le=3600)]
Count = Annotated[int, Field(ge=1, le=10_000)]


def group_config(prefix: str, unprefixed: str = "", **variables: str) -> SettingsConfigDict:
    """A frozen group, read from the environment and `.env`.

    A variable is `prefix` and the name of the field; for `unprefixed` fields (separated by blanks)
    the name alone; `variables` are exceptions.
    """
    variables |= {field: field.upper() for field in unprefixed.split()}
    return SettingsConfigDict(
        env_prefix=prefix,  # else a variable that is called as the field, such as `HOST`, is read
        env_file=".env",
        env_file_encoding="utf-8",
        env_ignore_empty=True,
        extra="ignore",
        frozen=True,
        populate_by_name=True,
        alias_generator=lambda field: variables.get(field, f"{prefix}{field.upper()}"),
    )
