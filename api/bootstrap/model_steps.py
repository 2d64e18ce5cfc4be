"""Everything that asks a model; heavy libraries load when needed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from api.core.ports import Grader, Judge, Rewriter, SupportChecker
from api.core.prompts import Prompts, packaged
from api.models import ModelCallLimiter
from api.models.answer_parsing import Tokens
from api.models.local.judge import LocalJudge
from api.pipeline.evidence.collection import Assessor, Evidence
from api.pipeline.evidence.crawl import Run
from api.pipeline.gate.verdicts import Gate
from api.reports.conclusion import NoModel, Writer, WrittenDraft
from api.reports.exhibits import Dossier
from api.reports.shortfall import Explainer
from api.services.product import Product
from api.settings import ModelSettings, Settings

if TYPE_CHECKING:
    from pydantic_ai.models import Model

    from api.features.archive.search import ArchiveSearch
    from api.features.chat.chat_agent import Chat
    from api.langfuse.tracing import Tracing
    from api.models.model_client import ModelClient


UNKNOWN_USD = 0.2
"""Stands in for a turn of a chat by a model whose price nobody knows."""


def model_client(models: ModelSettings, limiter: ModelCallLimiter | None) -> ModelClient | None:
    """The model client, if there is a key; without one openai is not even imported."""
    if models.openai_api_key is None:
        return None
    from api.models.model_client import ModelClient

    return ModelClient(models, limiter)


async def model_probe(client: ModelClient, models: ModelSettings) -> tuple[str, str]:
    """See `probe`."""
    from api.models.model_calls import probe

    return await probe(client, models)


def gate(
    settings: Settings,
    client: ModelClient | None,
    tracing: Tracing | None,
    prompts: Prompts,
    *,
    sandboxed: bool,
) -> Gate:
    """The model's gate with the local judge looking over its shoulder, or the local judge's own.

    Behind the sandbox the model is the local judge: it always answers, and nobody checks it.
    """
    general, models, local = settings.general, settings.models, LocalJudge()
    judge: Judge = NoModel()
    if _judges_here(settings, sandboxed):
        judge = local
    elif client is not None:
        from api.models.model_calls import OpenAIJudge

        judge = OpenAIJudge(
            client, models.filter_model, models.scoring_timeout, prompts=prompts,
            examples=models.correction_examples,
        )  # fmt: skip
    primary = judge if tracing is None else tracing.judge(judge)
    if judge is local:
        return Gate(primary)
    fallback = local if general.fail_open == "local" else None
    return Gate(primary, fallback, None if sandboxed or client is None else local)


def gate_version(settings: Settings, *, sandboxed: bool) -> str:
    """Who judges, and a model by which prompt, as traces compare it: `gpt-4o-mini+1f0c92ab`."""
    if _judges_here(settings, sandboxed):
        return LocalJudge().name
    if settings.models.openai_api_key is None:
        return NoModel.name
    tracing = settings.tracing
    ours = packaged("relevance").digest
    prompt = tracing.prompt_label if tracing.prompts == "langfuse" else ours
    return f"{settings.models.filter_model}+{prompt}"


def _judges_here(settings: Settings, sandboxed: bool) -> bool:
    """Whether the gate is the judge on this machine."""
    wanted, key = settings.general.judge, settings.models.openai_api_key
    return not sandboxed and (wanted == "local" or (wanted is None and key is None))


def checker(
    settings: Settings, client: ModelClient | None, tracing: Tracing | None, prompts: Prompts
) -> SupportChecker | None:
    """What checks a report's sentences; None without a key, or switched off."""
    models = settings.models
    if client is None or not models.support_check:
        return None
    from api.models.model_calls import OpenAISupport

    model = models.support_model or models.filter_model
    support = OpenAISupport(client, model, models.scoring_timeout, prompts=prompts)
    return support if tracing is None else tracing.checker(support)


def steps_of_model(
    settings: Settings, client: ModelClient | None, tracing: Tracing | None, prompts: Prompts
) -> tuple[Grader | None, Rewriter, Explainer, Writer]:
    """What grades, rewrites, explains and writes; without a key each says so."""
    if client is None:
        nobody = NoModel()
        return None, nobody, nobody, nobody
    from api.models.model_calls import OpenAIExplainer, OpenAIGrader, OpenAIRewriter

    models = settings.models
    model, seconds = models.filter_model, models.rewrite_timeout
    grader = OpenAIGrader(client, model, models.scoring_timeout, prompts=prompts)
    rewriter = OpenAIRewriter(client, model, seconds, prompts=prompts)
    explainer = OpenAIExplainer(client, model, seconds, prompts=prompts)

    @cache
    def report_agent() -> Writer:
        from api.reports.agent_writer import AgentWriter

        assessor = Assessor(settings.ranking, settings.retrieval)
        model = agent_model(models, client, tracing)
        return AgentWriter(model, models.report_timeout, assessor, prompts)

    writer = LateWriter(report_agent)
    if tracing is None:
        return grader, rewriter, explainer, writer
    return (
        tracing.grader(grader),
        tracing.rewriter(rewriter),
        tracing.explainer(explainer),
        writer,
    )


@dataclass(frozen=True, slots=True)
class LateWriter:
    """A writer built when there is something to write: many runs end without a report."""

    build: Callable[[], Writer]

    async def write(self, run: Run, evidence: Evidence, dossier: Dossier) -> WrittenDraft:
        """See `Writer.write`."""
        return await self.build().write(run, evidence, dossier)


def agent_model(models: ModelSettings, client: ModelClient, tracing: Tracing | None) -> Model:
    """The model of reports and chats; its calls obey the client's limit and retry."""
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIChatModelSettings
    from pydantic_ai.providers.openai import OpenAIProvider

    usual = OpenAIChatModelSettings()
    if models.reasoning_effort is not None:
        usual["openai_reasoning_effort"] = models.reasoning_effort
    provider = OpenAIProvider(openai_client=client.openai)
    model = OpenAIChatModel(models.agent_model, provider=provider, settings=usual)
    return model if tracing is None else tracing.model(model)


def chat(settings: Settings, product: Product, archive: ArchiveSearch | None = None) -> Chat:
    """A chat with the product's model; without one the posts speak for themselves.

    `archive` searches what is stored, which is asked before any place.
    """
    from api.features.chat.chat_agent import Chat

    model = None if product.agent_model is None else product.agent_model()
    return Chat(product, model, settings.chat, archive)


def turn_usd(settings: Settings) -> float:
    """USD that one turn may cost, if most of its tokens are read and some are written."""
    from api.models.model_client import price

    tokens = settings.chat.tokens
    used = Tokens(prompt_tokens=tokens * 9 // 10, completion_tokens=tokens // 10)
    return price(used, settings.models.agent_model) or UNKNOWN_USD
