"""The database with the keys it knows, the archive's search over it, and where feedback is sent."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from api.bootstrap import gate_version, mode_of
from api.choices import ReplayJudge
from api.core.domain import Question, Usage
from api.core.items import Item
from api.core.model_batches import usage_of_error
from api.core.ports import AnswerChecker, Grader, SampleMemory
from api.errors import ConfigurationError, LimitReached, ModelError, StoreUnavailable, UsageError
from api.features.analyses.api_keys import LOCAL, Keys, Tenant
from api.features.analyses.feedback import Rated, Send
from api.features.analyses.limits import Limits
from api.features.analyses.rejudging import with_sense_and_corrections
from api.features.analyses.store_ports import Store
from api.features.archive.embedding import Embedder
from api.features.archive.index_words import Chunk
from api.features.archive.search import ArchiveSearch, Check, Rerank, by_words
from api.features.watches.followed_feeds import FeedStore
from api.models.local.word_vectors import embed
from api.pipeline.gate.cascade import Cascade, Promise
from api.reports.report import Report
from api.services.product import Ask, Product
from api.settings import Settings
from api.settings.value_types import feeds_in
from api.sources import ARCHIVE
from api.sources.archive_source import ArchiveSource
from api.sources.own_items import sources_of_report
from api.store import open_store

if TYPE_CHECKING:
    from api.sources.feeds import FeedReader


async def open_store_of(settings: Settings) -> Store:
    """Open the store without building a product.

    Raises:
        ConfigurationError: the database URL is none of ours.
        StoreUnavailable: the database cannot be used.
    """
    embedder = None
    if settings.embeddings.model and mode_of(settings) != "sandbox":
        from api.models.embeddings import server_embedder  # loads the model's library

        embedder = server_embedder(settings)
    return await open_store(settings.general.database_url, embed, embedder)


async def with_stored_sense_and_corrections(settings: Settings, ask: Ask) -> Ask:
    """See `with_sense_and_corrections`, of this machine's user; unchanged without a database."""
    try:
        store = await open_store_of(settings)
    except (ConfigurationError, StoreUnavailable):  # said once, when the answer cannot be kept
        return ask
    try:
        return await with_sense_and_corrections(store, LOCAL.id, ask)
    finally:
        await store.aclose()


def environment_keys(settings: Settings, store: Store) -> Keys:
    """Keys of the environment and of the store."""
    secret = settings.general.api_keys
    return Keys(secret.get_secret_value().split(",") if secret else (), store)


def _embedder(product: Product, store: Store) -> Embedder | None:
    """Makes the vector of a question to the archive; for sample entries by the word vectors."""
    return None if product.sample or store.embedding is None else store.embedding.embedder


def archive_search(settings: Settings, product: Product, archive: Store) -> ArchiveSearch:
    """A search that remembers its answers for a while: one for a product and a store."""
    return ArchiveSearch(
        archive,
        embed,
        settings.retrieval,
        settings.ranking,
        product.sample,
        product.observer,
        by_words if product.grader is None else graded(product.grader),
        _embedder(product, archive),
        None if product.answerer is None else answering(product.answerer),
    )


def with_archive(product: Product, settings: Settings, archive: Store, tenant: Tenant = LOCAL) -> Product:
    """The product with what this tenant has stored as one more place, for one question.

    Everything else is the product's, which must stay open meanwhile and is closed by itself.
    """
    weight = settings.retrieval.vector_weight
    embedder = _embedder(product, archive)
    place = ArchiveSource(archive, tenant.id, embed, weight, sample=product.sample, embedder=embedder)
    watched = place if product.watched is None else product.watched(place)
    return replace(
        product,
        sources={**product.sources, ARCHIVE.name: watched},
        chosen=product.usual,
        closing=AsyncExitStack(),
    )


async def with_feeds(
    product: Product, settings: Settings, store: FeedStore, asker: FeedReader, tenant: Tenant = LOCAL
) -> Product:
    """The product with the feeds that this tenant follows beside those of the settings, for one question.

    A question that names no source is put to them, too, unless `LISTENPOST_SOURCES` chooses. The sandbox has feeds of
    its own. Everything else is the product's, which must stay open meanwhile and is closed by itself.
    """
    followed = () if product.sample else await store.followed(tenant.id)
    if not followed:
        return product
    from api.sources.feeds import NAME, FeedsSource

    addresses = (*feeds_in(settings.sources.feeds), *(feed.address for feed in followed))
    place = FeedsSource(asker, addresses)
    watched = place if product.watched is None else product.watched(place)
    usual = product.usual if settings.sources.sources or NAME in product.usual else (*product.usual, NAME)
    return replace(product, sources={**product.sources, NAME: watched}, chosen=usual, closing=AsyncExitStack())


