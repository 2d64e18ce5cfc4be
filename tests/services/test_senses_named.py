"""Names of the senses of an ambiguous name in a report: by one call of a model, or none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest

from api.core.domain import Question, Sense, Usage
from api.core.ports import NamedSenses
from api.errors import ModelError
from api.services.product import Ask, analyze
from tests.services.fakes import FakeSource
from tests.services.kit import kit, posts

ASK = Ask("ember mug")

GROUPS = (Sense(1, ("browser", "tabs"), ("a",), 5, 5), Sense(2, ("raiders", "loot"), ("b",), 4, 0))


@dataclass
class Namer:
    """Names every sense by its number, or fails; keeps how often it was asked."""

    failure: Exception | None = None
    calls: int = 0

    async def name_senses(self, question: Question, senses: Sequence[Sense]) -> NamedSenses:
        self.calls += 1
        if self.failure is not None:
            raise self.failure
        named = tuple(replace(sense, name=f"kind {sense.number}") for sense in senses)
        return NamedSenses(named, Usage(100, 10, 0.5, 1))


@pytest.mark.parametrize(("groups", "calls"), [(GROUPS, 1), ((), 0)])
async def test_a_model_names_the_senses_of_an_ambiguous_name_alone(groups: tuple[Sense, ...], calls: int) -> None:
    """By one call, whose cost counts; none where the name means one thing."""
    namer, plain_cost = Namer(), (await analyze(kit(FakeSource(posts(6))), ASK)).cost.usd or 0
    product = replace(kit(FakeSource(posts(6))), senses=lambda *_: groups, namer=namer)

    report = await analyze(product, ASK)

    assert namer.calls == calls
    assert [sense.name for sense in report.senses] == ["kind 1", "kind 2"][: len(groups)]
    assert report.cost.usd == pytest.approx(plain_cost + 0.5 * calls)


@pytest.mark.parametrize("failure", [ModelError("timeout"), RuntimeError("a defect")])
async def test_senses_that_no_model_named_are_shown_by_their_words(failure: Exception) -> None:
    """The report stands, and says so."""
    product = replace(kit(FakeSource(posts(6))), senses=lambda *_: GROUPS, namer=Namer(failure))
    report = await analyze(product, ASK)
    assert report.senses == GROUPS
    assert any("no model named them" in note for note in report.quality_notes)
