"""The composition root: the only reader of settings, the only chooser of implementations."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from pydantic import SecretStr

from api import settings as all_settings
from api.errors import ConfigurationError, SourceError
from api.services import listening
from api.services.evidence.assessing import Assessor
from api.services.evidence.pipeline import Steps
from api.services.evidence.run import Run
from api.services.gate.judging import Gate
from api.services.keeping.storage import SourceMemory
from api.services.listening import Ask, Heard, Product
from api.services.ports import SilentObserver, Source
from api.services.reporting.dossier import Dossier
from api.services.schemas import Item
from api.settings import ModelSettings, Settings, SourceSettings, TracingSettings
from api.sources import PLACES, SOURCES
from api.wiring.models import Crew, model_client

if TYPE_CHECKING:
    from api.judges.client import ModelClient
    from api.sandbox.server import Sandbox
    from api.tracing import Tracing

Mode = Literal["live", "sandbox"]
_RUNS = 64
"""Tool-using agents whose runs one loop remembers."""


def load_settings() -> Settings:
    """Every setting.

    Raises:
        ConfigurationError: an unknown name or malformed value, with its remedy.
    """
    try:
        return all_settings.load()
    except UnicodeDecodeError:
        raise ConfigurationError("`.env` is no UTF-8 text; write it anew") from None
    except OSError as error:
        raise ConfigurationError(f"`.env` cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise ConfigurationError(str(error)) from None


def mode_of(settings: Settings) -> Mode:
    """`auto` is the sandbox until one of `SOURCES` is configured."""
    if settings.general.mode != "auto":
        return settings.general.mode
    there = any(spec.configured(settings.sources) for spec in SOURCES.values())
    return "live" if there else "sandbox"


def mode_for(settings: Settings, items: Sequence[Item] | None) -> Mode:
    """`mode_of`, but a person's own items are no sample data: `auto` is live with them."""
    own = items is not None and settings.general.mode == "auto"
    return "live" if own else mode_of(settings)


@dataclass(slots=True)
class Built:
    """One loop's product, the gate for a person's own items, and what must be closed."""

    settings: Settings
    mode: Mode
    product: Product
    client: ModelClient | None
    tracing: Tracing | None = None
    sandbox: Sandbox | None = None
    _runs: OrderedDict[str, tuple[Run, Dossier]] = field(default_factory=OrderedDict)

    async def listen(self, source: str, ask: Ask, run_id: str | None) -> Heard:
        """Ask one source; calls with the same run id share one memory and one numbering."""
        if run_id is None:
            return await listening.fetch(self.product, source, ask)
        run, dossier = self._runs.setdefault(
            run_id, (self.product.start(), Dossier(self.product.places))
        )
        self._runs.move_to_end(run_id)
        while len(self._runs) > _RUNS:
            self._runs.popitem(last=False)
        return await listening.fetch(self.product, source, ask, run=run, dossier=dossier)

    async def probe_model(self) -> tuple[str, str]:
        """Outcome and detail of asking the model server for nothing."""
        if self.client is None:
            return "not_configured", "no key: the local judge answers, reports are extracted"
        return await self.client.probe()

    async def probe_tracing(self) -> tuple[str, str]:
        """Outcome and detail of asking Langfuse whether the keys fit."""
        if self.tracing is None:
            return "not_configured", "no keys: nothing is traced"
        return await asyncio.to_thread(self.tracing.probe)

    async def aclose(self) -> None:
        """Close sockets and threads, hand over the last traces, stop the sandbox."""
        for source in self.product.sources.values():
            if not isinstance(source, SourceError):
                await source.aclose()
        if self.client is not None:
            await self.client.aclose()
        if self.tracing is not None:
            await asyncio.to_thread(self.tracing.shutdown)
        if self.sandbox is not None:
            self.sandbox.stop()


def build(
    settings: Settings,
    items: Sequence[Item] | None = None,
    *,
    beside: ModelClient | None = None,
    memory: SourceMemory | None = None,
) -> Built:
    """Everything, for the running loop; opens no connection but the sandbox's own port.

    With `items` they are the only source, and unless the mode says `sandbox` the person's own model
    answers: their items are no sample data. Model calls share the limit of the client `beside`.
    `memory` is what real sources remember between runs; the sandbox starts afresh each time.
    """
    mode = mode_for(settings, items)
    if mode == "live":
        return _assemble(settings, mode, items, None, beside, memory)
    from api.sandbox.server import Sandbox

    return _assemble(settings, mode, items, Sandbox.start(), beside)


def _assemble(
    settings: Settings,
    mode: Mode,
    items: Sequence[Item] | None,
    sandbox: Sandbox | None,
    beside: ModelClient | None,
    memory: SourceMemory | None = None,
) -> Built:
    sources, models, tracing_settings = settings.sources, settings.models, settings.tracing
    if sandbox is not None:
        sources, models, tracing_settings = _pointed(settings, sandbox.url)
    tracing = _tracing(settings, tracing_settings)
    crew = Crew(settings, models, model_client(models, beside), tracing)
    local = sandbox is None and settings.general.judge != "openai"
    gate = crew.gate(alone=local and crew.client is None, checked=sandbox is None)
    product = Product(
        sources=_sources(sources, items, tracing, memory),
        gate=gate,
        grader=crew.grader(),
        steps=Steps(crew.rewriter(), Assessor(settings.ranking, settings.retrieval)),
        writer=crew.writer(),
        explainer=crew.explainer(),
        observer=SilentObserver() if tracing is None else tracing.observer,
        depths=settings.depths,
        adaptive=settings.adaptive,
        crawl_seconds=settings.sources.crawl_timeout,
        sample=sandbox is not None,
        places=PLACES,
    )
    return Built(settings, mode, product, crew.client, tracing, sandbox)


