"""What a judge sees: title, and 200 characters that name what was asked, if any do."""

from __future__ import annotations

import pytest

from api.core.domain import Question
from api.core.items import Item
from api.pipeline.gate.excerpt import PASSAGE_LENGTH, TITLE_LENGTH, Excerpt, excerpt_of, parse_excerpt

ZORVEX = Question("zorvex.ai")
FILLER = "It rained all day and nobody went out to see the hills. " * 8


def item(title: str, body: str = "", place: str = "", author: str = "") -> Item:
    """An item with these texts."""
    return Item(key="k", id="k", source="reddit", title=title, body=body, place=place, author=author)


def passage(title: str, body: str, place: str = "") -> str:
    """The part of the body that is shown."""
    return excerpt_of(ZORVEX, item(title, body, place=place)).passage


def test_a_short_body_is_shown_whole() -> None:
    """Nothing is cut, nothing marked."""
    assert passage("A day", "My Zorvex died.") == "My Zorvex died."


def test_a_beginning_that_names_it_is_shown() -> None:
    """A later mention as good as the first moves nothing."""
    body = f"My Zorvex died. {FILLER} Zorvex again."
    assert passage("A day", body) == body[:PASSAGE_LENGTH]


def test_a_body_that_names_nothing_shows_its_beginning() -> None:
    """There is nothing better to show."""
    assert passage("A day", FILLER) == FILLER.strip()[:PASSAGE_LENGTH]


def test_a_title_that_names_it_leaves_the_beginning() -> None:
    """What is judged names it already."""
    body = f"{FILLER} My ZorvexAI died."
    assert passage("Zorvex after a year", body) == body[:PASSAGE_LENGTH]


@pytest.mark.parametrize("spelling", ["Zorvex", "zorvex ai", "ZorvexAI", "@zorvex_ai", "zorvx"])
def test_a_late_mention_gets_a_window(spelling: str) -> None:
    """In any spelling, within the budget, cut marks on both sides."""
    body = f"{FILLER}In the end I sold my {spelling} to a neighbour. {FILLER}"
    found = passage("A day", body)
    assert spelling in found
    assert "to a neighbour" in found
    assert (found[0], found[-1]) == ("…", "…")
    assert len(found) <= PASSAGE_LENGTH


def test_a_mention_at_the_end_is_cut_in_front_only() -> None:
    """The last words have no mark behind them."""
    found = passage("A day", f"{FILLER}So I sold my Zorvex.")
    assert found.startswith("…")
    assert found.endswith("sold my Zorvex.")


def test_a_window_without_blanks_is_cut_anywhere() -> None:
    """A script without blanks has no better place."""
    body = "今天下雨，没有人出门。" * 30 + "我卖了小米手机。"
    found = excerpt_of(Question("小米"), item("日記", body))
    assert "小米手机" in found.passage
    assert len(found.passage) <= PASSAGE_LENGTH


def test_the_title_of_a_comment_is_its_parents() -> None:
    """So it names nothing, and the comment's own mention is looked for."""
    body = f"{FILLER}I sold my Zorvex."
    comment = excerpt_of(ZORVEX, item("Zorvex after a year", body, place="comment"))
    assert comment.comment
    assert "my Zorvex" in comment.passage
    assert not excerpt_of(ZORVEX, item("Zorvex", body, place="r/comments")).comment


def test_a_title_is_cut() -> None:
    """As far as any judge reads."""
    assert len(excerpt_of(ZORVEX, item("zorvex " * 100)).title) == TITLE_LENGTH


def test_place_and_the_brands_own_name_are_shown() -> None:
    """Other authors stay what they are: nobody's business."""
    own = excerpt_of(ZORVEX, item("Hello", place="Zorvex Fans", author="Zorvex Official"))
    assert (own.place, own.author) == ("Zorvex Fans", "Zorvex Official")
    assert excerpt_of(ZORVEX, item("Hello", author="somebody")).author == ""


@pytest.mark.parametrize(
    "whole",
    [
        Excerpt("My title", "and a passage", "Zorvex Fans", "Zorvex Official"),
        Excerpt("My title", "one | two", "comment", comment=True),
        Excerpt("My title"),
    ],
)
def test_a_line_is_read_back(whole: Excerpt) -> None:
    """What a prompt shows of an item is enough to judge it again."""
    assert excerpt_of(ZORVEX, parse_excerpt(whole.line, "reddit")) == whole


def test_a_line_may_be_two() -> None:
    """Title and body on lines of their own."""
    read = parse_excerpt("My title\nand a body", "reddit")
    assert (read.title, read.body, read.source) == ("My title", "and a body", "reddit")
