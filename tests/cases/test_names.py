"""Names that are words, parts of words, or nearly another name."""

from __future__ import annotations

import pytest

from api.evaluation.judge_candidates import name_strength
from api.models.local.judge import LocalJudge
from api.services.tools import relevance_filter
from tests.cases.conftest import World


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("ai", "Training for my first marathon, and the rain again"),
        ("HP", "How do I get the shp file into the map"),
        ("oura", "Souvlaki and courage: a week in Athens"),
    ],
)
async def test_a_name_inside_a_word_is_no_mention(query: str, text: str) -> None:
    """B61: letters in the middle of another word do not make a post about a brand."""
    kept, _ = await relevance_filter(query, [{"title": text}], "reddit", judge=LocalJudge())

    assert name_strength(query, [text]) == [0.0]
    assert kept == []


async def test_context_tells_two_of_nearly_one_name_apart(world: World) -> None:
    """B85: what the person says about it reaches the model; without it the verdicts are others."""
    hotel, visitors = "The Lodge at Torrey Pines: a spa", "Torrey Pines Lodge: trail maps"
    items = [{"title": hotel}, {"title": visitors}]
    plain = await relevance_filter("Torrey Pines Lodge", items, "reddit", judge=world.judge)
    world.mind.relevant = lambda text: ("spa" in text) == ("hotel" in world.model.user)
    told = await relevance_filter(
        "Torrey Pines Lodge", items, "reddit", judge=world.judge, about="the hotel, not the park"
    )

    assert plain[0] == items
    assert told[0] == [{"title": hotel}]
    assert " about>the hotel</q-" in world.model.user
    assert " not about>park</q-" in world.model.user
