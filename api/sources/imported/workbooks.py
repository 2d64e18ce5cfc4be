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

from api.sources.imported.text_encoding import UnreadableFile

LARGEST_WORKBOOK = 100_000_000
"""Packed bytes of the largest workbook that is read."""
MOST_SHEET, MOST_OTHER = 300_000_000, 100_000_000
"""Unpacked bytes of a sheet, which is read in pieces, and of all other parts, which are read into memory."""
MOST_CELLS = 20_000_000
# what openpyxl raises for a workbook that is damaged or forged; broken XML is a `SyntaxError`
_FAILURES = (
    OSError, EOFError, zipfile.BadZipFile, zlib.error, SyntaxError, LookupError, ValueError, TypeError, AttributeError,
    ArithmeticError, RuntimeError,
)  # fmt: skip
# characters of a cell: Excel's own limit
_LONGEST_CELL = 32_767
_ERRORS = ("#N/A", "#REF!", "#VALUE!", "#DIV/0!", "#NAME?")


class WorkbookTooLarge(UnreadableFile):
    """A workbook is beyond one of the limits, which the message names."""

    def __init__(self, limit: str) -> None:
        super().__init__(f"is larger than a workbook may be ({limit}); save its sheet as CSV")


@dataclass(eq=False)
class Workbook:
    """The first visible sheet with a cell, as lines of CSV in UTF-8."""

    sheet: str
    others: tuple[str, ...]
    """Visible sheets that are not read."""
    _rows: Iterator[bytes]
    _left: bytes = b""
    _error: EOFError | WorkbookTooLarge | None = None

    def read(self, size: int) -> bytes:
        """Up to `size` bytes, none at the end of the sheet.

        Raises:
            EOFError: the sheet is damaged there.
            WorkbookTooLarge: it is beyond a limit there.
        """
        parts, length = [self._left], len(self._left)
        try:
            while length < size and self._error is None and (row := next(self._rows, b"")):
                parts.append(row)
                length += len(row)
        except (EOFError, WorkbookTooLarge) as error:
            self._error = error
        if self._error is not None and not length:
            raise self._error
        data = b"".join(parts)
        self._left = data[size:]
        return data[:size]


def is_workbook(raw: IO[bytes]) -> bool:
    """Whether a zip archive holds `xl/workbook.xml`; False for a damaged one. Moves the position in the file."""
    try:
        with zipfile.ZipFile(raw) as archive:
            return "xl/workbook.xml" in archive.namelist()
    except _FAILURES:
        return False


def opened_workbook(raw: IO[bytes], longest_line: int) -> Workbook:
    """A workbook by its file, which can be sought in; raises `UnreadableFile` where it cannot be read.

    A row of more than `longest_line` characters becomes one line that is longer still.
    """
    from openpyxl import load_workbook  # a third of a second, which a file of another format need not wait for

    try:
        with zipfile.ZipFile(raw) as archive:
            parts = archive.infolist()
        sheets = [part.file_size for part in parts if part.filename.startswith("xl/worksheets/")]
        if max(sheets, default=0) > MOST_SHEET:
            raise WorkbookTooLarge(f"a sheet of more than {MOST_SHEET // 1_000_000} MB, unpacked")
        if sum(part.file_size for part in parts) - sum(sheets) > MOST_OTHER:
            raise WorkbookTooLarge(f"more than {MOST_OTHER // 1_000_000} MB beside its sheets, unpacked")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of parts that are not read, such as styles and rules
            book = load_workbook(raw, read_only=True, data_only=True, keep_links=False)
            visible = [sheet for sheet in book.worksheets if sheet.sheet_state == "visible"]
            for sheet in visible:
                sheet.reset_dimensions()  # a stated size may be a million empty cells
                if next(_filled(sheet), None) is not None:
                    others = tuple(other.title for other in visible if other is not sheet)
                    return Workbook(sheet.title, others, _lines(sheet, longest_line))
    except _FAILURES as error:
        raise UnreadableFile(f"cannot be read as a workbook ({type(error).__name__}); save it as CSV") from None
    raise UnreadableFile("is a workbook without a filled sheet")


def _filled(sheet: Any) -> Iterator[tuple[Any, ...]]:
    """Rows of a sheet that have a value; raises `WorkbookTooLarge` for more than `MOST_CELLS`."""
    cells = 0
    for row in sheet.iter_rows(values_only=True):
        cells += len(row) + 1
        if cells > MOST_CELLS:
            raise WorkbookTooLarge(f"more than {MOST_CELLS:,} cells")
        if any(value is not None for value in row):
            yield row


def _lines(sheet: Any, longest_line: int) -> Iterator[bytes]:
    """Rows of a sheet as CSV, each ending with a line feed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for row in _filled(sheet):
                cells, length = list[str](), 0
                for value in row:
                    cells.append(_cell(value))
                    length += len(cells[-1]) + 1
                    if length > longest_line:  # cells may be one shared text, which takes its length in each
                        cells = [" ".join(cells).replace("\n", " ")]
                        break
                text = io.StringIO()
                csv.writer(text, lineterminator="\n").writerow(cells)
                yield text.getvalue().encode("utf-8", "replace")
    except _FAILURES:
        raise EOFError("the sheet is damaged") from None


def _cell(value: object) -> str:
    """A cell as text, cut; dates in ISO order, whole numbers without a point, errors and nothing as nothing."""
    if isinstance(value, (datetime, date)):
        return value.isoformat()
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    if value is None or value in _ERRORS:
        return ""
    return str(value)[:_LONGEST_CELL].replace("_x000D_", "").replace("\r", "")
