"""Measures a search of the archive on questions whose answers are known.

Also the sample corpus as an archive, and the plain searches that a better one has to beat.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from importlib import resources
from pathlib import Path
from statistics import fmean, median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from api.core.domain import Decision, Usage, Verdict
from api.core.items import Assessed, Comment, Item
from api.evaluation.labelled_items import NonEmpty, read_rows
from api.evaluation.metrics import Measures, discounted, grouped, summary
from api.features.archive.embedding import Embedder
from api.features.archive.index_words import Chunk, chunked, comment_of
from api.features.archive.search import CANDIDATES, ArchiveSearch, searched_words
from api.features.archive.search_ranking import Scored, score_matches
from api.features.archive.search_values import Archive, ArchiveFilters, Embed
from api.models.local.word_vectors import embed
from api.pipeline.evidence.figures import Figures
from api.reports.composition import kept_item
from api.reports.report import VERSION, Cost, Report, Timings
from api.sandbox import corpus
from api.settings import RankingSettings, RetrievalSettings
from api.store import SqlStore, open_store

DEPTH = 8  # citations of a question that count: the default limit of the archive's search
_SHAPE = (
    '{"id": "...", "kind": "...", "part": "dev", "question": "...", '
    '"relevant": [{"key": "...", "comment": null, "grade": 2}]}'
)
Reference = tuple[str, str | None]
"""Key of an item and id of one of its comments; None for the item itself."""
Search = Callable[[str], Awaitable[Sequence[Reference]]]
"""Citations for a question, best first; none where nothing answers it."""


@dataclass(frozen=True, slots=True)
class LabelledQuestion:
    """A question to the archive, and what answers it."""

    id: str
    kind: str
    part: str  # `dev` (thresholds are fitted on it) or `test`
    text: str
    relevant: Mapping[Reference, int]
    """Relevance by reference: 2 answers the question, 1 is related; empty: nothing should be cited."""


@dataclass(frozen=True)
class Retrieved:
    """What one search cites for one question; measures are cached for resampling."""

    question: LabelledQuestion
    references: tuple[Reference, ...]
    seconds: float

    @cached_property
    def right(self) -> int:
        """Citations with any grade; two parts of one entry count twice."""
        return sum(reference in self.question.relevant for reference in self.references)

    @cached_property
    def recall(self) -> float:
        """Share of the entries with the best grade that are cited, of those that could be."""
        best = max(self.question.relevant.values())
        wanted = {name for name, grade in self.question.relevant.items() if grade == best}
        return len(wanted.intersection(self.references)) / min(DEPTH, len(wanted))

    @cached_property
    def ndcg(self) -> float:
        """Discounted gain over the best possible: 3 for grade 2, 1 for grade 1, once per entry."""
        left = dict(self.question.relevant)
        gains = [2.0 ** left.pop(reference, 0) - 1 for reference in self.references]
        best = sorted((2.0**grade - 1 for grade in self.question.relevant.values()), reverse=True)
        return discounted(gains, DEPTH) / discounted(best, DEPTH)


@dataclass(frozen=True, slots=True)
class RetrievalResult:
    """Scores of one search; `as_json` is what is printed."""

    search: str
    overall: Mapping[str, Any]  # measures of `retrieval_measures`, with `intervals`
    answerable: Mapping[str, Any]  # the same over the questions that have an answer
    parts: Mapping[str, Mapping[str, Any]]
    kinds: Mapping[str, Mapping[str, Any]]
    ms: float  # milliseconds of a search, the median
    questions: Mapping[str, Sequence[Reference]]  # what was cited, by id

    def as_json(self) -> dict[str, Any]:
        """The result as values that JSON holds."""
        return asdict(self)


class _Relevant(BaseModel):
    key: NonEmpty
    comment: str | None = None
    grade: Annotated[int, Field(ge=1, le=2)] = 2


class _QuestionRecord(BaseModel):
    id: NonEmpty
    kind: NonEmpty
    part: Literal["dev", "test"]
    question: NonEmpty
    relevant: list[_Relevant]


def read_questions(lines: Iterable[str], name: str) -> list[LabelledQuestion]:
    """Labelled questions out of JSON lines. See `read_rows`."""
    return [
        LabelledQuestion(
            row.id, row.kind, row.part, row.question,
            {(entry.key, entry.comment): entry.grade for entry in row.relevant},
        )
        for row in read_rows(lines, name, _QuestionRecord, "question", _SHAPE)
    ]  # fmt: skip


async def retrieve(search: Search, questions: Sequence[LabelledQuestion]) -> list[Retrieved]:
    """Search for each question in order, one result a question."""
    answers = []
    for question in questions:
        began = perf_counter()
        references = tuple(await search(question.text))[:DEPTH]
        answers.append(Retrieved(question, references, perf_counter() - began))
    return answers


def retrieval_measures(answers: Sequence[Retrieved]) -> Measures:
    """Mean recall and nDCG over the questions with an answer.

    `precision` is over all citations, of which those of questions without an answer are wrong;
    `quiet` is the share of these questions that cite nothing.
    """
    answerable = [answer for answer in answers if answer.question.relevant]
    others = [answer for answer in answers if not answer.question.relevant]
    cited = sum(len(answer.references) for answer in answers)
    return {
        "n": len(answers),
        "recall": fmean(answer.recall for answer in answerable) if answerable else None,
        "precision": sum(answer.right for answer in answers) / cited if cited else None,
        "ndcg": fmean(answer.ndcg for answer in answerable) if answerable else None,
        "quiet": fmean(not answer.references for answer in others) if others else None,
    }


def score_retrieval(search: str, answers: Sequence[Retrieved]) -> RetrievalResult:
    """Figures over all, by part and by kind; intervals by question."""

    def sliced(key: Callable[[Retrieved], str]) -> dict[str, dict[str, Any]]:
        slices = grouped(answers, key).items()
        return {name: summary(members, retrieval_measures) for name, members in slices}

    answerable = [answer for answer in answers if answer.question.relevant]
    return RetrievalResult(
        search, summary(answers, retrieval_measures), summary(answerable, retrieval_measures),
        sliced(lambda answer: answer.question.part), sliced(lambda answer: answer.question.kind),
        round(median(answer.seconds for answer in answers) * 1000, 2),
        {answer.question.id: answer.references for answer in answers},
    )  # fmt: skip


TENANT = "sample"
_SAMPLE_ONLY = ArchiveFilters(sample=True)
_VECTOR_SHARE = 0.65
# the sample's posts have ages in days, counted back from this time
_NOW = datetime(2026, 11, 28, tzinfo=UTC)
_GONE = {"[deleted]", "[removed]", ""}


def sample_reports() -> list[Report]:
    """A report for each product of the sample corpus that keeps all posts but the deleted ones."""
    data = resources.files("api.sandbox") / "data" / "products.json"
    queries = {product["slug"]: product["query"] for product in json.loads(data.read_text("utf-8"))}
    queries.setdefault("obsidian", "Obsidian")  # only in the sources without a key
    return [
        sample_report(query, [_item(post) for post in posts if not post.deleted])
        for slug, query in queries.items()
        if (posts := (*corpus.load(slug), *corpus.keyless(slug)))
    ]


def _item(post: corpus.Post) -> Item:
    comments = tuple(
        Comment(
            id=remark.id, created_at=_created_at(remark.age_days),
            body="\n".join(part for part in (remark.title, remark.body) if part),
        )
        for remark in post.comments
        if not remark.deleted and remark.body.strip() not in _GONE
    )  # fmt: skip
    return Item(
        key=post.key, id=post.id, source=post.source, title=post.title, body=post.body,
        place=post.place or None, created_at=_created_at(post.age_days), comments=comments,
    )  # fmt: skip


def _created_at(age_days: float | None) -> datetime | None:
    return None if age_days is None else _NOW - timedelta(days=age_days)


def sample_report(query: str, items: Sequence[Item]) -> Report:
    """A report that keeps all of the sample items."""
    kept = tuple(kept_item(Assessed(item, Verdict(True, "sample"))) for item in items)
    return Report(
        id=f"rep_{corpus.spelled(corpus.HEX, 12, query)}", version=VERSION, query=query, about="",
        rewritten_queries=(), depth="deep", decision=Decision.FULL, decision_rationale="",
        disclaimer=None, explanation_text=None, total_scored=len(kept), total_survived=len(kept),
        quality_notes=(), grading="off", topic=query, summary="", findings=(), figures=Figures(),
        quotes=(), sources={}, coverage="", suggestions=(), items=kept, dropped=(), sample=True,
        cost=Cost(usd=0.0, tokens=0, upstream_calls=0), timings_ms=Timings(), trace_id=None,
        created_at=_NOW,
    )  # fmt: skip


@asynccontextmanager
async def sample_archive(embedder: Embedder | None = None) -> AsyncIterator[SqlStore]:
    """A temporary store with the sample's reports.

    With `embedder` they are stored as real ones, since a server is sent no sample data, and have its vectors.

    Raises:
        ModelError: the server gives no vectors.
    """
    with TemporaryDirectory() as folder:
        store = await open_store(f"sqlite:///{Path(folder) / 'sample.db'}", embed)
        try:
            for report in sample_reports():
                await store.finish(TENANT, report.model_copy(update={"sample": embedder is None}))
            if embedder is not None:  # opened anew, so that what is embedded unasked stands in nobody's way
                await store.aclose()
                store = await open_store(f"sqlite:///{Path(folder) / 'sample.db'}", embed, embedder)
                if store.embedding is not None:
                    await store.embedding.embed(TENANT, lambda entries, tokens: None)
            yield store
        finally:
            await store.aclose()


def product_search(
    archive: Archive, retrieval: RetrievalSettings, ranking: RankingSettings, embedder: Embedder | None = None
) -> Search:
    """The product's search, with its free reranker."""
    product = _product(archive, retrieval, ranking, embedder)

    async def search(question: str) -> Sequence[Reference]:
        answer = await product.search(TENANT, question)
        return [(hit.key, hit.comment_id) for hit in answer.hits]

    return search


