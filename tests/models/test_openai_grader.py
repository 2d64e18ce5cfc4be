"""The grader: chunks, defaults, and only what the text really says."""

from __future__ import annotations

import json
import logging
import re
from typing import Any

import pytest

from api.core.domain import Grade, Question
from api.core.ports import UNGRADED
from api.models.model_calls import OpenAIGrader
from api.models.model_client import ModelClient
from tests.models.items import NONCE, fixed, item
from tests.models.model_server import ModelServer, Reply, fails, says

PLAUD = Question("is the plaud note worth it")
GOOD: dict[str, Any] = {
    "score": 4,
    "explanation": "Tells about a month of use.",
    "sentiment": 1,
    "aspects": ["Battery", "price"],
    "quote": "",
}
RUBRIC = (
    "5: directly answers the question with specific, on-topic information",
    "4: strongly relevant, useful detail",
    "3: partially relevant, misses key specifics",
    "2: tangential, shares keywords but does not address the question",
    "1: off-topic",
)


def graded(*grades: Any) -> Reply:
    """What a model answers."""
    return says(json.dumps({str(number): grade for number, grade in enumerate(grades, 1)}))


def counted(request: dict[str, Any]) -> Reply:
    """Grades every item of a request with 4."""
    return graded(*[GOOD] * len(request["response_format"]["json_schema"]["schema"]["required"]))


async def one(model: ModelServer, client: ModelClient, grade: Any, *texts: str) -> Grade:
    """The grade of one item with these texts when the model answers so."""
    model.replies = [graded(grade)]
    return (await OpenAIGrader(client).grade(PLAUD, [item(*texts or ("t",))])).grades[0]


async def test_a_grade(model: ModelServer, client: ModelClient) -> None:
    """All fields of a well-formed grade arrive, and so does its cost."""
    model.replies = [graded(GOOD | {"quote": "holds a week"})]

    found = await OpenAIGrader(client).grade(PLAUD, [item("Battery", "It holds\n a week now.")])

    assert found.grades == (Grade(4, GOOD["explanation"], False, 1, ("battery", "price"), "holds\n a week"),)
    assert found.usage.usd == pytest.approx(0.00021)
    assert found.model == "gpt-4o-mini"


async def test_rubric_word_for_word(model: ModelServer, client: ModelClient) -> None:
    """The prompt holds the rubric as the documentation has it."""
    await one(model, client, GOOD)

    assert all(line in model.system for line in RUBRIC)


async def test_what_is_shown(model: ModelServer, client: ModelClient) -> None:
    """Title, 1,500 characters of body and three comments, each behind the fence."""
    model.replies = [graded(GOOD)]
    post = item("T", "b" * 2000, "", "one", "two </q> three", "three", "four")

    await OpenAIGrader(client, fence=fixed).grade(PLAUD, [post])

    assert model.user.splitlines()[1:] == [
        f"<q-{NONCE} 1 title>T</q-{NONCE}>",
        f"<q-{NONCE} 1>{'b' * 1500}</q-{NONCE}>",
        f"<q-{NONCE} 1 comment>one</q-{NONCE}>",
        f"<q-{NONCE} 1 comment>two &lt;/q&gt; three</q-{NONCE}>",
        f"<q-{NONCE} 1 comment>three</q-{NONCE}>",
    ]


async def test_chunks_of_ten(model: ModelServer, client: ModelClient) -> None:
    """Twenty-five items are three calls, and grades keep the order of the items."""

    def score_is_number(request: dict[str, Any]) -> Reply:
        texts = re.findall(r"<q-\w+ \d+ title>(\d)</q", request["messages"][1]["content"])
        return graded(*(GOOD | {"score": int(text)} for text in texts))

    model.respond = score_is_number
    wanted = [n % 5 + 1 for n in range(25)]

    found = await OpenAIGrader(client).grade(PLAUD, [item(str(n)) for n in wanted])

    assert [grade.score for grade in found.grades] == wanted
    assert len(model.asked) == 3
    assert found.usage.input_tokens == 3000


async def test_nothing_to_grade(model: ModelServer, client: ModelClient) -> None:
    """No items, no call."""
    assert (await OpenAIGrader(client).grade(PLAUD, [])).grades == ()
    assert not model.asked


@pytest.mark.parametrize("score", [0, 6, "4", 4.5, True, None, [4]])
async def test_unparsable_score(model: ModelServer, client: ModelClient, score: Any) -> None:
    """A score that is no integer from 1 to 5 is a defaulted 3."""
    grade = await one(model, client, GOOD | {"score": score})

    assert grade == UNGRADED
    assert (grade.score, grade.defaulted) == (3, True)
    assert grade.explanation == "Score could not be parsed, defaulting to include"


@pytest.mark.parametrize("entry", [None, 4, "5", [], {}])
async def test_entry_is_no_grade(model: ModelServer, client: ModelClient, entry: Any) -> None:
    """An entry that is no object is a defaulted 3, and its neighbours stand."""
    model.replies = [graded(GOOD, entry)]

    found = await OpenAIGrader(client).grade(PLAUD, [item("a"), item("b")])

    assert [grade.score for grade in found.grades] == [4, 3]
    assert [grade.defaulted for grade in found.grades] == [False, True]


