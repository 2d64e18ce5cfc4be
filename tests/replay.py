"""Serves recorded answers by path, over a real socket; shares nothing with the sandbox."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from tests.loopback import Asked, Loopback, Reply

DATA = Path(os.environ.get("LISTENPOST_TEST_DATA") or Path(__file__).resolve().parents[1].parent / "shared" / "data")
UPSTREAM = DATA / "upstream"
MORE = DATA / "upstream-more"
"""Of the places that answer without a key."""
STREAMS = DATA / "upstream-streams"
"""Of streams, feeds, Steam and news."""
NO_STREAMS = f"no recordings in {STREAMS}; set LISTENPOST_TEST_DATA"
NO_MORE = f"no recordings in {MORE}; set LISTENPOST_TEST_DATA"
MISSING = f"no recordings in {UPSTREAM}; set LISTENPOST_TEST_DATA"


def replay(source: str, files: Mapping[str, str]) -> Loopback:
    """A server that answers a path (or the start of one) with a recording of `source`."""
    index = json.loads((UPSTREAM / source / "index.json").read_text("utf-8"))

    def answer(asked: Asked) -> Reply:
        file = next((files[path] for path in files if asked.path.startswith(path)), None)
        if file is None:
            return Reply(404, {"error": 404})
        meta = index[file]
        kind = {"content-type": "text/html" if file.endswith(".html") else "application/json"}
        content = (UPSTREAM / source / file).read_bytes()
        return Reply(meta.get("status", 200), content, kind | meta.get("headers", {}))

    return Loopback(answer)
