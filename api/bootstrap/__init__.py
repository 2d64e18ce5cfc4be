"""The composition root: the only place that reads settings and chooses implementations.

Heavy libraries (openai, pydantic_ai, langfuse) are imported where they are needed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Collection
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Literal

from pydantic import SecretStr

from api import settings as all_settings
from api.bootstrap.model_writer import LateWriter, check_model_server, writer_model
from api.bootstrap.model_writer import agent_model as agent_model
from api.core.ports import Grader, Judge, Rewriter, SenseNamer, SilentObserver, Source, SupportChecker, UpstreamCheck
from api.core.prompts import PackagedPrompts, Prompts, packaged
from api.core.shared_answers import AnswerMemory
from api.errors import (
    ConfigurationError,
    MissingExtra,
    SourceError,
    Unreachable,
    construction_failures_as,
    extras_named,
)
from api.features.analyses.store_ports import SourceMemory
from api.models.answer_parsing import STAND_IN
from api.models.dialects import Dialects, ModelCallLimiter
from api.models.local.judge import LocalJudge
from api.models.local.senses import find_senses
from api.pipeline.evidence.collection import Assessor, Steps
from api.pipeline.gate.verdicts import Gate
from api.reports.insufficient_data import Explainer
from api.reports.local_support import SecondOpinion
from api.reports.report_writing import NoModel, Writer
from api.services.product import Product
from api.settings import ModelSettings, Settings, TracingSettings
from api.sources import ALL_SOURCES, SOURCES, default_sources
from api.sources.own_items import NAME, ItemsSource, OwnItems

if TYPE_CHECKING:
    from api.core.ports import AnswerChecker
    from api.features.archive.search import ArchiveSearch
    from api.features.chat.chat_agent import Chat
    from api.langfuse.tracing import Tracing
    from api.langfuse.tracing.langfuse_prompts import LangfusePrompts
    from api.models.model_client import ModelClient
    from api.sandbox.server import Sandbox


Mode = Literal["live", "sandbox"]


def load_settings(*, sandbox: bool = False) -> Settings:
    """All settings of the environment and `.env`; with `sandbox` in mode `sandbox`, whatever they say.

    Raises:
        ConfigurationError: an unknown name or malformed value, with its remedy.
    """
    try:
        settings = all_settings.load()
    except UnicodeDecodeError:
        raise ConfigurationError("`.env` is no UTF-8 text; write it anew") from None
    except OSError as error:
        raise ConfigurationError(f"`.env` cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise ConfigurationError(str(error)) from None
    return in_sandbox(settings) if sandbox else settings


def mode_of(settings: Settings) -> Mode:
    """The mode that is in use: `auto` is live, since some sources need no key."""
    return "sandbox" if settings.general.mode == "sandbox" else "live"


def in_sandbox(settings: Settings) -> Settings:
    """The same settings in mode `sandbox`."""
    return replace(settings, general=settings.general.model_copy(update={"mode": "sandbox"}))


def build(
    settings: Settings,
    own: OwnItems | None = None,
    *,
    limiter: ModelCallLimiter | None = None,
    memory: SourceMemory | None = None,
    only: Collection[str] = tuple(SOURCES),
) -> Product:
    """A product for the running loop; opens no connection but the sandbox's own port.

    With `own`, these items are the only source and no sample data; the person's own model judges them,
    in mode `sandbox` none. `limiter` may be shared by several products. `memory` is what real sources
    remember between runs; the sandbox remembers nothing. `only` names the sources that it has.
    """
    if own is not None:
        return _product(for_own_items(settings), own, limiter, memory)
    if mode_of(settings) == "live":
        return _product(settings, None, limiter, memory, only=only)
    from api.sandbox.server import Sandbox

    return _product(settings, own, limiter, sandbox=Sandbox.start(), only=only)


def build_gate(settings: Settings, *, limiter: ModelCallLimiter | None = None) -> Product:
    """A product without sources, to judge items that a person hands in, with the person's key."""
    return _product(for_own_items(settings), OwnItems(()), limiter)


def for_own_items(settings: Settings) -> Settings:
    """The settings for judging a person's items; in mode `sandbox` without keys, so that nothing is sent."""
    if settings.general.mode != "sandbox":
        return settings
    models = settings.models.model_copy(update={"openai_api_key": None})
    tracing = settings.tracing.model_copy(update={"langfuse_secret_key": None, "prompts": "files"})
    return replace(settings, models=models, tracing=tracing)


def only_over(product: Product, own: OwnItems) -> Product:
    """The product with a person's own items as the only source, for one question.

    `product` must stay open meanwhile; closing the result closes nothing of it.
    """
    source = {NAME: ItemsSource(own)}
    return replace(product, sources=source, chosen=(), closing=AsyncExitStack())


