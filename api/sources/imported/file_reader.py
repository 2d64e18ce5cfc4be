"""A file or pipe as lines of text: unpacked, decoded, in constant memory, whatever it holds.

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

from api.errors import UsageError

LONGEST_LINE = 8_000_000
"""Bytes; of a longer line only the beginning is kept."""
_CHUNK = 1_000_000
_SIP = 1_000
# Bytes that are kept of a line that is too long.
_START = 200
# The longest window that zstd knows: dumps of Reddit are packed with it.
_WINDOW = 2**31
_PACKED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
# First bytes of a file, and why it cannot be read.
_OTHERS = {
    b"PK\x03\x04": "is a zip archive or a spreadsheet; unpack it, or save it as CSV",
    b"BZh": "is packed with bzip2; unpack it with `bunzip2`",
    b"\xfd7zXZ": "is packed with xz; unpack it with `unxz`",
    b"SQLite format 3": "is a database; export the table as CSV",
}
_MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
_BROKEN = (OSError, EOFError, zlib.error, zstandard.ZstdError)
Read = Callable[[int], bytes]
"""Gives at most so many of the next bytes, none at the end."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line without its end."""

    number: int
    """From 1."""
    text: str
    end: int
    """Where the next begins, in bytes of the unpacked text as UTF-8."""
    fault: str = ""
    """Why it is not whole; `text` is its beginning then."""


@dataclass(eq=False)
class OpenedFile:
    """A file whose beginning has been looked at; read once, by `lines`."""

    name: str
    size: int | None
    """In bytes as it lies there, packed; None of a pipe."""
    digest: str
    """Of its size, its first and its last megabyte; empty of a pipe."""
    packing: str
    """`gzip`, `zstd` or nothing."""
    encoding: str
    head: str
    """The first of its text."""
    taken: int = 0
    """Bytes read so far of `size`."""
    _rest: Read = io.BytesIO().read
    _first: bytes = b""
    _raw: IO[bytes] = field(default_factory=io.BytesIO)

    def lines(self, since: int = 0) -> Iterator[Line]:
        """All lines that end behind `since`.

        A file that cannot be unpacked to its end gives one more line with that fault.
        """
        number = end = 0
        pending, lost = b"", 0
        fault = ""
        chunks = self._text()
        while not fault:
            try:
                chunk = next(chunks)
            except StopIteration:
                break
            except _BROKEN as error:
                fault = f"the rest of the file cannot be unpacked ({_why(error)})"
                break
            *whole, pending = (pending + chunk).split(b"\n")
            for data in whole:
                number, end = number + 1, end + len(data) + lost + 1
                if end > since:
                    yield _line(number, data, end, too_long=bool(lost) or len(data) > LONGEST_LINE)
                lost = 0
            if len(pending) > LONGEST_LINE:
                lost, pending = lost + len(pending) - _START, pending[:_START]
        if pending or lost:
            number, end = number + 1, end + len(pending) + lost
            if end > since:
                yield _line(number, pending, end, too_long=bool(lost))
        if fault and end + 1 > since:
            yield Line(number + 1, "", end + 1, fault)

    def close(self) -> None:
        """Let go of the file; a pipe is its owner's."""
        if self.name != "-":
            self._raw.close()

    def _text(self) -> Iterator[bytes]:
        """The unpacked bytes as UTF-8."""
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


def opened(path: str, pipe: BinaryIO) -> OpenedFile:
    """Open a file, or for `-` the pipe, and look at its beginning.

    Raises:
        UsageError: it is neither file nor pipe, cannot be read, holds nothing, or is of a kind
            that is none of ours; the message says what to do.
    """
    try:
        return _opened(path, pipe)
    except OSError as error:
        raise UsageError(f"`{path}` cannot be read: {error.strerror or _why(error)}") from None
    except _BROKEN as error:
        raise UsageError(f"`{path}` cannot be unpacked: {_why(error)}") from None
    except UsageError as error:
        raise UsageError(f"`{path}` {error}") from None


def _opened(path: str, pipe: BinaryIO) -> OpenedFile:
    if path == "-":
        return _looked_at("-", pipe, None, "")
    with ExitStack() as closing:
        raw = closing.enter_context(Path(path).open("rb"))
        status = os.fstat(raw.fileno())
        if not (S_ISREG(status.st_mode) or S_ISFIFO(status.st_mode)):
            raise UsageError("is neither file nor pipe")
        size, digest = None, ""
        if S_ISREG(status.st_mode):
            size, digest = status.st_size, _digest(raw, status.st_size)
        file = _looked_at(Path(path).name, raw, size, digest)
        closing.pop_all()
    return file


