"""What the scores of the product's traces say, and what a trace without words lets out."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest

from api import bootstrap
from api.bootstrap import chat as chat_of
from api.core.ports import REPORT_WORDS
from api.core.text import fold
from api.sandbox.server import Sandbox
from api.sandbox.world import Options
from api.services.product import Ask, Product, analyze
from tests.langfuse.tracing.collector import Collector, collecting, settings_for
from tests.langfuse.tracing.trees import bill

Traced = Callable[..., AbstractAsyncContextManager[tuple[Product, Collector]]]
RUN = {
    "decision", "items_judged", "items_kept", "items_cited", "support_rate", "upstream_calls",
    "run_cost_usd", "run_refetched", "run_fail_open",
}  # fmt: skip
SOUND = {"run_yield", "cost_per_kept_item_usd"}
"""Of runs in which no gate failed open."""
QUESTION = "plaud.ai"


@pytest.fixture
def traced(monkeypatch: pytest.MonkeyPatch) -> Traced:
    """Builds the product against a sandbox, traced to a collector."""

    @asynccontextmanager
    async def build(faults: Sequence[str] = (), **variables: str) -> AsyncIterator[tuple[Product, Collector]]:
        options = Options(search_quota=10_000, reddit_limit=10_000)
        with Sandbox.start(options=options, faults=faults) as sandbox, collecting() as langfuse:
            keys = {
                "LANGFUSE_BASE_URL": langfuse.url,
                "LANGFUSE_PUBLIC_KEY": settings_for("").langfuse_public_key or "",
                "LISTENPOST_TRACE_FLUSH_TIMEOUT": "60",
            }
            for name, value in (sandbox.environment | keys | variables).items():
                monkeypatch.setenv(name, value)
            product = bootstrap.build(bootstrap.load_settings())
            try:
                yield product, langfuse
            finally:
                await product.aclose()

    return build


@pytest.mark.parametrize(
    ("fault", "open_gates"),
    [
        ((), 0),
        (("openai.judge=wrong_count@1x1",), 1),
        (("openai.judge=notjson",), 3),
        (("openai.grades=notjson@1x1",), 0),
        (("openai.agent=prose@1x1",), 0),
        (("openai.support=wrong_count@1x1",), 0),
    ],
)
async def test_the_bill_is_the_sum(traced: Traced, fault: Sequence[str], open_gates: int) -> None:
    """Spans, score and report name one sum, what nobody could use included."""
    async with traced(fault) as (product, langfuse):
        report = await analyze(product, Ask(QUESTION))

    usd, tokens = bill(langfuse.spans)
    scores = {name: value for name, (_, value) in langfuse.scored().items()}
    assert tokens == report.cost.tokens > 0
    assert report.cost.usd is not None
    assert report.cost.usd == scores["run_cost_usd"] == pytest.approx(usd, abs=1e-6)
    unchecked = {"support_rate"} if "openai.support" in str(fault) else set()
    assert set(scores) == (RUN | (set() if open_gates else SOUND)) - unchecked
    assert scores["decision"] == report.decision
    assert scores["items_kept"] == len(report.items)
    assert scores["items_cited"] == report.cited > 0
    assert scores.get("support_rate") == report.support.rate
    assert scores["upstream_calls"] == report.cost.upstream_calls
    gathers = [span for span in langfuse.spans if span.name.startswith("gather.")]
    degraded = [s for s in gathers if langfuse.scored(s)["fail_open"] == ("BOOLEAN", 1.0)]
    assert scores["run_fail_open"] == bool(open_gates)
    assert len(degraded) == open_gates
    for span in gathers:
        assert ("relevance_yield" in langfuse.scored(span)) == (span not in degraded)
    sound = {name: row for name, row in report.sources.items() if row.gate.status == "ok"}
    kept, judged = sum(row.kept for row in sound.values()), scores["items_judged"]
    assert judged == sum(round(row.kept / (row.yield_ratio or 1)) for row in sound.values())
    if not open_gates:
        assert scores["run_yield"] == kept / judged
        assert scores["cost_per_kept_item_usd"] == report.cost.usd / len(report.items)


async def test_a_place_that_is_away(traced: Traced) -> None:
    """Its outcome is a score; the others carry the run."""
    async with traced(["amazon=captcha"]) as (product, langfuse):
        report = await analyze(product, Ask(QUESTION))

    outcome = {"outcome": ("CATEGORICAL", "blocked")}
    assert langfuse.scored(langfuse.one("gather.amazon")) == outcome
    sources = [report.sources[name] for name in ("reddit", "youtube")]
    assert langfuse.scored()["run_yield"][1] == pytest.approx(
        sum(row.kept for row in sources) / langfuse.scored()["items_judged"][1]
    )


async def test_a_turn_and_a_tool(traced: Traced) -> None:
    """Each has its bill, how it ended under a name of its own, and its figures."""
    async with traced() as (product, langfuse):
        chat = chat_of(bootstrap.load_settings(), product)
        turn = await chat.answer(chat.begin(), "What do people say about plaud.ai?")
        heard = await product.listen("reddit", Ask("oura ring", "quick"), None)

    whole = [score for score in langfuse.scores if "observationId" not in score]
    of_turn, of_tool = (
        {score["name"]: score["value"] for score in whole if score["traceId"] == trace}
        for trace in (turn.trace_id, heard.fetched.trace_id)
    )
    usd, tokens = bill(langfuse.spans)
    assert tokens == sum(u.input_tokens + u.output_tokens for u in (turn.usage, heard.usage))
    assert usd == pytest.approx(of_turn["run_cost_usd"] + of_tool["run_cost_usd"], abs=1e-6)
    assert of_turn["turn_outcome"] == turn.outcome == "answered"
    assert of_turn["items_cited"] == len(turn.citations) > 0
    assert "decision" not in of_turn.keys() | of_tool.keys()
    assert of_tool["items_kept"] == len(heard.fetched.items)
    assert of_tool["run_yield"] == heard.fetched.yield_ratio


async def test_a_report_knows_where_its_parts_came_about(traced: Traced) -> None:
    """Each item has the span that judged it first, later searches too; findings the writer's."""
    async with traced() as (product, langfuse):
        report = await analyze(product, Ask(QUESTION, "deep"))

    spans = {span.id: span for span in langfuse.spans}
    seen = dict(report.observations)
    (writer,) = (span for span, keys in seen.items() if keys == REPORT_WORDS)
    assert spans[writer].name == "invoke_agent report"
    del seen[writer]
    keys = [key for held in seen.values() for key in held]
    assert len(keys) == len(set(keys))
    assert {item.key for item in report.items} | {item.key for item in report.dropped} <= set(keys)
    for span, held in seen.items():
        output = spans[span].told("output")
        assert set(held) <= {*output["kept"], *output["dropped"]}
    assert len(seen) > len(report.sources)


@pytest.mark.parametrize("content", ["true", "false"])
async def test_no_word_leaves(traced: Traced, content: str) -> None:
    """Of an analysis and a turn: no title, sentence, passage or query in any byte sent."""
    async with traced(LISTENPOST_TRACE_CONTENT=content) as (product, langfuse):
        report = await analyze(product, Ask(QUESTION))
        chat = chat_of(bootstrap.load_settings(), product)
        turn = await chat.answer(chat.begin(), "What do people say about the oura ring?")

    texts = [report.query, report.summary, turn.text, "oura"]
    texts += [item.title for item in report.items] + [item.title for item in report.dropped]
    for finding in report.findings:
        texts += [finding.text, *(passage.passage for passage in finding.evidence)]
    words = {text for text in map(fold, texts) if text}
    sent = fold(b"".join(langfuse.bodies).decode("utf-8", "replace"))
    read = {text for text in words if text in sent}
    assert len(words) > 50
    assert len(read) > 20 if content == "true" else not read
    assert langfuse.scored(langfuse.one("analyze")) == {}
    assert {score["traceId"] for score in langfuse.scores} == {report.trace_id, turn.trace_id}
    assert all(span.told("usage_details") for span in langfuse.named("relevance_filter"))
