"""Lines of a file as records, JSON objects or rows of a table; and which column holds what.

Columns are found by the names that Brandwatch, Talkwalker, Meltwater, Sprinklr, Mention and YouScan
give them; `--map` names others.
"""

from __future__ import annotations

import csv
import json
import re
from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any

from api.core.text import clean, fold, one_line, web_url
from api.errors import UsageError
from api.features.archive.imports import SHOWN, Entry, ImportPosition, LeftOut, Refusal
from api.sources.amazon_pages import count_of, day_of
from api.sources.imported.file_reader import LONGEST_LINE, Line
from api.sources.imported.record_formats import Fields, FileContext, content_id, entry_of
from api.sources.item_fields import as_number, parsed_date
from api.sources.own_items import MOST_STARS, NAME, item_of, on_five

FIELDS: Mapping[str, str] = MappingProxyType(
    {
        "title": "title headline subject titel titre titulo reviewtitle reviewstitle reviewheadline summary",
        "body": "fulltext body content text message snippet description hitsentence post tweet "
        "review comment commenttext comments mentiontext fullcontent contentsnippet openingtext inhalt beitrag texte "
        "contenido selftext reviewtext reviewbody reviewstext reviewcontent feedback verbatim opinion answer response "
        "openendedresponse kommentar commentaire avis comentario bewertung отзыв комментарий текст 评论 评论内容 内容 "
        "评价 コメント レビュー 本文",
        "url": "url link permalink mentionurl posturl address originalurl sourceurl uri reviewurl reviewlink",
        "author": "author authorname username screenname user influencer fullname extraauthor"
        "attributesname authordisplayname autor auteur sender profile reviewer reviewername reviewsusername "
        "reviewusername consumerdisplayname nickname customer автор 用户名 投稿者",
        "created_at": "createdat reviewdate reviewsdate reviewcreatedutc reviewsubmitdateandtime date published "
        "publishedat publisheddate created createdatutc createdtime datetime time timestamp publicationdate postdate "
        "createdutc datum fecha data datecreated submitdateutc submittedat recordeddate enddate dateofreview at "
        "indexed дата 日期 时间 日付 投稿日",
        "id": "reviewid reviewsid commentid responseid id mentionid postid documentid resourceid queryid guid "
        "externalid uuid",
        "place": "place subreddit channel community forum domain sourcename sitename site source "
        "platform pagetype sourcetype medianame publication network quelle",
        "rating": "rating stars starrating reviewrating reviewsrating reviewstars overall ratingvalue score sterne "
        "bewertung note calificacion оценка 评分 星级 評価",
        "product": "product productname producttitle productid item model produkt produit producto packagename "
        "товар 商品名称 商品名",
        "language": "language lang languagecode reviewlanguage reviewerlanguage sprache langue idioma язык 语言 言語",
        "likes": "thumbsupcount likes likecount helpfulvotes helpful reviewsnumhelpful votes upvotes",
    }
)  # fmt: skip
"""Fields of an entry, and folded names of columns that hold them, the likeliest first."""
_SEPARATORS = re.compile(r"[\W_]+")
# letters of scripts that put no blank between words
_UNSPACED = re.compile("[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff]")
_SENTENCE = 3
_TOTALS = frozenset(
    "total totals sum average mean gesamt summe durchschnitt somme moyenne totale итого всего 合计 总计 合計".split()
)
# `8`, `2.7`, `2,7`, `1,234.5`, `45 %`
_AMOUNT = re.compile(r"[+-]?\d[\d.,]* ?%?")
_DECIMAL = re.compile(r"^(\d),(\d+)")
# days since 1899-12-30, as workbooks count them: from 1982 to 2064
_SERIAL, _SERIAL_BEGAN = re.compile(r"[345]\d{4}(?:\.\d{1,12})?"), datetime(1899, 12, 30, tzinfo=UTC)
_ORDINAL = re.compile(r"(\d)(?:st|nd|rd|th)\b")
# `2026.01.03`, `2026. 1. 3.`, `2026/1/3 上午10:30`; `3-Jan-26`
_YEAR_FIRST = re.compile(r"(\d{4})[./-] ?(\d{1,2})[./-] ?(\d{1,2})(?!\d)")
_SHORT_MONTH = re.compile(r"\b(\d{1,2})-([A-Za-z]{3})-(\d{4}|\d{2})\b")
_LONGEST_DATE = 120
# `31/12/2026`, `3.4.26 18:05`, `12-31-2026, 6:05 PM`: two small numbers whose order is unknown
_NUMERIC = re.compile(
    r"(?P<first>\d{1,2})(?P<sign>[/.-])(?P<second>\d{1,2})(?P=sign)(?P<year>\d{4}|\d{2})"
    r"(?:[ ,T]+(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<s>\d{2})(?:\.\d+)?)?"
    r"\s*(?P<half>[AaPp]\.?[Mm]\.?)?)?"
)  # fmt: skip

