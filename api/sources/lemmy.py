"""Lemmy through one of its servers: 0.19 by `/api/v3`, 1.0 by `/api/v4`, which page differently.

A search looks for the words in their order, as parts of words, and ranks by votes: the shorter the
query, the more is found. Posts and comments are two requests.

What Lemmy's answers mean, of 0.19 and of 1.0: posts and comments as items and comments.

The two differ in names: `actor_id` became `ap_id`, `published` became `published_at`, and counts
moved into what they count.
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
from api.core.domain import Comment, FetchPlan, Item
from api.core.ports import Probe
from api.core.progress import Listener
from api.core.text import clean, clean_query, one_line, web_url
from api.core.work import SharedTasks
from api.errors import Blocked, Broken, RateLimited, Refused, SourceError
from api.features.analyses.store_ports import SourceMemory
from api.pipeline.gate.drop_reasons import BY_BOT, REMOVED
from api.settings import SourceSettings
from api.sources.item_fields import (
    IMPLAUSIBLE,
    is_said,
    is_text,
    left,
    moment,
    plausible,
    pseudonym,
    record,
    seen,
    whole,
    why_unfit,
)
from api.sources.keyless_source import KeylessSource, joined, listed, of_each, readable, whole_ones
from api.sources.markup import words_of_markdown
from api.sources.paging import Page, window_start
from api.sources.source_specs import LEMMY_NAME
from api.sources.web_client import Limit, Reply, host_of


def post_of(entry: object) -> Item | None:
    """A post; None for what lacks id, address or title."""
    fields = record(record(entry).get("post"))
    if not _is_whole(fields) or not is_text(fields.get("name")):
        return None
    texts = clean(fields.get("name")), words_of_markdown(fields.get("body"))
    return _item(entry, fields, texts, ("score", "comments"), unfit=why_unfit(*texts))


def comment_hit_of(entry: object) -> Item | None:
    """A comment under its post's title; None for what lacks ids, addresses or texts."""
    fields, post = record(record(entry).get("comment")), record(record(entry).get("post"))
    if not (_is_whole(fields) and is_text(fields.get("content")) and is_text(post.get("name"))):
        return None
    texts = clean(post.get("name")), words_of_markdown(fields.get("content"))
    unfit, thread = why_unfit(texts[1]), f"{LEMMY_NAME}:{web_url(post.get('ap_id'))}"
    return _item(entry, fields, texts, ("score",), unfit=unfit, thread=thread)


def comment_of(entry: object) -> Comment | None:
    """What somebody said; None where it was removed, says nothing, or a program wrote it."""
    fields = record(record(entry).get("comment"))
    text = words_of_markdown(fields.get("content"))
    creator = record(record(entry).get("creator"))
    if _is_gone(fields) or creator.get("bot_account") is True or not is_said(left(text)):
        return None
    return Comment(
        id=str(whole(fields.get("id"))),
        body=text,
        url=web_url(fields.get("ap_id")),
        author=_author(creator),
        created_at=plausible(_moment(fields)),
        engagement={"score": _count(entry, fields, "score")},
    )


def is_comment(entry: object) -> bool:
    """Whether an entry has the fields of a comment that are read."""
    fields = record(record(entry).get("comment"))
    return _is_whole(fields) and is_text(fields.get("content"))


def _item(
    entry: object,
    fields: Mapping[str, Any],
    texts: tuple[str, str],
    counts: tuple[str, ...],
    *,
    unfit: str,
    thread: str = "",
) -> Item:
    creator, community = (record(record(entry).get(name)) for name in ("creator", "community"))
    if creator.get("bot_account") is True:
        unfit = BY_BOT
    address, created = web_url(fields.get("ap_id")), plausible(_moment(fields))
    return Item(
        key=f"{LEMMY_NAME}:{address}",
        id=str(whole(fields.get("id"))),
        source=LEMMY_NAME,
        title=seen(texts[0]),
        body=left(texts[1]),
        url=address,
        author=_author(creator),
        created_at=created,
        engagement={name: _count(entry, fields, name) for name in counts},
        place=_place(community),
        thread=thread,
        link="" if thread else web_url(fields.get("url")),
        notes=() if created else (IMPLAUSIBLE,),
        unfit=REMOVED if _is_gone(fields) else unfit,
    )


def _is_whole(fields: Mapping[str, Any]) -> bool:
    return whole(fields.get("id")) is not None and bool(web_url(fields.get("ap_id")))


