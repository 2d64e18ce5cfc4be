"""What a server works with: product, store, keys and limits.

It opens fast: the product's libraries are loaded in the background.
"""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, aclosing, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from importlib import import_module
from typing import TYPE_CHECKING, Any

from api.bootstrap import build, build_gate, chat, in_sandbox, mode_of, only_over, storage
from api.bootstrap.background_work import WATCH_RUN, BackgroundEngine, give_up_work, queue_due, resume_run, watching_of
from api.choices import ReplayJudge
from api.core.domain import Question
from api.core.items import Gated, Item
from api.core.progress import Listener, ignore_event
from api.core.shared_answers import answers_as_of
from api.core.work import Resume, SharedTasks, StepRunner, contained
from api.errors import MissingExtra, StoreUnavailable, UsageError, extras_named
from api.features.analyses.analysis_job import stored_report
from api.features.analyses.api_keys import LOCAL, Keys, Tenant
from api.features.analyses.limits import FairQueue, Limits, fetch_within
from api.features.analyses.rejudging import with_sense_and_corrections
from api.features.analyses.runner import KIND, Comparisons, Runner
from api.features.analyses.store_ports import Store
from api.features.archive.search import ArchiveSearch
from api.features.archive.search_values import ArchiveAnswer, ArchiveFilters
from api.features.chat.chat_sessions import ChatSessions
from api.features.chat.chat_turn import ChatEvent, Turn, streamed
from api.models.dialects import ModelCallLimiter
from api.models.local.word_vectors import vectors
from api.pipeline.gate.verdicts import Gate
from api.reports.exhibits import Dossier
from api.reports.replay import Replay, replay_of
from api.reports.report import Fetched, Report
from api.services import product as product_service
from api.services.product import MOST_RUNS, Ask, Product, SourceAnswer, origin_of, question_of
from api.settings import Settings
from api.sources import ARCHIVE, SOURCES
from api.sources.own_items import own_items_of

if TYPE_CHECKING:
    from api.bootstrap.estimates import Estimate
    from api.sources.feeds import FeedReader


async def loaded_product(
    settings: Settings, store: Store, limiter: ModelCallLimiter, modules: Sequence[str] = ()
) -> Product:
    """Build a product; a thread imports before what it, the first report and `modules` need."""
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

    def load() -> None:
        for name in (*needed, *modules):
            with suppress(MissingExtra), extras_named():  # what needs it says so when it is needed
                import_module(name)

    await asyncio.to_thread(load)
    await asyncio.to_thread(vectors)
    return build(settings, limiter=limiter, memory=store)


# A limit that health checks never reach in a day.
_MOST_PINGS = 2**31
# Exhibits of one tenant whose labels are remembered; an older one that is shown again gets a new
# label.
_MOST_EXHIBITS = 200


