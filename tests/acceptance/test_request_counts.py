"""Upstream quota is money: what the request logs show."""

from __future__ import annotations

import json

from api.core.domain import Question
from api.core.items import Item
from api.sandbox.server import Sandbox
from api.services import product
from api.services.product import Ask, Product, SourceAnswer
from tests.interfaces.command import inside


async def _fetch(built: Product, source: str, query: str, limit: int | None = None) -> SourceAnswer:
    return await product.fetch(built, source, Ask(query, "quick", limit=limit))


def test_youtube_refetches_at_ten_in_the_sandbox() -> None:
    """`fetch youtube plaud.ai` shows attempts of 5 and 10 and that it was refetched."""
    ended = inside("fetch", "youtube", "plaud.ai", "--format", "json")

    assert ended.code == 0
    assert ended.json["refetched"] is True
    assert [attempt["limit"] for attempt in ended.json["attempts"]] == [5, 10]


async def test_youtube_spends_one_search_on_a_refetch(built: Product, sandbox: Sandbox) -> None:
    """The refetch is served from the page of 50 that the first search brought."""
    heard = await _fetch(built, "youtube", "plaud.ai")

    assert heard.gathered.refetched
    assert len(sandbox.requests("youtube", "search")) == 1


async def test_reddit_spends_one_search_on_a_refetch_up_to_fifty(built: Product, sandbox: Sandbox) -> None:
    """A page of 100 serves a first fetch of 25 and its refetch of 50."""
    heard = await _fetch(built, "reddit", "Bolt app", 25)

    assert heard.gathered.refetched
    assert len(sandbox.requests("reddit", "search")) == 1


async def test_only_new_items_are_judged_again(built: Product, sandbox: Sandbox) -> None:
    """The second judge call asks for as many booleans as the second fetch brought new items."""
    heard = await _fetch(built, "youtube", "plaud.ai")

    asked = [
        len(entry.body["response_format"]["json_schema"]["schema"]["required"])
        for entry in sandbox.requests("openai", "judge")
        if isinstance(entry.body, dict)
    ]
    assert asked == [attempt.new for attempt in heard.gathered.attempts]
    assert len(asked) == 2


async def test_comments_are_read_for_kept_items_only(built: Product, sandbox: Sandbox) -> None:
    """Each comment request is for a video that the gate kept."""
    heard = await _fetch(built, "youtube", "plaud.ai")

    asked = {entry.query["videoId"] for entry in sandbox.requests("youtube", "comments")}
    assert asked == {one.item.id for one in heard.gathered.kept}
    assert heard.gathered.dropped


def test_the_same_command_runs_against_any_server(sandbox: Sandbox) -> None:
    """With base URLs and keys set, the command is live: real requests, no sample mark."""
    ended = inside("analyze", "Oura", "--format", "json", env=dict(sandbox.environment))

    assert ended.code == 0
    assert ended.json["sample"] is False
    assert {entry.upstream for entry in sandbox.log} >= {"reddit", "youtube", "amazon", "openai"}
    assert json.dumps(ended.json).count("sandbox") == 0


async def test_a_filter_call_of_five_costs_at_most_500_tokens(built: Product) -> None:
    """Input tokens as the response's usage counts them, the schema included."""
    body = "The battery lasts for days and the summaries are good, but the plan costs. " * 3
    items = [
        Item(key=f"x:{n}", id=str(n), source="reddit", title=f"Plaud Note after {n} months of use",
             body=body)
        for n in range(5)
    ]  # fmt: skip

    gated = await built.gate.judge(Question("plaud.ai"), items, "reddit")

    assert 300 <= gated.usage.input_tokens <= 500
