"""Which upstreams are this machine itself, so that no proxy is asked for them."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit


def is_loopback(root: str) -> bool:
    """Whether a server at this address can only be reached from here."""
    try:
        host = urlsplit(root).hostname or ""
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
