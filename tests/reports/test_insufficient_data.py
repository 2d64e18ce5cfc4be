"""The explanation without a model."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.core.domain import Question
from api.reports.insufficient_data import Shortfall, count_words, fitted, likely_name, plain_explanation

TEXTS = st.text(max_size=200) | st.lists(st.sampled_from(["plaud", "小米", "a.", "ü!"])).map(" ".join)


@given(
    st.builds(
        Shortfall,
        st.builds(Question, TEXTS),
        st.lists(TEXTS, max_size=5).map(tuple),
        st.lists(TEXTS, max_size=5).map(tuple),
        st.lists(st.tuples(TEXTS, TEXTS), max_size=12).map(tuple),
        st.booleans(),
        st.integers(0, 500),
        st.booleans(),
    )
)
def test_length_for_any_facts(shortfall: Shortfall) -> None:
    """Whatever the facts, the text has 150 to 250 words; fewer where nothing was searched."""
    text, fewest = plain_explanation(shortfall).text, 150 if shortfall.answered else 50

    assert fewest <= count_words(text) <= 250
    assert fewest <= len(text.split()) <= 250


def test_facts_are_named() -> None:
    """Queries, sources, dropped titles with reasons and better queries are in the text."""
    found = plain_explanation(
        Shortfall(
            Question("Plaud Note"),
            ("Plaud Note", "plaud recorder"),
            ("reddit: 7 found, 1 kept", "youtube: quota exhausted"),
            (("Applaud the team", "a namesake."), ("Notes", "")),
        )
    )

    for words_of_it in (
        "Searched for “Plaud Note” and also for “plaud recorder”.",
        "By source: reddit: 7 found, 1 kept; youtube: quota exhausted.",
        "for example “Applaud the team” (a namesake); “Notes”.",
        "“Plaud Note review” and “Plaud Note problems”",
    ):
        assert words_of_it in found.text
    assert found.suggestions == ("Plaud Note review", "Plaud Note problems")
    assert found.usage.usd == 0


@pytest.mark.parametrize(
    ("question", "titles", "name"),
    [
        ("embr mug", ["My Ember mug died", "Ember mug review", "a mug"], "Ember mug"),
        ("ember mug", ["My Ember mug died", "Ember mug review"], ""),
        ("what annoys people about the plod note?", ["Plaud Note", "plaud note pro", "plod"], "Plaud Note"),
        ("embr mug", ["My Ember mug died"], ""),
        ("abc", ["abd", "abd"], ""),
        ("embr mug", ["Bread for beginners"] * 3, ""),
        ("", ["", " "], ""),
    ],
)
def test_a_name_that_was_meant(question: str, titles: list[str], name: str) -> None:
    """Two titles hold it, nearly as it was asked; a title with the very name says that it is right."""
    assert likely_name(question, titles) == name


def test_better_queries_take_the_name_that_was_meant() -> None:
    """Not the one with the wrong letter."""
    explained = plain_explanation(Shortfall(Question("embr mug"), ("embr mug",), (), meant="Ember mug"))

    assert explained.suggestions == ("Ember mug review", "Ember mug problems")


def test_of_own_items_no_other_place_is_advised() -> None:
    """Nothing was searched, so that nothing can be searched further or for other words."""
    shortfall = Shortfall(Question("Plaud Note"), ("Plaud Note",), ("Your items: kept 0 of 2",))
    own, searched = plain_explanation(replace(shortfall, own=True)), plain_explanation(shortfall)

    for words_of_it in ("forum", "wider", "Better queries"):
        assert words_of_it in searched.text
        assert words_of_it not in own.text
        assert words_of_it not in fitted("It is so.", replace(shortfall, own=True).advice)
    assert "no place was searched" in own.text
    assert own.suggestions == ()


def test_where_only_the_name_is_searched_no_other_words_are_advised() -> None:
    """A query with `review` would bring the same again."""
    shortfall = Shortfall(Question("Hades"), ("Hades",), ("Steam was asked and found nothing",), by_name=True)
    explained = plain_explanation(shortfall)

    assert explained.suggestions == ()
    assert "Better queries" not in explained.text


def test_many_sources_are_told_as_far_as_they_fit() -> None:
    """Lines that would not fit into the text are left out whole, the first ones stay."""
    lines = tuple(f"source {n}: {'word ' * 12}end" for n in range(12))
    text = plain_explanation(Shortfall(Question("mug"), ("mug",), lines)).text

    assert "source 0" in text
    assert "source 11" not in text
    assert count_words(text) <= 250


def test_nothing_found_is_said() -> None:
    """Without dropped items the text says that nothing came back."""
    text = plain_explanation(Shortfall(Question("x"), ("x",), ())).text

    assert text.startswith("Searched for “x”. Nothing came back that addresses the question.")


def test_what_is_about_it_is_not_called_nothing() -> None:
    """Too few is not none: how many there are is said, with what was dropped and without."""
    few = Shortfall(Question("x"), ("x",), (), kept=1)
    open_gate = plain_explanation(replace(few, unjudged=True)).text
    assert "1 item is left, not all of them judged, too few for a report." in open_gate
    mixed = replace(few, kept=2, dropped=(("Rabbit hutch", ""),))

    assert "“x”. 1 item is about it and kept, too few for a report.\n" in plain_explanation(few).text
    assert (
        "2 items are about it and kept, too few for a report. What else came back does not answer "
        "it, for example “Rabbit hutch”."
    ) in plain_explanation(mixed).text


@pytest.mark.parametrize(
    ("titles", "words_of_it"),
    [
        (("Mower", "Mower", "Hutch"), "does not answer it, for example “Mower”; “Hutch”."),
        (("", "\u200b\x00 ", "Hutch"), "does not answer it, for example “Hutch”."),
        (("", "\u200b\x07"), "“x”. What came back does not answer it.\n"),
    ],
)
def test_examples_have_a_name_and_stand_once(titles: tuple[str, ...], words_of_it: str) -> None:
    """What says nothing is no example, and nor is the same words again."""
    dropped = tuple((title, "") for title in titles)

    text = plain_explanation(Shortfall(Question("x"), ("x",), (), dropped)).text

    assert words_of_it in text


def test_nobody_asked_is_not_nothing_found() -> None:
    """When no source answered, nothing is claimed about the product, and the way out is named."""
    found = plain_explanation(
        Shortfall(
            Question("Plaud Note"),
            ("Plaud Note",),
            ("Reddit could not be asked: not configured", "Amazon could not be asked: blocked"),
            answered=False,
        )
    )

    assert found.text.startswith(
        "“Plaud Note” was not searched for: no source could be asked. By source: Reddit could not "
        "be asked: not configured; Amazon could not be asked: blocked."
    )
    assert "nothing is known: neither that people talk about this, nor that they do not" in found.text
    assert "`listenpost doctor`" in found.text
    for claim in ("Nothing came back", "hard to find", "product is new", "little was found"):
        assert claim not in found.text
    assert found.suggestions == ()


@given(st.text(min_size=1))
def test_any_text_is_fitted(text: str) -> None:
    """Any text ends up between 150 and 250 words when it is not nearly empty."""
    assert count_words(fitted(f"{'One more word here. ' * 5}{text}")) in range(150, 251)


@pytest.mark.parametrize(("text", "count"), [("", 0), ("two words", 2), ("小米 SU7", 3)])
def test_words(text: str, count: int) -> None:
    """Scripts without blanks count by character."""
    assert count_words(text) == count


def test_one_endless_sentence_is_cut() -> None:
    """A sentence above the limit is cut between words."""
    assert count_words(fitted("word " * 400)) == 250


def test_unspaced_sentences_are_cut_whole() -> None:
    """Sentences of a script without blanks end at their own full stop."""
    text = fitted("这是一个关于产品的句子。" * 40)

    assert text.endswith("。")
    assert 200 < count_words(text) <= 250


def test_no_query_that_was_asked_is_called_better() -> None:
    """In any spelling; when all were asked, none is named."""
    asked = ("Plaud Note", "plaud-note review", "Plaud Note problems")
    some = plain_explanation(Shortfall(Question("Plaud Note"), asked, ()))
    more = (*asked, "plaud note alternatives", "plaud note experience")
    none = plain_explanation(Shortfall(Question("Plaud Note"), more, ()))

    assert some.suggestions == ("Plaud Note alternatives", "Plaud Note experience")
    assert none.suggestions == ()
    assert "Better queries" not in none.text
