"""A report of hostile posts, and a reader of the tags in its pages."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from typing import Any

EVIL = [
    "<img src=x onerror=alert(1)>",
    "<script>alert(1)</script>",
    '"><svg onload=alert(1)>',
    "' onmouseover='alert(1)",
    "](http://evil.example) [x](javascript:alert(1))",
    "</style><style>*{display:none}</style>",
    "<!-- ",
    "&lt;b&gt; \u202e \x1b[31m",
]

URLS = [
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    "data:text/html,<script>alert(1)</script>",
    'https://example.org/"onmouseover="alert(1)',
    "//evil.example",
    "",
]

CLOSED = {"key", "cites", "id", "created_at", "retry_at", "start", "unit", "kind", "decision"} | {
    "depth", "since", "grading", "outcome", "status", "support", "dropped_by",
}  # fmt: skip
"""What is ours to say: a report that says anything else there is none."""


class Tags(HTMLParser):
    """Every tag of a page with its attributes, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    def named(self, tag: str) -> list[dict[str, str | None]]:
        """The attributes of one kind of tag."""
        return [attributes for name, attributes in self.tags if name == tag]


def hostile(report: dict[str, Any]) -> dict[str, Any]:
    """The same report, written by the worst strangers."""

    def poisoned(value: Any, name: str = "") -> Any:
        if isinstance(value, dict):
            return {key: poisoned(one, key) for key, one in value.items()}
        if isinstance(value, list):
            return [poisoned(one, name) for one in value]
        if isinstance(value, str) and name == "url":
            return URLS[len(value) % len(URLS)]
        if isinstance(value, str) and name not in CLOSED:
            return f"{value} {' '.join(EVIL)}"
        return value

    made: dict[str, Any] = poisoned(json.loads(json.dumps(report)))
    return made
