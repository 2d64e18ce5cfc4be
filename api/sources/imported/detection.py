"""What a file is, found out before anything is written: its format, and how it is read.

A collected file as a person's own items: all in memory, for one question.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import BinaryIO

from api.core.domain import Item
from api.core.text import clean, one_line
from api.errors import UsageError
from api.features.archive.import_file import MOST_COMMENTS, STUB
from api.features.archive.imports import (
    Entry,
    ImportCard,
    ImportPortion,
    ImportPosition,
    LeftOut,
    Refusal,
)
from api.sources.imported import amazon_files, plain_files, reddit_files, youtube_files
from api.sources.imported.file_formats import Fields, Setting, Shape
from api.sources.imported.file_reader import Line, OpenedFile, opened, opened_bytes
from api.sources.imported.tables import (
    FIELDS,
    Columns,
    Head,
    Record,
    Unread,
    columns_of,
    head_of,
    objects,
    rows,
)
from api.sources.own_items import OwnItems, read_items

SHAPES = {
    shape.name: shape for shape in (reddit_files.SHAPE, youtube_files.SHAPE, amazon_files.SHAPE)
}
FORMATS = ("auto", *SHAPES, "csv", "jsonl")
# Records by which a format is found out.
_SAMPLE = 50
_ENDINGS = (".gz", ".zst", ".zstd", ".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".txt")


@dataclass(frozen=True, slots=True)
class ReadOptions:
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

    opened: OpenedFile
    card: ImportCard
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

    def portions(self, since: ImportPosition) -> Iterator[ImportPortion]:
        """Its records from there on, in constant memory; a bad one is a `Refusal`."""
        lines = self.opened.lines(since.offset)
        for record in objects(lines) if self.head is None else rows(lines, self.head):
            if isinstance(record, Unread):
                yield ImportPortion((record.refusal,), record.mark)
            else:
                entries = tuple(
                    entry for fields in record.objects for entry in self._entries(fields, record)
                )
                yield ImportPortion(entries, record.mark)

    def close(self) -> None:
        """Let go of the file."""
        self.opened.close()

    def _entries(self, fields: Fields, record: Record) -> list[Entry]:
        read = self.columns.entries if self.columns else (self.shape or plain_files.SHAPE).entries
        entries: list[Entry] = []
        try:
            entries += read(fields, self.setting)
        except UsageError as error:
            reason = str(error).removeprefix("`the object`: ").removeprefix("`the row`: ")
            entries.append(Refusal(record.line, reason, one_line(clean(record.start))))
        return entries


def open_collected(path: str, wish: ReadOptions, pipe: BinaryIO) -> CollectedFile:
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


def understood(file: OpenedFile, wish: ReadOptions) -> CollectedFile:
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
    card = ImportCard(file.name, form, digest if file.digest else "")
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


MOST_BYTES = 64_000_000
"""Of its unpacked text."""


def read_collected(data: bytes) -> OwnItems:
    """Items from any file that can be imported; JSON lines of one's own by the rules for those.

    Of others a line that cannot be read is a note.

    Raises:
        UsageError: it is none of the formats, or holds too much or nothing; or a line of one's own
            JSON lines is no item, named by its number.
    """
    try:
        file = understood(opened_bytes("items", data), ReadOptions())
    except UsageError:
        return read_items(data)  # which says what it is instead
    if file.card.form == "jsonl" and not file.opened.packing and file.opened.encoding == "utf-8":
        return read_items(data)
    items: list[Item] = []
    aside: list[str] = []
    gone: Counter[str] = Counter()
    for portion in file.portions(ImportPosition()):
        if portion.mark.offset > MOST_BYTES:
            most = f"{MOST_BYTES // 1_000_000} MB"
            raise UsageError(f"holds more than {most}; bring it in with `listenpost import`")
        for entry in portion.entries:
            match entry:
                case Refusal():
                    aside.append(f"line {entry.line}: {entry.reason}")
                case LeftOut():
                    gone[entry.reason] += 1
                case _:
                    items.append(entry)
    if not items and not file.opened.packing:
        return read_items(data)
    if not items:
        raise UsageError("; ".join(["there is no item", *aside[:1]]))
    notes = [f"{count} left out: {reason}" for reason, count in gone.items()]
    if aside:
        notes.append(f"{len(aside)} line(s) could not be read; {aside[0]}")
    return OwnItems(tuple(joined(items)), tuple(notes))


def joined(items: Iterable[Item]) -> list[Item]:
    """Each item once, with the comments of all that have its key."""
    known: dict[str, Item] = {}
    for item in items:
        first = known.setdefault(item.key, item)
        if first is not item:
            own = item if STUB in first.notes and STUB not in item.notes else first
            comments = {comment.id: comment for comment in (*first.comments, *item.comments)}
            known[item.key] = replace(own, comments=tuple(comments.values())[:MOST_COMMENTS])
    return list(known.values())
