"""The grader as the archive's reranker, and the check of answers: what they say, or nothing at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from api.bootstrap.storage import answering, graded, within_budget
from api.core.domain import Question, Usage
from api.core.model_batches import UnusableAnswer
from api.core.ports import Support
from api.errors import ModelError
from api.features.analyses.api_keys import Tenant
from api.features.analyses.limits import Limits
from api.features.archive.index_words import Chunk
from api.store import open_store
from tests.services.fakes import FakeGrader

PIECES = [Chunk("reddit:a", "", 0, "Mug", "Warm."), Chunk("reddit:b", "", 0, "Lid", "It leaks.")]


async def test_pieces_are_graded_in_order() -> None:
    """From 1 to 5, by one call."""
    grader = FakeGrader({"reddit:b": 5})

    assert await graded(grader)("does it leak?", PIECES) == [4.0, 5.0]
    assert grader.asked == [["reddit:a", "reddit:b"]]


USED = Usage(1500, 40, 0.25, 1)
KEY = Tenant("key:t", "environment")


@dataclass
class Answerer:
    """Says yes to the first passage, or gives an answer that cannot be used."""

    fails: bool = False
    asked: int = 0

    async def answering(self, question: Question, passages: Sequence[tuple[str, str]]) -> Support:
        self.asked += 1
        if self.fails:
            raise UnusableAnswer("malformed", usage=USED)
        return Support((True, *[False] * (len(passages) - 1)), "m", USED)


async def test_a_check_is_paid_from_the_budget_of_a_key(tmp_path: Path) -> None:
    """What it cost counts, also of an answer that cannot be used; with too little left nobody is asked."""
    store = await open_store(f"sqlite:///{tmp_path / 'limits.db'}")
    answerer = Answerer()
    check = within_budget(answering(answerer), Limits(store, usd_per_day=0.6), KEY, 0.3)

    assert await check("does it leak?", PIECES) == ((True, False), USED)
    answerer.fails = True
    with pytest.raises(ModelError, match="malformed"):
        await check("does it leak?", PIECES)
    with pytest.raises(ModelError, match="quota"):
        await check("does it leak?", PIECES)
    assert answerer.asked == 2
    await store.aclose()


async def test_grades_that_stand_in_are_none() -> None:
    """Then the order stays, and the answer says why."""
    with pytest.raises(ModelError, match="malformed"):
        await graded(FakeGrader(defaulted=True))("does it leak?", PIECES)