class PerLoop:
    """Products by running event loop, since clients belong to their loop."""

    def __init__(self) -> None:
        self._dialects = Dialects()
        self._loops: dict[asyncio.AbstractEventLoop, tuple[Callable[[bool], Product], AsyncGenerator[None]]] = {}

    async def product(self, own_items: bool = False) -> Product:
        """This loop's product, or the one that judges what a caller hands in.

        Each is built when it is first asked for; both share the limit on model calls.

        Raises:
            ConfigurationError: the environment holds an unknown or malformed setting.
        """
        loop = asyncio.get_running_loop()
        if loop not in self._loops:
            settings, products = load_settings(), list[Product]()
            limiter = ModelCallLimiter(settings.models.model_concurrency, self._dialects)

            @cache
            def built(own_items: bool) -> Product:
                products.append((build_gate if own_items else build)(settings, limiter=limiter))
                return products[-1]

            for dead in [known for known in self._loops if known.is_closed()]:
                del self._loops[dead]

            # `asyncio.run` closes unfinished generators at its end, and the end of this one closes
            # the products
            async def closing() -> AsyncGenerator[None]:
                try:
                    yield
                finally:
                    self._loops.pop(loop, None)
                    await asyncio.gather(*(product.aclose() for product in products))

            ending = closing()
            self._loops[loop] = built, ending
            await anext(ending)
        return self._loops[loop][0](own_items)


def _product(
    settings: Settings, own: OwnItems | None, limiter: ModelCallLimiter | None,
    memory: SourceMemory | None = None, sandbox: Sandbox | None = None, only: Collection[str] = (),
) -> Product:  # fmt: skip
    closing = AsyncExitStack()  # the last that is pushed is the first that is closed
    if sandbox is not None:
        closing.callback(sandbox.stop)
        settings = pointed(settings, sandbox.url)
    tracing, trouble = _tracing(settings, gate_version(settings, sandboxed=sandbox is not None))
    if tracing is not None:
        closing.push_async_callback(asyncio.to_thread, tracing.shutdown)
    client = _model_client(settings.models, limiter, memory)
    if client is not None:
        closing.push_async_callback(client.aclose)
    sources = _sources(settings, own, tracing, memory, only)
    for source in sources.values():
        if not isinstance(source, SourceError):
            closing.push_async_callback(source.aclose)
    langfuse = trouble if tracing is None else tracing.probe
    prompts: Prompts = PackagedPrompts()
    if settings.tracing.prompts == "langfuse":
        stored = langfuse_prompts(settings.tracing, tracing)
        closing.push_async_callback(stored.aclose)
        prompts, langfuse = stored, partial(_probe_prompts, langfuse, stored)
    grader, rewriter, explainer, writer, answerer = _steps_of_model(settings, client, tracing, prompts)
    return Product(
        sources=sources,
        gate=_gate(settings, client, tracing, prompts, sandboxed=sandbox is not None),
        gate_of=lambda judge, model: _gate(
            settings.judged_by(judge, model), client, tracing, prompts, sandboxed=bool(sandbox) and judge != "local"
        ),
        grader=grader,
        steps=Steps(rewriter, Assessor(settings.ranking, settings.retrieval)),
        writer=writer,
        explainer=explainer,
        answerer=answerer,
        senses=find_senses,
        namer=_namer(settings, client, tracing, prompts),
        checker=_checker(settings, client, tracing, prompts),
        observer=SilentObserver() if tracing is None else tracing.observer,
        watched=None if tracing is None else tracing.source,
        depths=settings.depths,
        adaptive=settings.adaptive,
        crawl_seconds=settings.sources.crawl_timeout,
        sample=sandbox is not None,
        places=ALL_SOURCES,
        chosen=() if own is not None else default_sources(settings.sources),
        prompts=prompts,
        agent_model=(None if client is None else partial(agent_model, settings.models, client, tracing)),
        probes={
            "model": _NO_KEY if client is None else partial(_probe_model, client, settings.models),
            "langfuse": langfuse,
        },
        server_check=None if client is None else partial(check_model_server, client, settings.models, tracing),
        requests=partial(_requests, sandbox),
        closing=closing,
    )


def _requests(sandbox: Sandbox | None) -> list[str]:
    """Requests to the sandbox so far, one line each."""
    log = [] if sandbox is None else sandbox.log
    return [f"{entry.upstream} {entry.method} {entry.path} -> {entry.status}" for entry in log]


def _model_client(
    models: ModelSettings, limiter: ModelCallLimiter | None, memory: AnswerMemory | None
) -> ModelClient | None:
    if models.openai_api_key is None:
        return None
    from api.models.model_client import ModelClient

    return ModelClient(models, limiter, memory)


async def _probe_model(client: ModelClient, models: ModelSettings) -> tuple[str, str]:
    from api.models.model_calls import probe

    return await probe(client, models)


