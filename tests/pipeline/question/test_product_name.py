"""What a question names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.pipeline.question.product_name import judged_words, new_queries, product_in, search_words, without_web_ending


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
    assert product_in(question, {"battery"}) == name


def test_a_web_ending_is_no_part_of_the_core() -> None:
    """Only at the end."""
    names = map(without_web_ending, ("plaud.ai", "Node.js tool", "Arc"))
    assert list(names) == ["plaud", "Node.js tool", "Arc"]


@pytest.mark.parametrize(
    ("question", "searched", "judged"),
    [
        ("what do people dislike about Notion", "Notion", "Notion"),
        ("What Do People Think About Notion?", "Notion", "Notion"),
        ("What do people say about the battery of the Oura ring?", "battery Oura ring",
         "Oura ring"),
        ("What do people say about the battery of plaud.ai?", "battery plaud.ai", "plaud.ai"),
        ("the battery of the Oura ring", "battery Oura ring", "Oura ring"),
        ("The Lord of the Rings", "The Lord of the Rings", "The Lord of the Rings"),
        ("how loud is the lid of the ember mug?", "loud lid ember mug", "ember mug"),
        ("how is the Framework Laptop 13 battery life?", "Framework Laptop 13 battery life",
         "Framework Laptop 13"),
        ("what do people on Reddit think about Plaud’s Note Pro?", "Plaud Note Pro",
         "Plaud Note Pro"),
        ("what do people say about Hades on Steam?", "Hades", "Hades"),
        ("how is Hades on Steam Deck?", "Hades Steam Deck", "Steam Deck"),
        ("what's wrong with the rabbit r1?", "rabbit r1", "rabbit r1"),
        ("should I buy the arc browser", "arc browser", "arc browser"),
        ("what do users say about the Room app?", "Room app", "Room app"),
        ("what do people think of X?", "X", "X"),
    ],
)  # fmt: skip
def test_a_question_is_about_what_it_names(question: str, searched: str, judged: str) -> None:
    """Words of asking, of places and without meaning go; a capital names, whatever it means."""
    assert (search_words(question), judged_words(question)) == (searched, judged)


@pytest.mark.parametrize(
    "text",
    [
        "plaud.ai",
        "How I Met Your Mother",
        "Do Not Disturb",
        "The Who",
        "what do people think about The Who?",
        "is it any good?",
        "standing desk wobble",
        "小米粥怎么熬才有米油",
        "was bleibt",
        "",
    ],
)
def test_what_asks_nothing_or_names_nothing_stays(text: str) -> None:
    """A name that begins like a question, a question without a name, a text of another form."""
    assert (search_words(text), judged_words(text)) == (text, text)


@given(st.text(max_size=80))
def test_something_is_always_left(text: str) -> None:
    """What can be searched stays something to search for."""
    assert bool(search_words(text).strip()) == bool(text.strip())
    assert bool(judged_words(text).strip()) == bool(text.strip())


def test_a_query_is_new_once_and_in_one_spelling() -> None:
    """In order; what says nothing is none."""
    queries = ["Plaud AI", "plaud review", "Plaud-Review", "?!", "plaud.ai problems"]

    assert new_queries(queries, ["plaud ai"]) == ["plaud review", "plaud.ai problems"]
