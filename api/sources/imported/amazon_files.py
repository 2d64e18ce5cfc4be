"""Amazon in files: the published sets of reviews, and the products' own lines.

Of 2014 and 2018 (`reviewText`, `overall`, `unixReviewTime`), of 2023 (`text`, `rating`,
`timestamp` in milliseconds, https://amazon-reviews-2023.github.io), and as tables (`review_body`,
`star_rating`; `ProductId`, `Score`, `Time`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from api.core.domain import Comment, Item
from api.core.text import clean, one_line, unescape
from api.errors import UsageError
from api.features.archive.imports import Entry
from api.sources.amazon_fields import BEGAN, NAME, US, asin_of, count_of, stars_of
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
    as_list,
    as_number,
    parsed_date,
    plausible_time,
    pseudonym,
    says_something,
)

# the names of one field in the different sets
_ASINS = ("parent_asin", "asin", "product_id", "ProductId")
_TEXTS = ("reviewText", "text", "review_body", "Text")
_TITLES = ("summary", "title", "review_headline", "Summary")
_AUTHORS = ("reviewerID", "user_id", "customer_id", "UserId")
_STARS = ("overall", "rating", "star_rating", "Score")
_TIMES = ("unixReviewTime", "timestamp", "reviewTime", "review_date", "Time", "sort_timestamp")
_HELPFUL = ("vote", "helpful_vote", "helpful_votes", "HelpfulnessNumerator")


def _recognises(fields: Fields) -> bool:
    rated = any(name in fields for name in (*_STARS, "average_rating"))
    return any(name in fields for name in _ASINS) and (rated or _is_product(fields))


def _is_product(fields: Fields) -> bool:
    return "title" in fields and not any(name in fields for name in _TEXTS)


def _entries(fields: Fields, context: FileContext) -> Iterator[Entry]:
    asin = asin_of(first_value(fields, _ASINS))
    if not asin:
        raise UsageError("it has no ASIN (ten capital letters and digits)")
    title = one_line(clean(fields.get("product_title")))
    item = Item(key=f"{NAME}:{asin}", id=asin, source=NAME, title=title, url=f"{US}/dp/{asin}")
    if not _is_product(fields):
        review = _review(fields)
        yield commented_entry(item, (review,) if review else (), context)
        return
    description = fields.get("description")
    lines = [
        *as_list(fields.get("features")),
        *as_list(fields.get("feature")),
        *([description] if isinstance(description, str) else as_list(description)),
    ]
    item = replace(
        item,
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
    title, text = (_text(first_value(fields, names)) for names in (_TITLES, _TEXTS))
    body = "\n".join(filter(None, (one_line(title), text)))
    if not says_something(body):
        return None
    author, when = first_value(fields, _AUTHORS), first_value(fields, _TIMES)
    # seconds as text are a number; `09 1, 2016` is none
    is_count = isinstance(when, str) and when.strip().isdigit()
    known = one_line(clean(first_value(fields, ("review_id", "Id"))))
    asin = clean(first_value(fields, _ASINS))
    return Comment(
        id=known or content_id(asin, clean(author), clean(when), body),
        body=body,
        author=pseudonym("buyer", author),
        created_at=plausible_time(parsed_date(as_number(when) if is_count else when), BEGAN),
        engagement={
            "stars": stars_of(as_number(first_value(fields, _STARS))),
            "helpful": count_of(first_value(fields, _HELPFUL)),
        },
    )


def _text(value: object) -> str:
    text = value if isinstance(value, str) else clean(value)
    for tag in ("<br />", "<br/>", "<br>"):
        text = text.replace(tag, "\n")
    return unescape(text)


AMAZON = FileFormat(
    NAME, "Amazon", "`asin`, `parent_asin` or `product_id` beside a rating", _recognises, _entries
)
