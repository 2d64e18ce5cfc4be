"""Each score: its name, its level, its value, and when there is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import pytest

from api.core.domain import Agreement, Attempt, Outcome, Question, Usage, Verdict
from api.core.items import Assessed, Gathered, Item
from api.core.ports import Facts, Judgement, Observer
from api.errors import ModelError, QuotaExhausted
from api.langfuse.tracing import Tracing, start
from tests.langfuse.tracing.collector import Collector, settings_for
from tests.langfuse.tracing.fakes import EvenJudge, ShopSource, run

PLAUD = Question("plaud")
ASKED = {"decision", "items_kept", "upstream_calls", "run_cost_usd"}
"""Scores of any run in which somebody was asked at a known price."""
RUN = {
    "decision": ("CATEGORICAL", "full_report"),
    "items_judged": ("NUMERIC", 20.0),
    "items_kept": ("NUMERIC", 8.0),
    "upstream_calls": ("NUMERIC", 12.0),
    "run_cost_usd": ("NUMERIC", 0.0004),
    "cost_per_kept_item_usd": ("NUMERIC", 0.00005),
    "run_yield": ("NUMERIC", 0.4),
    "run_refetched": ("BOOLEAN", 1.0),
    "run_fail_open": ("BOOLEAN", 0.0),
}


def gathered(kept: int, dropped: int, unfit: int = 0, source: str = "shop") -> Gathered:
    """What a source gave, soundly judged."""
    items = [
        Item(key=f"{source}:{n}", id=str(n), source=source, title=f"Post {n}") for n in range(kept + dropped + unfit)
    ]
    return Gathered(
        source, "plaud", Outcome.OK,
        kept=tuple(Assessed(item, Verdict(True)) for item in items[:kept]),
        dropped=tuple(
            Assessed(item, Verdict(False), dropped_by="gate" if n < dropped else "unfit")
            for n, item in enumerate(items[kept:])
        ),
        status="ok",
    )  # fmt: skip


def record(observer: Observer, facts: Facts, *searches: Gathered, name: str = "analyze") -> None:
    """A question that ended so."""
    with observer.analysis(name, PLAUD) as span:
        for found in searches:
            with observer.gathering(found.source, found.query) as gathering:
                gathering.record(found)
        span.record(facts)


async def test_a_run_with_refetches(langfuse: Collector, tracing: Tracing) -> None:
    """A source's scores stand on its span, a call's on its generation, the run's on the trace."""
    names = ("reddit", "youtube")
    sources = [tracing.source(ShopSource(name)) for name in names]

    await run(tracing.observer, sources, tracing.judge(EvenJudge()))
    tracing.shutdown()

    for name in names:
        span = langfuse.one(f"gather.{name}")
        assert langfuse.scored(span) == {
            "outcome": ("CATEGORICAL", "ok"),
            "relevance_yield": ("NUMERIC", 0.4),
            "disputed_share": ("NUMERIC", 0.0),
            "refetched": ("BOOLEAN", 1.0),
            "refetch_gain": ("NUMERIC", 2.0),
            "fail_open": ("BOOLEAN", 0.0),
        }
        for mark in langfuse.marked(span).values():
            assert mark == {"scope": "source", "source": name}
    calls = langfuse.named("relevance_filter")
    assert [langfuse.scored(call) for call in calls] == [{"gate_yield": ("NUMERIC", 0.4)}] * 4
    marks = sorted(langfuse.marked(call)["gate_yield"]["source"] for call in calls)
    assert marks == ["reddit", "reddit", "youtube", "youtube"]
    assert langfuse.scored() == RUN
    assert all(mark == {"scope": "run", "kind": "analyze"} for mark in langfuse.marked().values())
    assert {score["traceId"] for score in langfuse.scores} == {langfuse.one("analyze").trace}


async def test_a_failed_judge(langfuse: Collector, tracing: Tracing) -> None:
    """It leaves its reason, and nothing that a mean of yields or of prices could count."""
    judge = tracing.judge(EvenJudge(fails=ModelError("timeout", "secret detail")))

    await run(tracing.observer, [tracing.source(ShopSource())], judge)
    tracing.shutdown()

    generation, span = langfuse.one("relevance_filter"), langfuse.one("gather.reddit")
    assert (generation.told("level"), generation.told("status_message")) == ("ERROR", "timeout")
    assert langfuse.scored(generation) == {}
    assert (span.told("level"), span.told("status_message")) == ("WARNING", "fail_open: timeout")
    assert langfuse.scored(span) == {
        "outcome": ("CATEGORICAL", "ok"),
        "refetched": ("BOOLEAN", 0.0),
        "fail_open": ("BOOLEAN", 1.0),
        "fail_open_reason": ("CATEGORICAL", "timeout"),
    }
    scored = langfuse.scored()
    assert set(scored) == ASKED | {"run_refetched", "run_fail_open", "items_judged"}
    assert (scored["run_fail_open"], scored["items_judged"]) == (("BOOLEAN", 1.0), ("NUMERIC", 0.0))
    comments = {s["name"]: s["comment"] for s in langfuse.scores if "comment" in s}
    assert comments == {"fail_open": "timeout", "run_fail_open": "timeout"}


