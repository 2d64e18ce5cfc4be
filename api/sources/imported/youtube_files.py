"""YouTube in files: what the API answers, youtube-comment-downloader, yt-dlp, and tables.

A comment of a file that names no video belongs to one that is called as the file is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from api.core.domain import Comment, Item
from api.core.text import clean, one_line, unescape
from api.errors import UsageError
from api.features.archive.imports import Entry
from api.sources.amazon_fields import count_of
from api.sources.imported.file_formats import (
    Fields,
    FileContext,
    FileFormat,
    commented_entry,
    content_id,
    entry_of,
    first_value,
)
from api.sources.item_fields import (
    as_dict,
    as_list,
    parsed_date,
    plausible_time,
    pseudonym,
    says_something,
)
from api.sources.youtube_answers import BEGAN, NAME, WATCH, comments_of, video_of, with_details

# the names of one field in the different programs
_VIDEOS = ("videoId", "video_id", "videoID", "video id")
_TEXTS = ("text", "textOriginal", "textDisplay", "comment_text", "comment", "commentText")
_IDS = ("cid", "comment_id", "commentId", "id")
_TIMES = ("time_parsed", "timestamp", "publishedAt", "published_at", "updatedAt", "date")
_LIKES = ("votes", "like_count", "likeCount", "likes", "like count")
_AUTHORS = ("channel", "author_id", "authorChannelId", "authorDisplayName", "author", "username")
# a video's id, alone or at the end of a name: `dQw4w9WgXcQ`, `Review [dQw4w9WgXcQ].info`
_ID = re.compile(r"[A-Za-z0-9_-]{11}")
_ID_IN_NAME = re.compile(r"(?:^|[\[=])([A-Za-z0-9_-]{11})(?:\]|$)")
_KIND = "youtube#"


def _recognises(fields: Fields) -> bool:
    kind = fields.get("kind")
    has_text = any(name in fields for name in _TEXTS)
    return (
        (isinstance(kind, str) and kind.startswith(_KIND))
        or (has_text and any(name in fields for name in ("cid", *_VIDEOS)))
        or fields.get("extractor") == NAME
    )


def _entries(fields: Fields, context: FileContext) -> Iterator[Entry]:
    kind = clean(fields.get("kind")).removeprefix(_KIND)
    if kind.endswith("ListResponse"):
        for part in as_list(fields.get("items")):
            yield from _entries(as_dict(part), context)
    elif kind == "commentThread":
        video = _video(context, as_dict(fields.get("snippet")).get("videoId"))
        comments = comments_of({"items": [fields]}, video.id, len(str(fields)))
        yield commented_entry(_titled(video, context), comments, context)
    elif kind in {"video", "searchResult"}:
        id_ = fields.get("id") if kind == "searchResult" else {"videoId": fields.get("id")}
        item = video_of({**fields, "id": id_})
        if item is None:
            raise UsageError("it is no video")
        yield entry_of(with_details(item, fields), context)
    elif "extractor" in fields:
        video = _video(context, fields.get("id"))
        comments_given = as_list(fields.get("comments"))
        found = (_comment(as_dict(entry), video) for entry in comments_given)
        item = replace(
            video,
            title=one_line(clean(fields.get("title"))),
            body=clean(fields.get("description")),
            created_at=plausible_time(parsed_date(fields.get("timestamp")), BEGAN),
            engagement={
                "views": count_of(fields.get("view_count")),
                "likes": count_of(fields.get("like_count")),
            },
            place=one_line(clean(fields.get("channel"))) or None,
            comments=tuple(comment for comment in found if comment is not None),
        )
        yield entry_of(item, context)
    else:
        snippet = as_dict(fields.get("snippet")) or fields
        video = _video(context, first_value(snippet, _VIDEOS))
        comment = _comment({**snippet, "id": first_value(fields, _IDS)}, video)
        yield commented_entry(_titled(video, context), (comment,) if comment else (), context)


def _video(context: FileContext, given: object) -> Item:
    """The video without its own text; of a file that names none, one of the file's name."""
    id_, in_name = clean(given), _ID_IN_NAME.search(context.stem)
    if not _ID.fullmatch(id_):
        id_ = in_name[1] if in_name else ""
    url = f"{WATCH}{id_}" if id_ else ""
    id_ = id_ or f"file-{content_id(context.stem)}"
    title = "" if url else f"comments in {context.stem}"
    return Item(key=f"{NAME}:{id_}", id=id_, source=NAME, title=title, url=url)


def _titled(video: Item, context: FileContext) -> Item:
    return replace(video, title=context.product or video.title)


def _comment(fields: Fields, video: Item) -> Comment | None:
    body, author = unescape(first_value(fields, _TEXTS)), first_value(fields, _AUTHORS)
    if isinstance(author, dict):
        author = author.get("value")
    if not says_something(body):
        return None
    when, known = first_value(fields, _TIMES), one_line(clean(first_value(fields, _IDS)))
    id_ = known or content_id(video.key, clean(author), clean(when), body)
    return Comment(
        id=id_,
        body=body,
        url=f"{video.url}&lc={id_}" if video.url else "",
        author=pseudonym("viewer", author),
        created_at=plausible_time(parsed_date(when), BEGAN),
        engagement={"likes": count_of(first_value(fields, _LIKES))},
    )


YOUTUBE = FileFormat(
    NAME, "YouTube", "`kind` of YouTube's API, or `cid` or a video's id beside a text",
    _recognises, _entries,
)  # fmt: skip
