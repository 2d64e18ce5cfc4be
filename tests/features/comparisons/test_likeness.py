"""Whether products were asked alike."""

from __future__ import annotations

from typing import Any

import pytest

from api.features.comparisons.compare import ask_of_report, differing_terms
from api.services.product import Ask
from tests.features.comparisons.made import PLACES, about, compared, posts

MUG = "It is a mug."


@pytest.mark.parametrize(
    ("how", "phrase"),
    [
        ({"depth": "quick"}, "depth: standard for Ember, Ohom; quick for Yeti"),
        ({"grading": "off"}, "grades by a model: yes for Ember, Ohom; no for Yeti"),
        ({"since": "week"}, "how far back: any time for Ember, Ohom; the last week for Yeti"),
        ({"limit": 7}, "posts asked of a place: as usual for Ember, Ohom; 7 at first for Yeti"),
        ({"sample": True}, "data: real for Ember, Ohom; made up for Yeti"),
        (
            {"since": None},
            "how far back: any time for Ember, Ohom; not known (an older version asked) for Yeti",
        ),
        (
            {"created_at": "2026-11-28T10:00:00Z"},
            "when: 2026-11-27 10:00Z for Ember, Ohom; 2026-11-28 10:00Z for Yeti",
        ),
        (
            {"sources": {"lemmy": {}}},
            "places: Reddit for Ember, Ohom; Lemmy, Reddit for Yeti",
        ),
    ],
)
def test_in_what_they_differ_is_said_of_each(how: dict[str, Any], phrase: str) -> None:
    """One term, and who is which."""
    like = [about(name, posts(name, MUG)) for name in ("Ember", "Ohom")]
    assert compared(*like, about("Yeti", posts("Yeti", MUG), **how)).unlike == (phrase,)


def test_at_another_depth_as_many_is_another_number() -> None:
    """What each depth asks for is its own, and not said twice."""
    reports = [about("Ember", [], depth="quick", limit=7), about("Ohom", [])]
    assert set(differing_terms(reports, PLACES)) == {"depth"}


def test_within_the_hour_is_the_same_time() -> None:
    """One may have waited for its turn."""
    reports = [
        about(name, [], created_at=f"2026-11-27T{time}:00Z") for name, time in (("Ember", "10:00"), ("Ohom", "11:00"))
    ]
    assert differing_terms(reports, PLACES) == {}


def test_where_nothing_was_asked_nothing_differs() -> None:
    """A question that names nothing has no places and no reach; no reports have none either."""
    nothing = about("hello", [], depth="deep").model_copy(update={"sources": {}, "since": None})
    assert differing_terms([about("Ember", []), nothing], PLACES) == {}
    assert differing_terms([], PLACES) == {}


@pytest.mark.parametrize(
    ("how", "counts"),
    [
        ({"since": "week"}, False),
        ({"depth": "quick"}, False),
        ({"limit": 7}, True),
        ({}, True),
    ],
)
def test_volumes_are_compared_where_as_much_was_asked(how: dict[str, Any], counts: bool) -> None:
    """Of another time or depth other posts are counted; a limit is known to have cut none."""
    ember = about("Ember", posts("Ember", *[MUG] * 20), **how)
    comparison = compared(ember, about("Ohom", posts("Ohom", *[MUG] * 4)))
    assert [contrast.measure for contrast in comparison.contrasts] == ["posts"] * counts


def test_a_report_knows_its_question() -> None:
    """Its places are those that were asked; of an older one how far back is not known."""
    unset = {"lemmy": {"outcome": "not_configured"}}
    report = about("Ember", posts("Ember", MUG), unset, about="a mug", since="week", limit=7)
    older = report.model_copy(update={"since": None})

    assert ask_of_report(report) == Ask("Ember", "standard", ("reddit",), 7, "a mug", since="week")
    assert ask_of_report(older).since == "all"
