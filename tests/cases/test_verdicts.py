"""What a model answers on the wire, and what the filter makes of it, through the real client."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from api.models.model_calls import OpenAIJudge
from api.models.model_client import ModelClient
from api.services.tools import Filtered, relevance_filter
from tests.models.model_server import ModelServer, Reply, client_of, fails, says, serving, verdicts

FENCED = "```json\n[true,false,true]\n```"
PROSE = "Here are my verdicts: [true,false]. The second is about another firm, Acme."
LAST_TWO = [False] * 10 + [True] * 2


@pytest.fixture
async def model() -> AsyncIterator[ModelServer]:
    """A server without a script yet."""
    async with serving() as server:
        yield server


@pytest.fixture
async def client(model: ModelServer) -> AsyncIterator[ModelClient]:
    """The real client of that server."""
    async with client_of(model) as made:
        yield made


async def filtered(client: ModelClient, items: list[dict[str, Any]], query: str = "mug") -> Filtered[dict[str, Any]]:
    """The relevance filter with the real judge."""
    return await relevance_filter(query, items, "reddit", judge=OpenAIJudge(client))


def numbered(count: int) -> list[dict[str, Any]]:
    """So many different posts."""
    return [{"title": f"Post {number}"} for number in range(count)]


@pytest.mark.parametrize(
    ("reply", "count", "kept"),
    [
        pytest.param(says(FENCED), 3, [0, 2], id="B01 fenced"),
        pytest.param(says(PROSE), 2, [0], id="B02 prose around one array"),
        pytest.param(says('{"results":[true,false]}'), 2, [0], id="B09 another field"),
        pytest.param(says(verdicts(LAST_TWO)), 12, [10, 11], id="B16 beyond the ninth"),
        pytest.param(says(verdicts([False] * 4)), 4, [], id="B19 none relevant"),
    ],
)
async def test_an_answer_that_counts(
    model: ModelServer, client: ModelClient, reply: Reply, count: int, kept: list[int]
) -> None:
    """B01, B02, B09, B16, B19: exactly these items stay, the yield is their share, status ok."""
    model.replies, items = [reply], numbered(count)

    result = await filtered(client, items)

    assert result == ([items[at] for at in kept], len(kept) / count)
    assert (result.status, result.reason) == ("ok", None)


@pytest.mark.parametrize(
    ("reply", "count", "why"),
    [
        pytest.param(says("[true,false] or [false,true]"), 2, "malformed", id="B02 two arrays"),
        pytest.param(says("[true,false,true]"), 5, "count_mismatch", id="B04 too few"),
        pytest.param(says("[true,false,true]"), 2, "count_mismatch", id="B05 too many"),
        pytest.param(says('["false","true"]'), 2, "malformed", id="B06 text"),
        pytest.param(says('["False","no"]'), 2, "malformed", id="B06 other words"),
        pytest.param(says("Not relevant (NO)"), 1, "malformed", id="B07 explained"),
        pytest.param(says("ДА"), 1, "malformed", id="B07 other language"),
        pytest.param(says('{"1":true,"2":"false"}'), 2, "malformed", id="B09 by number"),
        pytest.param(says('{"relevant":false}'), 1, "malformed", id="B09 one object"),
        pytest.param(says("[1,0,null]"), 3, "malformed", id="B10 numbers"),
        pytest.param(says("[0.9,0.1,true]"), 3, "malformed", id="B10 fractions"),
        pytest.param(says("[true,false,tr", "length"), 10, "truncated", id="B12 cut"),
        pytest.param(says(verdicts([True] * 9), "length"), 9, "truncated", id="B12 whole but cut"),
        pytest.param(says(None, refusal="I cannot"), 2, "refused", id="B13 refusal"),
        pytest.param(says(None, "content_filter"), 2, "filtered", id="B13 filtered"),
        pytest.param(says("", choices=[]), 2, "filtered", id="B13 no choice"),
        pytest.param(says(None), 2, "malformed", id="B14 null"),
        pytest.param(says("Great! Ask me anything."), 2, "malformed", id="B15 chit-chat"),
        pytest.param(says("[]"), 3, "count_mismatch", id="B18 empty array"),
        pytest.param(says(" \n "), 3, "malformed", id="B18 white space"),
        pytest.param(fails(401), 3, "unauthorized", id="B20 refused key"),
    ],
)
async def test_an_answer_that_does_not_count(
    model: ModelServer, client: ModelClient, reply: Reply, count: int, why: str
) -> None:
    """B02 to B20: everything passes, the status says degraded and why, and nobody asks again."""
    model.replies, items = [reply], numbered(count)

    result = await filtered(client, items)

    assert result == (items, 1.0)
    assert (result.status, result.reason) == ("degraded", why)
    assert len(model.asked) == 1


async def test_seventy_items_are_two_calls_with_room_for_their_answers(model: ModelServer, client: ModelClient) -> None:
    """B11: each call is for 50 at most, and its budget grows with what must be answered."""

    def answer(request: dict[str, Any]) -> Reply:
        schema = request["response_format"]["json_schema"]["schema"]
        return says(verdicts([True] * len(schema["properties"])))

    model.respond = answer
    result = await filtered(client, numbered(70))

    assert (len(result[0]), result.status) == (70, "ok")
    budgets = sorted(request["max_completion_tokens"] for request in model.asked)
    assert budgets[1] - budgets[0] == 30 * 8
    assert budgets[0] > 20 * len("false,")


async def test_a_cut_answer_is_not_asked_for_again(model: ModelServer, client: ModelClient) -> None:
    """B11: a length stop degrades all seventy items, and no chunk is sent a second time."""
    model.replies, items = [says("[true,false,", "length")], numbered(70)

    result = await filtered(client, items)

    assert result == (items, 1.0)
    assert (result.status, result.reason) == ("degraded", "truncated")
    sent = [request["messages"][1]["content"] for request in model.asked]
    assert len(sent) == len(set(sent)) <= 2


@pytest.mark.parametrize(
    "item",
    [
        {"title": None, "body": "warm"},
        {"title": "Mug", "body": 123},
        {"title": "Mug", "body": {}},
        {"body": ["warm"]},
        {},
        {"title": "cut \ud83d", "content": "a\x00b"},
    ],
)
async def test_odd_fields_are_judged(model: ModelServer, client: ModelClient, item: dict[str, Any]) -> None:
    """B22, B58: null, numbers, containers, missing keys and broken text reach the model as text."""
    model.replies, whole = [says(verdicts([False, True]))], {"title": "Whole"}

    result = await filtered(client, [item, whole])

    assert result == ([whole], 0.5)
    assert json.dumps(model.asked).count("surrogate") == 0
    assert "\ud83d" not in model.user


async def test_no_items_ask_nobody(model: ModelServer, client: ModelClient) -> None:
    """B24: nothing to judge is an empty list, 1.0 and no call."""
    result = await filtered(client, [])

    assert (result, result.status) == (([], 1.0), "skipped")
    assert not model.asked


async def test_quotes_and_braces_in_a_query_are_text(model: ModelServer, client: ModelClient) -> None:
    """B56: the query stands fenced in the prompt as it was typed, on one line."""
    model.replies = [says(verdicts([True]))]

    result = await filtered(client, numbered(1), 'McDonald\'s "best" {x} \\n <b>')

    assert result.status == "ok"
    assert ' question>McDonald\'s "best" {x} \\n &lt;b&gt;</q-' in model.user
