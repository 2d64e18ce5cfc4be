"""From a question to evidence: passes, counts and the decision."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from api.choices import DepthName
from api.core.domain import Decision, Question, Verdict
from api.core.items import Item
from api.errors import Blocked, ModelError
from api.pipeline.evidence.collection import GAPS, Assessor, Evidence, Steps, collect
from api.pipeline.evidence.crawl import Bounds, Run
from api.pipeline.gate.verdicts import Gate, RunGate
from api.pipeline.question import Scope
from api.settings import (
    AdaptiveSettings,
    DeepDepth,
    Depth,
    QuickDepth,
    RankingSettings,
    RetrievalSettings,
    StandardDepth,
)
from tests.services.fakes import (
    PRICE,
    FakeGrader,
    FakeJudge,
    FakeObserver,
    FakeRewriter,
    FakeSource,
    SourceAnswer,
    item,
)
from tests.services.kit import plain

ASKED = Question("plaud.ai")
DEPTHS: Mapping[DepthName, Depth] = {
    "quick": QuickDepth(),
    "standard": StandardDepth(),
    "deep": DeepDepth(),
}
WORDS = "amber brisk cedar delta ember frost grove haven ivory jolly kite lunar mango noble".split()


def posts(*numbers: int, source: str = "reddit") -> list[Item]:
    """Posts that are no copies of each other."""
    return [item(n, source, title=f"{WORDS[n % 14]} {WORDS[n * 5 % 13]}", place=f"r/{n}") for n in numbers]


@dataclass
class Case:
    """One question with everything it needs."""

    sources: Mapping[str, FakeSource]
    judge: FakeJudge = field(default_factory=lambda: FakeJudge([str(n) for n in range(100)]))
    grader: FakeGrader | None = field(default_factory=FakeGrader)
    rewriter: FakeRewriter = field(default_factory=FakeRewriter)
    fallback: FakeJudge | None = None
    heard: SourceAnswer = field(default_factory=SourceAnswer)
    weights: Mapping[str, float] = field(default_factory=dict)

    async def collect(self, name: DepthName = "standard", **depth: Any) -> Evidence:
        gate = RunGate(Gate(self.judge, self.fallback))
        bounds = Bounds(AdaptiveSettings(), 30)
        run = Run(self.sources, gate, self.grader, bounds, FakeObserver(), self.heard)
        steps = Steps(self.rewriter, Assessor(RankingSettings(), RetrievalSettings(), self.weights))
        chosen = DEPTHS[name].model_copy(update=depth)
        scope = Scope(ASKED, name, chosen, tuple(self.sources), chosen.limit)
        async with asyncio.timeout(120):
            return await collect(run, scope, steps)


def reddit(*numbers: int, **queries: list[Item]) -> dict[str, FakeSource]:
    """One source with these posts, and others for some queries (blanks as underscores)."""
    by_query = {query.replace("_", " "): found for query, found in queries.items()}
    return {"reddit": FakeSource(posts(*numbers), by_query=by_query)}


def ids(found: Evidence) -> list[str]:
    """What survived, in the order of numbers."""
    return sorted((one.item.id for one in found.kept), key=int)


async def test_a_run_that_goes_on_bills_each_question_alone() -> None:
    """
    What an earlier question of the same run graded is not on the next one's bill.
    """
    grader = FakeGrader()
    run = Run(
        reddit(1, 2, pear=posts(3)), RunGate(Gate(FakeJudge(["1", "2", "3"]))), grader,
        Bounds(AdaptiveSettings(), 30), FakeObserver(),
    )  # fmt: skip
    steps = Steps(FakeRewriter(), Assessor(RankingSettings(), RetrievalSettings()))
    depth = DEPTHS["quick"]

    first = await collect(run, Scope(Question("plum"), "quick", depth, ("reddit",), 5), steps)
    second = await collect(run, Scope(Question("pear"), "quick", depth, ("reddit",), 5), steps)

    assert grader.asked == [["1", "2"], ["3"]]
    assert first.usage == second.usage == PRICE + PRICE  # one judge call and one grade call


async def test_enough_survivors_are_a_full_report() -> None:
    """
    Items are graded in one go, counted, and the decision rests on who reached the cutoff.
    """
    case = Case(reddit(0, 1, 2, 3, 4), grader=FakeGrader({"4": 2}))

    found = await case.collect()

    assert (found.decided.decision, ids(found)) == (Decision.FULL, ["0", "1", "2", "3"])
    assert (found.counts.total_scored, found.counts.total_survived) == (5, 4)
    assert [(one.item.id, one.dropped_by) for one in found.dropped] == [("4", "cutoff")]
    assert found.counts.dropped == {"cutoff": 1}
    assert (found.grading, found.judged, case.rewriter.asked) == (True, True, [])
    assert plain(found.figures)["sources"]["reddit"]["in_report"] == 4
    assert found.usage.input_tokens == 20
    assert set(found.timings_ms) == {"evidence"}


async def test_all_sources_of_a_pass_are_graded_in_one_go() -> None:
    """
    Twelve survivors of three sources are one grading, so that chunks of ten are full.
    """
    names = ("reddit", "youtube", "amazon")
    sources = {
        name: FakeSource(posts(*range(at * 4, at * 4 + 4), source=name), name=name) for at, name in enumerate(names)
    }
    case = Case(sources)

    found = await case.collect()

    assert case.grader is not None
    assert [len(asked) for asked in case.grader.asked] == [12]
    assert [one.source for one in found.crawl.sources] == list(names)
    assert case.heard.kinds[-1] == "graded"
    assert case.heard.events[-1].data == {"scored": 12, "survived": 12}


async def test_copies_do_not_count() -> None:
    """
    Two items with one address are one scored item, with and without grading.
    """
    twins = [item(n, title=f"{WORDS[n]} {WORDS[n + 3]}", link="https://example.org/a") for n in (0, 1)]
    judge = FakeJudge(["0", "1", "2"])
    sources = {"reddit": FakeSource([*twins, *posts(2, 3)])}

    graded = await Case(sources, judge).collect()
    plain = await Case(sources, judge, grader=None).collect()

    assert (graded.counts.total_scored, graded.counts.total_survived) == (2, 2)
    assert (plain.counts.total_scored, plain.counts.total_survived) == (3, 2)
    assert plain.counts.dropped == {"duplicate": 1, "gate": 1}
    assert (plain.grading, plain.decided.decision) == (False, Decision.SHORT)


async def test_what_is_unfit_is_not_counted_as_scored() -> None:
    """
    A post of a bot is no item that the gate saw, and the note on the dropped says so.
    """
    sources = {"reddit": FakeSource([item(9, title="Weekly", unfit="written by a bot"), item(1)])}

    found = await Case(sources, FakeJudge(["1"]), grader=None).collect()

    assert (found.counts.total_scored, found.counts.total_survived) == (1, 1)
    assert found.counts.dropped == {"unfit": 1}
    assert "1 post was dropped: deleted, without a text, or written by a bot." in found.decided.notes


async def test_without_grading_the_judged_items_count() -> None:
    """
    Scored is then every distinct item that the gate saw, and no grading is announced.
    """
    case = Case(reddit(*range(8)), FakeJudge(["0", "1", "2", "3"]), grader=None)

    found = await case.collect()

    assert (found.counts.total_scored, found.counts.total_survived) == (8, 4)
    assert (found.decided.decision, "graded" in case.heard.kinds) == (Decision.FULL, False)


async def test_a_thin_first_pass_is_asked_again_in_other_words() -> None:
    """
    A bad first and a good second pass together are a full report; only new survivors are graded.
    """
    sources = reddit(0, 1, plaud_note=posts(1, 2, 3), plaud_recorder=posts(4, 5))
    case = Case(sources, grader=FakeGrader({"1": 1}))
    case.rewriter = FakeRewriter(("plaud note", "plaud recorder"))

    found = await case.collect()

    assert (found.decided.decision, ids(found)) == (Decision.FULL, ["0", "2", "3", "4", "5"])
    assert case.grader is not None
    assert case.grader.asked == [["0", "1"], ["2", "3", "4", "5"]]
    assert found.crawl.queries == ("plaud.ai", "plaud note", "plaud recorder")
    assert found.counts.total_scored == 6
    gap = f"{sources['reddit'].by_query['plaud note'][0].title}: why"  # type: ignore[union-attr]
    assert case.rewriter.asked == [(3, (posts(0)[0].title, gap))]
    assert set(case.judge.questions) == {ASKED}


async def test_rewriting_sees_ten_gaps_at_most() -> None:
    """
    Titles of what the gate dropped are gaps too, up to a number.
    """
    case = Case(reddit(*range(14)), FakeJudge(), rewriter=FakeRewriter())

    await case.collect()

    ((variants, gaps),) = case.rewriter.asked
    assert (variants, len(gaps)) == (3, GAPS)
    assert gaps[0] == posts(0)[0].title


async def test_other_spellings_are_not_asked_again() -> None:
    """
    `plaud ai` is no new query; when nothing new is left the first pass stands.
    """
    case = Case(reddit(0), rewriter=FakeRewriter(("Plaud AI", "...")))

    found = await case.collect(retry_variants=3)

    assert len(case.sources["reddit"].plans) == 1
    assert (found.decided.decision, found.crawl.queries) == (Decision.INSUFFICIENT, ("plaud.ai",))
    assert found.usage.input_tokens == 30


@pytest.mark.parametrize("name", ["quick", "deep"])
async def test_only_standard_asks_a_second_time(name: DepthName) -> None:
    """
    Quick stays with one query, deep has asked its variants already.
    """
    case = Case(reddit())

    found = await case.collect(name)

    assert found.decided.decision is Decision.INSUFFICIENT
    assert [variants for variants, _ in case.rewriter.asked] == ([3] if name == "deep" else [])


async def test_no_second_pass_when_nobody_could_be_asked() -> None:
    """
    B71: rewriting is not paid for when every source failed.
    """
    case = Case({"reddit": FakeSource(trouble={0: Blocked("reddit")})})

    found = await case.collect()

    assert (found.decided.decision, found.counts.answered) == (Decision.INSUFFICIENT, 0)
    assert case.rewriter.asked == []
    assert (found.judged, found.counts.wanted) == (True, 1)


async def test_a_rewriter_that_stumbles_leaves_the_original_query() -> None:
    """
    Its defect costs the other words alone.
    """
    case = Case(reddit(1, 2, 3, 4, 5), rewriter=FakeRewriter(("pear",), gate=KeyError("oops")))

    found = await case.collect("deep", query_variants=3)

    assert found.crawl.queries == (ASKED.text,)
    assert len(found.kept) == 5


async def test_deep_asks_the_original_while_it_rewrites() -> None:
    """
    The first search and the rewriting wait for each other, so neither comes after the other.
    """
    together = asyncio.Barrier(2)
    case = Case({"reddit": FakeSource(posts(0), trouble={0: together})})
    case.rewriter = FakeRewriter(("plaud note",), gate=together)

    found = await case.collect("deep")

    assert [plan.query for plan in case.sources["reddit"].plans] == ["plaud.ai", "plaud note"]
    assert found.crawl.queries == ("plaud.ai", "plaud note")


async def test_variants_keep_the_first_order_and_are_judged_against_the_question() -> None:
    """
    Merged results start with the original query's, known items cost no verdict, grade or comment.
    """
    sources = reddit(3, 1, plaud_note=posts(2, 3), plaud_pin=posts(1, 0))
    case = Case(sources, rewriter=FakeRewriter(("plaud note", "plaud pin")))

    found = await case.collect("deep")

    assert [one.item.id for one in found.crawl.kept] == ["3", "1", "2", "0"]
    assert set(case.judge.questions) == {ASKED}
    assert sorted(number for asked in case.judge.asked for number in asked) == ["0", "1", "2", "3"]
    assert case.grader is not None
    assert case.grader.asked == [["3", "1", "2", "0"]]
    assert sorted(number for some in sources["reddit"].commented for number in some) == [
        "0", "1", "2", "3",
    ]  # fmt: skip
    assert found.crawl.upstream_calls == 7
    assert all(one.item.comments for one in found.kept)


async def test_a_variant_that_fails_leaves_the_others() -> None:
    """
    B76: one query's failure is a note beside what the original found.
    """
    case = Case({"reddit": FakeSource(posts(0, 1), trouble={1: Blocked("reddit")})})
    case.rewriter = FakeRewriter(("plaud note",))

    found = await case.collect("deep")

    assert ids(found) == ["0", "1"]
    assert "one query failed: blocked by a captcha, login wall or 403 page" in found.crawl.sources[0].notes


async def test_a_degraded_gate_does_not_stop_the_path() -> None:
    """
    B20, B25: grades still remove what is off topic, and the decision names the gate's failure.
    """
    broken = FakeJudge(trouble={0: ModelError("timeout")})
    case = Case(reddit(0, 1, 2, 3, 4), broken, FakeGrader({"4": 1}))

    found = await case.collect()

    assert (found.decided.decision, ids(found)) == (Decision.FULL, ["0", "1", "2", "3"])
    assert found.counts.gate_degraded == (("reddit", "timeout"),)
    assert "no answer in time" in found.decided.notes[0]
    assert found.judged


async def test_grades_that_are_defaults_drop_nothing() -> None:
    """
    B25: with the grader down the kept items decide, and the counts say how many are defaults.
    """
    case = Case(reddit(0, 1, 2, 3), grader=FakeGrader(dict.fromkeys("0123", 3), defaulted=True))

    found = await case.collect()

    assert (found.decided.decision, found.counts.defaulted) == (Decision.FULL, 4)
    assert found.judged


@pytest.mark.parametrize(
    ("fallback", "grader", "judged"),
    [
        (None, FakeGrader(defaulted=True), False),
        (None, None, False),
        (FakeJudge(["0"], name="local-1"), None, True),
        (None, FakeGrader(), True),
    ],
)
async def test_unjudged_is_known_when_no_model_answered(
    fallback: FakeJudge | None, grader: FakeGrader | None, judged: bool
) -> None:
    """
    B20: with the gate down, a stand-in or a real grade is a judgement, defaults are none.
    """
    broken = FakeJudge(trouble={0: ModelError("no_key")})

    found = await Case(reddit(0, 1, 2, 3), broken, grader, fallback=fallback).collect()

    assert found.judged is judged


async def test_nothing_kept_is_judged_and_costs_no_grade() -> None:
    """
    B19: when the gate drops everything there is an answer, and nobody is asked for grades.
    """
    case = Case(reddit(0, 1), FakeJudge())

    found = await case.collect()

    assert (found.judged, found.counts.total_scored) == (True, 0)
    assert case.grader is not None
    assert case.grader.asked == []
    assert [one.dropped_by for one in found.dropped] == ["gate", "gate"]


async def test_the_writer_sees_the_best_of_the_evidence() -> None:
    """
    What is shown is bounded by the depth, best first.
    """
    case = Case(reddit(0, 1, 2, 3), grader=FakeGrader({"2": 5}))

    found = await case.collect(max_evidence=2, min_sources_full_report=2)

    assert (len(found.shown), found.shown[0].item.id) == (2, "2")
    assert len(found.kept) == 4


async def test_deep_looks_twice_at_borderline_items() -> None:
    """
    With a best grade of 3, what holds the question's words comes first in deep only.
    """
    named = item(1, title="my plaud.ai after a month", place="r/1")
    sources = {"reddit": FakeSource([*posts(0), named])}

    def case() -> Case:
        return Case(sources, grader=FakeGrader({"0": 3, "1": 3}))

    deep = await case().collect("deep")
    standard = await case().collect("standard")

    assert (deep.ranked.used_rerank, [one.item.id for one in deep.kept]) == (True, ["1", "0"])
    assert [one.item.id for one in standard.kept] == ["0", "1"]


async def test_source_weights_reach_the_ranking() -> None:
    """
    Of two items with one grade, the one from the weightier source leads.
    """
    sources = {
        "reddit": FakeSource(posts(0)),
        "youtube": FakeSource(posts(1, source="youtube"), name="youtube"),
    }

    heavy = await Case(sources, weights={"youtube": 1.2}).collect()
    even = await Case(sources).collect()

    assert [one.item.source for one in heavy.kept] == ["youtube", "reddit"]
    assert [one.item.source for one in even.kept] == ["reddit", "youtube"]
    assert all(one.verdict == Verdict(True, "fake-1") for one in heavy.kept)
