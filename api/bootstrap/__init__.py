"""The composition root: the only reader of settings, the only chooser of implementations."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Literal

from pydantic import SecretStr

from api import settings as all_settings
from api.bootstrap.model_steps import (
    agent_model,
    checker,
    gate,
    gate_version,
    model_client,
    model_probe,
    steps_of_model,
)
from api.core.ports import SilentObserver, Source, UpstreamCheck
from api.core.prompts import PackagedPrompts, Prompts
from api.errors import ConfigurationError, SourceError, Unreachable, construction_failures_as
from api.features.analyses.store_ports import SourceMemory
from api.models import ModelCallLimiter
from api.models.answer_parsing import STAND_IN
from api.models.dialects import Dialects
from api.pipeline.evidence.collection import Assessor, Steps
from api.services.product import Product
from api.settings import ModelSettings, Settings, TracingSettings
from api.sources import ALL_SOURCES, SOURCES, default_sources
from api.sources.own_items import NAME, ItemsSource, OwnItems

if TYPE_CHECKING:
    from api.langfuse.tracing import Tracing
    from api.langfuse.tracing.langfuse_prompts import LangfusePrompts
    from api.sandbox.server import Sandbox


Mode = Literal["live", "sandbox"]


def load_settings(*, sandbox: bool = False) -> Settings:
    """Every setting; with `sandbox` for the sample world, whatever they say.

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
    """`auto` is live: some places answer everybody."""
    return "sandbox" if settings.general.mode == "sandbox" else "live"


def in_sandbox(settings: Settings) -> Settings:
    """The same settings, for the sandbox."""
    return replace(settings, general=settings.general.model_copy(update={"mode": "sandbox"}))


def build(
    settings: Settings,
    own: OwnItems | None = None,
    *,
    limiter: ModelCallLimiter | None = None,
    memory: SourceMemory | None = None,
) -> Product:
    """Everything, for the running loop; opens no connection but the sandbox's own port.

    `own` items are the only source and no sample data: the person's own model answers, or in mode
    `sandbox` none. `limiter` is what several products share. `memory` is what real sources
    remember between runs; the sandbox starts afresh each time.
    """
    if own is not None:
        return _product(for_own_items(settings), own, limiter, memory)
    if mode_of(settings) == "live":
        return _product(settings, None, limiter, memory)
    from api.sandbox.server import Sandbox

    return _product(settings, own, limiter, sandbox=Sandbox.start())


def build_gate(settings: Settings, *, limiter: ModelCallLimiter | None = None) -> Product:
    """A product without sources: its gate judges the items that a person hands in.

    It uses the person's key although no source may be configured.
    """
    return _product(for_own_items(settings), OwnItems(()), limiter)


def for_own_items(settings: Settings) -> Settings:
    """The settings by which a person's items are judged: nothing leaves in mode `sandbox`."""
    if settings.general.mode != "sandbox":
        return settings
    models = settings.models.model_copy(update={"openai_api_key": None})
    tracing = settings.tracing.model_copy(update={"langfuse_secret_key": None, "prompts": "files"})
    return replace(settings, models=models, tracing=tracing)


def only_over(product: Product, own: OwnItems) -> Product:
    """The product with a person's own items as the only source, for one question.

    Everything else is the product's, which must stay open meanwhile and is closed by itself.
    """
    source = {NAME: ItemsSource(own)}
    return replace(product, sources=source, chosen=(), closing=AsyncExitStack())


class PerLoop:
    """Products by running event loop, since clients die with their loop.

    Beside them an unfinished generator is kept: a loop that ends as `asyncio.run` ends it closes
    the generator, and that closes the products.
    """

    def __init__(self) -> None:
        """Build nothing yet."""
        self._dialects = Dialects()
        self._loops: dict[
            asyncio.AbstractEventLoop, tuple[Callable[[bool], Product], AsyncGenerator[None]]
        ] = {}

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
    settings: Settings,
    own: OwnItems | None,
    limiter: ModelCallLimiter | None,
    memory: SourceMemory | None = None,
    sandbox: Sandbox | None = None,
) -> Product:
    closing = AsyncExitStack()  # the last that is pushed is the first that is closed
    if sandbox is not None:
        closing.callback(sandbox.stop)
        settings = _pointed(settings, sandbox.url)
    version = gate_version(settings, sandboxed=sandbox is not None)
    tracing, trouble = _tracing(settings, version)
    if tracing is not None:
        closing.push_async_callback(asyncio.to_thread, tracing.shutdown)
    client = model_client(settings.models, limiter)
    if client is not None:
        closing.push_async_callback(client.aclose)
    sources = _sources(settings, own, tracing, memory)
    for source in sources.values():
        if not isinstance(source, SourceError):
            closing.push_async_callback(source.aclose)
    langfuse = trouble if tracing is None else tracing.probe
    prompts: Prompts = PackagedPrompts()
    if settings.tracing.prompts == "langfuse":
        stored = langfuse_prompts(settings.tracing, tracing)
        closing.push_async_callback(stored.aclose)
        prompts, langfuse = stored, partial(_probed, langfuse, stored)
    grader, rewriter, explainer, writer = steps_of_model(settings, client, tracing, prompts)
    return Product(
        sources=sources,
        gate=gate(settings, client, tracing, prompts, sandboxed=sandbox is not None),
        grader=grader,
        steps=Steps(rewriter, Assessor(settings.ranking, settings.retrieval)),
        writer=writer,
        explainer=explainer,
        checker=checker(settings, client, tracing, prompts),
        observer=SilentObserver() if tracing is None else tracing.observer,
        watched=None if tracing is None else tracing.source,
        depths=settings.depths,
        adaptive=settings.adaptive,
        crawl_seconds=settings.sources.crawl_timeout,
        sample=sandbox is not None,
        places=ALL_SOURCES,
        chosen=() if own is not None else default_sources(settings.sources),
        prompts=prompts,
        agent_model=(
            None if client is None else partial(agent_model, settings.models, client, tracing)
        ),
        probes={
            "model": _NO_KEY if client is None else partial(model_probe, client, settings.models),
            "langfuse": langfuse,
        },
        requests=lambda: [
            f"{entry.upstream} {entry.method} {entry.path} -> {entry.status}"
            for entry in ([] if sandbox is None else sandbox.log)
        ],
        closing=closing,
    )