def opened_bytes(name: str, data: bytes) -> OpenedFile:
    """The same of what is in memory.

    Raises:
        UsageError: see `opened`.
    """
    try:
        return _looked_at(name, io.BytesIO(data), len(data), "")
    except _BROKEN as error:
        raise UsageError(f"cannot be unpacked: {_why(error)}") from None


def _looked_at(name: str, raw: IO[bytes], size: int | None, digest: str) -> OpenedFile:
    buffered = io.BufferedReader(cast(Any, _Unseekable(raw)), _CHUNK)
    sign = buffered.peek(16)
    for known, why in _OTHERS.items():
        if sign.startswith(known):
            raise UsageError(why)
    packing = next((name for known, name in _PACKED.items() if sign.startswith(known)), "")
    rest: Read = buffered.read1
    if packing == "gzip":
        rest = gzip.GzipFile(fileobj=buffered).read1
    elif packing == "zstd":
        rest = _Frames(buffered).read
    first = _head(rest)
    encoding, mark = _encoding(first)
    first = first[mark:]
    head = first.decode(encoding, "replace")
    if "\n" not in head and "\r" in head:
        raise UsageError("ends its lines with carriage returns; convert it with `tr '\\r' '\\n'`")
    if not head.strip("\0\ufffd \r\n\t"):
        raise UsageError("holds no text")
    return OpenedFile(name, size, digest, packing, encoding, head, 0, rest, first, raw)


class _Frames:
    """What zstd packed, frame by frame; the library's own reader does not say that one breaks off.

    Little is read at a time, since a kilobyte may be unpacked to thirty megabytes.
    """

    def __init__(self, packed: io.BufferedReader) -> None:
        self._packed, self._ahead = packed, b""
        self._frame: Any = None

    def read(self, size: int) -> bytes:
        """About so many bytes; none at the end."""
        parts: list[bytes] = []
        length = 0
        try:
            while length < size and (data := self._ahead or self._packed.read(_SIP)):
                if self._frame is None:
                    unpacker = zstandard.ZstdDecompressor(max_window_size=_WINDOW)
                    self._frame = unpacker.decompressobj()
                parts.append(self._frame.decompress(data))
                self._ahead = self._frame.unused_data if self._frame.eof else b""
                self._frame = None if self._frame.eof else self._frame
                length += len(parts[-1])
        except zstandard.ZstdError:
            if not length:
                raise
        if not length and self._frame is not None:
            raise EOFError("it breaks off")
        return b"".join(parts)


class _Unseekable(io.RawIOBase):
    """A file that is only read on: so nobody asks a pipe to go back."""

    def __init__(self, inner: IO[bytes]) -> None:
        super().__init__()
        self._inner = inner

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._inner.read1(len(buffer)) if hasattr(self._inner, "read1") else None
        if data is None:
            data = self._inner.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def _head(rest: Read) -> bytes:
    """About a quarter of a megabyte and at least a line, or what there is.

    What breaks later breaks in `lines`.
    """
    data = b""
    while len(data) < _CHUNK // 4 or (b"\n" not in data and len(data) <= LONGEST_LINE):
        try:
            more = rest(_CHUNK // 4)
        except _BROKEN:
            if data:
                break
            raise
        if not more:
            break
        data += more
    return data


def _encoding(head: bytes) -> tuple[str, int]:
    """The encoding, and the bytes of its mark: by that, by its zeros, by what is valid."""
    for mark, name in _MARKS.items():
        if head.startswith(mark):
            return name, len(mark)
    even, odd = head[0::2].count(0), head[1::2].count(0)
    if max(even, odd) > len(head) // 5 and min(even, odd) <= len(head) // 50:
        return ("utf-16-le" if odd > even else "utf-16-be"), 0
    # a head may be cut within a character, which this leaves out
    text = codecs.getincrementaldecoder("utf-8")("replace").decode(head)
    wrong = text.count("\ufffd")
    foreign = sum(not sign.isascii() for sign in text) - wrong
    # a damaged byte among many good letters is no other encoding, and JSON is UTF-8
    is_utf8 = wrong <= foreign // 10 or text.lstrip()[:1] in {"{", "["}
    return ("utf-8" if is_utf8 else "cp1252"), 0


def _digest(file: IO[bytes], size: int) -> str:
    """Of size, first and last megabyte; the file is at its beginning again."""
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
    """In the library's words, which name no place and no value."""
    return str(error).partition("\n")[0][:100] or type(error).__name__
