"""Address of the watches, and a body that adds one."""

from __future__ import annotations

from typing import Any

URL = "/v1/watches"

OURA: dict[str, Any] = {"query": "Oura", "depth": "quick", "sources": ["hackernews"]}
