"""What a whole item is about."""

from __future__ import annotations

from typing import Any

import pytest

from api.core.domain import Question
from api.core.items import Comment, Item
from api.reports.keyless.product_mentions import Subject, is_excluded, is_identified, is_topic

PLAUD = Subject.of(Question("plaud.ai", "the recorder Plaud Note and NotePin"))
LAMP = Subject.of(Question("Glow lamp", "a desk light with a strap"))
HEADPHONES = Subject.of(Question("Sono QX-400M4", "headphones"))
JOURNEY = Subject.of(Question("Journey", "the 2012 console game"))


def post(title: str, **fields: Any) -> Item:
    """An item with that title."""
    return Item(**{"key": "reddit:1", "id": "1", "source": "reddit", "title": title} | fields)


@pytest.mark.parametrize(
    ("item", "topic"),
    [
        (post("Plaud after a year"), True),
        (post("Plaud vs Otter"), False),
        (post("Moving on, better than Plaud"), False),
        (post("Which recorder?", body="I have a Plaud."), True),
        (post("Which recorder?", body="Otter or so, a Plaud."), False),
        (post("Which recorder?"), False),
        (post("Anyone?", place="r/plaud"), True),
        (post("Plaud Note Recorder", source="amazon"), True),
        (post("Plaud Note Recorder, with Case", source="amazon"), True),
        (post("Leather Case for Plaud Note", source="amazon"), False),
        (post("Smart Voice Plaud Recorder", source="amazon"), False),
        (post("A Recorder", source="amazon", place="Plaud"), False),
        (post("Note Recorder, Better Than Plaud", source="amazon"), False),
        (post("Plaud launches a charging case for the Note"), False),
        (post("Plaud in case of a meeting"), True),
        (post("Colour is Oslo's Plaud"), False),
        (post("Plaud Mail after six months of use"), False),
        (post("Plaud Note after six months of use"), True),
        (post("Plaud Review After Six Months"), True),
    ],
)
def test_a_thread_is_about_what_its_title_names(item: Item, topic: bool) -> None:
    """Alone, first in a shop, no accessory, nothing that carries the name on; or named early."""
    assert is_topic(item, PLAUD) is topic


@pytest.mark.parametrize(
    ("title", "topic"),
    [("Sono QX-400M4 review", True), ("My Sono after a year", False), ("QX-400M5", False)],
)
def test_where_the_name_has_a_number_the_title_must_have_it(title: str, topic: bool) -> None:
    """The maker makes others, too."""
    assert is_topic(post(title), HEADPHONES) is topic


@pytest.mark.parametrize(
    ("item", "elsewhere"),
    [
        (post("Glow is out", place="r/glowjs"), True),
        (post("Glow is out", place="r/GlowUK"), False),
        (post("Glow is out", place="r/GlowLamp"), False),
        (post("Glow is out", place="r/Glowworms"), False),
        (post("Glow is out", place="r/lights"), False),
        (post("Glow lamp handbook", source="amazon"), True),
        (post("Glow lamp charger", source="amazon"), True),
        (post("Glow lamp strap", source="amazon"), False),
        (post("Glow lamp handbook"), False),
        (post("My cat named Glow"), True),
    ],
)
def test_an_item_may_be_about_something_else_of_that_name(item: Item, elsewhere: bool) -> None:
    """Its place, its shop page or its title says so."""
    assert is_excluded(item, LAMP) is elsewhere


@pytest.mark.parametrize(
    ("subject", "item", "apart"),
    [
        (JOURNEY, post("A journey to Rome"), False),
        (JOURNEY, post("Journey", body="Best of all games."), True),
        (JOURNEY, post("Journey", comments=(Comment(id="c1", body="What a game."),)), True),
        (JOURNEY, post("Level two", place="r/journey"), True),
        (LAMP, post("My Glow lamp"), True),
        (HEADPHONES, post("The Sono QX-400M5 headphones"), False),
        (Subject.of(Question("Journey")), post("A journey to Rome"), True),
        (Subject.of(Question("小米", "the maker")), post("我家"), True),
    ],
)
def test_an_item_says_which_thing_is_meant(subject: Subject, item: Item, apart: bool) -> None:
    """By a word of the description, the whole name or its place, if that can be told at all."""
    assert is_identified(item, subject) is apart
