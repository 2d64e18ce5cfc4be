"""Reading a model's text: lenient about the wrapping, strict about the content."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.errors import ModelError
from api.models.answer_parsing import entries, numbered_entries, read_completion, record, verdicts


def reason(text: str, count: int) -> str:
    """The reason code with which a text is not taken."""
    with pytest.raises(ModelError) as caught:
        verdicts(text, count)
    return caught.value.reason


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"relevant": [true, false, true]}', (True, False, True)),
        ("[true,false,true]", (True, False, True)),
        ("```json\n[true,false,true]\n```", (True, False, True)),
        ('```\n{"relevant":[true,false]}\n```', (True, False)),
        (
            "Here are my verdicts: [true,false]. The second is about another firm, Acme.",
            (True, False),
        ),
        ("<think>[false,false]? No.</think>\n[true,false]", (True, False)),
        ("so [false] is wrong</think>[true]", (True,)),
        ("<THINK>a</THINK><thinking>b</thinking>[true]", (True,)),
        ('{"results":[true,false]}', (True, False)),
        ("[false,false,false,false]", (False,) * 4),
        ("[[true,false]]", (True, False)),
        ("[[true],[false]]", (True, False)),
        ('{"relevant": [[true], [false]]}', (True, False)),
        ('{"1":true,"2":false}', (True, False)),
        ('{"2": false, "1": true}', (True, False)),
        ('{"relevant": {"1": true, "2": false}}', (True, False)),
        ('Sure: ```json\n{"1": true}\n``` as [asked]', (True,)),
        ("<reasoning>[false]?</reasoning>[true]", (True,)),
        ('[THINK]{"1": false}[/THINK]{"1": true}', (True,)),
        ("hm [/THINK][true]", (True,)),
        (
            '<|channel|>analysis<|message|>{"1": false}?<|end|><|start|>assistant<|channel|>final'
            '<|message|>{"1": true}<|return|>',
            (True,),
        ),
        ("[" + "false," * 10 + "true,true]", (False,) * 10 + (True,) * 2),
    ],
)
def test_one_array_is_found(text: str, expected: tuple[bool, ...]) -> None:
    """Fences, thoughts and prose around the one array do not matter (B01, B02, B16, B19)."""
    assert verdicts(text, len(expected)) == expected


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ('["false","true"]', 2),
        ('["False","no"]', 2),
        ('{"relevant":["true","0"]}', 2),
        ("[1,0,null]", 3),
        ("[0.9,0.1,true]", 3),
        ("[true,null]", 2),
        ("[1,0]", 2),
        ("[True,False]", 2),
        ("Not relevant (NO)", 1),
        ("ДА", 1),
        ("Great! Ask me anything.", 2),
        ('{"1":"true","2":false}', 2),
        ('{"1":true,"1":false}', 1),
        ('{"1":{"1":true}}', 1),
        ('{"1":true,"2":fal', 2),
        ('<|channel|>analysis<|message|>{"1":true}', 1),
        ('{"relevant":false}', 1),
        ('{"relevant":true,"ids":[true]}', 1),
        ("true", 1),
        ("[true,false,tr", 3),
        ("[[true,false],[true]]", 3),
        ("[[[true]],[[false]]]", 2),
        ("[[true],false]", 2),
        ("[[],[]]", 2),
        ("[true,false] or rather [false,true]", 2),
        ('{"relevant":[true],"relevant":[false]}', 1),
        ('{"relevant":[true],"other":[false]}', 1),
        ("<think>[true]", 1),
        ("]true[", 1),
        ("", 1),
        ("{" * 100_000, 1),
    ],
)
def test_anything_else_is_malformed(text: str, count: int) -> None:
    """No guess, no truthiness, no repair (B02, B06, B07, B09, B10, B12, B15)."""
    assert reason(text, count) == "malformed"


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("[true,false,true]", 5),
        ("[true,false,true]", 2),
        ("[]", 3),
        ("[[]]", 3),
        ('{"1": true}', 2),
        ('{"1": true, "2": true}', 1),
        ('{"0": true, "1": true}', 2),
    ],
)
def test_wrong_counts(text: str, count: int) -> None:
    """A list that is too short, too long or empty is not aligned (B04, B05, B18)."""
    assert reason(text, count) == "count_mismatch"


@given(st.text(), st.integers(min_value=0, max_value=3))
def test_any_text_is_booleans_or_an_error(text: str, count: int) -> None:
    """Whatever a model says, there are exactly so many booleans or a reason."""
    try:
        outcome = f"{sum(type(value) is bool for value in verdicts(text, count))} booleans"
    except ModelError as error:
        outcome = error.reason

    assert outcome in {f"{count} booleans", "malformed", "count_mismatch"}


@pytest.mark.parametrize(
    "text",
    [
        '{"queries": ["a", "b"]}',
        '["a", "b"]',
        '```json\n{"queries": ["a", "b"]}\n```',
        'Sure: {"queries": ["a", "b"]} Enjoy!',
        '<think>{"queries": []}</think>{"queries": ["a", "b"]}',
    ],
)
def test_lists_are_found(text: str) -> None:
    """A list is taken from its object, bare, or out of its wrapping."""
    assert entries(text, "queries") == ["a", "b"]


@pytest.mark.parametrize("text", ['{"other": []}', '{"queries": 1}', "no", "7", '{"a":1} {"b":2}'])
def test_no_list(text: str) -> None:
    """What holds no such list is malformed."""
    with pytest.raises(ModelError, match="malformed"):
        entries(text, "queries")


def test_of_a_cut_answer_whole_entries_are_kept() -> None:
    """By number or in a list; what was begun is nothing."""
    by_number = '{"1": {"a": 1}, "2": {"a": 2}, "3": {"a": '

    assert numbered_entries(by_number, 3, "grades", whole=False) == [{"a": 1}, {"a": 2}, None]
    assert numbered_entries('{"grades": [{"a": 1}, {"a"', 2, "grades", whole=False) == [{"a": 1}, None]
    assert numbered_entries("[THINK] so", 1, "grades", whole=False) == [None]


def test_fences_inside_a_value_stay() -> None:
    """Text that is JSON as it stands is not unwrapped."""
    assert record('{"text": "run ```ls```"}') == {"text": "run ```ls```"}


@pytest.mark.parametrize("text", ["[1]", "plain words", "", "}{"])
def test_no_record(text: str) -> None:
    """What is no object is malformed."""
    with pytest.raises(ModelError, match="malformed"):
        record(text)


@pytest.mark.parametrize(("tokens", "counted"), [(0, True), (10**12, True), (10**12 + 1, False), (-1, False)])
def test_what_nobody_can_count_is_no_count(tokens: int, counted: bool) -> None:
    """A server's impossible number makes the cost unknown, and the answer still counts."""
    usage = {"prompt_tokens": tokens, "completion_tokens": 1}
    choice = {"finish_reason": "stop", "message": {"content": "[true]"}}
    body = json.dumps({"choices": [choice], "usage": usage}).encode()
    completion = read_completion(body, "gpt-4o-mini", lambda _tokens, _model: 0.5)
    assert completion.text == "[true]"
    assert completion.usage.input_tokens == (tokens if counted else 0)
    assert completion.usage.usd == (0.5 if counted else None)
