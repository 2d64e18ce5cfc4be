"""The check of a model server: what it asks, what it names, and what it says to set."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from api.core.domain import Question, Usage
from api.core.items import Item
from api.errors import ModelError
from api.models.model_client import ModelClient
from api.models.server_check import UNREAD, check_server
from api.settings import ModelSettings
from tests.models.model_server import ModelServer, Reply, fails, says

MODELS = ModelSettings(filter_model="some-7b", agent_model="some-7b")
GRADE = {"score": 4, "explanation": "", "sentiment": 0, "aspects": [], "quote": ""}


async def drafted(question: Question, items: Sequence[Item]) -> tuple[str, Usage]:
    """A writer that works."""
    return "by tool call", Usage(2000, 200, 0.0, 1)


async def undrafted(question: Question, items: Sequence[Item]) -> tuple[str, Usage]:
    """A writer that is too slow."""
    raise ModelError("timeout")


def answering(asked: dict[str, Any], pattern: str = "") -> Reply:
    """A model that reads, or with a pattern one that does not."""
    name = asked["response_format"]["json_schema"]["name"]
    user = asked["messages"][1]["content"]
    if name == "grades":
        return says(json.dumps({"1": GRADE}))
    if name == "support":
        return says(json.dumps({"1": True, "2": bool(pattern)}))
    lines = [line for line in user.splitlines() if line.partition(" ")[2][:1].isdigit()]
    flags = [sign == "T" for sign in pattern] if pattern else ["mug" in line.lower() for line in lines]
    return says(json.dumps({str(number): flag for number, flag in enumerate(flags, 1)}))


async def test_a_model_that_reads_is_ok(model: ModelServer, client: ModelClient) -> None:
    """Everything that will be asked was asked, at its size, and nothing is to be set."""
    model.respond = answering

    outcome, detail, remedies = await check_server(client, MODELS, drafted)

    assert (outcome, remedies) == ("ok", "")
    assert detail.startswith(
        "`some-7b` judged four items in two orders, 8 of 8 right; graded an item; "
        "checked two sentences, both right; `some-7b` drafted a report, asked by tool call; "
    )
    assert "tokens a second" in detail
    assert [asked["response_format"]["json_schema"]["name"] for asked in model.asked] == [
        "relevance", "relevance", "grades", "support",
    ]  # fmt: skip


@pytest.mark.parametrize("pattern", ["TFTF", "TTTT", "FFFF", "TTFF", "TFFF"])
async def test_a_fixed_pattern_is_named(model: ModelServer, client: ModelClient, pattern: str) -> None:
    """Whatever it is: of two orders a pattern can get one half right."""
    model.respond = lambda asked: answering(asked, pattern)

    outcome, detail, remedies = await check_server(client, MODELS, drafted)

    assert outcome == "broken"
    assert f"{UNREAD}: it answered {pattern} and {pattern}" in detail
    assert "4 of 8 right" in detail
    assert "use another `LISTENPOST_FILTER_MODEL`, or `LISTENPOST_JUDGE=local`" in remedies
    assert "`LISTENPOST_SUPPORT_MODEL`" in remedies


async def test_a_slow_server_is_told_its_settings(model: ModelServer, client: ModelClient) -> None:
    """Not its address, which is right."""
    model.replies = [Reply(hang=True)]
    slow = MODELS.model_copy(update={"scoring_timeout": 0.2})

    outcome, _, remedies = await check_server(client, slow, drafted)

    assert outcome == "timed_out"
    assert remedies.startswith("the server is slow: raise `LISTENPOST_SCORING_TIMEOUT`, which is 0.2 s, and set")
    assert "`LISTENPOST_MODEL_CONCURRENCY=1`" in remedies
    assert len(model.asked) == 1


async def test_a_slow_report_names_its_own_setting(model: ModelServer, client: ModelClient) -> None:
    """Judging is fast enough."""
    model.respond = answering

    outcome, detail, remedies = await check_server(client, MODELS, undrafted)

    assert outcome == "timed_out"
    assert "the report failed: no answer in time" in detail
    assert remedies.startswith("the server is slow: raise `LISTENPOST_REPORT_TIMEOUT`, which is 120 s, and set")

    single = MODELS.model_copy(update={"model_concurrency": 1})
    assert (await check_server(client, single, undrafted))[2].endswith("which is 120 s")


async def test_ten_grades_that_would_come_too_late_are_foreseen(model: ModelServer, client: ModelClient) -> None:
    """One comes in time; ten take five times as long at least."""
    held = asyncio.Event()

    def respond(asked: dict[str, Any]) -> Reply:
        if asked["response_format"]["json_schema"]["name"] != "grades":
            return answering(asked)
        asyncio.get_running_loop().call_later(0.3, held.set)
        return replace(answering(asked), hold=held)

    model.respond = respond
    slow = MODELS.model_copy(update={"scoring_timeout": 1.2})

    _, detail, remedies = await check_server(client, slow, drafted)

    assert "graded an item" in detail
    assert re.search(r"the server is slow: 10 grades take \d+ s or more, raise `LISTENPOST_SCORING_TIMEOUT`", remedies)


async def test_a_small_context_is_measured(model: ModelServer, client: ModelClient) -> None:
    """How many items fit, and that a larger context is wanted."""
    words = "request (1337 tokens) exceeds the available context size (1024 tokens), try increasing it"
    model.respond = lambda asked: (
        fails(400, message=words) if len(asked["messages"][1]["content"]) > 1200 else answering(asked)
    )

    outcome, detail, remedies = await check_server(client, MODELS, drafted)

    assert outcome == "broken"
    assert "grading failed: the question does not fit the model's context" in detail
    assert "its context of 1024 tokens holds pages of 4 items" in detail
    assert remedies == "give the server a larger context than 1024 tokens, see docs/models.md"


async def test_what_cannot_be_reached_costs_one_call(model: ModelServer, client: ModelClient) -> None:
    """With the outcome of that call."""
    model.replies = [fails(401)]

    outcome, detail, _ = await check_server(client, MODELS, drafted)

    assert outcome == "refused"
    assert "check `OPENAI_API_KEY`" in detail
    assert len(model.asked) == 1
