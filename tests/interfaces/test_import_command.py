"""`import`: a file comes in, is listed, searched, taken back, and its deleted entries forgotten."""

from __future__ import annotations

import gzip
import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
import zstandard
from openpyxl import Workbook

from tests.interfaces.command import Ended, Here

POST: dict[str, Any] = {
    "id": "1abc", "title": "Plaud Note in meetings", "selftext": "The recorder hears everybody.",
    "subreddit": "gadgets", "author": "ada", "score": 12, "created_utc": 1_700_000_000,
    "permalink": "/r/gadgets/comments/1abc/plaud/", "is_self": True,
}  # fmt: skip
REMARK: dict[str, Any] = {
    "id": "c1", "body": "Mine ran out of battery", "link_id": "t3_1abc", "subreddit": "gadgets",
    "author": "bob", "score": 3, "created_utc": 1_700_000_100,
}  # fmt: skip


@pytest.fixture(autouse=True)
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A database of this test, and two files."""
    monkeypatch.setenv("LISTENPOST_DATABASE_URL", f"sqlite:///{tmp_path / 'kept.db'}")
    rows = [POST, REMARK, REMARK | {"id": "c2", "body": "[deleted]"}, "{broken"]
    text = "".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows)
    Path("RC.jsonl").write_text(text, "utf-8")
    Path("RC.gz").write_bytes(gzip.compress(text.encode()))
    Path("list").write_text('{"title": "A file called list"}\n', "utf-8")


def id_of(ended: Ended) -> str:
    """The id that an import got."""
    return ended.out.partition(":")[0]


def test_what_comes_in_is_listed_shown_and_taken_back(here: Here) -> None:
    """What was found out is said first, on stderr; the summary is the answer."""
    brought = here("import", "RC.jsonl")
    listed = here("import", "list")
    shown = here("import", "show", id_of(brought)[:8])
    short = here("import", "remove", id_of(brought)[:-1])
    removed = here("import", "remove", id_of(brought))
    nothing = here("import", "list")

    assert brought.code == 0
    assert brought.err.startswith("format: reddit (3 of the first 3 have `subreddit`")
    assert "RC.jsonl as reddit: 1 item, 1 comment new, 0 there already" in brought.out
    assert "1 left out: says nothing" in brought.out
    assert "1 line kept aside: not readable" in brought.out
    assert "1 item, 1 comment  RC.jsonl" in listed.out
    assert shown.out.endswith("line 4: it is no JSON object: {broken\n")
    assert (short.code, f"`listenpost import remove {id_of(brought)}`" in short.err) == (2, True)
    assert "with 1 items that nothing else held" in removed.err
    assert (nothing.out, "nothing was imported yet" in nothing.err) == ("", True)


def test_what_came_in_is_searched(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its comments, each by itself; it is not made up."""
    monkeypatch.setenv("LISTENPOST_MODE", "live")
    here("import", "RC.gz")

    answer = here("search", "Plaud recorder ran out of battery", "--format", "json").json

    assert [hit["key"] for hit in answer["hits"]][:1] == ["reddit:t3_1abc"]
    assert "Mine ran out of battery" in json.dumps(answer)


def test_a_file_comes_in_once(here: Here) -> None:
    """The second time says so; another file with the same entries merges them."""
    first = here("import", "RC.jsonl")
    again = here("import", "RC.jsonl")
    other = here("import", "RC.gz", "--as", "reddit")

    assert again.code == 0
    assert f"was imported before, as {id_of(first)}" in again.out
    assert "0 items, 0 comments new, 2 there already" in other.out


def test_a_dry_run_writes_nothing(here: Here) -> None:
    """It says what the file holds, with examples and what cannot be read."""
    tried = here("import", "RC.gz", "--dry-run")

    assert "encoding: utf-8, unpacked with gzip" in tried.err
    assert tried.out.startswith("1 item, 1 comment, 1 line that nobody can read, 1 left out")
    assert "reddit:t3_1abc  2023-11-14  Plaud Note in meetings: The recorder" in tried.out
    assert "line 4: it is no JSON object" in tried.out
    assert here("import", "list").out == ""


def test_a_table_comes_in_by_its_columns(here: Here) -> None:
    """What is guessed is shown; `--map` says it; `--product` names what has no title."""
    Path("mentions.csv").write_text("Snippet;When;Url\n=1+1 leaks;31/12/2025;https://x.example/1\n", "utf-8")

    tried = here("import", "mentions.csv", "--map", "created_at=When", "--product", "Mug")
    wrong = here("import", "mentions.csv", "--map", "created_at=Date")

    assert "delimiter: ;, head on line 1" in tried.err
    assert "columns: created_at = `When`, body = `Snippet`, url = `Url`" in tried.err
    assert "dates: day before month, as a day above 12 shows" in tried.err
    assert "1 item, 0 comments new" in tried.out
    assert (wrong.code, "has no column `Date`" in wrong.err) == (2, True)


