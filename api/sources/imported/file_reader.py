"""A file or pipe as lines of text: unpacked, decoded, in constant memory.

`zstandard` is imported here alone. A dump that was packed with a long window (`--long=31`) needs
that window's memory while it is unpacked, up to 2 GB; nothing else grows with the file.
"""

from __future__ import annotations

import codecs
import gzip
import hashlib
import io
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from stat import S_ISFIFO, S_ISREG
from typing import IO, Any, BinaryIO, cast

import zstandard

from api.core.text import quantity
from api.errors import UsageError
from api.sources.imported.text_encoding import UnreadableFile, encoding_of, named_encoding
from api.sources.imported.workbooks import LARGEST_WORKBOOK, WorkbookTooLarge, is_workbook, opened_workbook

LONGEST_LINE = 8_000_000
"""Longest line in bytes; of a longer one only the beginning is kept."""
# bytes that are read at a time, and of packed data, of which a kilobyte may become 30 MB
_CHUNK = 1_000_000
# bytes that are kept of a line that is too long
_START = 200
# the longest window that zstd knows: dumps of Reddit are packed with it
_MAX_WINDOW = 2**31
_SKIPPABLE = 0x184D2A50  # magic number of a zstd frame without data; the last four bits are free
_REPEATED = 1  # kind of a zstd block that is one byte, repeated
_PACKED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
_ZIP = b"PK\x03\x04"
# first bytes of files that cannot be read, and what to do
_OTHER_FILES = {
    _ZIP: "is a zip archive but no `.xlsx` workbook; unpack it, or save the spreadsheet as `.xlsx` or CSV",
    b"\xd0\xcf\x11\xe0": "is a workbook of an old kind; save it as `.xlsx` or CSV",
    b"BZh": "is packed with bzip2; unpack it with `bunzip2`",
    b"\xfd7zXZ": "is packed with xz; unpack it with `unxz`",
    b"SQLite format 3": "is a database; export the table as CSV",
}
_UNPACKING_ERRORS = (OSError, EOFError, zlib.error, zstandard.ZstdError, WorkbookTooLarge)
Read = Callable[[int], bytes]
"""`read(size)`: at most so many of the next bytes, none at the end."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line without its end, its number, and the position of the next one."""

    number: int
    """The line's number, from 1."""
    text: str
    end: int
    """Position of the next line, in bytes of the unpacked text as UTF-8."""
    fault: str = ""
    """Why `text` is only the beginning of the line; otherwise empty."""


