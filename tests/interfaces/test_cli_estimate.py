"""`--estimate`: bounds that real runs in the sandbox stay within."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from api.bootstrap import estimates
from api.reports.report_writing import WRITER_REQUESTS
from api.sandbox.server import Sandbox
from api.services.product import Ask
from api.settings import load
from tests.interfaces.command import Here

SOURCES = ("reddit", "youtube", "amazon")
RARE, POPULAR, AMBIGUOUS, LOOKALIKE = (
    "Zorvexolin Q9", "plaud.ai", "Bolt app", "flamenco vs classical guitarist pricing",
)  # fmt: skip
SPOKEN_OF = ("plaud.ai", "Notion", "Ember mug", "Oura ring", "Rabbit r1", "Whoop")


def assert_within(told: dict[str, Any], upstream: Sandbox, answer: dict[str, Any]) -> None:
    """What the sandbox was asked, and what that cost, lies between minimum and maximum."""
    low, high = told["minimum"], told["maximum"]
    assert all(low[name] <= told["likely"][name] <= high[name] for name in low)
    calls = sum(len(upstream.requests(name)) for name in SOURCES)
    models = len(upstream.requests("openai"))
    searches = len(upstream.requests("youtube", "search"))
    assert low["upstream_calls"] <= calls <= high["upstream_calls"]
    assert low["model_calls"] <= models <= high["model_calls"]
    assert low["youtube_searches"] <= searches <= high["youtube_searches"]
    if "cost" in answer:
        assert answer["cost"]["upstream_calls"] == calls
        assert low["usd"] <= answer["cost"]["usd"] <= high["usd"]


@pytest.mark.parametrize("query", [RARE, POPULAR, AMBIGUOUS, LOOKALIKE, '"Zorvexolin Q9"'])
@pytest.mark.parametrize("depth", ["quick", "standard", "deep"])
def test_an_analysis_stays_within_its_bounds(here: Here, upstream: Sandbox, depth: str, query: str) -> None:
    """Popular, rare, ambiguous, off topic and quoted, at every depth, by the sandbox's log."""
    told = here("analyze", query, "--depth", depth, "--estimate", "--format", "json")
    assert not upstream.log
    answer = here("analyze", query, "--depth", depth, "--format", "json").json

    assert told.code == 0
    assert_within(told.json, upstream, answer)


