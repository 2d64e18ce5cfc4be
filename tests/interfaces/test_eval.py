"""`listenpost eval` from its words to its figures, with the real clients."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import httpx
import pytest

from api.core.prompts import PromptName, packaged
from api.errors import ModelError, UsageError
from api.sandbox.server import Sandbox
from tests.interfaces.evaluation_command import ROWS, evaluate, figures


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    """A small file of labelled queries."""
    file = tmp_path / "labels.jsonl"
    file.write_text("\n".join(json.dumps(row) for row in ROWS), "utf-8")
    return file


def test_the_json_has_the_promised_shape(labels: Path) -> None:
    """Figures over all, by family and by source, from the local judge unless told otherwise."""
    shown = figures(labels)

    wanted = "n precision recall f1 balanced_accuracy mcc yield_mae ece ms_per_10"
    assert set(wanted.split()) <= set(shown["overall"])
    assert shown["judge"].startswith("local")
    assert (shown["overall"]["n"], shown["overall"]["degraded"]) == (6, 0)
    assert (set(shown["families"]), set(shown["sources"])) == (
        {"brand", "clock"},
        {"reddit", "youtube"},
    )
    assert shown["calibration"]
    assert shown["grades"]["n"] == 4


def test_a_second_run_prints_the_same_figures(labels: Path) -> None:
    """Nothing but the time it took may differ."""
    first, second = figures(labels), figures(labels)
    for shown in (first, second):
        shown["overall"].pop("ms_per_10")

    assert first == second


def test_a_line_ends_where_json_says_so(tmp_path: Path) -> None:
    """A mark of byte order is no text, and a separator of paragraphs in a string ends no line."""
    odd = json.loads(json.dumps(ROWS))
    odd[0]["items"][0]["body"] = "no heat\u2028none\x85at all"
    file = tmp_path / "odd.jsonl"
    rows = "\r\n".join(json.dumps(row, ensure_ascii=False) for row in odd)
    file.write_bytes(rows.encode("utf-8-sig"))

    assert figures(file, "--judge", "keyword")["overall"]["n"] == 6


@pytest.mark.parametrize(("judge", "kept"), [("keyword", 4), ("names", 4), ("keep_all", 6), ("bm25", None)])
def test_baselines_come_with_it(labels: Path, judge: str, kept: int | None) -> None:
    """By name, with their own verdicts."""
    shown = figures(labels, "--judge", judge)

    assert shown["judge"] == judge
    assert kept in {None, shown["overall"]["kept"]}
    assert shown["overall"]["ece"] is None


def test_the_table_is_for_people(labels: Path) -> None:
    """Slices, kinds and cost in words; Markdown has the same rows."""
    text = evaluate(labels, "--judge", "keyword").stdout
    markdown = evaluate(labels, "--judge", "keyword", "--format", "markdown").stdout

    assert text.startswith("keyword: 6 items, 2 queries, pages of 25")
    for part in ("overall", "family brand", "mention true", "kind bot: kept 1 of 1 (100.0 %)"):
        assert part in text
        assert part in markdown
    assert "| overall | 6 |" in markdown


def test_the_whole_paid_path_runs_without_a_key(labels: Path, tmp_path: Path) -> None:
    """The real client asks the sandbox's model; a second run is served from the cache."""
    result = evaluate(labels, "--judge", "openai", "--cache", tmp_path / "kept")
    (kept,) = (tmp_path / "kept").iterdir()
    written = kept.read_bytes()
    again = evaluate(labels, "--judge", "openai", "--cache", tmp_path / "kept")

    assert result.exit_code == again.exit_code == 0
    assert "the offline sandbox answers" in result.stderr
    assert result.stdout.startswith("sample stand-in: 6 items")
    assert result.stdout == again.stdout
    assert len(written.splitlines()) == 2
    assert kept.read_bytes() == written


def test_a_grader_is_evaluated_on_grades(labels: Path) -> None:
    """Its own scores are ranked, under the model's name that was asked for."""
    shown = figures(labels, "--judge", "grader", "--model", "gpt-4o")

    assert shown["judge"] == "grades:sample stand-in"
    assert shown["grades"]["n"] == 4
    assert set(shown["grades"]) >= {"spearman", "quadratic_kappa", "ndcg10"}
    assert shown["overall"]["tokens"] > 0


