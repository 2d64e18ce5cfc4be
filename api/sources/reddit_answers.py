"""What Reddit's answers mean: whether they are answers, and their JSON as items and comments.

Pure, and safe for any shape.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from api.core.domain import Comment, Item
from api.core.http_limits import retry_at
from api.core.text import clean, unescape, web_url
from api.errors import Blocked, Broken, RateLimited, Refused, Unreachable
from api.pipeline.gate.drop_reasons import BY_BOT
from api.sources.item_fields import (
    IMPLAUSIBLE,
    entries,
    is_bot,
    is_said,
    is_text,
    left,
    moment,
    number,
    plausible,
    pseudonym,
    record,
    seen,
    whole,
    why_unfit,
)
from api.sources.paging import Page
from api.sources.source_specs import REDDIT_NAME

BEGAN = datetime(2005, 6, 1, tzinfo=UTC)
"""The month of the first submissions."""
# The beginning of the place that every user has for himself: `u_NAME`.
_PROFILE = "u_"
SITE = "https://www.reddit.com"
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
            raise RateLimited(REDDIT_NAME, "no requests left in this window", retry_at=until)

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
            raise (Blocked if wall else Broken)(REDDIT_NAME, "a web page instead of data")
        return
    if status == 429:
        raise RateLimited(REDDIT_NAME, "HTTP 429", retry_at=retry_at(headers))
    if 300 <= status < 400:
        login = "login" in headers.get("location", "")
        raise (Blocked if login else Broken)(
            REDDIT_NAME, "sent to the login" if login else "redirected"
        )
    if status == 403:
        raise (Blocked if page else Refused)(REDDIT_NAME, f"HTTP 403{' page' if page else ''}")
    if status == 401 and not token:
        raise TokenRejected(REDDIT_NAME, "HTTP 401")
    if token and status in {400, 401}:
        raise Refused(REDDIT_NAME, f"HTTP {status} for the app's id and secret")
    if status == 408 or status >= 500:
        raise Unreachable(REDDIT_NAME, f"HTTP {status}")
    raise Broken(REDDIT_NAME, f"HTTP {status}")


def listing(value: object) -> Mapping[str, Any] | None:
    """The data of a listing; None when it is none."""
    data = record(record(value).get("data"))
    return data if isinstance(data.get("children"), list) else None


def page(data: Mapping[str, Any]) -> Page | None:
    """One page of search results, a slot per entry; None when none has the fields of a post."""
    after, children = data.get("after"), entries(data.get("children"))
    if children and all(_submission(child) is None for child in children):
        return None
    return Page(
        tuple(map(post, children)),
        after if isinstance(after, str) and after else None,
    )


def _submission(child: object) -> Mapping[str, Any] | None:
    """The fields of a submission; None for what is none, and for one that lacks id or texts."""
    data = record(record(child).get("data"))
    read = clean(data.get("id")) and (is_text(data.get("title")) or is_text(data.get("selftext")))
    return data if read and record(child).get("kind") == "t3" else None


def post(child: object) -> Item | None:
    """A submission; None for advertisements and other things.

    One whose texts are gone, or that a program wrote, is `unfit`. A user's own profile is no place,
    and its address, which names the user, is not used.
    """
    data = _submission(child)
    if data is None or data.get("promoted"):
        return None
    id_ = clean(data.get("id"))
    parent = record(next(iter(entries(data.get("crosspost_parent_list"))), None))
    title, body = left(clean(data.get("title"))), _body(data) or _body(parent)
    unfit = BY_BOT if is_bot(clean(data.get("author"))) else ""
    if not title and not body:
        unfit = why_unfit(clean(data.get("title")), unescape(data.get("selftext")))
    origin = clean(data.get("crosspost_parent")) or clean(parent.get("name"))
    place = clean(data.get("subreddit"))
    profile = place.lower().startswith(_PROFILE)
    created = plausible(moment(data.get("created_utc")), BEGAN)
    return Item(
        key=f"{REDDIT_NAME}:t3_{id_}",
        id=id_,
        source=REDDIT_NAME,
        title=title,
        body=body,
        url=_address(None if profile else data.get("permalink"), f"/comments/{id_}/"),
        author=_author(data.get("author")),
        created_at=created,
        engagement={
            "votes": whole(data.get("score")),
            "comments": whole(data.get("num_comments")),
            "upvote_ratio": number(data.get("upvote_ratio")),
        },
        place=f"r/{place}" if place and not profile else None,
        crosspost_parent=f"{REDDIT_NAME}:{origin}" if origin.startswith("t3_") else None,
        link=web_url(data.get("url")) if data.get("is_self") is False else "",
        notes=(IMPLAUSIBLE,) if created is None and data.get("created_utc") is not None else (),
        unfit=unfit,
    )


def _body(data: Mapping[str, Any]) -> str:
    """The text, with the options of its poll and the captions of its pictures, a line each."""
    options = entries(record(data.get("poll_data")).get("options"))
    pictures = entries(record(data.get("gallery_data")).get("items"))
    lines = [
        *(clean(record(option).get("text")) for option in options),
        *(clean(record(picture).get("caption")) for picture in pictures),
    ]
    listed = "\n".join(f"- {line}" for line in lines if seen(line))
    text = left(unescape(data.get("selftext")))
    return "\n\n".join(part for part in (text, listed) if part)


def comments(tree: Mapping[str, Any], post: Item, most: int) -> tuple[Comment, ...] | None:
    """The `most` best voted comments of a thread, None when none has the fields of a comment.

    Bots, pins, what was deleted and what holds no word are left out.
    """
    kinds = [record(child).get("kind") for child in entries(tree.get("children"))]
    if kinds and not any(kind in ("t1", "more") for kind in kinds):
        return None
    listed = list(_walk(tree))
    read = [data for data in listed if clean(data.get("id")) and is_text(data.get("body"))]
    if listed and not read:
        return None
    worth = [remark for data in read if (remark := comment(data, post)) is not None]
    worth.sort(key=_votes, reverse=True)
    return tuple(worth[:most])


def comment(data: Mapping[str, Any], post: Item) -> Comment | None:
    """A comment on a post; None for a bot's, a pin, what was deleted and what holds no word."""
    id_, author, body = clean(data.get("id")), data.get("author"), unescape(data.get("body"))
    if data.get("stickied") or is_bot(clean(author)) or not is_said(left(body)):
        return None
    return Comment(
        id=id_,
        body=body,
        url=_address(
            data.get("permalink") if post.place else None, f"/comments/{post.id}/_/{id_}/"
        ),
        author=_author(author),
        created_at=plausible(moment(data.get("created_utc")), BEGAN),
        engagement={"votes": None if data.get("score_hidden") else whole(data.get("score"))},
    )


def _votes(remark: Comment) -> float:
    """Hidden ones count least."""
    votes = remark.engagement["votes"]
    return float("-inf") if votes is None else votes


def _walk(tree: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Every comment, parents before replies, at any depth."""
    queue = [tree]
    for branch in queue:
        for child in entries(branch.get("children")):
            if record(child).get("kind") == "t1":
                data = record(record(child).get("data"))
                yield data
                queue.append(record(record(data.get("replies")).get("data")))


def _author(name: object) -> str | None:
    return pseudonym("redditor", name) if left(clean(name)) else None


def _address(permalink: object, otherwise: str) -> str:
    path = clean(permalink)
    return web_url(SITE + (path if path.startswith("/") else otherwise)) or SITE + otherwise
