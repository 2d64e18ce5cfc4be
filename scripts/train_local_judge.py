"""Fit the local judge: `python scripts/train_local_judge.py --data DIR [--out FILE] [--check]`.

DIR holds `dev_*.jsonl` (their form: docs/local-judge.md). Pages are judged as they came, cut small,
and pure (all relevant or none), so that nothing is learnt from the company a text keeps. The same
data give the same weights: no random numbers, a fixed order, weights rounded to three places.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from api.judges.local_features import FEATURES, FOR, VECTOR_FEATURES, Page, page
from api.judges.local_model import trusted
from api.judges.local_vectors import Vectors, vectors

Floats: TypeAlias = npt.NDArray[np.float64]
Query: TypeAlias = Mapping[str, Any]
WEIGHTS = Path(__file__).parents[1] / "api" / "judges" / "local_weights.json"
ABOUTS = Path(__file__).with_name("local_judge_abouts.json")
PAGE, SMALL_PAGE, FOLDS = 25, 5, 5
SHARES = {"mixed": 0.5, "small": 0.25, "pure": 0.25}
"""How much each way of cutting pages counts."""
FOREIGN_PROFILE = 0.05
"""How much a text of the other profile counts: enough to give a sign to what is rare here."""
RIDGE = 0.1
FLOORS: Mapping[str, float] = {
    "spam": 3.0, "orders": 3.0, "listed": 0.5, "common": 1.4, "namesake": 0.4, "talk": 0.3,
    "name_rare": 0.4, "name_foreign": 0.5,
}  # fmt: skip
"""Least weights, where the data hold next to no example; reasons in docs/local-judge.md."""
HELD_BACK = ("absent", "nameless", "missing", "titled", "untitled")
"""Not fitted: the data's posts have no titles, and a third of its relevant ones count as such only
because of a thread that is not shown."""
AFTER: Mapping[str, Mapping[str, float]] = {
    "social": {"nameless": -1.0, "missing": -3.0, "titled": 0.2, "untitled": -0.9},
    "amazon": {"absent": -1.0},
}
"""Set by hand after the fit."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Every text of every page, with its features."""

    names: tuple[str, ...]
    values: Floats
    relevant: Floats
    weight: Floats
    amazon: npt.NDArray[np.bool_]
    query: npt.NDArray[np.int64]
    kind: npt.NDArray[np.str_]
    described: npt.NDArray[np.bool_]
    pages: tuple[tuple[int, int, Page], ...]
    """First row, last row and the page."""


def load(folder: Path) -> list[Query]:
    """Every query of every file, in the order of the files' names."""
    paths = sorted(folder.glob("dev_*.jsonl"))
    return [json.loads(line) for path in paths for line in path.read_text("utf-8").splitlines()]


def cuts(items: Sequence[Query]) -> Iterator[tuple[str, Sequence[Query]]]:
    """The pages one query gives."""
    relevant = [item for item in items if item["relevant"]]
    rest = [item for item in items if not item["relevant"]]
    for kind, group, size in (
        ("mixed", items, PAGE),
        ("small", items, SMALL_PAGE),
        ("pure", relevant, PAGE),
        ("pure", rest, PAGE),
    ):
        yield from ((kind, group[at : at + size]) for at in range(0, len(group), size))