async def _probe_prompts(langfuse: UpstreamCheck, prompts: LangfusePrompts) -> tuple[str, str]:
    outcome, detail = await langfuse()
    return outcome, f"{detail}; {await prompts.status()}"


def _unprobed(outcome: str, detail: str) -> UpstreamCheck:
    async def probe() -> tuple[str, str]:
        return outcome, detail

    return probe


_NO_KEY = _unprobed("not_configured", "no key: the local judge answers, reports tell themes")
_NO_TRACING = _unprobed("not_configured", "no keys: nothing is traced")
_SWITCHED_OFF = _unprobed("not_configured", "`LANGFUSE_TRACING_ENABLED` is off: nothing is traced")


def _gate(
    settings: Settings,
    client: ModelClient | None,
    tracing: Tracing | None,
    prompts: Prompts,
    *,
    sandboxed: bool,
) -> Gate:
    """A gate with the model as judge and the local judge as checker, or the local judge alone.

    Behind the sandbox the model is the local judge, so it has no checker.
    """
    general, models, local = settings.general, settings.models, LocalJudge()
    judge: Judge = NoModel()
    if _judges_here(settings, sandboxed):
        judge = local
    elif client is not None:
        from api.models.model_calls import OpenAIJudge, OrderCheckedJudge

        judge = OpenAIJudge(
            client, models.filter_model, models.scoring_timeout, prompts=prompts,
            examples=models.correction_examples,
        )  # fmt: skip
        if models.order_check:
            judge = OrderCheckedJudge(judge, models.order_check)
    primary = judge if tracing is None else tracing.judge(judge)
    if judge is local:
        return Gate(primary)
    fallback = local if general.fail_open == "local" else None
    return Gate(primary, fallback, None if sandboxed or client is None else local)


def gate_version(settings: Settings, *, sandboxed: bool) -> str:
    """The judge and, of a model, its prompt, as traces compare them: `gpt-4o-mini+1f0c92ab`."""
    if _judges_here(settings, sandboxed):
        return LocalJudge().name
    if settings.models.openai_api_key is None:
        return NoModel.name
    tracing = settings.tracing
    ours = packaged("relevance").digest
    prompt = tracing.prompt_label if tracing.prompts == "langfuse" else ours
    return f"{settings.models.filter_model}+{prompt}"


def _judges_here(settings: Settings, sandboxed: bool) -> bool:
    wanted, key = settings.general.judge, settings.models.openai_api_key
    return not sandboxed and (wanted == "local" or (wanted is None and key is None))


def _checker(
    settings: Settings, client: ModelClient | None, tracing: Tracing | None, prompts: Prompts
) -> SupportChecker | None:
    models = settings.models
    if client is None or not models.support_check:
        return None
    from api.models.model_calls import OpenAISupport

    model = models.support_model or models.filter_model
    support: SupportChecker = OpenAISupport(client, model, models.scoring_timeout, prompts=prompts)
    return SecondOpinion(support if tracing is None else tracing.checker(support))


def _namer(
    settings: Settings, client: ModelClient | None, tracing: Tracing | None, prompts: Prompts
) -> SenseNamer | None:
    if client is None:
        return None
    from api.models.model_calls import OpenAISenseNamer

    models = settings.models
    namer: SenseNamer = OpenAISenseNamer(client, models.filter_model, models.rewrite_timeout, prompts=prompts)
    return namer if tracing is None else tracing.namer(namer)


def _steps_of_model(
    settings: Settings, client: ModelClient | None, tracing: Tracing | None, prompts: Prompts
) -> tuple[Grader | None, Rewriter, Explainer, Writer, AnswerChecker | None]:
    if client is None:
        no_model = NoModel()
        return None, no_model, no_model, no_model, None
    from api.models.answer_check import OpenAIAnswerChecker
    from api.models.model_calls import OpenAIExplainer, OpenAIGrader, OpenAIRewriter

    models = settings.models
    model, seconds = models.filter_model, models.rewrite_timeout
    grader = OpenAIGrader(client, model, models.scoring_timeout, prompts=prompts)
    rewriter = OpenAIRewriter(client, model, seconds, prompts=prompts)
    explainer = OpenAIExplainer(client, model, seconds, prompts=prompts)
    answerer = OpenAIAnswerChecker(client, model, models.scoring_timeout, prompts=prompts)

    @cache
    def report_agent() -> Writer:
        from api.reports.agent_writer import AgentWriter, EndedByCut

        assessor = Assessor(settings.ranking, settings.retrieval)
        model = agent_model(models, client, tracing, EndedByCut)
        return AgentWriter(model, models.report_timeout, assessor, prompts, writer_model(client, models))

    writer = LateWriter(report_agent)
    if tracing is None:
        return grader, rewriter, explainer, writer, answerer
    return (
        tracing.grader(grader),
        tracing.rewriter(rewriter),
        tracing.explainer(explainer),
        writer,
        tracing.answerer(answerer),
    )