def with_agreement(product: Product, settings: Settings, samples: SampleMemory, tenant: Tenant = LOCAL) -> Product:
    """The product whose local judge decides what `LISTENPOST_AGREEMENT` allows by the samples of this tenant.

    Everything else is the product's, which must stay open meanwhile and is closed by itself.
    """
    models, gate = settings.models, product.gate
    if models.agreement is None or gate.checker is None:  # no model judges
        return product
    from api.bootstrap.estimates import gate_usage  # loads with the product

    judges = f"{gate_version(settings, sandboxed=product.sample)} {gate.checker.name}"
    promise = Promise(models.agreement, models.agreement_risk)
    cascade = Cascade(promise, samples, tenant.id, judges, *gate_usage(settings))
    return replace(product, gate=replace(gate, cascade=cascade), closing=AsyncExitStack())


def with_report_items(product: Product, report: Report) -> Product:
    """The product with what a report holds in place of its sources, for one question.

    No source is asked, no query rewritten, nothing fetched twice, and no verdict left to a cascade.
    Everything else is the product's, which must stay open meanwhile and is closed by itself.
    """
    sources = sources_of_report(report)
    once = {"query_variants": 1, "retry_variants": 0}
    depths = {name: depth.model_copy(update=once) for name, depth in product.depths.items()}
    never = {"min_yield": 0.0, "second_look": False}
    return replace(
        product,
        sources=sources,
        chosen=tuple(sources),
        gate=replace(product.gate, cascade=None),
        depths=depths,
        adaptive=product.adaptive.model_copy(update=never),
        closing=AsyncExitStack(),
    )


def replaying(product: Product, report: Report, judge: ReplayJudge | None, model: str | None) -> Product:
    """See `with_report_items`, with another judge, or another model as judge, where one is named.

    Raises:
        UsageError: a model is named for the judge on this machine, or no model is set up.
    """
    over = with_report_items(product, report)
    if not (judge or model):
        return over
    if judge == "local" and model:
        raise UsageError("the judge on this machine takes no `model`: leave one of both out", field="model")
    if product.gate_of is None or (judge != "local" and product.agent_model is None):
        raise UsageError("no model is set up here: set `OPENAI_API_KEY`", field="model" if model else "judge")
    return replace(over, gate=product.gate_of(judge, model))


def graded(grader: Grader) -> Rerank:
    """A reranker that has the pieces graded from 1 to 5, by one call."""

    async def rerank(query: str, pieces: Sequence[Chunk]) -> list[float]:
        items = [Item(key=piece.key, id=piece.key, source="", title=piece.title, body=piece.text) for piece in pieces]
        grades = await grader.grade(Question(query), items)
        if any(grade.defaulted for grade in grades.grades):
            raise ModelError("malformed", "not every piece was graded")
        return [float(grade.score) for grade in grades.grades]

    return rerank


def answering(answerer: AnswerChecker) -> Check:
    """A check that has a model say which pieces answer a question, by one call."""

    async def check(query: str, pieces: Sequence[Chunk]) -> tuple[Sequence[bool], Usage]:
        answers = await answerer.answering(Question(query), [(piece.title, piece.text) for piece in pieces])
        return answers.supported, answers.usage

    return check


def within_budget(check: Check, limits: Limits, tenant: Tenant, usd: float) -> Check:
    """The check at the cost of a key's day; `usd` is what one may cost at most."""

    async def checking(query: str, pieces: Sequence[Chunk]) -> tuple[Sequence[bool], Usage]:
        try:
            async with limits.spending(tenant, usd=usd) as spent:
                try:
                    answered, usage = await check(query, pieces)
                except ModelError as error:
                    spent.ended(usage_of_error(error).input_tokens, usage_of_error(error).usd)
                    raise
                spent.ended(usage.input_tokens, usage.usd)
        except LimitReached as error:
            raise ModelError("quota", str(error)) from None
        return answered, usage

    return checking


# Scores on their way: each holds a thread, and a server that hangs must not hold all there are.
_AT_ONCE = 2
PATIENCE = 10.0
"""Seconds that one waits for its turn."""


def feedback_sender(settings: Settings, patience: float = PATIENCE) -> Send | None:
    """Sends scores of feedback to Langfuse; None without keys, with tracing off, and in the sandbox.

    One for a server: few scores are sent at once, and one that waits too long is not sent.
    """
    tracing = settings.tracing
    if not tracing.is_on or mode_of(settings) == "sandbox":
        return None
    turns = asyncio.Semaphore(_AT_ONCE)

    async def send(rated: Rated) -> str:
        from api.langfuse.tracing.observer import send_feedback  # loads an HTTP client

        try:
            async with asyncio.timeout(patience):
                await turns.acquire()
        except TimeoutError:
            return "Langfuse is slow, and others wait for it already"
        try:
            return await asyncio.to_thread(send_feedback, tracing, rated)
        finally:
            turns.release()

    return send
