"""Webhooks: signed JSON, or Slack's; never to an address within our own network.

Why a message did not arrive.

Whose certificates are trusted, by webhooks and by e-mail.

A file that grows by a line a run.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from pathlib import Path
from ssl import SSLContext, SSLError

import httpx

from api.core.http_limits import tls_context
from api.features.watches.notification import Message, signature
from api.features.watches.watch import Target, Watch
from api.features.watches.watch_run import Failure


class Undelivered(Exception):
    """A message did not arrive: `failure` for programs, the words, with what helps, for people."""

    def __init__(self, failure: Failure, reason: str, *, again: bool = False) -> None:
        """`again`: another try may succeed."""
        super().__init__(reason)
        self.failure, self.reason, self.again = failure, reason, again


def client_tls(load: Callable[..., SSLContext] = httpx.create_ssl_context) -> SSLContext:
    """TLS context with the certificates of `SSL_CERT_FILE` or `SSL_CERT_DIR`, else certifi's.

    Raises:
        Undelivered: the file cannot be read as certificates.
    """
    try:
        return tls_context(load)
    except OSError as error:
        words = "no certificates can be read; correct or unset `SSL_CERT_FILE`"
        raise Undelivered("not_configured", words) from error


def mail_tls() -> SSLContext:
    """TLS context for SMTP, apart from that for HTTPS; raises `Undelivered`."""
    return client_tls(_load_for_mail)


def _load_for_mail(trust_env: bool) -> SSLContext:
    # A context of its own: httpcore writes `http/1.1` as ALPN protocol into the one it uses, and a
    # mail server that reads ALPN refuses such a connection (RFC 7301, section 3.2).
    return httpx.create_ssl_context(trust_env=trust_env)


SECONDS = 10.0
"""For one try, from the look-up of the name to the status of the answer."""
# Statuses below 500 after which another try may succeed.
_TRANSIENT = frozenset({408, 425, 429})
_HERE = "its address is within this network; `LISTENPOST_NOTIFY_PRIVATE=true` allows that"


@dataclass(frozen=True, slots=True)
class Webhooks:
    """Posts messages, each over a connection of its own."""

    private: bool = False
    """Addresses within our own network may be told, too."""
    seconds: float = SECONDS

    async def post(self, watch: Watch, target: Target, message: Message, number: int) -> None:
        """Try once; `number`, from 0, chooses among the addresses that a name has.

        A receiver gets the run's id in the body and in `Listenpost-Run`: the same, sent again, is
        the same run.

        Raises:
            Undelivered: it did not arrive.
        """
        body = message.slack if target.kind == "slack" else message.body
        headers = {"Content-Type": "application/json", "User-Agent": "listenpost"}
        if target.kind == "webhook":
            signed = signature(watch.secret, int(time.time()), body)
            headers |= {"Listenpost-Run": message.run_id, "Listenpost-Signature": signed}
        try:
            async with asyncio.timeout(self.seconds):
                status = await self._status(httpx.URL(target.address), headers, body, number)
        except (TimeoutError, httpx.TimeoutException) as error:
            words = f"no answer in {self.seconds:g} s"
            raise Undelivered("timed_out", words, again=True) from error
        except (OSError, httpx.HTTPError) as error:
            if _is_tls(error):
                words = "it has no trusted certificate for its name, or speaks no TLS"
                raise Undelivered("insecure", words) from error
            words = f"no connection ({type(error).__name__})"
            raise Undelivered("unreachable", words, again=True) from error
        except (httpx.InvalidURL, UnicodeError) as error:  # the latter of a name that is too long
            raise Undelivered("no_address", "its address is none") from error
        if 300 <= status < 400:
            words = f"it answered {status}, and redirects are not followed"
            raise Undelivered("refused", words)
        if status >= 500 or status in _TRANSIENT:
            raise Undelivered("unavailable", f"it answered {status}", again=True)
        if status >= 400:
            raise Undelivered("refused", f"it answered {status}")

    async def _status(self, url: httpx.URL, headers: dict[str, str], body: bytes, number: int) -> int:
        """What a server answers, of which no more is read.

        It is asked at the address that was looked at, since its name may mean another one by now;
        its certificate is checked for the name.
        """
        name = url.raw_host.decode("ascii")
        entries = await asyncio.get_running_loop().getaddrinfo(name, url.port or 443, type=socket.SOCK_STREAM)
        addresses = list(dict.fromkeys(str(entry[4][0]) for entry in entries))
        if not self.private and not all(map(is_public, addresses)):
            raise Undelivered("not_allowed", _HERE)
        there = url.copy_with(host=addresses[number % len(addresses)])
        headers["Host"] = url.netloc.decode("ascii")
        async with (
            # no proxy, to which the address would mean nothing
            httpx.AsyncClient(timeout=self.seconds, trust_env=False, verify=client_tls()) as client,
            client.stream("POST", there, content=body, headers=headers, extensions={"sni_hostname": name}) as response,
        ):
            return response.status_code


def is_public(address: str) -> bool:
    """Whether it is reached over the internet alone; an IPv4 address within IPv6 counts as such."""
    parsed = ip_address(address.partition("%")[0])
    if isinstance(parsed, IPv6Address):
        parsed = parsed.ipv4_mapped or parsed.sixtofour or parsed
    return parsed.is_global and not parsed.is_multicast


def _is_tls(error: BaseException) -> bool:
    """Whether an encrypted connection failed for being one, which no other try mends."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, SSLError):
        cause = cause.__cause__ or cause.__context__  # httpcore raises some "from None"
    return cause is not None


def append(path: Path, message: Message) -> None:
    """One line of JSON at the end of a file, which only its owner may read.

    Raises:
        Undelivered: it cannot be written.
    """
    try:
        with suppress(FileExistsError):
            path.touch(mode=0o600, exist_ok=False)
        with path.open("ab") as file:
            file.write(message.body + b"\n")
    except OSError as error:
        raise Undelivered("unwritable", f"it cannot be written: {error.strerror}") from error