def chat(settings: Settings, product: Product, archive: ArchiveSearch | None = None) -> Chat:
    """A chat that the product's model answers; without a model its answers quote posts by theme.

    `archive` searches what is stored, before any source is asked.
    """
    from api.features.chat.chat_agent import Chat

    model = None if product.agent_model is None else product.agent_model()
    if model is None:
        return Chat(product, model, settings.chat, archive)
    from api.models.model_client import price_of_run

    models = stand_in(settings.models) if product.sample else settings.models
    return Chat(product, model, settings.chat, archive, partial(price_of_run, models))


def stand_in(models: ModelSettings) -> ModelSettings:
    """The settings with the sandbox's model in place of each model."""
    names = dict.fromkeys(("filter_model", "agent_model", "support_model"), STAND_IN)
    return models.model_copy(update=names)


def pointed(settings: Settings, url: str) -> Settings:
    """The settings with the sandbox at `url` in place of every source, model and Langfuse."""
    from api.sandbox.discourse_server import FORUM
    from api.sandbox.feeds_server import feeds_setting

    key = SecretStr("sandbox")
    # what is switched on is for the person to say: the sandbox has feeds, too
    chosen = ",".join(default_sources(settings.sources))
    sources = settings.sources.model_copy(
        update={
            "reddit_client_id": key, "reddit_client_secret": key, "reddit_url": url,
            "youtube_api_key": key, "youtube_url": url,
            "amazon_provider": "html", "amazon_api_key": None, "amazon_url": url,
            "hackernews_url": url, "stackexchange_url": url, "stackexchange_key": None,
            "github_url": url, "github_token": None, "lemmy_url": url,
            "discourse_forums": f"{url}{FORUM}", "feeds": feeds_setting(url), "sources": chosen,
            "bluesky_url": url, "bluesky_appview_url": url, "bluesky_handle": None, "bluesky_app_password": None,
            "steam_url": url, "news_url": url,
        }
    )  # fmt: skip
    models = stand_in(settings.models).model_copy(update={"openai_api_key": key, "openai_base_url": f"{url}/v1"})
    tracing = settings.tracing.model_copy(
        update={
            "langfuse_public_key": "pk-lf-sandbox", "langfuse_secret_key": key,
            "langfuse_base_url": url, "prompts": "files",
        }
    )  # fmt: skip
    return replace(settings, sources=sources, models=models, tracing=tracing)


def _tracing(settings: Settings, version: str) -> tuple[Tracing | None, UpstreamCheck]:
    """Tracing, and without it a probe that says why."""
    if not (settings.tracing.langfuse_public_key and settings.tracing.langfuse_secret_key):
        return None, _NO_TRACING
    if not settings.tracing.langfuse_tracing_enabled:
        return None, _SWITCHED_OFF
    general = settings.general
    try:
        with extras_named():
            from api.langfuse.tracing import start

        tracing = start(
            settings.tracing,
            user_id=general.user_id, session_id=general.session_id, version=version,
        )  # fmt: skip
    except ConfigurationError as error:
        return None, _unprobed("not_configured" if isinstance(error, MissingExtra) else "unreachable", str(error))
    return tracing, _NO_TRACING


def langfuse_prompts(settings: TracingSettings, tracing: Tracing | None) -> LangfusePrompts:
    """The prompts of the Langfuse project; the caller closes them.

    Raises:
        ConfigurationError: a key is not set.
    """
    for name, key in (
        ("LANGFUSE_PUBLIC_KEY", settings.langfuse_public_key),
        ("LANGFUSE_SECRET_KEY", settings.langfuse_secret_key),
    ):
        if not key:
            raise ConfigurationError(f"`LISTENPOST_PROMPTS=langfuse` needs `{name}`")
    with extras_named():
        from api.langfuse.tracing.langfuse_prompts import LangfusePrompts

    if tracing is None:
        return LangfusePrompts(settings)
    return LangfusePrompts(settings, tracing.client.linked)


def _sources(
    settings: Settings,
    own: OwnItems | None,
    tracing: Tracing | None,
    memory: SourceMemory | None,
    only: Collection[str],
) -> dict[str, Source | SourceError]:
    if own is not None:
        return {NAME: ItemsSource(own)}
    built: dict[str, Source | SourceError] = {}
    for name, spec in ((name, spec) for name, spec in SOURCES.items() if name in only):
        try:
            with construction_failures_as(partial(Unreachable, name)):
                source = spec.build(settings.sources, memory)
        except SourceError as error:
            built[name] = error
        else:
            built[name] = source if tracing is None else tracing.source(source)
    return built