@dataclass(eq=False)
class OpenedFile:
    """A file whose beginning has been read; the rest is read once, by `lines`."""

    name: str
    size: int | None
    """Compressed size in bytes; None for a pipe."""
    digest: str
    """SHA-256 of its size, its first and its last megabyte; empty for a pipe."""
    packing: str
    """`gzip`, `zstd`, `xlsx` or nothing."""
    encoding: str
    head: str
    """The beginning of its text."""
    taken: int = 0
    """Bytes read so far of `size`."""
    sheet: str = ""
    """Which sheet of a workbook is read and which are not, in words; otherwise empty."""
    note: str = ""
    """Why the encoding that a person named is ignored; otherwise empty."""
    damage: str = ""
    """How much could not be decompressed, set by `lines`; otherwise empty."""
    undecoded: int = 0
    """Set by `lines`: how many lines have bytes without a meaning in its encoding, which are read as U+FFFD."""
    _sure: bool = True  # false while nobody chose the encoding and no letter has shown it
    _rest: Read = io.BytesIO().read
    _first: bytes = b""
    _raw: IO[bytes] = field(default_factory=io.BytesIO)

    def lines(self, since: int = 0) -> Iterator[Line]:
        """Lines that end after `since`; a broken end of the file is a line with a fault."""
        number = end = 0
        pending, lost = b"", 0
        fault = ""
        chunks = self._text()
        while not fault:
            try:
                chunk = next(chunks)
            except StopIteration:
                break
            except _UNPACKING_ERRORS as error:
                fault = f"the rest of the file cannot be unpacked ({_why(error)})"
                if isinstance(error, WorkbookTooLarge):
                    fault = f"the rest of the file is not read: it {error}"
                self.damage = self._loss(end + len(pending), error)
                break
            *whole, pending = (pending + chunk).split(b"\n")
            for data in whole:
                number, end = number + 1, end + len(data) + lost + 1
                too_long = bool(lost) or len(data) > LONGEST_LINE
                if not (too_long or data.isascii()):
                    self._look_at_letters(number, data)
                if end > since:
                    yield _line(number, data, end, too_long=too_long)
                lost = 0
            if len(pending) > LONGEST_LINE:
                lost, pending = lost + len(pending) - _START, pending[:_START]
        if pending or lost:
            number, end = number + 1, end + len(pending) + lost
            if not (lost or fault):
                self._sure = True  # the last letter of a file that was cut off is no other encoding
                self._look_at_letters(number, pending)
            if end > since:
                yield _line(number, pending, end, too_long=bool(lost))
        if fault and end + 1 > since:
            yield Line(number + 1, "", end + 1, fault)

    @property
    def losses(self) -> list[str]:
        """What `lines` could not read, a sentence each."""
        letters = (
            f"{quantity(self.undecoded, 'line')} with bytes that are no {self.encoding}, read as `\ufffd`; "
            "if the file has another encoding, name it with `--encoding`"
        )
        return [*filter(None, [self.damage]), *([letters] if self.undecoded else [])]

    def _look_at_letters(self, number: int, data: bytes) -> None:
        """Add 1 to `undecoded` where the line does not decode.

        Raises:
            UnreadableFile: UTF-8 was only assumed, since nobody named an encoding and all before was ASCII.
        """
        # what the decoder could not read is U+FFFD already, which texts in UTF-16 may have by themselves
        wrong = not self.encoding.startswith("utf") and "\ufffd".encode() in data
        try:
            data.decode("utf-8")
        except UnicodeDecodeError:
            wrong = True
        if wrong and not self._sure:
            raise UnreadableFile(
                f"is ASCII at its beginning and no UTF-8 on line {number:,}; "
                "name its encoding with `--encoding`, such as `cp1252`"
            )
        self.undecoded += wrong
        self._sure = True

    def close(self) -> None:
        """Close the file; a pipe stays open."""
        if self.name != "-":
            self._raw.close()

    def _loss(self, read: int, error: BaseException) -> str:
        """The sentence of `damage`: bytes of text that were read and, where known, packed bytes that were not."""
        if isinstance(error, WorkbookTooLarge):
            return f"the file {error}; {read:,} bytes of text were read, the rest was not"
        taken = self._raw.tell() if self.size is not None and self.packing != "xlsx" else 0
        left = (self.size or 0) - taken
        rest = "and some of it may be false: its checksum is wrong"
        if isinstance(error, EOFError):
            rest = "it breaks off, and how much is missing is unknown"
        elif taken and left > 0:
            rest = f"{left:,} of its {self.size:,} packed bytes ({left / (self.size or 1):.0%}) were not"
        return f"the file is damaged: {read:,} bytes of text were read, {rest}"

    def _text(self) -> Iterator[bytes]:
        decoder: Any = None
        if self.encoding != "utf-8":
            decoder = codecs.getincrementaldecoder(self.encoding)("replace")
        chunk = self._first
        while chunk:
            yield decoder.decode(chunk).encode("utf-8", "replace") if decoder else chunk
            self.taken = self._raw.tell() if self.size is not None else self.taken + len(chunk)
            chunk = self._rest(_CHUNK)
        if decoder:
            yield decoder.decode(b"", final=True).encode("utf-8", "replace")


