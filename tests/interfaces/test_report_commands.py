"""`keys`, `reports`, and what `analyze` keeps."""

from __future__ import annotations

import csv
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from api.errors import ListenpostError, NotFound, UsageError
from api.interfaces.cli.main import app
from tests.interfaces.command import process


@pytest.fixture(autouse=True)
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A database of this test, and sample data."""
    file = tmp_path / "kept.db"
    monkeypatch.setenv("LISTENPOST_DATABASE_URL", f"sqlite:///{file}")
    monkeypatch.setenv("LISTENPOST_MODE", "sandbox")
    return file


def call(*words: str) -> Result:
    """Run a command; an expected failure is in `exception`."""
    result = CliRunner().invoke(app, list(words))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        assert isinstance(result.exception, ListenpostError), result.exception
    return result


def test_a_key_is_shown_once_and_stored_hashed(database: Path) -> None:
    """On stdout alone, so that it can be piped; nowhere else ever."""
    added = call("keys", "add", "ann")
    key = added.stdout.strip()
    listed = call("keys", "list")

    assert added.exit_code == 0
    assert key.startswith("lp_")
    assert "ann" in added.stderr
    assert key not in listed.stdout + added.stderr
    assert key.encode() not in database.read_bytes()
    assert listed.stdout.split()[1:] == ["store", "valid", "ann"]


def test_keys_are_listed_with_their_origin(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the environment beside those of the store, revoked ones too."""
    monkeypatch.setenv("LISTENPOST_API_KEYS", "one, two")
    call("keys", "add", "ann")
    revoked = call("keys", "revoke", "ann")
    keys = json.loads(call("keys", "list", "--format", "json").stdout)

    assert revoked.exit_code == 0
    assert [(key["origin"], key["revoked"]) for key in keys] == [
        ("environment", False), ("environment", False), ("store", True),
    ]  # fmt: skip
    assert "one" not in json.dumps(keys)
    assert isinstance(call("keys", "revoke", keys[0]["id"]).exception, UsageError)
    assert isinstance(call("keys", "revoke", "nobody").exception, NotFound)
    assert isinstance(call("keys", "add", "ann").exception, UsageError)


def test_without_keys_that_is_said() -> None:
    """And what it means."""
    listed = call("keys", "list")

    assert listed.stdout == ""
    assert "this machine only" in listed.stderr


def test_answers_are_kept_and_can_be_read_again() -> None:
    """Of every decision, as sample when they are made up."""
    empty = call("reports")
    told = call("analyze", "plaud.ai", "--depth", "quick", "--format", "json").stdout
    answer = json.loads(told)
    call("analyze", "hey this is a test message")
    rows = json.loads(call("reports", "list", "--format", "json").stdout)
    shown = call("reports", "show", answer["id"], "--format", "json")

    assert "nothing is kept yet" in empty.stderr
    assert sorted(row["decision"] for row in rows) == sorted(["clarify", answer["decision"]])
    assert {row["sample"] for row in rows} == {True}
    assert json.loads(shown.stdout) == answer
    assert call("reports").stdout.count("(sample)") == 2
    assert answer["id"][:8] in call("reports").stdout
    assert call("reports", "list", "--limit", "1").stdout.count("\n") == 1
    for form, part in (("markdown", "# "), ("text", "====")):
        assert part in call("reports", "show", answer["id"], "--format", form).stdout
    assert "Dropped" in call("reports", "show", answer["id"], "--dropped").stdout


def test_the_id_is_said_and_its_beginning_is_enough(database: Path) -> None:
    """Where nothing else begins so; else the candidates are named, and none is shown."""
    asked = call("analyze", "hi", "--format", "json")
    answer = json.loads(asked.stdout)
    kept = asked.stderr.splitlines()[-1]

    assert kept == f"kept as {answer['id']}: `listenpost reports show {answer['id'][:8]}`"
    for words in (("show", answer["id"][:8]), ("export", answer["id"][:1])):
        assert "hi" in call("reports", *words).stdout
    call("analyze", "hello")
    with closing(sqlite3.connect(database)) as other:
        other.execute("UPDATE analyses SET id = 'ab' || substr(id, 3)")
        other.execute("UPDATE verdicts SET analysis_id = 'ab' || substr(analysis_id, 3)")
        other.commit()
    several = call("reports", "show", "ab").exception

    assert isinstance(several, UsageError)
    assert "(hi)" in str(several)
    assert "(hello)" in str(several)
    assert isinstance(call("reports", "show", "a%").exception, NotFound)