def _is_gone(fields: Mapping[str, Any]) -> bool:
    return fields.get("removed") is True or fields.get("deleted") is True


def _moment(fields: Mapping[str, Any]) -> Any:
    return moment(fields.get("published_at") or fields.get("published"))


def _count(entry: object, fields: Mapping[str, Any], name: str) -> int | None:
    """A count, which 1.0 has in the post or comment itself."""
    beside = record(record(entry).get("counts"))
    return whole(fields.get(name) if name in fields else beside.get(name))


def _author(creator: Mapping[str, Any]) -> str | None:
    return pseudonym("lemming", creator.get("ap_id"), creator.get("actor_id"), creator.get("name"))


def _place(community: Mapping[str, Any]) -> str | None:
    """`gadgets@lemmy.world`; without the server where its address says none."""
    name = one_line(clean(community.get("name")))
    address = web_url(community.get("ap_id")) or web_url(community.get("actor_id"))
    return "@".join(filter(None, (name, host_of(address)))) if name else None


PAGE = 50
"""Posts, and comments, of one request: the most there is."""
# The last page that 0.19 gives.
_LAST = 100
# Seconds for which a server's version is remembered, and one that nobody knows.
_DAY, _DOUBT = 86_400, 600
Api = Literal["v3", "v4"]
Kind = Literal["posts", "comments"]
_READERS = {"posts": post_of, "comments": comment_hit_of}
# Order and window of 0.19 in one.
_TOPS: Mapping[Window, str] = {
    "day": "TopDay", "week": "TopWeek", "month": "TopMonth", "year": "TopYear", "all": "TopAll",
}  # fmt: skip
COARSE = "its server counts a {window} by the calendar; posts of its first day may be missing"
NEWEST = "its server takes no window for comments; they are the newest that hold the words"
UNKNOWN = "its server names no version that is known and was asked as Lemmy 0.19"


def build(settings: SourceSettings, memory: SourceMemory | None = None) -> LemmySource:
    """The source; asks nothing. `memory` keeps pages between runs."""
    return LemmySource(settings, [settings.lemmy_url], memory)


@dataclass(slots=True)
class Version:
    """What a server speaks, once it was asked."""

    api: Api = "v3"
    note: str = ""
    until: float = 0.0
    """When it is asked again, on the monotonic clock; what runs may be updated."""


@cache
def version_of(root: str) -> Version:
    """The one of a server in this process."""
    return Version()