def sample(queries: Sequence[Query], known: Vectors | None) -> Sample:
    """Measure every text; queries with a description are measured with and without it."""
    names = tuple(f for f in FEATURES if f != "feedback" and (known or f not in VECTOR_FEATURES))
    abouts = json.loads(ABOUTS.read_text("utf-8"))
    rows: list[list[float]] = []
    marks: list[tuple[bool, float, bool, int, str, bool]] = []
    pages: list[tuple[int, int, Page]] = []
    for number, query in enumerate(queries):
        asked = [(query["query"], ""), *([tuple(a)] if (a := abouts.get(query["query"])) else [])]
        for text, about in asked:
            for kind, items in cuts(query["items"]):
                taken = page(text, about, [shown(item) for item in items], known)
                pages.append((len(rows), len(rows) + len(items), taken))
                rows += [[row[name] for name in names] for row in taken.rows]
                amazon, share = query["source_hint"] == "amazon", SHARES[kind] / len(asked)
                marks += [
                    (item["relevant"], share, amazon, number, kind, bool(about)) for item in items
                ]
    relevant, weight, amazon_, number_, kind_, described = zip(*marks, strict=True)
    return Sample(
        names, np.array(rows), np.array(relevant, float), np.array(weight), np.array(amazon_),
        np.array(number_), np.array(kind_), np.array(described), tuple(pages),
    )  # fmt: skip


def shown(item: Query) -> str:
    """What the judge sees of an item."""
    return f"{item['title']}\n{item['body'][:200]}"


def sigmoid(scores: Floats) -> Floats:
    """The logistic function."""
    return np.asarray(1 / (1 + np.exp(-scores)))


def fit(
    names: Sequence[str], values: Floats, relevant: Floats, weight: Floats
) -> tuple[float, Floats]:
    """Logistic regression with fixed signs and least weights, by Newton steps inside the limits."""
    low, high = limits(names)
    start = np.clip(np.zeros(len(names)), low, high)
    ridge = np.array([0.0, *[RIDGE] * len(names)])
    low, high = np.array([-np.inf, *low]), np.array([np.inf, *high])
    columns = np.column_stack([np.ones(len(values)), values])
    centre = np.array([0.0, *start])
    found = centre.copy()

    def loss(at: Floats) -> float:
        scores = columns @ at
        errors = weight * (np.logaddexp(0, scores) - relevant * scores)
        return float(errors.sum() + (ridge * (at - centre) ** 2).sum() / 2)

    for _ in range(60):
        chance = sigmoid(columns @ found)
        slope = np.einsum("ni,n->i", columns, weight * (chance - relevant))
        slope = slope + ridge * (found - centre)
        curve = columns * (weight * chance * (1 - chance))[:, None]
        # not `@`: the sums must not depend on how many threads add them
        bend = np.einsum("ni,nj->ij", curve, columns) + np.diag(ridge + 1e-9)
        step = newton_step(slope, bend, low - found, high - found)
        while loss(found + step) > loss(found) and np.abs(step).max() > 1e-9:
            step /= 2
        found = found + step
        if np.abs(step).max() < 1e-6:
            break
    return float(found[0]), found[1:]


def newton_step(slope: Floats, bend: Floats, low: Floats, high: Floats) -> Floats:
    """The step that is best by the curvature and stays within the limits, one weight at a time."""
    step = np.zeros(len(slope))
    for _ in range(400):
        before = step.copy()
        for at in range(len(step)):
            pull = slope[at] + bend[at] @ step - bend[at, at] * step[at]
            step[at] = min(max(-pull / bend[at, at], low[at]), high[at])
        if np.abs(step - before).max() < 1e-9:
            break
    return step


def limits(names: Sequence[str]) -> tuple[Floats, Floats]:
    """The least and largest weight of every feature."""
    sides = [(name in FOR, FLOORS.get(name, 0.0), name in HELD_BACK) for name in names]
    low = [0.0 if out else floor if good else -20.0 for good, floor, out in sides]
    high = [0.0 if out else 20.0 if good else -floor for good, floor, out in sides]
    return np.array(low), np.array(high)


def train(data: Sample, rows: npt.NDArray[np.bool_], profile: str) -> dict[str, dict[str, float]]:
    """Fit both layers of one profile on the given rows."""
    mine = data.amazon if profile == "amazon" else ~data.amazon
    weight = data.weight * np.where(mine, 1.0, FOREIGN_PROFILE)
    learn = partial(_layer, profile, data.relevant[rows], weight[rows])
    seed = learn(data.names, data.values[rows])
    if "cosine" not in data.names:
        return {"seed": seed, "main": seed}
    main = learn((*data.names, "feedback"), with_feedback(data, seed)[rows])
    return {"seed": seed, "main": main}


