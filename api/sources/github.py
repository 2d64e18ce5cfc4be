"""GitHub's search of issues, and the comments on them, with or without a token."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from api.core.domain import BY_BOT, PULL_REQUEST, FetchPlan
from api.core.items import Comment, Commented, Item, pseudonym
from api.core.ports import Probe
from api.core.text import clean, clean_query, cut, web_url
from api.errors import Broken, NotConfigured, RateLimited, Refused, SourceError
from api.features.analyses.store_ports import SourceMemory
from api.settings import SourceSettings
from api.sources import GITHUB_THREADS, GITHUB_TOKEN, setting_value
from api.sources.item_fields import as_dict, as_int, as_number, is_text, make_item, says_something, time_since
from api.sources.json_source import JsonSource
from api.sources.markup import words_of_markdown
from api.sources.searched_source import Page, read_each, window_start, with_note
from api.sources.web_client import Limit, Pace, Reply, pace_of

NAME = "github"
# the month in which it opened
BEGAN = datetime(2008, 2, 1, tzinfo=UTC)
PAGE = 100
"""Issues of one request; one holds what a refetch of most depths needs."""
# results that a search gives at most, and its characters
_MAX_RESULTS, _MAX_QUERY = 1_000, 256
_SHORTENED = f"its search takes {_MAX_QUERY} characters, so the last words were left out"
_INCOMPLETE = "its search ran out of time, so results may be missing"
# the pause that it asks for after too many requests at once, when an answer does not say
_BURST_PAUSE = timedelta(seconds=60)
# the repository in `https://api.github.com/repos/OWNER/NAME` and `.../repos/OWNER/NAME/issues/7`
_REPOSITORY = re.compile(r"/repos/([\w.-]*\w[\w.-]*/[\w.-]*\w[\w.-]*)(?:/|$)", re.A)
# what a form leaves of a question that was not answered
_UNANSWERED = re.compile(r"^_No response_[ \t]*$", re.M)
# a heading with nothing below it, up to the next of its rank or the end: `## Model\n\n## Page`
_EMPTY_HEADING = re.compile(r"^(#{1,6})[ \t][^\n]*\n*(?=\Z|(?!\1#)#{1,6}[ \t])", re.M)
# a quoted phrase, or what stands between blanks
_QUERY_PART = re.compile(r'"[^"]*"|\S+')


class GitHubSource(JsonSource):
    """Searches GitHub for issues and reads their comments."""

    name = NAME

    def __init__(self, settings: SourceSettings, memory: SourceMemory | None = None) -> None:
        """Raises `NotConfigured` for a token that a header cannot carry; asks nothing."""
        token = setting_value(settings, GITHUB_TOKEN)
        if not (token.isascii() and token.isprintable()):
            raise NotConfigured(NAME, f"`{GITHUB_TOKEN}` holds characters that no header can carry")
        headers = {
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": "2022-11-28",
        } | ({"Authorization": f"Bearer {token}"} if token else {})
        self._max_threads = None if token else GITHUB_THREADS
        self.limits = (Limit(30 if token else 10, 60),)
        super().__init__(settings, memory, headers=headers)
        requests = Limit(5_000 if token else 60, 3_600)
        self._comments_pace = pace_of(NAME, f"{self._roots[0]} comments", requests)

    async def _with_comments_of(self, items: Sequence[Item]) -> Commented:
        """A request for each issue, for five at most without a token."""
        discussed = [item for item in items if item.engagement.get("comments") != 0]
        first = discussed[: self._max_threads]
        read = await read_each(first, self._commented, stops=self.stops)
        left = discussed[len(first) :]
        why = f"without `{GITHUB_TOKEN}` it answers 60 requests for comments an hour"
        unread = [with_note(item, f"its comments were not read: {why}") for item in left]
        notes = (f"comments of {len(left)} of {len(discussed)} issues were not read: {why}",)
        now = {item.key: item for item in (*read.items, *unread)}
        return Commented(
            tuple(now.get(item.key, item) for item in items),
            (*read.notes, *(notes if left else ())),
            read.partial,
        )

    async def _search(self, plan: FetchPlan, cursor: str | None) -> Page:
        """Issues that hold all words. GitHub counts windows in days; `PagedSearch` filters exactly."""
        page, start = int(cursor or 1), window_start(plan.window)
        fixed = ["is:issue", *([f"created:>={start:%Y-%m-%d}"] if start else [])]
        parts: list[str] = _QUERY_PART.findall(clean_query(plan.query))
        # the first parts that fit, or the beginning of the first
        kept, room = list(parts), _MAX_QUERY - len(" ".join(["", *fixed]))
        while kept and len(" ".join(kept)) > room:
            kept.pop()
        if not kept and parts:
            kept = [cut(parts[0].strip('"'), room)]
        query = " ".join([" ".join(kept), *fixed])
        params: dict[str, str | int] = {"q": query, "per_page": PAGE, "page": page}
        answer = as_dict(await self._ask("/search/issues", params, search=True))
        slots = self._slots(self._list(answer, "items"), item_of)
        notes = () if kept == parts else (_SHORTENED,)
        if answer.get("incomplete_results") is True:
            notes = (*notes, _INCOMPLETE)
        total = min(as_int(answer.get("total_count")) or 0, _MAX_RESULTS)
        return Page(slots, str(page + 1) if slots and page * PAGE < total else None, notes)

    async def _commented(self, item: Item) -> Item:
        """The item with its first comments, since the API cannot sort them by reactions."""
        repository, _, issue = item.key.removeprefix(f"{NAME}:").rpartition("#")
        path = f"/repos/{repository}/issues/{issue}/comments"
        answer = await self._ask(path, {"per_page": PAGE}, pace=self._comments_pace)
        if not isinstance(answer, list):
            raise Broken(NAME, "comments that are no list")
        complete = self._complete(answer, lambda entry: bool(as_int(entry.get("id"))) and "body" in entry)
        return self._with_comments(item, complete, _comment)

    async def _probed(self) -> Probe:
        """`/rate_limit` itself counts against nothing."""
        resources = as_dict(as_dict(await self._ask("/rate_limit")).get("resources"))
        parts = []
        for kind, what in (("search", "searches a minute"), ("core", "comment requests an hour")):
            counts = as_dict(resources.get(kind))
            left, most = as_int(counts.get("remaining")), as_int(counts.get("limit"))
            if left is not None and most is not None:
                parts.append(f"{left:,} of {most:,} {what} left")
        return Probe("ok", ", ".join(parts))

    def heed(self, pace: Pace, reply: Reply, failure: SourceError | None) -> None:
        """Send nothing more of a kind of requests of which none is left."""
        super().heed(pace, reply, failure)
        if _is_spent(reply):
            pace.pause(reply.wait)

    def _failure(self, reply: Reply) -> SourceError | None:
        """Both of its limits come as 403 or 429, a query that it does not take as 422."""
        if reply.html or reply.status not in {401, 403, 422, 429}:
            return None
        words, what = clean(as_dict(reply.data).get("message")).lower(), f"HTTP {reply.status}"
        if reply.status == 422:
            return Broken(NAME, f"{what}, a query that it does not take")
        if reply.status == 401:
            return Refused(NAME, f"{what} for `{GITHUB_TOKEN}`")
        reached = RateLimited(NAME, f"{what}, its limit is reached", retry_at=reply.wait)
        if _is_spent(reply):
            return reached
        if "secondary rate limit" in words:
            at = reply.wait or datetime.now(UTC) + _BURST_PAUSE
            return RateLimited(NAME, f"{what}, too many requests at once", retry_at=at)
        is_limit = "retry-after" in reply.headers or "rate limit" in words
        return reached if reply.status == 403 and is_limit else None


build = GitHubSource


def _is_spent(reply: Reply) -> bool:
    """Whether nothing is left of this kind of requests until the window ends."""
    return as_number(reply.headers.get("x-ratelimit-remaining")) == 0


def item_of(entry: object) -> Item | None:
    """An issue; None when number, repository or title is missing."""
    fields = as_dict(entry)
    issue, title = as_int(fields.get("number")), fields.get("title")
    addresses = (clean(fields.get(name)) for name in ("repository_url", "url"))
    repository = next((match[1] for text in addresses if (match := _REPOSITORY.search(text))), "")
    if not issue or not repository or not is_text(title):
        return None
    # an issue of older answers has an empty `pull_request`
    is_pull = any(as_dict(fields.get("pull_request")).values())
    body, before = _UNANSWERED.sub("", words_of_markdown(fields.get("body"))), None
    while body != before:  # below an empty heading may stand another
        body, before = _EMPTY_HEADING.sub("", body).strip(), body
    created = time_since(fields.get("created_at"), BEGAN)
    return make_item(
        NAME, f"{repository}#{issue}", clean(title), body, created,
        id=str(issue),
        url=web_url(fields.get("html_url")) or f"https://github.com/{repository}/issues/{issue}",
        author=_author(fields),
        engagement={
            "reactions": as_int(as_dict(fields.get("reactions")).get("total_count")),
            "comments": as_int(fields.get("comments")),
        },
        place=repository,
        unfit=PULL_REQUEST if is_pull else BY_BOT if _is_bot(fields) else "",
    )  # fmt: skip


def _comment(fields: Mapping[str, Any]) -> Comment | None:
    """A comment; None for a bot's, and for one without words."""
    text = words_of_markdown(fields.get("body"))
    if _is_bot(fields) or not says_something(text):
        return None
    return Comment(
        id=str(as_int(fields.get("id"))), body=text, url=web_url(fields.get("html_url")),
        author=_author(fields), created_at=time_since(fields.get("created_at"), BEGAN),
        engagement={"reactions": as_int(as_dict(fields.get("reactions")).get("total_count"))},
    )  # fmt: skip


# programs with the accounts of users, in small letters; a name that ends in `bot` may be a person's
_BOT_USERS = frozenset(
    "bors claassistant codecov coveralls googlebot googlecla greenkeeperio-bot msftbot pytorchmergebot rustbot"
    " rust-highfive sonarcloud stale travis-ci".split()
)


def _is_bot(fields: Mapping[str, Any]) -> bool:
    user = as_dict(fields.get("user"))
    login = clean(user.get("login")).lower()
    return user.get("type") == "Bot" or login in _BOT_USERS or login.endswith(("[bot]", "-bot", "-robot"))


def _author(fields: Mapping[str, Any]) -> str | None:
    return pseudonym("gh", as_dict(fields.get("user")).get("login"))
