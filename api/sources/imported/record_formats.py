"""Formats of collected files: Reddit's, YouTube's and Amazon's records, and a person's JSON lines.

Reddit: monthly dumps and Arctic Shift's exports hold what the API answers; the CSV files of a
person's own data have other names for it: https://www.reddit.com/settings/data-request
YouTube: answers of the API, youtube-comment-downloader, yt-dlp, and tables.
Amazon: the sets of reviews of 2014 and 2018 (`reviewText`, `overall`, `unixReviewTime`), of 2023
(`text`, `rating`, `timestamp` in milliseconds, https://amazon-reviews-2023.github.io), and as
tables (`review_body`, `star_rating`; `ProductId`, `Score`, `Time`).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from api.core.items import Comment, Item, pseudonym
from api.core.text import clean, one_line, unescape, web_url
from api.errors import UsageError
from api.features.archive.import_file import STUB
from api.features.archive.imports import Entry, LeftOut
from api.sources import amazon_pages, reddit_answers, youtube_answers
from api.sources.amazon_pages import count_of, stars_of
from api.sources.item_fields import as_dict, as_list, as_number, parsed_date, plausible_time, says_something
from api.sources.own_items import NAME, item_of

Fields = Mapping[str, Any]
WORDLESS = "says nothing: removed, a picture or a link, or a bot's"
"""Why a comment is left out."""


@dataclass(frozen=True, slots=True)
class FileContext:
    """What the records of a file do not say themselves."""

    stem: str
    """The file's name without its endings."""
    product: str = ""
    """Title of items without one."""


@dataclass(frozen=True, slots=True)
class FileFormat:
    """A format, recognised by the fields of its records."""

    name: str
    title: str
    """Name of the format for people."""
    signs: str
    """The fields by which it is recognised, in words."""
    recognises: Callable[[Fields], bool]
    entries: Callable[[Fields, FileContext], Iterator[Entry]]
    """The entries of a record; raises `UsageError` for one of another format."""


def entry_of(item: Item, context: FileContext) -> Entry:
    """The item as it is stored; one without usable text is kept only for its comments."""
    if item.unfit and not item.comments:
        return LeftOut(item.unfit)
    if item.unfit:
        notes = item.notes if STUB in item.notes else (*item.notes, STUB)
        item = item.edited(title="", body="", unfit="", notes=notes)
    return item if item.title else item.edited(title=context.product)


def _commented(parent: Item, comments: tuple[Comment, ...], context: FileContext) -> Entry:
    """Comments with their parent, of which nothing else is known."""
    if not comments:
        return LeftOut(WORDLESS)
    return entry_of(parent.edited(comments=comments, notes=(STUB,)), context)


def content_id(*parts: object) -> str:
    """A short id made of the content, so that it is the same in every file."""
    text = "\n".join(str(part) for part in parts)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _first(fields: Fields, names: tuple[str, ...]) -> object:
    return next((fields[name] for name in names if fields.get(name) not in (None, "")), None)


def _json_entries(fields: Fields, context: FileContext) -> Iterator[Entry]:
    item = item_of(fields, 0, named="the object")
    if not fields.get("key") and item.source == NAME:
        # an id or a line's number is one of its file's: two files may have the same
        own = content_id(fields.get("id"), item.title, item.body, item.created_at)
        item = item.edited(key=f"{NAME}:{own}")
    yield entry_of(item, context)


JSON_LINES = FileFormat("jsonl", "JSON lines", "JSON objects that no other format knows", lambda _: True, _json_entries)

# a post's address, with words of its title: `/r/gadgets/comments/1abc2d/plaud_note_review/`
_REDDIT_POST = re.compile(r"/comments/(?P<id>[a-z0-9]{1,13})(?:/(?P<words>\w+))?", re.I)
# ids are numbers to the base of 36
_REDDIT_ID = re.compile(r"[a-z0-9]{1,13}", re.I)


def _is_reddit(fields: Fields) -> bool:
    comment = "body" in fields and ("link_id" in fields or "link" in fields)
    post = "title" in fields and ("selftext" in fields or "permalink" in fields)
    return "subreddit" in fields and (comment or post)