_KNOWN = frozenset(name for names in FIELDS.values() for name in names.split())


class NoColumn(UsageError):
    """A table lacks a column that is needed or named."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Meaning of each column, and the format of its dates."""

    named: Mapping[str, str]
    """The column of each field."""
    day_first: bool
    """`3/4/2026` is the third of April."""
    dates: str
    """The form of the dates, in words."""
    shared: bool = False
    """Rows with different texts share an id or address, as reviews of a product do: the text is part of their key."""
    guess: str = ""
    """How the column of texts was guessed from its values, in words; otherwise empty."""
    more_texts: tuple[str, ...] = ()
    """Further columns with sentences, such as the questions of a survey; they follow the body."""

    @property
    def summary(self) -> str:
        """Meaning of each column, in words for a person."""
        pairs = [f"{field} = `{column}`" for field, column in self.named.items()]
        return ", ".join([*pairs, *(f"and `{column}`" for column in self.more_texts)])

    def entries(self, fields: Fields, context: FileContext) -> Iterator[Entry]:
        """The row as an item; raises `UsageError` when it has no text."""
        if no_row := _no_row(fields, (self.named.get("title"), self.named.get("body"), *self.more_texts)):
            yield LeftOut(no_row)
            return
        row = {name: fields.get(column) for name, column in self.named.items()}
        if self.more_texts:
            texts = (clean(fields.get(column)) for column in (self.named["body"], *self.more_texts))
            row["body"] = "\n\n".join(filter(None, texts))
        if not clean(row.get("title")) and not clean(row.get("body")):
            raise UsageError("it has neither title nor text")
        when = date_of(row.get("created_at"), day_first=self.day_first)
        url = web_url(row.get("url"))
        known = {
            name: row[name] for name in ("title", "body", "author", "place", "product", "language") if row.get(name)
        }
        # two tools may have the same id: with the address, or the text, it is unique
        text = (row.get("title"), row.get("body"), when)
        parts = (row.get("id"), url, text) if self.shared else (row.get("id"), url or text)
        id_ = "" if self.shared else one_line(clean(row.get("id")))
        id_ = id_ or content_id(*parts)
        known |= {"id": id_, "key": f"{NAME}:{content_id(*parts)}", "url": url}
        known |= {"created_at": when and when.isoformat(), "rating": plain_rating(row.get("rating"))}
        if (likes := count_of(row.get("likes"))) is not None:
            known["engagement"] = {"likes": likes}
        yield entry_of(item_of(known, 0, named="the row"), context)


