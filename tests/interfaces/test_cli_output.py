"""Where the answer goes, and what `--dropped` and `--verbose` add to it."""

from __future__ import annotations

import json
import os
import re
import threading
from pathlib import Path

import pytest

from api.sandbox.server import Sandbox
from tests.interfaces.command import Here

QUICK = ("analyze", "plaud.ai", "--depth", "quick")
GRADED = re.compile(r"(reddit|youtube|amazon) (\d+)( \(.+?\))?: score ([1-5])/5 - (KEEP|DROP): \S.*")


@pytest.mark.parametrize(
    ("form", "start"),
    [
        ("text", "What"),
        ("markdown", "# "),
        ("json", '{\n "id"'),
        ("html", "<!doctype html>"),
        ("csv", "\ufeffrank,key,"),
    ],
)
def test_a_new_file_takes_the_answer(here: Here, form: str, start: str) -> None:
    """Stdout stays empty, and stderr names the file."""
    ended = here(*QUICK, "--format", form, "--output", "answer")

    written = Path("answer").read_text("utf-8")
    assert (ended.code, ended.out) == (0, "")
    *_, where, kept = ended.err.splitlines()
    assert where == "written to answer"
    assert kept.startswith("kept as ")
    assert written.startswith(start)
    assert written.endswith("\n")
    if form == "json":
        assert json.loads(written)["items"]


@pytest.mark.parametrize("kind", ["file", "folder", "dangling"])
def test_what_exists_is_never_overwritten(here: Here, upstream: Sandbox, kind: str) -> None:
    """It is refused before anything is asked, a link to nowhere too."""
    taken = Path("answer")
    if kind == "file":
        taken.write_text("mine")
    elif kind == "folder":
        taken.mkdir()
    else:
        taken.symlink_to("nowhere")

    analyzed = here(*QUICK, "--output", "answer")
    fetched = here("fetch", "reddit", "plaud.ai", "--output", "answer")

    assert (analyzed.code, fetched.code) == (2, 2)
    assert "`answer` exists and is never overwritten" in analyzed.err
    assert not upstream.log
    if kind == "file":
        assert taken.read_text() == "mine"
    assert not Path("nowhere").exists()


def test_a_dash_is_no_file(here: Here, upstream: Sandbox) -> None:
    """Who writes it means stdout, and is told how to get it."""
    fetched = here("fetch", "reddit", "plaud.ai", "--output", "-")

    assert fetched.code == 2
    assert "leave `--output` out" in fetched.err
    assert not upstream.log
    assert not Path("-").exists()


def test_a_file_that_appears_meanwhile_is_not_overwritten(here: Here, upstream: Sandbox) -> None:
    """Somebody else wrote it while the sources were asked: the answer is on stdout."""
    upstream.latency("reddit=1500ms")

    def write() -> None:
        while not upstream.requests("reddit"):  # the token's answer; the search's takes as long
            threading.Event().wait(0.02)
        Path("answer").write_text("theirs")

    threading.Thread(target=write, daemon=True).start()
    ended = here("fetch", "reddit", "plaud.ai", "--format", "json", "--output", "answer")

    assert (ended.code, ended.json["outcome"]) == (2, "ok")
    assert "`answer` cannot be written (File exists); the answer is on stdout" in ended.err
    assert Path("answer").read_text() == "theirs"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("plain/answer", "Not a directory"),
        ("missing/answer", "No such file or directory"),
        ("a" * 300, "File name too long"),
        pytest.param(
            "closed/answer", "Permission denied",
            marks=pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere"),
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_written_is_refused_before_anything_is_asked(
    here: Here, upstream: Sandbox, name: str, why: str
) -> None:
    """Nothing is spent for an answer that has no place."""
    Path("plain").write_text("")
    Path("closed").mkdir(mode=0o500)
    for words in (QUICK, ("fetch", "reddit", "plaud.ai"), (*QUICK, "--estimate")):
        ended = here(*words, "--output", name)
        assert (ended.code, ended.out) == (2, "")
        assert f"`{name}` cannot be written ({why}); nothing was asked" in ended.err
    assert not upstream.log


def test_a_refused_question_leaves_no_file(here: Here) -> None:
    """The look beforehand takes its file away again."""
    ended = here("fetch", "nowhere", "plaud.ai", "--output", "answer")

    assert ended.code == 2
    assert not Path("answer").exists()


@pytest.mark.parametrize("words", [QUICK, ("fetch", "youtube", "plaud.ai")])
def test_what_was_dropped_is_listed_when_wanted(here: Here, words: tuple[str, ...]) -> None:
    """In text and markdown; in JSON it is there anyway."""
    answer = here(*words, "--format", "json").json
    reasons = [one["reason"] for one in answer["dropped"] if one["dropped_by"] == "gate"]
    assert reasons

    for form, heading in (("text", "\nDropped\n-------\n"), ("markdown", "\n## Dropped\n")):
        plain = here(*words, "--format", form).out
        whole = here(*words, "--format", form, "--dropped").out
        assert heading not in plain
        assert heading in whole
        listed = " ".join(whole.partition(heading)[2].split())
        assert listed.count("not about it: ") == len(reasons)
        assert all(f"not about it: {reason}" in listed for reason in reasons)


def test_verbose_tells_every_grade_and_every_request(here: Here) -> None:
    """`reddit 1 (r/gadgets): score 4/5 - KEEP: why`, numbered by source; then the sandbox's log."""
    ended = here(*QUICK, "--verbose", "--format", "json")

    graded = [found for line in ended.err.splitlines() if (found := GRADED.fullmatch(line))]
    items = ended.json["items"]
    assert len(graded) >= len(items) > 3
    for source in ("reddit", "youtube", "amazon"):
        numbers = [int(found[2]) for found in graded if found[1] == source]
        assert numbers == list(range(1, len(numbers) + 1))
    told = {(found[1], (found[3] or " ()")[2:-1], int(found[4])) for found in graded}
    assert {(one["source"], one["place"] or "", one["score"]) for one in items} <= told
    assert "openai POST /v1/chat/completions -> 200" in ended.err
    assert "youtube GET /youtube/v3/search?part=snippet&q=plaud.ai" in ended.err
    assert "key=***" in ended.err


@pytest.mark.parametrize("cutoff", [1, 5])
def test_keep_and_drop_follow_the_depth_s_cutoff(here: Here, monkeypatch: pytest.MonkeyPatch, cutoff: int) -> None:
    """At the lowest cutoff everything is kept, at the highest only the best."""
    monkeypatch.setenv("LISTENPOST_QUICK_RELEVANCE_CUTOFF", str(cutoff))

    ended = here(*QUICK, "--verbose")

    graded = [found for line in ended.err.splitlines() if (found := GRADED.fullmatch(line))]
    assert any(int(found[4]) < 5 for found in graded)
    for found in graded:
        assert found[5] == ("KEEP" if int(found[4]) >= cutoff else "DROP")


def test_grades_that_nobody_gave_are_kept_whatever_the_cutoff(
    here: Here, monkeypatch: pytest.MonkeyPatch, upstream: Sandbox
) -> None:
    """An outage of the grader drops nothing, and the lines say so."""
    monkeypatch.setenv("LISTENPOST_QUICK_RELEVANCE_CUTOFF", "5")
    upstream.fault("openai.grades=500")

    ended = here(*QUICK, "--verbose", "--format", "json")

    graded = [found for line in ended.err.splitlines() if (found := GRADED.fullmatch(line))]
    assert graded
    assert {(found[4], found[5]) for found in graded} == {("3", "KEEP")}
    assert len(ended.json["items"]) == len(graded)
