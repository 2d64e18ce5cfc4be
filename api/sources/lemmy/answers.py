"""What Lemmy's answers mean, of 0.19 and of 1.0: posts and comments as items and comments.

The two differ in names: `actor_id` became `ap_id`, `published` became `published_at`, and counts
moved into what they count.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from api.services.gate.unfit import REMOVED
from api.services.schemas import Comment, Item
from api.services.text import clean, one_line, web_url
from api.sources.bots import AUTOMATIC
from api.sources.fields import is_text, moment, pseudonym, record, whole
from api.sources.lemmy import NAME
from api.sources.markup import words_of_markdown
from api.sources.opinions import is_said, left, seen, why_unfit
from api.sources.times import IMPLAUSIBLE, plausible
from api.sources.web import host_of


def post_of(entry: object) -> Item | None:
    """A post; None for what lacks id, address or title."""
    fields = record(record(entry).get("post"))
    if not _is_whole(fields) or not is_text(fields.get("name")):
        return None
    texts = clean(fields.get("name")), words_of_markdown(fields.get("body"))
    return _item(entry, fields, texts, ("score", "comments"), unfit=why_unfit(*texts))


def comment_hit_of(entry: object) -> Item | None:
    """A comment under its post's title; None for what lacks ids, addresses or texts."""
    fields, post = record(record(entry).get("comment")), record(record(entry).get("post"))
    if not (_is_whole(fields) and is_text(fields.get("content")) and is_text(post.get("name"))):
        return None
    texts = clean(post.get("name")), words_of_markdown(fields.get("content"))
    unfit, thread = why_unfit(texts[1]), f"{NAME}:{web_url(post.get('ap_id'))}"
    return _item(entry, fields, texts, ("score",), unfit=unfit, thread=thread)


def comment_of(entry: object) -> Comment | None:
    """What somebody said; None where it was removed, says nothing, or a program wrote it."""
    fields = record(record(entry).get("comment"))
    text = words_of_markdown(fields.get("content"))
    creator = record(record(entry).get("creator"))
    if _is_gone(fields) or creator.get("bot_account") is True or not is_said(left(text)):
        return None
    return Comment(
        id=str(whole(fields.get("id"))),
        body=text,
        url=web_url(fields.get("ap_id")),
        author=_author(creator),
        created_at=plausible(_moment(fields)),
        engagement={"score": _count(entry, fields, "score")},
    )


def is_comment(entry: object) -> bool:
    """Whether an entry has the fields of a comment that are read."""
    fields = record(record(entry).get("comment"))
    return _is_whole(fields) and is_text(fields.get("content"))


def _item(
    entry: object,
    fields: Mapping[str, Any],
    texts: tuple[str, str],
    counts: tuple[str, ...],
    *,
    unfit: str,
    thread: str = "",
) -> Item:
    creator, community = (record(record(entry).get(name)) for name in ("creator", "community"))
    if creator.get("bot_account") is True:
        unfit = AUTOMATIC
    address, created = web_url(fields.get("ap_id")), plausible(_moment(fields))
    return Item(
        key=f"{NAME}:{address}",
        id=str(whole(fields.get("id"))),
        source=NAME,
        title=seen(texts[0]),
        body=left(texts[1]),
        url=address,
        author=_author(creator),
        created_at=created,
        engagement={name: _count(entry, fields, name) for name in counts},
        place=_place(community),
        thread=thread,
        link="" if thread else web_url(fields.get("url")),
        notes=() if created else (IMPLAUSIBLE,),
        unfit=REMOVED if _is_gone(fields) else unfit,
    )


def _is_whole(fields: Mapping[str, Any]) -> bool:
    return whole(fields.get("id")) is not None and bool(web_url(fields.get("ap_id")))


def _is_gone(fields: Mapping[str, Any]) -> bool:
    return fields.get("removed") is True or fields.get("deleted") is True


def _moment(fields: Mapping[str, Any]) -> Any:
    return moment(fields.get("published_at") or fields.get("published"))


def _count(entry: object, fields: Mapping[str, Any], name: str) -> int | None:
    """A count, which 1.0 has in the post or comment itself."""
    beside = record(record(entry).get("counts"))
    return whole(fields.get(name) if name in fields else beside.get(name))


def _author(creator: Mapping[str, Any]) -> str | None:
    return pseudonym("lemming", creator.get("ap_id"), creator.get("actor_id"), creator.get("name"))


def _place(community: Mapping[str, Any]) -> str | None:
    """`gadgets@lemmy.world`; without the server where its address says none."""
    name = one_line(clean(community.get("name")))
    address = web_url(community.get("ap_id")) or web_url(community.get("actor_id"))
    return "@".join(filter(None, (name, host_of(address)))) if name else None