def test_an_encoding_is_recognised_or_named(here: Here) -> None:
    """What cannot be told is refused with the option that says it; so is an encoding that is none."""
    Path("gbk.csv").write_bytes("text\n电池只能用半天，太失望了\n保温效果很好，每天都用\n".encode("gbk"))
    Path("short.csv").write_bytes("text\nכוס מצוינת\n".encode("cp1255"))

    known = here("import", "gbk.csv", "--dry-run")
    unsure = here("import", "short.csv")
    named = here("import", "short.csv", "--encoding", "cp1255")
    wrong = here("import", "short.csv", "--encoding", "cp99")
    own = here("analyze", "Mug", "--items", "short.csv")

    assert "encoding: gb18030" in known.err
    assert "电池只能用半天" in known.out
    assert (unsure.code, "`short.csv` is no UTF-8, and its encoding cannot be told" in unsure.err) == (2, True)
    assert "name it with `--encoding`" in unsure.err
    assert "1 item, 0 comments new" in named.out
    assert (wrong.code, "`--encoding cp99`: unknown encoding" in wrong.err) == (2, True)
    assert (own.code, "name it with `--encoding`" in own.err) == (2, True)


@pytest.mark.parametrize("ending", ["\n", ""])
def test_letters_behind_an_ascii_beginning_are_not_lost(here: Here, ending: str) -> None:
    """The encoding of such a file is asked for, before and after something was stored."""
    leaks = "The mug leaks and the lid is loose. " * 250
    rows = "text\n" + f"{leaks}\n" * 36 + "Кружка течёт\n" * 2 + f"Крышка{ending}"
    Path("late.csv").write_bytes(rows.encode("cp1251"))

    tried = here("import", "late.csv", "--dry-run")
    stopped = here("import", "late.csv")
    own = here("analyze", "Mug", "--items", "late.csv")
    named = here("import", "late.csv", "--encoding", "cp1251", "--dry-run")

    reason = "`late.csv` is ASCII at its beginning and no UTF-8 on line 38; name its encoding with `--encoding`"
    assert [(ended.code, reason in ended.err) for ended in (tried, stopped, own)] == [(2, True)] * 3
    assert (named.code, "39 items" in named.out, "warning" in named.err) == (0, True, False)


def test_lines_with_wrong_bytes_are_counted(here: Here) -> None:
    """Of a file that is UTF-8 by its other letters, of JSON, and of an encoding that was named."""
    table = "text\n" + "größer und süß\n" * 20
    Path("utf.csv").write_bytes(table.encode() + b"zu gro\xdf\n")
    Path("late.jsonl").write_bytes(b'{"title": "%s"}\n' % (b"Mug " * 2_000) * 40 + b'{"title": "caf\xe9"}\n')
    Path("named.csv").write_bytes(table.encode("cp1252") + b"\x81\n")

    counted = [
        here("import", "utf.csv", "--dry-run"),
        here("import", "late.jsonl", "--dry-run"),
        here("import", "named.csv", "--encoding", "cp1252", "--dry-run"),
    ]

    assert [ended.code for ended in counted] == [0, 0, 0]
    for ended, name in zip(counted, ("utf-8", "utf-8", "cp1252"), strict=True):
        assert f"warning: 1 line with bytes that are no {name}, read as `\ufffd`" in ended.err


def test_an_encoding_that_is_ignored_is_named(here: Here) -> None:
    """A workbook and a byte order mark say their own."""
    book = Workbook()
    book.active.append(["Review"])  # type: ignore[union-attr]
    book.active.append(["The mug leaks"])  # type: ignore[union-attr]
    book.save("a.xlsx")
    Path("marked.csv").write_bytes("text\ngrößer\n".encode("utf-16"))

    in_book = here("import", "a.xlsx", "--encoding", "cp1251", "--dry-run")
    marked = here("import", "marked.csv", "--encoding", "cp1251", "--dry-run")
    same = here("import", "marked.csv", "--encoding", "utf-16", "--dry-run")

    assert "`--encoding cp1251` is ignored: a workbook has its own" in in_book.err
    assert "`--encoding cp1251` is ignored: a byte order mark says utf-16-le" in marked.err
    assert (same.code, "ignored" in same.err, "größer" in same.out) == (0, False, True)


