"""Whatever stands in a file, it is items, lines that are kept aside, or one clear error.

Never a crash, nothing lost without a word, and from any mark on the rest is what it was.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import json
from datetime import timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from openpyxl import Workbook
from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE

from api.core.items import Item
from api.errors import UsageError
from api.features.archive.import_file import bounded
from api.features.archive.imports import ImportPortion, ImportPosition, LeftOut, Refusal
from api.sources.imported.detection import FORMATS, CollectedFile, ReadOptions, detect_format, read_collected
from api.sources.imported.file_reader import opened_bytes
from api.sources.imported.record_formats import takeout_text
from api.sources.imported.table_files import date_of, plain_rating
from api.sources.youtube_answers import comment_text
from tests.fuzz import foreign
from tests.fuzz.foreign import encodes, unchecked

DATES = (
    "2026-04-09", "09/04/2026", "4/9/2026 6:05 PM", "9.4.2026", "April 9, 2026",
    "Thu, 09 Apr 2026 18:05:00 +0000", "1775692800", "1775692800000", 1775692800, 1775692800000,
    "0", -1, 1e300, "99999999999999999999",
)  # fmt: skip
FOREIGN = ("cp1250", "cp1251", "gbk", "cp932", "big5", "koi8_r")
NAMES = (
    "id", "title", "body", "selftext", "text", "subreddit", "link_id", "link", "permalink", "score",
    "author", "created_utc", "date", "url", "asin", "parent_asin", "overall", "rating", "timestamp",
    "reviewText", "cid", "videoId", "kind", "snippet", "items", "votes", "comments", "engagement",
    "extractor", "average_rating", "__proto__", "",
)  # fmt: skip
values = st.one_of(
    foreign.texts,
    foreign.numbers,
    st.sampled_from(DATES),
    st.sampled_from(
        ["=1+1", "javascript:alert(1)", "a b", "t3_1abc", "B01ABCDEFG", "dQw4w9WgXcQ", "youtube#x",
         "youtube#commentThread", "youtube#videoListResponse", "[removed]", "\0", "\ud83d", '"',
         None, True, [], {}, [1], {"a": {}}, [{"id": 1, "snippet": {"textDisplay": "x"}}]]
    ),
)  # fmt: skip
objects = st.dictionaries(st.sampled_from(NAMES), values, max_size=12)


def _text_of(row: object) -> str:
    return row if isinstance(row, str) else json.dumps(row, allow_nan=True)


json_lines = st.lists(st.one_of(objects, foreign.texts, values), max_size=8).map(
    lambda rows: "\n".join(map(_text_of, rows))
)


@st.composite
def tables(draw: st.DrawFn) -> str:
    """Ragged rows, quoted or not, some of them damaged."""
    out = io.StringIO()
    names = [*NAMES, "Full Text", "Headline"]
    writer = csv.writer(
        out, delimiter=draw(st.sampled_from(",;\t|")),
        quoting=draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])),
        lineterminator=draw(st.sampled_from(["\n", "\r\n"])),
    )  # fmt: skip
    writer.writerow(draw(st.lists(st.sampled_from(names), min_size=1, max_size=8)))
    cells = st.lists(values.map(str), max_size=10)
    for row in draw(st.lists(cells, max_size=6)):
        writer.writerow(row)
    return out.getvalue() + draw(st.sampled_from(["", '"', '\n"open, and\nso on\n', "\n\n,,\n"]))


def _encoded(text: str, encoding: str) -> bytes:
    return text.encode(encoding, "surrogatepass" if "16" in encoding else "replace")


@st.composite
def files(draw: st.DrawFn) -> bytes:
    """Text in any encoding, with or without a mark, packed or not, whole or broken off."""
    text = draw(st.one_of(json_lines, tables(), foreign.texts))
    encoding = draw(st.sampled_from(["utf-8", "utf-8", "utf-16-le", "utf-16-be", "cp1252", *FOREIGN]))
    mark = draw(st.sampled_from([b"", codecs.BOM_UTF8, codecs.BOM_UTF16_LE]))
    data = draw(st.sampled_from([b"", mark])) + _encoded(text, encoding)
    data = draw(st.sampled_from([data, data.replace(b"\n", b"\r\n"), data + b"\xff\xfe\x00"]))
    data = draw(st.sampled_from([data, gzip.compress(data)]))
    return data[: len(data) - draw(st.integers(0, 9))]


def _file(data: bytes, form: str) -> CollectedFile:
    return detect_format(opened_bytes("file", data), ReadOptions(form))


def _is_whole(portion: ImportPortion) -> bool:
    """Every entry can be stored, searched and printed."""
    for entry in portion.entries:
        match entry:
            case Item():
                facts = bounded(entry).published
                json.loads(facts.model_dump_json())
                texts = [facts.key, facts.title, facts.body, facts.url]
                texts += [text for c in facts.comments for text in (c.id, c.body, c.url)]
                if not all(map(encodes, texts)) or not (facts.url or "http").startswith("http"):
                    return False
            case Refusal():
                if not (entry.line >= 1 and entry.reason and encodes(entry.start)):
                    return False
            case LeftOut():
                if not entry.reason:
                    return False
    return True


@unchecked
@given(data=files(), form=st.sampled_from(FORMATS), at=st.integers(0, 9))
def test_any_file_is_items_or_words(data: bytes, form: str, at: int) -> None:
    """All that can be opened is read to its end, and again from a mark of it."""
    try:
        portions = list(_file(data, form).portions(ImportPosition()))
    except UsageError:
        return

    assert all(map(_is_whole, portions))
    marks = [portion.position.offset for portion in portions]
    assert marks == sorted(marks)
    if portions:
        chosen = min(at, len(portions) - 1)
        rest = list(_file(data, form).portions(portions[chosen].position))
        assert rest == portions[chosen + 1 :]


@unchecked
@given(data=files())
def test_any_file_can_be_handed_in(data: bytes) -> None:
    """For one question: items, or one error that says what is wrong."""
    try:
        own = read_collected(data)
    except UsageError:
        return

    assert own.items
    assert all(isinstance(item, Item) for item in own.items)


@st.composite
def workbooks(draw: st.DrawFn) -> bytes:
    """A workbook of any cells, with some of its bytes changed or its end missing."""
    book = Workbook()
    cells = st.one_of(
        values.filter(lambda value: isinstance(value, str)).map(lambda text: ILLEGAL_CHARACTERS_RE.sub("", str(text))),
        st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.booleans(), st.none(), st.datetimes(),
    )  # fmt: skip
    for row in draw(st.lists(st.lists(cells, max_size=6), max_size=6)):
        book.active.append(row)  # type: ignore[union-attr]
    out = io.BytesIO()
    book.save(out)
    data = bytearray(out.getvalue())
    # by shares: the times that a workbook holds change its length
    for share, change in draw(st.lists(st.tuples(st.integers(0, 9_999), st.integers(1, 255)), max_size=3)):
        data[len(data) * share // 10_000] ^= change
    return bytes(data[: len(data) - draw(st.sampled_from([0, 0, 0, 1, 500]))])


@unchecked
@given(data=workbooks())
def test_any_workbook_is_items_or_words(data: bytes) -> None:
    """Also a damaged one."""
    try:
        portions = list(_file(data, "auto").portions(ImportPosition()))
    except UsageError:
        return

    assert all(map(_is_whole, portions))


@unchecked
@given(
    text=st.one_of(foreign.texts, st.from_regex(r"[0-9★☆]{1,4}[-/.,年 ]?([0-9]{1,2}|[A-Za-z]{3})[-/. 月]?[0-9]{0,5}"))
)
def test_any_cell_is_a_date_or_none(text: str) -> None:
    """In either order of day and month, and as a rating or a text of a takeout."""
    for day_first in (True, False):
        at = date_of(text, day_first=day_first)
        assert at is None or at.utcoffset() == timedelta(0)
    assert isinstance(plain_rating(text), str)
    assert comment_text(takeout_text(text), text) is not None


def test_no_line_of_json_lines_is_lost() -> None:
    """Each is an item, is left out or is kept aside, whatever stands around it."""
    rows: list[Any] = [{"title": "a"}, 7, "{", {"x": 1}, {"title": "[removed]"}, {"title": "b"}]
    data = "\r\n".join(map(_text_of, rows)).encode()

    entries = [e for p in _file(data, "auto").portions(ImportPosition()) for e in p.entries]

    assert len(entries) == len(rows)
