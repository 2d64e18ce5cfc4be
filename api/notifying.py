"""Telling others: a signed webhook, Slack, a file; never an address within our own network."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from pathlib import Path

import httpx

from api.services.watching.run import Delivery
from api.services.watching.telling import Message, signature
from api.services.watching.watch import Target, Watch

TRIES = 3
BACKOFF = (1.0, 4.0)
"""Seconds before the second and the third try."""
SECONDS = 10.0
"""For one try, from the look-up of the name to the status of the answer."""
_TRANSIENT = frozenset({408, 425, 429})
"""Statuses below 500 after which another try may succeed."""
_HERE = "its address is within this network; `LISTENPOST_NOTIFY_PRIVATE=true` allows that"


@dataclass(frozen=True, slots=True)
class Notifier:
    """Sends messages; a failure is a value, so that it can be kept with the run."""

    private: bool = False
    """Addresses within our own network may be told, too."""
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep
    seconds: float = SECONDS

    async def send(self, watch: Watch, target: Target, message: Message) -> Delivery:
        """Three tries at most; what another try cannot mend is tried once.

        A receiver gets the run's id in the body and in `Listenpost-Run`: the same, sent again, is
        the same run.
        """
        tries, reason, again = 0, "", True
        while again and tries < TRIES:
            if tries:
                await self.pause(BACKOFF[tries - 1])
            if target.kind == "file":
                reason, again = await asyncio.to_thread(_append, Path(target.address), message)
            else:
                reason, again = await self._post(watch, target, message, tries)
            tries += 1
        return Delivery(target=target.shown, delivered=not reason, tries=tries, reason=reason)

    async def _post(
        self, watch: Watch, target: Target, message: Message, number: int
    ) -> tuple[str, bool]:
        """Why it did not arrive, empty when it did, and whether another try may help."""
        body = message.slack if target.kind == "slack" else message.body
        headers = {"Content-Type": "application/json", "User-Agent": "listenpost"}
        if target.kind == "webhook":
            signed = signature(watch.secret, int(time.time()), body)
            headers |= {"Listenpost-Run": message.run_id, "Listenpost-Signature": signed}
        try:
            async with asyncio.timeout(self.seconds):
                url = httpx.URL(target.address)
                addresses = await _addresses(url)
                if not self.private and not all(map(is_public, addresses)):
                    return _HERE, False
                # the address that was looked at, so that the name cannot mean another one by now
                there = url.copy_with(host=addresses[number % len(addresses)])
                headers["Host"] = url.netloc.decode("ascii")
                async with (
                    httpx.AsyncClient(timeout=self.seconds, trust_env=False) as client,
                    client.stream(
                        "POST", there, content=body, headers=headers,
                        extensions={"sni_hostname": url.host},
                    ) as response,
                ):  # fmt: skip
                    status = response.status_code
        except (TimeoutError, httpx.TimeoutException):
            return f"no answer in {self.seconds:g} s", True
        except (OSError, httpx.HTTPError) as error:
            return f"no connection ({type(error).__name__})", True
        except (httpx.InvalidURL, UnicodeError):  # the latter of a name that is too long
            return "its address is none", False
        if 200 <= status < 300:
            return "", False
        if 300 <= status < 400:
            return f"it answered {status}, and redirects are not followed", False
        return f"it answered {status}", status >= 500 or status in _TRANSIENT


async def _addresses(url: httpx.URL) -> Sequence[str]:
    """All that the name of a server stands for, at least one."""
    entries = await asyncio.get_running_loop().getaddrinfo(
        url.host, url.port or 443, type=socket.SOCK_STREAM
    )
    return list(dict.fromkeys(str(entry[4][0]) for entry in entries))


def is_public(address: str) -> bool:
    """Whether it is reached over the internet alone; an IPv4 address within IPv6 counts as such."""
    parsed = ip_address(address.partition("%")[0])
    if isinstance(parsed, IPv6Address):
        parsed = parsed.ipv4_mapped or parsed.sixtofour or parsed
    return parsed.is_global and not parsed.is_multicast


def _append(path: Path, message: Message) -> tuple[str, bool]:
    """One line of JSON at the end of a file, which only its owner may read."""
    try:
        with suppress(FileExistsError):
            path.touch(mode=0o600, exist_ok=False)
        with path.open("ab") as file:
            file.write(message.body + b"\n")
    except OSError as error:
        return f"it cannot be written: {error.strerror}", False
    return "", False
