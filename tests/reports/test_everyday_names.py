"""A name that is an everyday word says so in the notes, once."""

from __future__ import annotations

import pytest

from api.services.product import Ask, analyze
from tests.services.fakes import FakeSource
from tests.services.kit import kit


@pytest.mark.parametrize(
    ("query", "about", "notes"),
    [
        ("Bolt", "", 1),
        ("Bolt", "ride-hailing app", 0),
        ("Bolt app", "", 0),
        ("plaud.ai", "", 0),
        ("Does the Ember mug battery last?", "", 0),
        ("Does the Ember battery last?", "", 1),
    ],
)
async def test_an_everyday_name_asks_for_what_it_is(query: str, about: str, notes: int) -> None:
    """
    Not where that is known, nor of a name that is no other word.
    """
    report = await analyze(kit(FakeSource([])), Ask(query, about=about))

    assert sum("everyday word" in note for note in report.quality_notes) == notes
