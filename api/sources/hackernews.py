"""Hacker News through Algolia's search of it; the fields are those of 2026, nulls of before too.

An item is a story, or a comment under its story's title.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from api.core.domain import Comment, FetchPlan, Item
from api.core.ports import Probe
from api.core.text import clean_query, unescape, web_url
from api.errors import Broken, RateLimited, SourceError
from api.features.analyses.store_ports import SourceMemory
from api.settings import SourceSettings
from api.sources.item_fields import (
    IMPLAUSIBLE,
    entries,
    is_said,
    moment,
    plausible,
    pseudonym,
    record,
    seen,
    whole,
    why_unfit,
)
from api.sources.keyless_source import KeylessSource, listed, readable, whole_ones
from api.sources.markup import words_of_html
from api.sources.paging import Page, window_start
from api.sources.source_specs import HACKERNEWS_NAME
from api.sources.web_client import Limit, Reply

PAGE = 100
"""Hits of one request; one holds what a refetch of most depths needs."""
BEGAN = datetime(2006, 10, 1, tzinfo=UTC)
"""The month of the first stories."""
SITE = "https://news.ycombinator.com/item?id="
# Hits that a search gives at most: https://github.com/algolia/hn-search/issues/230
_DEEPEST = 1_000
# What is searched; by default names of authors are, too.
_TEXTS = "title,url,story_text,comment_text"


def build(settings: SourceSettings, memory: SourceMemory | None = None) -> HackerNewsSource:
    """The source; asks nothing. `memory` keeps pages between runs."""
    return HackerNewsSource(settings, [settings.hackernews_url], memory)


class HackerNewsSource(KeylessSource):
    """Stories and comments; see `Source` for the contract."""

    name = HACKERNEWS_NAME
    address = "HACKERNEWS_URL"
    limits = (Limit(10_000, 3_600),)

    async def _search(self, plan: FetchPlan, cursor: str | None) -> Page:
        number, start = int(cursor or 0), window_start(plan.window)
        params: dict[str, str | int] = {
            "query": clean_query(plan.query),
            "tags": "(story,comment)",
            "hitsPerPage": PAGE,
            "page": number,
            "typoTolerance": "false",  # else `humanoid` finds `human` and `android`
            "restrictSearchableAttributes": _TEXTS,
        }
        if start is not None:
            params["numericFilters"] = f"created_at_i>={int(start.timestamp())}"
        answer = record(await self._ask("/api/v1/search", params, search=True))
        hits = readable(HACKERNEWS_NAME, listed(HACKERNEWS_NAME, answer, "hits"), _item)
        pages = min(whole(answer.get("nbPages")) or 0, _DEEPEST // PAGE)
        return Page(hits, str(number + 1) if hits and number + 1 < pages else None)

    async def _commented(self, item: Item) -> Item:
        """With the replies in the thread's order: comments have no votes that anybody sees."""
        answer = record(await self._ask(f"/api/v1/items/{item.id}"))
        listed(HACKERNEWS_NAME, answer, "children")
        read = whole_ones(
            HACKERNEWS_NAME, _below(answer), lambda reply: bool(whole(reply.get("id")))
        )
        comments = (comment for reply in read if (comment := _comment(reply)) is not None)
        return replace(item, comments=tuple(comments)[: self._most])

    async def _probed(self) -> Probe:
        params: dict[str, str | int] = {"query": "product", "hitsPerPage": 1}
        await self._ask("/api/v1/search", params, search=True)
        left = self._pace(self._roots[0]).left
        return Probe("ok", f"{left:,} of {self.limits[0].requests:,} requests an hour left to us")

    def _failure(self, reply: Reply) -> SourceError | None:
        """Past its last hit, and when asked too often, it says so in words."""
        message = record(reply.data).get("message")
        if reply.status == 200 and isinstance(message, str) and not record(reply.data).get("hits"):
            return Broken(HACKERNEWS_NAME, "asked for more hits than it gives")
        if reply.status == 403 and not reply.html:
            return RateLimited(HACKERNEWS_NAME, "HTTP 403", retry_at=reply.wait)
        return None


def _item(hit: object) -> Item | None:
    """A story or a comment; None for what lacks id or texts."""
    fields = record(hit)
    id_, of_comment = str(fields.get("objectID") or ""), fields.get("comment_text") is not None
    title = fields.get("story_title" if of_comment else "title")
    if not id_.isdigit() or not isinstance(title, str):
        return None
    texts = unescape(title), words_of_html(fields.get("comment_text") or fields.get("story_text"))
    created = plausible(moment(fields.get("created_at_i")), BEGAN)
    points = {"points": whole(fields.get("points"))}
    return Item(
        key=f"{HACKERNEWS_NAME}:{id_}",
        id=id_,
        source=HACKERNEWS_NAME,
        title=seen(texts[0]),
        body=seen(texts[1]),
        url=f"{SITE}{id_}",
        author=pseudonym("hn", fields.get("author")),
        created_at=created,
        engagement={} if of_comment else points | {"comments": whole(fields.get("num_comments"))},
        thread=f"{HACKERNEWS_NAME}:{whole(fields.get('story_id')) or id_}" if of_comment else "",
        link="" if of_comment else web_url(fields.get("url")),
        notes=() if created else (IMPLAUSIBLE,),
        unfit=why_unfit(texts[1] if of_comment else texts[0], texts[1]),
    )


def _below(answer: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Every reply at any depth, those to the item itself first."""
    queue = [answer]
    for branch in queue:
        replies = [record(child) for child in entries(branch.get("children"))]
        queue += replies
        yield from replies


def _comment(fields: Mapping[str, Any]) -> Comment | None:
    """A reply; None where it was deleted or says nothing."""
    text, id_ = words_of_html(fields.get("text")), whole(fields.get("id"))
    if not is_said(text):
        return None
    return Comment(
        id=str(id_),
        body=text,
        url=f"{SITE}{id_}",
        author=pseudonym("hn", fields.get("author")),
        created_at=plausible(moment(fields.get("created_at_i")), BEGAN),
    )
