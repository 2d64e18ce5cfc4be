"""Stack Exchange through its API 2.3: questions of several sites, and their answers.

What people wrote there is CC BY-SA: authors keep their names, see docs/decisions/0008.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from api.core.domain import BY_BOT, FetchPlan
from api.core.items import Comment, Commented, Item
from api.core.ports import Probe
from api.core.text import clean, clean_query, one_line, unescape, web_url
from api.errors import Broken, NotConfigured, QuotaExhausted, RateLimited, Refused, SourceError, Unreachable
from api.features.analyses.store_ports import SourceMemory
from api.settings import SourceSettings
from api.sources import setting_value
from api.sources.item_fields import as_dict, as_int, as_number, make_item, says_something, time_since
from api.sources.json_source import JsonSource, Slots, ask_each, failure_notes, page_of_parts
from api.sources.markup import words_of_html
from api.sources.searched_source import Page, read_each, window_start
from api.sources.web_client import Limit, Pace, Reply, pace_of

NAME = "stackexchange"
SITES_SETTING = "LISTENPOST_STACKEXCHANGE_SITES"
# the month of the first questions
BEGAN = datetime(2008, 7, 1, tzinfo=UTC)
PAGE = 100
"""Questions of one request, and ids in one: the most there is."""
# seconds; a longer wait is not for going too fast but for the end of the day (UTC)
_LONG_WAIT, _DAY = 3_600, 86_400
# the user id of the sites' own program
_COMMUNITY_USER = -1
# `too many requests from this IP, more requests available in 17524 seconds`
_AVAILABLE = re.compile(r"available in (\d{1,6}) second")
_REFUSALS = frozenset("access_denied access_token_required invalid_access_token key_required".split())


class StackExchangeSource(JsonSource):
    """Searches Stack Exchange sites for questions and reads their answers."""

    name = NAME
    # half of the 30 a second for which an address is blocked; answers have the other half
    limits = (Limit(15, 1),)

    def __init__(self, settings: SourceSettings, memory: SourceMemory | None = None) -> None:
        self._sites = settings.sites
        key = setting_value(settings, "LISTENPOST_STACKEXCHANGE_KEY")
        self._key = {"key": key} if key else {}
        super().__init__(settings, memory, parts=self._sites)

    async def _with_comments_of(self, items: Sequence[Item]) -> Commented:
        """The items with their answers; one request for each site."""
        requests = {
            site: asyncio.ensure_future(self._answers([item for item in items if item.place == site]))
            for site in dict.fromkeys(item.place for item in items)
        }

        async def read(item: Item) -> Item:
            return item.edited(comments=(await requests[item.place])[item.key])

        try:  # all at once, since they wait for the same few answers
            parallel = max(len(items), 2)
            return await read_each(items, read, parallel=parallel, stops=self.stops, what="answers")
        finally:
            for request in requests.values():
                request.cancel()

    async def _search(self, plan: FetchPlan, cursor: str | None) -> Page:
        """A page of each site that has one; their first questions come first, then the seconds."""
        start = window_start(plan.window)
        params: dict[str, str | int] = {
            "q": clean_query(plan.query), "sort": "relevance", "order": "desc",
            "pagesize": PAGE, "filter": "withbody",
        }  # fmt: skip
        if start is not None:
            params["fromdate"] = int(start.timestamp())

        async def of_site(site: str, number: int) -> tuple[Slots, bool]:
            path, paged = "/2.3/search/advanced", {**params, "page": number}
            answer = await self._of_site(site, path, paged, search=True)
            slots = self._slots(answer["items"], lambda entry: _question(entry, site))
            return slots, answer.get("has_more") is True

        return await page_of_parts(cursor, self._sites, of_site)

    async def _commented(self, item: Item) -> Item:
        return item.edited(comments=(await self._answers([item]))[item.key])

    async def _probed(self) -> Probe:
        async def of_site(site: str) -> Mapping[str, Any]:
            return await self._of_site(site, "/2.3/info", {}, search=True)

        answers, failures = await ask_each(self._sites, of_site)
        rows, notes = answers.values(), failure_notes(failures)
        counts = [(as_int(row.get("quota_remaining")), as_int(row.get("quota_max"))) for row in rows]
        known = [(left, most) for left, most in counts if left is not None and most is not None]
        if not known:
            return Probe("ok", "; ".join(notes))
        left, most = min(known)
        if not left:
            raise QuotaExhausted(NAME, "no requests left today")
        return Probe("ok", "; ".join((f"{left:,} of {most:,} requests left today", *notes)))

    async def _answers(self, items: Sequence[Item]) -> Mapping[str, tuple[Comment, ...]]:
        """The best voted answers by item key, a request per 100 questions, which share one page."""
        answers: list[Any] = []
        for first in range(0, len(items), PAGE):
            ids = ";".join(item.id for item in items[first : first + PAGE])
            params: dict[str, str | int] = {
                "sort": "votes", "order": "desc", "pagesize": PAGE, "filter": "withbody",
            }  # fmt: skip
            path, pace = f"/2.3/questions/{ids}/answers", self._answers_pace
            answers += (await self._of_site(items[0].place or "", path, params, pace=pace))["items"]
        complete = self._complete(answers, lambda answer: bool(as_int(answer.get("answer_id"))) and "body" in answer)
        comments: dict[str, list[Comment]] = {item.key: [] for item in items}
        for item in items:
            own = (row for row in complete if str(as_int(row.get("question_id"))) == item.id)
            comments[item.key] += filter(None, (_answer(fields, item) for fields in own))
        return {key: tuple(answers)[: self._max_comments] for key, answers in comments.items()}

    async def _of_site(
        self,
        site: str,
        path: str,
        params: Mapping[str, str | int],
        *,
        search: bool = False,
        pace: Pace | None = None,
    ) -> Mapping[str, Any]:
        """The answer of one site, which has a list of `items`."""
        try:
            given = {**params, **self._key, "site": site}
            answer = as_dict(await self._ask(path, given, search=search, pace=pace))
        except NotConfigured as error:
            detail = f"`{site}` in `{SITES_SETTING}` is none of its sites"
            raise NotConfigured(NAME, detail) from error
        self._list(answer, "items")
        return answer

    @property
    def _answers_pace(self) -> Pace:
        return pace_of(NAME, f"{self._roots[0]} answers", *self.limits)

    def heed(self, pace: Pace, reply: Reply, failure: SourceError | None) -> None:
        """`backoff` forbids the same kind of request, an empty quota every kind."""
        super().heed(pace, reply, failure)
        answer, now = as_dict(reply.data), datetime.now(UTC)
        if (seconds := as_number(answer.get("backoff"))) is not None:
            pace.pause(now + timedelta(seconds=min(max(seconds, 0), _DAY)))
        if as_int(answer.get("quota_remaining")) == 0:
            midnight = (now + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
            for each in (self._pace(self._roots[0]), self._answers_pace):
                each.pause(midnight, QuotaExhausted)

    def _failure(self, reply: Reply) -> SourceError | None:
        """The error named in an answer, whose status is always 400; None without one."""
        fields = as_dict(reply.data)
        kind, words = fields.get("error_name"), clean(fields.get("error_message"))
        if not isinstance(kind, str):
            return None
        what = f"HTTP {reply.status} {kind if kind.isidentifier() else ''}".strip()[:60]
        if kind == "throttle_violation":
            wait = _AVAILABLE.search(words)
            seconds = int(wait[1]) if wait else 0
            limit = QuotaExhausted if seconds > _LONG_WAIT else RateLimited
            at = datetime.now(UTC) + timedelta(seconds=min(seconds, _DAY))
            return limit(NAME, what, retry_at=at if wait else reply.wait)
        if kind == "bad_parameter" and "site" in words:
            return NotConfigured(NAME, what)
        if kind in _REFUSALS or (kind == "bad_parameter" and "key" in words):
            return Refused(NAME, what)
        is_down = kind in {"internal_error", "temporarily_unavailable"}
        return (Unreachable if is_down else Broken)(NAME, what)


build = StackExchangeSource


def _question(entry: object, site: str) -> Item | None:
    """A question; None when id or title is missing."""
    fields = as_dict(entry)
    id_, title = as_int(fields.get("question_id")), fields.get("title")
    if not id_ or not isinstance(title, str):
        return None
    owner, created = as_dict(fields.get("owner")), time_since(fields.get("creation_date"), BEGAN)
    return make_item(
        NAME, f"{site}:{id_}", unescape(title), words_of_html(fields.get("body")), created,
        id=str(id_),
        url=web_url(fields.get("link")),
        author=_name(owner),
        credit=_credit(owner),
        engagement={
            "score": as_int(fields.get("score")),
            "views": as_int(fields.get("view_count")),
            "answers": as_int(fields.get("answer_count")),
        },
        place=site,
        unfit=BY_BOT if as_int(owner.get("user_id")) == _COMMUNITY_USER else "",
    )  # fmt: skip


def _answer(fields: Mapping[str, Any], item: Item) -> Comment | None:
    """An answer; None when it has no words, and for one by the site's own program."""
    text, owner = words_of_html(fields.get("body")), as_dict(fields.get("owner"))
    if not says_something(text) or as_int(owner.get("user_id")) == _COMMUNITY_USER:
        return None
    id_, site = as_int(fields.get("answer_id")), urlsplit(item.url)
    return Comment(
        id=str(id_), body=text, url=web_url(f"{site.scheme}://{site.netloc}/a/{id_}"),
        author=_name(owner), credit=_credit(owner),
        created_at=time_since(fields.get("creation_date"), BEGAN),
        engagement={"score": as_int(fields.get("score"))},
    )  # fmt: skip


def _name(owner: Mapping[str, Any]) -> str | None:
    return one_line(unescape(owner.get("display_name"))) or None


def _credit(owner: Mapping[str, Any]) -> str | None:
    """Name and profile, as the licence asks: `Ada (https://superuser.com/users/7/ada)`."""
    name, profile = _name(owner), web_url(owner.get("link"))
    if not name or not profile:  # a name with an address must not pass for a profile
        return None if name and "://" in name else name
    return f"{name} ({profile})"
