"""What Reddit's answers mean: whether they are answers, and their JSON as items and comments.

Pure, and safe for any shape.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from api.errors import Blocked, Broken, RateLimited, Refused, Unreachable
from api.services.schemas import Comment, Item
from api.services.text import clean, unescape, web_url
from api.services.wire import retry_at
from api.sources.fields import entries, moment, number, pseudonym, record, whole
from api.sources.paging import Page
from api.sources.reddit import NAME

SITE = "https://www.reddit.com"
# what is left of a deleted text: `[deleted]`, `[ removed by Reddit ]`
_GONE = re.compile(r"\[\s*(?:deleted|removed)(?:\s+by\b[^][]*|\s*)\]", re.IGNORECASE)
_WALLS = (b"/login", b"log in", b"whoa there", b"network security", b"captcha")


class TokenRejected(Refused):
    """An access token was revoked before its time."""


class Allowance:
    """What Reddit last said is left of the window, shared by all clients of one app."""

    def __init__(self) -> None:
        """Nothing is known yet."""
        self._until: datetime | None = None

    def check(self) -> None:
        """Refuse where prawcore would sleep until the window ends.

        Raises:
            RateLimited: nothing is left; `retry_at` is the end of the window.
        """
        until = self._until
        if until is not None and datetime.now(UTC) < until:
            raise RateLimited(NAME, "no requests left in this window", retry_at=until)

    def note(self, headers: Mapping[str, str]) -> None:
        """Remember the end of the window when nothing is left of it."""
        left, reset = headers.get("x-ratelimit-remaining"), headers.get("x-ratelimit-reset")
        if left is not None and reset is not None:
            spent = (number(left) or 0.0) < 1
            self._until = retry_at({"x-ratelimit-reset": reset}) if spent else None


def judge(status: int, headers: Mapping[str, str], body: bytes, *, token: bool) -> None:
    """Raise what the status and the kind of page mean; return when it is an answer.

    `token` says that an access token was asked for. Header names are looked up in lower case.
    """
    page = "html" in headers.get("content-type", "").lower() or body.lstrip()[:1] == b"<"
    if status in {200, 201, 202}:
        if page:
            wall = any(mark in body[:200_000].lower() for mark in _WALLS)
            raise (Blocked if wall else Broken)(NAME, "a web page instead of data")
        return
    if status == 429:
        raise RateLimited(NAME, "HTTP 429", retry_at=retry_at(headers))
    if 300 <= status < 400:
        login = "login" in headers.get("location", "")
        raise (Blocked if login else Broken)(NAME, "sent to the login" if login else "redirected")
    if status == 403:
        raise (Blocked if page else Refused)(NAME, f"HTTP 403{' page' if page else ''}")
    if status == 401 and not token:
        raise TokenRejected(NAME, "HTTP 401")
    if token and status in {400, 401}:
        raise Refused(NAME, f"HTTP {status} for the app's id and secret")
    if status == 408 or status >= 500:
        raise Unreachable(NAME, f"HTTP {status}")
    raise Broken(NAME, f"HTTP {status}")


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
