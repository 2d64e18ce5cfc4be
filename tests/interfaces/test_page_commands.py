"""The commands that the README and the pages show, run as they stand there, on sample data."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from api.sandbox.server import Sandbox
from tests.interfaces.command import COMMAND, Ended, Here, bare
from tests.snippets import ROOT, blocks, cells, commands, run

MINE = '{"title": "Plaud Note", "body": "Recorded my meeting."}\n'


@pytest.fixture
def run_here(here: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Here:
    """The command in an empty folder with a person's file, in the sandbox."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LISTENPOST_MODE", "sandbox")
    monkeypatch.setenv("LISTENPOST_DATABASE_URL", f"sqlite:///{tmp_path / 'listenpost.db'}")
    (tmp_path / "mine.jsonl").write_text(MINE, "utf-8")
    (tmp_path / "reviews.csv").write_text("title,body\nMug,It stays warm for hours.\n", "utf-8")
    survey = "Verbatim,Stars\nThe Plaud Note lasts a week.,5\nThe Plaud Note lost my call.,1\n"
    (tmp_path / "survey.csv").write_text(survey, "utf-8")
    return here


PAGES = ["README.md", "docs/quickstart.md", "docs/compare.md", "docs/watches.md"]


@pytest.mark.parametrize("page", PAGES)
def test_each_command_answers(run_here: Here, page: str) -> None:
    """With a report, or that there is too little for one."""
    shown = [words for words in commands(page) if words[0] != "listen"]  # which never ends, see `test_as_it_happens`
    ended = {" ".join(words): run_here(*words) for words in shown}

    assert shown
    assert {words: done.err for words, done in ended.items() if done.code not in {0, 3}} == {}
    assert all(done.out for done in ended.values())


def test_each_way_to_talk_answers(run_here: Here) -> None:
    """The ids of the page stand for a conversation and a report that are there."""
    report = run_here("analyze", "Ember mug", "--format", "json").json["id"]
    session = ""
    ended: list[Ended] = []
    for words in commands("docs/chat.md"):
        ids = {"--session": session, "--report": report}
        given = [ids.get(before, word) for before, word in zip(["", *words], words, strict=False)]
        ended.append(run_here(*given, stdin=b"Oura Ring 4\n"))
        known = re.search(r"^session (\w+):", ended[-1].err, re.M)
        session = known[1] if known else session

    assert [done.code for done in ended] == [0] * 4
    assert all("[E" in done.out for done in ended)


def test_the_store_is_opened_as_its_page_says(run_here: Here, tmp_path: Path) -> None:
    """Its listing holds what the command line stored."""
    (code,) = cells("docs/store.md")
    run_here("analyze", "plaud.ai")

    out = run([code.replace("reports.db", str(tmp_path / "listenpost.db")), "print(newest)"])

    assert "plaud.ai" in out


@pytest.mark.nightly
def test_the_judge_is_measured_as_its_page_says(run_here: Here, tmp_path: Path) -> None:
    """Each line in its turn, its `>` too; a key leads to the sandbox, as do Langfuse's."""
    items = [
        {"title": "My Ember mug died", "relevant": True},
        {"title": "Bread for beginners", "relevant": False},
    ]
    queries = [{"query": f"ember mug {n}", "source_hint": "reddit", "items": items} for n in range(20)]
    (tmp_path / "mine.jsonl").write_text("\n".join(map(json.dumps, queries)), "utf-8")
    questions = (ROOT / "evaluation" / "retrieval" / "questions.jsonl").read_text("utf-8").splitlines()
    (tmp_path / "evaluation" / "retrieval").mkdir(parents=True)
    (tmp_path / "evaluation" / "retrieval" / "questions.jsonl").write_text("\n".join(questions[::20]), "utf-8")
    ended: list[Ended] = []
    with Sandbox.start() as sandbox:
        for words in commands("docs/evaluation.md"):
            given, file = (words[:-2], words[-1]) if ">" in words else (words, "shown")
            ended.append(run_here(*given, env=sandbox.environment))
            names = ("before.json", "after.json") if file == "local.json" else ()
            for name in (file, *names):  # two of the page's results are whatever was kept before
                (tmp_path / name).write_bytes(ended[-1].raw)
        experiments = sandbox.requests("langfuse", "dataset_items")

    assert [done.err for done in ended if done.code] == []
    assert len(ended) == 7
    assert (tmp_path / "kept").is_dir()
    assert len([entry for entry in experiments if entry.method == "POST"]) > 0


def test_own_items_are_written_and_asked_about_as_the_quickstart_says(tmp_path: Path) -> None:
    """Its lines of shell, in a folder where the command was installed."""
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "bin").symlink_to(Path(COMMAND).parent)
    (block,) = (code for code in blocks("quickstart.md", "sh") if "mine.jsonl" in code)

    done = subprocess.run(["sh", "-ec", block], cwd=tmp_path, env=bare(), capture_output=True, text=True, timeout=120)

    assert done.returncode == 0, done.stderr
    assert len((tmp_path / "mine.jsonl").read_text("utf-8").splitlines()) == 2
    assert "[1] My Plaud Note - Your items" in done.stdout


def test_a_labelled_line_can_be_evaluated(run_here: Here, tmp_path: Path) -> None:
    """The one that the page on evaluation shows, on one line as its file has it."""
    page = (ROOT / "docs" / "evaluation.md").read_text("utf-8")
    (block,) = re.findall(r"^```json\n(.*?)^```", page, re.M | re.S)
    (tmp_path / "labels.jsonl").write_text(json.dumps(json.loads(block)), "utf-8")

    done = run_here("eval", "labels.jsonl", "--format", "json")

    assert done.code == 0, done.err