def _reddit_entries(fields: Fields, context: FileContext) -> Iterator[Entry]:
    data = _as_reddit_answer(fields)
    if not _REDDIT_ID.fullmatch(clean(data.get("id"))):
        raise UsageError("it has no id of Reddit")
    if "link_id" in data:
        parent = _reddit_parent(data)
        comment = reddit_answers.comment(data, parent)
        yield _commented(parent, (comment,) if comment else (), context)
        return
    item = reddit_answers.post({"kind": "t3", "data": data})
    if item is not None:
        yield entry_of(item, context)
    elif data.get("promoted"):
        yield LeftOut("an advertisement")
    else:
        raise UsageError("it is neither a post nor a comment of Reddit")


def _as_reddit_answer(fields: Fields) -> Fields:
    """A record by the names of the API, its time as a number."""
    data = dict(fields)
    for name in ("title", "selftext", "body"):
        # the API gave it to the dump as HTML, Markdown's own entities included: `&amp;#x200B;`
        if isinstance(data.get(name), str):
            data[name] = unescape(data[name])
    when = parsed_date(data.get("created_utc", data.get("date")))
    data["created_utc"] = when.timestamp() if when else None
    if "selftext" not in data and "link_id" not in data:  # the person's own data
        post = _REDDIT_POST.search(clean(data.get("link")))
        if post is not None:
            data["link_id"] = f"t3_{post['id']}"
        elif "body" in data:
            data["selftext"] = data.pop("body", "")
            data["is_self"] = not web_url(data.get("url"))
    for name in ("permalink", "link"):
        address = clean(data.get(name))
        data[name] = address.removeprefix(reddit_answers.SITE) if address else None
    return data


def _reddit_parent(data: Fields) -> Item:
    """The post of a comment, with the title that the address holds."""
    post = clean(data.get("link_id")).removeprefix("t3_")
    if not _REDDIT_ID.fullmatch(post):
        raise UsageError("it is a comment on no post")
    address = _REDDIT_POST.search(clean(data.get("permalink")) or clean(data.get("link")))
    words = address["words"] if address and address["id"] == post else None
    fields = {
        "id": post,
        "title": one_line(clean(data.get("link_title"))) or one_line((words or "").replace("_", " ")),
        "subreddit": data.get("subreddit"),
        "permalink": f"/r/{clean(data.get('subreddit'))}/comments/{post}/",
    }
    parent = reddit_answers.post({"kind": "t3", "data": fields})
    assert parent is not None  # it has an id and a title, be it empty
    return parent.edited(engagement={}, unfit="")


REDDIT = FileFormat(
    reddit_answers.NAME, "Reddit", "`subreddit` beside `link_id`, `selftext` or `permalink`",
    _is_reddit, _reddit_entries,
)  # fmt: skip

# the names of one field in the different programs
_VIDEOS = ("videoId", "video_id", "videoID", "video id", "Video ID")
_VIDEO_TITLES = ("videoTitle", "video_title", "video title", "Video Title", "title", "parent_title")
_COMMENTS = ("textOriginal", "text", "comment_text", "comment", "commentText", "Comment text")
_COMMENT_IDS = ("cid", "comment_id", "commentId", "Comment ID", "id")
_TIMES = (
    "time_parsed", "timestamp", "publishedAt", "published_at", "updatedAt", "Comment create timestamp",
    "Comment Create Timestamp", "date",
)  # fmt: skip
_LIKES = ("votes", "like_count", "likeCount", "likes", "like count")
_VIEWERS = (
    "channel", "author_id", "authorChannelId", "authorDisplayName", "author", "username", "Channel ID",
)  # fmt: skip
# a video's id, alone or at the end of a name: `dQw4w9WgXcQ`, `Review [dQw4w9WgXcQ].info`
_VIDEO_ID = re.compile(r"[A-Za-z0-9_-]{11}")
_VIDEO_ID_IN_NAME = re.compile(r"(?:^|[\[=])([A-Za-z0-9_-]{11})(?:\]|$)")
_KIND = "youtube#"


def _is_youtube(fields: Fields) -> bool:
    kind = fields.get("kind")
    has_text = any(name in fields for name in (*_COMMENTS, "textDisplay"))
    return (
        (isinstance(kind, str) and kind.startswith(_KIND))
        or (has_text and any(name in fields for name in ("cid", *_VIDEOS)))
        or fields.get("extractor") == youtube_answers.NAME
        or _is_ytdlp_comment(fields)
        or (kind is None and any(map(_is_ytdlp_comment, as_list(fields.get("comments"))[:1])))
    )


