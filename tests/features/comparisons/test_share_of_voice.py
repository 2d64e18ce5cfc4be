"""How the people who speak of several products divide among them."""

from __future__ import annotations

from typing import Any

import pytest

from api.core.work import Failure
from api.features.comparisons.comparison import ShareOfVoice, Voice
from api.pipeline.evidence.figures import wilson
from api.reports.report import Report
from tests.features.comparisons.made import about, compared, posts, spoken


def voice_of(*answers: Report | Failure) -> ShareOfVoice:
    """The share of voice of these."""
    voice = compared(*answers).voice
    assert voice is not None
    return voice


def people(voices: tuple[Voice, ...]) -> dict[str, int]:
    """People by product."""
    return {each.query: each.people for each in voices}


def test_shares_are_of_people_with_their_intervals() -> None:
    """By place and by week, and of all places together."""
    ember = spoken("Ember", {"reddit": 6, "lemmy": 3}, {"2026-11-02": 4, "2026-11-16": 2})
    ohom = spoken("Ohom", {"reddit": 2, "lemmy": 1}, {"2026-11-16": 2})

    voice = voice_of(ember, ohom)

    assert voice.reason is None
    assert people(voice.total) == {"Ember": 9, "Ohom": 3}
    assert [each.share for each in voice.total] == [0.75, 0.25]
    assert [each.interval for each in voice.total] == [wilson(9, 12), wilson(3, 12)]
    assert {name: people(each) for name, each in voice.places.items()} == {
        "reddit": {"Ember": 6, "Ohom": 2}, "lemmy": {"Ember": 3, "Ohom": 1},
    }  # fmt: skip
    assert [(str(week.monday), people(week.voices)) for week in voice.weeks] == [
        ("2026-11-02", {"Ember": 4, "Ohom": 0}), ("2026-11-16", {"Ember": 2, "Ohom": 2}),
    ]  # fmt: skip


def test_a_place_whose_posts_name_no_author_counts_for_no_product() -> None:
    """Listings of a shop; where it is all that was asked, no limit is to blame."""
    mug, nobody = {"reddit": {"people": 2, "weeks": {}, "undated": 0}}, posts("Ember", "Warm.", place="lemmy")
    ember = about("Ember", [*posts("Ember", "Hot."), *nobody], figures={"voices": mug})
    ohom = spoken("Ohom", {"reddit": 1, "lemmy": 1})
    alone = about("Ember", nobody, figures={"voices": {}})

    voice = voice_of(ember, ohom)
    assert (people(voice.total), voice.left_out) == (
        {"Ember": 2, "Ohom": 1}, {"lemmy": "its posts name no author for Ember"},
    )  # fmt: skip
    assert voice_of(alone, spoken("Ohom", {"lemmy": 1})).reason == "no place counts for every product"


@pytest.mark.parametrize(
    ("lemmy", "why"),
    [
        ({"capped": True}, "cut by a limit for Ohom"),
        ({"outcome": "blocked", "reason": "too often"}, "no answer for Ohom"),
        ({"outcome": "not_configured", "reason": "no key"}, "not asked for Ohom"),
        ({"gate": {"status": "degraded", "reason": "timeout", "model": None}}, "not judged for Ohom"),
    ],
)
def test_a_place_counts_for_every_product_or_for_none(lemmy: dict[str, Any], why: str) -> None:
    """With the product for which something is unknown."""
    ember = spoken("Ember", {"reddit": 6, "lemmy": 3})
    ohom = spoken("Ohom", {"reddit": 2, "lemmy": 1}, sources={"lemmy": lemmy})

    voice = voice_of(ember, ohom)

    assert voice.left_out == {"lemmy": why}
    assert people(voice.total) == {"Ember": 6, "Ohom": 2}
    assert list(voice.places) == ["reddit"]


def test_a_place_that_one_product_was_not_put_to_is_left_out() -> None:
    """Though the other has posts there."""
    voice = voice_of(spoken("Ember", {"reddit": 6, "lemmy": 3}), spoken("Ohom", {"reddit": 2}))

    assert voice.left_out == {"lemmy": "not asked for Ohom"}
    assert people(voice.total) == {"Ember": 6, "Ohom": 2}


def test_a_product_of_which_nobody_speaks_has_a_share_of_nothing() -> None:
    """It was looked for; a product that could not be analyzed is in no share."""
    voice = voice_of(spoken("Ember", {"reddit": 6}), about("Ohom", []), Failure("failed", "it failed"))

    assert [(each.query, each.people, each.share) for each in voice.total] == [("Ember", 6, 1.0), ("Ohom", 0, 0.0)]


def test_without_people_places_or_like_questions_there_is_no_share() -> None:
    """Each with its reason."""
    ember, ohom = spoken("Ember", {"reddit": 6}), spoken("Ohom", {"reddit": 2})
    older = about("Ohom", posts("Ohom", "It is a mug."))
    again = ohom.model_copy(update={"again_of": "a1"})
    deeper = ohom.model_copy(update={"depth": "deep"})
    capped = spoken("Ohom", {"reddit": 2}, sources={"reddit": {"capped": True}})

    reasons = [
        voice_of(*answers).reason or ""
        for answers in (
            (ember, older), (ember, again), (ember, deeper), (ember, capped), (ember, Failure("failed", "no")),
        )
    ]  # fmt: skip

    for reason, words in zip(
        reasons,
        (
            "is of an older version",
            "was judged again",
            "were not asked alike (depth:",
            "ask with a higher limit",
            "fewer than two",
        ),
        strict=True,
    ):
        assert words in reason
    assert voice_of(ember, older).total == ()