def _unprobed(outcome: str, detail: str) -> UpstreamCheck:
    """A probe whose answer is known beforehand."""

    async def probe() -> tuple[str, str]:
        return outcome, detail

    return probe


async def _probed(langfuse: UpstreamCheck, prompts: LangfusePrompts) -> tuple[str, str]:
    """What a probe of Langfuse says, and which prompts are in use."""
    outcome, detail = await langfuse()
    return outcome, f"{detail}; {await prompts.status()}"


_NO_KEY = _unprobed("not_configured", "no key: the local judge answers, reports tell themes")
_NO_TRACING = _unprobed("not_configured", "no keys: nothing is traced")
_SWITCHED_OFF = _unprobed("not_configured", "`LANGFUSE_TRACING_ENABLED` is off: nothing is traced")


def stand_in(models: ModelSettings) -> ModelSettings:
    """The same with the sandbox's stand-in as every model: what it does is nobody else's work."""
    names = dict.fromkeys(("filter_model", "agent_model", "support_model"), STAND_IN)
    return models.model_copy(update=names)


def _pointed(settings: Settings, url: str) -> Settings:
    """The same settings with every upstream, model and Langfuse being the sandbox."""
    from api.sandbox.discourse_server import FORUM

    key = SecretStr("sandbox")
    sources = settings.sources.model_copy(
        update={
            "reddit_client_id": key, "reddit_client_secret": key, "reddit_url": url,
            "youtube_api_key": key, "youtube_url": url,
            "amazon_provider": "html", "amazon_api_key": None, "amazon_url": url,
            "hackernews_url": url, "stackexchange_url": url, "stackexchange_key": None,
            "github_url": url, "github_token": None, "lemmy_url": url,
            "discourse_forums": f"{url}{FORUM}",
        }
    )  # fmt: skip
    models = stand_in(settings.models).model_copy(
        update={"openai_api_key": key, "openai_base_url": f"{url}/v1"}
    )
    tracing = settings.tracing.model_copy(
        update={
            "langfuse_public_key": "pk-lf-sandbox", "langfuse_secret_key": key,
            "langfuse_base_url": url, "prompts": "files",
        }
    )  # fmt: skip
    return replace(settings, sources=sources, models=models, tracing=tracing)


def _tracing(settings: Settings, version: str) -> tuple[Tracing | None, UpstreamCheck]:
    """Tracing, or why there is none: nothing else depends on it."""
    if not (settings.tracing.langfuse_public_key and settings.tracing.langfuse_secret_key):
        return None, _NO_TRACING
    if not settings.tracing.langfuse_tracing_enabled:
        return None, _SWITCHED_OFF
    from api.langfuse.tracing import start

    general = settings.general
    try:
        tracing = start(
            settings.tracing,
            user_id=general.user_id, session_id=general.session_id, version=version,
        )  # fmt: skip
    except ConfigurationError as error:
        return None, _unprobed("unreachable", str(error))
    return tracing, _NO_TRACING


def langfuse_prompts(settings: TracingSettings, tracing: Tracing | None) -> LangfusePrompts:
    """The prompts of the Langfuse project; who built them closes them.

    Raises:
        ConfigurationError: a key is not set.
    """
    for name, key in (
        ("LANGFUSE_PUBLIC_KEY", settings.langfuse_public_key),
        ("LANGFUSE_SECRET_KEY", settings.langfuse_secret_key),
    ):
        if not key:
            raise ConfigurationError(f"`LISTENPOST_PROMPTS=langfuse` needs `{name}`")
    from api.langfuse.tracing.langfuse_prompts import LangfusePrompts

    if tracing is None:
        return LangfusePrompts(settings)
    return LangfusePrompts(settings, tracing.client.linked)


def _sources(
    settings: Settings,
    own: OwnItems | None,
    tracing: Tracing | None,
    memory: SourceMemory | None,
) -> dict[str, Source | SourceError]:
    if own is not None:
        return {NAME: ItemsSource(own)}
    built: dict[str, Source | SourceError] = {}
    for name, spec in SOURCES.items():
        try:
            with construction_failures_as(partial(Unreachable, name)):
                source = spec.build(settings.sources, memory)
        except SourceError as error:
            built[name] = error
        else:
            built[name] = source if tracing is None else tracing.source(source)
    return built
