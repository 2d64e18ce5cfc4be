"""A search of the archive: by words and meaning, above the floors, ranked, with passages.

Also what is not worth a search, and the answer as text for people and models.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import regex

from api.core.display_names import SourceLabels, title_in
from api.core.domain import Usage
from api.core.items import Item
from api.core.model_batches import usage_of_error
from api.core.ports import Observer, SilentObserver
from api.core.text import Fence, clean_query, cut, display_title, fold, one_line, quantity, web_url
from api.core.words import LONGEST_WORD, UNSPACED, content_words, index_tokens, languages_of
from api.errors import ModelError
from api.features.archive import index_words, search_ranking
from api.features.archive.embedding import Embedder, question_vector
from api.features.archive.index_words import Chunk
from api.features.archive.search_ranking import Scored
from api.features.archive.search_values import (
    EVERYTHING,
    MOST_COUNTED,
    Archive,
    ArchiveAnswer,
    ArchiveFilters,
    ArchiveHit,
    ChunkId,
    Embed,
    Retrieval,
)
from api.pipeline.question.product_name import question_parts
from api.pipeline.question.query_screen import screen_query
from api.reports.quotes import beginning, sentences
from api.reports.report import LONGEST_PASSAGE
from api.settings import RankingSettings, RetrievalSettings

CANDIDATES = 50  # entries that each of the two searches gives
CHECKED = 8
"""Number of best entries that a model is asked about when none holds enough words of the question."""
WEAK = "What is stored does not answer this."
READ = "None holds enough of its words; a model read the nearest."
SCATTERED = "None of them holds all of the words."
# Latest queries of the tenant whose words count as names.
_NAMES = 200
# Answers that are remembered, each for `cache_seconds`.
_MOST_ANSWERS = 256
# Words that are named when nothing is found.
_MOST_MISSING = 5
# Characters of a title.
_TITLE = 120
# what names something: a figure (`t3_1a`, `v2`), an address or file (`me@a.org`, `app.log`), a word
# with a capital inside the text or in it (`the Ember`, `iPhone`), or a script without spaces
_NAMING = regex.compile(
    r"\p{N}|\w[@._]\w|(?<=\S\s+[\"“'(]*)\p{Lu}|\p{Ll}\p{Lu}"
    rf"|[{UNSPACED}]"
)


def guidance_for(text: str, names: Iterable[str], least: int) -> str:
    """Why a text is not searched, and what to write instead; empty when it is searched.

    A text is searched with `least` words with a meaning (0: any text), a word of `names` that are
    known, such as earlier queries, or what is a name by its form.
    """
    screened = screen_query(text)
    if not screened.ok:
        return screened.guidance
    query = screened.query
    if len(content_words(query)) >= least or _NAMING.search(query) or index_words.quoted_phrases(query):
        return ""
    known = {word for name in names for word in index_tokens(name)}
    if not known.isdisjoint(index_tokens(query)):
        return ""
    return (
        "That is too little to search for: name the product, or say in three words what about it, "
        "for example `Ember mug battery` or `stops charging overnight`."
    )


def passage_of(query: str, vector: bytes | None, piece: Chunk, item: Item, embed: Embed) -> str:
    """The sentence of the piece that shares most words with the question, then the nearest.

    At most `LONGEST_PASSAGE` characters; without such a sentence the beginning of the piece or the
    title. `vector` is the question's by `embed`; None: nothing is near.
    """
    comment = index_words.comment_of(item, piece)
    text = beginning(item.body if comment is None else comment.body)
    whole = [part for part in sentences(text) if len(part) <= LONGEST_PASSAGE]
    parts = [part for part in whole if one_line(part) in piece.text]
    if not parts:
        start = piece.text or one_line(item.title)
        if len(start) <= LONGEST_PASSAGE:
            return start
        start = cut(start, LONGEST_PASSAGE)
        return start.rpartition(" ")[0] or start
    wanted, vectors = set(index_tokens(query)), embed(parts) if vector else None
    near = search_ranking.cosines(vector, vectors) if vector and vectors else [0.0] * len(parts)
    shared = [len(wanted.intersection(index_tokens(part))) for part in parts]
    return max(zip(shared, near, parts, strict=True), key=lambda ranked: ranked[:2])[2]


def searched_words(query: str) -> list[str]:
    """Tokens of a query without question words; all tokens when nothing else is left."""
    return index_tokens(" ".join(question_parts(query).content)) or index_tokens(query)


_CacheKey = tuple[str, str, int, ArchiveFilters, bool]

Rerank = Callable[[str, Sequence[Chunk]], Awaitable[Sequence[float]]]
"""Scores each piece by how well it answers a question, in order; higher is better."""


Check = Callable[[str, Sequence[Chunk]], Awaitable[tuple[Sequence[bool], Usage]]]
"""Decides by one model call which pieces answer a question, in order; also returns its cost. Raises `ModelError`."""


async def by_words(query: str, pieces: Sequence[Chunk]) -> list[float]:
    """The share of the question's words that a piece holds."""
    wanted = set(index_tokens(query))
    held = (wanted.intersection(index_tokens(piece.full_text)) for piece in pieces)
    return [len(words) / max(len(wanted), 1) for words in held]