def columns_of(head: Head, rows: Sequence[Fields], given: Mapping[str, str]) -> Columns:
    """Columns as `given` (field -> column), then by their names, then by what they hold; raises `NoColumn`."""
    listed = ", ".join(f"`{name}`" for name in head.columns[:20])
    for field, column in given.items():
        if column not in head.columns:
            raise NoColumn(f"has no column `{column[:60]}` for `{field}`; there are {listed}")
    named = dict(given)
    for field, names in FIELDS.items():
        free = {_plain(name): name for name in reversed(head.columns) if name not in named.values()}
        if field == "product" and "reviewstext" in free | {_plain(named.get("body", "")): ""}:
            names = f"name {names}"  # Datafiniti's sets of reviews
        likely = next((free[name] for name in names.split() if name in free), None)
        if field not in named and likely is not None:
            named[field] = likely
    texts_in = [named[field] for field in ("title", "body") if field in named]
    rows = [row for row in rows if not _no_row(row, texts_in)]
    if not head.line:
        named |= {name: column for name, column in _by_values(head, rows).items() if name not in named}
    more: tuple[str, ...] = ()
    guess = ""
    if "body" not in named and ("title" not in named or not head.line):
        wordy = _wordy(head, rows, named)
        if not wordy:
            raise NoColumn(f"has no column for a text; say it with `--map body=COLUMN`: {listed}")
        named["body"], more = wordy[0], wordy[1:]
        which = ", ".join(f"`{column}`" for column in wordy[:10])
        guess = f"no column has a known name for a text; {which} is read, as it holds sentences"
    if "rating" in named and not on_five([{"rating": plain_rating(row.get(named["rating"]))} for row in rows]):
        del named["rating"]  # on another scale than stars
    when = named.get("created_at", "")
    values = [one_line(clean(row.get(when))) for row in rows]
    day_first, words = order_of([value for value in values if value])
    texts = {(row.get(named.get("title", "")), row.get(named.get("body", ""))) for row in rows}
    signs = {(row.get(named.get("id", "")), row.get(named.get("url", ""))) for row in rows}
    shared = ("id" in named or "url" in named) and len(signs) < len(texts)
    return Columns(MappingProxyType(named), day_first, words, shared, guess, more)


def _plain(name: str) -> str:
    """A column's name without case and separators: `Full Text`, `full_text` and `full-text` are one."""
    return _SEPARATORS.sub("", fold(name))


def _wordy(head: Head, rows: Sequence[Fields], named: Mapping[str, str]) -> tuple[str, ...]:
    """Columns that hold sentences: on average three words or, of scripts without blanks, twelve letters."""
    wordy = []
    for column in head.columns:
        texts = [text for row in rows if (text := clean(row.get(column)))]
        words = sum(len(text.split()) + len(_UNSPACED.findall(text)) / 4 for text in texts)
        if (
            texts
            and column not in named.values()
            and words / len(texts) >= _SENTENCE
            and len(set(texts)) * 2 > len(texts)
        ):
            wordy.append(column)
    return tuple(wordy)


def _by_values(head: Head, rows: Sequence[Fields]) -> dict[str, str]:
    """Fields of a table without a header that their values identify: dates, addresses and stars."""
    fields: dict[str, str] = {}
    for column in head.columns:
        values = [text for row in rows if (text := one_line(clean(row.get(column))))]
        if not values:
            continue
        numbers = [as_number(value) for value in values]
        ordered = numbers == list(range(1, len(numbers) + 1))  # numbers of the rows
        if all(number is None for number in numbers) and all(date_of(value, day_first=True) for value in values):
            fields.setdefault("created_at", column)
        elif all(map(web_url, values)):
            fields.setdefault("url", column)
        elif not ordered and all(number is not None and 1 <= number <= MOST_STARS for number in numbers):
            fields.setdefault("rating", column)
    return fields


def _no_row(fields: Fields, texts: Collection[str | None]) -> str:
    """Why a row is not an entry: a sum of the others, or a repeated header; otherwise empty.

    `texts` are the columns of title and text as far as they are known: an opinion may be "Average".
    """
    filled = {name: text for name, value in fields.items() if (text := one_line(clean(value)))}
    first = next(iter(filled.values()), "")
    if fold(first).rstrip(":") in _TOTALS:
        column, *others = filled
        if texts and filled.keys().isdisjoint(texts):
            return "a row of totals"
        if column not in texts and all(_AMOUNT.fullmatch(filled[name]) for name in others):
            return "a row of totals"
    same = sum(_plain(name) == _plain(text) for name, text in filled.items())
    if same > 1 or "Open-Ended Response" in filled.values() or first.startswith('{"ImportId"'):
        return "a second head"
    return ""


