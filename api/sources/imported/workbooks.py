"""Workbooks (`.xlsx`) as the text of a table, row by row; `openpyxl` is imported here alone."""

from __future__ import annotations

import csv
import io
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime
from typing import IO, Any
from xml.etree.ElementTree import ParseError

from openpyxl import load_workbook

from api.sources.imported.text_encoding import UnreadableFile

MOST_PACKED = 100_000_000
"""Largest workbook in bytes."""
MOST_SHEET, MOST_OTHER = 300_000_000, 100_000_000
"""Unpacked bytes of a sheet, which is read in pieces, and of all other parts, which are read into memory."""
MOST_CELLS = 20_000_000
# what openpyxl raises for a workbook that is damaged or forged
_FAILURES = (
    OSError, EOFError, zipfile.BadZipFile, zlib.error, ParseError, LookupError, ValueError, TypeError, AttributeError,
    ArithmeticError, RuntimeError, NotImplementedError,
)  # fmt: skip
_ERRORS = ("#N/A", "#REF!", "#VALUE!", "#DIV/0!", "#NAME?")


@dataclass(eq=False)
class Workbook:
    """The first visible sheet with a cell, as lines of CSV in UTF-8."""

    sheet: str
    others: tuple[str, ...]
    """Visible sheets that are not read."""
    _rows: Iterator[bytes]
    _left: bytes = b""

    def read(self, size: int) -> bytes:
        """At most so many of the next bytes; none at the end; `EOFError` for a sheet that is damaged or too large."""
        parts, length = [self._left], len(self._left)
        while length < size and (row := next(self._rows, b"")):
            parts.append(row)
            length += len(row)
        data = b"".join(parts)
        self._left = data[size:]
        return data[:size]


def is_workbook(raw: IO[bytes]) -> bool:
    """Whether a zip archive is a workbook; the file is anywhere afterwards."""
    try:
        with zipfile.ZipFile(raw) as archive:
            return "xl/workbook.xml" in archive.namelist()
    except _FAILURES:
        return False


def opened_workbook(raw: IO[bytes]) -> Workbook:
    """A workbook by its file, which can be sought in; raises `UnreadableFile` where it cannot be read."""
    try:
        with zipfile.ZipFile(raw) as archive:
            parts = archive.infolist()
        sheets = [part.file_size for part in parts if part.filename.startswith("xl/worksheets/")]
        if max(sheets, default=0) > MOST_SHEET or sum(part.file_size for part in parts) - sum(sheets) > MOST_OTHER:
            raise UnreadableFile("is too large for a workbook; save its sheet as CSV")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of parts that are not read, such as styles and rules
            book = load_workbook(raw, read_only=True, data_only=True, keep_links=False)
            visible = [sheet for sheet in book.worksheets if sheet.sheet_state == "visible"]
            for sheet in visible:
                sheet.reset_dimensions()  # a stated size may be a million empty cells
                if next(_filled(sheet), None) is not None:
                    others = tuple(other.title for other in visible if other is not sheet)
                    return Workbook(sheet.title, others, _lines(sheet))
    except _FAILURES as error:
        raise UnreadableFile(f"cannot be read as a workbook ({type(error).__name__}); save it as CSV") from None
    raise UnreadableFile("is a workbook without a filled sheet")


def _filled(sheet: Any) -> Iterator[tuple[Any, ...]]:
    """Its rows with a value; raises `EOFError` for more than `MOST_CELLS`."""
    cells = 0
    for row in sheet.iter_rows(values_only=True):
        cells += len(row) + 1
        if cells > MOST_CELLS:
            raise EOFError(f"it has more than {MOST_CELLS:,} cells")
        if any(value is not None for value in row):
            yield row


def _lines(sheet: Any) -> Iterator[bytes]:
    """Its rows as CSV, each ending with a line feed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for row in _filled(sheet):
                text = io.StringIO()
                csv.writer(text, lineterminator="\n").writerow(map(_cell, row))
                yield text.getvalue().encode("utf-8", "replace")
    except _FAILURES as error:
        raise EOFError(str(error)[:100] if isinstance(error, EOFError) else "the sheet is damaged") from None


def _cell(value: object) -> str:
    """A cell as text; dates in ISO order, whole numbers without a point, errors and nothing as nothing."""
    if isinstance(value, (datetime, date)):
        return value.isoformat()
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    if value is None or value in _ERRORS:
        return ""
    return str(value).replace("_x000D_", "").replace("\r", "")
