"""Discourse: each forum that was named is asked by itself; one that fails does not fail the rest.

A found post stands for its topic; what is read of a kept one is the whole topic.

What a Discourse forum's answers mean: found posts as items, and topics read whole.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from api.core.domain import Comment, Commented, FetchPlan, Item
from api.core.http_limits import points_here, retry_at
from api.core.ports import Probe
from api.core.text import clean, clean_query, web_url
from api.errors import Broken, NotAsked, RateLimited, Refused, SourceError, Unreachable
from api.features.analyses.store_ports import SourceMemory
from api.pipeline.gate.drop_reasons import BY_BOT, REMOVED
from api.settings import SourceSettings
from api.settings.value_types import forums_in
from api.sources.item_fields import (
    IMPLAUSIBLE,
    entries,
    is_said,
    is_text,
    moment,
    plausible,
    pseudonym,
    record,
    seen,
    whole,
    why_unfit,
)
from api.sources.keyless_source import (
    KeylessSource,
    continued,
    joined,
    noted,
    of_each,
    readable,
    resumed,
    unsearched,
)
from api.sources.markup import words_of_html
from api.sources.paging import Page, window_start
from api.sources.source_specs import DISCOURSE_NAME
from api.sources.web_client import Limit, Reply, host_of

# The accounts under which every forum's program writes.
_PROGRAMS = frozenset({"system", "discobot"})
# The type of a post that somebody wrote; others say that a topic was closed, moved and so on.
_WRITTEN = 1
# The kind of action that is a like.
_LIKE = 2


def items_of(answer: Mapping[str, Any], forum: str, root: str) -> tuple[Item | None, ...]:
    """The found posts under their topics' titles; None for what lacks number, topic or title.

    Old forums hold the topic in the post, the others beside the posts.
    """
    rows = map(record, entries(answer.get("topics")))
    topics = {id_: row for row in rows if (id_ := whole(row.get("id"))) is not None}
    slots: list[Item | None] = []
    for fields in map(record, entries(answer.get("posts"))):
        nested = record(fields.get("topic"))
        id_ = whole(fields.get("topic_id", nested.get("id")))
        topic = nested if id_ is None else topics.get(id_, nested)
        number = whole(fields.get("post_number"))
        if id_ is None or number is None or not is_text(topic.get("title")):
            slots.append(None)
            continue
        title, text = clean(topic.get("title")), words_of_html(fields.get("blurb"))
        created = plausible(moment(fields.get("created_at")))
        likes, posts = whole(fields.get("like_count")), whole(topic.get("posts_count"))
        unfit = REMOVED if fields.get("hidden") is True else why_unfit(title, text)
        item = Item(
            key=f"{DISCOURSE_NAME}:{forum}:{id_}",
            id=str(id_),
            source=DISCOURSE_NAME,
            title=seen(title),
            body=seen(text),
            url=web_url(f"{root}/t/{clean(topic.get('slug')) or '-'}/{id_}/{number}"),
            author=_author(fields, forum),
            created_at=created,
            engagement={"likes": likes, "posts": posts},
            place=forum,
            notes=() if created else (IMPLAUSIBLE,),
            unfit=BY_BOT if _is_program(fields) else unfit,
        )
        slots.append(item)
    return tuple(slots)


def is_post(entry: object) -> bool:
    """Whether an entry of a topic has the fields of a post that are read."""
    fields = record(entry)
    return whole(fields.get("post_number")) is not None and is_text(fields.get("cooked"))


def read_whole(item: Item, topic: Mapping[str, Any], posts: Sequence[Any], most: int) -> Item:
    """The item with its topic's first post as its text, and the best liked others as comments.

    The post that was found stands before them, shortened where `posts` do not hold it. Where the
    first one is gone, the item keeps its text.
    """
    written = {post.url: post for entry in posts if (post := _post(entry, item)) is not None}
    topic_url, _, number = item.url.rpartition("/")
    listed = {str(whole(record(entry).get("post_number"))) for entry in posts}
    first, match = written.pop(f"{topic_url}/1", None), written.pop(item.url, None)
    if first is not None and number not in listed:
        match = Comment(
            id=f"{item.id}/{number}",
            body=item.body,
            url=item.url,
            author=item.author,
            created_at=item.created_at,
            engagement={"likes": item.engagement.get("likes")},
        )
    others = sorted(written.values(), key=lambda post: -(whole(post.engagement["likes"]) or 0))
    comments = (*((match,) if match else ()), *others)[:most]
    if first is None:
        return replace(item, comments=comments)
    return replace(
        item,
        body=first.body,
        url=first.url,
        author=first.author,
        created_at=first.created_at,
        engagement={**item.engagement, **first.engagement, "views": whole(topic.get("views"))},
        comments=comments,
    )


def _post(entry: object, item: Item) -> Comment | None:
    """What somebody wrote in an item's topic; None for what is hidden, gone or says nothing."""
    fields, text = record(entry), words_of_html(record(entry).get("cooked"))
    gone = fields.get("hidden") is True or fields.get("deleted_at") is not None
    kind = fields.get("post_type", _WRITTEN)
    if not is_post(entry) or gone or kind != _WRITTEN or _is_program(fields) or not is_said(text):
        return None
    actions, number = fields.get("actions_summary"), whole(fields.get("post_number"))
    likes = (record(row) for row in entries(actions) if record(row).get("id") == _LIKE)
    none = 0 if isinstance(actions, list) else None
    return Comment(
        id=f"{item.id}/{number}",
        body=text,
        url=f"{item.url.rpartition('/')[0]}/{number}",
        author=_author(fields, item.place or ""),
        created_at=plausible(moment(fields.get("created_at"))),
        engagement={"likes": next((whole(row.get("count")) for row in likes), none)},
    )


