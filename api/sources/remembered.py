"""Pages that outlive the process: a wrapper around a source's reader of pages.

What a page was read with is its key: source, root, query, window and cursor. Only pages get here,
so a failure is never remembered. A database that cannot be used costs the memory, not the answer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Any

from api.errors import StoreUnavailable
from api.services.keeping.storage import PageCache
from api.services.schemas import Comment, FetchPlan, Item
from api.sources.paging import Page, Read

LOST = "pages are not remembered, since the database cannot be used"


def remembered(read: Read, cache: PageCache | None, upstream: str, ttl: float) -> Read:
    """`read`, asked only for what was not read in `ttl` seconds; `upstream` is name and root."""
    return read if cache is None else _KeptPages(read, cache, upstream, ttl)


class _KeptPages:
    """One source's reader with a memory."""

    def __init__(self, read: Read, cache: PageCache, upstream: str, ttl: float) -> None:
        self._read, self._cache, self._upstream, self._ttl = read, cache, upstream, ttl

    async def __call__(self, plan: FetchPlan, cursor: str | None) -> Page:
        """The page as it was read, or read now."""
        key = json.dumps([self._upstream, plan.query, plan.window, cursor])
        try:
            text = await self._cache.page(key, self._ttl)
        except StoreUnavailable:
            return _noted(await self._read(plan, cursor))
        page = None if text is None else page_of(text)
        if page is not None:
            return page
        page = await self._read(plan, cursor)
        try:
            await self._cache.keep_page(key, text_of(page, datetime.now(UTC)))
        except StoreUnavailable:
            return _noted(page)
        return page


def _noted(page: Page) -> Page:
    return replace(page, notes=(*page.notes, LOST))


def text_of(page: Page, read_at: datetime) -> str:
    """A page as JSON."""
    fields = asdict(replace(page, read_at=read_at))
    return json.dumps(fields, default=datetime.isoformat)


def page_of(text: str) -> Page | None:
    """The page again; None when another version of this program wrote it."""
    try:
        fields = json.loads(text)
        return Page(
            tuple(None if slot is None else _item(slot) for slot in fields["slots"]),
            fields["cursor"],
            tuple(fields["notes"]),
            _moment(fields["read_at"]),
        )
    except (ValueError, TypeError, LookupError, AttributeError):
        return None


def _item(fields: Mapping[str, Any]) -> Item:
    comments = (
        Comment(**{**comment, "created_at": _moment(comment["created_at"])})
        for comment in fields["comments"]
    )
    return Item(
        **{
            **fields,
            "created_at": _moment(fields["created_at"]),
            "comments": tuple(comments),
            "places": tuple(fields["places"]),
            "notes": tuple(fields["notes"]),
        }
    )


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text).astimezone(UTC)
