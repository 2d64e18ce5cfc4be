"""What Stack Exchange's answers mean: its errors, and its JSON as items and comments.

Pure, and safe for any shape.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from api.errors import (
    Broken,
    NotConfigured,
    QuotaExhausted,
    RateLimited,
    Refused,
    SourceError,
    Unreachable,
)
from api.services.schemas import Comment, Item
from api.services.text import clean, one_line, unescape, web_url
from api.sources.bots import AUTOMATIC
from api.sources.fields import moment, record, whole
from api.sources.markup import words_of_html
from api.sources.opinions import is_said, seen, why_unfit
from api.sources.stackexchange import NAME
from api.sources.times import IMPLAUSIBLE, plausible
from api.sources.web import Reply

BEGAN = datetime(2008, 7, 1, tzinfo=UTC)
"""The month of the first questions."""
_A_DAYS = 3_600
"""Seconds; a longer wait is not for going too fast but for the end of the day (UTC)."""
_COMMUNITY = -1
"""The user id of the sites' own program."""
# `too many requests from this IP, more requests available in 17524 seconds`
_AVAILABLE = re.compile(r"available in (\d{1,6}) second")
_REFUSALS = frozenset(
    "access_denied access_token_required invalid_access_token key_required".split()
)
_FAILURES = frozenset({"internal_error", "temporarily_unavailable"})


def failure_of(reply: Reply) -> SourceError | None:
    """The error that an answer names, which comes as HTTP 400 whatever it is; else None."""
    fields = record(reply.data)
    kind, words = fields.get("error_name"), clean(fields.get("error_message"))
    if not isinstance(kind, str):
        return None
    what = f"HTTP {reply.status} {kind if kind.isidentifier() else ''}".strip()[:60]
    if kind == "throttle_violation":
        wait = _AVAILABLE.search(words)
        seconds = int(wait[1]) if wait else 0
        limit = QuotaExhausted if seconds > _A_DAYS else RateLimited
        at = datetime.now(UTC) + timedelta(seconds=min(seconds, 86_400))
        return limit(NAME, what, retry_at=at if wait else reply.wait)
    if kind == "bad_parameter" and "site" in words:
        return NotConfigured(NAME, what)
    if kind in _REFUSALS or (kind == "bad_parameter" and "key" in words):
        return Refused(NAME, what)
    return Unreachable(NAME, what) if kind in _FAILURES else Broken(NAME, what)


def item_of(entry: object, site: str) -> Item | None:
    """A question; None for what lacks id or title."""
    fields = record(entry)
    id_, title = whole(fields.get("question_id")), unescape(fields.get("title"))
    if not id_ or not isinstance(fields.get("title"), str):
        return None
    owner, body = record(fields.get("owner")), words_of_html(fields.get("body"))
    created = plausible(moment(fields.get("creation_date")), BEGAN)
    automatic = whole(owner.get("user_id")) == _COMMUNITY
    return Item(
        key=f"{NAME}:{site}:{id_}",
        id=str(id_),
        source=NAME,
        title=seen(title),
        body=seen(body),
        url=web_url(fields.get("link")),
        author=_name(owner),
        credit=_credit(owner),
        created_at=created,
        engagement={
            "score": whole(fields.get("score")),
            "views": whole(fields.get("view_count")),
            "answers": whole(fields.get("answer_count")),
        },
        place=site,
        notes=() if created else (IMPLAUSIBLE,),
        unfit=AUTOMATIC if automatic else why_unfit(title, body),
    )


def comment_of(fields: Mapping[str, Any], item: Item) -> Comment | None:
    """An answer; None where it says nothing, and for the program's own."""
    text, owner = words_of_html(fields.get("body")), record(fields.get("owner"))
    if not is_said(text) or whole(owner.get("user_id")) == _COMMUNITY:
        return None
    id_, site = whole(fields.get("answer_id")), urlsplit(item.url)
    return Comment(
        id=str(id_),
        body=text,
        url=web_url(f"{site.scheme}://{site.netloc}/a/{id_}"),
        author=_name(owner),
        credit=_credit(owner),
        created_at=plausible(moment(fields.get("creation_date")), BEGAN),
        engagement={"score": whole(fields.get("score"))},
    )


def _name(owner: Mapping[str, Any]) -> str | None:
    return one_line(unescape(owner.get("display_name"))) or None


def _credit(owner: Mapping[str, Any]) -> str | None:
    """Name and profile, as the licence asks: `Ada (https://superuser.com/users/7/ada)`."""
    name, profile = _name(owner), web_url(owner.get("link"))
    if not name or not profile:  # nobody's name may pass for a profile
        return None if name and "://" in name else name
    return f"{name} ({profile})"
