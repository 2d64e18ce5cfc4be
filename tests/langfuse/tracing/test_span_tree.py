"""The tree of one run, and what each observation carries."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext

import pytest

from api.core.context import new_trace_id
from api.core.domain import Outcome, Question, Usage, Verdict
from api.core.items import Assessed, Gathered, Item
from api.core.model_batches import UnusableAnswer
from api.features.archive.search_values import ArchiveAnswer, Retrieval
from api.langfuse.tracing import Tracing
from tests.langfuse.tracing.collector import Collector
from tests.langfuse.tracing.fakes import EvenJudge, ShopSource, run


async def test_one_tree(langfuse: Collector, tracing: Tracing) -> None:
    """One run of three sources is one trace, a span made in a source's thread included."""

    def within() -> None:
        with tracing.client.observation("page", "span"):
            pass

    names = ("reddit", "youtube", "amazon")
    sources = [tracing.source(ShopSource(name, within)) for name in names]

    await run(tracing.observer, sources, tracing.judge(EvenJudge()))
    tracing.shutdown()

    assert len({span.trace for span in langfuse.spans}) == 1
    assert sorted(langfuse.path(span) for span in langfuse.spans) == sorted(
        ["analyze"]
        + [f"analyze > gather.{name}" for name in names]
        + [f"analyze > gather.{name} > comments.{name}" for name in names]
        + [f"analyze > gather.{name} > fetch.{name}" for name in names] * 2
        + [f"analyze > gather.{name} > fetch.{name} > page" for name in names] * 2
        + [f"analyze > gather.{name} > relevance_filter" for name in names] * 2
    )


async def test_a_request_names_its_trace(langfuse: Collector, tracing: Tracing) -> None:
    """The id in a server's answer and log is that of the trace; without one it is any."""

    async def requested() -> str:
        wanted = new_trace_id()
        await run(tracing.observer, [tracing.source(ShopSource())], tracing.judge(EvenJudge()))
        return wanted

    ids = set(await asyncio.gather(requested(), requested()))
    await run(tracing.observer, [tracing.source(ShopSource())], tracing.judge(EvenJudge()))
    tracing.shutdown()

    traces = {span.trace for span in langfuse.spans}
    assert len(traces) == 3
    assert ids < traces


async def test_types_and_values(langfuse: Collector, tracing: Tracing) -> None:
    """Each observation has its type, its input and its output."""
    source = tracing.source(ShopSource())

    await run(tracing.observer, [source], tracing.judge(EvenJudge()), Question("plaud", "recorder"))
    tracing.shutdown()

    root = langfuse.one("analyze")
    assert root.told("type") == "agent"
    assert root.told("input") == {"question": "plaud", "about": "recorder"}
    assert root.told("output")["answer"] == {"summary": "fine"}
    assert root.told("output")["decision"] == "full_report"
    gathered = langfuse.one("gather.reddit")
    assert gathered.told("output")["kept"] == [f"reddit:{n}" for n in (0, 3, 6, 9)]
    assert gathered.told("output")["upstream_calls"] == 6
    first, second = langfuse.named("fetch.reddit")
    assert first.told("type") == "retriever"
    assert first.told("input") == {"query": "plaud", "limit": 5, "window": "all"}
    assert second.told("output") == {"items": 10, "full": False, "notes": []}
    assert langfuse.one("comments.reddit").told("output")["comments"] == 4


async def test_a_search_of_the_archive_is_a_span(langfuse: Collector, tracing: Tracing) -> None:
    """A root of its own, or below what asked for it, with all its figures."""
    answer = ArchiveAnswer(
        query="lid", text="1 stored entry may answer this.", guidance="", hits=(),
        retrieval=Retrieval(vectorMax=0.5, found=7, shown=1),
    )  # fmt: skip
    for question in (None, Question("lid")):
        around = tracing.observer.analysis("chat", question) if question else nullcontext()
        with around, tracing.observer.retrieving("lid") as span:
            span.record(answer)
    tracing.shutdown()

    alone, below = sorted(langfuse.named("search_archive"), key=lambda span: len(langfuse.path(span)))
    assert (langfuse.path(alone), langfuse.path(below)) == (
        "search_archive",
        "chat > search_archive",
    )
    assert alone.told("type") == "retriever"
    assert alone.told("input") == {"query": "lid"}
    retrieval = alone.told("output")
    assert (retrieval["vectorMax"], retrieval["found"]) == (0.5, 7)
    assert set(retrieval) >= {"keywordMax", "combinedTop", "usedRerank", "rerankMs", "cacheHit"}


async def test_a_second_look_has_a_span(langfuse: Collector, tracing: Tracing) -> None:
    """It says whose comments were read, and how many there were."""
    source = tracing.source(ShopSource())

    await source.with_best_comments(ShopSource().item(7))
    tracing.shutdown()

    look = langfuse.one("second_look.reddit")
    assert look.told("input") == {"items": ["reddit:7"]}
    assert look.told("output") == {"comments": 1}


