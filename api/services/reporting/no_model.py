"""What stands where a model would, when there is no key: it says so, and callers do without."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from api.errors import ModelError
from api.services.ports import Judgement, Rewrites
from api.services.reporting.explaining import Explanation, Shortfall
from api.services.schemas import Item, Question

if TYPE_CHECKING:
    from api.services.evidence.pipeline import Evidence
    from api.services.evidence.run import Run
    from api.services.reporting.dossier import Dossier
    from api.services.reporting.writing import Written


class NoModel:
    """Judge, rewriter, explainer and writer without a key."""

    name = "none"

    async def judge(self, question: Question, items: Sequence[Item], source: str) -> Judgement:
        """Raises ModelError `no_key`."""
        _no_key()

    async def rewrite(
        self, question: Question, variants: int, gaps: Sequence[str] = ()
    ) -> Rewrites:
        """The original query alone."""
        return Rewrites((question.text,))

    async def explain(self, shortfall: Shortfall) -> Explanation:
        """Raises ModelError `no_key`."""
        _no_key()

    async def write(self, run: Run, evidence: Evidence, dossier: Dossier) -> Written:
        """Raises ModelError `no_key`."""
        _no_key()


def _no_key() -> NoReturn:
    raise ModelError("no_key", "set `OPENAI_API_KEY`")
