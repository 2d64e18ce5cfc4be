"""The files that one question runs, seen by running it: `traced_files.py socket|post FILE`.

Runs in a process of its own, with the tree to look at first on `PYTHONPATH` and a sandbox in the
environment, since a profile function sees every call. Writes the files to FILE as a JSON list.

socket: the files of `api/` from the command line to the search request of
    `listenpost fetch youtube plaud.ai`, in order: those with a frame on the stack when the request
    is sent, and those on the stacks that started its task or handed its thread the job, back to the
    command line. What was called before and has returned is left out.
post: the files of `api/` of which a function runs between one `POST /v1/analyses` and its answer,
    the first after the server's start. What runs because a module is being imported (its top
    level, class bodies, decorators) is left out.
"""

from __future__ import annotations

import asyncio.base_events
import contextvars
import json
import os
import socket
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

QUESTION = "plaud.ai"
SEARCH = b"GET /youtube/v3/search"
SETTLING_SECONDS = 0.5
# what the server does after its answer belongs to the question
_CREATE_TASK = asyncio.base_events.BaseEventLoop.create_task.__code__


class RequestStack:
    """The stacks that led to the search request, across tasks and threads.

    A task, and a job for a worker's thread, run in a copy of the context that started them. While
    that context is copied, it holds what stands on the stack.
    """

    def __init__(self, package: Path) -> None:
        """Nothing is sent yet."""
        self.files: list[str] = []
        self._package = package
        self._before = contextvars.ContextVar[tuple[str, ...]]("before", default=())
        self._copying = threading.local()

    def watch(self) -> None:
        """From now on, in this thread and those it starts."""
        threading.setprofile(self._profile)
        sys.setprofile(self._profile)
        sys.addaudithook(self._audit)

    def _profile(self, frame: FrameType, event: str, argument: Any) -> None:
        if event in {"call", "return"}:
            copies = frame.f_code is _CREATE_TASK
        else:
            copies = argument is contextvars.copy_context
        if copies and event in {"call", "c_call"}:
            self._copying.token = self._before.set(self._so_far(frame))
        elif copies:
            self._before.reset(self._copying.token)

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "http.client.send" and bytes(arguments[1]).startswith(SEARCH):
            self.files = self.files or list(dict.fromkeys(self._so_far(sys._getframe())))

    def _so_far(self, frame: FrameType) -> tuple[str, ...]:
        return (*self._before.get(), *(path for path, _ in stack(frame, self._package)))


class RunFiles:
    """The files of which a function runs while `recording` is set."""

    def __init__(self, package: Path) -> None:
        """Nothing ran yet."""
        self.files: set[str] = set()
        self.recording = threading.Event()
        self._package = package

    def watch(self) -> None:
        """From now on, in this thread and those it starts."""
        threading.setprofile(self._profile)
        sys.setprofile(self._profile)

    def _profile(self, frame: FrameType, event: str, argument: object) -> None:
        if event != "call" or not self.recording.is_set():
            return
        if frame.f_code.co_filename.startswith(f"{self._package}{os.sep}"):
            frames = stack(frame, self._package)
            if not any(function == "<module>" for _, function in frames):
                self.files.add(frames[-1][0])


def stack(frame: FrameType | None, package: Path) -> list[tuple[str, str]]:
    """File and function of each frame of the package, outermost first: `api/errors.py`, `main`."""
    frames = []
    while frame is not None:
        code = frame.f_code
        if code.co_filename.startswith(f"{package}{os.sep}"):
            path = Path(code.co_filename).relative_to(package.parent).as_posix()
            frames.append((path, code.co_name))
        frame = frame.f_back
    return frames[::-1]


def ask(url: str, run_files: RunFiles, target: Path) -> None:
    """Wait for the server, ask once, write what ran and end the process; 1 without an answer."""
    while True:
        try:
            urlopen(f"{url}/readyz").close()
            break
        except URLError:
            time.sleep(0.05)
    body = json.dumps({"query": QUESTION}).encode()
    run_files.recording.set()
    try:
        urlopen(Request(f"{url}/v1/analyses", body, {"content-type": "application/json"})).close()
    except OSError as error:
        print(f"no answer to the question: {error}", file=sys.stderr, flush=True)
        os._exit(1)
    time.sleep(SETTLING_SECONDS)
    run_files.recording.clear()
    target.write_text(json.dumps(sorted(run_files.files)))
    os._exit(0)


def main(what: str, target: Path) -> None:
    """Run the product until the files are known, and write them."""
    from api.interfaces.cli.main import run

    package = Path(sys.modules["api"].__file__ or "").parent
    if what == "socket":
        stack_trace = RequestStack(package)
        stack_trace.watch()
        with suppress(SystemExit):
            run(["fetch", "youtube", QUESTION])
        if not stack_trace.files:
            sys.exit("no search was sent to YouTube")
        target.write_text(json.dumps(stack_trace.files))
        return
    run_files = RunFiles(package)
    run_files.watch()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    asking = threading.Thread(target=ask, args=(f"http://127.0.0.1:{port}", run_files, target), daemon=True)
    asking.start()
    run(["serve", "--port", str(port)])


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
