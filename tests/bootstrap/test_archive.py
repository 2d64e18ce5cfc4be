"""The grader as the archive's reranker: its scores, or none at all."""

from __future__ import annotations

import pytest

from api.bootstrap.storage import graded
from api.errors import ModelError
from api.features.archive.index_words import Chunk
from tests.services.fakes import FakeGrader

PIECES = [Chunk("reddit:a", "", 0, "Mug", "Warm."), Chunk("reddit:b", "", 0, "Lid", "It leaks.")]


async def test_pieces_are_graded_in_order() -> None:
    """From 1 to 5, by one call."""
    grader = FakeGrader({"reddit:b": 5})

    assert await graded(grader)("does it leak?", PIECES) == [4.0, 5.0]
    assert grader.asked == [["reddit:a", "reddit:b"]]


async def test_grades_that_stand_in_are_none() -> None:
    """Then the order stays, and the answer says why."""
    with pytest.raises(ModelError, match="malformed"):
        await graded(FakeGrader(defaulted=True))("does it leak?", PIECES)
