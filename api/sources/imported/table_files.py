"""Lines of a file as records, JSON objects or rows of a table; and which column holds what.

Columns are found by the names that Brandwatch, Talkwalker, Meltwater, Sprinklr, Mention and YouScan
give them; `--map` names others.
"""

from __future__ import annotations

import csv
import json
import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

from api.core.text import clean, fold, one_line, web_url
from api.errors import UsageError
from api.features.archive.imports import SHOWN, Entry, ImportPosition, Refusal
from api.sources.imported.file_reader import LONGEST_LINE, Line
from api.sources.imported.record_formats import Fields, FileContext, content_id, entry_of
from api.sources.item_fields import as_number, parsed_date
from api.sources.own_items import NAME, item_of

FIELDS: Mapping[str, str] = MappingProxyType(
    {
        "title": "title headline subject titel titre titulo reviewtitle reviewstitle summary",
        "body": "fulltext body content text message snippet description hitsentence post tweet "
        "review comment mentiontext fullcontent contentsnippet openingtext inhalt beitrag texte "
        "contenido selftext reviewtext reviewbody reviewstext reviewcontent feedback verbatim opinion answer response",
        "url": "url link permalink mentionurl posturl address originalurl sourceurl uri",
        "author": "author authorname username screenname user influencer fullname extraauthor"
        "attributesname authordisplayname autor auteur sender profile reviewer reviewername reviewsusername customer",
        "created_at": "createdat reviewdate reviewsdate date published publishedat created createdtime datetime time "
        "timestamp publicationdate postdate createdutc datum datecreated indexed",
        "id": "id mentionid postid documentid resourceid queryid guid externalid uuid",
        "place": "place subreddit channel community forum domain sourcename sitename site source "
        "platform pagetype sourcetype medianame publication network quelle",
        "rating": "rating stars starrating reviewrating reviewsrating overall ratingvalue score bewertung note",
        "product": "product productname producttitle productid item model produkt produit producto",
    }
)  # fmt: skip
"""Fields of an entry, and folded names of columns that hold them, the likeliest first."""
# `Full Text`, `full_text` and `full-text` are one name
_SEPARATORS = re.compile(r"[\W_]+")
# `31/12/2026`, `3.4.26 18:05`, `12-31-2026, 6:05 PM`: two small numbers whose order is unknown
_NUMERIC = re.compile(
    r"(?P<first>\d{1,2})(?P<sign>[/.-])(?P<second>\d{1,2})(?P=sign)(?P<year>\d{4}|\d{2})"
    r"(?:[ ,T]+(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<s>\d{2})(?:\.\d+)?)?"
    r"\s*(?P<half>[AaPp]\.?[Mm]\.?)?)?"
)  # fmt: skip


class NoColumn(UsageError):
    """A table lacks a column that is needed or named."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Which column holds what, and the form of its dates."""

    named: Mapping[str, str]
    """The column of each field."""
    day_first: bool
    """`3/4/2026` is the third of April."""
    dates: str
    """The form of the dates, in words."""

    def entries(self, fields: Fields, context: FileContext) -> Iterator[Entry]:
        """The row as an item; raises `UsageError` when it has no text."""
        row = {name: fields.get(column) for name, column in self.named.items()}
        if not clean(row.get("title")) and not clean(row.get("body")):
            raise UsageError("it has neither title nor text")
        text = one_line(clean(row.get("created_at")))
        when = numeric(text, day_first=self.day_first) or parsed_date(text)
        url = web_url(row.get("url"))
        known = {name: row[name] for name in ("title", "body", "author", "place") if row.get(name)}
        # two tools may have the same id: with the address, or the text, it is unique
        parts = (row.get("id"), url or (row.get("title"), row.get("body"), when))
        id_ = one_line(clean(row.get("id"))) or content_id(*parts)
        known |= {"id": id_, "key": f"{NAME}:{content_id(*parts)}", "url": url}
        known |= {"created_at": when and when.isoformat()}
        known |= {name: row[name] for name in ("rating", "product") if row.get(name)}
        yield entry_of(item_of(known, 0, named="the row"), context)


def columns_of(head: Sequence[str], rows: Sequence[Fields], given: Mapping[str, str]) -> Columns:
    """Columns as `given` (field -> column), then by their names; raises `NoColumn`."""
    listed = ", ".join(f"`{name}`" for name in head[:20])
    for field, column in given.items():
        if column not in head:
            raise NoColumn(f"has no column `{column[:60]}` for `{field}`; there are {listed}")
    named = dict(given)
    for field, names in FIELDS.items():
        free = {_SEPARATORS.sub("", fold(name)): name for name in reversed(head) if name not in named.values()}
        likely = next((free[name] for name in names.split() if name in free), None)
        if field not in named and likely is not None:
            named[field] = likely
    if "body" not in named and "title" not in named:
        raise NoColumn(f"has no column for a text; say it with `--map body=COLUMN`: {listed}")
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
        read = sum(parsed_date(value) is not None for value in values)
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


DELIMITERS = (",", ";", "\t", "|")
# a cell with more lines or characters has a quote that is never closed
_MAX_CELL_LINES, _MAX_CELL = 1_000, 1_000_000
# rows by which the delimiter and the head are detected
_SAMPLE_ROWS = 50


