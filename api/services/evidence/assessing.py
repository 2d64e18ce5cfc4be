"""The one set of rules by which kept items are graded, dropped and ordered, whoever asks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from api.services.evidence.ranking import Ranked, by_words, rank
from api.services.evidence.run import Run
from api.services.question import Scope
from api.services.schemas import Assessed, Usage
from api.settings import RankingSettings, RetrievalSettings


@dataclass(frozen=True, slots=True)
class Assessor:
    """Grade, floor and rank: for evidence, follow-ups, fetch and chat alike."""

    ranking: RankingSettings
    retrieval: RetrievalSettings
    source_weights: Mapping[str, float] = field(default_factory=dict)

    async def assess(
        self,
        run: Run,
        scope: Scope,
        kept: Sequence[Assessed],
        *,
        graded: bool = True,
        known: Sequence[Assessed] = (),
    ) -> Ranked:
        """What the gate kept, best first, and what the cutoff, a floor or a twin dropped.

        Costs one grade call per ten items that this run has not graded yet; none when `graded` is
        off. Items that `known` holds, or copies of such, do not come back.
        """
        usage = Usage()
        if graded:
            kept, usage = await run.grade(scope.question, kept, scope.depth.relevance_cutoff)
        ranked = rank(
            kept,
            depth=scope.depth,
            ranking=self.ranking,
            retrieval=self.retrieval,
            now=datetime.now(UTC),
            source_weights=self.source_weights,
            rerank=by_words(scope.question.text),
            known=known,
        )
        return replace(ranked, usage=usage)
