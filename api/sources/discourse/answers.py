"""What a Discourse forum's answers mean: found posts as items, and topics read whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from api.services.gate.unfit import REMOVED
from api.services.schemas import Comment, Item
from api.services.text import clean, web_url
from api.sources.bots import AUTOMATIC
from api.sources.discourse import NAME
from api.sources.fields import entries, is_text, moment, pseudonym, record, whole
from api.sources.markup import words_of_html
from api.sources.opinions import is_said, seen, why_unfit
from api.sources.times import IMPLAUSIBLE, plausible

_PROGRAMS = frozenset({"system", "discobot"})
"""The accounts under which every forum's program writes."""
_WRITTEN = 1
"""The type of a post that somebody wrote; others say that a topic was closed, moved and so on."""
_LIKE = 2
"""The kind of action that is a like."""


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
            key=f"{NAME}:{forum}:{id_}",
            id=str(id_),
            source=NAME,
            title=seen(title),
            body=seen(text),
            url=web_url(f"{root}/t/{clean(topic.get('slug')) or '-'}/{id_}/{number}"),
            author=_author(fields, forum),
            created_at=created,
            engagement={"likes": likes, "posts": posts},
            place=forum,
            notes=() if created else (IMPLAUSIBLE,),
            unfit=AUTOMATIC if _is_program(fields) else unfit,
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
