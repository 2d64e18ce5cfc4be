"""Lemmy through one of its servers: 0.19 by `/api/v3`, 1.0 by `/api/v4`, which page differently.

A search looks for the words in their order, as parts of words, and ranks by votes: the shorter the
query, the more is found. Posts and comments are two requests. The two versions differ in names:
`actor_id` became `ap_id`, `published` became `published_at`, and counts moved into what they count.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from typing import Any, Literal

from api.choices import Window
from api.core.domain import BY_BOT, REMOVED, FetchPlan
from api.core.items import Comment, Item, pseudonym
from api.core.ports import Probe
from api.core.progress import Listener
from api.core.text import clean, one_line, web_url
from api.core.work import SharedTasks
from api.errors import Blocked, Broken, RateLimited, Refused, SourceError
from api.features.analyses.store_ports import SourceMemory
from api.settings import SourceSettings
from api.sources.item_fields import (
    as_dict,
    as_int,
    is_text,
    make_item,
    says_something,
    time_since,
    undeleted_text,
    unfit_reason,
)
from api.sources.json_source import JsonSource, Slots, ask_each, interleaved
from api.sources.markup import words_of_markdown
from api.sources.searched_source import Page, window_start
from api.sources.web_client import Limit, Reply, host_of

NAME = "lemmy"
PAGE = 50
"""Posts, and comments, of one request: the most there is."""
# the last page that 0.19 gives
_LAST_PAGE = 100
# seconds for which a server's version is kept, and an unknown version
_DAY, _UNKNOWN_FOR = 86_400, 600
# order and window of 0.19 in one
_TOPS: Mapping[Window, str] = {
    "day": "TopDay", "week": "TopWeek", "month": "TopMonth", "year": "TopYear", "all": "TopAll",
}  # fmt: skip
COARSE = "its server counts a {window} by the calendar; posts of its first day may be missing"
NEWEST = "its server takes no window for comments; they are the newest that hold the words"
UNKNOWN = "its server names no version that is known and was asked as Lemmy 0.19"


@dataclass(slots=True)
class Version:
    """API version of a server; `v3` while it is unknown."""

    api: Literal["v3", "v4"] = "v3"
    note: str = ""
    until: float = 0.0
    """When the version is requested again, on the monotonic clock, since a server may be updated."""


@cache
def version_of(root: str) -> Version:
    """The version of a server, one object in this process."""
    return Version()


class LemmySource(JsonSource):
    """Searches posts and comments of Lemmy servers."""

    name = NAME
    limits = (Limit(60, 600),)
    phrases = False

    def __init__(self, settings: SourceSettings, memory: SourceMemory | None = None) -> None:
        super().__init__(settings, memory)
        self._asking: SharedTasks[str, Version] = SharedTasks()

    async def _search(self, plan: FetchPlan, cursor: str | None) -> Page:
        """Posts and comments, the best of each in turn; each kind has its own cursor."""
        version = await self._version()
        cursors: dict[str, str | None] = json.loads(cursor) if cursor else dict.fromkeys(_READERS)

        async def of_kind(kind: str) -> tuple[Slots, str | None]:
            if version.api == "v4":
                return await self._of_1_0(plan, kind, cursors[kind])
            return await self._of_0_19(plan, kind, int(cursors[kind] or 1))

        answers, failures = await ask_each(tuple(cursors), of_kind)
        further = {kind: following for kind, (_, following) in answers.items() if following}
        notes = [version.note] if version.note else []
        if version.api == "v3" and plan.window != "all":
            notes += [COARSE.format(window=plan.window)] if plan.window in ("month", "year") else []
            notes.append(NEWEST)
        following = json.dumps(further) if further else None
        page = interleaved((slots for slots, _ in answers.values()), following, failures)
        return replace(page, notes=(*notes, *page.notes))

    async def _of_0_19(self, plan: FetchPlan, kind: str, number: int) -> tuple[Slots, str | None]:
        """A page and the number of the next; comments know votes or time, no window."""
        newest = kind == "comments" and plan.window != "all"
        params: dict[str, str | int] = {
            "q": plan.query, "type_": kind.capitalize(), "listing_type": "All",
            "sort": "New" if newest else _TOPS[plan.window], "limit": PAGE, "page": number,
        }  # fmt: skip
        hits = self._list(await self._ask("/api/v3/search", params, search=True), kind)
        more = len(hits) >= PAGE and number < _LAST_PAGE
        return self._slots(hits, _READERS[kind]), str(number + 1) if more else None

    async def _of_1_0(self, plan: FetchPlan, kind: str, cursor: str | None) -> tuple[Slots, str | None]:
        """A page and the cursor of the next, within the window to the second."""
        start = window_start(plan.window)
        params: dict[str, str | int] = {"search_term": plan.query, "type_": kind, "limit": PAGE}
        if start is not None:
            params["time_range_seconds"] = int((datetime.now(UTC) - start).total_seconds())
        if cursor:
            params["page_cursor"] = cursor
        answer = await self._ask("/api/v4/search", params, search=True)
        hits, following = self._list(answer, "items", "search", "results"), answer.get("next_page")
        more = hits and isinstance(following, str) and following != cursor
        return self._slots(hits, _READERS[kind]), following if more else None

    async def _commented(self, item: Item) -> Item:
        api = (await self._version()).api
        params: dict[str, str | int] = {
            "parent_id" if item.thread else "post_id": item.id,
            "sort": "top" if api == "v4" else "Top",
            "type_": "all" if api == "v4" else "All",
            "limit": PAGE,
        }
        answer = await self._ask(f"/api/{api}/comment/list", params)
        complete = self._complete(self._list(answer, "comments", "items"), _is_comment)
        others = (entry for entry in complete if _address(entry, "comment") != item.url)
        return self._with_comments(item, others, comment_of)

    async def _probed(self) -> Probe:
        version, plan = await self._version(), FetchPlan("product", 1)
        if version.api == "v4":
            await self._of_1_0(plan, "posts", None)
        else:
            await self._of_0_19(plan, "posts", 1)
        left = f"{self._pace(self._roots[0]).left} of {self.limits[0].requests} searches in 10 min"
        return Probe("ok", "; ".join(filter(None, (f"{left} left to us", version.note))))

    def _failure(self, reply: Reply) -> SourceError | None:
        # 0.19 answers 400 as to a mistake of ours
        fault = one_line(clean(as_dict(reply.data).get("error"))) if reply.status == 400 else ""
        if fault == "rate_limit_error":
            return RateLimited(NAME, "its limit is reached", retry_at=reply.wait)
        if fault == "instance_is_private":
            return Refused(NAME, "its server is for members alone")
        return None

    async def _version(self) -> Version:
        """The server's version; asked for once a day in this process, sooner if it is unknown."""
        version = version_of(self._roots[0])
        if time.monotonic() >= version.until:
            return await self._asking.share(self._roots[0], self._read_version)
        return version

    async def _read_version(self, listener: Listener) -> Version:
        """Ask for the version; a server without a known one is taken for 0.19."""
        number = ""
        for path, place in (("/nodeinfo/2.1", "software"), ("/api/v3/site", "")):
            try:
                answer = as_dict(await self._ask(path))
            except (Broken, Refused):
                continue
            except Blocked:
                if place:  # perhaps a page for want of that address: the other one tells a wall
                    continue
                raise
            about = as_dict(answer.get(place)) if place else answer
            number = clean(about.get("version")) if about.get("name", NAME) == NAME else ""
            if number:
                break
        version, major = version_of(self._roots[0]), number.partition(".")[0]
        version.note = "" if major in {"0", "1"} else UNKNOWN
        version.api = "v4" if major == "1" else "v3"
        version.until = time.monotonic() + (_UNKNOWN_FOR if version.note else _DAY)
        return version


