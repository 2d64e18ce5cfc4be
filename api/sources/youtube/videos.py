"""The YouTube Data API's JSON as items and comments: pure, and safe for any shape."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from api.services.schemas import Comment, Item, Measure
from api.services.text import clean, unescape
from api.sources.fields import entries, moment, pseudonym, record, whole
from api.sources.paging import Page
from api.sources.youtube import NAME

WATCH = "https://www.youtube.com/watch?v="


def page_of(answer: Mapping[str, Any]) -> Page:
    """One page of search results, a slot per entry; the cursor is Google's token."""
    token = answer.get("nextPageToken")
    return Page(
        tuple(video_of(entry) for entry in entries(answer.get("items"))),
        token if isinstance(token, str) and token else None,
    )


def video_of(entry: object) -> Item | None:
    """A video of a search, whose texts come escaped and cut; None for channels and playlists."""
    id_ = clean(record(record(entry).get("id")).get("videoId"))
    snippet = record(record(entry).get("snippet"))
    title, body = unescape(snippet.get("title")), unescape(snippet.get("description"))
    if not id_ or not (title or body):
        return None
    return Item(
        key=f"{NAME}:{id_}",
        id=id_,
        source=NAME,
        title=title,
        body=body,
        url=WATCH + id_,
        author=pseudonym("channel", snippet.get("channelId")),
        created_at=moment(snippet.get("publishedAt")),
        engagement=_engagement({}),
        place=unescape(snippet.get("channelTitle")) or None,
    )


def details_of(answer: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The videos of a `videos.list` answer by id."""
    return {clean(record(video).get("id")): record(video) for video in entries(answer.get("items"))}


def detailed(item: Item, video: Mapping[str, Any]) -> Item:
    """The item with full text and counts; here nothing is escaped."""
    snippet = record(video.get("snippet"))
    return replace(
        item,
        title=clean(snippet.get("title")) or item.title,
        body=clean(snippet.get("description")) or item.body,
        place=clean(snippet.get("channelTitle")) or item.place,
        created_at=moment(snippet.get("publishedAt")) or item.created_at,
        engagement=_engagement(record(video.get("statistics"))),
    )


def comments_of(answer: Mapping[str, Any], video: str, most: int) -> tuple[Comment, ...]:
    """Up to `most` comments: threads as Google ranks them, then the replies that came with them."""
    threads = [record(thread) for thread in entries(answer.get("items"))]
    values = [record(thread.get("snippet")).get("topLevelComment") for thread in threads]
    for thread in threads:
        values += entries(record(thread.get("replies")).get("comments"))
    comments = []
    for value in values:
        id_, snippet = clean(record(value).get("id")), record(record(value).get("snippet"))
        body = clean(snippet.get("textDisplay")) or clean(snippet.get("textOriginal"))
        if not id_ or not body:
            continue
        channel = record(snippet.get("authorChannelId")).get("value")
        comment = Comment(
            id=id_,
            body=body,
            url=f"{WATCH}{video}&lc={id_}",
            author=pseudonym("viewer", channel, snippet.get("authorDisplayName")),
            created_at=moment(snippet.get("publishedAt")),
            engagement={"likes": whole(snippet.get("likeCount"))},
        )
        comments.append(comment)
    return tuple(comments[:most])


def _engagement(statistics: Mapping[str, Any]) -> dict[str, Measure]:
    """Counts come as strings, and not at all when hidden or turned off."""
    names = {"views": "viewCount", "likes": "likeCount", "comments": "commentCount"}
    return {name: whole(statistics.get(field)) for name, field in names.items()}
