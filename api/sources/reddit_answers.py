"""Reddit's answers, of any shape: which failure they are, and their JSON as items and comments.

Also used by the import of dumps, which hold what the API answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from api.core.domain import BY_BOT
from api.core.http_limits import retry_at
from api.core.items import Comment, Item, pseudonym
from api.core.text import clean, unescape, web_url
from api.errors import Blocked, Broken, RateLimited, Refused, Unreachable
from api.sources.item_fields import (
    IMPLAUSIBLE_TIME,
    as_dict,
    as_int,
    as_list,
    as_number,
    is_bot,
    is_text,
    says_something,
    time_since,
    undeleted_text,
    unfit_reason,
    visible_text,
)
from api.sources.searched_source import Page, status_failure

NAME = "reddit"
# the month of the first submissions
BEGAN = datetime(2005, 6, 1, tzinfo=UTC)
SITE = "https://www.reddit.com"
# the profile of every user is a subreddit: `u_NAME`
_PROFILE = "u_"
# what pages that block a client say, in their first 200 KB
_WALLS = (b"/login", b"log in", b"whoa there", b"network security", b"captcha")


class TokenRejected(Refused):
    """An access token was revoked before its time."""


class ServerTrouble(Unreachable):
    """Reddit's server failed at this request, which the next one often does not."""


class Allowance:
    """What Reddit last said is left of the rate limit's window, for all clients of one app."""

    def __init__(self) -> None:
        self._until: datetime | None = None

    def check(self) -> None:
        """Raise `RateLimited` while nothing is left, where prawcore would sleep."""
        if self._until is not None and datetime.now(UTC) < self._until:
            raise RateLimited(NAME, "no requests left in this window", retry_at=self._until)

    def note(self, headers: Mapping[str, str]) -> None:
        """Keep the end of the window when nothing is left of it."""
        left, reset = headers.get("x-ratelimit-remaining"), headers.get("x-ratelimit-reset")
        if left is not None and reset is not None:
            spent = (as_number(left) or 0.0) < 1
            self._until = retry_at({"x-ratelimit-reset": reset}) if spent else None


def check_answer(status: int, headers: Mapping[str, str], body: bytes, *, token: bool) -> None:
    """Raise what an answer means that is none; `token`: it is that to a request for a token."""
    page = "html" in headers.get("content-type", "").lower() or body.lstrip()[:1] == b"<"
    if status in {200, 201, 202}:
        if page:
            wall = any(mark in body[:200_000].lower() for mark in _WALLS)
            raise (Blocked if wall else Broken)(NAME, "a web page instead of data")
        return
    if 300 <= status < 400:
        login = "login" in headers.get("location", "")
        raise (Blocked if login else Broken)(NAME, "sent to the login" if login else "redirected")
    if status == 403 and page:
        raise Blocked(NAME, "HTTP 403 page")
    if status == 401 and not token:
        raise TokenRejected(NAME, "HTTP 401")
    if token and status in {400, 401}:
        raise Refused(NAME, f"HTTP {status} for the app's id and secret")
    if status == 402:  # no quota of ours that could be used up: Reddit sells none
        raise Broken(NAME, "HTTP 402")
    if status >= 500:
        raise ServerTrouble(NAME, f"HTTP {status}")
    raise status_failure(NAME, status, retry_at=retry_at(headers))


def listing(value: object) -> Mapping[str, Any]:
    """The data of a listing; raises `Broken` for anything else."""
    data = as_dict(as_dict(value).get("data"))
    if not isinstance(data.get("children"), list):
        raise Broken(NAME, "an answer without a listing")
    return data


def page(data: Mapping[str, Any]) -> Page:
    """A page of search results, a slot per entry; raises `Broken` when none is a post."""
    after, children = data.get("after"), as_list(data.get("children"))
    if children and all(_submission(child) is None for child in children):
        raise Broken(NAME, "a listing without submissions")
    return Page(tuple(map(post, children)), after if isinstance(after, str) and after else None)


def _submission(child: object) -> Mapping[str, Any] | None:
    """The fields of a submission; None for other objects, and when id or texts are missing."""
    data = as_dict(as_dict(child).get("data"))
    read = clean(data.get("id")) and (is_text(data.get("title")) or is_text(data.get("selftext")))
    return data if read and as_dict(child).get("kind") == "t3" else None


