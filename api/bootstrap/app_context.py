"""What a server works with: product, store, keys and limits, opened fast and closed once.

A server's product, its libraries loaded while everybody else is served.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from importlib import import_module
from typing import Any

from api.bootstrap import build, build_gate, in_sandbox, mode_of, only_over, watch_work
from api.bootstrap.durable_work import DurableWorkEngine
from api.bootstrap.model_steps import chat, turn_usd
from api.bootstrap.storage import archive_search, environment_keys, open_store_of, with_archive
from api.core.domain import Gated, Item, Question
from api.core.progress import Listener, ignore_event
from api.core.work import Resume, SharedTasks, StepRunner
from api.errors import StoreUnavailable
from api.features.analyses.analysis_job import stored_report
from api.features.analyses.api_keys import LOCAL, Keys, Tenant
from api.features.analyses.corrections import corrections_of
from api.features.analyses.fair_queue import FairQueue
from api.features.analyses.limits import Limits, fetch_within
from api.features.analyses.runner import KIND, Runner
from api.features.analyses.store_ports import Store
from api.features.archive.entries import ArchiveAnswer, ArchiveFilters
from api.features.archive.search import ArchiveSearch
from api.features.chat.chat_sessions import ChatSessions
from api.features.chat.chat_turn import ChatEvent, Turn, streamed
from api.models import ModelCallLimiter
from api.models.local.word_vectors import vectors
from api.pipeline.gate.verdicts import Gate
from api.reports.exhibits import Dossier
from api.reports.report import Fetched, Report
from api.services import product as product_service
from api.services.caller_arguments import origin_of
from api.services.product import Ask, Product, SourceAnswer
from api.settings import Settings
from api.sources import ARCHIVE, SOURCES
from api.sources.own_items import own_items_of


async def loaded_product(
    settings: Settings, store: Store, limiter: ModelCallLimiter, modules: Sequence[str] = ()
) -> Product:
    """Load what building and the first report would load, and `modules`, in a thread; build."""
    sample = mode_of(settings) == "sandbox"
    needed = ["api.services.tools", "api.bootstrap.estimates"]
    needed += [spec.module for spec in SOURCES.values()]
    if sample:
        needed.append("api.sandbox.server")
    if sample or settings.models.openai_api_key is not None:
        needed += ["api.models.model_calls", "api.reports.agent_writer"]
        needed.append("pydantic_ai.models.openai")
    if sample or settings.tracing.langfuse_secret_key is not None:
        needed.append("api.langfuse.tracing")
    if settings.tracing.prompts == "langfuse" and not sample:
        needed.append("api.langfuse.tracing.langfuse_prompts")
    await asyncio.to_thread(lambda: [import_module(name) for name in (*needed, *modules)])
    await asyncio.to_thread(vectors)
    return build(settings, limiter=limiter, memory=store)


# More probes than a day has room for.
_MANY = 2**31
# Whose labels are remembered for one tenant; what is shown again later gets a new one.
_MOST_EXHIBITS = 200


@dataclass(slots=True)
class AppContext:
    """One server's everything; the product's libraries load in the background."""

    settings: Settings
    store: Store
    keys: Keys
    limits: Limits
    durable: bool = False
    """Another process goes on with what this one leaves; of these there is one in a process."""
    runner: Runner = field(init=False)
    """Begins analyses and keeps them."""
    engine: DurableWorkEngine | None = field(default=None, init=False)
    """What keeps the steps of durable work."""
    _limiter: ModelCallLimiter = field(init=False)
    """The limit on model calls, of everything that asks a model here."""
    _loading: asyncio.Task[Product] | None = None
    _own: Product | None = None
    """What judges a person's own items; there as soon as the product is."""
    _sandbox: asyncio.Task[Product] | None = None
    """Of a server that is live, what answers those who ask for made-up data."""
    _chats: dict[bool, ChatSessions] = field(default_factory=dict)
    """By whether they are about made-up data only."""
    _fetches: SharedTasks[tuple[str, str, Ask], SourceAnswer] = field(default_factory=SharedTasks)
    _judging: SharedTasks[tuple[str, Question, str, str], Gated] = field(
        default_factory=SharedTasks
    )
    _counting: list[Callable[[Fetched], None]] = field(default_factory=list)
    _archives: dict[bool, ArchiveSearch] = field(default_factory=dict)
    """By whether what is made up is searched."""
    _dossiers: dict[str, Dossier] = field(default_factory=dict)
    """Where each tenant's exhibits are numbered, so that no two answers share a label."""

    def __post_init__(self) -> None:
        self._limiter = ModelCallLimiter(self.settings.models.model_concurrency)
        if self.durable:
            kinds: dict[str, Resume] = {
                KIND: lambda request, lease: self.runner.resume(request, lease),
                watch_work.KIND: partial(watch_work.resume_run, self),
            }
            look = partial(watch_work.queue_due, self)
            self.engine = DurableWorkEngine(self.settings, self.store, kinds, look)
        self.runner = Runner(
            self.store, self.limits, self._analyze, self._most, self.settings.streams.grace,
            engine=self.engine, tenants=self.keys.tenant,
        )  # fmt: skip

    @property
    def sample(self) -> bool:
        """Everything comes from the offline sandbox."""
        return mode_of(self.settings) == "sandbox"

    @property
    def loaded(self) -> bool:
        """Whether the next request need not wait for libraries."""
        return self._loading is not None and self._loading.done()

    def load(self, *modules: str) -> asyncio.Task[Product]:
        """Build the product in the background, once; `modules` are imported with its libraries."""
        if self._loading is None:
            loading = self._load(modules)
            self._loading = asyncio.create_task(loading, name="loading the product")
        return self._loading

    async def product(self) -> Product:
        """The product, as soon as it is built."""
        return await asyncio.shield(self.load())

    async def ping(self) -> None:
        """Have the database write almost nothing, which a full disk refuses.

        Raises:
            StoreUnavailable: it cannot be used.
            ConfigurationError: the product could not be built.
        """
        if self._loading is not None and self._loading.done():
            self._loading.result()
        await self.store.take("ping", datetime.now(UTC).date(), 1, _MANY)

    async def fetch(
        self, tenant: Tenant, source: str, ask: Ask, listener: Listener = ignore_event
    ) -> SourceAnswer:
        """See `fetch_within`; the same of one tenant at the same time is asked once."""

        async def fetching(tell: Listener) -> SourceAnswer:
            ask_it = await self._taught(tenant, replace(ask, sources=(source,)))
            product = await self._product_for(ask_it, tenant)
            usd = await self._most(ask_it)
            dossier = self._dossiers.setdefault(
                tenant.id, Dossier(product.places, most=_MOST_EXHIBITS)
            )
            heard = await fetch_within(
                self.limits, tenant, usd, product, source, ask, tell, dossier
            )
            for count in self._counting:
                count(heard.fetched)
            return heard

        return await self._fetches.share((tenant.id, source, ask), fetching, listener)

    def on_fetch(self, count: Callable[[Fetched], None]) -> None:
        """Tell `count` about every answer of one source, however many wait for it."""
        self._counting.append(count)

    async def judge(
        self, tenant: Tenant, question: Question, items: Sequence[dict[str, Any]], source: str
    ) -> Gated:
        """See `judge_within`; the items are the tenant's own, as they came.

        The same items and question of one tenant at the same time are judged once.

        Raises:
            UsageError: the source names nothing.
        """
        name = origin_of(source)

        async def judging(tell: Listener) -> Gated:
            product = await self.product()
            gate = (self._own or product).gate
            from api.bootstrap.estimates import gate_usd
            from api.services.tools import shown  # loads with the product, as the next

            seen = [shown(item, name, number) for number, item in enumerate(items)]
            usd = gate_usd(self.settings, len(items))
            return await judge_within(self.limits, tenant, usd, gate, question, seen, name)

        digest = sha256(json.dumps(items, sort_keys=True).encode()).hexdigest()
        return await self._judging.share((tenant.id, question, name, digest), judging)

    async def search(
        self, tenant: Tenant, text: str, filters: ArchiveFilters, k: int | None, *, sandbox: bool
    ) -> ArchiveAnswer:
        """What the tenant has stored about a question, or a word; no place is asked.

        Raises:
            StoreUnavailable: the database cannot be used.
        """
        product = await self._product_for(Ask(text, sandbox=sandbox))
        with self.limits.turns.seat(tenant) as seat:
            await seat.turn()
            return await self._archive(product).search(tenant.id, text, filters, k, terse=True)

    def _archive(self, product: Product) -> ArchiveSearch:
        """The search over what the store holds of this product's world."""
        if product.sample not in self._archives:
            search = archive_search(self.settings, product, self.store)
            self._archives[product.sample] = search
        return self._archives[product.sample]

    async def drop_chat(self, tenant: Tenant, session_id: str) -> bool:
        """Delete a conversation; False when there is none.

        Raises:
            StoreUnavailable: the database cannot be used.
        """
        running = {chats.forget(tenant.id, session_id) for chats in self._chats.values()}
        return await self.store.drop_session(tenant.id, session_id) or True in running

    async def turn(
        self,
        tenant: Tenant,
        message: str,
        session_id: str | None,
        *,
        known: bool,
        report_id: str | None = None,
        own: tuple[dict[str, Any], ...] = (),
        sandbox: bool = False,
    ) -> AsyncGenerator[ChatEvent]:
        """See `ChatSessions.stream`; the turn's cost is reserved before and settled after it.

        With `own` items or in the `sandbox` that is all the turn can look up; what it found stays
        known to the session, and the next turn looks up where that one says.

        Raises:
            NotFound: the tenant keeps no such report.
            UsageError: that analysis is not done, or failed; one of the items is none.

        And when the first moment is asked for, what `ChatSessions.stream` raises and:
            LimitReached: the day's USD do not suffice, or too many requests wait.
        """
        report: Report | None = None
        if report_id is not None:
            report = await stored_report(self.store, tenant.id, report_id)
        product = await self._product_for(Ask(message, items=own, sandbox=sandbox))
        await asyncio.to_thread(import_module, "api.features.chat.chat_agent")
        chats = None if own else self._chats.get(product.sample)
        if chats is None:
            archive = None if own else self._archive(product)
            chats = ChatSessions(chat(self.settings, product, archive), self.store)
        if not own:
            self._chats[product.sample] = chats
        usd = 0.0 if product.sample else await asyncio.to_thread(turn_usd, self.settings)

        async def work(emit: Callable[[ChatEvent], None]) -> ChatEvent:
            async with self.limits.working(tenant, usd) as spent:
                moments = chats.stream(tenant.id, message, session_id, known=known, report=report)
                async with aclosing(moments):
                    async for moment in moments:
                        if isinstance(moment, Turn):
                            spent.counts = bool(moment.usage.input_tokens)
                            spent.usd = moment.usage.usd
                            return moment
                        emit(moment)
            raise AssertionError("a turn ends with a `Turn`")

        return streamed(work)

    async def aclose(self) -> None:
        """Cancel what is under way, then close everything."""
        await self.runner.aclose()
        if self.engine is not None:
            await self.engine.aclose()
        if self._loading is not None:
            loading, self._loading = self._loading, None
            await asyncio.wait([loading])
            if loading.exception() is None:
                products = (loading.result(), self._own)
                await asyncio.gather(*(product.aclose() for product in products if product))
        if self._sandbox is not None:
            await asyncio.wait([self._sandbox])
            if self._sandbox.exception() is None:
                await self._sandbox.result().aclose()
        await self.store.aclose()

    async def _analyze(
        self, tenant: Tenant, ask: Ask, listener: Listener, report_id: str, keep: StepRunner
    ) -> Report:
        product = await self._product_for(ask, tenant)
        ask = await self._taught(tenant, ask)
        return await product_service.analyze(product, ask, listener, report_id, keep)

    async def _taught(self, tenant: Tenant, ask: Ask) -> Ask:
        """The question with what the tenant corrected of it; without, if that cannot be read."""
        question = Question(ask.query, ask.about)
        with suppress(StoreUnavailable):
            corrections = await corrections_of(self.store, tenant.id, question)
            return replace(ask, corrections=corrections)
        return ask

    async def _product_for(self, ask: Ask, tenant: Tenant = LOCAL) -> Product:
        """The product that answers this question: over its own items, in the sandbox, or as usual.

        One that names the archive is put to what this tenant has stored. The first question that
        asks a live server for the sandbox waits until that is built.

        Raises:
            UsageError: one of the items is none.
        """
        product = await self.product()
        if ask.items:
            return only_over(self._own or product, own_items_of(ask.items))
        if ask.sandbox and not self.sample:
            if self._sandbox is None or (self._sandbox.done() and self._sandbox.exception()):
                self._sandbox = asyncio.create_task(
                    loaded_product(in_sandbox(self.settings), self.store, self._limiter)
                )
            product = await asyncio.shield(self._sandbox)
        if ARCHIVE.name in ask.sources:
            return with_archive(product, self.settings, self.store, tenant)
        return product

    async def _most(self, ask: Ask) -> float:
        """USD that a question may cost at most, once it is known that it can be asked."""
        (await self._product_for(ask)).scope(ask)
        from api.bootstrap.estimates import most_usd  # loads with the product

        return most_usd(in_sandbox(self.settings) if ask.sandbox else self.settings, ask)

    async def _load(self, modules: Sequence[str]) -> Product:
        """The product, and what judges own items where that is another one."""
        product = await loaded_product(self.settings, self.store, self._limiter, modules)
        if self.engine is not None:
            with suppress(StoreUnavailable):  # whoever needs it hears of it
                await self.engine.opened()
        if product.sample:  # else its own gate is just this one
            self._own = build_gate(self.settings, limiter=self._limiter)
        return product


