"""Stack Exchange through its API 2.3: questions of several sites, and their answers.

What people wrote there is CC BY-SA: authors keep their names, see docs/decisions/0008.

What Stack Exchange's answers mean: its errors, and its JSON as items and comments.

Pure, and safe for any shape.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from api.core.domain import Comment, Commented, FetchPlan, Item
from api.core.ports import Probe
from api.core.text import clean, clean_query, one_line, unescape, web_url
from api.errors import (
    Broken,
    NotConfigured,
    QuotaExhausted,
    RateLimited,
    Refused,
    SourceError,
    Unreachable,
)
from api.features.analyses.store_ports import SourceMemory
from api.pipeline.gate.drop_reasons import BY_BOT
from api.settings import SourceSettings
from api.settings.value_types import sites_in
from api.sources.item_fields import (
    IMPLAUSIBLE,
    is_said,
    moment,
    number,
    plausible,
    record,
    seen,
    whole,
    why_unfit,
)
from api.sources.keyless_source import (
    LIMITS,
    KeylessSource,
    continued,
    joined,
    listed,
    of_each,
    read_each,
    readable,
    resumed,
    unsearched,
    whole_ones,
)
from api.sources.markup import words_of_html
from api.sources.paging import Page, window_start
from api.sources.source_specs import SITES, STACKEXCHANGE_NAME, key_of
from api.sources.web_client import Limit, Pace, Reply, pace_of

BEGAN = datetime(2008, 7, 1, tzinfo=UTC)
"""The month of the first questions."""
# Seconds; a longer wait is not for going too fast but for the end of the day (UTC).
_A_DAYS = 3_600
# The user id of the sites' own program.
_COMMUNITY = -1
# `too many requests from this IP, more requests available in 17524 seconds`
_AVAILABLE = re.compile(r"available in (\d{1,6}) second")
_REFUSALS = frozenset(
    "access_denied access_token_required invalid_access_token key_required".split()
)
_FAILURES = frozenset({"internal_error", "temporarily_unavailable"})


def failure_of(reply: Reply) -> SourceError | None:
    """The error that an answer names, which comes as HTTP 400 whatever it is; else None."""
    fields = record(reply.data)
    kind, words = fields.get("error_name"), clean(fields.get("error_message"))
    if not isinstance(kind, str):
        return None
    what = f"HTTP {reply.status} {kind if kind.isidentifier() else ''}".strip()[:60]
    if kind == "throttle_violation":
        wait = _AVAILABLE.search(words)
        seconds = int(wait[1]) if wait else 0
        limit = QuotaExhausted if seconds > _A_DAYS else RateLimited
        at = datetime.now(UTC) + timedelta(seconds=min(seconds, 86_400))
        return limit(STACKEXCHANGE_NAME, what, retry_at=at if wait else reply.wait)
    if kind == "bad_parameter" and "site" in words:
        return NotConfigured(STACKEXCHANGE_NAME, what)
    if kind in _REFUSALS or (kind == "bad_parameter" and "key" in words):
        return Refused(STACKEXCHANGE_NAME, what)
    return (
        Unreachable(STACKEXCHANGE_NAME, what)
        if kind in _FAILURES
        else Broken(STACKEXCHANGE_NAME, what)
    )


def item_of(entry: object, site: str) -> Item | None:
    """A question; None for what lacks id or title."""
    fields = record(entry)
    id_, title = whole(fields.get("question_id")), unescape(fields.get("title"))
    if not id_ or not isinstance(fields.get("title"), str):
        return None
    owner, body = record(fields.get("owner")), words_of_html(fields.get("body"))
    created = plausible(moment(fields.get("creation_date")), BEGAN)
    automatic = whole(owner.get("user_id")) == _COMMUNITY
    return Item(
        key=f"{STACKEXCHANGE_NAME}:{site}:{id_}",
        id=str(id_),
        source=STACKEXCHANGE_NAME,
        title=seen(title),
        body=seen(body),
        url=web_url(fields.get("link")),
        author=_name(owner),
        credit=_credit(owner),
        created_at=created,
        engagement={
            "score": whole(fields.get("score")),
            "views": whole(fields.get("view_count")),
            "answers": whole(fields.get("answer_count")),
        },
        place=site,
        notes=() if created else (IMPLAUSIBLE,),
        unfit=BY_BOT if automatic else why_unfit(title, body),
    )


def comment_of(fields: Mapping[str, Any], item: Item) -> Comment | None:
    """An answer; None where it says nothing, and for the program's own."""
    text, owner = words_of_html(fields.get("body")), record(fields.get("owner"))
    if not is_said(text) or whole(owner.get("user_id")) == _COMMUNITY:
        return None
    id_, site = whole(fields.get("answer_id")), urlsplit(item.url)
    return Comment(
        id=str(id_),
        body=text,
        url=web_url(f"{site.scheme}://{site.netloc}/a/{id_}"),
        author=_name(owner),
        credit=_credit(owner),
        created_at=plausible(moment(fields.get("creation_date")), BEGAN),
        engagement={"score": whole(fields.get("score"))},
    )


