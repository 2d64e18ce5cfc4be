"""Which findings a report without a model shows, under which heading, and in what order."""

from __future__ import annotations

import pytest

from api.core.domain import Question
from api.reports.keyless.claims import Statement, statement_of
from api.reports.keyless.product_mentions import Subject
from api.reports.keyless.quotable import is_mixed, leans_to, says_something
from api.reports.keyless.sentence_index import Sentence
from api.reports.keyless.theme_finding import ThemeFinding, ThemePassage, spread, told_once
from api.reports.keyless.themes import find_themes
from tests.reports.lamp import LAMP, exhibits
from tests.reports.unsupported import exhibits_of
from tests.services.kit import post


def statement(text: str) -> Statement:
    """A sentence of a post about the lamp, without a subject."""
    sentence = Sentence("E1", None, text, "ann", "reddit", "", True, True, True, False, False, False)
    return statement_of(sentence, Subject.of(LAMP))


@pytest.mark.parametrize(
    "words",
    [
        "The battery is no gamers who cheat.", "First, the battery is bad.", "Why the battery is great on trips.",
        "I'm not this bad at battery puzzles.", "I've spent 325 hours on a great battery.", "One broke when it fell.",
        "There is a neat battery setting I found there.", "The battery is now £22.59 and great.",
        "The battery has a very good unboxing here.", "The battery is the right one, and great.", "I feel lighter.",
        "Spoil me, the battery is great.", "I don't care how good the battery is.", "I couldn’t care less, it works.",
        "The Best Battery of the Whole Reading Lamp League", "THE BATTERY NEVER WORKS FROM THIS MONTH ON",
        "Our club got 22 lamps, so the price wasn't ours to argue about.",
        "The fact they charge 800 for a dim lamp is wild.", "It can repeat the whole thing, and is fast.",
        "I am digging into a better battery.", "A really bad way of using the lamp.",
        "Get consent first, the lamp is the least of your problems.",
    ],
)  # fmt: skip
def test_what_needs_its_context_or_is_about_its_writer_is_not_quoted(words: str) -> None:
    """What a player did, a price notice, a step of an account, a feature that is not named."""
    assert not says_something(words, follows=True)


@pytest.mark.parametrize(
    "words",
    [
        "I'm disappointed by the battery.",
        "I was impressed by the screen.",
        "Not worth the money.",
        "The price is reasonable.",
        "The screen is dull, but I want to keep it.",
        "My battery was dead within a week.",
        "My wife loves it.",
    ],
)
def test_a_writer_who_judges_the_product_is_quoted(words: str) -> None:
    """Though the sentence begins with its writer, or with a denial."""
    assert says_something(words)


def test_one_person_has_one_of_the_first_five_findings() -> None:
    """Where others speak; their further words come behind those of others."""
    everything = "The battery is great. The screen is great. The app is great. The price is great. The lid is great."
    authors = "ann bob cid dee eve fay".split()
    bodies = [everything, *(f"The {part} is awful." for part in ("battery", "screen", "app", "price", "lid"))]
    shown = exhibits_of(
        *(
            post(n, title="Glow Lamp", body=body, author=author)
            for n, (author, body) in enumerate(zip(authors, bodies, strict=True))
        )
    )
    first = find_themes(LAMP, shown).findings[:5]

    assert len({finding.passages[0].person for finding in first}) == len(first)


def test_findings_are_spread_over_people() -> None:
    """Those of somebody who is quoted already stand behind the fifth; a claim of several people is nobody's alone."""

    def finding(name: str, person: str, alike: int = 1) -> ThemeFinding:
        return ThemeFinding(name, name, "other", (ThemePassage("E1", None, name, None, person),), name, alike, alike)

    order = [finding(name, person) for name, person in zip("abcdefg", "xxyzuvw", strict=True)]
    held = [finding("h", "x", alike=3), *order[:1]]

    assert "".join(entry.name for entry in spread(order)) == "acdefbg"
    assert "".join(entry.name for entry in spread(held)) == "ha"


def test_two_findings_with_half_of_their_sentences_in_common_are_one() -> None:
    """And two that quote the same sentence."""

    def finding(claim: str, *texts: str) -> ThemeFinding:
        passages = tuple(ThemePassage("E1", None, text) for text in (claim, *texts))
        return ThemeFinding("X", claim, "other", passages, claim, len(passages), 9)

    findings = [finding("a", "b"), finding("c", "b"), finding("a", "d", "e"), finding("f", "g", "b")]

    assert [entry.claim for entry in told_once(findings)] == ["a", "f"]


def test_a_general_word_that_the_quotation_is_not_about_is_no_heading() -> None:
    """What the quotation begins with, an aspect and what many speak of are headings."""
    rest = ("Water.", "Some water.", "The water.")
    shown = exhibits("My Glow Lamp is really great for reading at night near the water.", *rest)
    leading = exhibits("The water is awful to pour in.", *rest)

    assert all(finding.name != "Water" for finding in find_themes(LAMP, shown).findings)
    assert find_themes(LAMP, leading).findings[0].name == "Water"


def test_a_side_is_answered_by_words_of_that_side() -> None:
    """Where no sentence surely takes it, what only blames is no answer to what people like."""
    bodies = (
        "The screen is dim in the kitchen.",
        "The screen got a very good change this year and it is really nice in the evening.",
        "A screen.",
    )
    asked = find_themes(Question("What do people like about the Glow Lamp?"), exhibits(*bodies))

    assert [finding.claim for finding in asked.findings] == [
        "The screen got a very good change this year and it is really nice in the evening"
    ]
    assert not leans_to("Nothing is good about it.", 1)
    assert leans_to("It is not good.", -1)
    assert leans_to("The lid doesn't close.", -1)
    assert not leans_to("Nothing else lets me have a lamp for each room.", -1)
    assert not leans_to("The cellar is no problem.", -1)
    assert leans_to("Der Bildschirm ist dunkel und das ist nicht gut.", 1)
    assert is_mixed("Great to open, weak sound.")


def test_what_neither_judges_nor_names_the_product_comes_last() -> None:
    """Unless many people speak of its subject; what surely takes a side goes before it."""
    sure = statement("The battery is awful.")
    idle = statement("My aunt never puts anything there since the flood.")
    measured = statement("A cat slept near 20 minutes on my old chair.")

    assert not sure.weak
    assert idle.weak
    assert not idle.tells
    assert measured.weak


def test_two_words_in_quotation_marks_may_be_the_subject() -> None:
    """More are somebody else's words."""
    bodies = ("It is ridiculous with its “activation price” this year.", "The price.", "A price.")
    (finding, *_) = find_themes(LAMP, exhibits(*(f"I have a Glow Lamp. {body}" for body in bodies))).findings

    assert (finding.name, finding.claim) == ("Price", "It is ridiculous with its “activation price” this year")


def test_a_voice_does_not_repeat_the_subject_of_a_finding() -> None:
    """`Flat by lunch` is said of the battery, on which somebody is quoted already."""
    bodies = ("The battery is awful.", "My battery is terrible.", "The lamp is flat by lunch, which is awful.", "Blue.")
    findings = find_themes(Question("What annoys people about the Glow Lamp?"), exhibits(*bodies)).findings

    assert [finding.name for finding in findings] == ["Battery"]
