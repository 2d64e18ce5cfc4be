"""`listenpost eval --langfuse`, and two results compared: words, exit codes and what is sent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from api.core.prompts import packaged
from api.errors import ConfigurationError, UsageError
from api.sandbox.server import Sandbox
from tests.interfaces.evaluation_command import ROWS, evaluate, figures
from tests.langfuse.tracing.trees import received


@pytest.fixture
def sandbox(monkeypatch: pytest.MonkeyPatch) -> Iterator[Sandbox]:
    """A sandbox that the environment points at."""
    with Sandbox.start([]) as running:
        for name, value in running.environment.items():
            monkeypatch.setenv(name, value)
        yield running


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    """A small file of labelled queries."""
    file = tmp_path / "labels.jsonl"
    file.write_text("\n".join(map(json.dumps, ROWS)), "utf-8")
    return file


def posts(sandbox: Sandbox, endpoint: str) -> list[Any]:
    """The bodies of what was written."""
    entries = sandbox.requests("langfuse", endpoint)
    return [entry.body for entry in entries if entry.method == "POST"]


def run_scores(sandbox: Sandbox) -> dict[str, float]:
    """The scores of the experiments as a whole."""
    return {
        score["name"]: score["value"] for body in posts(sandbox, "scores") for score in body if "datasetRunId" in score
    }


@pytest.mark.parametrize("judge", ["local", "keyword", "openai", "grader"])
def test_any_judge_is_an_experiment(sandbox: Sandbox, labels: Path, judge: str) -> None:
    """The figures are those that are printed; where it is seen is said."""
    result = evaluate(labels, "--judge", judge, "--langfuse", "gate", "--format", "json")
    shown = json.loads(result.stdout)

    assert result.exit_code == 0, result.output
    assert "2 items written, 0 as they were, 0 archived" in result.stderr
    assert f"{sandbox.url}/project/sandbox/experiments/results?baseline=" in result.stderr
    assert run_scores(sandbox)["eval_run_mcc"] == shown["overall"]["mcc"]
    assert run_scores(sandbox)["eval_run_unanswered"] == 0
    assert posts(sandbox, "traces")


def test_a_support_check_is_one_too(sandbox: Sandbox, tmp_path: Path) -> None:
    """With the labels of its claims."""
    file = tmp_path / "claims.jsonl"
    row = {"query": "mug", "sentence": "It is good.", "passage": "Good.", "supported": True}
    file.write_text(json.dumps(row), "utf-8")
    result = evaluate("--support", file, "--judge", "openai", "--langfuse", "support")

    assert result.exit_code == 0, result.output
    assert posts(sandbox, "dataset_items")[0]["expectedOutput"] == {"supported": [True]}
    assert run_scores(sandbox)["eval_run_unanswered"] == 0


def test_an_experiment_names_the_prompt_by_which_it_asked(
    sandbox: Sandbox, labels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The version, so that two experiments tell which prompt each of them measured."""
    prompt = packaged("relevance")
    body = {"name": prompt.title, "prompt": prompt.text, "labels": ["production"]}
    url, keys = f"{sandbox.url}/api/public/v2/prompts", ("pk", "sk")
    httpx.post(url, json=body, auth=keys).raise_for_status()
    monkeypatch.setenv("LISTENPOST_PROMPTS", "langfuse")
    evaluate(labels, "--judge", "openai", "--langfuse", "gate")

    sent = received(sandbox)
    version = "langfuse.observation.prompt.version"
    assert [span.attributes[version] for span in sent.named("relevance_filter")] == [1, 1]


def test_a_judge_that_fails_is_counted(sandbox: Sandbox, labels: Path) -> None:
    """The other items have their scores; the command says how many have none."""
    sandbox.fault("openai.judge=refusal@1x1")
    result = evaluate(labels, "--judge", "openai", "--langfuse", "gate", "--run", "r")
    scores = [score for body in posts(sandbox, "scores") for score in body]
    answered = sorted(score["value"] for score in scores if score["name"] == "eval_answered")

    assert result.exit_code == 0, result.output
    assert answered == [0, 1]
    assert run_scores(sandbox)["eval_run_unanswered"] in {2, 4}
    assert "items were not judged (refused)" in result.stderr


@pytest.mark.parametrize(
    ("fault", "code", "words"),
    [
        ("langfuse.datasets=500", 4, "failed (HTTP 500); run this again"),
        ("langfuse.dataset_items=503", 4, "failed (HTTP 503); run this again"),
        ("langfuse.projects=401", None, "refuses the keys"),
        ("langfuse.dataset_items=404html", None, "older than 4.59"),
    ],
)
def test_langfuse_that_fails_is_one_line_before_anything_is_judged(
    sandbox: Sandbox, labels: Path, fault: str, code: int | None, words: str
) -> None:
    """So nothing is paid for that would be lost."""
    sandbox.fault(fault)
    result = evaluate(labels, "--judge", "openai", "--langfuse", "gate")

    assert sandbox.requests("openai") == ()
    if code is None:
        assert isinstance(result.exception, ConfigurationError)
        assert words in str(result.exception)
    else:
        assert result.exit_code == code
        assert words in result.stderr


