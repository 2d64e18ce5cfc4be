"""`serve`, `work` and `sandbox`: processes that stay, and say where they listen.

`serve` listens before the product's libraries are loaded.
"""

from __future__ import annotations

import asyncio
import gc
import socket
import sys
from pathlib import Path

import uvicorn

from api import wiring
from api.errors import UsageError
from api.faces.cli.running import INTERRUPTED, closing, run
from api.services.wire import is_this_machine
from api.wiring.serving import House, open_house


def serve_command(host: str, port: int, *, sandbox: bool = False) -> int:
    """Serve until interrupted.

    Raises:
        UsageError: the address cannot be listened on, or not without API keys.
        StoreUnavailable: the database cannot be used.
    """
    settings = wiring.load_settings(sandbox=sandbox)

    async def work() -> None:
        house = await open_house(settings, durable=True)
        try:
            keyed = await house.keys.configured()
            if not keyed and not is_this_machine(host):
                raise UsageError(
                    f"`{host}` is no loopback address: without API keys only this machine is "
                    "served; set `LISTENPOST_API_KEYS` or run `listenpost keys add NAME`"
                )
            from api.faces.web.app import create_app  # the sandbox does without
            from api.faces.web.connections import bounded_config, quieten

            config = bounded_config(create_app(house))
            quieten(asyncio.get_running_loop())
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            try:
                listener = socket.create_server((host, port), family=family, backlog=config.backlog)
            except (OSError, UnicodeError) as error:
                why = getattr(error, "strerror", None) or "no such address"
                raise UsageError(f"`{host}:{port}` cannot be listened on: {why}") from None
            with listener:
                name, number = listener.getsockname()[:2]
                address = f"http://[{name}]:{number}" if ":" in name else f"http://{name}:{number}"
                who = "with an API key" if keyed else "without API keys: only this machine may call"
                sample = "; sample data from the offline sandbox" if house.sample else ""
                words = f"Listenpost on {address} ({who}{sample})"
                await _AnnouncedServer(config, words, house).serve([listener])
        finally:
            await house.aclose()

    try:
        asyncio.run(work())
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


def work_command(*, sandbox: bool = False) -> int:
    """Work at what is queued and at what other processes have left, until interrupted.

    Raises:
        StoreUnavailable: the database cannot be used.
    """
    settings = wiring.load_settings(sandbox=sandbox)

    async def work() -> int:
        async with closing(await open_house(settings, durable=True)) as house:
            await house.product()
            assert house.engine is not None
            await house.engine.opened()
            print("Listenpost works at what is queued", file=sys.stderr, flush=True)
            await asyncio.Event().wait()  # for ever
        return 0

    return run(work)


def sandbox_command(
    host: str, port: int, faults: list[str], latencies: list[str], recordings: Path | None
) -> int:
    """Serve until interrupted; prints the variables that point a program at it.

    Raises:
        UsageError: not a loopback address, an unknown fault, or no such folder.
    """
    from api.sandbox.server import environment, serve

    def announce(url: str) -> None:
        for name, value in environment(url).items():
            print(f"export {name}={value}", flush=True)

    if not is_this_machine(host):
        raise UsageError(f"`{host}` is no loopback address; the sandbox serves this machine only")
    if recordings is not None and not recordings.is_dir():
        raise UsageError(f"`{recordings}` is no folder of recordings")
    try:
        serve(host, port, faults=faults, latency=latencies, recordings=recordings, ready=announce)
    except ValueError as error:
        raise UsageError(str(error)) from None
    except OSError as error:
        raise UsageError(f"`{host}:{port}` cannot be listened on: {error.strerror}") from None
    return INTERRUPTED


class _AnnouncedServer(uvicorn.Server):
    """A server that says when it listens."""

    def __init__(self, config: uvicorn.Config, words: str, house: House) -> None:
        super().__init__(config)
        self._words, self._house = words, house

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            print(self._words, file=sys.stderr, flush=True)
            # what the libraries made stays: looking through it for garbage takes 0.2 s each time
            self._house.load().add_done_callback(lambda loading: gc.freeze())