async def test_a_source_that_does_not_answer(langfuse: Collector, tracing: Tracing) -> None:
    """Its outcome is all that is known of it; it enters no rate, neither its own nor the run's."""
    source = tracing.source(ShopSource("youtube", fails=QuotaExhausted("youtube")))

    await run(tracing.observer, [source], tracing.judge(EvenJudge()))
    tracing.shutdown()

    for name in ("fetch.youtube", "gather.youtube"):
        span = langfuse.one(name)
        ended = (span.told("level"), span.told("status_message"))
        assert ended == ("ERROR", "quota_exhausted")
    assert langfuse.scored(span) == {"outcome": ("CATEGORICAL", "quota_exhausted")}
    assert set(langfuse.scored()) == ASKED


async def test_one_of_two_fails(langfuse: Collector, tracing: Tracing) -> None:
    """The run's yield is that of the sources that answered."""
    fails = ShopSource("youtube", fails=QuotaExhausted("youtube"))
    sources = [tracing.source(ShopSource()), tracing.source(fails)]

    await run(tracing.observer, sources, tracing.judge(EvenJudge()))
    tracing.shutdown()

    scored = langfuse.scored()
    assert scored["run_yield"] == ("NUMERIC", 0.4)
    assert scored["items_judged"] == ("NUMERIC", 10.0)


def test_what_is_unfit_was_not_judged(langfuse: Collector, tracing: Tracing) -> None:
    """It counts neither for the source nor for the run."""
    record(tracing.observer, Facts("ok", 1, 1, 0.0), gathered(1, 3, unfit=4))
    tracing.shutdown()

    assert langfuse.scored(langfuse.one("gather.shop"))["relevance_yield"] == ("NUMERIC", 0.25)
    assert langfuse.scored()["run_yield"] == ("NUMERIC", 0.25)
    assert langfuse.scored()["items_judged"] == ("NUMERIC", 4.0)


def test_an_item_of_two_queries_counts_once(langfuse: Collector, tracing: Tracing) -> None:
    """The yield of the run is over distinct items."""
    record(tracing.observer, Facts("ok", 2, 2, 0.0), gathered(1, 1), gathered(1, 3))
    tracing.shutdown()

    assert langfuse.scored()["items_judged"] == ("NUMERIC", 4.0)


def test_a_refetch_that_fails_opens_no_gate(langfuse: Collector, tracing: Tracing) -> None:
    """Nothing went unjudged: the first pass stands, and so does its yield."""
    attempts = (Attempt(4, 4, 4, 1, 1, "ok"), Attempt(8, 0, 0, 0, 1, "degraded", "timed_out"))
    found = replace(gathered(1, 3), attempts=attempts, refetched=True)
    record(tracing.observer, Facts("ok", 1, 1, 0.0), found)
    tracing.shutdown()

    assert langfuse.scored(langfuse.one("gather.shop")) == {
        "outcome": ("CATEGORICAL", "ok"),
        "relevance_yield": ("NUMERIC", 0.25),
        "disputed_share": ("NUMERIC", 0.0),
        "refetched": ("BOOLEAN", 1.0),
        "refetch_gain": ("NUMERIC", 0.0),
        "fail_open": ("BOOLEAN", 0.0),
    }
    assert langfuse.scored()["run_fail_open"] == ("BOOLEAN", 0.0)


def test_what_the_local_judge_decided_is_a_share(langfuse: Collector, tracing: Tracing) -> None:
    """Of the judged posts; disputes are a share of the model's own verdicts, and what it promised is on the span."""
    found = gathered(1, 3)
    local = replace(found.dropped[0], verdict=Verdict(False, "local-3", 0.1))
    disputed = replace(found.dropped[1], verdict=Verdict(False, "m", disputed=True))
    agreement = Agreement(0.95, 0.9, 4, 1, 150, Usage(85, 4, 0.1))
    found = replace(found, dropped=(local, disputed, found.dropped[2]), agreement=agreement)
    record(tracing.observer, Facts("ok", 1, 1, 0.0), found)
    tracing.shutdown()

    span = langfuse.one("gather.shop")
    scores = langfuse.scored(span)
    assert (scores["local_share"], scores["disputed_share"]) == (("NUMERIC", 0.25), ("NUMERIC", pytest.approx(1 / 3)))
    assert span.told("output")["agreement"]["sample"] == 150


@pytest.mark.parametrize(
    ("facts", "cost"),
    [
        (Facts("ok", 4, 1, None), {}),
        (Facts("ok", 0, 1, 0.2), {"run_cost_usd": 0.2}),
        (Facts("ok", 4, 1, 0.2), {"run_cost_usd": 0.2, "cost_per_kept_item_usd": 0.05}),
        (Facts("ok", 4, 1, 0.0), {"run_cost_usd": 0.0, "cost_per_kept_item_usd": 0.0}),
    ],
)
def test_cost(langfuse: Collector, tracing: Tracing, facts: Facts, cost: dict[str, float]) -> None:
    """An unknown price is no score, and nothing kept has no price."""
    record(tracing.observer, facts, gathered(4, 4))
    tracing.shutdown()

    values = {name: value for name, (_, value) in langfuse.scored().items() if "cost" in name}
    assert values == cost