@dataclass(slots=True)
class AppContext:
    """Everything that one server works with; `open_app_context` makes it."""

    settings: Settings
    store: Store
    keys: Keys
    limits: Limits
    durable: bool = False
    """Whether another process continues the work this one leaves; one process has at most one durable context."""
    runner: Runner = field(init=False)
    engine: BackgroundEngine | None = field(default=None, init=False)
    """Continues durable work of ended processes; None unless `durable`."""
    _limiter: ModelCallLimiter = field(init=False)
    """Shared by everything here that asks a model."""
    _loading: asyncio.Task[Product] | None = None
    _own: Product | None = None
    """Product that judges a person's own items, when it is not the usual one; set together with that."""
    _sandbox: asyncio.Task[Product] | None = None
    """Product that answers requests for sample data on a live server."""
    _feeds: FeedReader | None = None
    _chats: dict[bool, ChatSessions] = field(default_factory=dict)
    """Chat sessions; the key says whether they are about sample data only."""
    _fetches: SharedTasks[tuple[str, str, Ask], SourceAnswer] = field(default_factory=SharedTasks)
    _judging: SharedTasks[tuple[str, Question, str, str], Gated] = field(default_factory=SharedTasks)
    _counting: list[Callable[[Fetched], None]] = field(default_factory=list)
    _archives: dict[bool, ArchiveSearch] = field(default_factory=dict)
    """Searches of the archive; the key says whether sample data is searched."""
    _following: OrderedDict[tuple[str, ...], Product] = field(default_factory=OrderedDict)
    """Products with followed feeds, by the feeds' addresses; the most recently used are kept."""
    _digests: asyncio.Task[None] | None = None
    """Task that sends due digests."""
    closing_first: AsyncExitStack = field(default_factory=AsyncExitStack)
    """Closed before the store."""
    _dossiers: dict[str, Dossier] = field(default_factory=dict)
    """Numbers of each tenant's exhibits, so that no two answers share a label."""

    def __post_init__(self) -> None:
        self._limiter = ModelCallLimiter(self.settings.models.model_concurrency)
        if self.durable:
            kinds: dict[str, Resume] = {
                KIND: lambda request, lease: self.runner.resume(request, lease),
                WATCH_RUN: partial(resume_run, self),
            }
            give_up = partial(give_up_work, self)
            self.engine = BackgroundEngine(self.settings, self.store, kinds, give_up, self._look)
        self.runner = Runner(
            self.store, self.limits, self._analyze, self._most, self.settings.streams.grace,
            engine=self.engine, tenants=self.keys.tenant,
        )  # fmt: skip

    async def _look(self) -> None:
        """Store what could not be stored before, and begin watches and digests that are due."""
        await self.runner.store_again()
        await queue_due(self)
        if self._digests is None or self._digests.done():  # a receiver that does not answer holds up nothing else
            self._digests = asyncio.create_task(self._send_digests(), name="digests")

    async def _send_digests(self) -> None:
        await contained(watching_of(self).send_digests(), "sending digests")

    @property
    def comparisons(self) -> Comparisons:
        """Begins comparisons of several products, an analysis for each."""
        return Comparisons(self.runner, self.limits, self.store)

    @property
    def sample(self) -> bool:
        """Whether everything comes from the offline sandbox."""
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
        """The product; waits until it is built."""
        return await asyncio.shield(self.load())

    async def ping(self) -> None:
        """Check that requests can be answered: the database writes one number.

        Raises:
            StoreUnavailable: the database cannot be used, or its disk is full.
            ConfigurationError: the product could not be built.
        """
        if self._loading is not None and self._loading.done():
            self._loading.result()
        await self.store.take("ping", datetime.now(UTC).date(), 1, _MOST_PINGS)

    async def fetch(self, tenant: Tenant, source: str, ask: Ask, listener: Listener = ignore_event) -> SourceAnswer:
        """Fetch from one source, see `fetch_within`; equal requests of one tenant at the same time share one run."""

        async def fetching(publish: Listener) -> SourceAnswer:
            of_source = replace(ask, sources=(source,))
            corrected = await with_sense_and_corrections(self.store, tenant.id, of_source)
            product = await self._product_for(corrected, tenant)
            usd = await self._most(corrected, tenant)
            dossier = self._dossiers.setdefault(tenant.id, Dossier(product.places, most=_MOST_EXHIBITS))
            answer = await fetch_within(self.limits, tenant, usd, product, source, corrected, publish, dossier)
            for count in self._counting:
                count(answer.fetched)
            return answer

        return await self._fetches.share((tenant.id, source, ask), fetching, listener)

    def on_fetch(self, count: Callable[[Fetched], None]) -> None:
        """Call `count` with every answer of one source, once however many wait for it."""
        self._counting.append(count)

    async def judge(self, tenant: Tenant, question: Question, items: Sequence[dict[str, Any]], source: str) -> Gated:
        """Judge items, see `judge_within`; equal requests of one tenant at the same time share one run.

        Raises:
            UsageError: the source names nothing.
        """
        name = origin_of(source)

        async def judging(publish: Listener) -> Gated:
            product = await self.product()
            gate = (self._own or product).gate
            from api.bootstrap.estimates import gate_usd
            from api.services.tools import shown  # loads with the product, as the next

            seen = await asyncio.to_thread(lambda: [shown(item, name, number) for number, item in enumerate(items)])
            usd = await asyncio.to_thread(gate_usd, self.settings, len(items))  # loads the client's library
            return await judge_within(self.limits, tenant, usd, gate, question, seen, name)

        digest = sha256(json.dumps(items, sort_keys=True).encode()).hexdigest()
        return await self._judging.share((tenant.id, question, name, digest), judging)

    async def judge_posts(self, tenant: Tenant, ask: Ask, posts: Sequence[Item]) -> Gated:
        """Judge posts of one source for a question, with what its tenant chose and corrected; see `judge_within`."""
        corrected = await with_sense_and_corrections(self.store, tenant.id, ask)
        product = await self._product_for(corrected, tenant)
        from api.bootstrap.estimates import gate_usd  # loads with the product

        usd = await asyncio.to_thread(gate_usd, self.settings, len(posts))
        source = posts[0].source if posts else ""
        return await judge_within(self.limits, tenant, usd, product.gate, question_of(corrected), posts, source)

    async def replay(
        self, tenant: Tenant, before: Report, ask: Ask, judge: ReplayJudge | None, model: str | None
    ) -> Replay:
        """Judge the items of a stored report again, and compare; `ask` is of `ask_again`. Counts as an analysis.

        Raises:
            UsageError: see `replaying`; or nobody knows the price of the model, and a key pays for it.
            LimitReached: the day's analyses or USD do not suffice, or too many requests wait.
            StoreUnavailable: the limits cannot be read.
        """
        price = await self.replay_estimate(ask, judge, model)
        if price.most["usd"] is None and model and tenant.origin != "local":
            words = "nobody knows the price of this `model`: state it in `LISTENPOST_MODEL_PRICES`"
            raise UsageError(words, field="model")
        product = await self._product_for(replace(ask, again=""))
        over = storage.replaying(product, before, judge, model)
        corrected = await with_sense_and_corrections(self.store, tenant.id, ask)
        spending = self.limits.spending(tenant, usd=price.reserved, analyses=1)
        async with self.limits.queue.slot(tenant), spending as spent:
            after = await product_service.analyze(over, corrected)
            spent.ended(after.cost.tokens, after.cost.usd)
        return await asyncio.to_thread(replay_of, before, after)

    async def replay_estimate(self, ask: Ask, judge: ReplayJudge | None, model: str | None) -> Estimate:
        """Calls of a model and USD that `replay` takes, asking no source."""
        await self.product()
        from api.bootstrap.estimates import replay_estimate  # loads with the product

        settings = in_sandbox(self.settings) if ask.sandbox else self.settings
        return await asyncio.to_thread(replay_estimate, settings, ask, judge, model)

    async def search(
        self, tenant: Tenant, text: str, filters: ArchiveFilters, k: int | None, *, sandbox: bool
    ) -> ArchiveAnswer:
        """Search the tenant's stored entries for a question or word; no source is asked.

        Raises:
            StoreUnavailable: the database cannot be used.
        """
        product = await self._product_for(Ask(text, sandbox=sandbox))
        from api.bootstrap.estimates import answer_check_usd  # loads with the product

        archive = self._archive(product)
        if archive.check is not None and not product.sample and tenant.origin != "local":
            usd = await asyncio.to_thread(answer_check_usd, self.settings)
            archive = replace(archive, check=storage.within_budget(archive.check, self.limits, tenant, usd))
        async with self.limits.queue.slot(tenant):
            return await archive.search(tenant.id, text, filters, k, terse=True)

    def _archive(self, product: Product) -> ArchiveSearch:
        if product.sample not in self._archives:
            search = storage.archive_search(self.settings, product, self.store)
            self._archives[product.sample] = search
        return self._archives[product.sample]

    async def drop_chat(self, tenant: Tenant, session_id: str) -> bool:
        """Delete a chat; False when there is none.

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

        With `own` items or in the `sandbox` that is all the turn can look up; the session keeps
        what it found, and the next turn looks up where that one says.

        Raises:
            NotFound: the tenant keeps no such report.
            UsageError: that analysis is not done, or failed; one of the items is none.
            LimitReached: with the first event; the day's USD do not suffice, or too many wait.
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
        from api.bootstrap.estimates import turn_usd  # loads with the product

        usd = 0.0 if product.sample else await asyncio.to_thread(turn_usd, self.settings)

        async def work(emit: Callable[[ChatEvent], None]) -> ChatEvent:
            async with self.limits.working(tenant, usd) as spent:
                events = chats.stream(tenant.id, message, session_id, known=known, report=report)
                async with aclosing(events):
                    async for event in events:
                        if isinstance(event, Turn):
                            spent.ended(event.usage.input_tokens, event.usage.usd)
                            return event
                        emit(event)
            raise AssertionError("a turn ends with a `Turn`")

        return streamed(work)

    async def aclose(self) -> None:
        """Cancel what is under way and close everything."""
        await self.closing_first.aclose()
        await self.runner.aclose()
        if self.engine is not None:
            await self.engine.aclose()
        if self._digests is not None:  # what was not sent is sent by the next process
            self._digests.cancel()
            await asyncio.wait({self._digests})
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
        if self._feeds is not None:
            await self._feeds.aclose()
        await self.store.aclose()

    async def _analyze(
        self, tenant: Tenant, ask: Ask, listener: Listener, report_id: str, run_step: StepRunner
    ) -> Report:
        product = await self._product_for(ask, tenant)
        ask = await with_sense_and_corrections(self.store, tenant.id, ask)
        # who has the machine alone may have all of a source
        with answers_as_of(ask.as_of, "" if tenant.origin == "local" else tenant.id):
            return await product_service.analyze(product, ask, listener, report_id, run_step)

    async def _product_for(self, ask: Ask, tenant: Tenant | None = None) -> Product:
        """The product that answers this question: over its own items, in the sandbox, or as usual.

        For a question that names the archive it includes what this tenant has stored, and for one
        that is asked again it has only what the earlier report holds. With a tenant it reads the feeds that this one
        follows, and its gate is a cascade if that is set. The first question that asks a live server for the sandbox
        waits until that is built.

        Raises:
            UsageError: one of the items is none.
            NotFound: the report that is asked again is gone.
        """
        product = await self.product()
        if ask.items:
            return only_over(self._own or product, await asyncio.to_thread(own_items_of, ask.items))
        if ask.sandbox and not self.sample:
            if self._sandbox is None or (self._sandbox.done() and self._sandbox.exception()):
                self._sandbox = asyncio.create_task(
                    loaded_product(in_sandbox(self.settings), self.store, self._limiter)
                )
            product = await asyncio.shield(self._sandbox)
        if ask.again:
            return storage.with_report_items(product, await stored_report(self.store, (tenant or LOCAL).id, ask.again))
        if tenant is not None:
            product = storage.with_agreement(await self._with_feeds(product, tenant), self.settings, self.store, tenant)
        if ARCHIVE.name in ask.sources:
            return storage.with_archive(product, self.settings, self.store, tenant or LOCAL)
        return product

    async def _with_feeds(self, product: Product, tenant: Tenant) -> Product:
        """See `with_feeds`; who follows the same feeds shares what is asked at the same time."""
        following = await storage.with_feeds(product, self.settings, self.store, self.feeds, tenant)
        if following is product:
            return product
        key = tuple(feed.address for feed in await self.store.followed(tenant.id))
        following = self._following.setdefault(key, following)
        self._following.move_to_end(key)
        while len(self._following) > MOST_RUNS:
            self._following.popitem(last=False)
        return following

    @property
    def feeds(self) -> FeedReader:
        """Asks followed feeds, one for all tenants."""
        if self._feeds is None:
            from api.sources.feeds import FeedReader  # loads with the product

            self._feeds = FeedReader(self.settings.sources, self.store)
        return self._feeds

    async def _most(self, ask: Ask, tenant: Tenant | None = None) -> float:
        """USD that a question may cost at most, once it is known that it can be asked."""
        product = await self._product_for(replace(ask, again=""), tenant)
        product.scope(ask)
        if not (ask.sources or ask.items or ask.again or ask.sandbox):
            ask = replace(ask, sources=product.usual)
        from api.bootstrap.estimates import most_usd  # loads with the product

        settings = in_sandbox(self.settings) if ask.sandbox else self.settings
        # the first one loads the model's library, which takes a second of the processor
        return await asyncio.to_thread(most_usd, settings, ask)

    async def _load(self, modules: Sequence[str]) -> Product:
        product = await loaded_product(self.settings, self.store, self._limiter, modules)
        if self.engine is not None:
            with suppress(StoreUnavailable):  # raised again to whoever needs it
                await self.engine.opened()
        if product.sample:  # else its own gate is just this one
            self._own = build_gate(self.settings, limiter=self._limiter)
        return product


async def open_app_context(settings: Settings, *, durable: bool = False) -> AppContext:
    """Open the store and mark what an ended process left unfinished; ready for requests.

    With `durable` analyses outlive the process; for one context of a process.

    Raises:
        ConfigurationError: the database URL is not one of SQLite or PostgreSQL.
        StoreUnavailable: the database cannot be used.
    """
    store = await storage.open_store_of(settings)
    await store.sweep()
    limits = settings.limits
    return AppContext(
        settings,
        store,
        storage.environment_keys(settings, store),
        Limits(
            store,
            limits.requests_per_minute,
            limits.analyses_per_day,
            limits.usd_per_day,
            queue=FairQueue(limits.at_once, limits.waiting),
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
        spent.ended(gated.usage.input_tokens, gated.usage.usd)
        spent.counts = bool(items)
    return gated
