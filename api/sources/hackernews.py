"""Hacker News through Algolia's search of it: stories, and comments under their stories' titles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from api.core.domain import FetchPlan
from api.core.items import Comment, Item, pseudonym
from api.core.ports import Probe
from api.core.text import clean_query, unescape, web_url
from api.errors import Broken, RateLimited, SourceError
from api.sources.item_fields import as_dict, as_int, as_list, make_item, says_something, time_since, unfit_reason
from api.sources.json_source import JsonSource
from api.sources.markup import words_of_html
from api.sources.searched_source import Page, window_start
from api.sources.web_client import Limit, Reply

NAME = "hackernews"
# the month of the first stories
BEGAN = datetime(2006, 10, 1, tzinfo=UTC)
SITE = "https://news.ycombinator.com/item?id="
PAGE = 100
"""Hits of one request; one holds what a refetch of most depths needs."""
# hits that a search gives at most: https://github.com/algolia/hn-search/issues/230
_MAX_HITS = 1_000
# by default names of authors are searched, too
_SEARCHED_FIELDS = "title,url,story_text,comment_text"


class HackerNewsSource(JsonSource):
    """Searches stories and comments of Hacker News."""

    name = NAME
    limits = (Limit(10_000, 3_600),)

    async def _search(self, plan: FetchPlan, cursor: str | None) -> Page:
        number, start = int(cursor or 0), window_start(plan.window)
        params: dict[str, str | int] = {
            "query": clean_query(plan.query), "tags": "(story,comment)",
            "hitsPerPage": PAGE, "page": number,
            "typoTolerance": "false",  # else `humanoid` finds `human` and `android`
            "restrictSearchableAttributes": _SEARCHED_FIELDS,
        }  # fmt: skip
        if start is not None:
            params["numericFilters"] = f"created_at_i>={int(start.timestamp())}"
        answer = as_dict(await self._ask("/api/v1/search", params, search=True))
        hits = self._slots(self._list(answer, "hits"), _item)
        pages = min(as_int(answer.get("nbPages")) or 0, _MAX_HITS // PAGE)
        return Page(hits, str(number + 1) if hits and number + 1 < pages else None)

    async def _commented(self, item: Item) -> Item:
        """The item with the replies in the thread's order, since comments have no public votes."""
        answer = as_dict(await self._ask(f"/api/v1/items/{item.id}"))
        self._list(answer, "children")
        replies = self._complete(_replies(answer), lambda reply: bool(as_int(reply.get("id"))))
        return self._with_comments(item, replies, _comment)

    async def _probed(self) -> Probe:
        params: dict[str, str | int] = {"query": "product", "hitsPerPage": 1}
        await self._ask("/api/v1/search", params, search=True)
        left = self._pace(self._roots[0]).left
        return Probe("ok", f"{left:,} of {self.limits[0].requests:,} requests an hour left to us")

    def _failure(self, reply: Reply) -> SourceError | None:
        answer = as_dict(reply.data)
        if reply.status == 200 and isinstance(answer.get("message"), str) and not answer.get("hits"):
            return Broken(NAME, "asked for more hits than it gives")
        if reply.status == 403 and not reply.html:  # its answer to too many requests
            return RateLimited(NAME, "HTTP 403", retry_at=reply.wait)
        return None


build = HackerNewsSource


def _item(hit: object) -> Item | None:
    """A story or a comment; None when id or title is missing."""
    fields = as_dict(hit)
    id_, is_comment = str(fields.get("objectID") or ""), fields.get("comment_text") is not None
    title = fields.get("story_title" if is_comment else "title")
    if not id_.isdigit() or not isinstance(title, str):
        return None
    body = words_of_html(fields.get("comment_text") or fields.get("story_text"))
    counts = {
        "points": as_int(fields.get("points")),
        "comments": as_int(fields.get("num_comments")),
    }
    return make_item(
        NAME, id_, unescape(title), body, time_since(fields.get("created_at_i"), BEGAN),
        id=id_,
        url=f"{SITE}{id_}",
        author=pseudonym("hn", fields.get("author")),
        engagement={} if is_comment else counts,
        thread=f"{NAME}:{as_int(fields.get('story_id')) or id_}" if is_comment else "",
        link="" if is_comment else web_url(fields.get("url")),
        unfit=unfit_reason(body) if is_comment else "",
    )  # fmt: skip


def _replies(answer: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    queue = [answer]
    for branch in queue:
        replies = [as_dict(child) for child in as_list(branch.get("children"))]
        queue += replies
        yield from replies


def _comment(fields: Mapping[str, Any]) -> Comment | None:
    text, id_ = words_of_html(fields.get("text")), as_int(fields.get("id"))
    if not says_something(text):
        return None
    return Comment(
        id=str(id_), body=text, url=f"{SITE}{id_}", author=pseudonym("hn", fields.get("author")),
        created_at=time_since(fields.get("created_at_i"), BEGAN),
    )  # fmt: skip
