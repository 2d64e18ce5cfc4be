"""Fit the weights by which a sentence is chosen as an example: `fit_informative.py`.

Reads the marks and two readers' labels of `evaluation/informative/`, prints how good the choice is in folds by
product, for the sentences that may be quoted, and the weights over all, for `api/reports/keyless/claims.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from api.reports.keyless.quotable import marks
from recorded_texts import ROOT, rows

LABELS = ROOT / "evaluation" / "informative" / "sentences.jsonl"
FOLDS, STEPS = 8, 50
RIDGE = 33.0
"""Strength of the prior at 0, over marks of unit variance."""
LEAST = 6
"""Sentences of a product from which it counts."""
KEPT_APART = "mention"


def fit(values: Any, labels: Any) -> Any:
    """Weights of the marks, the last of a mark that is always 1, by Newton's method."""
    mean, scale = values.mean(axis=0), values.std(axis=0)
    scale[scale == 0] = 1
    scaled = np.hstack([(values - mean) / scale, np.ones((len(values), 1))])
    prior = np.diag([RIDGE] * values.shape[1] + [0.0])
    weights = np.zeros(scaled.shape[1])
    for _ in range(STEPS):
        chances = 1 / (1 + np.exp(-scaled @ weights))
        slope = scaled.T @ (labels - chances) - prior @ weights
        curve = (scaled * (chances * (1 - chances))[:, None]).T @ scaled + prior
        weights = weights + np.linalg.solve(curve, slope)
    plain = weights[:-1] / scale
    return np.append(plain, weights[-1] - plain @ mean)


def chosen(scores: Any, labels: Any, products: Any, count: int) -> tuple[float, int]:
    """Share of the `count` best sentences of each product that readers marked, and how many these are."""
    hits: list[float] = []
    for product in sorted(set(products)):
        own = np.flatnonzero(products == product)
        if len(own) >= LEAST and labels[own].any():
            hits += list(labels[own[np.argsort(-scores[own], kind="stable")[:count]]])
    return float(np.mean(hits)), len(hits)


def main() -> None:
    """Print the figures and the weights."""
    entries = list(rows(LABELS))
    values = np.array([entry["marks"] for entry in entries], dtype=float)
    labels = np.array([all(mark for mark in entry["tell"] if mark is not None) for entry in entries], dtype=float)
    products = np.array([entry["product"] for entry in entries])
    apart = np.array([entry["set"] == KEPT_APART for entry in entries])
    both = [entry["tell"] for entry in entries if None not in entry["tell"]]
    print(f"{len(entries)} sentences, {labels.mean():.2f} informative; two readers agree on {agreement(both):.3f}")
    scores = np.zeros(len(entries))
    for fold in range(FOLDS):
        held = (products % FOLDS == fold) & ~apart
        scores[held] = apply(fit(values[~held & ~apart], labels[~held & ~apart]), values[held])
    scores[apart] = apply(fit(values[~apart], labels[~apart]), values[apart])
    length = -abs(values[:, 0] - np.log(11))
    for name, part in (("in folds", ~apart), ("kept apart", apart)):
        print(f"{name}: area under the curve {area(scores[part], labels[part]):.2f}")
        for count in (1, 3, 5):
            best, of = chosen(scores[part], labels[part], products[part], count)
            plain, _ = chosen(length[part], labels[part], products[part], count)
            print(f"  best {count} of a product: {best:.2f} informative of {of}; by length alone {plain:.2f}")
    weights = fit(values, labels)
    names = [name for name, _ in marks("", shared=False, sure=False)]
    print({name: round(float(weight), 2) for name, weight in zip([*names, "bias"], weights, strict=True)})


def apply(weights: Any, values: Any) -> Any:
    """The scores of rows of marks."""
    return values @ weights[:-1] + weights[-1]


def agreement(pairs: Iterable[list[int]]) -> float:
    """Share of sentences on which both readers agree."""
    return float(np.mean([first == second for first, second in pairs]))


def area(scores: Any, labels: Any) -> float:
    """Chance that an informative sentence has a higher score than another one."""
    good, others = scores[labels == 1], scores[labels == 0]
    return float((good[:, None] > others[None, :]).mean() + 0.5 * (good[:, None] == others[None, :]).mean())


if __name__ == "__main__":
    main()
