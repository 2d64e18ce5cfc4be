"""Which product a text is about."""

from __future__ import annotations

import pytest

from api.features.chat.chat_citations import is_comparing, is_variant, names_product, products_in, subjects_named


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("What do people say about the Ember mugs?", ("ember mugs",)),
        ("plaud.ai battery", ("plaud battery",)),
        ("plaud.ai vs Otter.ai", ("plaud", "otter")),
        ("How is the support of Oura?", ("oura",)),
        ("the legend of Zelda", ("legend zelda",)),
        ("best buy", ("best buy",)),
        ("小米手环怎么样", ("小米手环",)),
    ],
)
def test_a_query_names_products(query: str, names: tuple[str, ...]) -> None:
    """In one form; two when it compares; the whole where there are words of asking only."""
    assert products_in(query) == names


@pytest.mark.parametrize(
    ("name", "of", "same"),
    [
        ("ember mug", "ember mug", True),
        ("ember mug lid", "ember mug", True),
        ("ember mug", "ember mugs", True),
        ("ember mug 2", "ember mug", False),
        ("ember mug", "ember mug lid", False),
        ("yeti mug", "mug", False),
        ("ember", "embed", False),
    ],
)
def test_a_variant_begins_with_the_name(name: str, of: str, same: bool) -> None:
    """A number makes it another product."""
    assert is_variant(name, of) is same


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("The Ember mugs stay warm", ("ember mug",)),
        ("A mug by Ember", ("ember mug",)),
        ("The mug stays warm", ()),
        ("The iPhone15 and an ember mug", ("ember mug", "iphone 15")),
        ("The iPhone 15 lasts", ("iphone 15",)),
        ("小米手环很好", ("小米手环",)),
        ("", ()),
    ],
)
def test_a_name_stands_in_a_text_with_all_its_words(text: str, named: tuple[str, ...]) -> None:
    """The longest name is the one that is meant."""
    assert subjects_named(text, ["ember mug", "iphone", "iphone 15", "小米手环"]) == named


@pytest.mark.parametrize(
    ("question", "another"),
    [
        ("ember mug", True),
        ("what about the ember mug?", True),
        ("and the Yeti?", True),
        ("how is the rtx4090", True),
        ("what is said about cal.com", True),
        ("and the battery?", False),
        ("and its Zigbee?", False),
        ("how good is it on the Pixel", False),
        ("I want 60", False),
        ("why?", False),
        ("Wie lange hält der Akku?", False),
    ],
)
def test_a_question_names_another_product_by_its_form(question: str, another: bool) -> None:
    """In English; a plain word may as well be what is asked about something."""
    assert names_product(question) is another


def test_a_sentence_may_weigh() -> None:
    """Then it speaks of more than it names."""
    assert is_comparing("It lasts longer than Plaud.")
    assert not is_comparing("It lasts, and thanks.")
