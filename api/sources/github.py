"""GitHub's search of issues, and the comments on them, with or without a token.

What GitHub's answers mean: its limits, and its JSON as issues and comments.

Pure, and safe for any shape.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from api.core.domain import Comment, Commented, FetchPlan, Item
from api.core.ports import Probe
from api.core.text import clean, clean_query, cut, web_url
from api.errors import Broken, NotConfigured, RateLimited, Refused, SourceError
from api.features.analyses.store_ports import SourceMemory
from api.pipeline.gate.drop_reasons import BY_BOT, PULL_REQUEST
from api.settings import SourceSettings
from api.sources.item_fields import (
    IMPLAUSIBLE,
    is_said,
    is_text,
    moment,
    number,
    plausible,
    pseudonym,
    record,
    seen,
    whole,
    why_unfit,
)
from api.sources.keyless_source import KeylessSource, listed, noted, readable, whole_ones
from api.sources.markup import words_of_markdown
from api.sources.paging import Page, window_start
from api.sources.source_specs import GITHUB_NAME, THREADS, TOKEN, token_of
from api.sources.web_client import Limit, Pace, Reply, pace_of

BEGAN = datetime(2008, 2, 1, tzinfo=UTC)
"""The month in which it opened."""
# What it asks for after too many requests at once, when an answer does not say.
_WAIT = timedelta(seconds=60)
# the repository in `https://api.github.com/repos/OWNER/NAME` and `.../repos/OWNER/NAME/issues/7`
_REPOSITORY = re.compile(r"/repos/([\w.-]*\w[\w.-]*/[\w.-]*\w[\w.-]*)(?:/|$)", re.A)
# what a form leaves of a question that nobody answered
_UNANSWERED = re.compile(r"^_No response_[ \t]*$", re.M)
# a heading with nothing below it, up to the next of its rank or the end: `## Model\n\n## Page`
_BARE = re.compile(r"^(#{1,6})[ \t][^\n]*\n*(?=\Z|(?!\1#)#{1,6}[ \t])", re.M)


def failure_of(reply: Reply) -> SourceError | None:
    """Both of its limits come as 403 or 429, a query that it does not take as 422; else None."""
    if reply.html or reply.status not in {401, 403, 422, 429}:
        return None
    words = clean(record(reply.data).get("message")).lower()
    what = f"HTTP {reply.status}"
    if reply.status == 422:
        return Broken(GITHUB_NAME, f"{what}, a query that it does not take")
    if reply.status == 401:
        return Refused(GITHUB_NAME, f"{what} for `{TOKEN}`")
    if is_spent(reply):
        return RateLimited(GITHUB_NAME, f"{what}, its limit is reached", retry_at=reply.wait)
    if "secondary rate limit" in words:
        at = reply.wait or datetime.now(UTC) + _WAIT
        return RateLimited(GITHUB_NAME, f"{what}, too many requests at once", retry_at=at)
    if reply.status == 403 and ("retry-after" in reply.headers or "rate limit" in words):
        return RateLimited(GITHUB_NAME, f"{what}, its limit is reached", retry_at=reply.wait)
    return None


def is_spent(reply: Reply) -> bool:
    """Whether nothing is left of this kind of requests until the window ends."""
    return number(reply.headers.get("x-ratelimit-remaining")) == 0


def item_of(entry: object) -> Item | None:
    """An issue; None for what lacks number, repository or title."""
    fields = record(entry)
    issue, title = whole(fields.get("number")), fields.get("title")
    addresses = (clean(fields.get(name)) for name in ("repository_url", "url"))
    repository = next((match[1] for text in addresses if (match := _REPOSITORY.search(text))), "")
    if not issue or not repository or not is_text(title):
        return None
    unfit, name, body = "", clean(title), _written(fields.get("body"))
    if any(record(fields.get("pull_request")).values()):  # once it was there, empty, in issues too
        unfit = PULL_REQUEST
    elif _is_bot(fields):
        unfit = BY_BOT
    created = plausible(moment(fields.get("created_at")), BEGAN)
    return Item(
        key=f"{GITHUB_NAME}:{repository}#{issue}",
        id=str(issue),
        source=GITHUB_NAME,
        title=seen(name),
        body=seen(body),
        url=web_url(fields.get("html_url")) or f"https://github.com/{repository}/issues/{issue}",
        author=_author(fields),
        created_at=created,
        engagement={
            "reactions": whole(record(fields.get("reactions")).get("total_count")),
            "comments": whole(fields.get("comments")),
        },
        place=repository,
        notes=() if created else (IMPLAUSIBLE,),
        unfit=unfit or why_unfit(name, body),
    )


def _written(value: object) -> str:
    """An issue's text without what its template asked for and nobody wrote."""
    text, before = _UNANSWERED.sub("", words_of_markdown(value)), None
    while text != before:  # below a heading may stand another: six ranks at most
        text, before = _BARE.sub("", text).strip(), text
    return text


def comment_of(fields: Mapping[str, Any]) -> Comment | None:
    """A comment; None for a program's, and where nothing is said."""
    text = words_of_markdown(fields.get("body"))
    if _is_bot(fields) or not is_said(text):
        return None
    return Comment(
        id=str(whole(fields.get("id"))),
        body=text,
        url=web_url(fields.get("html_url")),
        author=_author(fields),
        created_at=plausible(moment(fields.get("created_at")), BEGAN),
        engagement={"reactions": whole(record(fields.get("reactions")).get("total_count"))},
    )


def _is_bot(fields: Mapping[str, Any]) -> bool:
    user = record(fields.get("user"))
    return user.get("type") == "Bot" or clean(user.get("login")).endswith("[bot]")


