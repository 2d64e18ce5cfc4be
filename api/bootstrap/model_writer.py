"""The model of reports and chats, what is known of its server, and the check of that server."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from api.core.domain import Question, Usage
from api.core.items import Item
from api.pipeline.evidence.collection import Evidence
from api.pipeline.evidence.crawl import Run
from api.reports.exhibits import Dossier
from api.reports.report_writing import Writer, WrittenDraft
from api.settings import ModelSettings

if TYPE_CHECKING:
    from pydantic_ai.models import Model

    from api.langfuse.tracing import Tracing
    from api.models.model_client import ModelClient
    from api.reports.agent_writer import WriterModel


@dataclass(frozen=True, slots=True)
class LateWriter:
    """A writer built when it is first needed: many runs end without a report."""

    build: Callable[[], Writer]

    async def write(self, run: Run, evidence: Evidence, dossier: Dossier) -> WrittenDraft:
        """Builds the writer on the first report and hands the call on."""
        return await self.build().write(run, evidence, dossier)


def agent_model(
    models: ModelSettings,
    client: ModelClient,
    tracing: Tracing | None,
    wrap: Callable[[Model], Model] | None = None,
) -> Model:
    """The model of reports and chats; its calls use the client's concurrency limit and retries.

    `wrap` goes around it below the tracing, which agents only see on the outside.
    """
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIChatModelSettings
    from pydantic_ai.providers.openai import OpenAIProvider

    usual = OpenAIChatModelSettings()
    if models.reasoning_effort is not None:
        usual["openai_reasoning_effort"] = models.reasoning_effort
    provider = OpenAIProvider(openai_client=client.openai)
    model: Model = OpenAIChatModel(models.agent_model, provider=provider, settings=usual)
    model = model if wrap is None else wrap(model)
    return model if tracing is None else tracing.model(model)


def writer_model(client: ModelClient, models: ModelSettings) -> WriterModel:
    """Facts about the model that writes, shared by all clients of the process."""
    from api.models.model_client import price_of_run
    from api.reports.agent_writer import FORMS, WriterModel

    name = models.agent_model
    return WriterModel(
        FORMS, partial(client.context, name), partial(client.report_form, name),
        partial(client.learn_report_form, name), partial(price_of_run, models),
    )  # fmt: skip


async def check_model_server(
    client: ModelClient, models: ModelSettings, tracing: Tracing | None
) -> tuple[str, str, str]:
    """Outcome, detail and remedies; see `check_server`."""
    from api.models.server_check import check_server
    from api.reports.agent_writer import EndedByCut, probed_draft

    known = writer_model(client, models)

    async def draft(question: Question, items: Sequence[Item]) -> tuple[str, Usage]:
        model = agent_model(models, client, tracing, EndedByCut)
        return await probed_draft(model, models.report_timeout, known, question, items)

    return await check_server(client, models, draft)