def _is_program(fields: Mapping[str, Any]) -> bool:
    return clean(fields.get("username")).lower() in _PROGRAMS


def _author(fields: Mapping[str, Any], forum: str) -> str | None:
    name = clean(fields.get("username"))
    return pseudonym("member", f"{name}@{forum}") if name else None


# The last page of a search.
_LAST = 10
# Characters of a word that is searched for; fewer only in scripts whose words are short.
_SHORTEST = 3
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

    name = DISCOURSE_NAME
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
        query, start = clean_query(plan.query), window_start(plan.window)
        words = query.replace('"', " ").split()
        if not _DENSE.search(query) and max(map(len, words), default=0) < _SHORTEST:
            raise TooShort(
                DISCOURSE_NAME, f"forums search for words of {_SHORTEST} characters or more"
            )
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
            raise Broken(DISCOURSE_NAME, "an answer without posts")
        slots = readable(DISCOURSE_NAME, items_of(answer, forum, root), lambda item: item)
        more = result.get("more_full_page_results") is True and number < _LAST
        return slots, bool(slots) and more

    async def _commented(self, item: Item) -> Item:
        """With its topic: the first post as its text, the other posts of the page as comments."""
        answer = record(await self._ask(f"/t/{item.id}.json", None, self._forums[item.place or ""]))
        posts: list[Any] = list(entries(record(answer.get("post_stream")).get("posts")))
        if not any(map(is_post, posts)):
            raise Broken(DISCOURSE_NAME, "a topic without its posts")
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
            return Unreachable(DISCOURSE_NAME, OVERLOADED)
        if reply.status == 429 and not reply.html:
            seconds = record(answer.get("extras")).get("wait_seconds")
            wait = wait or retry_at({"retry-after": str(seconds)})
            return RateLimited(DISCOURSE_NAME, "its limit is reached", retry_at=wait)
        if reply.status == 503:
            return RateLimited(
                DISCOURSE_NAME, "HTTP 503", retry_at=wait or datetime.now(UTC) + self.rest
            )
        if reply.status == 403 and not reply.html:
            return MembersOnly(DISCOURSE_NAME, "it answers members alone")
        return None


def _place_of(root: str) -> str:
    """The host, with a path where a forum stands below one; on this machine that path says all."""
    host, path = host_of(root), urlsplit(root).path
    return path.strip("/") if path and points_here(root) else host + path
