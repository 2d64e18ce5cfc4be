"""Whether a sentence is about the product."""

from __future__ import annotations

import pytest

from api.core.domain import Question
from api.reports.keyless.product_mentions import Subject, names_another

PLAUD = Subject.of(Question("plaud.ai", "the recorder Plaud Note and NotePin"))


@pytest.mark.parametrize("text", ["Plaud is loud", "my NotePin", "PLAUD AI", "the plaud.ai app", "a Plaud Note"])
def test_a_name_has_many_spellings(text: str) -> None:
    """With or without its web ending, and by the names of the description."""
    assert PLAUD.is_named(text)
    assert not PLAUD.is_named("applauded")


@pytest.mark.parametrize(
    ("sentence", "topic", "follows", "about"),
    [
        ("Plaud lasts a week.", False, False, True),
        ("It lasts a week.", True, False, True),
        ("It lasts a week.", False, True, True),
        ("It lasts a week.", False, False, False),
        ("Birds lasted a week.", False, True, False),
        ("My old recorder lasts a week.", True, False, False),
        ("Otter lasts longer than Plaud.", True, False, False),
        ("I switched from it to Otter.", True, False, False),
        ("Garmin support is slow.", True, False, False),
        ("Great video, thanks.", True, False, False),
        ("Better than Plaud and lighter.", True, False, False),
        ("Clerks lose work to the likes of Otter and Plaud.", True, False, False),
        ("otter AI is decent at notes.", True, False, False),
        ("otter notes go to Plaud, which is decent.", True, False, True),
    ],
)
def test_a_sentence_has_a_subject(sentence: str, topic: bool, follows: bool, about: bool) -> None:
    """The name, the thread or what was just named; a rival or another thing is none."""
    assert PLAUD.is_subject(sentence, topic=topic, follows=follows) is about


@pytest.mark.parametrize(
    ("text", "namesake"),
    [
        ("Chevy Glow is back", True),
        ("glow.new is a site", True),
        ("Old Chevy Glow lamp", False),
        ("Leaving Glow for good", False),
        ("The Glow is back", False),
        ("Desk Glow", False),
        ("Chevy Glow Lamp", False),
        ("Glow.light is theirs", False),
        ("Chevy Glow and my Glow", False),
        ("Chevy is back", False),
        ("our cat named Glow", True),
        ("the Glow Tower is a rocket", True),
        ("The Glow Tower Is a Rocket", False),
        ("Glow 2 is out", False),
    ],
)
def test_a_proper_word_with_the_name_makes_it_another_thing(text: str, namesake: bool) -> None:
    """Unless the question or its description has that word, or the kind stands behind."""
    words = " ".join(f"word{'abcdefghij'[n % 10] * (n // 10 + 1)}" for n in range(400))
    lamp = Subject.of(Question("Glow lamp", "a desk lamp, glow.light"), [words])

    assert lamp.is_namesake(text) is namesake
    assert not (namesake and lamp.is_subject(text, topic=True, follows=False))


@pytest.mark.parametrize(
    ("text", "namesake"),
    [
        ("Sono QX-400M5 review", True),
        ("the QX-400M5 and the QX-400M4", False),
        ("Sono is loud", False),
        ("QX-400M4", False),
        ("Sono QX and all", False),
    ],
)
def test_another_number_makes_it_another_model(text: str, namesake: bool) -> None:
    """Unless the product's own stands there, too; the maker's name alone says nothing."""
    assert Subject.of(Question("Sono QX-400M4", "headphones")).is_namesake(text) is namesake


def test_a_rare_word_in_front_is_a_name_when_much_was_read() -> None:
    """`Coffee` stands in small letters elsewhere, `Zorg` nowhere."""
    words = " ".join(f"word{'abcdefghij'[n % 10] * (n // 10 + 1)}" for n in range(400))
    read = Subject.of(Question("Ember mug"), [words, "some coffee"])

    assert names_another("Zorg is a cup.", read)
    assert not names_another("Zorg is a cup.")
    assert not names_another("Coffee is hot.", read)
    assert names_another("I say that Zorg is a cup.")
    assert not names_another("I say that the Ember is a cup.", read)