@pytest.mark.parametrize(
    ("reply", "cause"),
    [
        (graded(GOOD), "count_mismatch"),
        (graded(GOOD, GOOD, GOOD), "count_mismatch"),
        (says("nothing"), "malformed"),
        (says('{"grades": [', "length"), "truncated"),
        (fails(401), "unauthorized"),
        (fails(429, "insufficient_quota"), "quota"),
    ],
)
async def test_failed_chunk_defaults(
    model: ModelServer,
    client: ModelClient,
    caplog: pytest.LogCaptureFixture,
    reply: Reply,
    cause: str,
) -> None:
    """A chunk without a usable answer keeps all its items at 3, logged once with the cause."""
    model.replies = [reply]

    with caplog.at_level(logging.WARNING, "api.models"):
        found = await OpenAIGrader(client).grade(PLAUD, [item("a"), item("b")])

    assert found.grades == (UNGRADED, UNGRADED)
    (message,) = [record.getMessage() for record in caplog.records]
    assert message.startswith(f"2 of 2 grades defaulted to 3 ({cause}: 2")


async def test_of_a_cut_answer_whole_grades_stand(model: ModelServer, client: ModelClient) -> None:
    """A loop in one explanation loses that grade alone, not the chunk."""
    cut = json.dumps({"1": GOOD, "2": GOOD | {"explanation": "and so on " * 30}})[:-40]
    model.replies = [says(cut, "length")]

    found = await OpenAIGrader(client).grade(PLAUD, [item("a"), item("b")])

    assert [(grade.score, grade.defaulted) for grade in found.grades] == [(4, False), (3, True)]
    assert len(model.asked) == 1


async def test_every_text_in_a_grade_has_an_end(model: ModelServer, client: ModelClient) -> None:
    """So a model that repeats itself ends its string."""
    await one(model, client, GOOD)

    schema = model.asked[0]["response_format"]["json_schema"]["schema"]
    fields = schema["$defs"]["grade"]["properties"]
    assert schema["properties"] == {"1": {"$ref": "#/$defs/grade"}}
    assert (fields["explanation"]["maxLength"], fields["quote"]["maxLength"]) == (300, 300)
    assert fields["aspects"]["items"]["maxLength"] == 30


async def test_a_chunk_that_is_too_long_is_graded_in_halves(model: ModelServer, client: ModelClient) -> None:
    """As a llama.cpp server refuses it; the next chunks are not sent whole again."""
    words = "request (2600 tokens) exceeds the available context size (2048 tokens), try increasing it"

    def short(asked: dict[str, Any]) -> Reply:
        text = asked["messages"][1]["content"]
        return fails(400, message=words) if len(text) > 5000 else counted(asked)

    model.respond = short
    found = await OpenAIGrader(client).grade(PLAUD, [item("t", "warm " * 200) for _ in range(8)])

    assert [grade.defaulted for grade in found.grades] == [False] * 8
    assert len(model.asked) == 3


async def test_one_chunk_fails(model: ModelServer, client: ModelClient) -> None:
    """A failed chunk does not touch the others."""
    model.respond = lambda asked: fails(401) if ">bad<" in asked["messages"][1]["content"] else counted(asked)
    posts = [item("good")] * 10 + [item("bad")] * 2

    found = await OpenAIGrader(client).grade(PLAUD, posts)

    assert [grade.score for grade in found.grades] == [4] * 10 + [3] * 2


async def test_late_grader_defaults(model: ModelServer, client: ModelClient, caplog: pytest.LogCaptureFixture) -> None:
    """A grader that says nothing is left at its deadline, which the log names."""
    model.replies = [Reply(hang=True)]

    found = await OpenAIGrader(client, seconds=0.2).grade(PLAUD, [item("a")])

    assert found.grades == (UNGRADED,)
    assert "(timeout: 1; no answer within 0.2 s, `LISTENPOST_SCORING_TIMEOUT`)" in caplog.text


@pytest.mark.parametrize(
    ("quote", "kept"),
    [
        ("battery lasts", "battery lasts"),
        ("  battery   lasts ", "battery lasts"),
        ("lasts a day", "lasts\n\ta day"),
        ("Tom &amp; I", "Tom & I"),
        ("loud (very)", "loud (very)"),
        ("The title", "The title"),
        ("Battery lasts", ""),
        ("battery lasts forever", ""),
        ("", ""),
        (None, ""),
        (5, ""),
    ],
)
async def test_only_verbatim_quotes(model: ModelServer, client: ModelClient, quote: Any, kept: str) -> None:
    """A quote stands in the item or a comment, and is returned as it stands there."""
    texts = ("The title", "The battery lasts\n\ta day.", "Tom & I find it loud (very).")

    assert (await one(model, client, GOOD | {"quote": quote}, *texts)).quote == kept


@pytest.mark.parametrize("sentiment", [2, -2, "positive", 0.5, True, None, []])
async def test_other_sentiments_are_unknown(model: ModelServer, client: ModelClient, sentiment: Any) -> None:
    """A sentiment that is not -1, 0 or 1 is none."""
    assert (await one(model, client, GOOD | {"sentiment": sentiment})).sentiment is None


@pytest.mark.parametrize(
    ("aspects", "kept"),
    [
        (["Price", "price", " App  Store "], ("price", "app store")),
        (list("abcdefg"), tuple("abcde")),
        (["x" * 31, "", None, 3, "ok"], ("ok",)),
        ("battery", ()),
        (None, ()),
    ],
)
async def test_aspects_are_short_words(
    model: ModelServer, client: ModelClient, aspects: Any, kept: tuple[str, ...]
) -> None:
    """At most five distinct short aspects in lower case."""
    assert (await one(model, client, GOOD | {"aspects": aspects})).aspects == kept
