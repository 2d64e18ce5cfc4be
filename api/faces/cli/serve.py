"""`serve`: the HTTP API as a process, listening before the product's libraries are loaded."""

from __future__ import annotations

import asyncio
import socket
import sys

import uvicorn

from api import wiring
from api.errors import UsageError
from api.faces.cli.running import INTERRUPTED
from api.faces.web.app import create_app
from api.services.wire import is_this_machine
from api.settings import Settings
from api.wiring.serving import House, open_house

_GRACE_SECONDS = 5


def serve_command(host: str, port: int) -> int:
    """Serve until interrupted.

    Raises:
        UsageError: the address cannot be listened on, or not without API keys.
        StoreUnavailable: the database cannot be used.
    """
    settings = wiring.load_settings()
    try:
        asyncio.run(_serve(settings, host, port))
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


async def _serve(settings: Settings, host: str, port: int) -> None:
    house = await open_house(settings)
    try:
        keyed = await house.keys.configured()
        if not keyed and not is_this_machine(host):
            raise UsageError(
                f"`{host}` is no loopback address: without API keys only this machine is served; "
                "set `LISTENPOST_API_KEYS` or run `listenpost keys add NAME`"
            )
        with _listening(host, port) as listener:
            server = _AnnouncedServer(_config(house), _words(listener, house, keyed))
            await server.serve([listener])
    finally:
        await house.aclose()


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=512)
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or "no such address"
        raise UsageError(f"`{host}:{port}` cannot be listened on: {why}") from None


def _config(house: House) -> uvicorn.Config:
    return uvicorn.Config(
        create_app(house),
        loop="asyncio",
        http="h11",
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=_GRACE_SECONDS,
    )


def _words(listener: socket.socket, house: House, keyed: bool) -> str:
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    who = "with an API key" if keyed else "without API keys: only this machine may call"
    sample = "; sample data from the offline sandbox" if house.sample else ""
    return f"Listenpost on http://{shown}:{port} ({who}{sample})"


class _AnnouncedServer(uvicorn.Server):
    """A server that says when it listens."""

    def __init__(self, config: uvicorn.Config, words: str) -> None:
        super().__init__(config)
        self._words = words

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            print(self._words, file=sys.stderr, flush=True)
