"""A folder of recorded answers, each served once before the sandbox answers itself.

Layout: `<upstream>/index.json` maps file names to `status`, `headers` and `url` (or
`url_indicative`); the files lie beside it. Recordings without an address, and tokens, are not
served.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict, deque
from collections.abc import Mapping
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
"""How a recorded address begins, by upstream and endpoint: `/r/all/search?q=mug` is `search`."""
_HEADERS = ("content-type", "retry-after", "www-authenticate", "location", "x-ratelimit-")


class Recordings:
    """Answers waiting to be served, by upstream and endpoint, in the order of their file names."""

    def __init__(self, folder: Path) -> None:
        """Read the indexes; bodies are read when they are served.

        Raises:
            ValueError: the folder has no index of an upstream, or one is malformed.
        """
        self._waiting: dict[tuple[str, str], deque[tuple[Path, Mapping[str, Any]]]]
        self._waiting = defaultdict(deque)
        for upstream, patterns in _ENDPOINTS.items():
            index = folder / upstream / "index.json"
            recorded = json.loads(index.read_text("utf-8")) if index.is_file() else {}
            for name, facts in sorted(recorded.items()):
                if (index.parent / name).is_file() and isinstance(facts, Mapping):
                    url = str(facts.get("url") or facts.get("url_indicative") or "")
                    for endpoint, pattern in patterns.items():
                        if re.match(pattern, url):
                            self._waiting[upstream, endpoint].append((index.parent / name, facts))
        if not self._waiting:
            raise ValueError(f"`{folder}` holds no `reddit`, `youtube` or `amazon/index.json`")

    def next(self, upstream: str, endpoint: str) -> Response | None:
        """The next recorded answer of one endpoint, if any is left."""
        waiting = self._waiting.get((upstream, endpoint))
        if not waiting:
            return None
        file, facts = waiting.popleft()
        recorded = facts.get("headers", {}).items()
        headers = {name: str(value) for name, value in recorded if name.startswith(_HEADERS)}
        kind = "text/html; charset=utf-8" if file.suffix == ".html" else "application/json"
        headers.setdefault("content-type", kind)
        return Response(file.read_bytes(), int(facts.get("status", 200)), headers)
