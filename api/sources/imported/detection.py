"""Collected files: their format, detected before anything is written, and their entries.

`read_collected` reads a small file as a person's own items, for one question.
"""

from __future__ import annotations

import hashlib
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import BinaryIO

from api.core.items import Item
from api.core.text import clean, one_line, quantity
from api.errors import UsageError
from api.features.archive.import_file import MOST_COMMENTS, STUB
from api.features.archive.imports import Entry, FileIdentity, ImportPortion, ImportPosition, LeftOut, Refusal
from api.sources.imported.file_reader import Line, OpenedFile, opened, opened_bytes
from api.sources.imported.record_formats import AMAZON, JSON_LINES, REDDIT, YOUTUBE, Fields, FileContext, FileFormat
from api.sources.imported.table_files import (
    FIELDS,
    Columns,
    Head,
    NoColumn,
    Record,
    Unread,
    columns_of,
    head_of,
    objects,
    rows,
)
from api.sources.imported.text_encoding import UnreadableFile
from api.sources.own_items import OwnItems, read_items, separated

_DETECTED = {detected.name: detected for detected in (REDDIT, YOUTUBE, AMAZON)}
FORMATS = ("auto", *_DETECTED, "csv", "jsonl")
# records by which a format is detected
_SAMPLE_SIZE = 50
_ENDINGS = (".gz", ".zst", ".zstd", ".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".txt")


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Format, columns, product and encoding that a person gave for a file; format and encoding are else detected."""

    form: str = "auto"
    """Format, one of `FORMATS`."""
    columns: Mapping[str, str] | None = None
    """Column of a table for each field; None when the person names none."""
    product: str = ""
    """Title of entries without one."""
    encoding: str = ""
    """Encoding of the file; recognised where it is empty."""


@dataclass(frozen=True, eq=False)
class CollectedFile:
    """An opened file with its format."""

    opened: OpenedFile
    identity: FileIdentity
    format: FileFormat | None
    """Format of the records; None for a table that is read by its columns."""
    head: Head | None
    """Header of a table; None for JSON."""
    columns: Columns | None
    why: str
    """How the format was recognised."""
    context: FileContext

    @property
    def findings(self) -> list[str]:
        """What is known about the file, one line each, shown before anything is written."""
        packed = f", unpacked with {self.opened.packing}" if self.opened.packing else ""
        lines = [
            f"format: {self.identity.form} ({self.why})",
            self.opened.sheet or f"encoding: {self.opened.encoding}{packed}",
        ]
        lines += [self.opened.note] if self.opened.note else []
        if self.head is not None:
            sign = {"\t": "tab"}.get(self.head.delimiter, self.head.delimiter)
            head = f"head on line {self.head.line}" if self.head.line else "no head, so columns are numbered"
            lines.append(f"delimiter: {sign}, {head}")
            lines += self.head.notes
        if self.columns is not None:
            lines.append(f"columns: {self.columns.summary}")
            lines.append(f"dates: {self.columns.dates}")
        return lines

    def portions(self, since: ImportPosition) -> Iterator[ImportPortion]:
        """The records from this position on, in constant memory; a bad one is a `Refusal`."""
        read = self.columns.entries if self.columns else (self.format or JSON_LINES).entries
        lines = self.opened.lines(since.offset)
        for record in objects(lines) if self.head is None else rows(lines, self.head):
            if isinstance(record, Unread):
                yield ImportPortion((record.refusal,), record.position)
                continue
            entries: list[Entry] = []
            for fields in record.objects:
                try:
                    entries += read(fields, self.context)
                except UsageError as error:
                    reason = str(error).removeprefix("`the object`: ").removeprefix("`the row`: ")
                    entries.append(Refusal(record.line, reason, one_line(clean(record.start))))
            yield ImportPortion(tuple(entries), record.position)

    def close(self) -> None:
        """Close the file that is read."""
        self.opened.close()


def open_collected(path: str, options: ReadOptions, pipe: BinaryIO) -> CollectedFile:
    """Open a file, or the pipe for `-`, and detect its format; raises `UsageError`."""
    file = opened(path, pipe, options.encoding)
    try:
        return detect_format(file, options)
    except UsageError as error:
        file.close()
        raise UsageError(f"`{path}` {error}") from None


def read_columns(text: str) -> dict[str, str]:
    """`title=Headline,body=Full Text` as field -> column; raises `UsageError` for other texts."""
    columns: dict[str, str] = {}
    for part in filter(str.strip, text.split(",")):
        field, sign, column = (word.strip() for word in part.partition("="))
        if not (sign and column) or field not in FIELDS:
            known = ", ".join(f"`{name}`" for name in FIELDS)
            raise UsageError(f"`--map {part[:40]}`: write FIELD=COLUMN; fields are {known}")
        columns[field] = column
    return columns


def detect_format(file: OpenedFile, options: ReadOptions) -> CollectedFile:
    """The format of an opened file; raises `UsageError` when it has none."""
    stem = file.name
    while ending := next((end for end in _ENDINGS if stem.lower().endswith(end)), ""):
        stem = stem[: -len(ending)]
    beginning = file.head.split("\n")
    # the last line may be cut off
    texts = beginning[:-1] if len(beginning) > 1 else beginning
    lines = [Line(number, text.removesuffix("\r"), 0) for number, text in enumerate(texts, 1)]
    head, columns = None, None
    if file.head.lstrip("\ufeff \t\r\n")[:1] in {"{", "["} and options.form != "csv":
        sample = _sample(objects(lines))
        if not sample:
            raise UsageError("no line of its beginning is a JSON object; write one on each line, `jq -c .`")
        detected, why = _detected(sample, options.form)
    else:
        if options.form == "jsonl":
            raise UsageError("does not begin with a JSON object; is it a table: `--as csv`?")
        head = head_of(file.head)
        sample = _sample(rows(lines, head))
        detected, why = _detected(sample, options.form)
        if detected is None or options.columns:
            detected, columns = None, columns_of(head, sample, options.columns or {})
    form = detected.name if detected else "csv" if columns else "jsonl"
    # the same file read in another way is another import
    mapping = sorted((options.columns or {}).items())
    reading = f"{file.digest} {options.form} {mapping} {options.product}{options.encoding}"
    digest = hashlib.sha256(reading.encode("utf-8", "replace")).hexdigest()
    identity = FileIdentity(file.name, form, digest if file.digest else "")
    context = FileContext(one_line(clean(stem)) or "input", options.product)
    return CollectedFile(file, identity, detected, head, columns, why, context)


def _detected(sample: Sequence[Fields], form: str) -> tuple[FileFormat | None, str]:
    """The wanted format, or the one of at least half of the records; None when columns decide."""
    if form != "auto":
        return _DETECTED.get(form), "as you say"
    counts = {known: sum(map(known.recognises, sample)) for known in _DETECTED.values()}
    likely, count = max(counts.items(), key=lambda pair: pair[1])
    if sample and count * 2 >= len(sample):
        return likely, f"{count} of the first {len(sample)} have {likely.signs}"
    return None, "no other is recognised"


def _sample(records: Iterator[Record | Unread]) -> list[Fields]:
    read = (record for record in records if isinstance(record, Record))
    return list(islice((fields for record in read for fields in record.objects), _SAMPLE_SIZE))


MOST_BYTES = 64_000_000
"""Largest unpacked text that is read into memory."""


def read_collected(data: bytes, options: ReadOptions = ReadOptions(), product: str = "") -> OwnItems:
    """Items from any file that can be imported, with notes; raises `UsageError` for other files.

    With a `product` all of them stand in its place: what they say is about it unless they say otherwise.
    """
    own = _read_collected(data, options)
    return replace(own, items=tuple(_placed(item, product) for item in own.items)) if product else own


def _placed(item: Item, product: str) -> Item:
    """The item with the product as its place; its former place stays in `places`."""
    places = dict.fromkeys((product, *(place for place in (item.place, *item.places) if place)))
    return item.edited(place=product, places=tuple(places))


def _read_collected(data: bytes, options: ReadOptions) -> OwnItems:
    try:
        file = detect_format(opened_bytes("items", data, options.encoding), options)
    except (NoColumn, UnreadableFile):
        raise
    except UsageError:
        return read_items(data)  # its error names the kind of file
    if file.identity.form == "jsonl" and not file.opened.packing and file.opened.encoding == "utf-8":
        deque(file.opened.lines(), 0)  # counts what cannot be decoded
        own = read_items(data)
        return replace(own, notes=(*own.notes, *file.opened.losses, *filter(None, [file.opened.note])))
    items: list[Item] = []
    aside: list[str] = []
    gone: Counter[str] = Counter()
    for portion in file.portions(ImportPosition()):
        if portion.position.offset > MOST_BYTES:
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
    notes = [*file.opened.losses, *filter(None, [file.opened.note])]
    notes += [f"{count} left out: {reason}" for reason, count in gone.items()]
    notes += [file.opened.sheet] if "not read" in file.opened.sheet else []
    notes += [file.columns.guess] if file.columns is not None and file.columns.guess else []
    notes += file.head.notes if file.head is not None and file.columns is not None else ()
    if aside:
        notes.append(f"{quantity(len(aside), 'line')} could not be read; {aside[0]}")
    return OwnItems(tuple(post for item in joined(items) for post in separated(item)), tuple(notes))


def joined(items: Iterable[Item]) -> list[Item]:
    """Each item once, with the comments of all items with its key."""
    known: dict[str, Item] = {}
    for item in items:
        first = known.setdefault(item.key, item)
        if first is not item:
            own = item if STUB in first.notes and STUB not in item.notes else first
            comments = {comment.id: comment for comment in (*first.comments, *item.comments)}
            known[item.key] = own.edited(comments=tuple(comments.values())[:MOST_COMMENTS])
    return list(known.values())
