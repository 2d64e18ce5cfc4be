"""Products whose name ends in the kind of thing they are: `Ember mug`, `Oura ring`."""

from __future__ import annotations

import pytest

from api.core.domain import Question
from api.reports.keyless.aspects import aspects_in
from api.reports.keyless.polarity import count_feelings, lean_of
from api.reports.keyless.product_mentions import Subject, is_excluded, is_identified, names_another
from api.reports.keyless.themes import find_themes
from tests.reports.unsupported import exhibits_of
from tests.services.kit import post

# each beside the place where its kind is talked about
PRODUCTS = [
    ("Ember mug", "r/mugs"),
    ("Ember Mug", "r/mugs"),
    ("Oura ring", "r/rings"),
    ("Kindle reader", "r/readers"),
    ("Owala bottle", "r/bottles"),
    ("Fitbit watch", "r/watches"),
    ("Notion app", "r/apple"),
    ("Plaud Note", "r/notes"),
    ("Glow Lamp", "r/lamps"),
]
COMPLAINTS = [
    "I hate the battery of the {}.",
    "The battery of my {} is awful.",
    "My {} has a battery that is awful.",
    "The {}'s battery is awful.",
    "Awful battery in every way, says who owns the {}.",
    "{}: the battery is awful.",
    "The battery of {}s is awful.",
    "{}s have a battery that is awful.",
]
BATTERY = aspects_in("battery")[0].pattern


@pytest.mark.parametrize("complaint", COMPLAINTS)
@pytest.mark.parametrize(("name", "place"), PRODUCTS)
def test_what_is_said_of_it_is_a_theme_and_leans(name: str, place: str, complaint: str) -> None:
    """Wherever the name stands, several of it and whose it is included; where its kind is, too."""
    words = complaint.format(name).rstrip(".")
    bodies = (words, f"{words}.", f"{words}!")  # a long sentence that stands twice would be a copy
    items = [post(number, title=f"Day {number}", body=body, place=place) for number, body in enumerate(bodies)]
    (finding, *_) = find_themes(Question(name), exhibits_of(*items)).findings

    assert finding.text == f"Battery: “{words}”: all three people who speak of it say alike."
    assert finding.kind == "complaint"


@pytest.mark.parametrize(("name", "place"), PRODUCTS)
def test_the_place_of_its_kind_is_no_namesakes(name: str, place: str) -> None:
    """Of several words the first alone tells a place that is another's."""
    subject = Subject.of(Question(name))
    first = name.split()[0]

    assert not is_excluded(post(0, place=place), subject)
    assert not is_excluded(post(0, place=f"r/{first}s"), subject)
    assert is_excluded(post(0, place=f"r/{first}js"), subject)


def test_a_question_without_a_name_has_no_namesakes_place() -> None:
    """None of its words is the product's own."""
    question = Question("the quietest travel keyboard under thirty euros")

    assert not is_excluded(post(0, place="r/theory"), Subject.of(question))


@pytest.mark.parametrize("query", ["Ember mug", "Ember mugs"])
def test_one_or_several_of_it_are_the_same(query: str) -> None:
    """In the question as in the post; `Embers` glow in a fire."""
    subject = Subject.of(Question(query, "heated cups"))

    assert not subject.is_namesake("My Ember Mug is warm")
    assert subject.is_named("Ember Mugs")
    assert not subject.is_named("glowing embers")
    assert not names_another("Ember Mugs are warm, and so are Ember mugs.", subject)
    assert is_identified(post(0, title="Two Ember mugs"), subject)
    assert is_identified(post(0, title="Ember", body="The cup stays warm."), subject)


def test_the_product_asked_for_is_not_another_one() -> None:
    """However well known it is; any other still is."""
    ring = Subject.of(Question("Oura ring"))

    assert lean_of("The Oura ring has an awful battery.", BATTERY, ring) == -1
    assert lean_of("The Garmin has an awful battery.", BATTERY, ring) is None
    assert lean_of("The Oura ring has an awful battery.", BATTERY) is None


def test_a_name_is_no_feeling() -> None:
    """`Magic` of the Magic Mouse praises nothing."""
    mouse = Subject.of(Question("Magic Mouse"))

    assert count_feelings("I charge the battery of the Magic Mouse.", mouse) == (0, 0)
    assert lean_of("I charge the battery of the Magic Mouse.", BATTERY, mouse) is None
    assert lean_of("The battery of the Magic Mouse is awful.", BATTERY, mouse) == -1


@pytest.mark.parametrize("about", ["A heated mug", "The mug by The Ember Company"])
def test_small_words_of_a_description_name_nothing(about: str) -> None:
    """A capital at its beginning makes no name of `the`."""
    assert not Subject.of(Question("Ember mug", about)).is_named("the tea and a saucer")
