"""What GitHub's answers mean: its limits, and its JSON as issues and comments.

Pure, and safe for any shape.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from api.errors import Broken, RateLimited, Refused, SourceError
from api.services.schemas import Comment, Item
from api.services.text import clean, web_url
from api.sources.bots import AUTOMATIC
from api.sources.fields import is_text, moment, number, pseudonym, record, whole
from api.sources.github import NAME, TOKEN
from api.sources.markup import words_of_markdown
from api.sources.opinions import is_said, seen, why_unfit
from api.sources.times import IMPLAUSIBLE, plausible
from api.sources.web import Reply

BEGAN = datetime(2008, 2, 1, tzinfo=UTC)
"""The month in which it opened."""
_PULL = "a pull request, not an issue"
_WAIT = timedelta(seconds=60)
"""What it asks for after too many requests at once, when an answer does not say."""
# the repository in `https://api.github.com/repos/OWNER/NAME` and `.../repos/OWNER/NAME/issues/7`
_REPOSITORY = re.compile(r"/repos/([\w.-]*\w[\w.-]*/[\w.-]*\w[\w.-]*)(?:/|$)", re.A)
# what a form leaves of a question that nobody answered
_UNANSWERED = re.compile(r"^_No response_[ \t]*$", re.M)
# a heading with nothing below it, up to the next of its rank or the end: `## Model\n\n## Page`
_BARE = re.compile(r"^(#{1,6})[ \t][^\n]*\n*(?=\Z|(?!\1#)#{1,6}[ \t])", re.M)


def failure_of(reply: Reply) -> SourceError | None:
    """Both of its limits come as 403 or 429, a query that it does not take as 422; else None."""
    if reply.html or reply.status not in {401, 403, 422, 429}:
        return None
    words = clean(record(reply.data).get("message")).lower()
    what = f"HTTP {reply.status}"
    if reply.status == 422:
        return Broken(NAME, f"{what}, a query that it does not take")
    if reply.status == 401:
        return Refused(NAME, f"{what} for `{TOKEN}`")
    if is_spent(reply):
        return RateLimited(NAME, f"{what}, its limit is reached", retry_at=reply.wait)
    if "secondary rate limit" in words:
        at = reply.wait or datetime.now(UTC) + _WAIT
        return RateLimited(NAME, f"{what}, too many requests at once", retry_at=at)
    if reply.status == 403 and ("retry-after" in reply.headers or "rate limit" in words):
        return RateLimited(NAME, f"{what}, its limit is reached", retry_at=reply.wait)
    return None


def is_spent(reply: Reply) -> bool:
    """Whether nothing is left of this kind of requests until the window ends."""
    return number(reply.headers.get("x-ratelimit-remaining")) == 0


def item_of(entry: object) -> Item | None:
    """An issue; None for what lacks number, repository or title."""
    fields = record(entry)
    issue, title = whole(fields.get("number")), fields.get("title")
    addresses = (clean(fields.get(name)) for name in ("repository_url", "url"))
    repository = next((match[1] for text in addresses if (match := _REPOSITORY.search(text))), "")
    if not issue or not repository or not is_text(title):
        return None
    unfit, name, body = "", clean(title), _written(fields.get("body"))
    if any(record(fields.get("pull_request")).values()):  # once it was there, empty, in issues too
        unfit = _PULL
    elif _is_bot(fields):
        unfit = AUTOMATIC
    created = plausible(moment(fields.get("created_at")), BEGAN)
    return Item(
        key=f"{NAME}:{repository}#{issue}",
        id=str(issue),
        source=NAME,
        title=seen(name),
        body=seen(body),
        url=web_url(fields.get("html_url")) or f"https://github.com/{repository}/issues/{issue}",
        author=_author(fields),
        created_at=created,
        engagement={
            "reactions": whole(record(fields.get("reactions")).get("total_count")),
            "comments": whole(fields.get("comments")),
        },
        place=repository,
        notes=() if created else (IMPLAUSIBLE,),
        unfit=unfit or why_unfit(name, body),
    )


def _written(value: object) -> str:
    """An issue's text without what its template asked for and nobody wrote."""
    text, before = _UNANSWERED.sub("", words_of_markdown(value)), None
    while text != before:  # below a heading may stand another: six ranks at most
        text, before = _BARE.sub("", text).strip(), text
    return text


def comment_of(fields: Mapping[str, Any]) -> Comment | None:
    """A comment; None for a program's, and where nothing is said."""
    text = words_of_markdown(fields.get("body"))
    if _is_bot(fields) or not is_said(text):
        return None
    return Comment(
        id=str(whole(fields.get("id"))),
        body=text,
        url=web_url(fields.get("html_url")),
        author=_author(fields),
        created_at=plausible(moment(fields.get("created_at")), BEGAN),
        engagement={"reactions": whole(record(fields.get("reactions")).get("total_count"))},
    )


def _is_bot(fields: Mapping[str, Any]) -> bool:
    user = record(fields.get("user"))
    return user.get("type") == "Bot" or clean(user.get("login")).endswith("[bot]")


def _author(fields: Mapping[str, Any]) -> str | None:
    return pseudonym("gh", record(fields.get("user")).get("login"))