def plain_rating(value: object) -> str:
    """A rating as `item_of` reads it: `★★★★☆` is 4, and `4,5` is 4.5."""
    text = one_line(clean(value))
    return str(text.count("★")) if "★" in text else _DECIMAL.sub(r"\1.\2", text)


def date_of(value: object, *, day_first: bool) -> datetime | None:
    """The time in a cell, UTC: small numbers in an order, as `parsed_date`, Excel's count of days, or in words."""
    text = one_line(clean(value))[:_LONGEST_DATE]
    if at := numeric(text, day_first=day_first) or parsed_date(text):
        return at
    if _SERIAL.fullmatch(text):
        return _SERIAL_BEGAN + timedelta(days=round(float(text) * 86_400) / 86_400)
    if match := _YEAR_FIRST.match(text):
        return day_of("-".join(part.zfill(2) for part in match.groups()))
    return day_of(_SHORT_MONTH.sub(_with_century, _ORDINAL.sub(r"\1", text)))


def _with_century(match: re.Match[str]) -> str:
    """`03-Jan-26` as `03 Jan 2026`."""
    day, month, year = match.groups()
    return f"{day} {month} {year if len(year) > 2 else '20' + year}"


def order_of(values: Sequence[str]) -> tuple[bool, str]:
    """Whether the day precedes the month in dates such as `3/4/2026`, and how this is known."""
    matches = [match for value in values if (match := _NUMERIC.match(value))]
    if not values:
        return False, "none"
    if not matches:
        if all(map(_SERIAL.fullmatch, values)):
            return False, "days since 1899, as Excel counts them"
        read = sum(date_of(value, day_first=False) is not None for value in values)
        return False, f"{read} of the first {len(values)} can be read"
    if any(int(match["first"]) > 12 for match in matches):
        return True, "day before month, as a day above 12 shows"
    if any(int(match["second"]) > 12 for match in matches):
        return False, "month before day, as a day above 12 shows"
    dotted = any(match["sign"] == "." for match in matches)
    order = "day before month" if dotted else "month before day"
    return dotted, f"{order}, which nothing in the first rows decides"


def numeric(text: str, *, day_first: bool) -> datetime | None:
    """A date of two small numbers and a year, UTC; None for other texts."""
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
    """One object, or all objects of an array on one line."""
    line: int
    """Number of its first line in the file."""
    position: ImportPosition
    """Position of the next record."""
    start: str = ""
    """Beginning of the text, for a refusal."""


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
    """Last line of the header; earlier lines are no rows. 0: there is no header, and columns are numbered."""
    notes: tuple[str, ...] = ()
    """What a person should know of its names, a line each."""


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
            best, shown = max(best, score), _head(delimiter, cells, at)
    return shown


def _head(delimiter: str, cells: Sequence[str], line: int) -> Head:
    if _is_data(cells):
        return Head(delimiter, tuple(f"column {number}" for number in range(1, len(cells) + 1)), 0)
    names = [name for cell in cells if (name := one_line(clean(cell)))]
    notes = [
        f"{count} columns are called `{name}`: the first is read as `{name}`, others are `{name} N`, N their number"
        for name, count in Counter(names).items()
        if count > 1
    ]
    return Head(delimiter, tuple(_column_names(cells)), line, tuple(notes[:10]))


def _is_data(cells: Sequence[str]) -> bool:
    """Whether a first row has no names: none is known, and it is a sentence or holds a number, date or address."""
    if any(_plain(cell) in _KNOWN for cell in cells):
        return False
    if len(cells) == 1:
        return len(cells[0].split()) > _SENTENCE and not cells[0].rstrip().endswith(("?", ":"))
    texts = [text for cell in cells if (text := one_line(clean(cell)))]
    return any(as_number(text) is not None or web_url(text) or date_of(text, day_first=True) for text in texts)


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
    """A quoted cell is longer than a line may be: its quote is never closed."""


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
