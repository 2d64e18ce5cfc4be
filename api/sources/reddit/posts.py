"""Reddit's JSON as items and comments: pure, and safe for any shape."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from api.services.schemas import Comment, Item
from api.services.text import clean, unescape, web_url
from api.sources.fields import entries, moment, number, pseudonym, record, whole
from api.sources.paging import Page
from api.sources.reddit import NAME

SITE = "https://www.reddit.com"
# what is left of a deleted text: `[deleted]`, `[ removed by Reddit ]`
_GONE = re.compile(r"\[\s*(?:deleted|removed)(?:\s+by\b[^\]]*)?\s*\]", re.IGNORECASE)


def listing(value: object) -> Mapping[str, Any] | None:
    """The data of a listing; None when it is none."""
    data = record(record(value).get("data"))
    return data if isinstance(data.get("children"), list) else None


def page(data: Mapping[str, Any]) -> Page | None:
    """One page of search results, a slot per entry; None when they are all something else."""
    after, children = data.get("after"), entries(data.get("children"))
    if children and all(record(child).get("kind") != "t3" for child in children):
        return None
    return Page(
        tuple(map(post, children)),
        after if isinstance(after, str) and after else None,
    )


def post(child: object) -> Item | None:
    """A submission; None for advertisements, other things, and where the text is gone."""
    data = record(record(child).get("data"))
    id_ = clean(data.get("id"))
    if record(child).get("kind") != "t3" or not id_ or data.get("promoted"):
        return None
    parent = record(next(iter(entries(data.get("crosspost_parent_list"))), None))
    title = _kept(clean(data.get("title")))
    body = _kept(unescape(data.get("selftext"))) or _kept(unescape(parent.get("selftext")))
    if not title and not body:
        return None
    origin = clean(data.get("crosspost_parent")) or clean(parent.get("name"))
    place = clean(data.get("subreddit"))
    return Item(
        key=f"{NAME}:t3_{id_}",
        id=id_,
        source=NAME,
        title=title,
        body=body,
        url=_address(data.get("permalink"), f"/comments/{id_}/"),
        author=_author(data.get("author")),
        created_at=moment(data.get("created_utc")),
        engagement={
            "votes": whole(data.get("score")),
            "comments": whole(data.get("num_comments")),
            "upvote_ratio": number(data.get("upvote_ratio")),
        },
        place=f"r/{place}" if place else None,
        crosspost_parent=f"{NAME}:{origin}" if origin.startswith("t3_") else None,
        link=web_url(data.get("url")) if data.get("is_self") is False else "",
    )


def comments(tree: Mapping[str, Any], post_id: str, most: int) -> tuple[Comment, ...]:
    """The `most` best voted comments of a thread, without bots, pins and what was deleted."""
    worth = []
    for data in _walk(tree):
        id_, author = clean(data.get("id")), data.get("author")
        if data.get("stickied") or author == "AutoModerator" or not id_:
            continue
        if not _kept(clean(data.get("body"))):
            continue
        votes = None if data.get("score_hidden") else whole(data.get("score"))
        comment = Comment(
            id=id_,
            body=unescape(data.get("body")),
            url=_address(data.get("permalink"), f"/comments/{post_id}/_/{id_}/"),
            author=_author(author),
            created_at=moment(data.get("created_utc")),
            engagement={"votes": votes},
        )
        worth.append((float("-inf") if votes is None else votes, comment))
    worth.sort(key=lambda voted: voted[0], reverse=True)
    return tuple(comment for _, comment in worth[:most])


def _walk(tree: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Every comment, parents before replies, at any depth."""
    queue = [tree]
    for branch in queue:
        for child in entries(branch.get("children")):
            if record(child).get("kind") == "t1":
                data = record(record(child).get("data"))
                yield data
                queue.append(record(record(data.get("replies")).get("data")))


def _kept(text: str) -> str:
    """The text, or nothing where only the mark of a deletion is left."""
    return "" if _GONE.fullmatch(text) else text


def _author(name: object) -> str | None:
    return pseudonym("redditor", name) if _kept(clean(name)) else None


def _address(permalink: object, otherwise: str) -> str:
    path = clean(permalink)
    return web_url(SITE + (path if path.startswith("/") else otherwise)) or SITE + otherwise
