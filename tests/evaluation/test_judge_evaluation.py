"""Evaluating: pages, failures, resuming, slices and the comparison of two results."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from api.core.domain import Grade, Question, Usage, Verdict
from api.core.items import Item
from api.core.model_batches import UnusableAnswer
from api.core.ports import Grades, Judgement
from api.errors import ModelError, UsageError
from api.evaluation.judge_evaluation import (
    AnswerCache,
    EvaluationOptions,
    GraderCandidate,
    JudgeCandidate,
    RememberedAnswers,
    evaluate,
    order_stability,
)
from api.evaluation.judge_scores import EvalResult
from api.evaluation.labelled_items import LabelledItem, LabelledQuery
from api.evaluation.metrics import compare
from api.interfaces.cli.eval_tables import order_lines


def query(name: str, good: int, bad: int, **fields: Any) -> LabelledQuery:
    """A query with so many relevant and irrelevant items, the text saying which."""
    items = [LabelledItem(f"good {n}", "", True, 5, True) for n in range(good)]
    items += [LabelledItem(f"bad {n}", "", False, 1, kind="rival") for n in range(bad)]
    return LabelledQuery(name, fields.pop("source", "reddit"), tuple(items), **fields)


QUERIES = [
    query("mug", 2, 1, family="brand", about="the cup"),
    query("lamp", 1, 2, family="brand"),
    query("flood", 2, 2, family="event", source="youtube"),
]


@dataclass
class FakeJudge:
    """Keeps what says `good`; fails as told by the number of the call."""

    fails: Callable[[int], BaseException | None] = lambda call: None
    probability: float | None = None
    short: bool = False
    name: str = "fake-1"
    seen: list[tuple[Question, int, str]] = field(default_factory=list)
    under_way: int = 0
    most: int = 0

    async def judge(self, question: Question, items: Sequence[Item], source: str) -> Judgement:
        self.seen.append((question, len(items), source))
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        call = len(self.seen)
        await asyncio.sleep(0)
        self.under_way -= 1
        if (error := self.fails(call)) is not None:
            raise error
        kept = ["good" in item.title for item in items][: -1 if self.short else None]
        verdicts = tuple(
            Verdict(
                one,
                self.name,
                None if self.probability is None else abs(self.probability - (not one)),
            )
            for one in kept
        )
        return Judgement(verdicts, self.name, Usage(10, 1, 0.5))


async def result_of(judge: FakeJudge, **options: Any) -> EvalResult:
    """The fake evaluated on all queries."""
    return await evaluate(JudgeCandidate(judge, judge.name), QUERIES, **options)


def failing(*calls: int, reason: str = "timeout") -> Callable[[int], BaseException | None]:
    """Fail at these calls."""
    return lambda call: ModelError(reason) if call in calls else None


async def test_a_right_judge_is_right_everywhere() -> None:
    """Over all, by family, source, mention and query; costs are added up."""
    result = await result_of(FakeJudge(probability=0.9))

    assert result.overall["n"] == 10
    assert result.overall["mcc"] == result.overall["f1"] == 1
    assert result.overall["ece"] == pytest.approx(0.1)
    assert (result.overall["tokens"], result.overall["usd"]) == (33, 1.5)
    assert result.overall["degraded"] == 0
    assert result.overall["intervals"]["mcc"] == [1, 1]
    assert {name: part["n"] for name, part in result.families.items()} == {"brand": 6, "event": 4}
    assert set(result.sources) == {"reddit", "youtube"}
    assert {name: part["n"] for name, part in result.mention.items()} == {"false": 5, "true": 5}
    assert "yield_mae" not in result.mention["true"]
    assert "yield_mae" not in result.mention["true"]["intervals"]
    assert result.kinds == {"rival": {"n": 5, "kept": 0, "share": 0}}
    assert result.queries["flood"]["family"] == "event"
    assert result.grades is not None
    assert result.grades["spearman"] == result.grades["ndcg10"] == 1


async def test_queries_go_out_in_pages_with_their_context() -> None:
    """No call holds more than a page; `about` is shown, or left out when asked to."""
    judge = FakeJudge()
    result = await result_of(judge, options=EvaluationOptions(page=2, concurrency=1))
    plain = FakeJudge()
    without = await result_of(plain, options=EvaluationOptions(about=False))

    assert [(q.text, q.about, n, s) for q, n, s in judge.seen][:3] == [
        ("mug", "the cup", 2, "reddit"),
        ("mug", "the cup", 1, "reddit"),
        ("lamp", "", 2, "reddit"),
    ]
    assert {question.about for question, _, _ in plain.seen} == {""}
    assert (result.page, result.about, without.about) == (2, True, False)
    assert result.overall["pages"] == 3


async def test_calls_under_way_are_limited() -> None:
    """Never more at once than allowed, and as many as allowed."""
    judge = FakeJudge()
    await result_of(judge, options=EvaluationOptions(page=1, concurrency=3))

    assert judge.most == 3


async def test_progress_reaches_the_end() -> None:
    """The listener hears of every page, the last one with all items."""
    heard: list[tuple[int, int]] = []
    await result_of(FakeJudge(fails=failing(2)), progress=lambda *at: heard.append(at))

    assert heard[-1] == (10, 10)
    assert len(heard) == 3


async def test_a_failed_page_is_degraded_and_counts_in_no_figure() -> None:
    """Its items are missing from n, and the reason is named."""
    result = await result_of(FakeJudge(fails=failing(1)), options=EvaluationOptions(concurrency=1))

    assert (result.overall["n"], result.overall["degraded"]) == (7, 3)
    assert result.reasons == ("timeout",)
    assert "mug" not in result.queries


async def test_a_useless_answer_is_in_the_cost() -> None:
    """Two pages of three are answered, and all three are paid for."""
    wasted = UnusableAnswer("malformed", "", Usage(10, 1, 0.25))
    judge = FakeJudge(fails=lambda call: wasted if call == 1 else None)
    result = await result_of(judge, options=EvaluationOptions(concurrency=1))
    whole = await result_of(FakeJudge(), options=EvaluationOptions(concurrency=1))

    assert whole.overall["usd"] - result.overall["usd"] == 0.25


async def test_a_wrong_count_is_degraded() -> None:
    """Three verdicts for four items are no answer, and all pages like that are a failure."""
    with pytest.raises(ModelError) as caught:
        await result_of(FakeJudge(short=True))

    assert caught.value.reason == "count_mismatch"


async def test_nothing_to_ask_is_an_error() -> None:
    """No queries, no result."""
    with pytest.raises(ModelError):
        await evaluate(JudgeCandidate(FakeJudge(), "fake"), [])


async def test_a_hopeless_failure_stops_the_run() -> None:
    """A wrong key is not tried on every page."""
    judge = FakeJudge(fails=lambda call: ModelError("unauthorized"))

    with pytest.raises(ModelError) as caught:
        await result_of(judge, options=EvaluationOptions(page=1, concurrency=2))

    assert caught.value.reason == "unauthorized"
    assert len(judge.seen) == 2


async def test_a_cut_run_goes_on_where_it_stopped(tmp_path: Path) -> None:
    """Pages answered before the cut are not asked again, and the figures are the same."""
    options = EvaluationOptions(page=1, concurrency=1)
    cut = FakeJudge(fails=lambda call: KeyboardInterrupt() if call == 5 else None)
    with pytest.raises(KeyboardInterrupt):
        # in a loop of its own, since an interrupt ends the loop that it hits
        await asyncio.to_thread(
            asyncio.run,
            evaluate(JudgeCandidate(cut, "fake"), QUERIES, options, cache=AnswerCache(tmp_path, "fake")),
        )
    again, fresh = FakeJudge(), FakeJudge()
    cache = AnswerCache(tmp_path, "fake")
    resumed = await evaluate(JudgeCandidate(again, "fake"), QUERIES, options, cache=cache)
    whole = await evaluate(JudgeCandidate(fresh, "fake"), QUERIES, options)

    assert (len(again.seen), len(fresh.seen)) == (6, 10)
    assert resumed.queries == whole.queries
    assert resumed.overall["tokens"] == whole.overall["tokens"]


async def test_degraded_pages_are_never_kept(tmp_path: Path) -> None:
    """The second run asks again for exactly what failed in the first."""
    for judge, asked in ((FakeJudge(fails=failing(2)), 3), (FakeJudge(), 1), (FakeJudge(), 0)):
        await result_of(judge, cache=AnswerCache(tmp_path, "fake"), options=EvaluationOptions(concurrency=1))
        assert len(judge.seen) == asked


async def test_another_template_is_another_judge(tmp_path: Path) -> None:
    """A changed prompt asks everything anew."""
    for template, asked in (("one", 3), ("one", 0), ("two", 3)):
        judge = FakeJudge()
        cache = AnswerCache(tmp_path, "fake")
        await evaluate(JudgeCandidate(judge, "fake", template), QUERIES, cache=cache)
        assert len(judge.seen) == asked


@dataclass
class FakeGrader:
    """Grades by the word in the title."""

    defaulted: bool = False

    async def grade(self, question: Question, items: Sequence[Item]) -> Grades:
        grades = [Grade(4 if "good" in item.title else 2) for item in items]
        if self.defaulted and question.text == "lamp":
            grades[0] = Grade(3, defaulted=True)
        return Grades(tuple(grades), Usage(1, 1, None))


async def test_a_grader_is_judged_by_its_grades() -> None:
    """Spearman, kappa and nDCG from its scores, verdicts from its cutoff, no calibration."""
    result = await evaluate(GraderCandidate(FakeGrader(), "grades"), QUERIES)

    assert result.grades is not None
    assert result.grades["n"] == 10
    assert result.grades["spearman"] == pytest.approx(1)
    assert result.grades["quadratic_kappa"] == pytest.approx(0.8, abs=0.01)
    assert (result.overall["mcc"], result.overall["ece"], result.overall["usd"]) == (1, None, None)


async def test_defaulted_grades_are_no_answer() -> None:
    """A grade that stands in for a failure is not measured as an opinion."""
    result = await evaluate(GraderCandidate(FakeGrader(defaulted=True), "grades"), QUERIES)

    assert (result.overall["n"], result.reasons) == (7, ("malformed",))


async def test_without_scores_there_are_no_grades_to_measure() -> None:
    """A judge of booleans alone, and queries whose grades are all the lowest."""
    assert (await result_of(FakeJudge())).grades is None
    poor = await evaluate(JudgeCandidate(FakeJudge(probability=0.9), "x"), [query("x", 0, 2)])

    assert poor.grades is not None
    assert poor.grades["ndcg10"] is None


async def test_lines_that_ask_the_same_are_one_query() -> None:
    """They are drawn together, so that three pages of one product are not three witnesses."""
    twice = [query("mug", 1, 1), query("mug", 2, 0, source="amazon")]
    result = await evaluate(JudgeCandidate(FakeJudge(), "x"), twice)

    assert list(result.queries) == ["mug"]
    assert (result.overall["pages"], result.overall["intervals"]) == (2, {})


@dataclass
class Contrary(FakeJudge):
    """Keeps what does not say `good`."""

    async def judge(self, question: Question, items: Sequence[Item], source: str) -> Judgement:
        return Judgement(tuple(Verdict("good" not in item.title) for item in items), "contrary")


async def test_two_results_are_compared_by_query() -> None:
    """Right minus wrong is two in MCC, with an interval, over all and by family."""
    right, wrong = await result_of(FakeJudge()), await result_of(Contrary())
    paired = compare(right.as_json(), wrong.as_json())

    assert paired["overall"]["mcc"] == {"difference": 2, "low": 2, "high": 2}
    assert paired["families"]["event"]["mcc"] == {"difference": 2, "low": None, "high": None}
    assert paired["overall"]["ece"]["difference"] is None
    assert (paired["queries"], paired["unpaired"]) == (3, 0)


async def test_only_shared_queries_are_compared() -> None:
    """What one result lacks is counted, and nothing in common is refused."""
    mine = (await result_of(FakeJudge())).as_json()
    fewer = (await evaluate(JudgeCandidate(Contrary(), "x"), QUERIES[:2])).as_json()
    none = (await evaluate(JudgeCandidate(Contrary(), "x"), [query("other", 1, 1)])).as_json()

    assert compare(mine, fewer)["unpaired"] == 1
    with pytest.raises(UsageError, match="share no query"):
        compare(mine, none)


@pytest.mark.parametrize(
    "other",
    [{}, {"queries": {"mug": {}}}, {"queries": {"mug": {"tally": [1, 2]}}}, {"queries": None}],
)
async def test_a_malformed_result_is_refused(other: dict[str, Any]) -> None:
    """The message says how such a file is written."""
    with pytest.raises(UsageError, match="--format json"):
        compare((await result_of(FakeJudge())).as_json(), other)


@dataclass(frozen=True)
class Positional:
    """Answers a fixed pattern, whatever it reads."""

    pattern: str
    name: str = "positional"

    async def judge(self, question: Question, items: Sequence[Item], source: str) -> Judgement:
        """See `Judge.judge`."""
        signs = (self.pattern * len(items))[: len(items)]
        return Judgement(tuple(Verdict(sign == "T", self.name) for sign in signs), self.name)


MIXED = [query(f"thing {n}", 3 + n % 3, 5 - n % 3, about="a thing") for n in range(6)]


async def test_verdicts_that_depend_on_the_item_alone_stay() -> None:
    """In another order and on a page of another yield; a page is asked about once."""
    judge = FakeJudge()
    candidate = RememberedAnswers(JudgeCandidate(judge, "fake-1"))
    await evaluate(candidate, MIXED, EvaluationOptions())

    orders = await order_stability(candidate, MIXED, EvaluationOptions())

    assert orders["shuffled"] == {"n": 48, "stay": 1.0, "low": 1.0, "high": 1.0}
    assert orders["other_yield"]["stay"] == 1.0
    assert 0 < orders["other_yield"]["n"] < 48
    assert orders["pattern"] == ""
    assert len(judge.seen) == 18
    assert "do" not in order_lines(orders).split()


@pytest.mark.parametrize("pattern", ["TF", "TFFF", "T", "F"])
async def test_a_fixed_pattern_is_named(pattern: str) -> None:
    """Also where all verdicts are the same, which stay in any order."""
    orders = await order_stability(JudgeCandidate(Positional(pattern), "p"), MIXED, EvaluationOptions())

    assert orders["pattern"] == (pattern * 8)[:8]
    assert "this model does not read what it judges: it answers " + (pattern * 8)[:8] in order_lines(orders)
    if len(pattern) > 1:
        assert orders["shuffled"]["stay"] < 0.9


@dataclass
class Wholesale:
    """Answers the same for all items of a page, by the page's first letter."""

    name: str = "wholesale"

    async def judge(self, question: Question, items: Sequence[Item], source: str) -> Judgement:
        """See `Judge.judge`."""
        return Judgement((Verdict(question.text[-1] in "02", self.name),) * len(items), self.name)


