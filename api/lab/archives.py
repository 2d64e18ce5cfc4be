"""The sample world as an archive, and the plain searches that a better one has to beat."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from importlib import resources
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

from api.judges.embedding import embed
from api.lab.retrieving import DEPTH, Reference, Search
from api.sandbox import corpus
from api.services.archive.chunks import chunked
from api.services.archive.ranking import Scored
from api.services.archive.scoring import scored
from api.services.archive.searching import CANDIDATES, ArchiveSearch
from api.services.archive.shelf import Archive, ArchiveFilters, Embed
from api.services.archive.words import tokens
from api.services.evidence.figures import Figures
from api.services.reporting.composing import kept_item
from api.services.reporting.report import VERSION, Cost, ItemFacts, Report, Timings
from api.services.schemas import Assessed, Comment, Decision, Item, Verdict
from api.settings import RankingSettings, RetrievalSettings
from api.store import SqlStore, open_store

TENANT = "sample"
MADE_UP = ArchiveFilters(sample=True)
VECTOR_SHARE = 0.65
_MADE = datetime(2026, 11, 28, tzinfo=UTC)
"""From which the ages of posts are counted back."""
_GONE = {"[deleted]", "[removed]", ""}


class _Aged(Protocol):
    @property
    def age_days(self) -> float | None: ...


def sample_reports() -> list[Report]:
    """All that can be read of the sample world: by product, one report that keeps its posts.

    Without posts and comments that are gone there, since no store would hold their text.
    """
    data = resources.files("api.sandbox") / "data" / "products.json"
    queries = {product["slug"]: product["query"] for product in json.loads(data.read_text("utf-8"))}
    queries.setdefault("obsidian", "Obsidian")  # which stands in the places without a key alone
    return [
        _report(query, [_item(post) for post in posts if not post.deleted])
        for slug, query in queries.items()
        if (posts := (*corpus.load(slug), *corpus.keyless(slug)))
    ]


def _item(post: corpus.Post) -> Item:
    comments = tuple(
        Comment(
            id=remark.id,
            body="\n".join(part for part in (remark.title, remark.body) if part),
            created_at=_moment(remark),
        )
        for remark in post.comments
        if not remark.deleted and remark.body.strip() not in _GONE
    )
    return Item(
        key=post.key, id=post.id, source=post.source, title=post.title, body=post.body,
        place=post.place or None, created_at=_moment(post), comments=comments,
    )  # fmt: skip


def _moment(aged: _Aged) -> datetime | None:
    return None if aged.age_days is None else _MADE - timedelta(days=aged.age_days)


def _report(query: str, items: Sequence[Item]) -> Report:
    kept = tuple(kept_item(Assessed(item, Verdict(True, "sample"))) for item in items)
    return Report(
        id=f"rep_{corpus.spelled(corpus.HEX, 12, query)}", version=VERSION, query=query, about="",
        rewritten_queries=(), depth="deep", decision=Decision.FULL, decision_rationale="",
        disclaimer=None, explanation_text=None, total_scored=len(kept), total_survived=len(kept),
        quality_notes=(), grading="off", topic=query, summary="", findings=(), figures=Figures(),
        quotes=(), sources={}, coverage="", suggestions=(), items=kept, dropped=(), sample=True,
        cost=Cost(usd=0.0, tokens=0, upstream_calls=0), timings_ms=Timings(), trace_id=None,
        created_at=_MADE,
    )  # fmt: skip


@asynccontextmanager
async def sample_archive() -> AsyncIterator[SqlStore]:
    """A store of its own with everything of the sample world, gone at the end."""
    with TemporaryDirectory() as folder:
        store = await open_store(f"sqlite:///{Path(folder) / 'sample.db'}", embed)
        try:
            for report in sample_reports():
                await store.finish(TENANT, report)
            yield store
        finally:
            await store.aclose()


def product_search(
    archive: Archive, retrieval: RetrievalSettings, ranking: RankingSettings
) -> Search:
    """What the product cites, with its reranker that costs nothing."""
    product = ArchiveSearch(archive, embed, retrieval, ranking, sample=True)

    async def search(question: str) -> Sequence[Reference]:
        answer = await product.search(TENANT, question)
        return [(hit.key, hit.comment_id) for hit in answer.hits]

    return search


def plain_searches(archive: Archive, embedding: Embed = embed) -> Mapping[str, Search]:
    """By words (BM25), by vectors (cosine), and by both, each without any floor."""

    def by_words(entries: Sequence[Scored]) -> Mapping[Scored, float]:
        return {entry: entry.words for entry in entries if entry.by_words}

    def by_vectors(entries: Sequence[Scored]) -> Mapping[Scored, float]:
        return {
            entry: entry.cosine for entry in entries if entry.by_vector and entry.cosine is not None
        }

    def by_both(entries: Sequence[Scored]) -> Mapping[Scored, float]:
        words, near = _from_0_to_1(by_words(entries)), _from_0_to_1(by_vectors(entries))
        return {
            entry: VECTOR_SHARE * near.get(entry, 0.0) + (1 - VECTOR_SHARE) * words.get(entry, 0.0)
            for entry in entries
        }

    async def entries_for(question: str) -> Sequence[Scored]:
        words, vectors = tokens(question), embedding([question])
        vector = vectors[0] if vectors else None
        return scored(
            await archive.matches(TENANT, words, vector, MADE_UP, CANDIDATES), words, vector
        )

    async def first(scores: Mapping[Scored, float]) -> list[Reference]:
        line = sorted(scores, key=lambda entry: (-scores[entry], entry.id))[:DEPTH]
        items = await archive.facts(TENANT, {entry.id[0] for entry in line})
        names = {key: _comment_names(item) for key, item in items.items()}
        return [(key, names[key].get(comment)) for key, comment, _ in (e.id for e in line)]

    async def words(question: str) -> Sequence[Reference]:
        return await first(by_words(await entries_for(question)))

    async def vectors(question: str) -> Sequence[Reference]:
        return await first(by_vectors(await entries_for(question)))

    async def hybrid(question: str) -> Sequence[Reference]:
        return await first(by_both(await entries_for(question)))

    return {"words": words, "vectors": vectors, "hybrid": hybrid}


def _comment_names(item: ItemFacts) -> dict[str, str]:
    """Ids of an item's comments by what its pieces call them; all of these have a text here."""
    pieces = dict.fromkeys(piece.comment for piece in chunked(item) if piece.comment)
    return dict(zip(pieces, (comment.id for comment in item.comments), strict=True))


def _from_0_to_1(scores: Mapping[Scored, float]) -> dict[Scored, float]:
    low, high = min(scores.values(), default=0.0), max(scores.values(), default=0.0)
    return {
        entry: (score - low) / (high - low) if high > low else 1.0
        for entry, score in scores.items()
    }
