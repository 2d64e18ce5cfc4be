"""Compares methods of polarity on the labelled sentences.

    python scripts/training/polarity_methods.py

VADER is compared where it is installed (`pip install vaderSentiment`); the product does not use it.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy

from api.models.local.word_vectors import vectors
from api.reports.keyless.polarity import lean_of
from label_agreement import SUPPORT, part_of

Lean = Callable[[str], int | None]
_ROUNDS, _RATE, _DECAY = 3000, 1.0, 0.0005


def main() -> None:
    """One line per candidate: precision and coverage on both parts."""
    lines = (SUPPORT / "polarity.jsonl").read_text("utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    parts = {name: [r for r in rows if part_of(r["text"]) == name] for name in ("dev", "test")}
    candidates: dict[str, Lean] = {"rules": lean_of, "vectors, 0.7": by_vectors(parts["dev"], 0.7)}
    for bound in (0.05, 0.5, 0.7):
        try:
            candidates[f"VADER, {bound}"] = by_vader(bound)
        except ImportError:
            print("VADER is not installed")
            break
    for name, lean in candidates.items():
        print(name, *(f"{part}: {figures(lean, found)}" for part, found in parts.items()), sep=" | ")


def figures(lean: Lean, rows: Sequence[dict[str, Any]]) -> str:
    """Precision over the sure ones, and the share of leaning sentences that is rightly seen."""
    sure = [(row["lean"], said) for row in rows if (said := lean(row["text"]))]
    right, leaning = sum(a == b for a, b in sure), sum(row["lean"] != 0 for row in rows)
    return f"{right}/{len(sure)} right, {right}/{leaning} seen"


def by_vectors(rows: Sequence[dict[str, Any]], bound: float) -> Lean:
    """Logistic regression on mean word vectors, sure from a probability on."""
    known = vectors()
    assert known is not None, "the word vectors are not installed"
    units = numpy.c_[known.units([row["text"] for row in rows]), numpy.ones(len(rows))]
    labels = numpy.eye(3)[[row["lean"] + 1 for row in rows]]
    weights = numpy.zeros((units.shape[1], 3))
    for _ in range(_ROUNDS):
        error = units.T @ (_softmax(units @ weights) - labels) / len(rows)
        weights -= _RATE * (error + _DECAY * weights)

    def lean(text: str) -> int | None:
        chances = _softmax(numpy.r_[known.unit(text), 1.0][None, :] @ weights)[0]
        best = int(chances.argmax())
        return best - 1 if chances[best] >= bound and best != 1 else None

    return lean


def by_vader(bound: float) -> Lean:
    """VADER's compound score, sure beyond a bound."""
    module = importlib.import_module("vaderSentiment.vaderSentiment")
    analyzer = module.SentimentIntensityAnalyzer()

    def lean(text: str) -> int | None:
        score = analyzer.polarity_scores(text)["compound"]
        return None if abs(score) < bound else 1 if score > 0 else -1

    return lean


def _softmax(scores: Any) -> Any:
    powers = numpy.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


if __name__ == "__main__":
    main()
