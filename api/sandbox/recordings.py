"""A folder of recorded answers, each served once before the sandbox answers itself.

Layout: `<upstream>/index.json` maps file names to `status`, `headers` and `url` (or
`url_indicative`); the files lie beside it. Recordings without an address, and tokens, are not
served.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from starlette.responses import Response

_ENDPOINTS: Mapping[str, Mapping[str, str]] = {
    "reddit": {
        "search": r"/r/[^/]+/search",
        "comments": r"/comments/",
        "more": r"/api/morechildren",
        "info": r"/api/info",
    },
    "youtube": {
        "search": r"/youtube/v3/search",
        "videos": r"/youtube/v3/videos",
        "comments": r"/youtube/v3/comment(?:Thread)?s",
    },
    "amazon": {"search": r"/s\?", "product": r"/dp/", "signin": r"/ap/signin"},
}
_HEADERS = ("content-type", "retry-after", "www-authenticate", "location", "x-ratelimit-")


class Recordings:
    """Answers waiting to be served, by upstream and endpoint, in the order of their file names."""

    def __init__(self, folder: Path) -> None:
        """Read the indexes; bodies are read when they are served.

        Raises:
            ValueError: the folder has no index of an upstream, or one is malformed.
        """
        self._waiting: dict[tuple[str, str], deque[tuple[Path, Mapping[str, Any]]]] = {}
        for upstream, patterns in _ENDPOINTS.items():
            for file, facts in _index(folder / upstream):
                url = str(facts.get("url") or facts.get("url_indicative") or "")
                for endpoint, pattern in patterns.items():
                    if re.match(pattern, url):
                        self._waiting.setdefault((upstream, endpoint), deque()).append(
                            (file, facts)
                        )
        if not self._waiting:
            raise ValueError(f"`{folder}` holds no `reddit`, `youtube` or `amazon/index.json`")

    def next(self, upstream: str, endpoint: str) -> Response | None:
        """The next recorded answer of one endpoint, if any is left."""
        waiting = self._waiting.get((upstream, endpoint))
        if not waiting:
            return None
        file, facts = waiting.popleft()
        headers = {
            name: str(value)
            for name, value in facts.get("headers", {}).items()
            if name.startswith(_HEADERS)
        }
        kind = "text/html; charset=utf-8" if file.suffix == ".html" else "application/json"
        headers.setdefault("content-type", kind)
        return Response(file.read_bytes(), int(facts.get("status", 200)), headers)


def _index(folder: Path) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    index = folder / "index.json"
    if not index.is_file():
        return
    read = json.loads(index.read_text("utf-8"))
    for name in sorted(read):
        file = folder / name
        if file.is_file() and isinstance(read[name], Mapping):
            yield file, read[name]