def _layer(
    profile: str, relevant: Floats, weight: Floats, names: Sequence[str], values: Floats
) -> dict[str, float]:
    bias, found = fit(names, values, relevant, weight)
    weights = {name: round(float(w), 3) for name, w in zip(names, found, strict=True)}
    weights |= AFTER[profile]
    return {"bias": round(bias, 3), **{name: w for name, w in weights.items() if w}}


def with_feedback(data: Sample, seed: Mapping[str, float]) -> Floats:
    """The features with the feedback that this first opinion gives."""
    first = predict(data.names, data.values, seed)
    column = np.zeros(len(first))
    for start, end, taken in data.pages:
        column[start:end] = taken.feedback([trusted(p) for p in first[start:end].tolist()])
    return np.column_stack([data.values, column])


def predict(names: Sequence[str], values: Floats, layer: Mapping[str, float]) -> Floats:
    """Probabilities of one layer."""
    return sigmoid(layer["bias"] + values @ np.array([layer.get(name, 0.0) for name in names]))


def out_of_fold(data: Sample) -> Floats:
    """Probabilities of every row from models that never saw its query."""
    found = np.zeros(len(data.relevant))
    for fold in range(FOLDS):
        for profile in ("social", "amazon"):
            layers = train(data, data.query % FOLDS != fold, profile)
            values, names = data.values, data.names
            if "cosine" in names:
                values, names = with_feedback(data, layers["seed"]), (*names, "feedback")
            mine = data.amazon if profile == "amazon" else ~data.amazon
            here = (data.query % FOLDS == fold) & mine
            found[here] = predict(names, values, layers["main"])[here]
    return found


def fitted(folder: Path, *, check: bool = False) -> dict[str, Any]:
    """All profiles, fitted on the files of a folder; `check` prints what five folds give.

    Raises:
        SystemExit: the folder holds no data.
    """
    queries = load(folder)
    if not queries:
        raise SystemExit(f"no dev_*.jsonl in {folder}: give the folder with the labelled data")
    profiles = {}
    for suffix, known in (("", vectors()), ("-lexical", None)):
        data = sample(queries, known)
        for profile in ("social", "amazon"):
            profiles[profile + suffix] = train(data, np.full(len(data.query), True), profile)
        if check:
            report(suffix or "with vectors", queries, data, out_of_fold(data))
    return {"version": 1, "profiles": profiles}


def main(words: Sequence[str] | None = None) -> None:
    """Fit all profiles and write them; `--check` prints five-fold figures as well."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--data", type=Path, required=True)
    options.add_argument("--out", type=Path, default=WEIGHTS)
    options.add_argument("--check", action="store_true")
    given = options.parse_args(words)
    weights = fitted(given.data, check=given.check)
    given.out.write_text(json.dumps(weights, indent=1) + "\n", "utf-8")


def report(title: str, queries: Sequence[Query], data: Sample, found: Floats) -> None:
    """Print what five folds give."""
    families = np.array([query.get("family", "") for query in queries])[data.query]
    print(title)
    for kind in SHARES:
        rows = (data.kind == kind) & ~data.described
        parts = [f"all {mcc(data.relevant[rows], found[rows]):.3f}"]
        for family in sorted(set(families)):
            some = rows & (families == family)
            parts.append(f"{family} {mcc(data.relevant[some], found[some]):.3f}")
        print(f"  {kind}: MCC " + ", ".join(parts))


def mcc(relevant: Floats, found: Floats) -> float:
    """Matthews correlation of the verdicts at one half."""
    kept = (found >= 0.5).astype(float)
    spread = float(np.std(relevant) * np.std(kept))
    return float(np.mean((relevant - relevant.mean()) * (kept - kept.mean()))) / (spread or 1.0)


if __name__ == "__main__":
    main()