@dataclass(frozen=True, slots=True)
class ArchiveSearch:
    """Searches one store; one object for each process, since it caches answers."""

    archive: Archive
    embed: Embed
    retrieval: RetrievalSettings
    ranking: RankingSettings
    sample: bool = False  # only sample data is searched; else only real data
    observer: Observer = field(default_factory=SilentObserver)
    rerank: Rerank = by_words
    embedder: Embedder | None = None
    """Makes the question's vector in place of `embed`, which then finds sentences for passages alone."""
    check: Check | None = None
    """Finds entries that share no words with the question; None: these are never shown."""
    clock: Callable[[], float] = time.monotonic
    _answers: OrderedDict[_CacheKey, tuple[float, ArchiveAnswer]] = field(default_factory=OrderedDict)

    async def search(
        self,
        tenant: str,
        text: str,
        filters: ArchiveFilters = EVERYTHING,
        k: int | None = None,
        *,
        terse: bool = False,
    ) -> ArchiveAnswer:
        """The best entries of a tenant about a question, `k` at most; raises `StoreUnavailable`.

        Text of a search field may be `terse`: any word is searched for, and with fewer words than
        a question needs, entries that hold all of them are shown, else any of them.
        """
        query, most = clean_query(text), k or self.retrieval.k
        filters = replace(filters, sample=self.sample)
        # not `canonical`, which drops the point: a rating of 4.5 is not one of 45
        key = tenant, fold(query).rstrip(" ?!."), most, filters, terse
        answer = await self._remembered(key)
        if answer is None:
            names = () if terse else await self.archive.queries(tenant, _NAMES)
            least = 0 if terse else self.retrieval.min_content_tokens
            if guidance := guidance_for(text, names, least):
                return ArchiveAnswer(
                    query=query, text="", guidance=guidance, hits=(), retrieval=Retrieval(),
                    sample=self.sample,
                )  # fmt: skip
        with self.observer.retrieving(query) as span:
            if answer is None:
                answer = await self._searched(tenant, query, filters, most, terse=terse)
                retrieval = answer.retrieval
                # else the next search may find more
                if answer.hits and not (retrieval.unread or retrieval.embedding_failed):
                    self._answers[key] = self.clock(), answer
                    self._answers.move_to_end(key)
                while len(self._answers) > _MOST_ANSWERS:
                    self._answers.popitem(last=False)
            answer = answer.model_copy(update={"query": query})  # as it was written this time
            span.record(answer)
        return answer

    async def _remembered(self, key: _CacheKey) -> ArchiveAnswer | None:
        """The cached answer; None when it is too old or one of its items has been deleted."""
        stored, answer = self._answers.get(key, (-math.inf, None))
        if answer is None or self.clock() - stored >= self.retrieval.cache_seconds:
            return None
        keys = {hit.key for hit in answer.hits}
        if keys != (await self.archive.facts(key[0], keys)).keys():
            return None
        retrieval = answer.retrieval.model_copy(update={"cacheHit": True})
        return answer.model_copy(update={"retrieval": retrieval})

    async def _searched(
        self, tenant: str, query: str, filters: ArchiveFilters, most: int, *, terse: bool
    ) -> ArchiveAnswer:
        retrieval = self.retrieval
        words, (meaning, failed) = searched_words(query), await question_vector(query, self.embed, self.embedder)
        vector, model = (meaning.vectors[0], meaning.model) if meaning else (None, "")
        matches = await self.archive.matches(tenant, words, vector, filters, CANDIDATES, model)
        phrases, scattered = index_words.quoted_phrases(query), False
        named = set(index_tokens(" ".join(question_parts(query).products)))
        aspect = [word for word in words if word not in named]
        entries = search_ranking.score_matches(matches, words, vector, phrases, aspect)
        if phrases:
            entries = [entry for entry in entries if entry.quoted]
        if terse and len(words) < retrieval.min_content_tokens and not phrases:
            entries, scattered = search_ranking.mark_holding(entries)
        if filters.language:
            facts, pieces = await self._read(tenant, entries)
            entries = [entry for entry in entries if _is_in(filters.language, entry, facts, pieces)]
        ranked = search_ranking.combine_scores(entries, retrieval.vector_weight, vectors=matches.vectors)
        retrieved = Retrieval(
            vectorMax=max((e.cosine for e in entries if e.cosine is not None), default=None),
            keywordMax=max((e.words for e in entries if e.words), default=None),
            combinedTop=ranked[0].combined if ranked else None,
            candidates=len(ranked),
            words_only=not matches.vectors,
            unread=matches.unread,
            embedding_failed=failed,
        )
        if retrieval.guardrails_enable:
            best = ranked[:CHECKED]
            ranked, out = search_ranking.above_floors(ranked, retrieval, vectors=matches.vectors)
            retrieved = retrieved.model_copy(update={"filteredByFloor": out})
            if terse and not ranked:
                ranked, retrieved = await self._checked(tenant, query, best, retrieved)
        ranked = ranked[: 2 * max(most, retrieval.rerank_window)]
        if not filters.language:  # else they are read already
            facts, pieces = await self._read(tenant, ranked)
        ranked = [entry for entry in ranked if entry.id in pieces]
        if retrieval.guardrails_enable:
            if retrieval.rerank_enable and not retrieved.checked and search_ranking.is_doubtful(ranked, retrieval):
                ranked, retrieved = await self._reranked(query, ranked, pieces, retrieved)
            ranked = search_ranking.diverse(ranked, self.ranking)
        ranked.sort(key=lambda entry: not entry.in_order)  # stable: the others keep their order
        if self.embedder is not None:  # sentences are not sent
            vectors = await asyncio.to_thread(self.embed, [query])
            vector = vectors[0] if vectors else None
        hits = [
            self._hit(f"E{number}", query, vector, entry, pieces[entry.id], facts[entry.id[0]])
            for number, entry in enumerate(ranked[:most], 1)
        ]
        retrieved = retrieved.model_copy(update={"shown": len(hits)})
        missing = index_words.unmatched_words(query, matches.frequencies)
        narrowed = filters != replace(EVERYTHING, sample=self.sample)
        text = answer_text(hits, missing, matches.entries, narrowed=narrowed, sample=self.sample)
        if hits and (scattered or retrieved.checked):
            text = f"{text} {SCATTERED if scattered else READ}"
        return ArchiveAnswer(
            query=query, text=text, guidance="", hits=tuple(hits), retrieval=retrieved,
            sample=self.sample,
        )  # fmt: skip

    async def _read(self, tenant: str, entries: Sequence[Scored]) -> tuple[Mapping[str, Item], dict[ChunkId, Chunk]]:
        facts = await self.archive.facts(tenant, {entry.id[0] for entry in entries})
        pieces = {
            (key, piece.comment, piece.part): piece
            for key, item in facts.items()
            for piece in index_words.chunked(item)
        }
        return facts, pieces

    async def _checked(
        self, tenant: str, query: str, best: Sequence[Scored], retrieved: Retrieval
    ) -> tuple[list[Scored], Retrieval]:
        """The best entries that a model says answer the question; none when it fails, which is noted."""
        if self.check is None or not (best and self.retrieval.answer_check):
            return [], retrieved
        _, pieces = await self._read(tenant, best)
        best = [entry for entry in best if entry.id in pieces]
        reason, answered = None, list[bool]()
        try:
            flags, usage = await self.check(query, [pieces[entry.id] for entry in best])
            answered += flags
        except ModelError as error:
            usage, reason = usage_of_error(error), error.reason
        cost = {"check_tokens": usage.input_tokens + usage.output_tokens, "check_usd": usage.usd}
        noted = retrieved.model_copy(update={"checked": len(best), "check_failed": reason, **cost})
        return [entry for entry, answers in zip(best, answered, strict=False) if answers], noted

    async def _reranked(
        self,
        query: str,
        ranked: list[Scored],
        pieces: Mapping[ChunkId, Chunk],
        retrieved: Retrieval,
    ) -> tuple[list[Scored], Retrieval]:
        """The window by `rerank`; a failure leaves the order as it was, and is noted."""
        window, began = self.retrieval.rerank_window, time.monotonic()
        shown = [pieces[entry.id] for entry in ranked[:window]]
        reason = None
        try:
            async with asyncio.timeout(self.retrieval.rerank_timeout):
                scores = await self.rerank(query, shown)
            if len(scores) != len(shown):
                raise ModelError("count_mismatch")
            ranked = search_ranking.reranked(ranked, scores, window)
        except TimeoutError:
            reason = "timeout"
        except ModelError as error:
            reason = error.reason
        spent = int((time.monotonic() - began) * 1000)
        used = {"usedRerank": reason is None, "rerankMs": spent, "rerank_failed": reason}
        return ranked, retrieved.model_copy(update=used)

    def _hit(
        self,
        label: str,
        query: str,
        vector: bytes | None,
        entry: Scored,
        piece: Chunk,
        item: Item,
    ) -> ArchiveHit:
        comment = index_words.comment_of(item, piece)
        passage = passage_of(query, vector, piece, item, self.embed)
        below = self.retrieval.low_relevance_below
        return ArchiveHit(
            label=label,
            key=item.key,
            comment_id=None if comment is None else comment.id,
            source=item.source,
            title=one_line(item.title),
            url=(comment and comment.url) or item.url,
            place=item.place,
            created_at=piece.created_at,
            passage=passage,
            relevance=min(1.0, max(0.0, entry.combined)),
            low_relevance=entry.combined < below,
            credit=item.credit if comment is None else comment.credit,
            thread=item.thread,
        )