class LemmySource(KeylessSource):
    """Posts and comments; see `Source` for the contract."""

    name = LEMMY_NAME
    address = "LEMMY_URL"
    limits = (Limit(60, 600),)
    phrases = False

    def __init__(
        self, settings: SourceSettings, roots: list[str], memory: SourceMemory | None = None
    ) -> None:
        """See `KeylessSource`."""
        super().__init__(settings, roots, memory)
        self._asking: SharedTasks[str, Version] = SharedTasks()

    def _worded(self, plan: FetchPlan) -> FetchPlan:
        """The product's name alone: each word more must stand behind it in the same text."""
        words = (plan.name or plan.query).replace('"', " ")
        return replace(plan, query=clean_query(words))

    async def _search(self, plan: FetchPlan, cursor: str | None) -> Page:
        """Posts and comments, the best of each in turn; 1.0 gives each an own cursor."""
        spoken = await self._version()
        cursors: dict[str, str | None] = json.loads(cursor) if cursor else dict.fromkeys(_READERS)

        async def of_kind(kind: str) -> tuple[tuple[Item | None, ...], str | None]:
            if spoken.api == "v4":
                return await self._of_1_0(plan, kind, cursors[kind])
            return await self._of_0_19(plan, kind, int(cursors[kind] or 1))

        answers, failures = await of_each(tuple(cursors), of_kind)
        further = {kind: following for kind, (_, following) in answers.items() if following}
        notes = [spoken.note] if spoken.note else []
        if spoken.api == "v3" and plan.window != "all":
            notes += [COARSE.format(window=plan.window)] if plan.window in ("month", "year") else []
            notes.append(NEWEST)
        following = json.dumps(further) if further else None
        page = joined((slots for slots, _ in answers.values()), following, failures)
        return replace(page, notes=(*notes, *page.notes))

    async def _of_0_19(
        self, plan: FetchPlan, kind: str, number: int
    ) -> tuple[tuple[Item | None, ...], str | None]:
        """A page and the number of the next; comments know votes or time, no window."""
        newest = kind == "comments" and plan.window != "all"
        answer = await self._ask(
            "/api/v3/search",
            {
                "q": plan.query,
                "type_": kind.capitalize(),
                "listing_type": "All",
                "sort": "New" if newest else _TOPS[plan.window],
                "limit": PAGE,
                "page": number,
            },
            search=True,
        )
        hits = listed(LEMMY_NAME, answer, kind)
        more = len(hits) >= PAGE and number < _LAST
        return readable(LEMMY_NAME, hits, _READERS[kind]), str(number + 1) if more else None

    async def _of_1_0(
        self, plan: FetchPlan, kind: str, cursor: str | None
    ) -> tuple[tuple[Item | None, ...], str | None]:
        """A page and the cursor of the next, within the window to the second."""
        start = window_start(plan.window)
        params: dict[str, str | int] = {"search_term": plan.query, "type_": kind, "limit": PAGE}
        if start is not None:
            params["time_range_seconds"] = int((datetime.now(UTC) - start).total_seconds())
        if cursor:
            params["page_cursor"] = cursor
        answer = await self._ask("/api/v4/search", params, search=True)
        hits, following = (
            listed(LEMMY_NAME, answer, "items", "search", "results"),
            answer.get("next_page"),
        )
        more = hits and isinstance(following, str) and following != cursor
        return readable(LEMMY_NAME, hits, _READERS[kind]), following if more else None

    async def _commented(self, item: Item) -> Item:
        """With the best voted comments of the post, or the replies to the comment."""
        v4 = (await self._version()).api == "v4"
        params: dict[str, str | int] = {
            "parent_id" if item.thread else "post_id": item.id,
            "sort": "top" if v4 else "Top",
            "type_": "all" if v4 else "All",
            "limit": PAGE,
        }
        answer = await self._ask(f"/api/{'v4' if v4 else 'v3'}/comment/list", params)
        read = whole_ones(LEMMY_NAME, listed(LEMMY_NAME, answer, "comments", "items"), is_comment)
        comments = map(comment_of, read)
        others = [each for each in comments if each is not None and each.url != item.url]
        return replace(item, comments=tuple(others)[: self._most])

    async def _probed(self) -> Probe:
        spoken = await self._version()
        plan = FetchPlan("product", 1)
        if spoken.api == "v4":
            await self._of_1_0(plan, "posts", None)
        else:
            await self._of_0_19(plan, "posts", 1)
        left = f"{self._pace(self._roots[0]).left} of {self.limits[0].requests} searches in 10 min"
        return Probe("ok", "; ".join(filter(None, (f"{left} left to us", spoken.note))))

    def _failure(self, reply: Reply) -> SourceError | None:
        """0.19 says of a limit, and of a login that is needed, as of a mistake of ours."""
        fault = one_line(clean(record(reply.data).get("error")))
        if reply.status == 400 and fault == "rate_limit_error":
            return RateLimited(LEMMY_NAME, "its limit is reached", retry_at=reply.wait)
        if reply.status == 400 and fault == "instance_is_private":
            return Refused(LEMMY_NAME, "its server is for members alone")
        return None

    async def _version(self) -> Version:
        """What the server speaks; asked once a day in this process, sooner if nobody knows it."""
        spoken = version_of(self._roots[0])
        if time.monotonic() >= spoken.until:
            return await self._asking.share(self._roots[0], self._introduced)
        return spoken

    async def _introduced(self, listener: Listener) -> Version:
        """Ask for the version; what names none that is known is taken for 0.19.

        Raises:
            SourceError: the server cannot be reached, or lets nobody in.
        """
        number = ""
        for path, place in (("/nodeinfo/2.1", "software"), ("/api/v3/site", "")):
            try:
                answer = record(await self._ask(path))
            except (Broken, Refused):
                continue
            except Blocked:
                if place:  # perhaps a page for want of that address: the other one tells a wall
                    continue
                raise
            about = record(answer.get(place)) if place else answer
            if about.get("name", LEMMY_NAME) == LEMMY_NAME and (
                number := clean(about.get("version"))
            ):
                break
        spoken = version_of(self._roots[0])
        head = number.partition(".")[0]
        spoken.note = "" if head in {"0", "1"} else UNKNOWN
        spoken.api = "v4" if head == "1" else "v3"
        spoken.until = time.monotonic() + (_DOUBT if spoken.note else _DAY)
        return spoken
