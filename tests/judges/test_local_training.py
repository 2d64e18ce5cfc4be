"""Training: the same data, the same weights; signs and least weights hold whatever the data say."""

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
from api.judges.local_features import AGAINST, FEATURES, FOR
from api.judges.local_model import parse
from api.judges.local_vectors import vectors
from api.lab.building import labelled_corpus


def posts(product: str, relevant: int) -> list[dict[str, Any]]:
    """Made-up items: some name the product, the rest talk of weather."""
    about = [
        {
            "title": "",
            "body": f"my {product} number {n} died again, support is slow",
            "relevant": True,
        }
        for n in range(relevant)
    ]
    rest = [
        {"title": "", "body": f"rain on day {n} and wind in the hills", "relevant": False}
        for n in range(8)
    ]
    return [item for pair in zip(about, rest, strict=False) for item in pair]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two small files in the form of the real ones."""
    folder = tmp_path_factory.mktemp("data")
    for number, source in enumerate(("reddit", "amazon")):
        lines = [
            json.dumps(
                {"query": name, "source_hint": source, "family": "made", "items": posts(name, 8)}
            )
            for name in ("Zorvex", "Quib", "Marnolo", "Tapsi", "Ulmaro")
        ]
        (folder / f"dev_{number}.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    return folder


def test_the_same_data_give_the_same_weights(data: Path) -> None:
    """Two runs agree to the last bit, and the result loads as profiles."""
    first, second = training.fitted(data), training.fitted(data)
    assert json.dumps(first) == json.dumps(second)
    assert set(parse(first["profiles"])) == {"social", "amazon", "social-lexical", "amazon-lexical"}


def test_the_sample_corpus_gives_the_same_bits_in_any_process(tmp_path: Path) -> None:
    """Whatever the number of threads and the order of hashes; nothing of it is shipped."""
    lines = [
        {
            "query": query.query,
            "source_hint": query.source,
            "family": query.family,
            "items": [
                {"title": item.title, "body": item.body, "relevant": item.relevant}
                for item in query.items
            ],
        }
        for query in labelled_corpus()
    ]
    text = "\n".join(json.dumps(line) for line in lines)
    (tmp_path / "dev_corpus.jsonl").write_text(text, "utf-8")

    written = []
    for number in ("1", "2"):
        out = tmp_path / f"{number}.json"
        command = [sys.executable, training.__file__, "--data", str(tmp_path), "--out", str(out)]
        differing = {"OPENBLAS_NUM_THREADS": number, "PYTHONHASHSEED": number}
        subprocess.run(command, env=os.environ | differing, check=True)
        written.append(out.read_bytes())
    assert written[0] == written[1]
    assert len(lines) > 40


def test_signs_and_least_weights_hold(data: Path) -> None:
    """Even though no advert and no order to a model is in the data."""
    weights = training.fitted(data)["profiles"]["social"]["main"]
    assert weights["spam"] <= -3.0
    assert weights["orders"] <= -3.0
    assert all(weights.get(name, 0) >= 0 for name in FOR)
    assert all(weights.get(name, 0) <= 0 for name in AGAINST)


def test_a_feature_that_points_the_wrong_way_gets_no_weight() -> None:
    """The fit sets it to zero instead of learning the opposite."""
    values = np.array([[0.0, 1.0], [0.0, 1.0], [1.0, 0.0], [1.0, 0.0]] * 10)
    relevant = np.array([1.0, 1.0, 0.0, 0.0] * 10)
    bias, weights = training.fit(("share", "cosine"), values, relevant, np.ones(40))
    assert weights[0] == 0.0
    assert weights[1] > 1.0
    assert bias < 0


def test_the_fit_is_at_its_optimum() -> None:
    """Without limits in the way the slope of the loss is flat."""
    steps = np.linspace(0, 1, 50)
    relevant = (np.sin(steps * 40) + steps > 0.5).astype(float)
    bias, weights = training.fit(("share",), steps[:, None], relevant, np.ones(50))
    chance = 1 / (1 + np.exp(-(bias + steps * weights[0])))
    assert abs(float((chance - relevant).sum())) < 1e-4
    slope = float((steps * (chance - relevant)).sum()) + training.RIDGE * weights[0]
    assert abs(slope) < 1e-4


def test_pages_come_mixed_small_and_pure() -> None:
    """Every item is on one page of each kind, and pure pages hold one label."""
    items = posts("Zorvex", 8)
    pages = list(training.cuts(items))
    for kind in ("mixed", "small", "pure"):
        assert sum(len(page) for name, page in pages if name == kind) == len(items)
    assert all(len({i["relevant"] for i in page}) == 1 for kind, page in pages if kind == "pure")


def test_the_shipped_weights_have_known_features() -> None:
    """Nothing in the file is a feature that no longer exists."""
    shipped = json.loads(training.WEIGHTS.read_text("utf-8"))
    for layers in shipped["profiles"].values():
        for weights in layers.values():
            assert set(weights) <= {"bias", *FEATURES}


def test_the_command_writes_and_checks(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The script itself: weights to a file, figures on request."""
    out = tmp_path / "weights.json"
    training.main(["--data", str(data), "--out", str(out), "--check"])
    assert json.loads(out.read_text("utf-8")) == training.fitted(data)
    assert "mixed: MCC all" in capsys.readouterr().out


def test_without_data_it_says_so(tmp_path: Path) -> None:
    """An empty folder is an error that names it."""
    with pytest.raises(SystemExit, match=r"no dev_\*\.jsonl in"):
        training.fitted(tmp_path)


def test_vectors_shape_the_profiles(data: Path) -> None:
    """With vectors the likeness of words has a weight."""
    if vectors() is None:
        pytest.skip("word vectors have no wheel here")
    assert "feedback" in training.fitted(data)["profiles"]["social"]["main"]
