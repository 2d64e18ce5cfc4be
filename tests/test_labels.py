"""The committed labels: complete, joined to their records, free of recorded text, as quoted."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from api.sandbox import corpus
from evaluate_recorded import joined
from label_agreement import SUPPORT, Part, chat_lines, part_of, parts, polarity_lines, support_lines
from labelling_sheets import PER_PRODUCT, corpus_sheet, recorded_sheet
from recorded_texts import LABELS, MISSING, SETS, UPSTREAM, records, rows
from tests.snippets import commands

RECORDED = {
    "youtube/portable_charger_search_2026.json": 5,
    "amazon/search_portable_charger_2026_excerpt.html": 9,
    "amazon/product_portable_charger_2026_excerpt.html": 8,
    "youtube/corpus_phones_videos_2025.json": 14,
    "youtube/corpus_phones_comments_2025.json": 168,
    "youtube/portable_charger_comments_2026.json": 10,
    "reddit/search_rss_2026.xml": 10,
}
recordings = pytest.mark.skipif(not UPSTREAM.is_dir(), reason=MISSING)
NAME = re.compile(
    r"\b(?:viewer|channel|shopper|redditor)[-_][0-9a-f]{8}\b|\bB0[A-Z0-9]{8}\b|\bt3_\w+"
    r'|(?<="id": ")[^"]{6,}|(?<="cid": ")[^"]+|(?<="videoId": ")[^"]+'
)


def words(text: str) -> list[str]:
    """The words of a text, in lower case."""
    return re.findall(r"\w+", text.lower())


def runs(text: str, length: int) -> set[str]:
    """Every run of so many words."""
    found = words(text)
    return {" ".join(found[i : i + length]) for i in range(len(found) - length + 1)}


@pytest.mark.parametrize("name", ["recorded.jsonl", "recorded_second.jsonl"])
def test_each_recorded_text_has_one_label(name: str) -> None:
    """224 lines: every position of every set once, in a closed set of fields."""
    lines = rows(LABELS / name)

    assert len(lines) == 224
    assert Counter(line["file"] for line in lines) == RECORDED
    for file, count in RECORDED.items():
        positions = [line["position"] for line in lines if line["file"] == file]
        assert positions == list(range(count))
    assert {type(line["relevant"]) for line in lines} == {bool}


def test_each_first_label_has_a_query_and_a_reason() -> None:
    """The query is that of its set, and both labels occur in every set."""
    queries = {recorded.file: recorded.query for recorded in SETS}
    found: dict[str, set[bool]] = {file: set() for file in RECORDED}
    for line in rows(LABELS / "recorded.jsonl"):
        assert set(line) == {"file", "position", "query", "relevant", "reason"}
        assert line["query"] == queries[line["file"]]
        assert line["reason"].strip()
        found[line["file"]].add(line["relevant"])

    assert all(labels == {True, False} for labels in found.values())


@recordings
def test_every_label_joins_a_record() -> None:
    """The join gives one line per set, with every text and its label."""
    lines = list(joined())

    counts = [len(line["items"]) for line in lines if isinstance(line["items"], list)]
    assert counts == [RECORDED[recorded.file] for recorded in SETS]
    assert all(record.title for recorded in SETS for record in records(recorded))
    assert len({(record.title, record.body) for s in SETS for record in records(s)}) >= 220


@recordings
def test_no_recorded_text_is_committed() -> None:
    """No four words in a row, no id, name or address of a recording stands in a label file."""
    files = {path.name: path.read_text("utf-8") for path in LABELS.glob("*.jsonl")}
    said = [runs(line["reason"], 4) for line in rows(LABELS / "recorded.jsonl")]
    ours = set().union(*said)
    assert len(ours) > 300
    for recorded in SETS:
        raw = (UPSTREAM / recorded.file).read_text("utf-8")
        names = set(NAME.findall(raw))
        assert names, recorded.file
        for file, text in files.items():
            assert [name for name in names if name in text] == [], file
            assert "http" not in text, file
        for record in records(recorded):
            assert runs(f"{record.title}\n{record.body}", 4) & ours == set(), record.position


def test_the_agreement_is_the_one_quoted(root: Path) -> None:
    """Kappa and disagreements of both parts, computed again, are those of docs/evaluation.md."""
    page = (root / "docs" / "evaluation.md").read_text("utf-8")
    quoted = re.findall(r"^\| (recorded|corpus) \| (.+) \|$", page, re.MULTILINE)

    assert quoted == [(part.name, figures(part)) for part in parts()]


def test_the_figures_of_the_support_set_are_the_ones_quoted(root: Path) -> None:
    """Counted again they are those of docs/keyless.md, which says which aims are met."""
    lines = [*support_lines(), *polarity_lines(), *chat_lines()]
    page = (root / "docs" / "keyless.md").read_text("utf-8")
    report, _, leans, *_, test, _, everyday, _, _, implied, _, chat = lines[2:]
    passages, sentences = "**Report: met.**", "no sentence without one"
    missed, both = "**Chat: missed.**", "**Leans: met.**"

    assert "\n".join(lines) in page
    assert (passages in page) == (share(report) >= 0.95)
    assert (sentences in page) == ("; 0 of 38 sentences" in report)
    assert (missed in page) == (share(chat) < 0.95)
    assert (both in page) == (min(share(test), share(leans), share(implied)) >= 0.9)
    assert ("**Everyday sentences: missed.**" in page) == (share(everyday) < 0.93)


@pytest.mark.parametrize(("name", "count"), [("triples.jsonl", 205), ("polarity.jsonl", 307)])
def test_each_line_of_the_support_set_has_two_readings(name: str, count: int) -> None:
    """A lean from each reader, and of a passage whether it carries its sentence."""
    lines = rows(SUPPORT / name)

    assert len(lines) == count
    for line in lines:
        for reading in (line["first"], line["second"]):
            if name == "triples.jsonl":
                assert set(reading) == {"supported", "lean"}
                assert type(reading["supported"]) is bool
            assert (reading["lean"] if name == "triples.jsonl" else reading) in (-1, 0, 1)


def test_each_everyday_sentence_was_read_twice() -> None:
    """By who wrote it and by another, sixty in each of four languages."""
    lines = rows(SUPPORT / "polarity_everyday.jsonl")

    assert Counter(line["language"] for line in lines) == dict.fromkeys(("de", "en", "es", "fr"), 60)
    assert {line[by] for line in lines for by in ("lean", "second")} == {-1, 0, 1}
    assert len({line["text"] for line in lines}) == len(lines)


def test_each_sentence_that_implies_its_feeling_was_read_twice() -> None:
    """Alike, since what differed was left out; a third of each kind, in two halves."""
    lines = rows(SUPPORT / "polarity_implied.jsonl")
    counts = Counter(line["lean"] for line in lines)

    assert len({line["text"] for line in lines}) == len(lines) == 243
    assert all(line["lean"] == line["second"] for line in lines)
    assert counts == {-1: 80, 0: 81, 1: 82}
    assert Counter(part_of(line["text"]) for line in lines) == {"dev": 123, "test": 120}


def test_each_passage_of_the_chat_was_read_twice() -> None:
    """With the question that showed it, each under one theme once."""
    lines = rows(SUPPORT / "chat.jsonl")
    fields = {*"query about question product theme passage item first second".split()}

    assert len({(row["product"], row["theme"], row["passage"]) for row in lines}) == len(lines)
    assert {frozenset(row) for row in lines} == {frozenset(fields)}
    assert {type(row[by]) for row in lines for by in ("first", "second")} == {bool}


def share(line: str) -> float:
    """The first share in a printed line."""
    return float(re.findall(r"\((\d\.\d+)", line)[0])


def figures(part: Part) -> str:
    """The cells of a part in the table."""
    shares = (len(part.first), sum(part.first), sum(part.second), part.disagreements)
    return " | ".join([*map(str, shares), f"{part.kappa:.2f}"])


def test_the_second_reader_saw_every_product() -> None:
    """The committed second labels are those of the sheet, in its order."""
    second = [(line["slug"], line["n"]) for line in rows(LABELS / "corpus_second.jsonl")]

    assert second == [(slug, number) for slug, number, _ in corpus_sheet()]
    assert len(second) >= 320
    assert set(Counter(slug for slug, _ in second).values()) == {PER_PRODUCT}
    assert {slug for slug, _ in second} == {path.stem for path in corpus_files()}


def corpus_files() -> list[Path]:
    """The files of the sample corpus."""
    return sorted((Path(corpus.__file__).parent / "data" / "posts").glob("*.jsonl"))


def test_the_corpus_sheet_is_blind() -> None:
    """It holds query, context and at most what the gate sees."""
    sheet = list(corpus_sheet())
    assert sheet
    for _, _, row in sheet:
        assert set(row) == {"query", "about", "text"}
        title, _, body = str(row["text"]).partition("\n")
        assert title
        assert len(body) <= 200


@recordings
def test_the_recorded_sheet_is_blind() -> None:
    """It holds query, context and text, nothing of where a text lies."""
    sheet = recorded_sheet()

    assert len(sheet) == 224
    assert all(set(row) == {"query", "about", "text"} for row in sheet)


@recordings
def test_a_judge_is_measured_on_the_recorded_texts(root: Path) -> None:
    """The script joins, and hands the options to `listenpost eval`."""
    done = script(root, "--judge", "keep_all", "--format", "json")

    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)
    assert shown["overall"]["n"] == 224
    assert shown["overall"]["recall"] == 1
    assert set(shown["families"]) == {recorded.family for recorded in SETS}


@recordings
def test_the_scripts_of_the_page_run(root: Path, tmp_path: Path) -> None:
    """As `docs/evaluation.md` calls them; the sheets go where they do no harm."""
    printed = {}
    for name, *words in commands("docs/evaluation.md", "python"):
        given = [str(tmp_path / "sheets") if word == "../sheets" else word for word in words]
        done = script(root, *given, name=name)
        assert done.returncode == 0, done.stderr
        printed[Path(name).stem] = done.stdout

    assert list(printed) == ["labelling_sheets", "label_agreement", "evaluate_recorded"]
    assert {path.name for path in (tmp_path / "sheets").iterdir()} == {
        "guideline.md", "recorded_sheet.jsonl", "corpus_sheet.jsonl",
    }  # fmt: skip
    assert printed["label_agreement"].splitlines()[:2] == list(map(str, parts()))
    assert "224" in printed["evaluate_recorded"]


def test_without_recordings_the_remedy_is_named(root: Path, tmp_path: Path) -> None:
    """One line that says where it looked and what to set, and exit code 2."""
    done = script(root, data=tmp_path)

    assert done.returncode == 2
    assert f"no recordings in {tmp_path / 'upstream'}; set LISTENPOST_TEST_DATA" in done.stderr
    assert done.stdout == ""


def test_sheets_are_never_written_into_the_checkout(root: Path) -> None:
    """Recorded texts stay outside."""
    done = script(root, str(root / "evaluation"), name="scripts/training/labelling_sheets.py")

    assert done.returncode == 2
    assert "inside the checkout" in done.stderr
    assert not (root / "evaluation" / "guideline.md").exists()


def script(
    root: Path,
    *arguments: str,
    name: str = "scripts/training/evaluate_recorded.py",
    data: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """A script, with the recordings of these tests or of `data`."""
    environment = os.environ | {"LISTENPOST_TEST_DATA": str(data or UPSTREAM.parent)}
    return subprocess.run(
        [sys.executable, root / name, *arguments],
        capture_output=True,
        text=True,
        env=environment,
        timeout=60,
        check=False,
    )
