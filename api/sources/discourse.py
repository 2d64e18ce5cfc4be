"""Discourse: every configured forum is asked by itself, and one that fails does not fail the rest.

A post that a search finds stands for its topic; of a kept one the whole topic is read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from api.core.addresses import points_here
from api.core.domain import BY_BOT, REMOVED, FetchPlan
from api.core.http_limits import retry_at
from api.core.items import Comment, Commented, Item, pseudonym
from api.core.ports import Probe
from api.core.text import clean, clean_query, web_url
from api.errors import Broken, NotAsked, RateLimited, Refused, SourceError, Unreachable
from api.features.analyses.store_ports import SourceMemory
from api.settings import SourceSettings
from api.sources.item_fields import as_dict, as_int, as_list, is_text, make_item, says_something, time_since
from api.sources.json_source import JsonSource, Slots, ask_each, failure_notes, page_of_parts
from api.sources.markup import words_of_html
from api.sources.searched_source import Page, window_start, with_note
from api.sources.web_client import Limit, Reply, host_of

NAME = "discourse"
OVERLOADED = "it is too busy to search"
# the accounts of every forum's own program
_PROGRAMS = frozenset({"system", "discobot"})
# the type of a post that somebody wrote; others say that a topic was closed, moved and so on
_WRITTEN = 1
# the kind of action that is a like
_LIKE = 2
# the last page of a search
_LAST_PAGE = 10
# shortest word that is searched for, in characters; fewer only in scripts with short words
_MIN_WORD = 3
# a letter of a script that writes words without blanks between them: `小米`
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\U00020000-\U0002ffff]")


class MembersOnly(Refused):
    """A forum can be read only after a login."""

    remedy = "take that forum out of `DISCOURSE_FORUMS`"


class TooShort(NotAsked):
    """No forum searches for such short words."""

    remedy = "ask with a longer name, or with a word more"


class DiscourseSource(JsonSource):
    """Searches topics of forums that run Discourse."""

    name = NAME
    limits = (Limit(2, 1), Limit(15, 60))
    rest = timedelta(minutes=1)

    def __init__(self, settings: SourceSettings, memory: SourceMemory | None = None) -> None:
        super().__init__(settings, memory, roots=settings.forums)
        self._forums: dict[str, str] = {}
        """Address of each forum by the name that items use: its host, and its path if it has one."""
        for root in self._roots:
            host, path = host_of(root), urlsplit(root).path
            # on this machine, as in the sandbox, the path alone tells forums apart
            forum = path.strip("/") if path and points_here(root) else host + path
            self._forums[forum] = root

    async def comments(self, items: Sequence[Item]) -> Commented:
        """The items with their topics' posts, one request each; a failed forum costs its own."""
        read = super().comments
        forums = tuple(dict.fromkeys(item.place or "" for item in items))
        answers, failures = await ask_each(forums, lambda forum: read([item for item in items if item.place == forum]))
        by_key = {item.key: item for answer in answers.values() for item in answer.items}
        unread = {forum: f"comments not read: {error.detail}" for forum, error in failures.items()}
        notes = [note for answer in answers.values() for note in answer.notes]
        notes += [f"{forum}: {note}" for forum, note in unread.items()]
        full = (by_key.get(item.key) or with_note(item, unread[item.place or ""]) for item in items)
        return Commented(tuple(full), tuple(notes))

    async def _search(self, plan: FetchPlan, cursor: str | None) -> Page:
        """A page of every forum that has one, the best of each in turn."""
        query, start = clean_query(plan.query), window_start(plan.window)
        words = query.replace('"', " ").split()
        if not _UNSPACED.search(query) and max(map(len, words), default=0) < _MIN_WORD:
            raise TooShort(NAME, f"forums search for words of {_MIN_WORD} characters or more")
        dated = f"{query} after:{start:%Y-%m-%d}" if start else query
        return await page_of_parts(cursor, self._forums, lambda forum, number: self._of_forum(forum, dated, number))

    async def _of_forum(self, forum: str, query: str, number: int) -> tuple[Slots, bool]:
        root = self._forums[forum]
        params: dict[str, str | int] = {"q": query, "page": number}
        answer = as_dict(await self._ask("/search.json", params, root, search=True))
        result, posts = as_dict(answer.get("grouped_search_result")), answer.get("posts")
        if "posts" not in answer or not isinstance(posts, list | None):
            raise Broken(NAME, "an answer without posts")
        slots = self._slots(items_of(answer, forum, root), lambda item: item)
        more = result.get("more_full_page_results") is True and number < _LAST_PAGE
        return slots, bool(slots) and more

    async def _commented(self, item: Item) -> Item:
        answer = as_dict(await self._ask(f"/t/{item.id}.json", None, self._forums[item.place or ""]))
        posts = as_list(as_dict(answer.get("post_stream")).get("posts"))
        if not any(map(_is_post, posts)):
            raise Broken(NAME, "a topic without its posts")
        return with_topic(item, answer, posts, self._max_comments)

    async def _probed(self) -> Probe:
        async def of_forum(forum: str) -> int:
            await self._of_forum(forum, "product", 1)
            return self._pace(self._forums[forum]).left

        left, failures = await ask_each(tuple(self._forums), of_forum)
        each = (f"{forum}: {count} of {self.limits[-1].requests}" for forum, count in left.items())
        counts = f"searches a minute left to us: {', '.join(each)}"
        return Probe("ok", "; ".join((counts, *failure_notes(failures))))

    def _failure(self, reply: Reply) -> SourceError | None:
        """Too busy is an answer without results, or a 503; why not is written in the answer."""
        answer, wait = as_dict(reply.data), reply.wait
        error = as_dict(answer.get("grouped_search_result")).get("error")
        if reply.status == 200 and isinstance(error, str) and error:
            if "too short" in error.lower():  # a forum may have another minimum
                return TooShort(NAME, "this forum searches for longer words")
            return Unreachable(NAME, OVERLOADED)
        if reply.status == 429 and not reply.html:
            seconds = as_dict(answer.get("extras")).get("wait_seconds")
            wait = wait or retry_at({"retry-after": str(seconds)})
            return RateLimited(NAME, "its limit is reached", retry_at=wait)
        if reply.status == 503:
            return RateLimited(NAME, "HTTP 503", retry_at=wait or datetime.now(UTC) + self.rest)
        if reply.status == 403 and not reply.html:
            return MembersOnly(NAME, "it answers members alone")
        return None


