"""Packed, encoded, broken, endless: a file is lines of text, or says why it is none."""

from __future__ import annotations

import codecs
import gzip
import io
import random
import tracemalloc
import zipfile
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import zstandard
from openpyxl import Workbook

from api.errors import UsageError
from api.sources.imported.detection import ReadOptions, open_collected
from api.sources.imported.file_reader import LONGEST_LINE, Line, opened
from api.sources.imported.workbooks import MOST_CELLS
from tests.sources.imported.files import entries, items, lines, looked_at, made, portions, refusals

ROWS = [{"title": f"Mug {number}", "body": "größer ☕"} for number in range(1000)]
TEXT = lines(*ROWS)
SHEETS = "http://schemas.openxmlformats.org/spreadsheetml/2006"
KIND = "application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"
TITLES = [row["title"] for row in ROWS]


def long_window(data: bytes) -> bytes:
    """As `zstd --long=31` packs the dumps of Reddit."""
    parameters = zstandard.ZstdCompressionParameters.from_level(3, window_log=31)
    packer = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    return packer.compress(data) + packer.flush()


@pytest.mark.parametrize(
    "data",
    [
        TEXT,
        gzip.compress(TEXT),
        gzip.compress(TEXT[:100]) + gzip.compress(TEXT[100:]),
        zstandard.compress(TEXT),
        long_window(TEXT),
        b"\xef\xbb\xbf" + TEXT,
        TEXT.decode().encode("utf-16"),
        TEXT.decode().encode("utf-16-le"),
        TEXT.decode().encode("utf-16-be"),
        TEXT.replace(b"\n", b"\r\n"),
        TEXT.removesuffix(b"\n"),
        gzip.compress(TEXT.decode().encode("utf-16")),
    ],
)
def test_every_packing_and_encoding_gives_the_same(tmp_path: Path, data: bytes) -> None:
    """Its bytes say what it is, not its name."""
    read = items(entries(made(tmp_path, data)))

    assert [item.title for item in read] == TITLES
    assert {item.body for item in read} == {"größer ☕"}


def test_a_window_that_the_library_refuses_by_itself_is_opened(tmp_path: Path) -> None:
    """Without leave for it, zstd unpacks windows up to 128 MB only."""
    data = long_window(TEXT)
    with pytest.raises(zstandard.ZstdError):
        zstandard.ZstdDecompressor().decompressobj().decompress(data)

    assert len(entries(made(tmp_path, data, "RS_2026-10.zst"))) == len(ROWS)


def test_western_letters_are_read(tmp_path: Path) -> None:
    """A table that a spreadsheet saved in Windows' own encoding."""
    data = "title;body\nGröße;„zu klein“ – naja €\n".encode("cp1252")

    file = made(tmp_path, data)

    assert file.opened.encoding == "cp1252"
    (item,) = items(entries(file))
    assert (item.title, item.body) == ("Größe", "„zu klein“ – naja €")


def test_a_wrong_byte_is_no_other_encoding(tmp_path: Path) -> None:
    """In JSON, and in a table whose other letters are UTF-8."""
    table = "title,body\n" + "größer,süß\n" * 20
    broken = table.encode().replace("süß".encode(), b"s\xff", 1)

    assert looked_at(tmp_path, b'{"title": "caf\xe9"}\n').opened.encoding == "utf-8"
    read = items(entries(made(tmp_path, broken)))
    assert [item.body for item in read][:2] == ["s\ufffd", "süß"]


@pytest.mark.parametrize(
    "name", ["punycode", "idna", "unicode_escape", "raw-unicode-escape", "hz", "undefined", "zip", "rot13", "x\0"]
)
def test_what_is_no_encoding_of_a_file_is_refused(tmp_path: Path, name: str) -> None:
    """Though Python knows some of them."""
    with pytest.raises(UsageError, match="unknown encoding"):
        made(tmp_path, TEXT, encoding=name)


@pytest.mark.parametrize("name", ["utf-8-sig", "UTF-16", "utf-16-be", "utf-32", "utf_32_be", "latin1", "cp037", "gbk"])
@pytest.mark.parametrize("mark", [True, False])
def test_a_named_encoding_is_read(tmp_path: Path, name: str, mark: bool) -> None:
    """With a byte order mark or without one."""
    data = "title,body\nMug,it leaks\n".encode(name)
    if not mark:
        data = data.removeprefix(codecs.BOM_UTF8 if name == "utf-8-sig" else "".encode(name))

    (item,) = items(entries(made(tmp_path, data, encoding=name)))

    assert (item.title, item.body) == ("Mug", "it leaks")


