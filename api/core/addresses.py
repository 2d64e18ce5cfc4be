"""Addresses of servers: of this machine, of the internet or of neither; whether two are one server."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from urllib.parse import urlsplit

_PORTS = {"http": 80, "https": 443}


def is_this_machine(host: str) -> bool:
    """Whether a host name or address is this machine's own: `localhost`, 127.0.0.0/8, `::1`.

    In any case, with or without brackets and the root's dot; an IPv4 address may be written as IPv6
    (`::ffff:127.0.0.1`), as a server on both protocols sees it.
    """
    name = host.strip("[]").removesuffix(".").lower()
    if name == "localhost":
        return True
    try:
        address = ip_address(name)
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return (mapped or address).is_loopback


def points_here(url: str) -> bool:
    """Whether a server at this address is on this machine, so that no proxy is asked for it."""
    try:
        return is_this_machine(urlsplit(url).hostname or "")
    except ValueError:
        return False


def same_server(first: str, second: str) -> bool:
    """Whether two addresses have scheme, host and port in common, as a redirect must.

    Everything sent to a server (a key, a question, a prompt) would go along to another one.
    """
    try:
        left, right = urlsplit(first), urlsplit(second)
        return (left.scheme, left.hostname, left.port or _PORTS.get(left.scheme)) == (
            right.scheme, right.hostname, right.port or _PORTS.get(right.scheme),
        )  # fmt: skip
    except ValueError:
        return False


# Special-purpose addresses that no server of the internet has, by IANA's registries
# (https://www.iana.org/assignments/iana-ipv4-special-registry, iana-ipv6-special-registry). A table of our own, since
# `is_global` of the standard library differs between Python versions. Of IPv6 only 2000::/3 is assigned for use.
_SPECIAL_IPV4 = tuple(
    IPv4Network(block)
    for block in (
        "0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24"
        " 192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4"
    ).split()
)
_USABLE_IPV6 = IPv6Network("2000::/3")
_SPECIAL_IPV6 = tuple(IPv6Network(block) for block in ("2001::/23", "2001:db8::/32", "3fff::/20"))
# Networks whose addresses hold an IPv4 address, with the bit at which it ends: mapped, NAT64 (RFC 6052), 6to4.
_EMBEDDED_IPV4 = (
    (IPv6Network("::ffff:0:0/96"), 128),
    (IPv6Network("64:ff9b::/96"), 128),
    (IPv6Network("2002::/16"), 48),
)


def is_public(address: str) -> bool:
    """Whether an address is routed on the internet, not private, loopback or link-local.

    An IPv6 address that embeds an IPv4 one is judged by that.
    """
    parsed = ip_address(address.partition("%")[0])
    if isinstance(parsed, IPv6Address):
        for network, end in _EMBEDDED_IPV4:
            if parsed in network:
                parsed = IPv4Address((int(parsed) >> (128 - end)) & 0xFFFFFFFF)
                break
    if isinstance(parsed, IPv4Address):
        return not any(parsed in block for block in _SPECIAL_IPV4)
    return parsed in _USABLE_IPV6 and not any(parsed in block for block in _SPECIAL_IPV6)
