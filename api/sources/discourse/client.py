"""Discourse: each forum that was named is asked by itself; one that fails does not fail the rest.

A found post stands for its topic; what is read of a kept one is the whole topic.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from api.errors import Broken, NotAsked, RateLimited, Refused, SourceError, Unreachable
from api.services.keeping.storage import SourceMemory
from api.services.ports import Probe
from api.services.schemas import Commented, FetchPlan, Item
from api.services.text import searchable
from api.services.wire import points_here, retry_at
from api.settings import SourceSettings
from api.settings.addresses import forums_in
from api.sources.commenting import noted
from api.sources.discourse import NAME
from api.sources.discourse.answers import is_post, items_of, read_whole
from api.sources.fields import entries, record
from api.sources.keyless import (
    KeylessSource,
    continued,
    joined,
    of_each,
    readable,
    resumed,
    unsearched,
)
from api.sources.pacing import Limit
from api.sources.paging import Page, since
from api.sources.web import Reply, host_of

_LAST = 10
"""The last page of a search."""
_SHORTEST = 3
"""Characters of a word that is searched for; fewer only in scripts whose words are short."""
# a letter of a script that writes words without blanks between them: `小米`
_DENSE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\U00020000-\U0002ffff]")
OVERLOADED = "it is too busy to search"


class MembersOnly(Refused):
    """A forum answers nobody who is not logged in."""

    remedy = "take that forum out of `DISCOURSE_FORUMS`"


class TooShort(NotAsked):
    """No forum searches for a query of such short words."""

    remedy = "ask with a longer name, or with a word more"


def build(settings: SourceSettings, memory: SourceMemory | None = None) -> DiscourseSource:
    """The source; asks nothing. `memory` keeps pages between runs."""
    return DiscourseSource(settings, memory)


class DiscourseSource(KeylessSource):
    """Topics of forums; see `Source` for the contract."""

    name = NAME
    address = "DISCOURSE_FORUMS"
    limits = (Limit(2, 1), Limit(15, 60))
    rest = timedelta(minutes=1)

    def __init__(self, settings: SourceSettings, memory: SourceMemory | None = None) -> None:
        """Whether a forum stands at an address is known when it was asked."""
        super().__init__(settings, forums_in(settings.discourse_forums), memory)
        self._forums = {_place_of(root): root for root in self._roots}
        """By what items call them."""

    async def comments(self, items: Sequence[Item]) -> Commented:
        """What was said in each topic; what one forum refuses is asked of the others all the same.

        One request per item.
        """
        read = super().comments
        forums = tuple(dict.fromkeys(item.place or "" for item in items))
        answers, failures = await of_each(
            forums, lambda forum: read([item for item in items if item.place == forum])
        )
        whole = {item.key: item for answer in answers.values() for item in answer.items}
        unread = {forum: f"comments not read: {error.detail}" for forum, error in failures.items()}
        notes = [note for answer in answers.values() for note in answer.notes]
        notes += [f"{forum}: {note}" for forum, note in unread.items()]
        return Commented(
            tuple(
                whole[item.key] if item.key in whole else noted(item, unread[item.place or ""])
                for item in items
            ),
            tuple(notes),
        )

    async def _search(self, plan: FetchPlan, cursor: str | None) -> Page:
        """A page of every forum that has one, the best of each in turn."""
        query, start = searchable(plan.query), since(plan.window)
        words = query.replace('"', " ").split()
        if not _DENSE.search(query) and max(map(len, words), default=0) < _SHORTEST:
            raise TooShort(NAME, f"forums search for words of {_SHORTEST} characters or more")
        number, forums = resumed(cursor, self._forums)
        dated = f"{query} after:{start:%Y-%m-%d}" if start else query

        async def of_forum(forum: str) -> tuple[tuple[Item | None, ...], bool]:
            return await self._of_forum(forum, dated, number)

        answers, failures = await of_each(forums, of_forum)
        further = [forum for forum, (_, more) in answers.items() if more]
        rankings = [slots for slots, _ in answers.values()]
        return joined(rankings, continued(number, further), failures)

    async def _of_forum(
        self, forum: str, query: str, number: int
    ) -> tuple[tuple[Item | None, ...], bool]:
        """A page of one forum, and whether it has another."""
        root = self._forums[forum]
        params: dict[str, str | int] = {"q": query, "page": number}
        answer = record(await self._ask("/search.json", params, root, search=True))
        result, posts = record(answer.get("grouped_search_result")), answer.get("posts")
        if "posts" not in answer or not isinstance(posts, list | None):
            raise Broken(NAME, "an answer without posts")
        slots = readable(NAME, items_of(answer, forum, root), lambda item: item)
        more = result.get("more_full_page_results") is True and number < _LAST
        return slots, bool(slots) and more

    async def _commented(self, item: Item) -> Item:
        """With its topic: the first post as its text, the other posts of the page as comments."""
        answer = record(await self._ask(f"/t/{item.id}.json", None, self._forums[item.place or ""]))
        posts: list[Any] = list(entries(record(answer.get("post_stream")).get("posts")))
        if not any(map(is_post, posts)):
            raise Broken(NAME, "a topic without its posts")
        return read_whole(item, answer, posts, self._most)

    async def _probed(self) -> Probe:
        """Ask each forum for a word."""

        async def of_forum(forum: str) -> int:
            await self._of_forum(forum, "product", 1)
            return self._pace(self._forums[forum]).left

        left, failures = await of_each(tuple(self._forums), of_forum)
        each = (f"{forum}: {count} of {self.limits[-1].requests}" for forum, count in left.items())
        counts = f"searches a minute left to us: {', '.join(each)}"
        return Probe("ok", "; ".join((counts, *unsearched(failures))))

    def _failure(self, reply: Reply) -> SourceError | None:
        """Too busy is an answer without results, or a 503; why not is written in the answer."""
        answer, wait = record(reply.data), reply.wait
        error = record(answer.get("grouped_search_result")).get("error")
        if reply.status == 200 and isinstance(error, str) and error:
            return Unreachable(NAME, OVERLOADED)
        if reply.status == 429 and not reply.html:
            seconds = record(answer.get("extras")).get("wait_seconds")
            wait = wait or retry_at({"retry-after": str(seconds)})
            return RateLimited(NAME, "its limit is reached", retry_at=wait)
        if reply.status == 503:
            return RateLimited(NAME, "HTTP 503", retry_at=wait or datetime.now(UTC) + self.rest)
        if reply.status == 403 and not reply.html:
            return MembersOnly(NAME, "it answers members alone")
        return None


def _place_of(root: str) -> str:
    """The host, with a path where a forum stands below one; on this machine that path says all."""
    host, path = host_of(root), urlsplit(root).path
    return path.strip("/") if path and points_here(root) else host + path
