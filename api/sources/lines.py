"""JSON lines as a person wrote them, and what to do with a file that holds something else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from api.errors import UsageError
from api.sources.fields import number

_BOM = b"\xef\xbb\xbf"
_SIGNS = {
    b"\x1f\x8b": "the input is compressed with gzip; unpack it with `gunzip`",
    b"PK\x03\x04": "the input is a zip archive or a spreadsheet; unpack it, or save it as CSV",
    b"\xff\xfe": "the input is UTF-16; write UTF-8, with `iconv -f UTF-16 -t UTF-8`",
    b"\xfe\xff": "the input is UTF-16; write UTF-8, with `iconv -f UTF-16 -t UTF-8`",
}
"""First bytes of a file, and what it is then."""
_SEPARATORS = (",", ";", "\t")
_CSV = (
    "the input looks like CSV; write one JSON object per line, with `python -c 'import csv, json, "
    "sys; [print(json.dumps(row)) for row in csv.DictReader(sys.stdin)]'`"
)


@dataclass(frozen=True, slots=True)
class ItemLine:
    """One JSON object that a person wrote, and the bytes of its line, the end included."""

    number: int
    raw: bytes
    fields: Mapping[str, Any]


def read_lines(data: bytes) -> list[ItemLine]:
    """The objects of a text with one a line; blank lines count as lines but are skipped.

    Wrong UTF-8 is replaced and NaN is null. Only a line feed or carriage return ends a line: a JSON
    string may hold what else Unicode takes for an end.

    Raises:
        UsageError: a line that is no JSON object, named by its number, or another kind of file.
    """
    for sign, words in _SIGNS.items():
        if data.startswith(sign):
            raise UsageError(words)
    lines: list[ItemLine] = []
    for at, raw in enumerate(data.splitlines(keepends=True), 1):
        if text := raw.removeprefix(_BOM).decode("utf-8", "replace").strip():
            try:
                value = json.loads(text, parse_constant=number, parse_float=number)
            except (ValueError, RecursionError):
                value = None
            if not isinstance(value, dict):
                raise UsageError(_refusal(text, at, first=not lines))
            lines.append(ItemLine(at, raw, value))
    return lines


def _refusal(text: str, at: int, first: bool) -> str:
    """What is wrong with a line; the first one tells what the whole file is."""
    if text.startswith("["):
        return f"line {at} begins a JSON array; write one object per line, with `jq -c '.[]'`"
    if first and text == "{":
        return f"line {at} begins an object of several lines; write each on one, with `jq -c .`"
    if first and "\0" in text:
        return _SIGNS[b"\xff\xfe"]
    if first and not text.startswith("{") and any(sign in text for sign in _SEPARATORS):
        return _CSV
    return f"line {at} is no JSON object; write one object per line"