async def open_app_context(settings: Settings, *, durable: bool = False) -> AppContext:
    """Open the store, mark what another process left unfinished, and be ready for requests.

    With `durable` its analyses outlive the process; that is for one house of a process.

    Raises:
        ConfigurationError: the database URL is none of ours.
        StoreUnavailable: the database cannot be used.
    """
    store = await open_store_of(settings)
    await store.sweep()
    limits = settings.limits
    return AppContext(
        settings,
        store,
        environment_keys(settings, store),
        Limits(
            store,
            limits.requests_per_minute,
            limits.analyses_per_day,
            limits.usd_per_day,
            turns=FairQueue(limits.at_once, limits.waiting),
        ),
        durable=durable,
    )


async def judge_within(
    limits: Limits, tenant: Tenant, usd: float, gate: Gate, question: Question,
    items: Sequence[Item], source: str,
) -> Gated:  # fmt: skip
    """Judge a tenant's own items; `usd` is what that may cost at most.

    Raises:
        LimitReached: the day's USD do not suffice, or too many requests wait.
        StoreUnavailable: the limits cannot be read.
    """
    async with limits.working(tenant, usd) as spent:
        spent.counts = bool(items)
        gated = await gate.judge(question, items, source)
        spent.usd = gated.usage.usd
    return gated