def test_answers_of_the_sandbox_go_to_no_project(
    sandbox: Sandbox, labels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model without a key is refused; a judge that needs none is not."""
    monkeypatch.setenv("LISTENPOST_MODE", "sandbox")
    result = evaluate(labels, "--judge", "openai", "--langfuse", "gate")

    assert isinstance(result.exception, UsageError)
    assert "belongs in no project" in str(result.exception)
    assert sandbox.requests("langfuse") == ()
    assert evaluate(labels, "--judge", "keyword", "--langfuse", "gate").exit_code == 0


def test_nothing_is_sent_without_the_option(sandbox: Sandbox, labels: Path) -> None:
    """Although there are keys."""
    assert evaluate(labels, "--judge", "openai").exit_code == 0
    assert sandbox.requests("langfuse") == ()


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Results of a good judge and one that keeps all, on thirty queries, and on one query."""
    rows = [{**ROWS[0], "query": f"ember mug {n}"} for n in range(30)]
    for name, count in (("many", 30), ("single", 1)):
        lines = "\n".join(map(json.dumps, rows[:count]))
        (tmp_path / f"{name}.jsonl").write_text(lines, "utf-8")
    for judge, file in (("local", "many"), ("keep_all", "many"), ("local", "single")):
        name = judge if file == "many" else "single"
        shown = evaluate(tmp_path / f"{file}.jsonl", "--judge", judge, "--format", "json").stdout
        (tmp_path / f"{name}.json").write_text(shown, "utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("before", "after", "code"), [("local", "keep_all", 1), ("keep_all", "local", 0),
                                  ("local", "local", 0)]
)  # fmt: skip
def test_a_regression_ends_with_one(results: Path, before: str, after: str, code: int) -> None:
    """A fall is said and blocks; a rise and no change do not; without a threshold nothing does."""
    words = ["--compare", results / f"{before}.json", results / f"{after}.json"]
    result = evaluate(*words, "--fail-below", "-0.03")

    assert result.exit_code == code, result.output
    assert "30 queries in both" in result.stdout
    assert ("regression: MCC -" in result.stderr) is (code == 1)
    assert evaluate(*words).exit_code == 0
    shown = json.loads(evaluate(*words, "--format", "json").stdout)
    assert shown["queries"] == 30


def test_what_is_measured_now_can_be_guarded_at_once(results: Path) -> None:
    """The earlier result is subtracted from it."""
    words = ["--compare", results / "local.json", "--fail-below", "-0.03"]

    assert evaluate(results / "many.jsonl", "--judge", "keep_all", *words).exit_code == 1
    assert evaluate(results / "many.jsonl", "--judge", "local", *words).exit_code == 0


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--compare", "single.json", "single.json", "--fail-below", "-0.03"], "no interval"),
        (["many.jsonl", "--fail-below", "-0.03"], "`--fail-below` goes with `--compare`"),
        (["many.jsonl", "--run", "r"], "`--run` goes with `--langfuse`"),
        (["many.jsonl", "--langfuse", "a|b"], "a dataset's name has"),
        (["many.jsonl", "--langfuse", "a\nb"], "is one line"),
        (["many.jsonl", "--langfuse", "a", "--run", "b\nc"], "the name of a `--run` is one line"),
        (["--compare", *["single.json"] * 3], "`--compare BEFORE AFTER`; more are named"),
        (["--compare", "many.jsonl", "single.json"], "`many.jsonl` is no result"),
    ],
)
def test_what_cannot_be_decided_is_refused(
    results: Path, words: list[str], reason: str, monkeypatch: pytest.MonkeyPatch, sandbox: Sandbox
) -> None:
    """As a mistake of the command, which no workflow takes for a pass."""
    monkeypatch.chdir(results)
    result = evaluate(*words)

    assert isinstance(result.exception, UsageError)
    assert reason in str(result.exception)


def test_a_threshold_above_zero_is_none(results: Path) -> None:
    """It would block what is no worse."""
    words = ["--compare", results / "local.json", results / "local.json", "--fail-below", "0.1"]

    assert evaluate(*words).exit_code == 2


def test_two_support_checks_are_compared(tmp_path: Path) -> None:
    """By question, as judges are."""
    file = tmp_path / "claims.jsonl"
    rows = [
        {"query": f"mug {n}", "sentence": sentence, "passage": "The battery is excellent.",
         "supported": supported}
        for n in range(3)
        for sentence, supported in (
            ("Owners praise the battery.", True), ("Owners complain about it.", False),
        )
    ]  # fmt: skip
    file.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    before = tmp_path / "before.json"
    before.write_text(json.dumps(figures("--support", file)), "utf-8")
    result = evaluate("--support", file, "--compare", before, "--fail-below", "0")

    assert result.exit_code == 0, result.output
    assert "3 queries in both" in result.stdout
