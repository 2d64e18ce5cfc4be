"""Amazon in files: the sets of reviews that are passed around, and the products' own lines.

Of 2014 and 2018 (`reviewText`, `overall`, `unixReviewTime`), of 2023 (`text`, `rating`,
`timestamp` in milliseconds, https://amazon-reviews-2023.github.io), and as tables (`review_body`,
`star_rating`; `ProductId`, `Score`, `Time`).
"""

from __future__ import annotations

from collections.abc import Iterator

from api.core.domain import Comment, Item
from api.core.text import clean, one_line, unescape
from api.errors import UsageError
from api.features.archive.imports import Entry, LeftOut
from api.sources.amazon_fields import BEGAN, asin_of, count_of, stars_of
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
from api.sources.item_fields import date_of, entries, is_said, number, plausible, pseudonym

NAME = "amazon"
SITE = "https://www.amazon.com"
_ASINS = ("parent_asin", "asin", "product_id", "ProductId")
_TEXTS = ("reviewText", "text", "review_body", "Text")
_TITLES = ("summary", "title", "review_headline", "Summary")
_WHOSE = ("reviewerID", "user_id", "customer_id", "UserId")
_STARS = ("overall", "rating", "star_rating", "Score")
_WHEN = ("unixReviewTime", "timestamp", "reviewTime", "review_date", "Time", "sort_timestamp")
_HELPFUL = ("vote", "helpful_vote", "helpful_votes", "HelpfulnessNumerator")
_MARKUP = {"<br />": "\n", "<br/>": "\n", "<br>": "\n"}


def _recognises(fields: Fields) -> bool:
    if not any(name in fields for name in _ASINS):
        return False
    return any(name in fields for name in _STARS) or "average_rating" in fields or _is_meta(fields)


def _is_meta(fields: Fields) -> bool:
    return "title" in fields and not any(name in fields for name in _TEXTS)


def _entries(fields: Fields, setting: Setting) -> Iterator[Entry]:
    asin = asin_of(first(fields, _ASINS))
    if not asin:
        raise UsageError("it has no ASIN (ten capital letters and digits)")
    if _is_meta(fields):
        yield entry_of(_product(asin, fields), setting)
        return
    review = _review(fields)
    if review is None:
        yield LeftOut(WORDLESS)
        return
    title = one_line(clean(fields.get("product_title")))
    product = Item(
        key=f"{NAME}:{asin}", id=asin, source=NAME, title=title, url=f"{SITE}/dp/{asin}",
        comments=(review,),
    )  # fmt: skip
    yield entry_of(stub(product), setting)


def _product(asin: str, fields: Fields) -> Item:
    lines = [*entries(fields.get("features")), *entries(fields.get("feature"))]
    lines += [fields["description"]] if isinstance(fields.get("description"), str) else []
    lines += entries(fields.get("description"))
    body = "\n".join(text for text in map(_words, lines) if text)
    return Item(
        key=f"{NAME}:{asin}",
        id=asin,
        source=NAME,
        title=one_line(unescape(fields.get("title"))),
        body=body,
        url=f"{SITE}/dp/{asin}",
        engagement={
            "stars": stars_of(fields.get("average_rating")),
            "ratings": count_of(fields.get("rating_number")),
        },
        place=one_line(clean(fields.get("store") or fields.get("brand"))) or None,
    )


def _review(fields: Fields) -> Comment | None:
    title, text = one_line(_words(first(fields, _TITLES))), _words(first(fields, _TEXTS))
    body = "\n".join(part for part in (title, text) if part)
    if not is_said(body):
        return None
    who, when = first(fields, _WHOSE), first(fields, _WHEN)
    known = one_line(clean(first(fields, ("review_id", "Id"))))
    return Comment(
        id=known or digest(clean(first(fields, _ASINS)), clean(who), clean(when), body),
        body=body,
        author=pseudonym("buyer", who),
        created_at=plausible(date_of(_time(when)), BEGAN),
        engagement={
            "stars": stars_of(number(first(fields, _STARS))),
            "helpful": count_of(first(fields, _HELPFUL)),
        },
    )


def _time(when: object) -> object:
    """Digits are a number; `09 1, 2016` is none."""
    return number(when) if isinstance(when, str) and when.strip().isdigit() else when


def _words(value: object) -> str:
    text = value if isinstance(value, str) else clean(value)
    for tag, sign in _MARKUP.items():
        text = text.replace(tag, sign)
    return unescape(text)


SHAPE = Shape(
    NAME, "Amazon", "`asin`, `parent_asin` or `product_id` beside a rating", _recognises, _entries
)