def opened(path: str, pipe: BinaryIO, encoding: str = "") -> OpenedFile:
    """Open a file, or the pipe for `-`, and read its beginning; raises `UsageError`.

    Without an `encoding` it is recognised.
    """
    try:
        if path == "-":
            return _with_beginning("-", pipe, None, "", encoding)
        with ExitStack() as closing:
            raw = closing.enter_context(Path(path).open("rb"))
            status = os.fstat(raw.fileno())
            if not (S_ISREG(status.st_mode) or S_ISFIFO(status.st_mode)):
                raise UsageError("is neither file nor pipe")
            size = status.st_size if S_ISREG(status.st_mode) else None
            digest = "" if size is None else _digest(raw, size)
            file = _with_beginning(Path(path).name, raw, size, digest, encoding)
            closing.pop_all()  # it is read on by the caller
        return file
    except UsageError as error:
        raise UsageError(f"`{path}` {error}") from None
    except OSError as error:
        raise UsageError(f"`{path}` cannot be read: {error.strerror or _why(error)}") from None
    except _UNPACKING_ERRORS as error:
        raise UsageError(f"`{path}` cannot be unpacked: {_why(error)}") from None


def opened_bytes(name: str, data: bytes, encoding: str = "") -> OpenedFile:
    """Open a file in memory; raises as `opened`."""
    try:
        return _with_beginning(name, io.BytesIO(data), len(data), "", encoding)
    except UsageError:
        raise
    except _UNPACKING_ERRORS as error:
        raise UsageError(f"cannot be unpacked: {_why(error)}") from None


def _with_beginning(name: str, raw: IO[bytes], size: int | None, digest: str, named: str) -> OpenedFile:
    named = named_encoding(named) if named else ""
    buffered = io.BufferedReader(cast(Any, _Unseekable(raw)), _CHUNK)
    sign = buffered.peek(16)
    if sign.startswith(_ZIP):
        whole = io.BytesIO(buffered.read(LARGEST_WORKBOOK + 1)) if size is None else raw
        length = whole.seek(0, os.SEEK_END)
        # of a pipe the end, where the kind of an archive stands, is not read then
        if length > LARGEST_WORKBOOK and (size is None or is_workbook(whole)):
            raise WorkbookTooLarge(f"more than {LARGEST_WORKBOOK // 1_000_000} MB")
        if is_workbook(whole):
            note = f"`--encoding {named}` is ignored: a workbook has its own" if named else ""
            return _of_workbook(name, whole, size, digest, note)
    for known, why in _OTHER_FILES.items():
        if sign.startswith(known):
            raise UnreadableFile(why)
    packing = next((name for known, name in _PACKED.items() if sign.startswith(known)), "")
    rest: Read = buffered.read1
    if packing == "gzip":
        rest = gzip.GzipFile(fileobj=buffered).read1
    elif packing == "zstd":
        rest = _Frames(buffered).read
    first = _head(rest)
    encoding, mark = encoding_of(first, named)
    first = first[mark:]
    note = f"`--encoding {named}` is ignored: a byte order mark says {encoding}" if named and named != encoding else ""
    head = first.decode(encoding, "replace")
    if "\n" not in head and "\r" in head:
        raise UsageError("ends its lines with carriage returns; convert it with `tr '\\r' '\\n'`")
    if not head.strip("\0\ufffd \r\n\t"):
        raise UsageError("holds no text")
    # the last line may be cut within a letter
    is_ascii = encoding == "utf-8" and first[: first.rfind(b"\n") + 1].isascii()
    sure = bool(named or mark) or not is_ascii or head.lstrip()[:1] in {"{", "["}  # JSON is UTF-8
    return OpenedFile(
        name, size, digest, packing, encoding, head, note=note, _sure=sure, _rest=rest, _first=first, _raw=raw
    )


def _of_workbook(name: str, raw: IO[bytes], size: int | None, digest: str, note: str) -> OpenedFile:
    book = opened_workbook(raw, LONGEST_LINE)
    first = _head(book.read)
    others = ", ".join(f"`{title}`" for title in book.others[:10])
    sheet = f"sheet `{book.sheet}`{f', not read: {others}' if others else ''}"
    return OpenedFile(
        name, size, digest, "xlsx", "utf-8", first.decode("utf-8", "replace"),
        sheet=sheet, note=note, _rest=book.read, _first=first, _raw=raw,
    )  # fmt: skip