@dataclass(slots=True)
class OwnGate:
    """The gate for items a person hands in, and its model client."""

    gate: Gate
    client: ModelClient | None

    async def aclose(self) -> None:
        """Close the model client."""
        if self.client is not None:
            await self.client.aclose()


def build_gate(settings: Settings, *, beside: ModelClient | None = None) -> OwnGate:
    """The gate alone: it uses the person's key although no source may be configured.

    In mode `sandbox` nothing is spent: the local judge answers, as it would behind the sandbox.
    """
    sandboxed = settings.general.mode == "sandbox"
    client = None if sandboxed else model_client(settings.models, beside)
    tracing = None if sandboxed else _tracing(settings, settings.tracing)
    crew = Crew(settings, settings.models, client, tracing)
    return OwnGate(crew.gate(alone=client is None and settings.general.judge != "openai"), client)


def _pointed(settings: Settings, url: str) -> tuple[SourceSettings, ModelSettings, TracingSettings]:
    """The same settings with every upstream, model and Langfuse being the sandbox."""
    key = SecretStr("sandbox")
    sources = settings.sources.model_copy(
        update={
            "reddit_client_id": key, "reddit_client_secret": key, "reddit_url": url,
            "youtube_api_key": key, "youtube_url": url,
            "amazon_provider": "html", "amazon_api_key": None, "amazon_url": url,
        }
    )  # fmt: skip
    models = settings.models.model_copy(
        update={"openai_api_key": key, "openai_base_url": f"{url}/v1"}
    )
    tracing = settings.tracing.model_copy(
        update={
            "langfuse_public_key": "pk-lf-sandbox", "langfuse_secret_key": key,
            "langfuse_base_url": url,
        }
    )  # fmt: skip
    return sources, models, tracing


def _tracing(settings: Settings, tracing: TracingSettings) -> Tracing | None:
    if not (tracing.langfuse_public_key and tracing.langfuse_secret_key):
        return None
    from api.tracing import start

    general = settings.general
    return start(tracing, user_id=general.user_id, session_id=general.session_id)


def _sources(
    settings: SourceSettings,
    items: Sequence[Item] | None,
    tracing: Tracing | None,
    memory: SourceMemory | None,
) -> dict[str, Source | SourceError]:
    if items is not None:
        from api.sources.items import NAME, ItemsSource

        return {NAME: ItemsSource(items)}
    built: dict[str, Source | SourceError] = {}
    for name, spec in SOURCES.items():
        try:
            source = spec.build(settings, memory)
        except SourceError as error:
            built[name] = error
        else:
            built[name] = source if tracing is None else tracing.source(source)
    return built


@dataclass(slots=True)
class OnDemand:
    """One loop's product, each part built from the environment when it is first asked for."""

    settings: Settings
    _gate: OwnGate | None = None
    _built: Built | None = None

    @property
    def gate(self) -> Gate:
        """The gate for a person's own items."""
        if self._gate is None:
            beside = self._built.client if self._built else None
            self._gate = build_gate(self.settings, beside=beside)
        return self._gate.gate

    async def listen(self, source: str, ask: Ask, run_id: str | None) -> Heard:
        """See `Built.listen`."""
        if self._built is None:
            beside = self._gate.client if self._gate else None
            self._built = build(self.settings, beside=beside)
        return await self._built.listen(source, ask, run_id)

    async def aclose(self) -> None:
        """Close what was built."""
        async with AsyncExitStack() as stack:
            for part in (self._gate, self._built):
                if part is not None:
                    stack.push_async_callback(part.aclose)


class PerLoop:
    """The provider: one built product per running event loop, since clients die with their loop.

    Beside each product an unfinished generator is kept: a loop that ends as `asyncio.run` ends it
    closes the generator, and that closes the product.
    """

    def __init__(self) -> None:
        """Build nothing yet."""
        self._loops: dict[
            asyncio.AbstractEventLoop, tuple[OnDemand, AsyncGenerator[None, None]]
        ] = {}

    async def current(self) -> OnDemand:
        """This loop's product."""
        loop = asyncio.get_running_loop()
        if loop not in self._loops:
            product = OnDemand(load_settings())
            for dead in [known for known in list(self._loops) if known.is_closed()]:
                del self._loops[dead]
            ending = self._closing(loop, product)
            self._loops[loop] = product, ending
            await anext(ending)
        return self._loops[loop][0]

    async def _closing(
        self, loop: asyncio.AbstractEventLoop, product: OnDemand
    ) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            self._loops.pop(loop, None)
            await product.aclose()
