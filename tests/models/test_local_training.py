"""Training: the same data, the same weights; signs and largest weights hold whatever they say."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import train_local_judge as training
from api.core.domain import Question
from api.evaluation.labelled_items import LabelledItem
from api.models.local.judge import parse
from api.models.local.judge_features import AGAINST, FEATURES, FOR
from api.models.local.word_vectors import vectors
from tests.models.items import item
from tests.snippets import commands

NAMES = ("Zorvex", "Quib", "Marnolo", "Tapsi", "Ulmaro")
LISTING = "Zorvex 7 robot vacuum with mop and base, black, model ZX700"


def posts(product: str, *, titled: bool) -> list[dict[str, Any]]:
    """Made-up items: some name the product, the rest talk of weather."""
    pairs = [
        (f"my {product} number {n} died again, support is slow", True)
        if n % 2
        else (f"rain on day {n} and wind in the hills", False)
        for n in range(16)
    ]
    return [{"title": text if titled else "", "body": text, "relevant": relevant} for text, relevant in pairs]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with small files in the form of the real ones, one of them deeper."""
    folder = tmp_path_factory.mktemp("data")
    (folder / "deep").mkdir()
    for path, source, titled in (("dev_a", "reddit", False), ("deep/real_b", "amazon", True)):
        lines = [
            json.dumps({"query": name, "source_hint": source, "items": posts(name, titled=titled)})
            for name in (*NAMES, *([LISTING] if titled else []))
        ]
        (folder / f"{path}.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    return folder


def test_the_same_data_give_the_same_bits_in_any_process(data: Path, tmp_path: Path) -> None:
    """Whatever the number of threads and the order of hashes, the file is the same."""
    written = []
    for number in ("1", "2"):
        out = tmp_path / f"{number}.json"
        command = [sys.executable, training.__file__, "--data", str(data), "--out", str(out)]
        differing = {"OPENBLAS_NUM_THREADS": number, "PYTHONHASHSEED": number}
        subprocess.run(command, env=os.environ | differing, check=True)
        written.append(out.read_bytes())
    assert written[0] == written[1]
    kinds = set(training.PROFILES)
    found = parse(json.loads(written[0])["profiles"])
    assert set(found) == kinds | {f"{kind}-lexical" for kind in kinds}


def test_a_feature_that_points_the_wrong_way_gets_no_weight() -> None:
    """The fit sets it to zero instead of learning the opposite."""
    values = np.array([[0.0, 1.0], [0.0, 1.0], [1.0, 0.0], [1.0, 0.0]] * 10)
    relevant = np.array([1.0, 1.0, 0.0, 0.0] * 10)
    bias, weights = training.fit(("words", "like"), values, relevant, np.ones(40))
    assert weights[0] == 0.0
    assert weights[1] > 1.0
    assert bias < 0


def test_a_largest_weight_holds() -> None:
    """However much the data ask for more."""
    values = np.array([[0.0], [1.0]] * 40)
    relevant = np.array([1.0, 0.0] * 40)
    _, weights = training.fit(("late",), values, relevant, np.ones(80))
    assert weights[0] == -training.MOST["late"]


def test_the_fit_is_at_its_optimum() -> None:
    """Without limits in the way the slope of the loss is flat."""
    steps = np.linspace(0, 1, 50)
    relevant = (np.sin(steps * 40) + steps > 0.5).astype(float)
    bias, weights = training.fit(("words",), steps[:, None], relevant, np.ones(50))
    chance = 1 / (1 + np.exp(-(bias + steps * weights[0])))
    assert abs(float((chance - relevant).sum())) < 1e-4
    slope = float((steps * (chance - relevant)).sum()) + training.RIDGE * weights[0]
    assert abs(slope) < 1e-4


def test_pages_come_mixed_small_and_pure() -> None:
    """Every item is on one page of each kind, and pure pages hold one label."""
    items = [LabelledItem(str(n), "", n % 2 == 0) for n in range(16)]
    pages = list(training.cuts(items))
    for kind in ("mixed", "small", "pure"):
        assert sum(len(page) for name, page in pages if name == kind) == len(items)
    assert all(len({i.relevant for i in page}) == 1 for kind, page in pages if kind == "pure")


def test_lines_that_ask_the_same_are_left_out_together(data: Path) -> None:
    """The same query in two files has one fold."""
    queries = training.load(data)
    folds = training.folds_of(queries)
    assert len(queries) == 11
    assert sorted(folds.values()) == [0, 0, 1, 2, 3, 4]


def test_the_shipped_weights_have_known_features_and_signs() -> None:
    """Nothing in the file is a feature that no longer exists."""
    shipped = json.loads(training.WEIGHTS.read_text("utf-8"))
    for weights in shipped["profiles"].values():
        assert set(weights) <= {"bias", *FEATURES}
        assert all(weights.get(name, 0) >= 0 for name in FOR)
        assert all(weights.get(name, 0) <= 0 for name in AGAINST)


def test_the_command_writes_and_checks(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The line of `docs/local-judge.md`: weights, here to a file, five folds and the baselines."""
    if vectors() is None:
        pytest.skip("word vectors have no wheel here")
    out = tmp_path / "weights.json"
    (words,) = commands("docs/local-judge.md", "python scripts/training/train_local_judge.py")
    given = [str(data) if word == "DIR" else word for word in words]
    training.main([*given, "--out", str(out)])
    shipped = json.loads(out.read_text("utf-8"))["profiles"]
    assert shipped == training.fitted(training.samples(training.load(data), vectors()))
    printed = capsys.readouterr().out
    assert [line for line in printed.splitlines() if not line.startswith(" ")] == [
        f"{name} set, {judge}"
        for judge in (
            "local",
            "lexical",
            "keep_all",
            "keyword",
            "names",
            "bm25",
            "cosine",
            "hybrid",
        )
        for name in ("older", "real")
    ]


async def test_the_folded_judge_never_saw_the_question(data: Path) -> None:
    """Each fold has weights of its own."""
    judge = training.folded(training.load(data), None)
    found = await judge.judge(Question("Zorvex"), [item("my Zorvex died")], "reddit")
    assert [verdict.relevant for verdict in found.verdicts] == [True]
    assert len({str(dict(weights)) for weights in judge.weights}) > 1


def test_without_data_it_says_so(tmp_path: Path) -> None:
    """An empty folder is an error that names it."""
    with pytest.raises(SystemExit, match=r"no dev_\*\.jsonl or real_\*\.jsonl or mention_\*"):
        training.load(tmp_path)
