"""`correct`, `review` and `corrections` in the sandbox: what a person says decides from then on."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.interfaces.command import Here

QUERY = ("analyze", "Ember mug", "--depth", "quick", "--source", "reddit", "--format", "json")


@pytest.fixture
def in_sandbox(here: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Here:
    """The command over sample data and a database of this test."""
    monkeypatch.setenv("LISTENPOST_MODE", "sandbox")
    monkeypatch.setenv("LISTENPOST_DATABASE_URL", f"sqlite:///{tmp_path / 'listenpost.db'}")
    return here


def kept_and_dropped(report: dict[str, Any]) -> tuple[set[str], set[str]]:
    """Keys of the items that the gate let through, and of those that it did not."""
    dropped = {item["key"] for item in report["dropped"] if item["dropped_by"] == "gate"}
    return {item["key"] for item in report["items"]}, dropped


def test_a_corrected_item_is_decided_by_the_person(in_sandbox: Here) -> None:
    """In the next analysis of the same question, in another spelling, and until it is removed."""
    first = in_sandbox(*QUERY).json
    kept, dropped = kept_and_dropped(first)
    wrong, missed = min(kept), min(dropped)
    in_sandbox("correct", first["id"], wrong, "--irrelevant")
    done = in_sandbox("correct", first["id"][:8], missed, "--relevant")
    again = in_sandbox("analyze", "EMBER  mug", *QUERY[2:]).json

    assert (done.code, done.out) == (0, "")
    assert "learns from this" in done.err
    items = {item["key"]: item for item in (*again["items"], *again["dropped"])}
    assert (items[wrong]["verdict"], items[missed]["verdict"]) == (False, True)
    assert items[wrong]["reason"] == "corrected by a person"
    assert items[missed]["judge"] == "correction"

    in_sandbox("correct", first["id"], wrong, "--remove")
    last = in_sandbox(*QUERY).json
    assert wrong in kept_and_dropped(last)[0]


def test_a_review_is_one_key_an_item_and_can_be_continued(in_sandbox: Here) -> None:
    """With undo; what was corrected before is not asked about again."""
    report = in_sandbox(*QUERY).json["id"]
    first = in_sandbox("review", report, stdin=b"ynu q")
    second = in_sandbox("review", report, stdin=b"nq")
    listed = in_sandbox("corrections", "--format", "json")

    assert (first.code, second.code) == (0, 0)
    assert "1 corrected;" in first.err
    assert ", 1 corrected before" in second.err
    lines = [json.loads(line) for line in listed.out.splitlines()]
    said = [item["relevant"] for line in lines for item in line["items"]]
    assert sorted(said) == [False, True]
    assert {line["query"] for line in lines} == {"Ember mug"}
    assert "about it" in in_sandbox("corrections").out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("correct", "nowhere", "reddit:1", "--relevant"), "there is no report `nowhere`"),
        (("correct", "nowhere", "reddit:1"), "say one of `--relevant`"),
        (("correct", "nowhere", "x", "--relevant", "--remove"), "say one of `--relevant`"),
        (("review", "nowhere"), "there is no report `nowhere`"),
    ],
)
def test_what_cannot_be_corrected_says_why(in_sandbox: Here, words: tuple[str, ...], message: str) -> None:
    """In one line, as any wrong use."""
    done = in_sandbox(*words)

    assert (done.code, done.out) == (2, "")
    assert message in done.err


def test_an_item_that_is_not_there_cannot_be_corrected(in_sandbox: Here) -> None:
    """Nor can a correction be removed that was never made."""
    report = in_sandbox(*QUERY).json
    key = report["items"][0]["key"]

    assert "has no item `reddit:no`" in in_sandbox("correct", report["id"], "reddit:no", "--relevant").err
    assert "has no correction" in in_sandbox("correct", report["id"], key, "--remove").err
    assert "there are no corrections" in in_sandbox("corrections").err


def test_a_report_is_judged_again_without_asking_a_source(in_sandbox: Here) -> None:
    """With the corrections, by the beginning of its id; both reports stay."""
    first = in_sandbox(*QUERY).json
    kept, dropped = kept_and_dropped(first)
    wrong, missed = min(kept), min(dropped)
    in_sandbox("correct", first["id"], wrong, "--irrelevant")
    in_sandbox("correct", first["id"], missed, "--relevant")

    done = in_sandbox("analyze", "--again", first["id"][:8], "--format", "json")

    assert done.code == 0
    assert (done.json["again_of"], done.json["query"]) == (first["id"], "Ember mug")
    assert done.json["cost"]["upstream_calls"] == 0
    assert kept_and_dropped(done.json)[0] == kept - {wrong} | {missed}
    described = in_sandbox("analyze", first["id"], "--again", "--about", "a mug", *FORMAT).json
    assert (described["about"], described["again_of"]) == ("a mug", first["id"])
    assert len(json.loads(in_sandbox("reports", "list", *FORMAT).out)) == 3


FORMAT = ("--format", "json")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("Ember mug", "--sense", "1"), "--sense` belongs to a stored report"),
        (("0123", "--again"), "there is no"),
        (("0123", "--again", "--source", "reddit"), "asks and reads nothing else"),
        (("0123", "--again", "--estimate"), "asks and reads nothing else"),
    ],
)
def test_what_cannot_be_judged_again(in_sandbox: Here, words: tuple[str, ...], message: str) -> None:
    """Is said, with exit code 2."""
    done = in_sandbox("analyze", *words)

    assert done.code == 2
    assert message in done.err


def test_a_meaning_is_chosen_by_its_number(in_sandbox: Here) -> None:
    """It must be one that the report lists; the next question about the name takes it."""
    first = in_sandbox("analyze", "arc", *FORMAT).json
    senses = first["senses"]
    text = in_sandbox("reports", "show", first["id"]).out
    missing = in_sandbox("analyze", "--again", first["id"], "--sense", "9")
    chosen = in_sandbox("analyze", "--again", first["id"], "--sense", "1", *FORMAT).json
    later = in_sandbox("analyze", "Arc", *FORMAT)
    compared = in_sandbox("compare", "Arc", "Oura", "--depth", "quick", *FORMAT).json
    watched = in_sandbox("watch", "add", "arc")

    described = (senses[0]["name"], ", ".join(senses[0]["words"]))
    assert len(senses) >= 2
    assert "groups that have little in common" in " ".join(text.split())
    assert text.index("groups that have") < text.index(first["decision_rationale"][:10])
    assert missing.code == 2
    assert f"there are {len(senses)}" in missing.err
    assert chosen["about"] == later.json["about"] == "; ".join(filter(None, described))
    assert [product["about"] for product in compared["products"]] == [chosen["about"], ""]
    assert (
        f"watched as “{chosen['about']}”, the meaning that was chosen before; set `--about` for another" in watched.err
    )
    assert "senses" not in chosen
    assert any("the meaning that was chosen before" in note for note in later.json["quality_notes"])


def test_an_audit_reads_some_of_the_dropped_items(in_sandbox: Here) -> None:
    """They are drawn among the dropped alone; the end says how many relevant ones were missed."""
    report = in_sandbox("analyze", "Ember mug", *FORMAT).json
    _, dropped = kept_and_dropped(report)
    done = in_sandbox("review", report["id"], "--audit", "4", stdin=b"nnyn")
    corrected = json.loads(in_sandbox("corrections", *FORMAT).out.splitlines()[0])
    keys = re.findall(r"^\d of 4 · (\S+)", done.out, re.M)

    assert done.code == 0
    assert len(set(keys)) == 4
    assert set(keys) <= dropped
    assert corrected["query"] == "Ember mug"
    assert re.search(r"By 4 corrected items the gate missed about \d+ relevant ones", done.out)
    assert "Of the kept items" not in done.out
    assert in_sandbox("review", report["id"], "--audit", "0").code == 2


def test_after_twenty_corrections_the_gate_s_precision_is_said(in_sandbox: Here) -> None:
    """With its recall and the intervals of both; before that, of neither."""
    report = in_sandbox("analyze", "Ember mug", *FORMAT).json["id"]
    first = in_sandbox("review", report, stdin=b"y" * 19 + b"q")
    second = in_sandbox("review", report, stdin=b"yq")

    assert "Of the" not in first.out
    assert re.search(r"Of the kept items about \d+ % are relevant \(95 %: \d+ to \d+\)", second.out)
    assert re.search(r"Of the relevant items about \d+ % were kept \(95 %: \d+ to", second.out)
