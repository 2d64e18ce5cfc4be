"""The name in a question."""

from __future__ import annotations

import pytest

from api.services.question.naming import core_of, name_of


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("What do people think about the Ember mug?", "Ember mug"),
        ("How is the battery of the Plaud Note?", "Plaud Note"),
        ("battery", "battery"),
        ("小米", "小米"),
        ("please compare every single lamp that anybody ever sold here", ""),
        ("what is it?", ""),
    ],
)
def test_the_name_is_what_is_left_of_a_question(question: str, name: str) -> None:
    """Words of asking and of topics are no part of a name; a long rest is none."""
    assert name_of(question, {"battery"}) == name


def test_a_web_ending_is_no_part_of_the_core() -> None:
    """Only at the end."""
    assert [core_of("plaud.ai"), core_of("Node.js tool"), core_of("Arc")] == [
        "plaud", "Node.js tool", "Arc",
    ]  # fmt: skip
