"""The requests session below PRAW: bodies with a limit, no redirects, connections with an end."""

from __future__ import annotations

from typing import Any

import requests
import urllib3

from api.errors import Broken, Unreachable
from api.services.wire import TOO_LARGE, UNPACKABLE, TooLarge, read_all
from api.sources.reddit import NAME
from api.sources.workers import watch


def _socket_of(line: Any) -> Any:
    """The socket itself; TLS to a server behind a proxy with TLS is an object around it."""
    return getattr(line, "socket", line)


class _WatchedPlain(urllib3.connection.HTTPConnection):
    """A connection that ends with the job for which it was made."""

    def connect(self) -> None:
        """Connect, and be watched."""
        super().connect()
        watch(_socket_of(self.sock))


class _WatchedSecure(urllib3.connection.HTTPSConnection):
    """The same with TLS."""

    def connect(self) -> None:
        """Connect, and be watched."""
        super().connect()
        watch(_socket_of(self.sock))


class _PlainPool(urllib3.HTTPConnectionPool):
    ConnectionCls = _WatchedPlain


class _SecurePool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _WatchedSecure


_POOLS = {"http": _PlainPool, "https": _SecurePool}


class _Adapter(requests.adapters.HTTPAdapter):
    """Makes such connections, through a proxy, too."""

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        """The manager of direct connections."""
        super().init_poolmanager(*args, **kwargs)
        self.poolmanager.pool_classes_by_scheme = _POOLS

    def proxy_manager_for(self, proxy: str, **kwargs: Any) -> Any:
        """The manager of a proxy's."""
        manager = super().proxy_manager_for(proxy, **kwargs)
        manager.pool_classes_by_scheme = _POOLS
        return manager


class CappedSession(requests.Session):
    """Leaves the reading of an answer to `body_of`, and follows no redirect."""

    def __init__(self) -> None:
        """With connections that end with their job."""
        super().__init__()
        for scheme in ("http://", "https://"):
            self.mount(scheme, _Adapter())

    def get_redirect_target(self, resp: requests.Response) -> str | None:
        """None, since the library would read a redirect's whole body."""
        return None

    def send(self, request: requests.PreparedRequest, **options: Any) -> requests.Response:
        """The answer without its body."""
        return super().send(request, **{**options, "stream": True})


def body_of(response: requests.Response) -> bytes:
    """The body of a session's answer.

    Raises:
        SourceError: it is too large, cannot be unpacked, or ends too early.
        OSError: the connection broke or fell silent.
    """
    try:
        return read_all(response.iter_content(65_536))
    except (TooLarge, requests.exceptions.ContentDecodingError) as error:
        response.close()
        what = TOO_LARGE if isinstance(error, TooLarge) else UNPACKABLE
        raise Broken(NAME, what) from None
    except requests.exceptions.ChunkedEncodingError:
        raise Unreachable(NAME, "the connection ended within an answer") from None
