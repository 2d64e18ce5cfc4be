"""Reddit in files: monthly dumps and Arctic Shift's exports, and a person's own data (CSV).

Dumps hold what the API answers, a submission or a comment on each line; the person's `posts.csv`
and `comments.csv` have other names for it: https://www.reddit.com/settings/data-request
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from api.core.domain import Item
from api.core.text import clean, one_line, unescape, web_url
from api.errors import UsageError
from api.features.archive.imports import Entry, LeftOut
from api.sources import reddit_answers
from api.sources.imported.file_formats import (
    Fields,
    FileContext,
    FileFormat,
    commented_entry,
    entry_of,
)
from api.sources.item_fields import parsed_date
from api.sources.reddit_answers import NAME

# a post's address, with words of its title: `/r/gadgets/comments/1abc2d/plaud_note_review/`
_POST = re.compile(r"/comments/(?P<id>[a-z0-9]{1,13})(?:/(?P<words>\w+))?", re.I)
# ids are numbers to the base of 36
_ID = re.compile(r"[a-z0-9]{1,13}", re.I)


def _recognises(fields: Fields) -> bool:
    if "subreddit" not in fields:
        return False
    comment = "body" in fields and ("link_id" in fields or "link" in fields)
    return comment or ("title" in fields and ("selftext" in fields or "permalink" in fields))


def _entries(fields: Fields, context: FileContext) -> Iterator[Entry]:
    data = _as_answer(fields)
    if not _ID.fullmatch(clean(data.get("id"))):
        raise UsageError("it has no id of Reddit")
    if "link_id" in data:
        parent = _parent(data)
        comment = reddit_answers.comment(data, parent)
        yield commented_entry(parent, (comment,) if comment else (), context)
        return
    item = reddit_answers.post({"kind": "t3", "data": data})
    if item is not None:
        yield entry_of(item, context)
    elif data.get("promoted"):
        yield LeftOut("an advertisement")
    else:
        raise UsageError("it is neither a post nor a comment of Reddit")


def _as_answer(fields: Fields) -> Fields:
    """A record by the names of the API, its time as a number."""
    data = dict(fields)
    if isinstance(data.get("title"), str):
        data["title"] = unescape(data["title"])  # the API gave it to the dump as HTML
    when = parsed_date(data.get("created_utc", data.get("date")))
    data["created_utc"] = when.timestamp() if when else None
    if "selftext" not in data and "link_id" not in data:  # the person's own data
        post = _POST.search(clean(data.get("link")))
        if post is not None:
            data["link_id"] = f"t3_{post['id']}"
        elif "body" in data:
            data["selftext"] = data.pop("body", "")
            data["is_self"] = not web_url(data.get("url"))
    for name in ("permalink", "link"):
        address = clean(data.get(name))
        data[name] = address.removeprefix(reddit_answers.SITE) if address else None
    return data


def _parent(data: Fields) -> Item:
    """The post of a comment, with the title that the address holds."""
    post = clean(data.get("link_id")).removeprefix("t3_")
    if not _ID.fullmatch(post):
        raise UsageError("it is a comment on no post")
    address = _POST.search(clean(data.get("permalink")) or clean(data.get("link")))
    words = address["words"] if address and address["id"] == post else None
    fields = {
        "id": post,
        "title": one_line((words or "").replace("_", " ")),
        "subreddit": data.get("subreddit"),
        "permalink": f"/r/{clean(data.get('subreddit'))}/comments/{post}/",
    }
    parent = reddit_answers.post({"kind": "t3", "data": fields})
    assert parent is not None  # it has an id and a title, be it empty
    return Item(
        key=parent.key, id=post, source=NAME, title=parent.title, url=parent.url, place=parent.place
    )


REDDIT = FileFormat(
    NAME, "Reddit", "`subreddit` beside `link_id`, `selftext` or `permalink`", _recognises, _entries
)
