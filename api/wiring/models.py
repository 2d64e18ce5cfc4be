"""Everything that asks a model, for one set of model settings; heavy libraries load when needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from api.judges.local import LocalJudge
from api.services.evidence.assessing import Assessor
from api.services.evidence.pipeline import Evidence
from api.services.evidence.run import Run
from api.services.gate.judging import Gate
from api.services.listening import Writer, Written
from api.services.ports import Grader, Judge, Rewriter
from api.services.reporting.dossier import Dossier
from api.services.reporting.explaining import Explainer
from api.services.reporting.no_model import NoModel
from api.settings import ModelSettings, Settings

if TYPE_CHECKING:
    from api.judges.client import ModelClient
    from api.tracing import Tracing


def model_client(models: ModelSettings, beside: ModelClient | None) -> ModelClient | None:
    """The model client, if there is a key; without one openai is not even imported."""
    if models.openai_api_key is None:
        return None
    from api.judges.client import ModelClient

    return ModelClient(models, None if beside is None else beside.limiter)


@dataclass(frozen=True, slots=True)
class Crew:
    """Everything that asks a model, for one set of model settings."""

    settings: Settings
    models: ModelSettings
    client: ModelClient | None
    tracing: Tracing | None

    def gate(self, *, alone: bool, checked: bool = True) -> Gate:
        """`alone`: the local judge answers; `checked`: it looks over the model's shoulder."""
        general, local = self.settings.general, LocalJudge()
        if alone or (general.judge == "local" and checked):
            return Gate(self._seen(local))
        judge: Judge = NoModel()
        if self.client is not None:
            from api.judges.relevance import OpenAIJudge

            judge = OpenAIJudge(self.client, self.models.filter_model, self.models.scoring_timeout)
        return Gate(
            self._seen(judge),
            fallback=local if general.fail_open == "local" else None,
            checker=local if checked and self.client is not None else None,
        )

    def _seen(self, judge: Judge) -> Judge:
        return judge if self.tracing is None else self.tracing.judge(judge)

    def grader(self) -> Grader | None:
        """Grades by the filter model; None without a key."""
        if self.client is None:
            return None
        from api.judges.grades import OpenAIGrader

        models = self.models
        grader = OpenAIGrader(self.client, models.filter_model, models.scoring_timeout)
        return grader if self.tracing is None else self.tracing.grader(grader)

    def rewriter(self) -> Rewriter:
        """Rewrites by the filter model; without a key the original query stays alone."""
        if self.client is None:
            return NoModel()
        from api.judges.rewrites import OpenAIRewriter

        models = self.models
        rewriter = OpenAIRewriter(self.client, models.filter_model, models.rewrite_timeout)
        return rewriter if self.tracing is None else self.tracing.rewriter(rewriter)

    def explainer(self) -> Explainer:
        """Explains by the filter model."""
        if self.client is None:
            return NoModel()
        from api.judges.explain import OpenAIExplainer

        models = self.models
        explainer = OpenAIExplainer(self.client, models.filter_model, models.rewrite_timeout)
        return explainer if self.tracing is None else self.tracing.explainer(explainer)

    def writer(self) -> Writer:
        """The report agent; pydantic-ai is imported when the first report is due."""
        if self.client is None:
            return NoModel()
        writer = _LazyWriter(self.settings, self.models, self.client)
        return writer if self.tracing is None else self.tracing.writer(writer)


@dataclass(frozen=True, slots=True)
class _LazyWriter:
    """Builds the report agent on first use: a run that ends without a report never needs it."""

    settings: Settings
    models: ModelSettings
    client: ModelClient

    async def write(self, run: Run, evidence: Evidence, dossier: Dossier) -> Written:
        """See `Writer.write`."""
        from pydantic_ai.models.openai import OpenAIChatModel
        from pydantic_ai.providers.openai import OpenAIProvider

        from api.services.reporting.agent import AgentWriter

        name = self.models.agent_model
        model = OpenAIChatModel(name, provider=OpenAIProvider(openai_client=self.client.openai))
        assessor = Assessor(self.settings.ranking, self.settings.retrieval)
        writer = AgentWriter(model, name, self.models.report_timeout, assessor)
        return await writer.write(run, evidence, dossier)