@pytest.mark.parametrize("cut", [0.3, 0.7, 0.99])
@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress, long_window])
def test_a_file_that_breaks_off_is_read_up_to_there(tmp_path: Path, pack: Any, cut: float) -> None:
    """And the rest, which cannot be unpacked, is one line that is kept aside."""
    draw = random.Random(1)
    rows = lines(*({"title": f"mug {draw.randbytes(20).hex()}"} for _ in range(12_000)))
    data = pack(rows)
    read = entries(made(tmp_path, data[: int(len(data) * cut)]))

    assert 0 < len(items(read)) < 12_000
    *half, (_, reason) = refusals(read)
    assert len(half) <= 1
    assert reason.startswith("the rest of the file cannot be unpacked")


def test_few_bytes_do_not_become_many_at_once(tmp_path: Path) -> None:
    """Half a gigabyte of newlines in 15 kB is read in pieces."""
    blank = b"\n" * 500_000_000
    data = zstandard.compress(lines({"title": "mug", "body": "it leaks"}) + blank)
    del blank
    path = tmp_path / "a.zst"
    path.write_bytes(data)
    tracemalloc.start()
    with closing(opened(str(path), io.BytesIO())) as file:
        numbers = [line.number for line in islice(file.lines(), 200_000)]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert len(data) < 50_000
    assert numbers[-1] >= 200_000
    assert peak < 40_000_000


def repeated(cells: int, text: str) -> bytes:
    """A workbook whose second row has so many cells with one long shared text, and whose third is an ordinary one."""
    book, out, changed = Workbook(), io.BytesIO(), io.BytesIO()
    for row in (["Review"], ["MARK"] * cells, ["The mug leaks"]):
        book.active.append(row)  # type: ignore[union-attr]
    book.save(out)
    texts = f'<sst xmlns="{SHEETS}/main"><si><t>{text}</t></si></sst>'
    kind = f'<Override PartName="/xl/sharedStrings.xml" ContentType="{KIND}"/></Types>'
    with zipfile.ZipFile(out) as source, zipfile.ZipFile(changed, "w", zipfile.ZIP_DEFLATED) as target:
        for part in source.namelist():
            written = source.read(part).replace(b't="inlineStr"><is><t>MARK</t></is>', b't="s"><v>0</v>')
            if part == "[Content_Types].xml" and b"sharedStrings" not in written:
                written = written.replace(b"</Types>", kind.encode())
            if part != "xl/sharedStrings.xml":
                target.writestr(part, written)
        target.writestr("xl/sharedStrings.xml", texts)
    return changed.getvalue()


def test_a_shared_text_of_a_workbook_is_not_repeated_without_end(tmp_path: Path) -> None:
    """300 cells of a million letters in a few kilobytes: each is cut, and the row is refused."""
    data = repeated(300, "mug\n" * 250_000)
    tracemalloc.start()
    read = entries(made(tmp_path, data))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    (long,) = items(entries(made(tmp_path, repeated(1, "x" * 1_000_000)))[:1])

    assert len(data) < 20_000
    assert peak < 80_000_000
    assert refusals(read) == [(2, f"it is longer than {LONGEST_LINE // 1_000_000} MB")]
    assert [item.body for item in items(read)] == ["The mug leaks"]
    assert len(long.body) == 32_767


def test_a_workbook_that_is_too_large_is_no_damaged_one(tmp_path: Path) -> None:
    """As a file or a pipe, by its bytes or its cells; what was read of it stays."""
    path, book = tmp_path / "large.xlsx", Workbook()
    book.active.append(["Review"])  # type: ignore[union-attr]
    book.active.append(["The mug leaks"])  # type: ignore[union-attr]
    wide = MOST_CELLS // 16_384 + 6
    for number in range(3, wide):
        book.active.cell(number, 16_384, 1)  # type: ignore[union-attr]
    book.save(path)
    read = made(tmp_path, path.read_bytes(), "wide.xlsx")
    found = entries(read)
    with zipfile.ZipFile(path, "a") as archive, archive.open("media", "w") as part:
        for _ in range(101):
            part.write(bytes(1_000_000))

    for name, pipe in ((str(path), io.BytesIO()), ("-", io.BytesIO(path.read_bytes()))):
        with pytest.raises(
            UsageError, match=r"` is larger than a workbook may be \(more than 100 MB\); save its sheet"
        ):
            opened(name, pipe)
    assert [item.body for item in items(found)] == ["The mug leaks"]
    assert "the rest of the file is not read: it is larger than a workbook may be" in refusals(found)[-1][1]
    assert read.opened.damage.startswith(f"the file is larger than a workbook may be (more than {MOST_CELLS:,} cells)")


def test_frames_without_data_are_skipped(tmp_path: Path) -> None:
    """As some packers write them between the others; with checksums or without."""
    skipped = (0x184D2A53).to_bytes(4, "little") + (5).to_bytes(4, "little") + b"hello"
    packer = zstandard.ZstdCompressor(write_checksum=True, write_content_size=False)
    data = zstandard.compress(lines({"title": "a"})) + skipped + packer.compress(lines({"title": "b"})) + skipped

    read = items(entries(made(tmp_path, data)))

    assert [item.title for item in read] == ["a", "b"]