def _is_ytdlp_comment(fields: object) -> bool:
    """Whether it is one of the comments that yt-dlp writes, alone or in a list."""
    names = as_dict(fields).keys()
    return (
        "author_id" in names and "text" in names and not names.isdisjoint({"author_thumbnail", "parent", "_time_text"})
    )


def _youtube_entries(fields: Fields, context: FileContext) -> Iterator[Entry]:
    kind = clean(fields.get("kind")).removeprefix(_KIND)
    if kind.endswith("ListResponse"):
        for part in as_list(fields.get("items")):
            yield from _youtube_entries(as_dict(part), context)
    elif kind == "commentThread":
        video = _video(context, as_dict(fields.get("snippet")).get("videoId"))
        comments = youtube_answers.comments_of({"items": [fields]}, video.id, len(str(fields)))
        yield _commented(_titled(video, fields, context), comments, context)
    elif kind in {"video", "searchResult"}:
        id_ = fields.get("id") if kind == "searchResult" else {"videoId": fields.get("id")}
        item = youtube_answers.video_of({**fields, "id": id_})
        if item is None:
            raise UsageError("it is no video")
        yield entry_of(youtube_answers.with_details(item, fields), context)
    elif "extractor" in fields or _is_ytdlp_comment(next(iter(as_list(fields.get("comments"))), None)):
        video = _video(context, fields.get("id"))
        parsed = (_viewer_comment(as_dict(each), video) for each in as_list(fields.get("comments")))
        item = video.edited(
            title=one_line(clean(fields.get("title"))),
            body=clean(fields.get("description")),
            created_at=_time(fields.get("timestamp"), youtube_answers.BEGAN),
            engagement={
                "views": count_of(fields.get("view_count")),
                "likes": count_of(fields.get("like_count")),
            },
            place=one_line(clean(fields.get("channel"))) or None,
            comments=tuple(comment for comment in parsed if comment is not None),
        )
        yield entry_of(item, context) if item.title else _commented(_titled(item, {}, context), item.comments, context)
    else:
        snippet = as_dict(fields.get("snippet")) or fields
        video = _video(context, _first(snippet, _VIDEOS))
        comment = _viewer_comment({**snippet, "id": _first(fields, _COMMENT_IDS)}, video)
        yield _commented(_titled(video, {**snippet, **fields}, context), (comment,) if comment else (), context)


def _video(context: FileContext, given: object) -> Item:
    """The video without its own text; when the record names none, the video in the file's name."""
    id_, in_name = clean(given), _VIDEO_ID_IN_NAME.search(context.stem)
    if not _VIDEO_ID.fullmatch(id_):
        id_ = in_name[1] if in_name else ""
    url = f"{youtube_answers.WATCH}{id_}" if id_ else ""
    id_ = id_ or f"file-{content_id(context.stem)}"
    title, source = "" if url else f"comments in {context.stem}", youtube_answers.NAME
    return Item(key=f"{source}:{id_}", id=id_, source=source, title=title, url=url)


def _titled(video: Item, fields: Fields, context: FileContext) -> Item:
    """The video of a comment by the title in the comment's record, else the product, else the file's name."""
    title = one_line(unescape(_first(fields, _VIDEO_TITLES)))
    return video.edited(title=title or context.product or video.title)


def _viewer_comment(fields: Fields, video: Item) -> Comment | None:
    body = youtube_answers.comment_text(takeout_text(_first(fields, _COMMENTS)), fields.get("textDisplay"))
    author = _first(fields, _VIEWERS)
    if isinstance(author, dict):
        author = author.get("value")
    if not says_something(body):
        return None
    when, known = _first(fields, _TIMES), one_line(clean(_first(fields, _COMMENT_IDS)))
    id_ = known or content_id(video.key, clean(author), clean(when), body)
    return Comment(
        id=id_, body=body, url=f"{video.url}&lc={id_}" if video.url else "",
        author=pseudonym("viewer", author), created_at=_time(when, youtube_answers.BEGAN),
        engagement={"likes": count_of(_first(fields, _LIKES))},
    )  # fmt: skip


