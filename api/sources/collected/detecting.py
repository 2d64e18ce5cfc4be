"""What a file is, found out before anything is written: its format, and how it is read."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import BinaryIO

from api.errors import UsageError
from api.services.archive.imports import Card, Entry, Mark, Portion, Refusal
from api.services.text import clean, one_line
from api.sources.collected import amazon, plain, reddit, youtube
from api.sources.collected.opening import Line, Opened, opened
from api.sources.collected.records import (
    Head,
    Record,
    Unread,
    head_of,
    objects,
    rows,
)
from api.sources.collected.shapes import Fields, Setting, Shape
from api.sources.collected.table import FIELDS, Columns, columns_of

SHAPES = {shape.name: shape for shape in (reddit.SHAPE, youtube.SHAPE, amazon.SHAPE)}
FORMATS = ("auto", *SHAPES, "csv", "jsonl")
_SAMPLE = 50
"""Records by which a format is found out."""
_ENDINGS = (".gz", ".zst", ".zstd", ".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".txt")


@dataclass(frozen=True, slots=True)
class Wish:
    """What a person says of a file."""

    form: str = "auto"
    """One of `FORMATS`."""
    columns: Mapping[str, str] | None = None
    """Field -> column of a table."""
    product: str = ""
    """What the entries are about, where they do not say."""


@dataclass(frozen=True, eq=False)
class CollectedFile:
    """An opened file, and what was found out about it."""

    opened: Opened
    card: Card
    shape: Shape | None
    """None of a table by columns."""
    head: Head | None
    """None of JSON."""
    columns: Columns | None
    why: str
    """How the format is known."""
    setting: Setting

    @property
    def findings(self) -> list[str]:
        """What was found out, a line each, to be shown before anything is written."""
        packed = f", unpacked with {self.opened.packing}" if self.opened.packing else ""
        lines = [
            f"format: {self.card.form} ({self.why})",
            f"encoding: {self.opened.encoding}{packed}",
        ]
        if self.head is not None:
            sign = {"\t": "tab"}.get(self.head.delimiter, self.head.delimiter)
            lines.append(f"delimiter: {sign}, head on line {self.head.line}")
        if self.columns is not None:
            pairs = (f"{field} = `{column}`" for field, column in self.columns.named.items())
            lines.append(f"columns: {', '.join(pairs)}")
            lines.append(f"dates: {self.columns.dates}")
        return lines

    def portions(self, since: Mark) -> Iterator[Portion]:
        """Its records from there on, in constant memory; a bad one is a `Refusal`."""
        lines = self.opened.lines(since.offset)
        for record in objects(lines) if self.head is None else rows(lines, self.head):
            if isinstance(record, Unread):
                yield Portion((record.refusal,), record.mark)
            else:
                entries = tuple(
                    entry for fields in record.objects for entry in self._entries(fields, record)
                )
                yield Portion(entries, record.mark)

    def close(self) -> None:
        """Let go of the file."""
        self.opened.close()

    def _entries(self, fields: Fields, record: Record) -> list[Entry]:
        read = self.columns.entries if self.columns else (self.shape or plain.SHAPE).entries
        entries: list[Entry] = []
        try:
            entries += read(fields, self.setting)
        except UsageError as error:
            reason = str(error).removeprefix("`the object`: ").removeprefix("`the row`: ")
            entries.append(Refusal(record.line, reason, one_line(clean(record.start))))
        return entries


def collected(path: str, wish: Wish, pipe: BinaryIO) -> CollectedFile:
    """Open a file and find out what it is.

    Raises:
        UsageError: it cannot be read, or is none of the formats; the message says what to do.
    """
    file = opened(path, pipe)
    try:
        return understood(file, wish)
    except UsageError as error:
        file.close()
        raise UsageError(f"`{path}` {error}") from None


def read_columns(text: str) -> dict[str, str]:
    """`title=Headline,body=Full Text` as field -> column.

    Raises:
        UsageError: a part is no pair, or names a field that there is not.
    """
    columns: dict[str, str] = {}
    for part in filter(str.strip, text.split(",")):
        field, sign, column = (word.strip() for word in part.partition("="))
        if not (sign and column) or field not in FIELDS:
            known = ", ".join(f"`{name}`" for name in FIELDS)
            raise UsageError(f"`--map {part[:40]}`: write FIELD=COLUMN; fields are {known}")
        columns[field] = column
    return columns


def understood(file: Opened, wish: Wish) -> CollectedFile:
    """What an opened file is.

    Raises:
        UsageError: it is none of the formats.
    """
    setting = Setting(_stem(file.name), wish.product)
    text = file.head.lstrip("\ufeff \t\r\n")
    head, columns, shape = None, None, None
    if text[:1] in {"{", "["} and wish.form != "csv":
        sample = _sample(objects(_lines(file.head)))
        if not sample:
            why = "no line of its beginning is a JSON object; write one on each line, `jq -c .`"
            raise UsageError(why)
        shape, why = _shape(sample, wish.form)
    else:
        if wish.form == "jsonl":
            raise UsageError("does not begin with a JSON object; is it a table: `--as csv`?")
        head = head_of(file.head)
        sample = _sample(rows(_lines(file.head), head))
        shape, why = _shape(sample, wish.form)
        if shape is None or wish.columns:
            shape, columns = None, columns_of(head.columns, sample, wish.columns or {})
    form = shape.name if shape else "csv" if columns else "jsonl"
    reading = f"{file.digest} {wish.form} {sorted((wish.columns or {}).items())} {wish.product}"
    digest = hashlib.sha256(reading.encode("utf-8", "replace")).hexdigest()
    card = Card(file.name, form, digest if file.digest else "")
    return CollectedFile(file, card, shape, head, columns, why, setting)


def _shape(sample: Sequence[Fields], form: str) -> tuple[Shape | None, str]:
    """The format that a person names, or the one of most records if of half; None: by columns."""
    if form != "auto":
        return SHAPES.get(form), "as you say"
    counts = {shape: sum(map(shape.recognises, sample)) for shape in SHAPES.values()}
    shape, count = max(counts.items(), key=lambda pair: pair[1])
    if sample and count * 2 >= len(sample):
        return shape, f"{count} of the first {len(sample)} have {shape.signs}"
    return None, "no other is recognised"


def _sample(records: Iterator[Record | Unread]) -> list[Fields]:
    return list(
        islice(
            (
                fields
                for record in records
                if isinstance(record, Record)
                for fields in record.objects
            ),
            _SAMPLE,
        )
    )


def _lines(head: str) -> Iterator[Line]:
    """The beginning's lines, without the last, which may be half of one."""
    listed = head.split("\n")
    for number, text in enumerate(listed[:-1] if len(listed) > 1 else listed, 1):
        yield Line(number, text.removesuffix("\r"), 0)


def _stem(name: str) -> str:
    stem = name
    while ending := next((end for end in _ENDINGS if stem.lower().endswith(end)), ""):
        stem = stem[: -len(ending)]
    return one_line(clean(stem)) or "input"
