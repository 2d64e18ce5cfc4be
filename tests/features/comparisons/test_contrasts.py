"""Which differences are marked."""

from __future__ import annotations

from typing import Any

import pytest

from api.features.comparisons.comparison import Contrast
from tests.features.comparisons.made import about, compared, posts

HATED, MUG = "I hate the battery of the {}.", "It is a mug."


def told(name: str, hated: int, rest: int, **more: Any) -> list[dict[str, Any]]:
    """Posts of which some complain of the battery."""
    return posts(name, *[HATED.format(name)] * hated, *[MUG] * rest, **more)


def marked(*answers: Any) -> dict[str, Contrast]:
    """The contrasts by measure."""
    return {contrast.measure: contrast for contrast in compared(*answers).contrasts}


def test_a_share_that_surely_differs_is_marked_from_either_side() -> None:
    """With its interval and the posts of both; the sentence counts what is counted."""
    ember, ohom = about("Ember", told("Ember", 9, 5)), about("Ohom", told("Ohom", 2, 13))
    contrast = marked(ember, ohom)["complaint"]

    assert contrast.text == (
        "Battery: more complaints about Ember, in 9 of 14 posts, against 2 of 15 about Ohom "
        "(51 percentage points, 95 %: 16 to 73)."
    )
    assert (contrast.more, contrast.less, contrast.aspect) == ("Ember", "Ohom", "battery")
    assert contrast.estimate == pytest.approx(9 / 14 - 2 / 15)
    assert contrast.chance == pytest.approx(3 * 0.00778, abs=5e-5)  # of three looks
    assert contrast.sources == ("reddit",)
    assert contrast.cites[:9] == tuple(f"reddit:Ember{number}" for number in range(9))
    assert contrast.cites[9:] == ("reddit:Ohom0", "reddit:Ohom1")
    assert marked(ohom, ember)["complaint"] == contrast


def test_what_chance_may_make_is_not_marked() -> None:
    """Three of six against one of six, however often it is looked at."""
    comparison = compared(about("Ember", told("Ember", 3, 3)), about("Ohom", told("Ohom", 1, 5)))

    assert comparison.looked_at == 3  # volume, spoken of, complained of
    assert comparison.contrasts == ()
    assert [finding.marked for finding in comparison.findings] == [False]


def test_each_further_look_asks_for_more() -> None:
    """A difference that stands between two does not among five."""
    two = [about("Ember", told("Ember", 7, 7)), about("Ohom", told("Ohom", 1, 14))]
    assert "complaint" in marked(*two)
    others = [about(name, told(name, 3, 3)) for name in ("Tescoma", "Zojirushi", "Contigo")]

    comparison = compared(*two, *others)
    pairs = {(contrast.more, contrast.less) for contrast in comparison.contrasts}
    assert ("Ember", "Ohom") not in pairs
    assert comparison.looked_at == 30


def test_too_few_posts_are_not_looked_at() -> None:
    """Two that speak of it, four in all: no volume, no share."""
    assert compared(about("Ember", told("Ember", 2, 0)), about("Ohom", told("Ohom", 0, 2))).looked_at == 0


def test_volumes_are_of_sources_that_were_read_to_the_end() -> None:
    """For both; else no difference in volume is claimed, whatever the counts."""
    ember, ohom = posts("Ember", *[MUG] * 20), posts("Ohom", *[MUG] * 4)
    contrast = marked(about("Ember", ember), about("Ohom", ohom))["posts"]

    assert contrast.text == (
        "More is said about Ember: 20 posts, against 4 about Ohom on Reddit, where neither hit a "
        "limit (5.0 times as many, 95 %: 1.8 to 14.0)."
    )
    assert contrast.aspect == ""
    assert len(contrast.cites) == 24
    capped = about("Ember", ember, {"reddit": {"capped": True}})
    assert "posts" not in marked(capped, about("Ohom", ohom))
    unjudged = {"reddit": {"gate": {"status": "degraded", "reason": "x", "model": None}}}
    assert "posts" not in marked(about("Ember", ember, unjudged), about("Ohom", ohom))


def test_a_volume_against_none_has_no_upper_end() -> None:
    """Its sources are named, and it is a minimum."""
    ember = posts("Ember", *[MUG] * 8) + posts("Far", *[MUG] * 8, place="lemmy")
    ohom = about("Ohom", posts("Ohom", *[MUG] * 3, place="github"), {"reddit": {}, "lemmy": {}})
    contrast = marked(about("Ember", ember), ohom)["posts"]

    assert (contrast.estimate, contrast.high) == (None, None)
    assert contrast.sources == ("reddit", "lemmy")
    assert contrast.text == (
        "More is said about Ember: 16 posts, against none about Ohom on Reddit and Lemmy, where "
        "neither hit a limit (at least 4.2 times as many, by a 95 % interval)."
    )


def test_shares_are_of_sources_that_answered_for_both() -> None:
    """The posts of another do not count, and the sentence says so."""
    lemmy = told("Far", 9, 0, place="lemmy")
    ember = about("Ember", told("Ember", 9, 5) + [{**each, "body": HATED.format("Ember")} for each in lemmy])
    refused = {"lemmy": {"outcome": "refused", "capped": None}}
    contrast = marked(ember, about("Ohom", told("Ohom", 2, 13), refused))["complaint"]

    assert "in 9 of 14 posts, against 2 of 15 about Ohom on Reddit, which answered for both (" in contrast.text
    assert contrast.sources == ("reddit",)


def test_nothing_in_common_is_nothing_to_compare() -> None:
    """Each was answered by another source alone."""
    ohom = told("Ohom", 2, 13, place="lemmy")
    comparison = compared(about("Ember", told("Ember", 9, 5)), about("Ohom", ohom))
    assert (comparison.looked_at, comparison.contrasts) == (0, ())
    assert [finding.aspect for finding in comparison.findings] == ["battery"]


def test_grades_are_compared_where_both_have_them() -> None:
    """Of the graded posts; without grades of one product not at all."""
    glad, sad = (
        [{**each, "sentiment": felt} for each in told(name, 0, 12)] for name, felt in (("Ember", 1), ("Ohom", -1))
    )
    found = marked(about("Ember", glad), about("Ohom", sad))

    assert found["sounds_positive"].text == (
        "More posts sound positive about Ember, in 12 of 12 posts, against none of 12 about Ohom "
        "(100 percentage points, 95 %: 66 to 100)."
    )
    assert found["sounds_negative"].more == "Ohom"
    assert not marked(about("Ember", glad), about("Ohom", told("Ohom", 0, 12)))