def takeout_text(value: object) -> object:
    """The words of a comment in Google's takeout, `{"text":"so "},{"text":"warm"}`; any other value as it is."""
    if not (isinstance(value, str) and value.startswith('{"')):
        return value
    try:
        parts = json.loads(f"[{value}]")
    except (ValueError, RecursionError):
        return value
    parts = [part for whole in parts for part in as_list(as_dict(whole).get("takeoutSegments")) or [whole]]
    return "".join(words for part in parts if isinstance(words := as_dict(part).get("text"), str)) or value


def _time(value: object, since: datetime) -> datetime | None:
    return plausible_time(parsed_date(value), since)


YOUTUBE = FileFormat(
    youtube_answers.NAME, "YouTube",
    "`kind` of YouTube's API, or `cid` or a video's id beside a text",
    _is_youtube, _youtube_entries,
)  # fmt: skip

# the names of one field in the different sets
_ASINS = ("parent_asin", "asin", "product_id", "ProductId")
_REVIEWS = ("reviewText", "text", "review_body", "Text")
_TITLES = ("summary", "title", "review_headline", "Summary")
_BUYERS = ("reviewerID", "user_id", "customer_id", "UserId")
_STARS = ("overall", "rating", "star_rating", "Score")
_REVIEW_TIMES = (
    "unixReviewTime", "timestamp", "reviewTime", "review_date", "Time", "sort_timestamp",
)  # fmt: skip
_HELPFUL = ("vote", "helpful_vote", "helpful_votes", "HelpfulnessNumerator")


def _is_amazon(fields: Fields) -> bool:
    rated = any(name in fields for name in (*_STARS, "average_rating"))
    return any(name in fields for name in _ASINS) and (rated or _is_product(fields))


def _is_product(fields: Fields) -> bool:
    return "title" in fields and not any(name in fields for name in _REVIEWS)


def _amazon_entries(fields: Fields, context: FileContext) -> Iterator[Entry]:
    asin, source = amazon_pages.asin_of(_first(fields, _ASINS)), amazon_pages.NAME
    if not asin:
        raise UsageError("it has no ASIN (ten capital letters and digits)")
    title, url = one_line(clean(fields.get("product_title"))), f"{amazon_pages.US}/dp/{asin}"
    item = Item(key=f"{source}:{asin}", id=asin, source=source, title=title, url=url)
    if not _is_product(fields):
        review = _review(fields)
        yield _commented(item, (review,) if review else (), context)
        return
    description = fields.get("description")
    lines = [
        *as_list(fields.get("features")),
        *as_list(fields.get("feature")),
        *([description] if isinstance(description, str) else as_list(description)),
    ]
    item = item.edited(
        title=one_line(unescape(fields.get("title"))),
        body="\n".join(filter(None, map(_text, lines))),
        engagement={
            "stars": stars_of(fields.get("average_rating")),
            "ratings": count_of(fields.get("rating_number")),
        },
        place=one_line(clean(fields.get("store") or fields.get("brand"))) or None,
    )
    yield entry_of(item, context)


def _review(fields: Fields) -> Comment | None:
    title, text = (_text(_first(fields, names)) for names in (_TITLES, _REVIEWS))
    body = "\n".join(filter(None, (one_line(title), text)))
    if not says_something(body):
        return None
    author, when = _first(fields, _BUYERS), _first(fields, _REVIEW_TIMES)
    # seconds as text are a number; `09 1, 2016` is none
    is_count = isinstance(when, str) and when.strip().isdigit()
    known = one_line(clean(_first(fields, ("review_id", "Id"))))
    asin = clean(_first(fields, _ASINS))
    return Comment(
        id=known or content_id(asin, clean(author), clean(when), body),
        body=body,
        author=pseudonym("buyer", author),
        created_at=_time(as_number(when) if is_count else when, amazon_pages.BEGAN),
        engagement={
            "stars": stars_of(as_number(_first(fields, _STARS))),
            "helpful": count_of(_first(fields, _HELPFUL)),
        },
    )


def _text(value: object) -> str:
    text = value if isinstance(value, str) else clean(value)
    for tag in ("<br />", "<br/>", "<br>"):
        text = text.replace(tag, "\n")
    return unescape(text)


AMAZON = FileFormat(
    amazon_pages.NAME, "Amazon", "`asin`, `parent_asin` or `product_id` beside a rating",
    _is_amazon, _amazon_entries,
)  # fmt: skip
