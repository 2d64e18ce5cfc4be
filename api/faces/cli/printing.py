"""Answers on stdout, words for a person on stderr, and what becomes of streams that are closed.

A stream that nobody reads (closed, or a pipe whose reader has left) takes nothing more and stops
nothing; an answer that stdout cannot take for another reason is an error.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any, TextIO

from api.errors import UsageError


def prepare() -> None:
    """Open what was closed at the start, and let no character stop a text.

    In the order of their numbers, so that no socket becomes the standard error of a library.
    """
    sys.stdin = sys.stdin or open(os.devnull, encoding="utf-8")  # noqa: SIM115 - to the end
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def say(text: str) -> None:
    """Print an answer, handed over at once.

    Raises:
        UsageError: stdout cannot take it, a full disk for example.
    """
    _give(f"{text}\n".encode(sys.stdout.encoding or "utf-8", "replace"))


def say_bytes(data: bytes) -> None:
    """Print bytes as they are; see `say`."""
    _give(data)


def as_json(value: Any, indent: int | None = None, *, encoding: str | None = None) -> str:
    """One JSON object as text, escaped where the encoding (default: stdout's) lacks letters."""
    wide = (encoding or sys.stdout.encoding or "utf-8").lower().replace("-", "") == "utf8"
    text = json.dumps(value, ensure_ascii=not wide, indent=indent)
    return text.encode("utf-8", "replace").decode() if wide else text


def tell(line: str) -> None:
    """Print a line on stderr, if anybody is there."""
    try:
        print(line, file=sys.stderr, flush=True)
    except OSError:
        _let_go(sys.stderr)


def finish() -> None:
    """Hand over what is left, so that the interpreter's own end finds nothing to complain about."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            _let_go(stream)


def _give(data: bytes) -> None:
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        _let_go(sys.stdout)
    except OSError as error:
        _let_go(sys.stdout)
        raise UsageError(f"the answer cannot be printed: {error.strerror}") from None


def _let_go(stream: TextIO) -> None:
    """From now on the stream leads nowhere, what it still holds included."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