async def test_a_judge_that_tells_no_two_items_of_a_page_apart_is_named() -> None:
    """As a real model of 135 million parameters did: its verdicts stay in any order."""
    orders = await order_stability(JudgeCandidate(Wholesale(), "w"), MIXED, EvaluationOptions())

    assert (orders["shuffled"]["stay"], orders["pattern"]) == (1.0, "the same for all items of a page")
    assert "it answers the same for all items of a page\n" in f"{order_lines(orders)}\n"


@dataclass
class FirstOnly:
    """Keeps the first item of a page as it was given, and all of a page in another order."""

    name: str = "first-only"

    async def judge(self, question: Question, items: Sequence[Item], source: str) -> Judgement:
        """See `Judge.judge`."""
        given = [item.key for item in items] == sorted(item.key for item in items)
        return Judgement(tuple(Verdict(at == 0 or not given, self.name) for at in range(len(items))), self.name)


async def test_a_pattern_of_the_pages_as_given_is_named() -> None:
    """Also where another order has another one, as with a real model of 135 million parameters."""
    pages = [replace(page, items=page.items[:: 1 if at % 2 else -1]) for at, page in enumerate(MIXED)]

    orders = await order_stability(JudgeCandidate(FirstOnly(), "f"), pages, EvaluationOptions())

    assert orders["pattern"] == "TFFFFFFF"
    assert orders["shuffled"]["stay"] < 0.5


async def test_of_unstable_verdicts_is_said_what_to_do() -> None:
    """At 0.9 or less."""
    part = {"n": 40, "stay": 0.85, "low": 0.8, "high": 0.9}

    lines = order_lines(
        {"shuffled": part, "other_yield": {"n": 0, "stay": None, "low": None, "high": None}, "pattern": ""}
    )

    assert "in another order 0.850 of 40 verdicts stay" in lines
    assert "nothing to compare" in lines
    assert "`LISTENPOST_JUDGE=local`" in lines
