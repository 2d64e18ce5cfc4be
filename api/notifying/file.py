"""A file that grows by a line a run."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from api.notifying.undelivered import Undelivered
from api.services.watching.telling import Message


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
