"""Which entries a caller wants searched, refused in words where it cannot be."""

from __future__ import annotations

from collections.abc import Container
from datetime import datetime

from api.errors import UsageError
from api.services.archive.shelf import ArchiveFilters
from api.services.text import clean, one_line


def filters_of(
    source: str | None, since: datetime | None, about: str, sources: Container[str]
) -> ArchiveFilters:
    """The filters behind what a door takes; empty text is no filter.

    Raises:
        UsageError: there is no such source.
    """
    if source and source not in sources:
        raise UsageError(f"there is no source `{one_line(clean(source))[:40]}`")
    return ArchiveFilters(
        source=source or None, since=since, product=one_line(clean(about)) or None
    )
