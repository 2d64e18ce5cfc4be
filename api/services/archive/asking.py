"""Which entries a caller wants searched, refused in words where it cannot be."""

from __future__ import annotations

from collections.abc import Container
from datetime import datetime

from api.errors import UsageError
from api.services.archive.shelf import ArchiveFilters
from api.services.question.query import is_language
from api.services.text import clean, one_line


def filters_of(
    source: str | None,
    since: datetime | None,
    about: str,
    sources: Container[str],
    language: str | None = None,
    kept: bool | None = None,
) -> ArchiveFilters:
    """The filters behind what a door takes; empty text is no filter.

    Raises:
        UsageError: there is no such source, or no language with that code.
    """
    if source and source not in sources:
        raise UsageError(f"there is no source `{one_line(clean(source))[:40]}`")
    code = one_line(clean(language)).lower()
    if code and not is_language(code):
        raise UsageError(f"`{code[:20]}` is no code of a language that is known, such as `de`")
    return ArchiveFilters(
        source=source or None,
        since=since,
        product=one_line(clean(about)) or None,
        language=code or None,
        kept=kept,
    )
