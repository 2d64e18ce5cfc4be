"""Finds the archive's absolute thresholds on a grid over the dev part of the retrieval set.

    python scripts/training/archive_thresholds.py [evaluation/retrieval/questions.jsonl]

It chooses thresholds that keep every question without an answer free of citations; for the 66 of
the dev part that proves no more than that at least 95 of 100 others are free of them. Among those
it chooses the best recall, then the best precision, then the lowest thresholds. BM25 beside
`evidence_floor` goes no higher than `ONE_WORD`, so that a part number alone is found. The test part
is not read.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from api.core.items import Item
from api.evaluation.metrics import Measures
from api.evaluation.search_scores import (
    LabelledQuestion,
    plain_searches,
    product_search,
    read_questions,
    retrieval_measures,
    retrieve,
    sample_archive,
)
from api.features.archive.search_values import Archive, ArchiveFilters, Matches
from api.settings import RankingSettings, RetrievalSettings

SET = Path(__file__).parents[2] / "evaluation" / "retrieval" / "questions.jsonl"
QUIET = 1.0
EVIDENCE = (0.0, 0.3, 0.4, 0.45, 0.5, 0.52, 0.55, 0.58, 0.6, 0.65, 0.7)
COSINE = (0.0, 0.2, 0.3, 0.4, 0.5, 0.6, 0.65, 0.7, 0.75)
BM25 = (0.0, 2.0, 4.0, 6.0, 10.0, 14.0, 18.0, 22.0, 26.0)
ONE_WORD = 4.0
"""BM25 of a word that one entry of a few thousand holds, where that entry is long: 4 to 6."""
Floors = tuple[float, float, float]
"""`evidence_floor`, `min_cosine` and `min_bm25`."""


@dataclass
class Remembered:
    """An archive that is asked everything once."""

    inner: Archive
    _matches: dict[tuple[str, ...], Matches] = field(default_factory=dict)
    _facts: dict[str, Item] = field(default_factory=dict)
    _queries: Sequence[str] | None = None

    async def matches(
        self, tenant: str, words: Sequence[str], vector: bytes | None, filters: ArchiveFilters,
        most: int, model: str = "",
    ) -> Matches:  # fmt: skip
        """See `Archive`."""
        key = (*words, repr(vector))
        if key not in self._matches:
            self._matches[key] = await self.inner.matches(tenant, words, vector, filters, most, model)
        return self._matches[key]

    async def facts(self, tenant: str, keys: Iterable[str]) -> Mapping[str, Item]:
        """See `Archive`."""
        wanted = set(keys)
        if missing := wanted - self._facts.keys():
            self._facts |= await self.inner.facts(tenant, missing)
        return {key: self._facts[key] for key in wanted}

    async def queries(self, tenant: str, most: int) -> Sequence[str]:
        """See `Archive`."""
        if self._queries is None:
            self._queries = await self.inner.queries(tenant, most)
        return self._queries


async def measured(archive: Archive, questions: Sequence[LabelledQuestion], floors: Floors) -> Measures:
    """The product with these floors."""
    evidence, cosine, bm25 = floors
    retrieval = RetrievalSettings(evidence_floor=evidence, min_cosine=cosine, min_bm25=bm25)
    search = product_search(archive, retrieval, RankingSettings())
    return retrieval_measures(await retrieve(search, questions))


def row(title: str, measures: Measures) -> str:
    """One line of the table."""
    names = ("quiet", "recall", "precision", "ndcg")
    return f"{title:<28}" + " ".join(f"{measures[name] or 0:9.3f}" for name in names)


async def fit(questions: Sequence[LabelledQuestion]) -> None:
    """Print the edges of the grid, and what is chosen."""
    print(f"{'evidence cosine BM25':<28}    quiet    recall precision      nDCG")
    async with sample_archive() as store:
        archive: Any = Remembered(store)
        plain = retrieval_measures(await retrieve(plain_searches(archive)["hybrid"], questions))
        print(row("plain hybrid", plain))
        curve: dict[Floors, Measures] = {}
        alone = [(evidence, 0.0, 0.0) for evidence in EVIDENCE]
        for floors in (*alone, *product((0.0,), COSINE[1:], BM25[1:])):
            curve[floors] = await measured(archive, questions, floors)
        best = _chosen({floors: curve[floors] for floors in alone})
        for floors in product((best[0],), COSINE[1:4], BM25[1:5]):
            curve[floors] = await measured(archive, questions, floors)
    for floors, measures in curve.items():
        print(row(" ".join(f"{floor:>8g}" for floor in floors), measures))
    raw = {floors: measures for floors, measures in curve.items() if not floors[0]}
    low = {floors: measures for floors, measures in curve.items() if floors[2] <= ONE_WORD}
    for title, some in (("chosen", low), ("of cosine and BM25 alone", raw)):
        print(row(f"{title}: {_chosen(some)}", curve[_chosen(some)]))


def _chosen(curve: Mapping[Floors, Measures]) -> Floors:
    return max(
        curve,
        key=lambda floors: (
            (curve[floors]["quiet"] or 0) >= QUIET, curve[floors]["recall"] or 0,
            curve[floors]["precision"] or 0, -sum(floors),
        ),
    )  # fmt: skip


def main() -> None:
    """Fit on the dev part of the set that is named, or of the committed one."""
    file = Path(sys.argv[1]) if len(sys.argv) > 1 else SET
    questions = read_questions(file.read_text("utf-8").splitlines(), str(file))
    asyncio.run(fit([question for question in questions if question.part == "dev"]))


if __name__ == "__main__":
    main()
