"""Trains the local judge: `train_local_judge.py --data DIR [--out FILE] [--check]`.

DIR holds labelled queries (docs/evaluation.md) in files `dev_*.jsonl` and `real_*.jsonl`, at any
depth. Pages are judged as they came, cut small, and pure (all relevant or none), so that nothing
is learnt from the other texts of a page. The same data give the same weights: no random numbers, a
fixed order, weights rounded to three places.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from api.core.domain import Question
from api.evaluation.bench_gates import FoldedJudge
from api.evaluation.judge_candidates import BASELINES
from api.evaluation.judge_evaluation import EvaluationOptions, JudgeCandidate, evaluate
from api.evaluation.judge_scores import EvalResult
from api.evaluation.labelled_items import LabelledItem, LabelledQuery, read_labelled
from api.models.local.judge import parse, profile_name
from api.models.local.judge_features import AGAINST, FEATURES, FOR, page
from api.models.local.parsed_text import Reading, topic_of
from api.models.local.word_vectors import Vectors, vectors
from api.pipeline.gate.excerpt import excerpt_of

Floats: TypeAlias = npt.NDArray[np.float64]
WEIGHTS = Path(__file__).parents[2] / "api" / "models" / "local" / "local_weights.json"
ABOUTS = Path(__file__).with_name("product_descriptions.json")
SETS = {"older": "dev_*.jsonl", "real": "real_*.jsonl", "mention": "mention_*.jsonl"}
"""The files of each set, in the order in which they are fitted."""
PROFILES = ("titled", "untitled", "listing")
PAGE, SMALL_PAGE, FOLDS = 25, 5, 5
SHARES = {"mixed": 0.5, "small": 0.25, "pure": 0.25}
"""How much each way of cutting pages counts."""
FOREIGN = 0.02
"""How much a text of another profile counts: enough to give a sign to what is rare here."""
RIDGE = 1.0
MOST: Mapping[str, float] = {"late": 0.2}
"""Largest weights, where a missed text costs more than one too many; docs/local-judge.md."""


CAUTION: Mapping[str, float] = {"titled": 0.1}
"""Taken off the bias: the curve that chose it stands in docs/local-judge.md."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Every text of every page, with its features."""

    values: Floats
    relevant: Floats
    weight: Floats
    profile: npt.NDArray[np.str_]
    fold: npt.NDArray[np.int64]


def load(folder: Path) -> list[LabelledQuery]:
    """Every query of every set.

    Raises:
        SystemExit: the folder holds no data.
    """
    queries = [query for files in SETS.values() for query in read_set(folder, files)]
    if not queries:
        raise SystemExit(f"no {' or '.join(SETS.values())} in {folder}: give the labelled data")
    return queries


def read_set(folder: Path, files: str) -> list[LabelledQuery]:
    """The queries of one set, in the order of the files' names; none when it is not there."""
    return [
        replace(query, aim="mention") if path.name.startswith("mention_") else query
        for path in sorted(folder.rglob(files))
        for query in read_labelled(path.read_text("utf-8").splitlines(), path.name)
    ]


def descriptions_with_exclusions(folder: Path) -> dict[str, str]:
    """The longer descriptions of the mention set, by query: they say what is not meant."""
    lines = [
        json.loads(line)
        for path in sorted(folder.rglob(SETS["mention"]))
        for line in path.read_text("utf-8").splitlines()
    ]
    return {line["query"]: line["about_with_not"] for line in lines}


def folds_of(queries: Sequence[LabelledQuery]) -> dict[str, int]:
    """The fold of every query text: lines that ask the same are left out together."""
    texts = dict.fromkeys(query.query for query in queries)
    return {text: number % FOLDS for number, text in enumerate(texts)}


def cuts(items: Sequence[LabelledItem]) -> Iterator[tuple[str, Sequence[LabelledItem]]]:
    """The pages one query gives."""
    relevant = [item for item in items if item.relevant]
    rest = [item for item in items if not item.relevant]
    for kind, group, size in (
        ("mixed", items, PAGE),
        ("small", items, SMALL_PAGE),
        ("pure", relevant, PAGE),
        ("pure", rest, PAGE),
    ):
        yield from ((kind, group[at : at + size]) for at in range(0, len(group), size))


def questions(query: LabelledQuery) -> list[Question]:
    """The query alone, and with a description where there is one."""
    told = json.loads(ABOUTS.read_text("utf-8")).get(query.query)
    described = replace(query.question(), text=told[0], about=told[1]) if told else query.question()
    alone = query.question(about=False)
    return [alone, described] if described.about else [alone]