def test_another_server_is_named(labels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that is not there degrades every page, so that there is no result."""
    monkeypatch.setenv("LISTENPOST_MODE", "live")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-x")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    result = evaluate(labels, "--judge", "openai")

    assert isinstance(result.exception, ModelError)
    assert result.exception.reason == "unreachable"


@pytest.mark.parametrize(
    ("judge", "endpoint", "name"),
    [("openai", "judge", "relevance"), ("grader", "grades", "grades")],
)
def test_a_prompt_is_measured_before_it_is_in_production(
    labels: Path, tmp_path: Path, judge: str, endpoint: str, name: PromptName,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """That of the label is asked by, and answers to other words are not taken for its own."""
    wanted = ("--judge", judge, "--cache", tmp_path / "kept")
    with Sandbox.start() as sandbox:
        for variable, value in sandbox.environment.items():
            monkeypatch.setenv(variable, value)
        prompt = packaged(name)
        body = {"prompt": f"Be strict. {prompt.text}", "name": prompt.title}
        url, keys = f"{sandbox.url}/api/public/v2/prompts", ("pk", "sk")
        httpx.post(url, json={**body, "labels": ["candidate"]}, auth=keys).raise_for_status()
        monkeypatch.setenv("LISTENPOST_PROMPT_LABEL", "candidate")
        for prompts in ("files", "langfuse", "langfuse"):
            monkeypatch.setenv("LISTENPOST_PROMPTS", prompts)
            assert evaluate(labels, *wanted).exit_code == 0
        systems = [entry.body["messages"][0]["content"] for entry in sandbox.requests("openai", endpoint)]

    assert [system.startswith("Be strict. ") for system in systems] == [False, False, True, True]


@pytest.mark.parametrize("judge", ["openai", "grader"])
def test_live_without_a_key_is_refused(labels: Path, judge: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever insists on the real server needs a key."""
    monkeypatch.setenv("LISTENPOST_MODE", "live")
    result = evaluate(labels, "--judge", judge)

    assert isinstance(result.exception, UsageError)
    assert "OPENAI_API_KEY" in str(result.exception)


def test_two_results_are_compared(labels: Path, tmp_path: Path) -> None:
    """A result written as JSON is subtracted, query by query."""
    before = tmp_path / "before.json"
    before.write_text(evaluate(labels, "--judge", "keep_all", "--format", "json").stdout)
    text = evaluate(labels, "--judge", "keyword", "--compare", before).stdout
    shown = figures(labels, "--judge", "keyword", "--compare", before)
    recorded = evaluate(before, "--compare", before, "--langfuse", "gate").exception

    assert "no `--langfuse`" in str(recorded), "nobody is asked, so there is nothing to record"
    assert "keyword minus keep_all, 2 queries in both" in text
    assert shown["comparison"]["overall"]["mcc"]["difference"] > 0
    assert shown["comparison"]["overall"]["recall"]["difference"] == 0


def test_the_calibration_is_drawn(labels: Path, tmp_path: Path) -> None:
    """Well-formed SVG with a mark per bin; an existing file is left alone."""
    plot = tmp_path / "plot.svg"
    assert evaluate(labels, "--plot", plot).exit_code == 0
    svg = ElementTree.parse(plot).getroot()
    bins = figures(labels)["calibration"]

    assert svg.tag.endswith("svg")
    assert len(svg.findall(".//{*}circle")) == len(bins)
    assert isinstance(evaluate(labels, "--plot", plot).exception, UsageError)


def test_there_is_nothing_to_draw_without_probabilities(labels: Path, tmp_path: Path) -> None:
    """The figures are printed all the same, and no empty plot is left behind."""
    result = evaluate(labels, "--judge", "keyword", "--plot", tmp_path / "plot.svg")

    assert "gives no probabilities" in str(result.exception)
    assert result.stdout.startswith("keyword")
    assert not (tmp_path / "plot.svg").exists()


def test_a_plot_that_cannot_be_written_is_named(labels: Path, tmp_path: Path) -> None:
    """Before anything is measured."""
    result = evaluate(labels, "--plot", tmp_path / "no" / "plot.svg")

    assert isinstance(result.exception, UsageError)
    assert "plot.svg` cannot be written" in str(result.exception)
    assert not result.stdout


def test_the_sample_corpus_is_a_labelled_set() -> None:
    """Over 300 posts of every source by product; Amazon's as tiles, without a body."""
    shown = figures("--corpus", "--judge", "keyword")
    products = set(shown["families"])

    assert shown["overall"]["n"] >= 300
    assert len(products) >= 10
    assert set(shown["sources"]) == {"amazon", "reddit", "youtube"}
    assert shown["overall"]["pages"] > len(products)


def test_pure_pages_and_small_pages(labels: Path) -> None:
    """Splitting by label doubles the pages; the size of a call does not change what is counted."""
    pure = figures(labels, "--pure", "--judge", "keyword", "--page", "1")

    assert (pure["overall"]["pages"], pure["overall"]["n"], pure["page"]) == (4, 6, 1)


def test_free_answers_are_not_kept(labels: Path, tmp_path: Path) -> None:
    """The folder is not even made, and that is said."""
    result = evaluate(labels, "--judge", "keyword", "--cache", tmp_path / "kept")

    assert "its answers are not kept" in result.stderr
    assert not (tmp_path / "kept").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "nothing to evaluate on"),
        (["absent.jsonl"], "`absent.jsonl` cannot be read"),
        (["bad.jsonl"], "`bad.jsonl` line 1: `query`"),
        (["latin.jsonl"], "`latin.jsonl` is not UTF-8 text"),
        (["labels.jsonl", "--model", "x"], "`--model` goes with"),
        (["labels.jsonl", "--compare", "bad.jsonl"], "`bad.jsonl` is no result"),
        (["labels.jsonl", "--compare", "list.json"], "`list.json` is no result"),
        (["labels.jsonl", "--compare", "labels.jsonl"], "`labels.jsonl` is no result"),
        (["labels.jsonl", "./labels.jsonl"], "`labels.jsonl` is named twice"),
    ],
)
def test_what_is_wrong_is_named(labels: Path, tmp_path: Path, words: list[str], said: str) -> None:
    """One line that holds the thing and the remedy."""
    (tmp_path / "bad.jsonl").write_text("{}")
    (tmp_path / "list.json").write_text("[]")
    (tmp_path / "latin.jsonl").write_bytes("é".encode("latin-1"))
    result = evaluate(*words)

    assert isinstance(result.exception, UsageError)
    assert any(part in str(result.exception) for part in said.split("|"))


