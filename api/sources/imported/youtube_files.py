"""YouTube in files: what the API answers, youtube-comment-downloader, yt-dlp, and tables.

A comment of a file that names no video stands under one that is called as the file is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from api.core.domain import Comment, Item
from api.core.text import clean, one_line, unescape
from api.errors import UsageError
from api.features.archive.imports import Entry, LeftOut
from api.sources.amazon_fields import count_of
from api.sources.imported.file_formats import (
    WORDLESS,
    Fields,
    Setting,
    Shape,
    digest,
    entry_of,
    first,
    stub,
)
from api.sources.item_fields import date_of, entries, is_said, plausible, pseudonym, record
from api.sources.source_specs import YOUTUBE_NAME
from api.sources.youtube_answers import BEGAN, WATCH, comments_of, detailed, video_of

_VIDEOS = ("videoId", "video_id", "videoID", "video id")
_TEXTS = ("text", "textOriginal", "textDisplay", "comment_text", "comment", "commentText")
_IDS = ("cid", "comment_id", "commentId", "id")
_WHEN = ("time_parsed", "timestamp", "publishedAt", "published_at", "updatedAt", "date")
_LIKES = ("votes", "like_count", "likeCount", "likes", "like count")
_WHOSE = ("channel", "author_id", "authorChannelId", "authorDisplayName", "author", "username")
# a video's id, alone or at the end of a name: `dQw4w9WgXcQ`, `Review [dQw4w9WgXcQ].info`
_ID = re.compile(r"[A-Za-z0-9_-]{11}")
_NAMED = re.compile(r"(?:^|[\[=])([A-Za-z0-9_-]{11})(?:\]|$)")
_KIND = "youtube#"


def _recognises(fields: Fields) -> bool:
    kind = fields.get("kind")
    if isinstance(kind, str) and kind.startswith(_KIND):
        return True
    text = any(name in fields for name in _TEXTS)
    return (
        ("cid" in fields and text)
        or (any(name in fields for name in _VIDEOS) and text)
        or (fields.get("extractor") == YOUTUBE_NAME)
    )


def _entries(fields: Fields, setting: Setting) -> Iterator[Entry]:
    kind = clean(fields.get("kind")).removeprefix(_KIND)
    if kind.endswith("ListResponse"):
        for part in entries(fields.get("items")):
            yield from _entries(record(part), setting)
    elif kind == "commentThread":
        snippet = record(fields.get("snippet"))
        video = _video(setting, snippet.get("videoId"))
        comments = comments_of({"items": [fields]}, video.id, len(str(fields)))
        yield from _on(video, comments, setting)
    elif kind in {"video", "searchResult"}:
        listed = (
            fields if kind == "searchResult" else {**fields, "id": {"videoId": fields.get("id")}}
        )
        item = video_of(listed)
        if item is None:
            raise UsageError("it is no video")
        yield entry_of(detailed(item, fields), setting)
    elif "extractor" in fields:
        video = _video(setting, fields.get("id"))
        title, body = one_line(clean(fields.get("title"))), clean(fields.get("description"))
        remarks = (_comment(record(entry), video) for entry in entries(fields.get("comments")))
        yield entry_of(
            Item(
                key=video.key, id=video.id, source=YOUTUBE_NAME, title=title, body=body,
                url=video.url,
                created_at=plausible(date_of(fields.get("timestamp")), BEGAN),
                engagement={"views": count_of(fields.get("view_count")),
                            "likes": count_of(fields.get("like_count"))},
                place=one_line(clean(fields.get("channel"))) or None,
                comments=tuple(remark for remark in remarks if remark is not None),
            ),
            setting,
        )  # fmt: skip
    else:
        snippet = record(fields.get("snippet")) or fields
        video = _video(setting, first(snippet, _VIDEOS))
        remark = _comment({**snippet, "id": first(fields, _IDS)}, video)
        yield from _on(video, () if remark is None else (remark,), setting)


def _video(setting: Setting, named: object) -> Item:
    """The video without its own text; of a file that names none, one of the file's name."""
    id_, named_by = clean(named), _NAMED.search(setting.stem)
    if not _ID.fullmatch(id_):
        id_ = named_by[1] if named_by else ""
    url = f"{WATCH}{id_}" if id_ else ""
    id_ = id_ or f"file-{digest(setting.stem)}"
    title = "" if url else f"comments in {setting.stem}"
    return Item(key=f"{YOUTUBE_NAME}:{id_}", id=id_, source=YOUTUBE_NAME, title=title, url=url)


def _on(video: Item, comments: tuple[Comment, ...], setting: Setting) -> Iterator[Entry]:
    if not comments:
        yield LeftOut(WORDLESS)
        return
    item = Item(
        key=video.key, id=video.id, source=YOUTUBE_NAME, title=setting.product or video.title,
        url=video.url, comments=comments,
    )  # fmt: skip
    yield entry_of(stub(item), setting)


def _comment(fields: Fields, video: Item) -> Comment | None:
    body, who = unescape(first(fields, _TEXTS)), first(fields, _WHOSE)
    if isinstance(who, dict):
        who = who.get("value")
    if not is_said(body):
        return None
    when = first(fields, _WHEN)
    id_ = one_line(clean(first(fields, _IDS))) or digest(video.key, clean(who), clean(when), body)
    return Comment(
        id=id_,
        body=body,
        url=f"{video.url}&lc={id_}" if video.url else "",
        author=pseudonym("viewer", who),
        created_at=plausible(date_of(when), BEGAN),
        engagement={"likes": count_of(first(fields, _LIKES))},
    )


SHAPE = Shape(
    YOUTUBE_NAME, "YouTube", "`kind` of YouTube's API, or `cid` or a video's id beside a text",
    _recognises, _entries,
)  # fmt: skip