class Endless(io.RawIOBase):
    """A line of 100 MB between two good ones, made as it is read."""

    def __init__(self) -> None:
        self._parts, self._left = self._made(), b""

    def _made(self) -> Iterator[bytes]:
        yield b'{"title": "before"}\n{"title": "'
        for _ in range(100):
            yield b"x" * 1_000_000
        yield b'"}\n{"title": "after"}\n'

    def readable(self) -> bool:
        return True

    def read1(self, size: int = -1) -> bytes:
        self._left = self._left or next(self._parts, b"")
        given, self._left = self._left[:size], self._left[size:]
        return given


def test_a_line_of_100_mb_is_kept_aside() -> None:
    """And never held: the lines around it are read."""
    file = open_collected("-", ReadOptions(), Endless())  # type: ignore[arg-type]
    read = entries(file)

    assert [item.title for item in items(read)] == ["before", "after"]
    ((line, reason),) = refusals(read)
    assert (line, reason) == (2, f"it is longer than {LONGEST_LINE // 1_000_000} MB")


def test_reading_goes_on_at_a_mark(tmp_path: Path) -> None:
    """With the numbers that the lines have, whatever it is packed in."""
    data = TEXT.decode().encode("utf-16")
    whole = portions(made(tmp_path, gzip.compress(data)))
    for at in (0, 1, 499, 999):
        rest = portions(made(tmp_path, gzip.compress(data)), whole[at].position)
        assert rest == whole[at + 1 :]


def test_reading_of_what_breaks_off_goes_on_too(tmp_path: Path) -> None:
    """The last line, which has no end, and what cannot be unpacked each come once."""
    broken = gzip.compress(b'{"title": "a"}\n{"title": "b"}')[:-4]
    whole = portions(made(tmp_path, broken))
    assert len(whole) == 3

    for at in range(3):
        assert portions(made(tmp_path, broken), whole[at].position) == whole[at + 1 :]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "holds no text"),
        (b" \n\n", "holds no text"),
        (b"\0" * 999, "holds no text"),
        (b"PK\x03\x04spreadsheet", "no `.xlsx` workbook"),
        (b"BZh9", "bunzip2"),
        (b"\xfd7zXZ\0", "unxz"),
        (b"SQLite format 3\0", "export the table"),
        (b"title\rmug\r", "carriage returns"),
        (b"\x1f\x8b\x08rubbish", "cannot be unpacked"),
        (b"\x28\xb5\x2f\xfdrubbish", "cannot be unpacked"),
        (b'{\n  "title": "a"\n}\n', "jq -c"),
        (b"a,b\n1,2\n", "--map body=COLUMN"),
    ],
)
def test_what_is_no_file_of_ours_says_what_to_do(tmp_path: Path, data: bytes, words: str) -> None:
    """Before anything is written."""
    with pytest.raises(UsageError, match=words) as caught:
        made(tmp_path, data)

    assert "file` " in str(caught.value)


def test_a_folder_or_nothing_is_named(tmp_path: Path) -> None:
    """By the path that was given."""
    with pytest.raises(UsageError, match="cannot be read: Is a directory"):
        opened(str(tmp_path), io.BytesIO())
    with pytest.raises(UsageError, match="nowhere` cannot be read: No such file"):
        opened(str(tmp_path / "nowhere"), io.BytesIO())


def test_devices_are_refused() -> None:
    """One may have no end."""
    with pytest.raises(UsageError, match="neither file nor pipe"):
        opened("/dev/zero", io.BytesIO())


def test_a_file_is_known_again_and_a_pipe_is_not(tmp_path: Path) -> None:
    """By size, ends and how it is read; another way of reading makes another card."""
    first = looked_at(tmp_path, TEXT).identity
    again = looked_at(tmp_path, TEXT).identity
    other = looked_at(tmp_path, TEXT, product="Mug").identity
    changed = looked_at(tmp_path, TEXT + b"\n").identity
    pipe = open_collected("-", ReadOptions(), io.BytesIO(TEXT)).identity

    assert first == again
    assert len({first.digest, other.digest, changed.digest}) == 3
    assert (pipe.name, pipe.digest) == ("-", "")


def test_bytes_taken_are_those_of_the_file(tmp_path: Path) -> None:
    """So a bar knows how much is left, packed or not."""
    for data in (TEXT, gzip.compress(TEXT)):
        file = made(tmp_path, data)
        portions(file)
        assert file.opened.taken == file.opened.size == len(data)


def test_lines_know_where_the_next_begins() -> None:
    """In bytes of UTF-8, their ends included."""
    file = opened("-", io.BytesIO("é\r\n\nab".encode()))

    assert list(file.lines()) == [Line(1, "é", 4), Line(2, "", 5), Line(3, "ab", 7)]
