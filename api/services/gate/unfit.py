"""Why an item is judged by nobody, where others than its source need to know."""

from __future__ import annotations

REMOVED = "title and text were removed"
"""Its place says that it is gone."""
