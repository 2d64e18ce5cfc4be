"""`fetch` and the gate on a tenant's account."""

from __future__ import annotations

import pytest

from api.bootstrap.app_context import judge_within
from api.core.domain import Question
from api.errors import LimitReached, UsageError
from api.features.analyses.api_keys import Tenant
from api.features.analyses.limits import Limits, fetch_within
from api.pipeline.gate.verdicts import Gate
from api.services.product import Ask
from tests.services.fakes import FakeJudge, FakeSource, items
from tests.services.kit import Grading, kit, plain, posts
from tests.services.shelf import NOW, Shelf

ANN = Tenant("ann", "store")
SPENT = ("key:ann:usd", NOW.date())


def limits(shelf: Shelf) -> Limits:
    """One USD a day."""
    return Limits(shelf.store, 0, 0, 1.0, lambda: NOW)


async def test_a_fetch_costs_what_its_models_cost() -> None:
    """Judging and grading together, instead of the estimate."""
    shelf = Shelf()
    product = kit(FakeSource(posts(4)), grader=Grading())
    heard = await fetch_within(limits(shelf), ANN, 0.9, product, "reddit", Ask("ember mug", "standard"))

    assert plain(heard.fetched)["kept"] == 4
    assert heard.gathered.usage.usd is not None
    assert 0 < shelf.units[SPENT] < 900_000


async def test_a_fetch_that_cannot_be_asked_costs_nothing() -> None:
    """What was reserved is given back."""
    shelf = Shelf()
    with pytest.raises(UsageError):
        await fetch_within(limits(shelf), ANN, 0.9, kit(), "reddit", Ask("ember mug"))

    assert shelf.units[SPENT] == 0


async def test_judging_own_items_costs_what_the_judge_costs() -> None:
    """And nothing without items."""
    shelf, gate = Shelf(), Gate(FakeJudge({"0"}))
    gated = await judge_within(limits(shelf), ANN, 0.6, gate, Question("mug"), items(2), "reddit")
    await judge_within(limits(shelf), ANN, 0.5, gate, Question("mug"), [], "reddit")

    assert [verdict.relevant for verdict in gated.verdicts] == [True, False]
    assert shelf.units[SPENT] == 500_000
    with pytest.raises(LimitReached):
        await judge_within(limits(shelf), ANN, 0.6, gate, Question("mug"), items(2), "reddit")