def test_a_listing_says_when_what_and_how_much(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line, or three where the terminal is narrow; JSON has the same for programs."""
    call("analyze", "plaud.ai", "--depth", "quick", "--about", "the AI voice recorder")
    (row,) = json.loads(call("reports", "list", "--format", "json").stdout)
    monkeypatch.setenv("COLUMNS", "40")
    narrow = call("reports").stdout.splitlines()
    monkeypatch.setenv("COLUMNS", "120")
    (wide,) = call("reports").stdout.splitlines()

    when = f"{row['created_at'][:10]} {row['created_at'][11:16]}Z"
    counts = f"kept {row['kept']} of {row['fetched']}"
    assert row["about"] == "the AI voice recorder"
    assert row["fetched"] >= row["kept"] == row["total_survived"] > 0
    assert wide.split("  ")[:2] == [row["id"][:8], when]
    assert counts in wide
    assert wide.endswith("(sample) plaud.ai - the AI voice recorder")
    assert len(narrow) == 3
    assert max(map(len, narrow)) <= 40


def test_a_report_is_exported(tmp_path: Path) -> None:
    """To stdout or a new file; what is made up has no address."""
    answer = json.loads(call("analyze", "plaud.ai", "--depth", "quick", "--format", "json").stdout)
    file = tmp_path / "page.html"
    written = call("reports", "export", answer["id"], "--format", "html", "--output", str(file))
    again = call("reports", "export", answer["id"], "--output", str(file))
    table = call("reports", "export", answer["id"], "--format", "csv").stdout

    assert written.stdout == ""
    assert file.read_text("utf-8").startswith("<!doctype html>")
    assert isinstance(again.exception, UsageError)
    assert table.startswith("\ufeffrank,key,")
    assert {row["url"] for row in csv.DictReader(table.splitlines())} >= {"sample"}


@pytest.mark.parametrize(
    ("display", "opens"),
    [
        ({"DISPLAY": ":7"}, True),
        ({}, True),
        ({"SSH_CONNECTION": "there"}, False),
        ({"SSH_TTY": "there", "WAYLAND_DISPLAY": "wayland-0"}, True),
    ],
)
def test_a_page_is_opened_where_somebody_sees_it(
    tmp_path: Path, database: Path, display: dict[str, str], opens: bool
) -> None:
    """By the browser that the environment names; its path is printed in any case."""
    answer = json.loads(call("analyze", "hi", "--format", "json").stdout)
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" >> "{tmp_path / "opened"}"\n')
    browser.chmod(0o755)
    env = {
        "LISTENPOST_DATABASE_URL": f"sqlite:///{database}", "BROWSER": f"{browser} %s",
        "TMPDIR": str(tmp_path), **display,
    }  # fmt: skip
    ended = process("reports", "open", answer["id"][:8], env=env)

    page = Path(ended.out.strip())
    assert page.read_text("utf-8").startswith("<!doctype html>")
    assert (tmp_path / "opened").exists() is opens
    assert ("no display here" in ended.err) is not opens
    if opens:
        assert (tmp_path / "opened").read_text().strip() == page.as_uri()


def test_what_is_deleted_is_gone() -> None:
    """By its whole id, which the beginning of it is answered with; what never was cannot be shown or deleted."""
    answer = json.loads(call("analyze", "hi", "--format", "json").stdout)

    short = call("reports", "delete", answer["id"][:-1]).exception
    assert isinstance(short, UsageError)
    assert f"`listenpost reports delete {answer['id']}` (“hi”)" in str(short)
    assert call("reports", "show", answer["id"][:8]).exit_code == 0
    assert call("reports", "delete", answer["id"]).exit_code == 0
    for words in (("show", answer["id"]), ("delete", answer["id"]), ("show", "none")):
        assert isinstance(call("reports", *words).exception, NotFound)


def test_an_analysis_without_a_report_says_so(database: Path) -> None:
    """One that failed is listed, and has a reason instead of a report."""
    answer = json.loads(call("analyze", "hi", "--format", "json").stdout)
    with closing(sqlite3.connect(database)) as other:
        other.execute("UPDATE analyses SET state = 'failed', reason = 'x', body = NULL")
        other.execute("UPDATE analyses SET summary = NULL")
        other.commit()

    assert "failed" in call("reports").stdout
    assert "no report: x" in str(call("reports", "show", answer["id"]).exception)


def test_a_broken_store_fails_no_answer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One warning on stderr, the answer and its exit code as ever."""
    for url in (f"sqlite:///{tmp_path / 'no' / 'such' / 'file.db'}", "nonsense"):
        monkeypatch.setenv("LISTENPOST_DATABASE_URL", url)
        result = call("analyze", "hi", "--format", "json")

        assert result.exit_code == 3
        assert json.loads(result.stdout)["decision"] == "clarify"
        assert result.stderr.count("the answer is not kept") == 1
        assert isinstance(call("reports").exception, ListenpostError)