build = LemmySource


def post_of(entry: object) -> Item | None:
    """A post; None when id, address or title is missing."""
    fields = as_dict(as_dict(entry).get("post"))
    if not _is_complete(fields) or not is_text(fields.get("name")):
        return None
    title, body = clean(fields.get("name")), words_of_markdown(fields.get("body"))
    return _item(
        entry, "post", title, body,
        counts=("score", "comments"), link=web_url(fields.get("url")),
        unfit=unfit_reason(title, body),
    )  # fmt: skip


def comment_hit_of(entry: object) -> Item | None:
    """A comment under its post's title; None when ids, addresses or texts are missing."""
    post = as_dict(as_dict(entry).get("post"))
    if not _is_comment(entry) or not is_text(post.get("name")):
        return None
    body = words_of_markdown(as_dict(as_dict(entry).get("comment")).get("content"))
    return _item(
        entry, "comment", clean(post.get("name")), body,
        counts=("score",), thread=f"{NAME}:{_address(entry, 'post')}", unfit=unfit_reason(body),
    )  # fmt: skip


_READERS = {"posts": post_of, "comments": comment_hit_of}


def _item(entry: object, kind: str, title: str, body: str, *, counts: tuple[str, ...], **known: Any) -> Item:
    fields, creator, community = (as_dict(as_dict(entry).get(name)) for name in (kind, "creator", "community"))
    if creator.get("bot_account") is True:
        known["unfit"] = BY_BOT
    if _is_gone(fields):
        known["unfit"] = REMOVED
    # `gadgets@lemmy.world`; without the server where its address says none
    name = one_line(clean(community.get("name")))
    server = host_of(web_url(community.get("ap_id")) or web_url(community.get("actor_id")))
    address = _address(entry, kind)
    return make_item(
        NAME, address, title, undeleted_text(body), _time(fields),
        id=str(as_int(fields.get("id"))),
        url=address,
        author=_author(creator),
        engagement={name: _count(entry, fields, name) for name in counts},
        place="@".join(filter(None, (name, server))) if name else None,
        **known,
    )  # fmt: skip