def _name(owner: Mapping[str, Any]) -> str | None:
    return one_line(unescape(owner.get("display_name"))) or None


def _credit(owner: Mapping[str, Any]) -> str | None:
    """Name and profile, as the licence asks: `Ada (https://superuser.com/users/7/ada)`."""
    name, profile = _name(owner), web_url(owner.get("link"))
    if not name or not profile:  # nobody's name may pass for a profile
        return None if name and "://" in name else name
    return f"{name} ({profile})"


PAGE = 100
"""Questions of one request, and ids in one: the most there is."""


def build(settings: SourceSettings, memory: SourceMemory | None = None) -> StackExchangeSource:
    """The source; asks nothing. `memory` keeps pages between runs."""
    return StackExchangeSource(settings, memory)


class StackExchangeSource(KeylessSource):
    """Questions with their answers; see `Source` for the contract."""

    name = STACKEXCHANGE_NAME
    address = "STACKEXCHANGE_URL"
    limits = (Limit(15, 1),)
    """Half of the 30 a second for which an address is shut out; answers have the other half."""

    def __init__(self, settings: SourceSettings, memory: SourceMemory | None = None) -> None:
        """Whether the sites exist is known when one was asked."""
        self._sites, key = sites_in(settings.stackexchange_sites), key_of(settings)
        self._key = {"key": key} if key else {}
        super().__init__(settings, [settings.stackexchange_url], memory, within=self._sites)

    async def comments(self, items: Sequence[Item]) -> Commented:
        """The answers to each question; one request per site."""
        if not self._most:
            return Commented(tuple(items))
        requests = {
            site: asyncio.ensure_future(
                self._answers([item for item in items if item.place == site])
            )
            for site in dict.fromkeys(item.place for item in items)
        }

        async def read(item: Item) -> Item:
            return replace(item, comments=(await requests[item.place])[item.key])

        try:  # all at once, since they wait for the same few answers
            stops = (*LIMITS, Refused)
            width = max(len(items), 2)
            return await read_each(items, read, width=width, stops=stops, what="answers")
        finally:
            for request in requests.values():
                request.cancel()

    async def _search(self, plan: FetchPlan, cursor: str | None) -> Page:
        """A page of each site that has one; their first questions come first, then the seconds."""
        page, sites = resumed(cursor, self._sites)
        start = window_start(plan.window)
        params: dict[str, str | int] = {
            "q": clean_query(plan.query),
            "sort": "relevance",
            "order": "desc",
            "pagesize": PAGE,
            "page": page,
            "filter": "withbody",
        }
        if start is not None:
            params["fromdate"] = int(start.timestamp())

        async def of_site(site: str) -> tuple[Mapping[str, Any], tuple[Item | None, ...]]:
            answer = await self._of_site(site, "/2.3/search/advanced", params, search=True)
            return answer, readable(
                STACKEXCHANGE_NAME, answer["items"], lambda entry: item_of(entry, site)
            )

        answers, failures = await of_each(sites, of_site)
        further = [site for site, (answer, _) in answers.items() if answer.get("has_more") is True]
        rankings = [slots for _, slots in answers.values()]
        return joined(rankings, continued(page, further), failures)

    async def _commented(self, item: Item) -> Item:
        return replace(item, comments=(await self._answers([item]))[item.key])

    async def _probed(self) -> Probe:
        async def of_site(site: str) -> Mapping[str, Any]:
            return await self._of_site(site, "/2.3/info", {}, search=True)

        answers, failures = await of_each(self._sites, of_site)
        rows, notes = answers.values(), unsearched(failures)
        counts = [(whole(row.get("quota_remaining")), whole(row.get("quota_max"))) for row in rows]
        known = [(left, most) for left, most in counts if left is not None and most is not None]
        if not known:
            return Probe("ok", "; ".join(notes))
        left, most = min(known)
        if not left:
            raise QuotaExhausted(STACKEXCHANGE_NAME, "no requests left today")
        return Probe("ok", "; ".join((f"{left:,} of {most:,} requests left today", *notes)))

    async def _answers(self, items: Sequence[Item]) -> Mapping[str, tuple[Comment, ...]]:
        """The best voted answers to questions of one site, by the items' keys; a request per 100.

        Answers to all of them share one page, so of many the worst voted may be missing.
        """
        answers: list[Mapping[str, Any]] = []
        for first in range(0, len(items), PAGE):
            ids = ";".join(item.id for item in items[first : first + PAGE])
            params: dict[str, str | int] = {
                "sort": "votes", "order": "desc", "pagesize": PAGE, "filter": "withbody",
            }  # fmt: skip
            path, pace = f"/2.3/questions/{ids}/answers", self._answering
            answer = await self._of_site(items[0].place or "", path, params, pace=pace)
            answers += map(record, answer["items"])
        read = whole_ones(
            STACKEXCHANGE_NAME,
            answers,
            lambda answer: bool(whole(answer.get("answer_id"))) and "body" in answer,
        )
        comments = {
            item.key: [
                comment
                for answer in read
                if str(whole(answer.get("question_id"))) == item.id
                if (comment := comment_of(answer, item)) is not None
            ]
            for item in items
        }
        return {key: tuple(listed)[: self._most] for key, listed in comments.items()}

    async def _of_site(
        self,
        site: str,
        path: str,
        params: Mapping[str, str | int],
        *,
        search: bool = False,
        pace: Pace | None = None,
    ) -> Mapping[str, Any]:
        """One site's answer, which has a list of `items`."""
        try:
            given = {**params, **self._key, "site": site}
            answer = record(await self._ask(path, given, search=search, pace=pace))
        except NotConfigured as error:
            raise NotConfigured(
                STACKEXCHANGE_NAME, f"`{site}` in `{SITES}` is none of its sites"
            ) from error
        listed(STACKEXCHANGE_NAME, answer, "items")
        return answer

    @property
    def _answering(self) -> Pace:
        return pace_of(STACKEXCHANGE_NAME, f"{self._roots[0]} answers", *self.limits)

    def heed(self, pace: Pace, reply: Reply, failure: SourceError | None) -> None:
        """`backoff` forbids the same kind of request, an empty quota every kind."""
        super().heed(pace, reply, failure)
        answer, now = record(reply.data), datetime.now(UTC)
        if (seconds := number(answer.get("backoff"))) is not None:
            pace.pause(now + timedelta(seconds=min(max(seconds, 0), 86_400)))
        if whole(answer.get("quota_remaining")) == 0:
            midnight = (now + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
            for each in (self._pace(self._roots[0]), self._answering):
                each.pause(midnight, QuotaExhausted)

    def _failure(self, reply: Reply) -> SourceError | None:
        return failure_of(reply)