def post(child: object) -> Item | None:
    """A submission; None for advertisements and other objects; `unfit` when deleted or by a bot."""
    data = _submission(child)
    if data is None or data.get("promoted"):
        return None
    id_ = clean(data.get("id"))
    parent = as_dict(next(iter(as_list(data.get("crosspost_parent_list"))), None))
    title, body = undeleted_text(clean(data.get("title"))), _body(data) or _body(parent)
    unfit = BY_BOT if is_bot(clean(data.get("author"))) else ""
    if not title and not body:
        unfit = unfit_reason(clean(data.get("title")), unescape(data.get("selftext")))
    origin = clean(data.get("crosspost_parent")) or clean(parent.get("name"))
    subreddit = clean(data.get("subreddit"))
    is_profile = subreddit.lower().startswith(_PROFILE)
    created = time_since(data.get("created_utc"), BEGAN)
    is_undated = created is None and data.get("created_utc") is not None
    return Item(
        key=f"{NAME}:t3_{id_}",
        id=id_,
        source=NAME,
        title=title,
        body=body,
        url=_address(None if is_profile else data.get("permalink"), f"/comments/{id_}/"),
        author=_author(data.get("author")),
        created_at=created,
        engagement={
            "votes": as_int(data.get("score")),
            "comments": as_int(data.get("num_comments")),
            "upvote_ratio": as_number(data.get("upvote_ratio")),
        },
        place=f"r/{subreddit}" if subreddit and not is_profile else None,
        crosspost_parent=f"{NAME}:{origin}" if origin.startswith("t3_") else None,
        link=web_url(data.get("url")) if data.get("is_self") is False else "",
        notes=(IMPLAUSIBLE_TIME,) if is_undated else (),
        unfit=unfit,
    )


def _body(data: Mapping[str, Any]) -> str:
    """The text, with the options of its poll and the captions of its pictures, a line each."""
    options = as_list(as_dict(data.get("poll_data")).get("options"))
    pictures = as_list(as_dict(data.get("gallery_data")).get("items"))
    lines = [
        *(clean(as_dict(option).get("text")) for option in options),
        *(clean(as_dict(picture).get("caption")) for picture in pictures),
    ]
    listed = "\n".join(f"- {line}" for line in lines if visible_text(line))
    return "\n\n".join(filter(None, (undeleted_text(unescape(data.get("selftext"))), listed)))


def comments(tree: Mapping[str, Any], post: Item, most: int) -> tuple[Comment, ...]:
    """The `most` best voted comments at any depth; raises `Broken` when none is readable."""
    kinds = [as_dict(child).get("kind") for child in as_list(tree.get("children"))]
    listed = list(_comments_below(tree))
    read = [data for data in listed if clean(data.get("id")) and is_text(data.get("body"))]
    if (kinds and not {"t1", "more"}.intersection(map(str, kinds))) or (listed and not read):
        raise Broken(NAME, "a thread without comments' texts")
    kept = [reply for data in read if (reply := comment(data, post)) is not None]
    # hidden votes count least
    votes = {reply.id: reply.engagement["votes"] for reply in kept}
    kept.sort(key=lambda reply: -float("inf") if (n := votes[reply.id]) is None else n, reverse=True)
    return tuple(kept[:most])


def comment(data: Mapping[str, Any], post: Item) -> Comment | None:
    """A comment on a post; None for a bot's, a pinned, a deleted or a wordless one."""
    id_, author, body = clean(data.get("id")), data.get("author"), unescape(data.get("body"))
    if data.get("stickied") or is_bot(clean(author)) or not says_something(undeleted_text(body)):
        return None
    permalink = data.get("permalink") if post.place else None
    return Comment(
        id=id_, body=body, url=_address(permalink, f"/comments/{post.id}/_/{id_}/"),
        author=_author(author), created_at=time_since(data.get("created_utc"), BEGAN),
        engagement={"votes": None if data.get("score_hidden") else as_int(data.get("score"))},
    )  # fmt: skip


def _comments_below(tree: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    queue = [tree]
    for branch in queue:
        for child in as_list(branch.get("children")):
            if as_dict(child).get("kind") == "t1":
                data = as_dict(as_dict(child).get("data"))
                yield data
                queue.append(as_dict(as_dict(data.get("replies")).get("data")))


def _author(name: object) -> str | None:
    return pseudonym("redditor", name) if undeleted_text(clean(name)) else None


def _address(permalink: object, otherwise: str) -> str:
    path = clean(permalink)
    return web_url(SITE + (path if path.startswith("/") else otherwise)) or SITE + otherwise