def _author(fields: Mapping[str, Any]) -> str | None:
    return pseudonym("gh", record(fields.get("user")).get("login"))


PAGE = 100
"""Issues of one request; one holds what a refetch of most depths needs."""
# Results that a search gives at most.
_DEEPEST = 1_000
# Characters of a search.
_LONGEST = 256
_SHORTENED = f"its search takes {_LONGEST} characters, so the last words were left out"
# a quoted phrase, or what stands between blanks
_PART = re.compile(r'"[^"]*"|\S+')
_INCOMPLETE = "its search ran out of time, so results may be missing"


def build(settings: SourceSettings, memory: SourceMemory | None = None) -> GitHubSource:
    """The source; asks nothing. `memory` keeps pages between runs."""
    return GitHubSource(settings, memory)


class GitHubSource(KeylessSource):
    """Issues with their comments; see `Source` for the contract."""

    name = GITHUB_NAME
    address = "GITHUB_URL"

    def __init__(self, settings: SourceSettings, memory: SourceMemory | None = None) -> None:
        """A token is of nobody's account in particular: any raises the limits.

        Raises:
            NotConfigured: the token cannot be sent.
        """
        token = token_of(settings)
        if not (token.isascii() and token.isprintable()):
            raise NotConfigured(GITHUB_NAME, f"`{TOKEN}` holds characters that no header can carry")
        headers = {
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": "2022-11-28",
        } | ({"Authorization": f"Bearer {token}"} if token else {})
        self._threads = None if token else THREADS
        self.limits = (Limit(30 if token else 10, 60),)
        super().__init__(settings, [settings.github_url], memory, headers)
        requests = Limit(5_000 if token else 60, 3_600)
        self._reading = pace_of(GITHUB_NAME, f"{self._roots[0]} comments", requests)

    async def comments(self, items: Sequence[Item]) -> Commented:
        """What was said about each issue; a request each, of five at most without a token."""
        if not self._most:
            return Commented(tuple(items))
        spoken = [item for item in items if item.engagement.get("comments") != 0]
        read = await super().comments(spoken[: self._threads])
        left = spoken[len(read.items) :]
        why = f"without `{TOKEN}` it answers 60 requests for comments an hour"
        unread = [noted(item, f"its comments were not read: {why}") for item in left]
        notes = (f"comments of {len(left)} of {len(spoken)} issues were not read: {why}",)
        now = {item.key: item for item in (*read.items, *unread)}
        return Commented(
            tuple(now.get(item.key, item) for item in items),
            (*read.notes, *(notes if left else ())),
        )

    async def _search(self, plan: FetchPlan, cursor: str | None) -> Page:
        """Issues that hold all words; windows are exact by the day, and the shelf does the rest."""
        page, start = int(cursor or 1), window_start(plan.window)
        fixed = ["is:issue", *([f"created:>={start:%Y-%m-%d}"] if start else [])]
        parts = _PART.findall(clean_query(plan.query))
        words, notes = _fitting(parts, _LONGEST - len(" ".join(["", *fixed])))
        query = " ".join([words, *fixed])
        params: dict[str, str | int] = {"q": query, "per_page": PAGE, "page": page}
        answer = record(await self._ask("/search/issues", params, search=True))
        slots = readable(GITHUB_NAME, listed(GITHUB_NAME, answer, "items"), item_of)
        if answer.get("incomplete_results") is True:
            notes = (*notes, _INCOMPLETE)
        deep = min(whole(answer.get("total_count")) or 0, _DEEPEST)
        return Page(slots, str(page + 1) if slots and page * PAGE < deep else None, notes)

    async def _commented(self, item: Item) -> Item:
        """With the first comments: the interface has no order by reactions."""
        repository, _, issue = item.key.removeprefix(f"{GITHUB_NAME}:").rpartition("#")
        path = f"/repos/{repository}/issues/{issue}/comments"
        answer = await self._ask(path, {"per_page": PAGE}, pace=self._reading)
        if not isinstance(answer, list):
            raise Broken(GITHUB_NAME, "comments that are no list")
        read = whole_ones(
            GITHUB_NAME, answer, lambda entry: bool(whole(entry.get("id"))) and "body" in entry
        )
        comments = (comment for entry in read if (comment := comment_of(entry)) is not None)
        return replace(item, comments=tuple(comments)[: self._most])

    async def _probed(self) -> Probe:
        """`/rate_limit` itself counts against nothing."""
        resources = record(record(await self._ask("/rate_limit")).get("resources"))
        parts = []
        for kind, what in (("search", "searches a minute"), ("core", "comment requests an hour")):
            counts = record(resources.get(kind))
            left, most = whole(counts.get("remaining")), whole(counts.get("limit"))
            if left is not None and most is not None:
                parts.append(f"{left:,} of {most:,} {what} left")
        return Probe("ok", ", ".join(parts))

    def heed(self, pace: Pace, reply: Reply, failure: SourceError | None) -> None:
        """Send nothing more of a kind of which nothing is left."""
        super().heed(pace, reply, failure)
        if is_spent(reply):
            pace.pause(reply.wait)

    def _failure(self, reply: Reply) -> SourceError | None:
        return failure_of(reply)


def _fitting(parts: Sequence[str], room: int) -> tuple[str, tuple[str, ...]]:
    """The first parts that have room, or the beginning of the first, and a note on the rest."""
    kept = list(parts)
    while kept and len(" ".join(kept)) > room:
        kept.pop()
    if not kept and parts:
        kept = [cut(parts[0].strip('"'), room)]
    return " ".join(kept), () if kept == [*parts] else (_SHORTENED,)