def comment_of(entry: object) -> Comment | None:
    """A comment; None when it was removed, has no words, or is by a bot."""
    fields, creator = (as_dict(as_dict(entry).get(name)) for name in ("comment", "creator"))
    text = words_of_markdown(fields.get("content"))
    is_bot = creator.get("bot_account") is True
    if _is_gone(fields) or is_bot or not says_something(undeleted_text(text)):
        return None
    return Comment(
        id=str(as_int(fields.get("id"))), body=text, url=web_url(fields.get("ap_id")),
        author=_author(creator), created_at=_time(fields),
        engagement={"score": _count(entry, fields, "score")},
    )  # fmt: skip


def _is_comment(entry: object) -> bool:
    fields = as_dict(as_dict(entry).get("comment"))
    return _is_complete(fields) and is_text(fields.get("content"))


def _is_complete(fields: Mapping[str, Any]) -> bool:
    return as_int(fields.get("id")) is not None and bool(web_url(fields.get("ap_id")))


def _is_gone(fields: Mapping[str, Any]) -> bool:
    return fields.get("removed") is True or fields.get("deleted") is True


def _address(entry: object, kind: str) -> str:
    return web_url(as_dict(as_dict(entry).get(kind)).get("ap_id"))


def _time(fields: Mapping[str, Any]) -> datetime | None:
    return time_since(fields.get("published_at") or fields.get("published"))


def _count(entry: object, fields: Mapping[str, Any], name: str) -> int | None:
    beside = as_dict(as_dict(entry).get("counts"))  # of 0.19
    return as_int(fields.get(name) if name in fields else beside.get(name))


def _author(creator: Mapping[str, Any]) -> str | None:
    return pseudonym("lemming", creator.get("ap_id"), creator.get("actor_id"), creator.get("name"))
