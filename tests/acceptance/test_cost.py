"""What an analysis may cost: the sandbox's log, the trace and `--estimate` tell one story.

That a bad first and a good second pass together are a full report is
`tests/services/test_pipeline.py::test_a_thin_first_pass_is_asked_again_in_other_words`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from api.sandbox.server import Sandbox
from api.sandbox.world import LoggedRequest
from tests.interfaces.command import inside
from tests.langfuse.tracing.collector import Collector, collecting, settings_for

POPULAR, PLAIN, ACID = "plaud.ai", "monday", "flamenco vs classical guitarist pricing"
UPSTREAMS = {"reddit", "youtube", "amazon"}
BATCH, CHUNK = 50, 10
"""Items in one judge call and in one grade call at most."""


@dataclass(frozen=True)
class Spent:
    """One analysis, as everybody saw it."""

    depth: str
    answer: dict[str, Any]
    estimate: dict[str, Any]
    sandbox: Sandbox
    langfuse: Collector

    def calls(self, endpoint: str) -> tuple[LoggedRequest, ...]:
        """Requests to one of the model's endpoints."""
        return self.sandbox.requests("openai", endpoint)

    @property
    def attempts(self) -> list[dict[str, Any]]:
        """All attempts, of all variants and sources."""
        return [one for told in self.answer["sources"].values() for one in told["attempts"]]

    @property
    def follow_ups(self) -> int:
        """Tools that the writer called, the report itself not among them."""
        called = {
            call["id"]: call["function"]["name"]
            for entry in self.calls("agent")
            for message in entry.body["messages"]
            for call in message.get("tool_calls") or ()
        }
        return sum(name.startswith("fetch_") for name in called.values())


@pytest.fixture
def langfuse() -> Iterator[Collector]:
    """A Langfuse that takes everything."""
    with collecting() as collector:
        yield collector


@pytest.fixture(params=[(d, q) for d in ("quick", "standard", "deep") for q in (POPULAR, PLAIN)])
def spent(request: pytest.FixtureRequest, sandbox: Sandbox, langfuse: Collector) -> Spent:
    """A popular product and lookalikes, at each depth; the estimate asks nobody."""
    depth, query = request.param
    keys = settings_for(langfuse.url)
    assert keys.langfuse_public_key
    assert keys.langfuse_secret_key
    env = {
        **sandbox.environment,
        "LANGFUSE_BASE_URL": langfuse.url,
        "LANGFUSE_PUBLIC_KEY": keys.langfuse_public_key,
        "LANGFUSE_SECRET_KEY": keys.langfuse_secret_key.get_secret_value(),
        "LISTENPOST_TRACE_FLUSH_TIMEOUT": "60",
    }
    words = ("analyze", query, "--depth", depth, "--format", "json")
    estimate = inside(*words, "--estimate", env=env).json
    assert not sandbox.log
    return Spent(depth, inside(*words, env=env).json, estimate, sandbox, langfuse)


def _asked(entry: LoggedRequest) -> int:
    """How many answers one judge or grade call wants: each number is a required name, and no other is allowed."""
    schema = entry.body["response_format"]["json_schema"]["schema"]
    numbers = [str(number) for number in range(1, len(schema["properties"]) + 1)]
    assert list(schema["properties"]) == schema["required"] == numbers
    assert schema["additionalProperties"] is False
    return len(numbers)


def _assert_judging(spent: Spent) -> None:
    """One call for a batch of 50 new items of an attempt at most, and none for anything else."""
    calls = spent.calls("judge")
    assert 0 < len(calls) <= sum(-(-attempt["new"] // BATCH) for attempt in spent.attempts)
    assert len(calls) <= 2 * len(UPSTREAMS) * len(spent.answer["rewritten_queries"])
    assert sum(_asked(entry) for entry in calls) <= sum(attempt["new"] for attempt in spent.attempts)


def _assert_grading(spent: Spent) -> None:
    """Full chunks of ten and one rest per pass: ceil(new survivors / 10)."""
    sizes = [_asked(entry) for entry in spent.calls("grades")]
    passes = 2 if spent.depth == "standard" and spent.calls("rewrite") else 1
    both = [*spent.answer["items"], *spent.answer["dropped"]]
    assert sum(sizes) == sum(one["score"] is not None for one in both)
    assert max(sizes) <= CHUNK
    assert sum(size < CHUNK for size in sizes) <= passes


def _assert_writing(spent: Spent) -> None:
    """One rewriting at most; one report with one send-back at most, or one explanation."""
    wrote = len(spent.calls("agent")) - spent.follow_ups
    variants = len(spent.answer["rewritten_queries"])
    assert len(spent.calls("rewrite")) == (variants > 1) <= 1
    if spent.answer["decision"] == "insufficient_data":
        assert (wrote, len(spent.calls("explain"))) == (0, 1)
    else:
        assert wrote in (1, 2)
        assert not spent.calls("explain")


def _assert_tracing(spent: Spent) -> None:
    """Generations in the trace are the calls in the log, and each gather is a variant's."""
    named = Counter(span.name for span in spent.langfuse.spans)
    assert named["relevance_filter"] == len(spent.calls("judge"))
    assert named["grade"] in (1, 2)
    assert named["rewrite"] == len(spent.calls("rewrite"))
    assert named["explain"] == len(spent.calls("explain"))
    assert sum(many for name, many in named.items() if name.startswith("chat ")) == len(spent.calls("agent"))
    gathers = sum(named[f"gather.{name}"] for name in UPSTREAMS)
    variants = len(spent.answer["rewritten_queries"])
    assert gathers == variants * len(UPSTREAMS) + spent.follow_ups
    assert {span.trace for span in spent.langfuse.spans} == {spent.answer["trace_id"]}


def _assert_estimating(spent: Spent) -> None:
    """The log lies between the estimate's minimum and maximum, and so does the price."""
    log = spent.sandbox.log
    actual = {
        "upstream_calls": sum(entry.upstream in UPSTREAMS for entry in log),
        "youtube_searches": len(spent.sandbox.requests("youtube", "search")),
        "model_calls": len(spent.sandbox.requests("openai")),
        "usd": spent.answer["cost"]["usd"],
    }
    assert actual["upstream_calls"] == spent.answer["cost"]["upstream_calls"]
    low, high = spent.estimate["minimum"], spent.estimate["maximum"]
    assert set(low) == set(high) == set(actual)
    for name, value in actual.items():
        assert low[name] <= value <= high[name], json.dumps({name: [low, value, high]})


def test_an_analysis_costs_what_the_contract_allows(spent: Spent) -> None:
    """Log, answer, trace and estimate agree, at each depth, with and without a report."""
    _assert_judging(spent)
    _assert_grading(spent)
    _assert_writing(spent)
    _assert_tracing(spent)
    _assert_estimating(spent)


@pytest.mark.parametrize("spent", [("deep", POPULAR), ("standard", ACID)], indirect=True)
def test_the_longer_roads_are_among_those(spent: Spent) -> None:
    """Deep rewrites before, standard after a thin first pass: neither bound is of one query."""
    assert len(spent.calls("rewrite")) == 1
    assert 1 < len(spent.answer["rewritten_queries"]) <= 3