def checked_search(
    archive: Archive,
    retrieval: RetrievalSettings,
    ranking: RankingSettings,
    questions: Sequence[LabelledQuestion],
    embedder: Embedder | None = None,
) -> Search:
    """The product's search with an answer check that is always right: the most that a model can reach."""
    product = _product(archive, retrieval.model_copy(update={"answer_check": True}), ranking, embedder)
    relevant = {question.text: question.relevant for question in questions}

    async def search(question: str) -> Sequence[Reference]:
        async def check(query: str, pieces: Sequence[Chunk]) -> tuple[Sequence[bool], Usage]:
            items = await archive.facts(TENANT, {piece.key for piece in pieces})
            comments = [comment_of(items[piece.key], piece) for piece in pieces]
            names = [(piece.key, comment and comment.id) for piece, comment in zip(pieces, comments, strict=True)]
            return [name in relevant[question] for name in names], Usage()

        answer = await replace(product, check=check).search(TENANT, question, terse=True)
        return [(hit.key, hit.comment_id) for hit in answer.hits]

    return search


def _product(
    archive: Archive, retrieval: RetrievalSettings, ranking: RankingSettings, embedder: Embedder | None
) -> ArchiveSearch:
    return ArchiveSearch(archive, embed, retrieval, ranking, sample=embedder is None, embedder=embedder)