class _Frames:
    """Unpacks zstd block by block, so that no few bytes become more than 128 kB at once (RFC 8878, section 3.1.1).

    The library's own reader ignores a frame that breaks off.
    """

    def __init__(self, packed: io.BufferedReader) -> None:
        self._packed = packed
        self._frame: Any = None
        self._has_checksum = False

    def read(self, size: int) -> bytes:
        parts: list[bytes] = []
        length = 0
        try:
            while length < size and (part := self._next()) is not None:
                parts.append(part)
                length += len(part)
        except (EOFError, zstandard.ZstdError):
            if not length:
                raise
        return b"".join(parts)

    def _next(self) -> bytes | None:
        """The next block decompressed, possibly empty; None at the end of the file."""
        if self._frame is None:
            return self._begin()
        head = self._exactly(3)
        last, kind, size = head[0] & 1, head[0] >> 1 & 3, int.from_bytes(head, "little") >> 3
        data = bytes(self._frame.decompress(head + self._exactly(1 if kind == _REPEATED else size)))
        if last:
            data += bytes(self._frame.decompress(self._exactly(4))) if self._has_checksum else b""
            self._frame = None
        return data

    def _begin(self) -> bytes | None:
        """Read the head of a frame, or skip one that holds no data."""
        magic = self._packed.read(4)
        if not magic:
            return None
        if int.from_bytes(magic, "little") & ~0xF == _SKIPPABLE:
            left = int.from_bytes(self._exactly(4), "little")
            while left:
                left -= len(self._exactly(min(left, _CHUNK)))
            return b""
        descriptor = self._exactly(1)
        is_single, flags = descriptor[0] >> 5 & 1, descriptor[0]
        rest = (0 if is_single else 1) + (0, 1, 2, 4)[flags & 3] + (is_single, 2, 4, 8)[flags >> 6]
        self._has_checksum = bool(flags & 4)
        self._frame = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW).decompressobj()
        self._frame.decompress(magic + descriptor + self._exactly(rest))
        return b""

    def _exactly(self, size: int) -> bytes:
        data = self._packed.read(size)
        if len(data) < size:
            raise EOFError("it breaks off")
        return data


class _Unseekable(io.RawIOBase):
    """A file without `seek`, so that a pipe is not asked to go back."""

    def __init__(self, inner: IO[bytes]) -> None:
        super().__init__()
        self._inner = inner

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = getattr(self._inner, "read1", self._inner.read)(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def _head(rest: Read) -> bytes:
    """About a quarter of a megabyte and at least a line; later errors are raised by `lines`."""
    data = b""
    while len(data) < _CHUNK // 4 or (b"\n" not in data and len(data) <= LONGEST_LINE):
        try:
            more = rest(_CHUNK // 4)
        except _UNPACKING_ERRORS:
            if data:
                break
            raise
        if not more:
            break
        data += more
    return data


def _digest(file: IO[bytes], size: int) -> str:
    """SHA-256 as in `OpenedFile.digest`; leaves the file at its beginning."""
    known = hashlib.sha256(f"{size}".encode())
    known.update(file.read(_CHUNK))
    file.seek(max(size - _CHUNK, 0))
    known.update(file.read(_CHUNK))
    file.seek(0)
    return known.hexdigest()


def _line(number: int, data: bytes, end: int, *, too_long: bool) -> Line:
    if too_long:
        fault = f"it is longer than {LONGEST_LINE // 1_000_000} MB"
        return Line(number, data[:_START].decode("utf-8", "replace"), end, fault)
    return Line(number, data.decode("utf-8", "replace").removesuffix("\r"), end)


def _why(error: BaseException) -> str:
    """The library's message, which holds no path and no value."""
    return str(error).partition("\n")[0][:100] or type(error).__name__
