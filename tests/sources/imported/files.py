"""Files as people have them, and what is read of them."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from api.core.items import Item
from api.features.archive.imports import Entry, ImportPortion, ImportPosition, LeftOut, Refusal
from api.sources.imported.detection import CollectedFile, ReadOptions, open_collected

NOTHING = io.BytesIO()


def lines(*rows: Mapping[str, Any] | str) -> bytes:
    """JSON lines; a text stands as it is."""
    texts = (row if isinstance(row, str) else json.dumps(row) for row in rows)
    return "".join(f"{text}\n" for text in texts).encode("utf-8", "surrogatepass")


def made(folder: Path, data: bytes, name: str = "file", **wish: Any) -> CollectedFile:
    """A file with these bytes, opened."""
    path = folder / name
    path.write_bytes(data)
    return open_collected(str(path), ReadOptions(**wish), NOTHING)


def looked_at(folder: Path, data: bytes, name: str = "file", **wish: Any) -> CollectedFile:
    """The same, closed: what was found out about it."""
    file = made(folder, data, name, **wish)
    file.close()
    return file


def portions(file: CollectedFile, since: ImportPosition = ImportPosition()) -> list[ImportPortion]:  # noqa: B008
    """All of it, and closed."""
    try:
        return list(file.portions(since))
    finally:
        file.close()


def entries(file: CollectedFile) -> list[Entry]:
    """All of it."""
    return [entry for portion in portions(file) for entry in portion.entries]


def items(read: Iterable[Entry]) -> list[Item]:
    """Those that were read."""
    return [entry for entry in read if isinstance(entry, Item)]


def refusals(read: Iterable[Entry]) -> list[tuple[int, str]]:
    """Line and reason of those that were not."""
    return [(entry.line, entry.reason) for entry in read if isinstance(entry, Refusal)]


def left_out(read: Iterable[Entry]) -> list[str]:
    """Why of those that are nobody's words."""
    return [entry.reason for entry in read if isinstance(entry, LeftOut)]
