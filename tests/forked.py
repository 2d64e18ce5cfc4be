"""Processes of their own that need not import: forked from one per run that has imported everything.

Imports cost a process of `listenpost` seconds of processor time. `Forked` is a `Popen` whose process
begins behind them, with the streams, folder and environment that it was given; it is killed,
interrupted and waited for as any other. Use `Popen` itself where imports, the start of the
interpreter or variables such as `PYTHONIOENCODING` are what is tested.

`python -m tests.forked SOCKET` is the process that forks.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import inspect
import json
import os
import select
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, AnyStr

ROOT = Path(__file__).resolve().parents[1]
COMMAND = "api.interfaces.cli.main:run"
CODE = "tests.forked:run_code"
"""Behind it stand a program in Python and its arguments, as behind `python -c`."""
IMPORTED = (
    "api.interfaces.cli.main",
    "api.interfaces.cli.analyze_commands",
    "api.interfaces.cli.terminal_progress",
    "api.interfaces.http.app",
    "api.interfaces.mcp.mcp_server",
    "api.bootstrap.app_context",
    "api.bootstrap.background_work",
    "api.bootstrap.model_writer",
    "api.features.chat.chat_agent",
    "api.langfuse.tracing.langfuse_client",
    "api.models.model_client",
    "api.reports.agent_writer",
    "api.sandbox.server",
    "api.sources.reddit",
    "api.sources.youtube",
    "api.store.durable_engine",
    "pydantic_ai.models.openai",
)
"""What most commands import sooner or later."""
_ADOPTS_ORPHANS = 36  # `PR_SET_CHILD_SUBREAPER` of `prctl`: Linux alone has it


class Forked(subprocess.Popen[AnyStr]):
    """A `Popen` whose `args` are a function that ends the process, `module:name`, and its arguments."""

    def _execute_child(self, *values: Any) -> None:
        given = inspect.signature(subprocess.Popen._execute_child).bind(self, *values).arguments  # type: ignore[attr-defined]
        function, *words = given["args"]
        if not sys.platform.startswith("linux"):
            module, _, name = function.partition(":")
            code = f"import sys; sys.argv[0] = 'listenpost'; from {module} import {name}; {name}()"
            values = ([sys.executable, "-c", code, *words], *values[1:])
            super()._execute_child(*values)  # type: ignore[misc]
            return
        streams = [given["p2cread"], given["c2pwrite"], given["errwrite"]]
        order = {
            "function": function,
            "words": words,
            "environment": dict(os.environ if given["env"] is None else given["env"]),
            "folder": str(given["cwd"] or Path.cwd()),
            "session": given["start_new_session"],
        }
        with socket.socket(socket.AF_UNIX) as asking:
            asking.connect(_forker())
            numbers = [number if stream == -1 else stream for number, stream in enumerate(streams)]
            socket.send_fds(asking, [json.dumps(order).encode()], numbers)
            asking.shutdown(socket.SHUT_WR)
            self.pid = int(asking.recv(64))
        self._child_created = True
        pipes = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
        self._close_pipe_fds(*(given[name] for name in pipes))  # type: ignore[attr-defined]


def forked(
    *words: str, env: Mapping[str, str] | None = None, stdin: bytes = b"", seconds: float = 120
) -> subprocess.CompletedProcess[bytes]:
    """`listenpost` with these words, to its end."""
    pipe = subprocess.PIPE
    with Forked[bytes]([COMMAND, *words], env=env, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        try:
            out, err = process.communicate(stdin, timeout=seconds)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def run_code() -> None:
    """Run the first argument as a program, with the others as its own."""
    exec(compile(sys.argv.pop(1), "<program>", "exec"), {"__name__": "__main__"})


@cache
def _forker() -> str:
    """The socket of the process that forks; started by the first question, and it ends with this process."""
    ctypes.CDLL(None).prctl(_ADOPTS_ORPHANS, 1, 0, 0, 0)
    path = f"{tempfile.mkdtemp(prefix='lp-fork-')}/socket"
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.forked", path],
        # pipes all three: Python remembers of its streams that they cannot seek, which holds for any later one
        cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline() == b"ready\n", process.stderr.read()
    atexit.register(process.communicate)  # the end of its input is its own
    return path


def _serve(path: str) -> None:
    """Fork for whoever asks, until the input ends."""
    for module in IMPORTED:
        import_module(module)
    gc.collect()
    gc.freeze()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    os.write(1, b"ready\n")
    while 0 not in (ready := select.select([0, listener.fileno()], [], [])[0]):
        assert ready
        asking, _ = listener.accept()
        order, streams = _read(asking)
        reading, writing = os.pipe()
        between = os.fork()
        if between == 0:
            os.close(reading)
            if number := os.fork():  # whose parent ends at once: the process that asked adopts it
                os.write(writing, str(number).encode())
                os._exit(0)
            for used in (writing, listener.detach(), asking.detach()):
                os.close(used)
            _become(order, streams)
            return
        os.close(writing)
        os.waitpid(between, 0)  # now it is adopted
        asking.sendall(os.read(reading, 64))
        for used in (reading, asking.detach(), *streams):
            os.close(used)
    shutil.rmtree(Path(path).parent)


def _read(asking: socket.socket) -> tuple[Mapping[str, Any], Sequence[int]]:
    text, streams, _, _ = socket.recv_fds(asking, 1_000_000, 3)
    while part := asking.recv(1_000_000):
        text += part
    return json.loads(text), streams


def _become(order: Mapping[str, Any], streams: Sequence[int]) -> None:
    """Do in this process what was ordered, with these streams."""
    if order["session"]:
        os.setsid()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdout.reconfigure(line_buffering=os.isatty(1))  # type: ignore[union-attr]
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["environment"])
    sys.argv = ["listenpost", *order["words"]]
    module, _, name = order["function"].partition(":")
    getattr(import_module(module), name)()


if __name__ == "__main__":
    _serve(sys.argv[1])
