"""GitHub's search of issues, and the comments on them, with or without a token."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from api.errors import Broken, NotConfigured, SourceError
from api.services.keeping.storage import SourceMemory
from api.services.ports import Probe
from api.services.schemas import Commented, FetchPlan, Item
from api.services.text import cut, searchable
from api.settings import SourceSettings
from api.sources.commenting import noted
from api.sources.fields import record, whole
from api.sources.github import NAME, THREADS, TOKEN, token_of
from api.sources.github.answers import comment_of, failure_of, is_spent, item_of
from api.sources.keyless import KeylessSource, listed, readable, whole_ones
from api.sources.pacing import Limit, Pace, pace_of
from api.sources.paging import Page, since
from api.sources.web import Reply

PAGE = 100
"""Issues of one request; one holds what a refetch of most depths needs."""
_DEEPEST = 1_000
"""Results that a search gives at most."""
_LONGEST = 256
"""Characters of a search."""
_SHORTENED = f"its search takes {_LONGEST} characters, so the last words were left out"
# a quoted phrase, or what stands between blanks
_PART = re.compile(r'"[^"]*"|\S+')
_INCOMPLETE = "its search ran out of time, so results may be missing"


def build(settings: SourceSettings, memory: SourceMemory | None = None) -> GitHubSource:
    """The source; asks nothing. `memory` keeps pages between runs."""
    return GitHubSource(settings, memory)


class GitHubSource(KeylessSource):
    """Issues with their comments; see `Source` for the contract."""

    name = NAME
    address = "GITHUB_URL"

    def __init__(self, settings: SourceSettings, memory: SourceMemory | None = None) -> None:
        """A token is of nobody's account in particular: any raises the limits.

        Raises:
            NotConfigured: the token cannot be sent.
        """
        token = token_of(settings)
        if not (token.isascii() and token.isprintable()):
            raise NotConfigured(NAME, f"`{TOKEN}` holds characters that no header can carry")
        headers = {
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": "2022-11-28",
        } | ({"Authorization": f"Bearer {token}"} if token else {})
        self._threads = None if token else THREADS
        self.limits = (Limit(30 if token else 10, 60),)
        super().__init__(settings, [settings.github_url], memory, headers)
        requests = Limit(5_000 if token else 60, 3_600)
        self._reading = pace_of(NAME, f"{self._roots[0]} comments", requests)

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
        page, start = int(cursor or 1), since(plan.window)
        fixed = ["is:issue", *([f"created:>={start:%Y-%m-%d}"] if start else [])]
        parts = _PART.findall(searchable(plan.query))
        words, notes = _fitting(parts, _LONGEST - len(" ".join(["", *fixed])))
        query = " ".join([words, *fixed])
        params: dict[str, str | int] = {"q": query, "per_page": PAGE, "page": page}
        answer = record(await self._ask("/search/issues", params, search=True))
        slots = readable(NAME, listed(NAME, answer, "items"), item_of)
        if answer.get("incomplete_results") is True:
            notes = (*notes, _INCOMPLETE)
        deep = min(whole(answer.get("total_count")) or 0, _DEEPEST)
        return Page(slots, str(page + 1) if slots and page * PAGE < deep else None, notes)

    async def _commented(self, item: Item) -> Item:
        """With the first comments: the interface has no order by reactions."""
        repository, _, issue = item.key.removeprefix(f"{NAME}:").rpartition("#")
        path = f"/repos/{repository}/issues/{issue}/comments"
        answer = await self._ask(path, {"per_page": PAGE}, pace=self._reading)
        if not isinstance(answer, list):
            raise Broken(NAME, "comments that are no list")
        read = whole_ones(
            NAME, answer, lambda entry: bool(whole(entry.get("id"))) and "body" in entry
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
