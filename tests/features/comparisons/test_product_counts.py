"""What a report counts for."""

from __future__ import annotations

import pytest

from api.core.work import Failure
from tests.features.comparisons.made import about, compared, posts

HOT = "I hate the battery of the Ember."


def test_posts_are_counted_by_aspect_and_side() -> None:
    """Of all posts that a judge said yes to, in the words that are shown."""
    ember = about("Ember", posts("Ember", HOT, "I love the battery of the Ember.", "It is a mug."))
    standing = compared(ember, about("Ohom", posts("Ohom", "It is a cup."))).products[0]

    assert (standing.state, standing.posts, standing.analysis_id) == ("compared", 3, "idEmber")
    assert [(each.aspect, each.count, each.positive, each.negative) for each in standing.aspects] == [
        ("battery", 2, 1, 1)
    ]
    assert set(standing.aspects[0].cites) == {"reddit:Ember0", "reddit:Ember1"}


def test_what_went_unjudged_counts_for_nothing() -> None:
    """Nobody knows what it is about; where all went so, the product says it."""
    unjudged = posts("Ember", HOT, verdict=None, judge=None)
    judged = posts("Ohom", "It is a cup.")
    degraded = {"gate": {"status": "degraded", "reason": "timeout", "model": None}}
    ember = about("Ember", unjudged, {"reddit": degraded})
    ohom = about("Ohom", judged + posts("More", HOT, verdict=None, judge=None))

    first, second = compared(ember, ohom).products

    assert (first.state, first.posts, first.reason) == ("unjudged", 0, "4 of 7")
    assert not first.sources["reddit"].judged
    assert (second.state, second.posts, second.aspects) == ("compared", 1, ())


def test_a_product_that_could_not_be_compared_says_why() -> None:
    """Not asked, nothing found and failed are three things; none hides the others."""
    refused = {"outcome": "refused", "reason": "401", "capped": None}
    comparison = compared(
        about("Ember", [], {"reddit": refused}, coverage="Reddit: access refused."),
        about("Ohom", []),
        Failure("internal", "an internal error"),
        about("Yeti", posts("Yeti", HOT)),
    )

    assert [(each.state, each.reason) for each in comparison.products] == [
        ("not_asked", "Reddit: access refused."),
        ("nothing", "4 of 7"),
        ("failed", "an internal error"),
        ("compared", None),
    ]
    assert comparison.answered
    assert [each.query for each in comparison.comparable] == ["Yeti"]
    assert comparison.products[2].analysis_id is None
    assert comparison.products[2].sources == {}
    assert not compared(Failure("x", "no"), about("Ember", [], {"reddit": refused})).answered


@pytest.mark.parametrize(("known", "more"), [(True, True), (None, True), (False, False)])
def test_what_may_be_more_is_a_minimum(known: bool | None, more: bool) -> None:
    """Unless it is known that there is no more; of what was not asked there is no minimum."""
    ember = about("Ember", posts("Ember", HOT), {"reddit": {"capped": known}})
    refused = about("Ohom", [], {"reddit": {"outcome": "refused", "capped": known}})
    first, second = compared(ember, refused).products

    assert (first.capped, first.sources["reddit"].capped) == (more, more)
    assert not second.capped


def test_sentiment_is_that_of_grades() -> None:
    """Of judged posts alone; none of made-up data, where a stand-in guesses."""
    glad = posts("Ember", HOT, "It is a mug.")
    glad[0]["sentiment"] = 1
    comparison = compared(about("Ember", glad), about("Ohom", posts("Ohom", HOT), sample=True))
    felt = comparison.products[0].sentiment

    assert felt is not None
    assert (felt.n, felt.positive, felt.ungraded) == (1, 1, 1)
    assert comparison.products[1].sentiment is None
    assert comparison.sample
    graded = about("Ohom", [{**entry, "sentiment": 1} for entry in glad], sample=True)
    assert compared(graded, about("Ember", glad)).products[0].sentiment is None


def test_a_word_with_two_meanings_needs_its_context_everywhere() -> None:
    """`rides` is an aspect of a cab, and of nothing that is set beside a mug."""
    cabs = [about(name, posts(name, f"{name} rides are late.")) for name in ("Bolt cab", "Uber cab")]
    mug = about("Ember", posts("Ember", HOT))

    assert {each.aspect for each in compared(*cabs).products[0].aspects} == {"rides"}
    assert compared(cabs[0], mug).products[0].aspects == ()
    assert compared(cabs[0], about("Ember", [])).products[0].aspects != ()