@pytest.mark.parametrize(("judge", "name"), [("local", "local-support-1"), ("openai", "sample stand-in")])
def test_a_support_check_is_measured(tmp_path: Path, judge: str, name: str) -> None:
    """On labelled claims; the sandbox's model answers like the keyless check."""
    claims = [("Owners praise the battery.", True), ("Owners complain about it.", False)]
    rows = [
        {"query": "ember mug", "sentence": sentence, "passage": "The battery is excellent.",
         "item": "Ember mug", "supported": supported}
        for sentence, supported in claims
    ]  # fmt: skip
    file = tmp_path / "claims.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    shown = figures("--support", file, "--judge", judge)
    printed = evaluate("--support", file, "--judge", judge)

    assert (shown["checker"], shown["precision"], shown["let_by"]) == (name, 1.0, 0.0)
    assert printed.stdout.startswith(f"{name}: 2 claims, 1 supported, 0 without an answer\nprecision 1.00")
    assert ("Sample model" in printed.stderr) is (judge == "openai"), "no model of that name is asked"


def test_who_checks_no_support_is_told_so(tmp_path: Path) -> None:
    """Other judges, an empty file and none at all."""
    file = tmp_path / "claims.jsonl"
    file.write_text("", "utf-8")

    assert isinstance(evaluate("--support", file).exception, UsageError)
    assert isinstance(evaluate("--support", tmp_path / "none").exception, UsageError)
    file.write_text(json.dumps({"query": "q", "sentence": "s", "passage": "p", "supported": True}), "utf-8")
    assert isinstance(evaluate("--support", file, "--judge", "bm25").exception, UsageError)


def test_the_archive_is_measured_beside_plain_searches(tmp_path: Path) -> None:
    """Four searches over the sample data: in all, by part and by kind."""
    file = tmp_path / "questions.jsonl"
    rows = [
        {"id": "a", "kind": "exact phrase", "part": "dev",
         "question": "customs form, purpose of the hinge",
         "relevant": [{"key": "lemmy:https://lemmy.example/post/4444932"}]},
        {"id": "b", "kind": "nothing there", "part": "test", "relevant": [],
         "question": "Does the Roomba j9 drive round a litter box?"},
    ]  # fmt: skip
    file.write_text("\n".join(map(json.dumps, rows)), "utf-8")

    result = evaluate("--retrieval", file, "--format", "markdown")

    assert result.exit_code == 0, result.output
    lines = [line.split(" | ") for line in result.stdout.splitlines() if line.startswith("| ")]
    shown = {(line[0].strip("| "), line[1]): line[2:] for line in lines}
    assert {search for _, search in shown} > {"archive", "words", "vectors", "hybrid"}
    assert shown["kind exact phrase", "archive"][:2] == ["1", "1.00"]
    assert shown["part test", "archive"][7] == "1.00"
    assert shown["part test", "words"][7] == "0.000"
    assert "a search takes, by the median: archive " in result.stdout
    searches = json.loads(evaluate("--retrieval", file, "--format", "json").stdout)
    names = [search["search"] for search in searches]
    assert names == ["archive", "archive, answers known", "words", "vectors", "hybrid"]
    cited = searches[0]["questions"]["a"]
    assert cited[0] == ["lemmy:https://lemmy.example/post/4444932", None]


def test_searches_are_measured_alone(tmp_path: Path) -> None:
    """No judge, no comparison and no dataset goes with them; a line that is none is named."""
    file = tmp_path / "questions.jsonl"
    file.write_text("{}", "utf-8")

    for words in (["--corpus"], ["more.jsonl"], ["--langfuse", "gate"]):
        assert isinstance(evaluate(*words, "--retrieval", file).exception, UsageError)
    refused = evaluate("--retrieval", file).exception
    assert isinstance(refused, UsageError)
    assert "line 1: `id`" in str(refused)