def test_a_damaged_archive_says_how_much_was_lost(here: Here) -> None:
    """What could be read is stored, and the exit code says that it is not all."""
    rows = "".join(f'{{"title": "mug {random.Random(n).randbytes(900).hex()}"}}\n' for n in range(400)).encode()
    packed = gzip.compress(rows)
    Path("cut.gz").write_bytes(packed[: len(packed) // 2])
    Path("hole.zst").write_bytes(zstandard.compress(rows) + bytes(3_000_000))

    cut = here("import", "cut.gz")
    hole = here("import", "hole.zst", "--dry-run")

    assert (cut.code, hole.code) == (3, 3)
    assert re.search(
        r"damaged: [\d,]+ bytes of text were read, it breaks off, and how much is missing is unknown", cut.err
    )
    assert re.search(r"damaged: .* were read, [\d,]+ of its [\d,]+ packed bytes \(\d\d%\) were not", hole.err)
    assert re.search(r"\d items?, 0 comments new", cut.out)


def test_columns_of_one_name_are_named(here: Here) -> None:
    """Before anything is written, and beside an answer."""
    Path("two.csv").write_text("Review,Review,Date\nThe mug leaks,internal,2026-01-03\n", "utf-8")

    tried = here("import", "two.csv", "--dry-run")
    report = here("analyze", "mug", "--items", "two.csv", "--format", "json").json

    words = "2 columns are called `Review`: the first is read as `Review`"
    assert words in tried.err
    assert words in " ".join(report["sources"]["items"]["notes"])


def test_stdin_and_files_called_like_commands(here: Here) -> None:
    """`-` is what is piped in; `./list` is a file."""
    piped = here("import", "-", stdin=Path("RC.jsonl").read_bytes())
    file = here("import", "./list")

    assert "-: - as reddit" not in piped.out
    assert "1 item, 1 comment new" in piped.out
    assert "list as jsonl: 1 item," in file.out


def test_what_was_deleted_is_forgotten(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the ids that a place or a file's owner gives, one on each line."""
    monkeypatch.setenv("LISTENPOST_MODE", "live")
    here("import", "RC.jsonl")
    assert here("search", "Plaud recorder ran out of battery", "--format", "json").json["hits"]
    Path("gone.txt").write_text("1abc\n\nt3_other\n", "utf-8")

    forgotten = here("import", "forget", "gone.txt")

    assert forgotten.out == "2 ids: 1 item and 0 comments forgotten\n"
    assert here("search", "Plaud recorder ran out of battery", "--format", "json").json["hits"] == []


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("nowhere",), "`nowhere` cannot be read: No such file"),
        (("RC.jsonl", "--map", "votes=x"), "fields are `title`"),
        (("show", "imp_9"), "there is no import `imp_9`; `listenpost import list`"),
        (("remove", ""), "there is no import ``"),
        (("forget", "nowhere"), "`nowhere` cannot be read"),
        (("forget", "empty"), "names nothing"),
    ],
)
def test_what_is_wrong_is_named(here: Here, words: tuple[str, ...], error: str) -> None:
    """With exit code 2, and nothing is written."""
    Path("empty").write_text("\n", "utf-8")
    ended = here("import", *words)

    assert (ended.code, ended.out) == (2, "")
    assert error in ended.err


def test_a_beginning_that_fits_two_is_no_name(here: Here) -> None:
    """Nothing is guessed where something is deleted."""
    here("import", "RC.jsonl")
    here("import", "RC.gz")

    assert "several imports begin with `imp_`" in here("import", "remove", "imp_").err


def test_lists_are_json_too(here: Here) -> None:
    """For programs."""
    id_ = id_of(here("import", "RC.jsonl"))

    (row,) = json.loads(here("import", "list", "--format", "json").out)
    shown = here("import", "show", id_, "--format", "json").json

    assert (row["id"], row["format"], row["items"], row["comments"]) == (id_, "reddit", 1, 1)
    assert shown["refusals"] == [{"line": 4, "reason": "it is no JSON object", "start": "{broken"}]
    assert row["finished_at"] is not None


def test_own_items_come_from_any_file(here: Here) -> None:
    """`analyze --items` takes what `import` takes, with comments joined and a note on the rest."""
    report = here("analyze", "Plaud Note", "--items", "RC.gz", "--format", "json").json

    (item,) = report["items"]
    assert (item["key"], [c["id"] for c in item["comments"]]) == ("reddit:t3_1abc", ["c1"])
    notes = " ".join(report["sources"]["items"]["notes"])
    assert "1 line could not be read; line 4: it is no JSON object" in notes
    assert "1 left out" in notes


def test_the_archive_is_a_place(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked by name alone: what came in is judged, reported and cited; no site is asked."""
    monkeypatch.setenv("LISTENPOST_MODE", "live")
    here("import", "RC.jsonl")

    report = here("analyze", "Plaud Note", "--source", "archive", "--format", "json").json
    fetched = here("fetch", "archive", "Plaud Note", "--format", "json").json

    assert list(report["sources"]) == ["archive"]
    assert [item["key"] for item in report["items"]] == ["reddit:t3_1abc"]
    assert report["coverage"].startswith("The archive: 1 of 1 ")
    assert report["cost"]["upstream_calls"] == 0
    assert [comment["id"] for comment in fetched["items"][0]["comments"]] == ["c1"]


def test_the_archive_of_the_sandbox_is_made_up(here: Here) -> None:
    """A question in the sandbox is put to what was made up there, never to what was brought in."""
    here("import", "RC.jsonl")
    here("analyze", "plaud.ai", "--depth", "quick", "--sandbox")

    asked = ("--source", "archive", "--format", "json", "--sandbox")
    report = here("analyze", "plaud.ai", "--depth", "quick", *asked).json

    assert report["sample"] is True
    assert list(report["sources"]) == ["archive"]
    assert report["items"]
    assert "reddit:t3_1abc" not in {item["key"] for item in report["items"]}
