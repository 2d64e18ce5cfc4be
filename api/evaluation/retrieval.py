"""How good a search over the archive is on questions whose answers are known.

The sample world as an archive, and the plain searches that a better one has to beat.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from importlib import resources
from pathlib import Path
from statistics import fmean, median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Annotated, Any, Literal, Protocol

from pydantic import BaseModel, Field, ValidationError

from api.core.domain import Assessed, Comment, Decision, Item, Verdict
from api.core.words import index_tokens
from api.errors import UsageError
from api.evaluation.metrics import Measures, discounted, intervals, rounded
from api.features.archive.entries import Archive, ArchiveFilters, Embed
from api.features.archive.index_words import chunked
from api.features.archive.search import CANDIDATES, ArchiveSearch
from api.features.archive.search_ranking import Scored, scored
from api.models.local.word_vectors import embed
from api.pipeline.evidence.figures import Figures
from api.reports.composition import kept_item
from api.reports.report import VERSION, Cost, ItemFacts, Report, Timings
from api.sandbox import corpus
from api.settings import RankingSettings, RetrievalSettings
from api.store import SqlStore, open_store

DEPTH = 8
"""Citations that are looked at: what the archive gives unless told otherwise."""
_SHAPE = (
    '{"id": "...", "kind": "...", "part": "dev", "question": "...", '
    '"relevant": [{"key": "...", "comment": null, "grade": 2}]}'
)
Reference = tuple[str, str | None]
"""An item's key, and the id of the comment of it; None for the item itself."""
Search = Callable[[str], Awaitable[Sequence[Reference]]]
"""What a question cites, best first; nothing is a full answer too."""


@dataclass(frozen=True, slots=True)
class LabelledQuestion:
    """A question to the archive, and what answers it."""

    id: str
    kind: str
    part: str
    """`dev`, on which floors are fitted, or `test`."""
    text: str
    relevant: Mapping[Reference, int]
    """2: answers; 1: touches it. Empty: nothing is to be cited."""


@dataclass(frozen=True)
class Retrieved:
    """What one search cites for one question; figures are computed once, for resampling."""

    question: LabelledQuestion
    references: tuple[Reference, ...]
    seconds: float

    @cached_property
    def right(self) -> int:
        """How many citations touch the question at least; two pieces of one entry are two."""
        return sum(reference in self.question.relevant for reference in self.references)

    @cached_property
    def recall(self) -> float:
        """Of the entries that answer best, how many are cited, as a share of what could be."""
        best = max(self.question.relevant.values())
        wanted = {name for name, grade in self.question.relevant.items() if grade == best}
        return len(wanted.intersection(self.references)) / min(DEPTH, len(wanted))

    @cached_property
    def ndcg(self) -> float:
        """Discounted gain over the best there could be: 3 for an answer, 1 for a touch, once."""
        left = dict(self.question.relevant)
        gains = [2.0 ** left.pop(reference, 0) - 1 for reference in self.references]
        best = sorted((2.0**grade - 1 for grade in self.question.relevant.values()), reverse=True)
        return discounted(gains, DEPTH) / discounted(best, DEPTH)


@dataclass(frozen=True, slots=True)
class RetrievalResult:
    """What one search is worth; `as_json` is what is printed."""

    search: str
    overall: Mapping[str, Any]
    """Measures of `retrieval_measures`, with `intervals`."""
    answerable: Mapping[str, Any]
    """The same over the questions that have an answer."""
    parts: Mapping[str, Mapping[str, Any]]
    kinds: Mapping[str, Mapping[str, Any]]
    ms: float
    """Milliseconds of a search, the median."""
    questions: Mapping[str, Sequence[Reference]]
    """What was cited, by id."""

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


class _Relevant(BaseModel):
    key: Annotated[str, Field(min_length=1)]
    comment: str | None = None
    grade: Annotated[int, Field(ge=1, le=2)] = 2


class _QuestionLine(BaseModel):
    id: Annotated[str, Field(min_length=1)]
    kind: Annotated[str, Field(min_length=1)]
    part: Literal["dev", "test"]
    question: Annotated[str, Field(min_length=1)]
    relevant: list[_Relevant]


def read_questions(lines: Iterable[str], name: str) -> list[LabelledQuestion]:
    """Labelled questions out of JSON lines; blank lines are skipped.

    Raises:
        UsageError: a line is malformed (file, line number, field, shape), or there is none.
    """
    questions = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = _QuestionLine.model_validate_json(line)
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False, include_context=False)[0]
            field = ".".join(map(str, first["loc"])) or "line"
            raise UsageError(
                f"`{name}` line {number}: `{field}`: {first['msg']}; write {_SHAPE}"
            ) from None
        relevant = {(entry.key, entry.comment): entry.grade for entry in row.relevant}
        questions.append(LabelledQuestion(row.id, row.kind, row.part, row.question, relevant))
    if not questions:
        raise UsageError(f"`{name}` holds no labelled question; write {_SHAPE}")
    return questions


async def retrieve(search: Search, questions: Sequence[LabelledQuestion]) -> list[Retrieved]:
    """Ask everything, one after another."""
    answers = []
    for question in questions:
        began = perf_counter()
        references = tuple(await search(question.text))[:DEPTH]
        answers.append(Retrieved(question, references, perf_counter() - began))
    return answers


def retrieval_measures(answers: Sequence[Retrieved]) -> Measures:
    """Recall and nDCG over questions with an answer, `quiet` over those without, by the mean.

    `precision` is of all citations together, those of questions without an answer among them: each
    of these is wrong. `quiet` is the share of questions without an answer that cite nothing.
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

    def figures(some: Sequence[Retrieved]) -> dict[str, Any]:
        spread = intervals(some, retrieval_measures)
        return {
            **{name: rounded(value) for name, value in retrieval_measures(some).items()},
            "intervals": {name: [rounded(end) for end in ends] for name, ends in spread.items()},
        }

    def sliced(name: str) -> dict[str, dict[str, Any]]:
        values = dict.fromkeys(getattr(answer.question, name) for answer in answers)
        return {
            value: figures(
                [answer for answer in answers if getattr(answer.question, name) == value]
            )
            for value in values
        }

    return RetrievalResult(
        search,
        figures(answers),
        figures([answer for answer in answers if answer.question.relevant]),
        sliced("part"),
        sliced("kind"),
        round(median(answer.seconds for answer in answers) * 1000, 2),
        {answer.question.id: answer.references for answer in answers},
    )


TENANT = "sample"
MADE_UP = ArchiveFilters(sample=True)
VECTOR_SHARE = 0.65
# From which the ages of posts are counted back.
_MADE = datetime(2026, 11, 28, tzinfo=UTC)
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
        words, vectors = index_tokens(question), embedding([question])
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