async def test_generation(langfuse: Collector, tracing: Tracing) -> None:
    """The filter's generation carries model, tokens, cost, titles and booleans."""
    await run(tracing.observer, [tracing.source(ShopSource())], tracing.judge(EvenJudge()))
    tracing.shutdown()

    first, second = langfuse.named("relevance_filter")
    assert first.told("type") == "generation"
    assert first.told("model.name") == "gpt-4o-mini-2024-07-18"
    assert first.told("usage_details") == {"input": 100, "output": 10, "total": 110}
    assert first.told("cost_details") == {"total": 0.0002}
    assert first.told("output") == [True, False, False, True, False]
    assert second.told("input")["titles"] == [f"Post {number}" for number in range(5, 10)]
    assert second.told("input")["count"] == 5
    costly = [span for span in langfuse.spans if span.told("cost_details")]
    assert costly == [first, second]


async def test_disputed(langfuse: Collector, tracing: Tracing) -> None:
    """The span of a source names the items whose verdict a second judge is sure is wrong."""
    items = [Item(key=f"shop:{n}", id=str(n), source="shop", title=f"Post {n}") for n in (1, 2)]
    kept, dropped = (Assessed(item, Verdict(item is items[0], "m", disputed=item is items[1])) for item in items)
    with tracing.observer.gathering("shop", "plaud") as span:
        span.record(Gathered("shop", "plaud", Outcome.OK, kept=(kept,), dropped=(dropped,)))
    tracing.shutdown()

    assert langfuse.one("gather.shop").told("output")["disputed"] == ["shop:2"]


async def test_a_useless_answer_has_its_cost(langfuse: Collector, tracing: Tracing) -> None:
    """What a model was paid for stands on its span, although nobody could use it."""
    judge = tracing.judge(EvenJudge(fails=UnusableAnswer("malformed", "", Usage(20, 2, 0.5))))

    gathered, *_ = await run(tracing.observer, [tracing.source(ShopSource())], judge)
    tracing.shutdown()

    generation = langfuse.one("relevance_filter")
    assert generation.told("status_message") == "malformed"
    assert generation.told("usage_details") == {"input": 20, "output": 2, "total": 22}
    assert generation.told("cost_details") == {"total": 0.5}
    assert gathered.usage == Usage(20, 2, 0.5)


async def test_user_and_session(langfuse: Collector, tracing: Tracing) -> None:
    """User and session stand on every span."""
    await run(tracing.observer, [tracing.source(ShopSource())], tracing.judge(EvenJudge()))
    tracing.shutdown()

    people = {(one.attributes["user.id"], one.attributes["session.id"]) for one in langfuse.spans}
    assert people == {("ada", "s-1")}
    assert {span.attributes["langfuse.trace.name"] for span in langfuse.spans} == {"analyze"}


async def test_two_at_once(langfuse: Collector, tracing: Tracing) -> None:
    """Two questions at the same time are two traces that share nothing."""
    judge = tracing.judge(EvenJudge())
    sources = [tracing.source(ShopSource(name)) for name in ("reddit", "youtube")]

    await asyncio.gather(
        run(tracing.observer, [sources[0]], judge, Question("plaud")),
        run(tracing.observer, [sources[1]], judge, Question("oura")),
    )
    tracing.shutdown()

    traces = {root.trace: root.told("input")["question"] for root in langfuse.named("analyze")}
    assert sorted(traces.values()) == ["oura", "plaud"]
    for span in langfuse.spans:
        if span.name.endswith(("reddit", "youtube")):
            assert traces[span.trace] == ("plaud" if "reddit" in span.name else "oura")
    whole = [score for score in langfuse.scores if score["name"] == "decision"]
    assert {score["traceId"] for score in whole} == set(traces)


async def test_trace_id(tracing: Tracing, langfuse: Collector) -> None:
    """The trace id is known inside a question, and nowhere else."""
    assert tracing.observer.trace_id is None
    with tracing.observer.analysis("analyze", Question("plaud")):
        inside = tracing.observer.trace_id
    assert tracing.observer.trace_id is None
    tracing.shutdown()

    assert inside == langfuse.one("analyze").trace


async def test_cancelled(langfuse: Collector, tracing: Tracing) -> None:
    """A cancelled run closes its spans and says so; of its scores there is the outcome."""
    hanging = asyncio.Event()
    source = tracing.source(ShopSource(hangs=hanging))
    task = asyncio.create_task(run(tracing.observer, [source], EvenJudge()))
    await hanging.wait()

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    tracing.shutdown()

    assert {span.name for span in langfuse.spans} == {"analyze", "gather.reddit", "fetch.reddit"}
    for span in langfuse.spans:
        assert (span.told("level"), span.told("status_message")) == ("WARNING", "cancelled")
    assert [score["name"] for score in langfuse.scores] == ["outcome"]
    assert langfuse.scored(langfuse.one("gather.reddit"))["outcome"] == ("CATEGORICAL", "cancelled")


async def test_where_it_goes(langfuse: Collector, tracing: Tracing) -> None:
    """Traces and scores go to the configured server with both keys, and to the environment."""
    await run(tracing.observer, [tracing.source(ShopSource())], tracing.judge(EvenJudge()))
    tracing.shutdown()

    (sent,) = langfuse.authorizations
    assert sent.startswith("Basic pk-lf-test-")
    assert sent.endswith(":sk-lf-0123456789abcdef")
    assert {span.resource["langfuse.environment"] for span in langfuse.spans} == {"default"}
    assert {score["environment"] for score in langfuse.scores} == {"default"}
