"""A model opens what shares no words with the question: when it is asked, about what, and what a failure leaves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from api.core.domain import Usage
from api.core.model_batches import UnusableAnswer
from api.features.archive.index_words import Chunk
from api.features.archive.search import CHECKED, READ, ArchiveSearch
from api.settings import RankingSettings, RetrievalSettings
from tests.features.archive.made import NEAREST, QUERY, archive_of, embed, match, page


@dataclass
class Model:
    """Says that the pieces of these items answer, or fails."""

    answers: tuple[str, ...] = ()
    fails: str = ""
    asked: list[tuple[str, list[str]]] = field(default_factory=list)

    async def __call__(self, query: str, pieces: Sequence[Chunk]) -> tuple[Sequence[bool], Usage]:
        self.asked.append((query, [piece.key for piece in pieces]))
        usage = Usage(1500, 40, 0.0003, 1)
        if self.fails:
            raise UnusableAnswer(self.fails, usage=usage)
        return [piece.key in self.answers for piece in pieces], usage


NEAR = [match(f"x:{n}", 0, (100 - n, n)) for n in range(12)]
"""Entries that share no word with the question, the nearest first."""


def searching(model: Model | None, *entries: object, **settings: object) -> ArchiveSearch:
    """A search of these."""
    retrieval = RetrievalSettings.model_validate(settings)
    found = page(*(entries or NEAR))
    return ArchiveSearch(archive_of(found), embed, retrieval, RankingSettings(), check=model)


async def test_the_best_entries_are_put_to_the_model_by_one_call() -> None:
    """Those that answer are shown in their order; the cost is in the answer, which says who read."""
    model = Model(("x:1", "x:5"))
    answer = await searching(model).search("a", QUERY, terse=True)

    assert [hit.key for hit in answer.hits] == ["x:1", "x:5"]
    assert model.asked == [(QUERY, [f"x:{n}" for n in range(CHECKED)])]
    assert answer.text.endswith(READ)
    retrieval = answer.retrieval
    assert (retrieval.checked, retrieval.check_tokens, retrieval.check_usd) == (CHECKED, 1540, 0.0003)


async def test_nothing_answers_and_nothing_is_shown() -> None:
    """The answer says no more than without a model."""
    answer = await searching(Model()).search("a", QUERY, terse=True)
    assert (answer.hits, answer.retrieval.checked, READ in answer.text) == ((), CHECKED, False)


async def test_a_failure_shows_nothing_and_is_noted() -> None:
    """With what it cost."""
    answer = await searching(Model(("x:1",), fails="malformed")).search("a", QUERY, terse=True)
    assert answer.hits == ()
    assert (answer.retrieval.check_failed, answer.retrieval.check_tokens) == ("malformed", 1540)


@pytest.mark.parametrize(
    ("terse", "settings", "entries"),
    [
        (False, {}, NEAR),
        (True, {"answer_check": False}, NEAR),
        (True, {"guardrails_enable": False}, NEAR),
        (True, {}, [match("x:0", 5, NEAREST)]),
    ],
    ids=["in a chat", "switched off", "without floors", "words were found"],
)
async def test_nobody_is_asked(terse: bool, settings: dict[str, object], entries: list[object]) -> None:
    """Where it would cost for nothing."""
    model = Model(("x:0",))
    answer = await searching(model, *entries, **settings).search("a", QUERY, terse=terse)
    assert (model.asked, answer.retrieval.checked) == ([], 0)


async def test_without_entries_nobody_is_asked() -> None:
    """There is nothing to read."""
    model = Model()
    search = ArchiveSearch(archive_of(page()), embed, RetrievalSettings(), RankingSettings(), check=model)
    await search.search("a", QUERY, terse=True)
    assert model.asked == []
