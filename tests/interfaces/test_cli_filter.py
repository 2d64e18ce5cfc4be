"""`filter`: stdin through the gate, and what is kept comes out as it went in."""

from __future__ import annotations

import json

import pytest

from api.sandbox.server import Sandbox
from tests.interfaces.command import inside, process

ABOUT = ("filter", "Plaud Note", "--source", "reddit")
KEPT = (
    b'{"title":"Plaud Note review","body":"My Plaud Note recorder  transcribes well" }\r\n',
    b'  {"body": "a recorder,\xe2\x80\xa8good", "title": "Plaud Note review caf\xe9", "x": 1e3}\n',
    b'{"title": "Plaud Note review", "content": "My recorder", "n": NaN}',
)
DROPPED = b'{"title": "Sourdough at home", "body": "Flour, water, salt."}\n'
INPUT = b"\n".join([KEPT[0], DROPPED, KEPT[1], KEPT[2]])
"""With blank lines between."""


def test_kept_lines_are_the_same_bytes() -> None:
    """White space, line ends, wrong UTF-8 and odd numbers included; one line on stderr."""
    ended = inside(*ABOUT, stdin=INPUT)

    assert ended.code == 0
    assert ended.raw == b"".join(KEPT)
    assert ended.err.startswith("3 of 4 were about it, judged by local")
    assert ended.err.count("\n") == 1


def test_json_has_both_sides() -> None:
    """One object: relevant, dropped, share, status, reason; numbers that JSON lacks are null."""
    ended = inside(*ABOUT, "--format", "json", stdin=INPUT)

    assert list(ended.json) == ["relevant", "dropped", "yield_ratio", "status", "reason"]
    assert ended.json["relevant"][2] == {
        "title": "Plaud Note review", "content": "My recorder", "n": None,
    }  # fmt: skip
    assert ended.json["dropped"] == [json.loads(DROPPED)]
    assert ended.json["yield_ratio"] == 0.75
    assert (ended.json["status"], ended.json["reason"]) == ("ok", None)
    assert ended.err.startswith("3 of 4 were about it")


def test_no_input_is_skipped_not_all() -> None:
    """Nothing was judged, so there is no yield to speak of."""
    text = inside(*ABOUT, stdin=b"\n")
    told = inside(*ABOUT, "--format", "json", stdin=b"")

    assert (text.code, text.out) == (0, "")
    assert text.err == "0 of 0 were about it\n"
    assert told.json == {
        "relevant": [], "dropped": [], "yield_ratio": 1.0, "status": "skipped", "reason": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            KEPT[0] + b'{"Review": "mug"}',
            "line 2: no text in a field that is known; its fields are",
        ),
        (b"{}", "line 1: no text in a field that is known; its fields are none"),
        (b'{"title": "mug", "url": 5}', "line 1: `url` must be text, not a number"),
        (b"title,body\nmug,good\n", "the input looks like CSV; write one JSON object per line"),
        (b'[{"title": "mug"}, {"title": "bread"}]', "line 1 begins a JSON array; write one object"),
        (b'{"kind": "Listing", "data": {"children": []}}', "line 1: no text in a field that is"),
    ],
)
def test_what_nobody_can_read_is_refused(text: bytes, words: str) -> None:
    """Before anything is judged, with the way to unpack it."""
    ended = inside(*ABOUT, stdin=text)

    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"listenpost: error: {words}")


def test_the_model_of_the_key_judges(upstream: Sandbox) -> None:
    """One call, with what tells the product from its namesakes."""
    names = ("LISTENPOST_MODE", "OPENAI_API_KEY", "OPENAI_BASE_URL")
    env = {name: upstream.environment[name] for name in names}
    ended = inside(*ABOUT, "--about", "a voice recorder", env=env, stdin=INPUT)

    (asked,) = upstream.requests("openai")
    assert ended.code == 0
    assert "judged by gpt-4o-mini" in ended.err
    assert "a voice recorder" in str(asked.body)


def test_a_judge_that_fails_keeps_everything_and_says_why(upstream: Sandbox) -> None:
    """Degraded, and still a success: nothing is lost."""
    upstream.fault("openai=401")
    names = ("LISTENPOST_MODE", "OPENAI_API_KEY", "OPENAI_BASE_URL")
    env = {name: upstream.environment[name] for name in names}
    ended = inside(*ABOUT, env=env, stdin=DROPPED)

    assert (ended.code, ended.out.encode()) == (0, DROPPED)
    assert ended.err.startswith("kept 1 of 1; relevance could not be judged (the key was not accepted)")


@pytest.mark.parametrize(
    ("words", "stdin", "said"),
    [
        (ABOUT, b'{"title": "a"}\n\n{"title"\n', "line 3 is no JSON object; write one"),
        (("filter", "hello", "--source", "x"), b"", "Say which product"),
        (("filter", "", "--source", "x"), b"", "Nothing was asked"),
        (("filter", "oura", "--source", " "), b"", "`--source` names nothing"),
        (("filter", "oura"), b"", "Missing option"),
    ],
)
def test_what_makes_no_sense_is_two(words: tuple[str, ...], stdin: bytes, said: str) -> None:
    """It is said, and nothing is printed."""
    ended = inside(*words, stdin=stdin)

    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err


def test_words_that_are_no_utf8_are_taken() -> None:
    """A query, a source and a line of wrong bytes."""
    words = ("filter", b"Plaud \xff Note", "--source", b"caf\xe9", "--format", "json")
    ended = process(*words, stdin=b'{"title": "Plaud Note \xff", "body": "plaud note"}')

    assert ended.code == 0
    assert ended.json["status"] == "ok"
    assert "Traceback" not in ended.err
