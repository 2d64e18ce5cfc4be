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
from api.sources.imported.file_formats import WORDLESS, Fields, Setting, Shape, entry_of, stub
from api.sources.item_fields import date_of
from api.sources.source_specs import REDDIT_NAME

# a post's address, with words of its title: `/r/gadgets/comments/1abc2d/plaud_note_review/`
_POST = re.compile(r"/comments/(?P<id>[a-z0-9]{1,13})(?:/(?P<words>\w+))?", re.I)
_ID = re.compile(r"[a-z0-9]{1,13}", re.I)


def _recognises(fields: Fields) -> bool:
    if "subreddit" not in fields:
        return False
    comment = "body" in fields and ("link_id" in fields or "link" in fields)
    post = "title" in fields and ("selftext" in fields or "permalink" in fields)
    return comment or post


def _entries(fields: Fields, setting: Setting) -> Iterator[Entry]:
    data = _plain(fields)
    if not _ID.fullmatch(clean(data.get("id"))):
        raise UsageError("it has no id of Reddit")
    if "link_id" in data:
        yield _comment(data, setting)
    else:
        item = reddit_answers.post({"kind": "t3", "data": data})
        if item is None:
            if data.get("promoted"):
                yield LeftOut("an advertisement")
                return
            raise UsageError("it is neither a post nor a comment of Reddit")
        yield entry_of(item, setting)


def _plain(fields: Fields) -> Fields:
    """A record by the names of the API, its time as a number."""
    data = dict(fields)
    if isinstance(data.get("title"), str):
        data["title"] = unescape(data["title"])  # the API gave it to the dump as HTML
    when = date_of(data.get("created_utc", data.get("date")))
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


def _comment(data: Fields, setting: Setting) -> Entry:
    post = clean(data.get("link_id")).removeprefix("t3_")
    if not _ID.fullmatch(post):
        raise UsageError("it is a comment on no post")
    address = _POST.search(clean(data.get("permalink")) or clean(data.get("link")))
    words = address["words"] if address and address["id"] == post else None
    parent = reddit_answers.post(
        {
            "kind": "t3",
            "data": {
                "id": post,
                "title": one_line((words or "").replace("_", " ")),
                "subreddit": data.get("subreddit"),
                "permalink": f"/r/{clean(data.get('subreddit'))}/comments/{post}/",
            },
        }
    )
    assert parent is not None  # it has an id and a title, be it empty
    remark = reddit_answers.comment(data, parent)
    if remark is None:
        return LeftOut(WORDLESS)
    known = Item(
        key=parent.key, id=post, source=REDDIT_NAME, title=parent.title, url=parent.url,
        place=parent.place, comments=(remark,),
    )  # fmt: skip
    return entry_of(stub(known), setting)


SHAPE = Shape(
    "reddit", "Reddit", "`subreddit` beside `link_id`, `selftext` or `permalink`", _recognises,
    _entries,
)  # fmt: skip
