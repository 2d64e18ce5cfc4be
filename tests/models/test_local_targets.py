"""What the local judge reaches on labelled data: the floors of docs/local-judge.md."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import measure_gate as measuring
import train_local_judge as training
from api.core.domain import Question
from api.evaluation.bench_gates import FoldedJudge
from api.evaluation.judge_candidates import BASELINES, labelled_corpus
from api.evaluation.judge_scores import EvalResult
from api.evaluation.labelled_items import LabelledQuery, pure
from api.evaluation.metrics import compare, summed
from api.models.local.judge import LocalJudge, probabilities
from api.models.local.word_vectors import vectors
from api.pipeline.gate.excerpt import COMMENT_PLACE, contains_name
from api.pipeline.gate.name_matches import name_of
from tests.replay import DATA

pytestmark = pytest.mark.skipif(vectors() is None, reason="word vectors have no wheel here")


def folder(name: str) -> Path:
    """Where a labelled set lies."""
    path = DATA / name
    if not path.is_dir():
        pytest.skip(f"no labelled data in `{path}`; set LISTENPOST_TEST_DATA")
    return path


@pytest.fixture(scope="module")
def real() -> list[LabelledQuery]:
    """The real posts, shop texts and comments."""
    return training.load(folder("relevance-real"))


@pytest.fixture(scope="module")
def older() -> list[LabelledQuery]:
    """Public sets of untitled posts and of offers."""
    return training.load(folder("relevance"))


@pytest.fixture(scope="module")
def mention() -> list[LabelledQuery]:
    """Posts that mention a brand whose name is an everyday word, or something else of that name."""
    return training.load(folder("relevance-mention"))


@pytest.fixture(scope="module")
def judge(real: list[LabelledQuery], older: list[LabelledQuery], mention: list[LabelledQuery]) -> FoldedJudge:
    """The judge that never saw the query it is asked."""
    return training.folded([*older, *real, *mention], vectors())


@pytest.fixture(scope="module")
def local(judge: FoldedJudge, real: list[LabelledQuery]) -> EvalResult:
    """Its figures on the real set, pages as they came."""
    return training.measured(judge, real)


@pytest.fixture(scope="module")
def keyword(real: list[LabelledQuery]) -> EvalResult:
    """Those of the keyword."""
    return training.measured(BASELINES["keyword"], real)


def test_the_packaged_judge_beats_the_keyword_on_real_texts(real: list[LabelledQuery], keyword: EvalResult) -> None:
    """It has seen these texts: a judge that has not is trained and measured at night."""
    packaged = training.measured(LocalJudge(), real)
    assert packaged.overall["mcc"] >= 0.55
    assert packaged.overall["mcc"] > keyword.overall["mcc"]


@pytest.mark.nightly
def test_it_beats_the_keyword_on_real_texts(local: EvalResult, keyword: EvalResult) -> None:
    """MCC at least .55, and a difference whose interval leaves out zero."""
    assert local.overall["mcc"] >= 0.55
    assert compare(local.as_json(), keyword.as_json())["overall"]["mcc"]["low"] > 0
    # 0.65 is aimed at: docs/local-judge.md has the curve
    assert local.overall["refetch_right"] >= keyword.overall["refetch_right"]
    assert local.overall["ece"] <= 0.1


@pytest.mark.nightly
def test_no_large_family_is_below_the_keyword(local: EvalResult, keyword: EvalResult) -> None:
    """Families of 60 items or more, by .02 at most."""
    large = {name: part for name, part in local.families.items() if part["n"] >= 60}
    assert len(large) == 5
    for name, part in large.items():
        assert part["mcc"] >= keyword.families[name]["mcc"] - 0.02, name


@pytest.mark.nightly
def test_everyday_names_are_told_from_their_namesakes(judge: FoldedJudge, mention: list[LabelledQuery]) -> None:
    """MCC at least .75 (.30 was aimed at), no brand hidden, and exclusions do no harm."""
    described = training.descriptions_with_exclusions(folder("relevance-mention"))
    by_brand = {query.query: measuring.judged(judge, query, query.question()) for query in mention}
    short, chosen, whole = (
        summed(tallies)["mcc"] or 0
        for tallies in (
            [*by_brand.values()],
            [measuring.judged(judge, query, measuring.excluding(query, described[query.query])) for query in mention],
            [
                measuring.judged(judge, query, replace(query.question(), about=described[query.query]))
                for query in mention
            ],
        )
    )
    assert short >= 0.75
    assert min(chosen, whole) >= short - 0.01
    # the least that the judge before kept of a brand without any description
    least = {"Arc": 0.92, "Bolt": 0.27, "Corona": 0.60, "Monday": 0.88, "Notion": 0.87}
    for brand, counts in by_brand.items():
        assert (summed([counts])["recall"] or 0) >= least[brand], brand


@pytest.mark.nightly
@pytest.mark.parametrize(("count", "least"), [(5, 0.45), (10, 0.55)])
def test_corrections_teach_and_do_no_harm(
    judge: FoldedJudge,
    real: list[LabelledQuery],
    mention: list[LabelledQuery],
    count: int,
    least: float,
) -> None:
    """Over twelve draws; families of 40 items or more lose .02 at most."""
    learnt, pairs = (
        [pair for query in queries if (pair := measuring.with_corrections(judge, query, count)) is not None]
        for queries in (mention, real)
    )
    assert (summed([pair.corrected for pair in learnt])["mcc"] or 0) >= least
    for name, members in {"all": pairs, **measuring.families(pairs)}.items():
        corrected, alone = (
            summed(tallies)["mcc"] or 0
            for tallies in zip(*((pair.corrected, pair.alone) for pair in members), strict=True)
        )
        assert corrected >= alone - 0.02, name


@pytest.mark.nightly
def test_late_mentions_are_found_and_threads_are_not_kept(judge: FoldedJudge, real: list[LabelledQuery]) -> None:
    """Body-only and beyond 200: three of four; irrelevant comments under the name: at most .30."""
    paths = sorted(folder("relevance-real").glob("real_*.jsonl"))
    lines = [line for path in paths for line in path.read_text("utf-8").splitlines()]
    kept: dict[str, list[bool]] = {"body": [], "beyond200": [], "thread": []}
    for query, line in zip(real, lines, strict=True):
        question, name = Question(query.query, query.about), name_of(query.query, query.about)
        found = asyncio.run(judge.judge(question, query.shown(), query.source)).verdicts
        for item, verdict in zip(json.loads(line)["items"], found, strict=True):
            if item["relevant"]:
                kept.setdefault(item.get("where", ""), []).append(verdict.relevant)
            elif item["place"] == COMMENT_PLACE and contains_name(name, item["title"]):
                kept["thread"].append(verdict.relevant)
    assert len(kept["body"]) + len(kept["beyond200"]) + len(kept["thread"]) > 90
    assert np.mean(kept["body"] + kept["beyond200"]) >= 0.75
    assert np.mean(kept["thread"]) <= 0.30


@pytest.mark.nightly
def test_older_sets_are_judged_as_well_as_ever(judge: FoldedJudge, older: list[LabelledQuery]) -> None:
    """MCC over all, brands and pure pages within .02 of the judge before; of the last 42 % kept."""
    found = training.measured(judge, older)
    assert found.overall["mcc"] >= 0.31
    assert found.families["brand"]["mcc"] >= 0.308
    apart = training.measured(judge, pure(older))
    assert apart.overall["mcc"] >= 0.318
    assert apart.overall["kept_irrelevant"] <= 0.42


def verdicts(*, about: bool = True, lower: bool = False) -> dict[str, list[tuple[bool, bool]]]:
    """Verdict and label of every post of the sample corpus, by product."""
    found: dict[str, list[tuple[bool, bool]]] = {}
    for query in labelled_corpus():
        text, told = query.query, query.about if about else ""
        question = Question(text.lower(), told.lower()) if lower else Question(text, told)
        made = LocalJudge().verdicts(question, query.shown(), query.source)
        pairs = zip(made, query.items, strict=True)
        found.setdefault(query.family, []).extend((verdict.relevant, item.relevant) for verdict, item in pairs)
    return found


def recall(pairs: Sequence[tuple[bool, bool]]) -> float:
    """Share of the relevant that was kept."""
    found = [kept for kept, relevant in pairs if relevant]
    return float(np.mean(found)) if found else 1.0


def test_a_description_lowers_no_products_recall() -> None:
    """By more than .03, for any product of the sample corpus."""
    told, alone = verdicts(), verdicts(about=False)
    assert len(told) == 14
    for product, pairs in told.items():
        assert recall(pairs) >= recall(alone[product]) - 0.03, product


def test_lower_case_changes_next_to_no_verdict() -> None:
    """At most 2 %, over the sample corpus."""
    in_lower_case = verdicts(lower=True)
    changed = [
        kept != lower
        for product, pairs in verdicts().items()
        for (kept, _), (lower, _) in zip(pairs, in_lower_case[product], strict=True)
    ]
    assert np.mean(changed) <= 0.02


def test_the_sample_corpus_is_no_worse_than_by_keyword() -> None:
    """A smoke test: it is made up, and fitted nothing."""
    corpus = labelled_corpus()
    mine = training.measured(LocalJudge(), corpus)
    assert mine.overall["mcc"] >= training.measured(BASELINES["keyword"], corpus).overall["mcc"]


def test_a_page_takes_milliseconds(real: list[LabelledQuery]) -> None:
    """4 ms for ten items on an idle core; the bound leaves room for one that many share."""
    taken = []
    for query in real[:16]:
        texts = [f"{item.title}\n{item.body}" for item in query.items[:10]]
        started = time.process_time()
        probabilities(query.query, query.about, texts, query.source)
        taken.append(time.process_time() - started)
    assert float(np.median(taken)) <= 0.05
