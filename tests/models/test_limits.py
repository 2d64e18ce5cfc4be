"""How much a model is shown and may say, and how much of its words is taken: to the character."""

from __future__ import annotations

import json
from typing import Any

import pytest

from api.core.domain import Question
from api.models.model_calls import OpenAIExplainer, OpenAIGrader, OpenAIJudge, OpenAIRewriter
from api.models.model_client import ModelClient
from api.reports.insufficient_data import Shortfall
from tests.models.items import NONCE, fixed, item
from tests.models.model_server import ModelServer, says

PLAUD = Question("Plaud Note")
LONG = "w" * 3000
SENTENCE = "What was read was looked at with great care. "


def fenced(kind: str, text: str) -> str:
    """A line of the prompt."""
    return f"<q-{NONCE} {kind}>{text}</q-{NONCE}>"


def budget(model: ModelServer) -> int:
    """Tokens that the last answer might have had."""
    return int(model.asked[-1]["max_completion_tokens"])


async def test_a_grader_is_shown_so_much(model: ModelServer, client: ModelClient) -> None:
    """300 characters of a title, 1,500 of a text, 300 of a comment; 512 tokens and 300 an item."""
    model.replies = [says('{"grades": []}')]

    await OpenAIGrader(client, fence=fixed).grade(PLAUD, [item(LONG, LONG, LONG)] * 2)

    shown = model.user.splitlines()
    assert shown[1:3] == [fenced("1 title", "w" * 300), fenced("1", "w" * 1500)]
    assert shown[3] == fenced("1 comment", "w" * 300)
    assert budget(model) == 512 + 2 * 300


@pytest.mark.parametrize(("length", "kept"), [(300, 300), (301, 300)])
async def test_an_explained_grade_is_cut(model: ModelServer, client: ModelClient, length: int, kept: int) -> None:
    """300 characters of an explanation are taken, and five aspects of at most 30."""
    aspects = ["a" * 30, "b" * 31, *"cdefg"]
    grade: dict[str, Any] = {"score": 4, "explanation": "e" * length, "sentiment": 0}
    model.replies = [says(json.dumps({"grades": [grade | {"aspects": aspects, "quote": ""}]}))]

    (taken,) = (await OpenAIGrader(client).grade(PLAUD, [item("t")])).grades

    assert len(taken.explanation) == kept
    assert taken.aspects == ("a" * 30, "c", "d", "e", "f")
    schema = model.asked[-1]["response_format"]["json_schema"]["schema"]
    assert schema["$defs"]["grade"]["properties"]["aspects"]["maxItems"] == 5


async def test_a_rewriter_is_shown_so_much(model: ModelServer, client: ModelClient) -> None:
    """Twenty gaps of 200 characters; queries of 120 are taken, cut to 100; 512 tokens and 40 a query."""
    model.replies = [says(json.dumps({"queries": ["q" * 121, "plaud " * 20]}))]

    rewrites = await OpenAIRewriter(client, fence=fixed).rewrite(PLAUD, 3, [LONG] * 21)

    assert model.user.splitlines()[2:] == [fenced("seen", "w" * 200)] * 20
    assert budget(model) == 512 + 2 * 40
    assert rewrites.queries == ("Plaud Note", ("plaud " * 17)[:100].strip())


async def test_an_explainer_is_shown_so_much(model: ModelServer, client: ModelClient) -> None:
    """200 characters a line; three suggestions of 120 characters are taken; 1,200 tokens."""
    suggestions = ["s" * 121, "t" * 120, "What is new?", "What is it?", "What does it cost?"]
    written = {"explanation_text": SENTENCE * 20, "suggestions": suggestions}
    model.replies = [says(json.dumps(written))]
    shortfall = Shortfall(PLAUD, (LONG,), (LONG,), ((LONG, LONG),))

    explanation = await OpenAIExplainer(client, fence=fixed).explain(shortfall)

    line = "w" * 200
    assert model.user.splitlines()[1:] == [
        fenced("query", line),
        fenced("source", line),
        fenced("kept", "0"),
        fenced("dropped", f"{line} | reason: {line}"),
    ]
    assert budget(model) == 1200
    assert explanation.suggestions == ("t" * 120, "What is new?", "What is it?")


async def test_a_judge_may_say_so_much(model: ModelServer, client: ModelClient) -> None:
    """512 tokens and eight for each item."""
    model.replies = [says('{"relevant": [true, true]}')]

    await OpenAIJudge(client).judge(PLAUD, [item("a"), item("b")], "reddit")

    assert budget(model) == 512 + 2 * 8
