"""Everything that asks a model; heavy libraries load when needed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from api.judges import Limiter
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
    from pydantic_ai.models import Model

    from api.judges.client import ModelClient
    from api.tracing import Tracing


def model_client(models: ModelSettings, limiter: Limiter | None) -> ModelClient | None:
    """The model client, if there is a key; without one openai is not even imported."""
    if models.openai_api_key is None:
        return None
    from api.judges.client import ModelClient

    return ModelClient(models, limiter)


def gate(
    settings: Settings, client: ModelClient | None, tracing: Tracing | None, *, sandboxed: bool
) -> Gate:
    """The model's gate with the local judge looking over its shoulder, or the local judge's own.

    Behind the sandbox the model is the local judge: it always answers, and nobody checks it.
    """
    general, models, local = settings.general, settings.models, LocalJudge()
    alone = general.judge == "local" or (general.judge is None and client is None)
    judge: Judge = NoModel()
    if alone and not sandboxed:
        judge = local
    elif client is not None:
        from api.judges.relevance import OpenAIJudge

        judge = OpenAIJudge(client, models.filter_model, models.scoring_timeout)
    primary = judge if tracing is None else tracing.judge(judge)
    if judge is local:
        return Gate(primary)
    fallback = local if general.fail_open == "local" else None
    return Gate(primary, fallback, None if sandboxed or client is None else local)


def steps_of_model(
    settings: Settings, client: ModelClient | None, tracing: Tracing | None
) -> tuple[Grader | None, Rewriter, Explainer, Writer]:
    """What grades, rewrites, explains and writes; without a key each says so."""
    if client is None:
        nobody = NoModel()
        return None, nobody, nobody, nobody
    from api.judges.explain import OpenAIExplainer
    from api.judges.grades import OpenAIGrader
    from api.judges.rewrites import OpenAIRewriter

    models = settings.models
    grader = OpenAIGrader(client, models.filter_model, models.scoring_timeout)
    rewriter = OpenAIRewriter(client, models.filter_model, models.rewrite_timeout)
    explainer = OpenAIExplainer(client, models.filter_model, models.rewrite_timeout)
    writer = LateWriter(partial(_report_agent, settings, client))
    if tracing is None:
        return grader, rewriter, explainer, writer
    return (
        tracing.grader(grader),
        tracing.rewriter(rewriter),
        tracing.explainer(explainer),
        tracing.writer(writer),
    )


@dataclass(frozen=True, slots=True)
class LateWriter:
    """A writer built when there is something to write: many runs end without a report."""

    build: Callable[[], Writer]

    async def write(self, run: Run, evidence: Evidence, dossier: Dossier) -> Written:
        """See `Writer.write`."""
        return await self.build().write(run, evidence, dossier)


def _report_agent(settings: Settings, client: ModelClient) -> Writer:
    from api.services.reporting.agent import AgentWriter

    models, assessor = settings.models, Assessor(settings.ranking, settings.retrieval)
    model = agent_model(models, client)
    return AgentWriter(model, models.agent_model, models.report_timeout, assessor)


def agent_model(models: ModelSettings, client: ModelClient) -> Model:
    """The model of reports and chats; its calls obey the client's limit and retry."""
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    return OpenAIChatModel(models.agent_model, provider=OpenAIProvider(openai_client=client.openai))