@dataclass(frozen=True, slots=True)
class Record:
    """A line of JSON, or a row of a table."""

    objects: tuple[Mapping[str, Any], ...]
    """One object; all objects of an array on one line."""
    line: int
    """Number of its first line in the file."""
    position: ImportPosition
    """Position of the next record."""
    start: str = ""
    """Its beginning, for a refusal."""


@dataclass(frozen=True, slots=True)
class Unread:
    """A line that is no record."""

    refusal: Refusal
    position: ImportPosition


def refused(line: Line, reason: str) -> Unread:
    """A line that is kept aside, with the reason."""
    refusal = Refusal(line.number, reason, one_line(clean(line.text[: SHOWN * 2]))[:SHOWN])
    return Unread(refusal, ImportPosition(line.end, line.number))


def objects(lines: Iterable[Line]) -> Iterator[Record | Unread]:
    """Records of JSON lines, also of an array with an object on each line."""
    for line in lines:
        text = line.text.strip().removeprefix("\ufeff").rstrip(",")
        if line.fault:
            yield refused(line, line.fault)
        elif text and text not in "[]":
            try:
                value = json.loads(text, parse_constant=as_number, parse_float=as_number)
            except (ValueError, RecursionError):
                yield refused(line, "it is no JSON object")
                continue
            listed = value if isinstance(value, list) else [value]
            records = tuple(each for each in listed if isinstance(each, dict))
            if records:
                position = ImportPosition(line.end, line.number)
                yield Record(records, line.number, position, text[:SHOWN])
            else:
                yield refused(line, "it is no JSON object")


@dataclass(frozen=True, slots=True)
class Head:
    """The first row of a table."""

    delimiter: str
    columns: tuple[str, ...]
    line: int
    """Its last line; earlier lines are no rows."""


def head_of(text: str) -> Head:
    """The delimiter and the names of the columns, from the beginning of a file.

    The delimiter is the one by which most rows have the same number of cells, more than one. The
    head is the first row with that many filled cells: exports begin with lines about the export.
    """
    *lines, last = text.split("\n")  # the last may be cut off
    lines = lines or [last]
    best, shown = (0, 0), Head(",", (), 0)
    for delimiter in DELIMITERS:
        rows = _few_rows(lines, delimiter)
        widths = Counter(len(cells) for _, cells in rows)
        width, count = max(widths.items(), key=lambda pair: (pair[0] > 1, pair[1], pair[0]))
        score = (count * (width > 1), width)
        if score > best or not shown.columns:
            full = (row for row in rows if sum(bool(cell.strip()) for cell in row[1]) >= width)
            at, cells = next(full, rows[0])
            best, shown = max(best, score), Head(delimiter, tuple(_column_names(cells)), at)
    return shown


def _few_rows(lines: Sequence[str], delimiter: str) -> list[tuple[int, list[str]]]:
    rows: list[tuple[int, list[str]]] = []
    reader = csv.reader((f"{line}\n" for line in lines), delimiter=delimiter)
    while len(rows) < _SAMPLE_ROWS:
        try:
            cells = next(reader)
        except StopIteration:
            break
        except csv.Error:
            continue
        if cells:
            rows.append((reader.line_num, cells))
    return rows or [(1, [""])]


def _column_names(cells: Sequence[str]) -> Iterator[str]:
    """Each column's name, with its number where it has none or that of an earlier column."""
    seen: set[str] = set()
    for count, cell in enumerate(cells, 1):
        name = one_line(clean(cell)).strip("\ufeff")[:100] or f"column {count}"
        yield name if name not in seen else f"{name} {count}"
        seen.add(name)


class _TooLong(Exception):
    """A quote is never closed."""


def rows(lines: Iterable[Line], head: Head) -> Iterator[Record | Unread]:
    """Records of a table's rows; an unclosed quote costs its line, too many cells cost the row."""
    csv.field_size_limit(LONGEST_LINE)
    ahead: deque[Line] = deque()
    source = iter(lines)
    while True:
        line = ahead.popleft() if ahead else next(source, None)
        if line is None:
            return
        if line.number > head.line and line.fault:
            yield refused(line, line.fault)
        if line.number <= head.line or line.fault or not line.text.strip():
            continue
        taken = [line]
        try:
            cells = next(csv.reader(_row_lines(taken, ahead, source), delimiter=head.delimiter), [])
        except (csv.Error, _TooLong):
            ahead.extendleft(reversed(taken[1:]))
            yield refused(line, "a quote in it is never closed")
            continue
        position = ImportPosition(taken[-1].end, taken[-1].number)
        if any(cell.strip() for cell in cells[len(head.columns) :]):
            why = f"it has {len(cells)} cells, and there are {len(head.columns)} columns"
            yield Unread(refused(line, why).refusal, position)
            continue
        fields = dict(zip(head.columns, cells, strict=False))
        yield Record((fields,), line.number, position, line.text[:SHOWN])


def _row_lines(taken: list[Line], ahead: deque[Line], source: Iterator[Line]) -> Iterator[str]:
    """The lines of one row, as the parser asks for them."""
    yield taken[0].text.replace("\r", " ") + "\n"
    letters = len(taken[0].text)
    while (line := ahead.popleft() if ahead else next(source, None)) is not None:
        taken.append(line)
        letters += len(line.text)
        if line.fault or len(taken) > _MAX_CELL_LINES or letters > _MAX_CELL:
            raise _TooLong
        yield line.text.replace("\r", " ") + "\n"
    raise _TooLong  # the parser asks for another line within quotes only
