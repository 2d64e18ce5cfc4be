"""`serve`, `work` and `sandbox`: processes that stay, and say where they listen.

`serve` listens before the product's libraries are loaded.

`doctor`: per upstream, whether it can be asked, what is left, and how to fix it.
"""

from __future__ import annotations

import asyncio
import gc
import shutil
import socket
import sys
from dataclasses import asdict
from pathlib import Path

import uvicorn

from api import bootstrap
from api.bootstrap.app_context import AppContext, open_app_context
from api.core.http_limits import is_this_machine
from api.errors import UsageError
from api.interfaces.cli.output import INTERRUPTED, Format, as_json, closing, remembered, run, say
from api.interfaces.cli.terminal_text import wrapped
from api.interfaces.shared.upstream_status import probed


def serve_command(host: str, port: int, *, sandbox: bool = False) -> int:
    """Serve until interrupted.

    Raises:
        UsageError: the address cannot be listened on, or not without API keys.
        StoreUnavailable: the database cannot be used.
    """
    settings = bootstrap.load_settings(sandbox=sandbox)

    async def work() -> None:
        app_context = await open_app_context(settings, durable=True)
        try:
            keyed = await app_context.keys.configured()
            if not keyed and not is_this_machine(host):
                raise UsageError(
                    f"`{host}` is no loopback address: without API keys only this machine is "
                    "served; set `LISTENPOST_API_KEYS` or run `listenpost keys add NAME`"
                )
            from api.interfaces.http.app import create_app  # the sandbox does without
            from api.interfaces.http.connections import bounded_config, quieten

            config = bounded_config(create_app(app_context))
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
                sample = "; sample data from the offline sandbox" if app_context.sample else ""
                words = f"Listenpost on {address} ({who}{sample})"
                await _AnnouncedServer(config, words, app_context).serve([listener])
        finally:
            await app_context.aclose()

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
    settings = bootstrap.load_settings(sandbox=sandbox)

    async def work() -> int:
        async with closing(await open_app_context(settings, durable=True)) as app_context:
            await app_context.product()
            assert app_context.engine is not None
            await app_context.engine.opened()
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

    def __init__(self, config: uvicorn.Config, words: str, app_context: AppContext) -> None:
        super().__init__(config)
        self._words, self._house = words, app_context

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            print(self._words, file=sys.stderr, flush=True)
            # what the libraries made stays: looking through it for garbage takes 0.2 s each time
            self._house.load().add_done_callback(lambda loading: gc.freeze())


_SAMPLE = "sample world: made up and offline; no key is used and nothing is spent"
_WAY_OUT = "`LISTENPOST_MODE=sandbox` is set; without it the real places are asked."
# Columns of the first column at least.
_NAME = 10
# Columns that a row takes; on a narrower terminal it is wrapped, what to do below it indented.
_WIDE, _INDENT = 76, 2


def doctor_command(form: Format) -> int:
    """Probe everything at once, at the lowest cost there is; exit code 4 when no source answers."""
    settings = bootstrap.load_settings()

    async def work() -> int:
        async with (
            remembered(settings) as memory,
            closing(bootstrap.build(settings, memory=memory)) as product,
        ):
            rows, sample = await probed(settings, product), product.sample
        mode = "sandbox" if sample else "live"
        if form is Format.json:
            say(as_json({"mode": mode, "upstreams": list(map(asdict, rows))}))
        else:
            lines = [_SAMPLE if sample else f"mode: {mode}"]
            width = max(_NAME, *(len(row.title) for row in rows))
            for row in rows:
                left = row.quota_left
                details = [row.detail, "" if left is None else f"{left} searches left today"]
                words = ", ".join(filter(None, details))
                lines.append(f"{row.title:<{width}} {row.outcome:<16} {words}".rstrip())
                label = "to be real" if row.outcome == "ok" else "fix"
                lines += [f"{'':<{width}} {label}: {row.fix}"] if row.fix else []
            if sample:
                lines.append(_WAY_OUT)
            columns = shutil.get_terminal_size((_WIDE, 24)).columns
            if columns < _WIDE:
                leads = (" " * _INDENT if line.startswith(" ") else "" for line in lines)
                lines = [
                    part
                    for line, lead in zip(lines, leads, strict=True)
                    for part in wrapped(line, columns, lead)
                ]
            say("\n".join(lines))
        return 0 if any(row.outcome == "ok" for row in rows if row.is_place) else 4

    return run(work)
