"""Measuring a search over the archive."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from math import log2
from pathlib import Path
from typing import Any

import pytest

from api.errors import UsageError
from api.evaluation.search_scores import (
    DEPTH,
    LabelledQuestion,
    Reference,
    read_questions,
    retrieval_measures,
    retrieve,
    score_retrieval,
)
from api.sandbox import corpus

SET = Path(__file__).parents[2] / "evaluation" / "retrieval" / "questions.jsonl"
NOTHING = "nothing there"
A, B, C = ("reddit:t3_a", None), ("reddit:t3_a", "n1"), ("youtube:b", None)


def question(name: str, relevant: Mapping[Reference, int], kind: str = "vague", part: str = "dev") -> LabelledQuestion:
    """A question whose text is its id."""
    return LabelledQuestion(name, kind, part, name, relevant)


def canned(answers: Mapping[str, Sequence[Reference]]) -> Any:
    """A search that cites what is written down."""

    async def search(text: str) -> Sequence[Reference]:
        return answers[text]

    return search


async def test_figures_of_three_questions_by_hand() -> None:
    """Recall of the best grade, precision of all that is cited, gain by place, and silence."""
    questions = [
        question("both", {A: 2, B: 1}),
        question("late", {C: 2}),
        question("none", {}),
        question("noise", {}),
    ]
    search = canned({"both": [B, A, A], "late": [A, B, C], "none": [], "noise": [A]})
    answers = await retrieve(search, questions)
    shown = retrieval_measures(answers)

    assert [answer.recall for answer in answers[:2]] == [1.0, 1.0]
    assert shown == {
        "n": 4,
        "recall": 1.0,
        "precision": 4 / 7,
        "ndcg": pytest.approx(((1 + 3 / log2(3)) / (3 + 1 / log2(3)) + 1 / log2(4)) / 2),
        "quiet": 0.5,
    }


async def test_only_eight_citations_count_and_nobody_can_cite_more() -> None:
    """Of twelve answers eight are all that could be cited; a ninth citation is not looked at."""
    twelve: list[Reference] = [(f"reddit:t3_{n}", None) for n in range(12)]
    questions = [question("many", dict.fromkeys(twelve, 2)), question("ninth", {A: 2})]
    answers = await retrieve(canned({"many": twelve, "ninth": [*twelve[:8], A]}), questions)

    assert [len(answer.references) for answer in answers] == [DEPTH, DEPTH]
    assert [(answer.recall, answer.ndcg) for answer in answers] == [(1.0, 1.0), (0.0, 0.0)]


async def test_grade_one_is_what_is_wanted_where_nothing_answers_better() -> None:
    """Recall asks for the best there is; a touch that is cited is right."""
    answers = await retrieve(canned({"q": [A]}), [question("q", {A: 1, C: 1})])

    assert (answers[0].recall, answers[0].right) == (0.5, 1)


def test_without_questions_of_a_sort_there_is_no_figure() -> None:
    """Nothing cited has no precision, and no question has no recall."""
    assert retrieval_measures([]) == {
        "n": 0, "recall": None, "precision": None, "ndcg": None, "quiet": None,
    }  # fmt: skip


async def test_a_result_has_parts_kinds_and_intervals() -> None:
    """The same answers give the same figures, and what was cited stands under its id."""
    questions = [
        question("a", {A: 2}, "id"),
        question("b", {B: 2}, "id", "test"),
        question("c", {}, "chit-chat", "test"),
    ]
    answers = await retrieve(canned({"a": [A], "b": [A], "c": []}), questions)
    shown = score_retrieval("plain", answers).as_json()

    assert shown["search"] == "plain"
    assert {kind: part["n"] for kind, part in shown["kinds"].items()} == {"id": 2, "chit-chat": 1}
    assert {name: part["n"] for name, part in shown["parts"].items()} == {"dev": 1, "test": 2}
    assert (shown["overall"]["recall"], shown["answerable"]["quiet"]) == (0.5, None)
    assert shown["answerable"]["intervals"]["recall"] == [0.0, 1.0]
    assert shown["kinds"]["chit-chat"]["intervals"] == {}
    assert shown["questions"] == {"a": (A,), "b": (A,), "c": ()}
    assert shown["ms"] >= 0
    assert json.loads(json.dumps(shown))["questions"]["a"] == [list(A)]


def test_a_line_that_is_no_question_is_named() -> None:
    """File, line, field and the shape that is wanted."""
    row = {"id": "x", "kind": "id", "part": "dev", "question": "q", "relevant": []}
    kept = read_questions([json.dumps(row), ""], "f")

    assert kept == [LabelledQuestion("x", "id", "dev", "q", {})]
    for wrong, field in (
        ({**row, "part": "train"}, "part"),
        ({**row, "relevant": [{"key": "k", "grade": 3}]}, "relevant.0.grade"),
        ([], "line"),
    ):
        with pytest.raises(UsageError, match=f"`f` line 2: `{field}`"):
            read_questions([json.dumps(row), json.dumps(wrong)], "f")
    with pytest.raises(UsageError, match="no labelled question"):
        read_questions([" "], "f")


def test_the_committed_set_is_of_the_sample_world() -> None:
    """Every entry is a post or comment that is there; kinds and parts are as its page says."""
    questions = read_questions(SET.read_text("utf-8").splitlines(), str(SET))
    posts = {post.key: post for post in (*corpus.load(), *corpus.keyless()) if not post.deleted}

    for labelled in questions:
        assert not labelled.relevant or max(labelled.relevant.values()) == 2, labelled.id
        for key, comment in labelled.relevant:
            remarks = {remark.id for remark in posts[key].comments if not remark.deleted}
            assert comment is None or comment in remarks, labelled.id
    assert len({labelled.id for labelled in questions}) == len(questions) >= 90
    sorts = Counter((labelled.kind, labelled.part) for labelled in questions)
    kinds = {kind for kind, _ in sorts}
    assert len(kinds) == 9
    assert min(sorts.values()) >= 5
    assert {kind for kind in kinds if sorts[kind, "dev"] != sorts[kind, "test"]} == {NOTHING}
    assert (sorts[NOTHING, "dev"], sorts[NOTHING, "test"]) == (60, 20)
    empty = {labelled.kind for labelled in questions if not labelled.relevant}
    assert empty == {NOTHING, "chit-chat"}