def plain_searches(archive: Archive, embedding: Embed = embed) -> Mapping[str, Search]:
    """Searches by words (BM25), by vectors (cosine), and by both, without any floor."""

    async def search(score: Callable[[Sequence[Scored]], Mapping[Scored, float]], question: str) -> Sequence[Reference]:
        words, vectors = searched_words(question), embedding([question])
        vector = vectors[0] if vectors else None
        matches = await archive.matches(TENANT, words, vector, _SAMPLE_ONLY, CANDIDATES)
        scores = score(score_matches(matches, words, vector))
        best = sorted(scores, key=lambda entry: (-scores[entry], entry.id))[:DEPTH]
        items = await archive.facts(TENANT, {entry.id[0] for entry in best})
        names = {key: _comment_ids(item) for key, item in items.items()}
        return [(key, names[key].get(comment)) for key, comment, _ in (e.id for e in best)]

    return {
        "words": partial(search, _by_words),
        "vectors": partial(search, _by_vectors),
        "hybrid": partial(search, _by_both),
    }


def _by_words(entries: Sequence[Scored]) -> dict[Scored, float]:
    return {entry: entry.words for entry in entries if entry.by_words}


def _by_vectors(entries: Sequence[Scored]) -> dict[Scored, float]:
    near = ((entry, entry.cosine) for entry in entries if entry.by_vector)
    return {entry: cosine for entry, cosine in near if cosine is not None}


def _by_both(entries: Sequence[Scored]) -> dict[Scored, float]:
    words, near = _from_0_to_1(_by_words(entries)), _from_0_to_1(_by_vectors(entries))
    return {
        entry: _VECTOR_SHARE * near.get(entry, 0.0) + (1 - _VECTOR_SHARE) * words.get(entry, 0.0) for entry in entries
    }


def _comment_ids(item: Item) -> dict[str, str]:
    """Comment ids by their names in the index, which has all, since each has a text here."""
    names = dict.fromkeys(piece.comment for piece in chunked(item) if piece.comment)
    return dict(zip(names, (comment.id for comment in item.comments), strict=True))


def _from_0_to_1(scores: Mapping[Scored, float]) -> dict[Scored, float]:
    low, high = min(scores.values(), default=0.0), max(scores.values(), default=0.0)
    return {entry: (score - low) / (high - low) if high > low else 1.0 for entry, score in scores.items()}