build = DiscourseSource


def items_of(answer: Mapping[str, Any], forum: str, root: str) -> Slots:
    """The found posts under their topics' titles; old forums hold the topic in the post."""
    rows = map(as_dict, as_list(answer.get("topics")))
    topics = {id_: row for row in rows if (id_ := as_int(row.get("id"))) is not None}
    slots: list[Item | None] = []
    for fields in map(as_dict, as_list(answer.get("posts"))):
        nested = as_dict(fields.get("topic"))
        id_ = as_int(fields.get("topic_id", nested.get("id")))
        topic = nested if id_ is None else topics.get(id_, nested)
        number, title = as_int(fields.get("post_number")), topic.get("title")
        if id_ is None or number is None or not is_text(title):
            slots.append(None)
            continue
        is_hidden, created = fields.get("hidden") is True, time_since(fields.get("created_at"))
        item = make_item(
            NAME, f"{forum}:{id_}", clean(title), words_of_html(fields.get("blurb")), created,
            id=str(id_),
            url=web_url(f"{root}/t/{clean(topic.get('slug')) or '-'}/{id_}/{number}"),
            author=_author(fields, forum),
            engagement={
                "likes": as_int(fields.get("like_count")),
                "posts": as_int(topic.get("posts_count")),
            },
            place=forum,
            unfit=BY_BOT if _is_program(fields) else REMOVED if is_hidden else "",
        )  # fmt: skip
        slots.append(item)
    return tuple(slots)


def with_topic(item: Item, topic: Mapping[str, Any], posts: Sequence[Any], most: int) -> Item:
    """The item with its topic's first post as its text, and the best liked others as comments.

    The post that was found stands before them, shortened where `posts` do not hold it. Where the
    first one is gone, the item keeps its text.
    """
    written = {post.url: post for entry in posts if (post := _post(entry, item)) is not None}
    topic_url, _, number = item.url.rpartition("/")
    listed = {str(as_int(as_dict(entry).get("post_number"))) for entry in posts}
    first, match = written.pop(f"{topic_url}/1", None), written.pop(item.url, None)
    if first is not None and number not in listed:
        match = Comment(
            id=f"{item.id}/{number}", body=item.body, url=item.url, author=item.author,
            created_at=item.created_at, engagement={"likes": item.engagement.get("likes")},
        )  # fmt: skip
    others = sorted(written.values(), key=lambda post: -(as_int(post.engagement["likes"]) or 0))
    item = item.edited(comments=(*((match,) if match else ()), *others)[:most])
    if first is None:
        return item
    return item.edited(
        body=first.body, url=first.url, author=first.author, created_at=first.created_at,
        engagement={**item.engagement, **first.engagement, "views": as_int(topic.get("views"))},
    )  # fmt: skip


def _is_post(entry: object) -> bool:
    fields = as_dict(entry)
    return as_int(fields.get("post_number")) is not None and is_text(fields.get("cooked"))


def _post(entry: object, item: Item) -> Comment | None:
    """A post in an item's topic; None when it is hidden, deleted or has no words."""
    fields, text = as_dict(entry), words_of_html(as_dict(entry).get("cooked"))
    gone = fields.get("hidden") is True or fields.get("deleted_at") is not None
    is_written = fields.get("post_type", _WRITTEN) == _WRITTEN and not _is_program(fields)
    if not _is_post(entry) or gone or not is_written or not says_something(text):
        return None
    actions, number = fields.get("actions_summary"), as_int(fields.get("post_number"))
    likes = (as_dict(row) for row in as_list(actions) if as_dict(row).get("id") == _LIKE)
    none = 0 if isinstance(actions, list) else None
    return Comment(
        id=f"{item.id}/{number}", body=text, url=f"{item.url.rpartition('/')[0]}/{number}",
        author=_author(fields, item.place or ""), created_at=time_since(fields.get("created_at")),
        engagement={"likes": next((as_int(row.get("count")) for row in likes), none)},
    )  # fmt: skip


def _is_program(fields: Mapping[str, Any]) -> bool:
    return clean(fields.get("username")).lower() in _PROGRAMS


def _author(fields: Mapping[str, Any], forum: str) -> str | None:
    name = clean(fields.get("username"))
    return pseudonym("member", f"{name}@{forum}") if name else None
