"""Faults and latencies on request, by upstream or endpoint.

A fault is written `UPSTREAM[.ENDPOINT]=KIND[@FROM][xTIMES]`: `youtube=quota`, or
`openai.judge=500@2x1` (only the second judge call fails). A latency is written
`UPSTREAM[.ENDPOINT]=800ms` (or `1.5s`).
"""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

ENDPOINTS: Mapping[str, tuple[str, ...]] = {
    "reddit": ("token", "search", "comments", "more", "info"),
    "youtube": ("search", "videos", "comments"),
    "amazon": ("search", "product", "reviews", "signin"),
    "hackernews": ("search", "item"),
    "stackexchange": ("search", "answers", "info"),
    "github": ("search", "comments", "limits"),
    "lemmy": ("version", "search", "comments"),
    "discourse": ("search", "topic"),
    "feeds": ("rss", "atom", "json", "page"),
    "bluesky": ("stream", "posts", "thread", "session", "search"),
    "steam": ("shop", "reviews"),
    "news": ("feed", "list"),
    "openai": (
        "judge", "grades", "support", "answers", "rewrite", "explain", "senses", "agent", "chat", "models",
        "embeddings",
    ),
    "langfuse": (
        "traces", "scores", "score_configs", "prompts", "datasets", "dataset_items", "dashboards",
        "widgets", "projects", "ingestion", "other",
    ),
}  # fmt: skip
KINDS: Mapping[str, frozenset[str]] = {
    "reddit": frozenset("401 403 403html 429 500 hang drip notjson login".split()),
    "youtube": frozenset("quota search_quota 500 hang drip keyinvalid disabled notjson".split()),
    "amazon": frozenset("captcha dogs waf signin empty 401 429 500 hang drip notjson".split()),
    "hackernews": frozenset("400 403html 429 500 hang drip notjson".split()),
    "stackexchange": frozenset("throttle backoff bad_site 429 500 hang drip notjson".split()),
    "github": frozenset("401 403 secondary 422 429 500 incomplete hang drip notjson".split()),
    "lemmy": frozenset("rate_limit 400 403html anubis 500 hang drip notjson".split()),
    "discourse": frozenset("overload 403 429 503 500 hang drip notjson".split()),
    "feeds": frozenset("301 304 401 403 404 410 429 500 html botwall cut charset empty hang drip notjson".split()),
    "bluesky": frozenset(
        "silent garbage gap duplicates disorder too_old slow close error html200 400 404 403html 429 503 500 hang drip "
        "notjson".split()
    ),
    "steam": frozenset("429 redirect empty end repeat 500 hang drip notjson".split()),
    "news": frozenset("404 429 truncated bad_lines large text old 500 hang drip notjson".split()),
    "openai": frozenset(
        "401 429 insufficient_quota 500 hang drip refusal filtered length notjson prose "
        "wrong_count no_schema no_choices dimensions".split()
    ),
    "langfuse": frozenset("401 403 404html 409 422 429 500 503 hang slow notjson no_project".split()),
}
# `openai.judge=500@2x1`: upstream, endpoint, kind, number of the first request hit, how many
_FAULT = re.compile(r"^(\w+)(?:\.(\w+))?=(\w+?)(?:@(\d+))?(?:x(\d+))?$")
# `reddit.search=0.3s`: upstream, endpoint, number, unit (default: seconds)
_LATENCY = re.compile(r"^(\w+)(?:\.(\w+))?=(\d+(?:\.\d+)?)(ms|s)?$")


@dataclass(frozen=True, slots=True)
class Fault:
    """One kind of fault of an upstream or endpoint."""

    upstream: str
    endpoint: str | None
    kind: str
    first: int = 1  # number of the first matching request that it hits
    times: int | None = None  # how many requests it hits; None: all

    def hits(self, number: int) -> bool:
        """Whether it hits the matching request with this number, from 1."""
        return number >= self.first and (self.times is None or number < self.first + self.times)


def _check_names(upstream: str, endpoint: str | None, text: str) -> None:
    if upstream not in ENDPOINTS:
        raise ValueError(f"`{text}`: no upstream `{upstream}`; there are {', '.join(ENDPOINTS)}")
    if endpoint is not None and endpoint not in ENDPOINTS[upstream]:
        known = ", ".join(ENDPOINTS[upstream])
        raise ValueError(f"`{text}`: `{upstream}` has no endpoint `{endpoint}`; it has {known}")


def fault(text: str) -> Fault:
    """Read `youtube=quota`; raises `ValueError`, which lists the known names."""
    match = _FAULT.match(text.strip())
    if match is None:
        raise ValueError(f"`{text}` is no fault; write `youtube=quota` or `openai.judge=500@2x1`")
    upstream, endpoint, kind, first, times = match.groups()
    _check_names(upstream, endpoint, text)
    if kind not in KINDS[upstream]:
        known = ", ".join(sorted(KINDS[upstream]))
        raise ValueError(f"`{text}`: `{upstream}` has no fault `{kind}`; it has {known}")
    return Fault(upstream, endpoint, kind, int(first or 1), int(times) if times else None)


def latency(text: str) -> tuple[tuple[str, str | None], float]:
    """Read `openai=800ms` as upstream, endpoint and seconds; raises `ValueError`."""
    match = _LATENCY.match(text.strip())
    if match is None:
        raise ValueError(f"`{text}` is no latency; write `openai=800ms` or `reddit.search=0.3s`")
    upstream, endpoint, number, unit = match.groups()
    _check_names(upstream, endpoint, text)
    return (upstream, endpoint), float(number) / (1000 if unit == "ms" else 1)


class Faults:
    """The current faults and latencies; safe to change from any thread."""

    def __init__(self, faults: Iterable[str] = (), latencies: Iterable[str] = ()) -> None:
        self._lock = threading.Lock()
        self._faults: list[Fault] = []
        self._seen: Counter[Fault] = Counter()
        self._latency: dict[tuple[str, str | None], float] = {}
        for text in faults:
            self.add(text)
        for text in latencies:
            self.delay(text)

    def add(self, text: str) -> None:
        """Add a fault; it counts requests from now on."""
        added = fault(text)
        with self._lock:
            self._seen.pop(added, None)
            self._faults.append(added)

    def delay(self, text: str) -> None:
        """Set the latency of an upstream or endpoint."""
        names, seconds = latency(text)
        with self._lock:
            self._latency[names] = seconds

    def clear(self) -> None:
        """Remove all faults and latencies."""
        with self._lock:
            self._faults, self._latency = [], {}
            self._seen.clear()

    def seconds(self, upstream: str, endpoint: str) -> float:
        """The latency of an endpoint, else that of its upstream."""
        with self._lock:
            general = self._latency.get((upstream, None), 0.0)
            return self._latency.get((upstream, endpoint), general)

    def strike(self, upstream: str, endpoint: str) -> str | None:
        """The fault that hits this request, counting it; the last one added wins."""
        struck = None
        with self._lock:
            for each in self._faults:
                if each.upstream == upstream and each.endpoint in (None, endpoint):
                    self._seen[each] += 1
                    struck = each.kind if each.hits(self._seen[each]) else struck
        return struck
