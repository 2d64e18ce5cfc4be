"""`sandbox`: the loopback upstreams as a process of their own, for tests of other software."""

from __future__ import annotations

from pathlib import Path

from api.errors import UsageError
from api.faces.cli.running import INTERRUPTED
from api.sandbox.server import environment, serve
from api.services.wire import is_this_machine


def sandbox_command(
    host: str, port: int, faults: list[str], latencies: list[str], recordings: Path | None
) -> int:
    """Serve until interrupted; prints the variables that point a program at it.

    Raises:
        UsageError: not a loopback address, an unknown fault, or no such folder.
    """
    if not is_this_machine(host):
        raise UsageError(f"`{host}` is no loopback address; the sandbox serves this machine only")
    if recordings is not None and not recordings.is_dir():
        raise UsageError(f"`{recordings}` is no folder of recordings")
    try:
        serve(host, port, faults=faults, latency=latencies, recordings=recordings, ready=_announce)
    except ValueError as error:
        raise UsageError(str(error)) from None
    except OSError as error:
        raise UsageError(f"`{host}:{port}` cannot be listened on: {error.strerror}") from None
    return INTERRUPTED


def _announce(url: str) -> None:
    for name, value in {"LISTENPOST_MODE": "live", **environment(url)}.items():
        print(f"export {name}={value}", flush=True)
