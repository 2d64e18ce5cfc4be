"""Tables of listening tools and of anybody: which column is what, and how dates are written.

Columns are found by the names that Brandwatch, Talkwalker, Meltwater, Sprinklr, Mention and YouScan
give them; `--map` says it where they are called otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType

from api.errors import UsageError
from api.services.archive.imports import Entry
from api.services.text import clean, fold, one_line, web_url
from api.sources.collected.shapes import Fields, Setting, digest, entry_of
from api.sources.dates import date_of
from api.sources.items import NAME, item_of

FIELDS: Mapping[str, str] = MappingProxyType(
    {
        "title": "title headline subject titel titre titulo summary",
        "body": "fulltext body content text message snippet description hitsentence post tweet "
        "review comment mentiontext fullcontent contentsnippet openingtext inhalt beitrag texte "
        "contenido selftext reviewtext reviewbody",
        "url": "url link permalink mentionurl posturl address originalurl sourceurl uri",
        "author": "author authorname username screenname user influencer fullname extraauthor"
        "attributesname authordisplayname autor auteur sender profile",
        "created_at": "createdat date published publishedat created createdtime datetime time "
        "timestamp publicationdate postdate createdutc datum datecreated indexed",
        "id": "id mentionid postid documentid resourceid queryid guid externalid uuid",
        "place": "place subreddit channel community forum domain sourcename sitename site source "
        "platform pagetype sourcetype medianame publication network quelle",
    }
)  # fmt: skip
"""What an entry has, and the names of columns that hold it, the likeliest first, folded."""
_PLAIN = re.compile(r"[\W_]+")
# `31/12/2026`, `3.4.26 18:05`, `12-31-2026, 6:05 PM`: two small numbers whose order is unknown
_NUMERIC = re.compile(
    r"(?P<first>\d{1,2})(?P<sign>[/.-])(?P<second>\d{1,2})(?P=sign)(?P<year>\d{4}|\d{2})"
    r"(?:[ ,T]+(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<s>\d{2})(?:\.\d+)?)?"
    r"\s*(?P<half>[AaPp]\.?[Mm]\.?)?)?"
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Columns:
    """Which column holds what, and how its dates read."""

    named: Mapping[str, str]
    """Field -> column."""
    day_first: bool
    """`3/4/2026` is the third of April."""
    dates: str
    """How they are written, in words."""

    def entries(self, fields: Fields, setting: Setting) -> Iterator[Entry]:
        """The row as an item.

        Raises:
            UsageError: it has no text.
        """
        row = {name: fields.get(column) for name, column in self.named.items()}
        if not clean(row.get("title")) and not clean(row.get("body")):
            raise UsageError("it has neither title nor text")
        when = self._moment(row.get("created_at"))
        url = web_url(row.get("url"))
        known = {name: row[name] for name in ("title", "body", "author", "place") if row.get(name)}
        # an id is one of its tool's: with the address, or the text, it is nobody else's
        parts = (row.get("id"), url or (row.get("title"), row.get("body"), when))
        id_ = one_line(clean(row.get("id"))) or digest(*parts)
        known |= {"id": id_, "key": f"{NAME}:{digest(*parts)}", "url": url}
        known |= {"created_at": when and when.isoformat()}
        item = item_of(known, 0, named="the row")
        yield entry_of(item, setting)

    def _moment(self, value: object) -> datetime | None:
        text = one_line(clean(value))
        return numeric(text, day_first=self.day_first) or date_of(text)


def columns_of(head: Sequence[str], rows: Sequence[Fields], given: Mapping[str, str]) -> Columns:
    """Which column is what: as `given` (field -> column), and by their names.

    Raises:
        UsageError: a given column is not there, or none holds a text.
    """
    for field, column in given.items():
        if column not in head:
            there = ", ".join(f"`{name}`" for name in head[:20])
            raise UsageError(f"has no column `{column[:60]}` for `{field}`; there are {there}")
    named = dict(given)
    for field, names in FIELDS.items():
        free = {_plain(name): name for name in reversed(head) if name not in named.values()}
        likely = next((free[name] for name in names.split() if name in free), None)
        if field not in named and likely is not None:
            named[field] = likely
    if "body" not in named and "title" not in named:
        there = ", ".join(f"`{name}`" for name in head[:20])
        raise UsageError(f"has no column for a text; say it with `--map body=COLUMN`: {there}")
    when = named.get("created_at", "")
    values = [one_line(clean(row.get(when))) for row in rows]
    day_first, words = order_of([value for value in values if value])
    return Columns(MappingProxyType(named), day_first, words)


def order_of(values: Sequence[str]) -> tuple[bool, str]:
    """Whether the day stands before the month in dates such as `3/4/2026`, and how it is known."""
    matches = [match for value in values if (match := _NUMERIC.match(value))]
    if not values:
        return False, "none"
    if not matches:
        read = sum(date_of(value) is not None for value in values)
        return False, f"{read} of the first {len(values)} can be read"
    if any(int(match["first"]) > 12 for match in matches):
        return True, "day before month, as a day above 12 shows"
    if any(int(match["second"]) > 12 for match in matches):
        return False, "month before day, as a day above 12 shows"
    dotted = any(match["sign"] == "." for match in matches)
    order = "day before month" if dotted else "month before day"
    return dotted, f"{order}, which nothing in the first rows decides"


def numeric(text: str, *, day_first: bool) -> datetime | None:
    """A date of two small numbers and a year, UTC; None when it is none."""
    match = _NUMERIC.fullmatch(text)
    if match is None:
        return None
    first, second = int(match["first"]), int(match["second"])
    day, month = (first, second) if day_first else (second, first)
    hour = int(match["hour"] or 0)
    if match["half"]:
        hour = hour % 12 + (12 if match["half"][0] in "pP" else 0)
    year = int(match["year"])
    try:
        return datetime(
            year if year > 99 else 2000 + year, month, day, hour,
            int(match["minute"] or 0), int(match["s"] or 0), tzinfo=UTC,
        )  # fmt: skip
    except ValueError:
        return None


def _plain(name: str) -> str:
    return _PLAIN.sub("", fold(name))