@pytest.mark.parametrize(("name", "ending"), [("analyze", "decision"), ("chat", "turn_outcome"), ("fetch", None)])
def test_nobody_was_asked(langfuse: Collector, tracing: Tracing, name: str, ending: str | None) -> None:
    """Then how it ended is all there is to say; zeros would spoil every mean."""
    record(tracing.observer, Facts("clarify", 0, 0, 0.0), name=name)
    tracing.shutdown()

    assert langfuse.scored() == ({ending: ("CATEGORICAL", "clarify")} if ending else {})


def test_a_tool_has_no_decision(langfuse: Collector, tracing: Tracing) -> None:
    """How it ended is the outcome at its source."""
    record(tracing.observer, Facts("ok", 1, 1, 0.0), gathered(1, 1), name="fetch")
    tracing.shutdown()

    assert langfuse.scored(langfuse.one("gather.shop"))["outcome"] == ("CATEGORICAL", "ok")
    assert set(langfuse.scored()) == {
        "items_judged", "items_kept", "upstream_calls", "run_cost_usd", "cost_per_kept_item_usd",
        "run_yield", "run_refetched", "run_fail_open",
    }  # fmt: skip


def test_what_a_report_cites_and_carries(langfuse: Collector, tracing: Tracing) -> None:
    """Support and citations are scores where there is something to check and to cite."""
    record(tracing.observer, Facts("ok", 4, 1, 0.0, support_rate=0.75, items_cited=3))
    tracing.shutdown()

    assert langfuse.scored()["support_rate"] == ("NUMERIC", 0.75)
    assert langfuse.scored()["items_cited"] == ("NUMERIC", 3.0)


@dataclass
class Careless:
    """Answers with these verdicts, whatever it is asked."""

    flags: Sequence[object]
    name: str = "gpt-4o-mini"

    async def judge(self, question: Question, items: Sequence[Item], source: str) -> Judgement:
        verdicts = tuple(Verdict(flag) for flag in self.flags)  # type: ignore[arg-type]
        return Judgement(verdicts, self.name, Usage())


@pytest.mark.parametrize("flags", [[], [True], [True, "false"], [True, True, True]])
async def test_an_answer_that_is_none_has_no_yield(
    langfuse: Collector, tracing: Tracing, flags: Sequence[object]
) -> None:
    """What the gate rejects, and items pass unjudged for, is not compared by model."""
    items = [entry.item for entry in gathered(2, 0).kept]
    await tracing.judge(Careless(flags)).judge(PLAUD, items, "shop")
    tracing.shutdown()

    assert langfuse.one("relevance_filter")
    assert langfuse.scores == []


async def test_a_judge_on_labelled_items_has_no_yield(langfuse: Collector, tracing: Tracing) -> None:
    """What is chosen to measure a judge says nothing of what places hold."""
    items = [entry.item for entry in gathered(2, 0).kept]
    await tracing.judge(EvenJudge(), scored=False).judge(PLAUD, items, "shop")
    tracing.shutdown()

    assert langfuse.one("relevance_filter")
    assert langfuse.scores == []


def test_what_is_written_again_takes_the_place_of_the_first(langfuse: Collector, tracing: Tracing) -> None:
    """Langfuse knows a score by id, name and day: those are of the span, whenever it is written."""
    facts = Facts("ok", 1, 1, 0.0)
    with tracing.observer.analysis("analyze", PLAUD) as span:
        span.record(facts)
        span.record(facts)
    tracing.shutdown()

    for name in ("decision", "items_kept"):
        first, again = (score for score in langfuse.scores if score["name"] == name)
        assert first == again
        assert datetime.fromisoformat(first["timestamp"]).utcoffset() is not None


def test_older_names(langfuse: Collector) -> None:
    """With the setting those of a trace stand beside the new, marked as the run's."""
    tracing = start(settings_for(langfuse.url, trace_old_scores=True))
    assert tracing is not None
    record(tracing.observer, Facts("ok", 1, 1, 0.0), gathered(1, 1), name="fetch")
    record(tracing.observer, Facts("clarify", 0, 0, 0.0), name="chat")
    tracing.shutdown()

    fetch, chat = (langfuse.one(name).trace for name in ("fetch", "chat"))
    whole = [score for score in langfuse.scores if "observationId" not in score]
    values = {score["name"]: score["value"] for score in whole if score["traceId"] == fetch}
    older = {
        "relevance_yield": 0.5, "refetched": 0.0, "refetch_gain": 0.0, "fail_open": 0.0,
        "decision": "ok",
    }  # fmt: skip
    assert older.items() <= values.items()
    assert values["run_yield"] == 0.5
    assert {s["name"] for s in whole if s["traceId"] == chat} == {"turn_outcome", "decision"}
    assert {score["metadata"]["scope"] for score in whole} == {"run"}
