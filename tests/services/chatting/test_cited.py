"""A chat answer is checked sentence by sentence while it is being written."""

from __future__ import annotations

import pytest

from api.services.chatting.cited import Clearing, Ground
from api.services.reporting.dossier import Exhibit
from tests.services.kit import assessed, post

HOME = "https://www.example.org/reddit/x"
GROUND = Ground(
    {label: Exhibit(label, assessed(post(n))) for n, label in enumerate(("E1", "E2", "E12"))},
    frozenset({"40", "2024"}),
    frozenset({"E27"}),
    frozenset({HOME}),
)


def cleared(text: str, size: int = 7) -> tuple[str, Clearing]:
    """What stands of a text that comes in small pieces."""
    clearing = Clearing(lambda: GROUND)
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    return "".join(map(clearing.feed, pieces)) + clearing.close(), clearing


@pytest.mark.parametrize(
    "text",
    [
        "It stays warm. [E1, E2]\n\n- Heavy [E12].\n  - but solid [E1]\n",
        "1. It lasts 40 hours [E1]\n2. It was new in 2024 [E2]",
        "They call it E27 and **love** it [E1].",
        f"See [the post]({HOME}) or {HOME}. [E1]",
        "とても良い。[E1]重い。[E2]",
        "",
        "\n",
    ],
)
def test_what_is_sound_stays_as_it_is(text: str) -> None:
    """Markdown, lists, their own words and an exhibit's own address come out as they went in."""
    assert cleared(text)[0] == text
    assert cleared(text, 1)[0] == text
    assert cleared(text)[1].notes == ()


@pytest.mark.parametrize(
    ("text", "left", "note"),
    [
        ("It stays warm [E1, E9].", "It stays warm [E1].", "1 unknown citation(s) removed"),
        ("It stays warm [E9].", "It stays warm.", "1 unknown citation(s) removed"),
        ("As E9 says, yes [E1].", "As says, yes [E1].", "1 unknown citation(s) removed"),
        ("See [here](http://evil.example) [E1]", "See here [E1]", "1 link(s)"),
        ("See ![x](https://evil.example/a.png)", "See x", "1 link(s)"),
        (f"![x]({HOME})", "x", "1 link(s)"),
        ("Go to https://evil.example/a?b.", "Go to.", "1 link(s)"),
        ("Good [E1](http://evil.example).", "Good [E1].", None),
        ("It costs 99 dollars. It is fine. [E1]", " It is fine. [E1]", "1 number(s)"),
        ("- It costs 99\n- Fine [E1]\n", "\n- Fine [E1]\n", "1 number(s)"),
        ("<img src=x onerror=a> [E1]", "&lt;img src=x onerror=a> [E1]", None),
        ("a <b>bold</b> word", "a &lt;b>bold&lt;/b> word", None),
        ("It is\x1b[31m red\u202e [E1]", "It is red [E1]", None),
    ],
)
def test_what_is_unsound_goes_and_is_noted(text: str, left: str, note: str | None) -> None:
    """Unknown names, foreign links, numbers nobody gave, tags and terminal escapes do not pass."""
    told, clearing = cleared(text)

    assert told == left
    assert all(note in one for one in clearing.notes) if note else clearing.notes == ()
    assert len(clearing.notes) == (note is not None)


def test_citations_are_told_in_the_order_of_first_mention() -> None:
    """In brackets, in round ones, and in the middle of a sentence, each once."""
    told, clearing = cleared("As E2 says [E12; E2] and (E1 and E12): no. [E12]")

    assert told == "As E2 says [E12, E2] and [E1, E12]: no. [E12]"
    assert clearing.cited == ("E12", "E2", "E1")


def test_a_name_outside_brackets_cites_too() -> None:
    """Unless it is a word of theirs, such as a lamp socket."""
    told, clearing = cleared("As E2 says, E27 fits.")

    assert (told, clearing.cited) == ("As E2 says, E27 fits.", ("E2",))


def test_nothing_is_told_before_its_sentence_is_complete() -> None:
    """A citation may still come apart, so a piece waits for the end of its sentence."""
    clearing = Clearing(lambda: GROUND)

    assert clearing.feed("It stays warm [E") == ""
    assert clearing.feed("1]. It is hea") == "It stays warm [E1]."
    assert clearing.close() == " It is hea"