def answer_text(
    hits: Sequence[ArchiveHit], missing: Sequence[str], entries: int, *, narrowed: bool, sample: bool = False
) -> str:
    """How many entries may answer the question, or which of its words no entry holds.

    `missing` are such words, whatever the filters; `entries` the stored ones, up to `MOST_COUNTED`;
    `narrowed` whether filters left some out; `sample` whether sample data was searched in the place of real posts.
    """
    if not hits:
        if not entries:
            return f"No {'sample' if sample else 'real'} post is stored yet."
        if named := ", ".join(f"`{word[:LONGEST_WORD]}`" for word in missing[:_MOST_MISSING]):
            stored = quantity(entries, "stored entry", "stored entries")
            return f"{WEAK} None of {'over ' * (entries >= MOST_COUNTED)}{stored} holds {named}."
        return f"{WEAK} Ask with fewer words{', or without filters' if narrowed else ''}."
    items = len({hit.key for hit in hits})
    count = quantity(len(hits), "stored entry", "stored entries")
    of = "" if items == len(hits) else f" of {items} item{'s' if items > 1 else ''}"
    doubt = ", none of them surely" if all(hit.low_relevance for hit in hits) else ""
    return f"{count}{of} may answer this{doubt}."


def answer_for_model(answer: ArchiveAnswer, places: SourceLabels) -> str:
    """The answer as a model reads it: our facts, and each hit's title and passage fenced."""
    if answer.guidance:
        return answer.guidance
    lines = [answer.text]
    if answer.sample:
        lines.append("This is made-up sample data from the offline sandbox.")
    fence = Fence()
    if answer.hits:
        lines.append(fence.rule)
    for hit in answer.hits:
        link = "" if answer.sample else web_url(hit.url)
        lines.append(f"{hit.label}: {hit_origin(hit, places)}" + (f", {link}" if link else ""))
        place = f"({hit.place}) " if hit.place else ""
        by = f"by {hit.credit}: " if hit.credit else ""
        lines.append(fence.quote(f"{place}{by}{hit_title(hit)} | {hit.passage}", hit.label))
    return "\n".join(lines)


def hit_origin(hit: ArchiveHit, places: SourceLabels) -> str:
    """Source, day and relevance: `Reddit, 2026-03-01, relevance 80%`."""
    day = f", {hit.created_at:%Y-%m-%d}" if hit.created_at else ""
    low = " (low)" if hit.low_relevance else ""
    return f"{title_in(places, hit.source)}{day}, relevance {hit.relevance:.0%}{low}"


def hit_title(hit: ArchiveHit) -> str:
    """The item's title; for a comment, that it is one and what of; those on a shop's page are reviews."""
    title = cut(one_line(hit.title), _TITLE) or "what has no title"
    reviewed = hit.comment_id and hit.source == "amazon"
    return display_title(title, hit.key if reviewed else hit.comment_id or hit.thread)


def _is_in(language: str, entry: Scored, facts: Mapping[str, Item], pieces: Mapping[ChunkId, Chunk]) -> bool:
    """Whether an entry may be in a language: the one that its item's file states, else by its function words."""
    if (piece := pieces.get(entry.id)) is None:
        return False
    stated = "" if piece.comment else facts[entry.id[0]].language
    return language in ({stated} if stated else languages_of(piece.text or piece.title))
