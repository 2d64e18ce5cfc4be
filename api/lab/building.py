"""Who can be evaluated, built without sources, tracing or a store, and the corpus to do it on."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from importlib import resources
from typing import TYPE_CHECKING, Literal, get_args
from urllib.parse import urlsplit

from pydantic import SecretStr

from api.errors import UsageError
from api.judges.answers import STAND_IN
from api.judges.local import LocalJudge
from api.judges.local_support import LocalSupport
from api.lab.baselines import BASELINES
from api.lab.evaluating import Candidate, GraderCandidate, JudgeCandidate
from api.lab.labelled import LabelledItem, LabelledQuery, labelled_item
from api.services.ports import Grader, Judge, SupportChecker
from api.services.prompts import PackagedPrompts, Prompts
from api.settings import ModelSettings, Settings
from api.wiring import langfuse_prompts

if TYPE_CHECKING:
    from api.judges.client import ModelClient
    from api.tracing import Tracing

JudgeName = Literal[
    "local", "openai", "grader", "keyword", "names", "bm25", "cosine", "hybrid", "keep_all"
]
JUDGES: tuple[JudgeName, ...] = get_args(JudgeName)
PAID = frozenset({"openai", "grader"})
"""Those that ask a model server: their answers are worth keeping."""


def sampled(settings: Settings, name: str) -> bool:
    """Whether the sandbox's model answers for this name."""
    return name in PAID and settings.general.mode == "sandbox"


@asynccontextmanager
async def candidate(
    settings: Settings, name: str, model: str | None = None, tracing: Tracing | None = None
) -> AsyncIterator[Candidate]:
    """The judge or grader of this name, closed at the end; traced when there is tracing.

    `openai` and `grader` ask `model` (default: the filter model) at the configured server; see
    `sampled` for when it is the sandbox, which spends nothing.

    Raises:
        UsageError: a model for a judge that asks none, or no key for one that does.
    """
    if name not in PAID:
        if model is not None:
            raise UsageError(f"`--model` goes with `openai` or `grader`; `{name}` asks no model")
        judge: Judge = LocalJudge() if name == "local" else BASELINES[name]
        yield JudgeCandidate(tracing.judge(judge, scored=False) if tracing else judge, judge.name)
        return
    async with _server(settings, name, tracing) as (client, host, prompts):
        from api.judges.booleans import OpenAIJudge
        from api.judges.grades import OpenAIGrader
        from api.services.text import Fence

        models, bare = settings.models, Fence("")
        if sampled(settings, name):
            model = STAND_IN
        model = model or models.filter_model
        shown = model + (f"@{host}" if host else "")
        if name == "openai":
            judge = OpenAIJudge(client, model, models.scoring_timeout, prompts=prompts)
            async with prompts.using("relevance") as prompt:
                template = prompt.filled(rule=bare.rule)
            judge = tracing.judge(judge, scored=False) if tracing else judge
            yield JudgeCandidate(judge, shown, template)
        else:
            grader: Grader = OpenAIGrader(client, model, models.scoring_timeout, prompts=prompts)
            grader = tracing.grader(grader) if tracing else grader
            async with prompts.using("grades") as prompt:
                template = prompt.filled(rule=bare.rule)
            yield GraderCandidate(grader, f"grades:{shown}", template)


@asynccontextmanager
async def support_checker(
    settings: Settings, name: str, model: str | None = None, tracing: Tracing | None = None
) -> AsyncIterator[SupportChecker]:
    """The support check of this name, `local` or `openai`, closed at the end; perhaps traced.

    Raises:
        UsageError: another name, or no key for `openai`.
    """
    if name == "local":
        local = LocalSupport()
        yield tracing.checker(local) if tracing else local
    elif name == "openai":
        async with _server(settings, name, tracing) as (client, _, prompts):
            from api.judges.booleans import OpenAISupport

            models = settings.models
            model = STAND_IN if sampled(settings, name) else model or models.filter_model
            openai = OpenAISupport(client, model, models.scoring_timeout, prompts=prompts)
            yield tracing.checker(openai) if tracing else openai
    else:
        raise UsageError(f"`{name}` checks no support; there are `local` and `openai`")


@asynccontextmanager
async def _server(
    settings: Settings, name: str, tracing: Tracing | None
) -> AsyncIterator[tuple[ModelClient, str, Prompts]]:
    """A client of the model server, the server where it is not the usual one, and the prompts.

    The prompts are the product's, so that those with another label can be measured before they are
    in use; the sandbox's model is asked by the files.
    """
    models = settings.models
    prompts: Prompts = PackagedPrompts()
    async with AsyncExitStack() as stack:
        if sampled(settings, name):
            from api.sandbox.server import Sandbox

            url = stack.enter_context(Sandbox.start()).url
            update = {"openai_api_key": SecretStr("sandbox"), "openai_base_url": f"{url}/v1"}
            host, models = "", models.model_copy(update=update)
        elif models.openai_api_key is None:
            raise UsageError(f"`{name}` asks a model; set `OPENAI_API_KEY`")
        elif models.openai_base_url == ModelSettings.model_fields["openai_base_url"].default:
            host = ""
        else:  # another server may be another model
            host = urlsplit(models.openai_base_url).netloc.rpartition("@")[2]
        if settings.tracing.prompts == "langfuse" and not sampled(settings, name):
            prompts = stored = langfuse_prompts(settings.tracing, tracing)
            stack.push_async_callback(stored.aclose)
        from api.judges.client import ModelClient

        client = ModelClient(models)
        stack.push_async_callback(client.aclose)
        yield client, host, prompts


def labelled_corpus() -> list[LabelledQuery]:
    """The sample corpus, one query per product and source, with what a judge would see at the gate.

    That is a title and the first 200 characters; on Amazon, where the gate sees tiles, the title.
    The family is the product's short name.
    """
    from api.sandbox import corpus

    data = resources.files("api.sandbox") / "data" / "products.json"
    queries = []
    for product in json.loads(data.read_text("utf-8")):
        slug, query = product["slug"], product["query"]
        labels = corpus.labels(slug)
        items: dict[str, list[LabelledItem]] = defaultdict(list)
        for post in corpus.load(slug):
            if (label := labels.get(post.key)) is not None:
                body = "" if post.source == "amazon" else post.body
                items[post.source].append(
                    labelled_item(query, post.title, body, label["relevant"], kind=label["kind"])
                )
        queries += [
            LabelledQuery(query, source, tuple(labelled), slug, product["about"])
            for source, labelled in items.items()
        ]
    return queries