@pytest.mark.parametrize("query", [AMBIGUOUS, LOOKALIKE])
def test_a_second_look_stays_within_its_bounds(
    here: Here, upstream: Sandbox, query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With `LISTENPOST_SECOND_LOOK` a judge's call more per source and query may be needed."""
    off = here("analyze", query, "--estimate", "--format", "json").json["maximum"]
    monkeypatch.setenv("LISTENPOST_SECOND_LOOK", "true")
    told = here("analyze", query, "--estimate", "--format", "json")
    answer = here("analyze", query, "--format", "json").json

    assert_within(told.json, upstream, answer)
    assert told.json["maximum"]["model_calls"] - off["model_calls"] == 4 * 3
    assert told.json["maximum"]["upstream_calls"] == off["upstream_calls"]
    places = answer["sources"].values()
    assert any("second look" in note for place in places for note in place["notes"])


@pytest.mark.parametrize("limit", ["1", "60"])
def test_another_limit_has_other_bounds(here: Here, upstream: Sandbox, limit: str) -> None:
    """More than a page, and a single item."""
    words = ("analyze", POPULAR, "--limit", limit, "--depth", "quick", "--format", "json")
    told = here(*words, "--estimate")

    assert_within(told.json, upstream, here(*words).json)


@pytest.mark.parametrize("depth", ["quick", "standard"])
@pytest.mark.parametrize("source", SOURCES)
def test_a_fetch_stays_within_its_bounds(here: Here, upstream: Sandbox, source: str, depth: str) -> None:
    """One source, one query; grading beyond quick."""
    words = ("fetch", source, POPULAR, "--depth", depth, "--format", "json")
    told = here(*words, "--estimate")
    answer = here(*words).json

    assert_within(told.json, upstream, answer)
    other = [name for name in SOURCES if name != source]
    assert not any(upstream.requests(name) for name in other)


def test_the_archive_costs_no_request(here: Here, upstream: Sandbox) -> None:
    """What is stored is judged like anything else, and nobody is asked for it."""
    here("analyze", POPULAR, "--depth", "quick")
    before = {name: len(upstream.requests(name)) for name in (*SOURCES, "openai")}
    words = ("fetch", "archive", POPULAR, "--format", "json")
    told = here(*words, "--estimate").json
    answer = here(*words).json

    assert answer["outcome"] == "ok"
    assert told["minimum"]["upstream_calls"] == told["maximum"]["upstream_calls"] == 0
    assert all(len(upstream.requests(name)) == before[name] for name in SOURCES)
    models = len(upstream.requests("openai")) - before["openai"]
    assert told["minimum"]["model_calls"] <= models <= told["maximum"]["model_calls"]


def test_the_least_is_really_reached(here: Here, upstream: Sandbox) -> None:
    """Asked, and nothing there: the minimum is what that takes."""
    words = ("fetch", "youtube", "qqqqzzzz", "--format", "json")
    told = here(*words, "--estimate").json
    answer = here(*words).json

    assert answer["outcome"] == "empty"
    assert len(upstream.requests("youtube")) == told["minimum"]["upstream_calls"] == 1
    assert len(upstream.requests("openai")) == told["minimum"]["model_calls"] == 0


@pytest.mark.parametrize("depth", ["quick", "standard"])
def test_the_likely_figures_are_near(here: Here, upstream: Sandbox, depth: str) -> None:
    """Half to twice of what a question takes of which the sample data has enough posts."""
    words = ("analyze", POPULAR, "--depth", depth, "--format", "json")
    likely = here(*words, "--estimate").json["likely"]
    cost = here(*words).json["cost"]
    models = len(upstream.requests("openai"))

    assert 0.5 <= likely["upstream_calls"] / cost["upstream_calls"] <= 2
    assert 0.5 <= likely["model_calls"] / models <= 2
    assert 0.4 <= likely["usd"] / cost["usd"] <= 2.5  # texts of the sample data are short


def _bounds(ask: Ask) -> dict[str, Any]:
    estimate = estimates.estimate(load(), ask)
    return {"minimum": estimate.least, "maximum": estimate.most}


def test_only_what_is_configured_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Live with a YouTube key alone: no other source, and no model without its key."""
    monkeypatch.setenv("LISTENPOST_MODE", "live")
    monkeypatch.setenv("YOUTUBE_API_KEY", "a-key")
    alone = _bounds(Ask(POPULAR, "quick"))
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    told = _bounds(Ask(POPULAR, "quick"))
    nobody = _bounds(Ask(POPULAR, "quick", ("reddit",)))

    assert alone["maximum"] == {
        "upstream_calls": 12, "youtube_searches": 1, "model_calls": 0, "usd": 0.0,
    }  # fmt: skip
    assert told["minimum"]["upstream_calls"] == 1
    assert told["maximum"]["model_calls"] > WRITER_REQUESTS
    assert nobody["minimum"] == nobody["maximum"]
    assert nobody["maximum"]["upstream_calls"] == nobody["maximum"]["model_calls"] == 0


def test_a_local_judge_costs_no_gate_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """`LISTENPOST_JUDGE=local` with a key: the model grades and writes only."""
    monkeypatch.setenv("LISTENPOST_MODE", "live")
    monkeypatch.setenv("YOUTUBE_API_KEY", "a-key")
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    judged = _bounds(Ask(POPULAR, "quick"))
    monkeypatch.setenv("LISTENPOST_JUDGE", "local")
    ungated = _bounds(Ask(POPULAR, "quick"))

    assert judged["maximum"]["model_calls"] - ungated["maximum"]["model_calls"] == 4


def test_without_refetch_and_comments_less_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """`LISTENPOST_MIN_YIELD=0` and no comments: token and search alone."""
    monkeypatch.setenv("LISTENPOST_MIN_YIELD", "0")
    monkeypatch.setenv("LISTENPOST_COMMENTS_PER_ITEM", "0")
    estimate = estimates.fetch_estimate(load(), Ask(POPULAR, "quick", ("reddit",)))

    assert estimate.least["upstream_calls"] == estimate.most["upstream_calls"] == 2
    assert estimate.likely["upstream_calls"] == 2


def test_an_unknown_price_is_called_unknown(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    """B101: it is not zero."""
    monkeypatch.setenv("LISTENPOST_MODE", "live")
    monkeypatch.setenv("YOUTUBE_API_KEY", "a-key")
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    monkeypatch.setenv("LISTENPOST_AGENT_MODEL", "nobody-s-model")

    assert "usd: 0.0000 to unknown, likely unknown" in here("analyze", POPULAR, "--estimate").out


@pytest.mark.parametrize("depth", ["quick", "standard"])
def test_what_is_likely_is_near_what_questions_cost(here: Here, upstream: Sandbox, depth: str) -> None:
    """Six questions that many speak of cost together what was likely, give or take 30 %."""
    likely = cost = 0.0
    for query in SPOKEN_OF:
        words = ("analyze", query, "--depth", depth, "--format", "json")
        likely += here(*words, "--estimate").json["likely"]["usd"]
        answer = here(*words).json
        cost += answer["cost"]["usd"]
        assert answer["decision"] == "full_report"

    assert 0.7 * cost <= likely <= 1.3 * cost


def test_text_names_every_bound_and_the_sandbox(here: Here) -> None:
    """Four lines with least, most and what is likely, and that nothing is spent."""
    ended = here("analyze", POPULAR, "--estimate")

    names = [line.partition(":")[0] for line in ended.out.splitlines()]
    assert names == [
        "upstream_calls", "youtube_searches", "model_calls", "usd", "Offline sandbox",
    ]  # fmt: skip
    assert all(re.search(r": \S+ to \S+, likely \S+$", line) for line in ended.out.splitlines()[:4])
    assert ended.err == ""


def test_small_talk_costs_nothing(here: Here) -> None:
    """It is answered without asking anybody."""
    told = here("analyze", "hello", "--estimate", "--format", "json").json

    assert told["minimum"] == told["maximum"]
    assert set(told["maximum"].values()) == {0}


def test_own_items_ask_no_source(here: Here, upstream: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """Model calls alone, by the number of items."""
    lines = [json.dumps({"title": f"plaud note {n}", "body": "battery"}) for n in range(60)]
    Path("own.jsonl").write_text("\n".join(lines))
    words = ("analyze", "plaud", "--items", "own.jsonl", "--format", "json")
    told = here(*words, "--estimate").json
    answer = here(*words).json

    assert told["maximum"]["upstream_calls"] == 0
    assert told["minimum"]["model_calls"] >= 2
    assert_within(told, upstream, answer)