def sample(queries: Sequence[LabelledQuery], known: Vectors | None) -> Sample:
    """Measure every text, with and without its description."""
    folds = folds_of(queries)
    rows: list[list[float]] = []
    marks: list[tuple[bool, float, str, int]] = []
    for query in queries:
        asked = questions(query)
        for question in asked:
            for kind, items in cuts(query.items):
                texts = [excerpt_of(question, item) for item in replace(query, items=tuple(items)).shown()]
                topic = topic_of(question.text, question.about, aim=question.aim)
                readings = [Reading(topic, text) for text in texts]
                found = page(topic, readings, query.source, known)
                rows += [[row[name] for name in FEATURES] for row in found]
                marks += [
                    (
                        item.relevant,
                        SHARES[kind] / len(asked),
                        profile_name(topic, text, lexical=bool(row["lexical"])),
                        folds[query.query],
                    )
                    for item, text, row in zip(items, texts, found, strict=True)
                ]
    relevant, weight, profile, fold = zip(*marks, strict=True)
    return Sample(
        np.array(rows), np.array(relevant, float), np.array(weight), np.array(profile),
        np.array(fold),
    )  # fmt: skip


def train(data: Sample, profile: str, rows: npt.NDArray[np.bool_]) -> dict[str, float]:
    """Fit one profile on the given rows."""
    weight = data.weight * np.where(data.profile == profile, 1.0, FOREIGN)
    bias, found = fit(FEATURES, data.values[rows], data.relevant[rows], weight[rows])
    weights = {name: round(float(w), 3) for name, w in zip(FEATURES, found, strict=True)}
    bias -= CAUTION.get(profile.removesuffix("-lexical"), 0.0)
    return {"bias": round(bias, 3), **{name: w for name, w in weights.items() if w}}


def fit(names: Sequence[str], values: Floats, relevant: Floats, weight: Floats) -> tuple[float, Floats]:
    """Logistic regression with fixed signs and largest weights, by Newton steps within them."""
    high = np.array([np.inf, *(MOST.get(name, 20.0) if name in FOR else 0.0 for name in names)])
    low = np.array([-np.inf, *(-MOST.get(name, 20.0) if name in AGAINST else 0.0 for name in names)])
    ridge = np.array([0.0, *[RIDGE] * len(names)])
    columns = np.column_stack([np.ones(len(values)), values])
    found = np.zeros(len(names) + 1)

    def loss(at: Floats) -> float:
        scores = columns @ at
        errors = weight * (np.logaddexp(0, scores) - relevant * scores)
        return float(errors.sum() + (ridge * at**2).sum() / 2)

    for _ in range(60):
        chance = 1 / (1 + np.exp(-(columns @ found)))
        slope = np.einsum("ni,n->i", columns, weight * (chance - relevant)) + ridge * found
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


def samples(queries: Sequence[LabelledQuery], known: Vectors | None) -> dict[str, Sample]:
    """What each kind of weights is fitted on, by the ending of its profiles' names."""
    lexical = {"-lexical": sample(queries, None)}
    return lexical if known is None else {"": sample(queries, known)} | lexical


def fitted(data: Mapping[str, Sample], without: int = -1) -> dict[str, dict[str, float]]:
    """The weights of all profiles, fitted on every fold but one."""
    return {
        profile + ending: train(part, profile + ending, part.fold != without)
        for ending, part in data.items()
        for profile in PROFILES
    }


def folded(queries: Sequence[LabelledQuery], known: Vectors | None) -> FoldedJudge:
    """Five fits, each without a fifth of the queries."""
    data = samples(queries, known)
    weights = [parse(fitted(data, fold)) for fold in range(FOLDS)]
    return FoldedJudge(folds_of(queries), weights, known)


def measured(judge: Any, queries: Sequence[LabelledQuery], *, about: bool = True) -> EvalResult:
    """What a judge is worth on queries, page by page as they came."""
    return asyncio.run(evaluate(JudgeCandidate(judge, judge.name), queries, EvaluationOptions(about=about)))


def main(words: Sequence[str] | None = None) -> None:
    """Fit all profiles and write them; `--check` prints five-fold figures of each set."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--data", type=Path, required=True)
    options.add_argument("--out", type=Path, default=WEIGHTS)
    options.add_argument("--check", action="store_true")
    given = options.parse_args(words)
    queries = load(given.data)
    shipped = {"version": 3, "profiles": fitted(samples(queries, vectors()))}
    given.out.write_text(json.dumps(shipped, indent=1) + "\n", "utf-8")
    if given.check:
        report(queries, {name: read_set(given.data, files) for name, files in SETS.items()})


def report(queries: Sequence[LabelledQuery], sets: Mapping[str, Sequence[LabelledQuery]]) -> None:
    """Print MCC, precision, recall, refetch by family of each set: in five folds, and baselines.

    The folds are those of all `queries`; a set that is empty is left out.
    """
    judges = [folded(queries, vectors()), folded(queries, None), *BASELINES.values()]
    for judge, title in zip(judges, ["local", "lexical", *BASELINES], strict=True):
        for name, members in sets.items():
            if members:
                print(f"{name} set, {title}")
                print_figures(measured(judge, members))


def print_figures(result: EvalResult) -> None:
    """One line over all, then one of each family."""
    for name, part in {"all": result.overall, **result.families}.items():
        figures = [part[key] for key in ("mcc", "precision", "recall", "refetch_right")]
        print(f"  {name}:", " ".join(f"{figure or 0.0:.3f}" for figure in figures))


if __name__ == "__main__":
    main()
