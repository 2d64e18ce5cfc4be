"""A search from text to answer."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import pytest

from api.core.ports import SilentObserver
from api.features.archive.index_words import Chunk, unmatched_words
from api.features.archive.search import SCATTERED, WEAK, ArchiveSearch, answer_text, by_words
from api.features.archive.search_values import ArchiveFilters, Retrieval
from api.settings import RankingSettings, RetrievalSettings
from tests.features.archive.made import NEAREST, QUERY, WORDS, ArchiveOf, archive_of, comment, embed, facts, match, page

NOON = datetime(2026, 11, 27, 12, tzinfo=UTC)
TWO = page(match("x:a", 5, NEAREST), match("x:b", 1, (60, 80)))


@dataclass
class Clock:
    """Seconds that pass when told to."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Recorder(SilentObserver):
    """Keeps what a search tells."""

    queries: list[str] = field(default_factory=list)
    answers: list[object] = field(default_factory=list)

    @contextmanager
    def retrieving(self, query: str) -> Iterator[Recorder]:
        self.queries.append(query)
        yield self

    def record(self, facts: object) -> None:
        self.answers.append(facts)


@pytest.fixture
def recorder() -> Recorder:
    """An observer that keeps what it is told."""
    return Recorder()


def searching(archive: ArchiveOf, clock: Clock | None = None, **settings: object) -> ArchiveSearch:
    """A search of it."""
    retrieval = RetrievalSettings.model_validate({"evidence_floor": 0, **settings})
    return ArchiveSearch(archive, embed, retrieval, RankingSettings(), clock=clock or Clock())


async def test_answer_says_where_everything_stands() -> None:
    """A comment has its own id, address, date and author; an item its own."""
    ada = comment("The lid broke.", "c9", url="https://example.org/c9", created_at=NOON,
                  credit="Ada (https://example.org/ada)")  # fmt: skip
    item = facts("x:a", title=" My\nmug ", body="The lid broke.", comments=(ada, comment("A lid.")),
                 credit="Bob", thread="x:t")  # fmt: skip
    entries = [match("x:a", 5, NEAREST, id=("x:a", part, 0)) for part in ("", "1", "2")]
    archive = ArchiveOf(page(*entries), {"x:a": item})

    answer = await searching(archive, diversity_max=0).search("a", f"  {QUERY}\u200b ")

    assert answer.query == QUERY
    assert answer.guidance == ""
    assert answer.text == "3 stored entries of 1 item may answer this."
    assert [(h.label, h.comment_id, h.url, h.created_at, h.credit) for h in answer.hits] == [
        ("E1", None, "https://example.org/a", None, "Bob"),
        ("E2", "c9", "https://example.org/c9", NOON, "Ada (https://example.org/ada)"),
        ("E3", "c1", "https://example.org/a", None, None),
    ]
    assert {(h.key, h.source, h.title, h.place, h.thread) for h in answer.hits} == {
        ("x:a", "x", "My mug", "mugs", "x:t")
    }
    assert [h.passage for h in answer.hits] == ["The lid broke.", "The lid broke.", "A lid."]


async def test_telemetry_is_raw_and_complete() -> None:
    """Highest cosine and BM25 as they are, the best combined score, and what was left out."""
    archive = archive_of(TWO)

    answer = await searching(archive).search("a", QUERY)

    # each of the five words in 10 of 1,000 entries, once in 60 tokens
    assert answer.retrieval.keywordMax == pytest.approx(5 * math.log(1 + 990.5 / 10.5))
    assert answer.retrieval.vectorMax == pytest.approx(1.0)
    assert answer.retrieval.combinedTop == pytest.approx(1.0)
    assert (answer.retrieval.candidates, answer.retrieval.shown) == (2, 1)
    assert answer.retrieval.filteredByFloor.score == 1
    assert not answer.retrieval.cacheHit
    assert archive.searches == [("a", tuple(QUERY.split()), ArchiveFilters())]


async def test_nothing_found_is_said_and_counted() -> None:
    """No highest score is no number."""
    answer = await searching(archive_of(page())).search("a", QUERY)

    assert (answer.text, answer.hits) == (f"{WEAK} Ask with fewer words.", ())
    assert answer.retrieval == Retrieval()


async def test_word_hit_without_a_vector_has_no_cosine() -> None:
    """Nor has one whose vector is damaged, which hides no other; both are ranked by their words alone."""
    broken = match("x:a", 5, NEAREST)
    entries = page(
        match("x:b", 5, None),
        type(broken)(**{name: getattr(broken, name) for name in broken.__slots__}
                     | {"vector": b"\x01"}),
    )  # fmt: skip

    answer = await searching(archive_of(entries)).search("a", QUERY)

    assert answer.retrieval.vectorMax is None
    assert not answer.retrieval.words_only
    assert [hit.key for hit in answer.hits] == ["x:a", "x:b"]


async def test_what_names_nothing_is_not_searched_and_not_remembered() -> None:
    """Once its name was asked about, it is."""
    archive = archive_of(TWO)
    search = searching(archive)

    guided = await search.search("a", "ember thing")
    archive.names = ("Ember mug",)
    searched = await search.search("a", "ember thing")

    assert (guided.text, guided.hits, guided.retrieval) == ("", (), Retrieval())
    assert "name the product" in guided.guidance
    assert searched.guidance == ""
    assert searched.hits


async def test_answer_says_what_is_still_being_read_and_is_not_remembered() -> None:
    """The next one may find more."""
    archive = archive_of(replace(TWO, unread=3))
    search = searching(archive)

    answers = [await search.search("a", QUERY) for _ in range(2)]

    assert [answer.retrieval.unread for answer in answers] == [3, 3]
    assert not answers[1].retrieval.cacheHit
    assert len(archive.searches) == 2


async def test_answer_is_remembered_for_three_minutes() -> None:
    """The same search costs nothing, says so, and repeats the question as it was written now."""
    archive, clock = archive_of(TWO), Clock()
    search = searching(archive, clock)

    first = await search.search("a", QUERY)
    clock.now = 179.9
    second = await search.search("a", f" {QUERY.upper()}? ")
    clock.now = 180
    third = await search.search("a", QUERY)

    assert len(archive.searches) == 2
    assert second.hits == first.hits == third.hits
    assert second.query == f"{QUERY.upper()}?"
    assert second.retrieval == first.retrieval.model_copy(update={"cacheHit": True})
    assert not third.retrieval.cacheHit


async def test_every_search_is_observed(recorder: Recorder) -> None:
    """One from memory, too; guidance is no search."""
    search = searching(archive_of(TWO))
    search = replace(search, observer=recorder)

    answers = [await search.search("a", text) for text in (QUERY, "good stuff", QUERY)]

    assert recorder.queries == [QUERY, QUERY]
    assert recorder.answers == [answers[0], answers[2]]
    assert answers[2].retrieval.cacheHit


async def test_what_is_made_up_is_searched_by_itself() -> None:
    """Whatever the caller's filters say; the answer says which it is."""
    archive = archive_of(TWO)
    real, sample = searching(archive), replace(searching(archive), sample=True)

    answers = [
        await search.search("a", text, ArchiveFilters(sample=not search.sample))
        for search in (real, sample)
        for text in (QUERY, "good stuff")
    ]

    assert [answer.sample for answer in answers] == [False, False, True, True]
    assert [filters.sample for *_, filters in archive.searches] == [False, True]


@pytest.mark.parametrize(
    ("tenant", "text", "filters", "k"),
    [
        ("b", "rating of 4.5 stars", ArchiveFilters(), None),
        ("a", "rating of 45 stars", ArchiveFilters(), None),
        ("a", "rating of 4.5 stars", ArchiveFilters(source="x"), None),
        ("a", "rating of 4.5 stars", ArchiveFilters(), 3),
    ],
)
async def test_another_search_is_not_answered_from_memory(
    tenant: str, text: str, filters: ArchiveFilters, k: int | None
) -> None:
    """Tenant, question, filters and number are all part of it."""
    archive = archive_of(TWO)
    search = searching(archive)

    await search.search("a", "rating of 4.5 stars")
    answer = await search.search(tenant, text, filters, k)

    assert not answer.retrieval.cacheHit
    assert len(archive.searches) == 2


async def test_usual_number_of_hits_is_the_same_search_when_it_is_written_out() -> None:
    """Eight is what nobody has to ask for; another object has its own memory."""
    archive = archive_of(TWO)
    search = searching(archive)

    await search.search("a", QUERY)

    assert (await search.search("a", QUERY, k=8)).retrieval.cacheHit
    assert not (await searching(archive).search("a", QUERY)).retrieval.cacheHit


async def test_item_that_was_forgotten_meanwhile_is_not_shown() -> None:
    """What a source deleted is gone at once, also from what is remembered."""
    archive = archive_of(TWO)
    search = searching(archive)

    await search.search("a", QUERY)
    del archive.items["x:a"]
    answer = await search.search("a", QUERY)

    assert not answer.retrieval.cacheHit
    assert answer.hits == ()


async def test_memory_can_be_switched_off() -> None:
    """Then every search is one."""
    archive = archive_of(TWO)
    search = searching(archive, cache_seconds=0)

    answers = [await search.search("a", QUERY) for _ in range(2)]

    assert [answer.retrieval.cacheHit for answer in answers] == [False, False]


async def test_memory_is_bounded_and_forgets_the_oldest() -> None:
    """256 answers; one that was given again is new."""
    archive, clock = archive_of(TWO), Clock()
    search = searching(archive, clock)

    await search.search("a", "question number 0")
    clock.now = 100
    await search.search("a", "question number 1")
    clock.now = 180
    await search.search("a", "question number 0")
    for number in range(2, 257):
        await search.search("a", f"question number {number}")

    kept = await search.search("a", "question number 0")
    lost = await search.search("a", "question number 1")
    assert (kept.retrieval.cacheHit, lost.retrieval.cacheHit) == (True, False)


async def test_number_of_hits_is_a_setting_and_a_wish() -> None:
    """The best of them are shown."""
    archive = archive_of(page(*(match(f"x:{n}", 5, NEAREST) for n in range(30))))

    assert len((await searching(archive).search("a", QUERY)).hits) == 8
    assert len((await searching(archive, k=3).search("a", QUERY)).hits) == 3
    assert len((await searching(archive).search("a", QUERY, k=25)).hits) == 25


async def test_entry_that_changed_since_it_was_found_is_left_out() -> None:
    """A piece that its item no longer has is not shown."""
    found = page(match("x:a", 5, NEAREST), match("x:a", 5, NEAREST, id=("x:a", "9", 0)))

    answer = await searching(archive_of(found)).search("a", QUERY)

    assert [hit.comment_id for hit in answer.hits] == [None]


async def test_rerank_sees_the_window_and_can_be_switched_off() -> None:
    """It is asked for its own number of pieces, and not at all when it is off."""
    asked: list[list[str]] = []

    async def watching(query: str, pieces: Sequence[Chunk]) -> list[float]:
        asked.append([piece.key for piece in pieces])
        return [0.0] * len(pieces)

    found = page(match("x:a", 1, NEAREST), match("x:b", 5, (28, 96)), match("x:c", 3, (60, 80)))
    for wanted in (True, False):
        settings = RetrievalSettings(evidence_floor=0, vector_weight=0.5, rerank_window=2, rerank_enable=wanted)
        search = ArchiveSearch(archive_of(found), embed, settings, RankingSettings(), rerank=watching)
        answer = await search.search("a", QUERY)
        assert [hit.key for hit in answer.hits] == ["x:a", "x:b", "x:c"]
        assert (answer.retrieval.usedRerank, answer.retrieval.rerankMs is None) == (
            wanted,
            not wanted,
        )

    assert asked == [["x:a", "x:b"]]


async def test_cancelled_search_is_cancelled() -> None:
    """It is no timeout of the reranker."""

    async def waiting(query: str, pieces: Sequence[Chunk]) -> list[float]:
        task.cancel()
        await asyncio.get_running_loop().create_future()
        return []

    found = page(match("x:a", 1, NEAREST), match("x:b", 5, (28, 96)))
    settings = RetrievalSettings(vector_weight=0.5)
    search = ArchiveSearch(archive_of(found), embed, settings, RankingSettings(), rerank=waiting)
    task = asyncio.create_task(search.search("a", QUERY))

    with pytest.raises(asyncio.CancelledError):
        await task


async def test_words_judge_without_a_model() -> None:
    """The share of the question's words in title and text; none for a question without words."""
    pieces = [
        Chunk("x:a", "", 0, "Mug lids", "warm"), Chunk("x:b", "", 0, "", "a cup"),
    ]  # fmt: skip

    assert await by_words("warm lid of this mug?", pieces) == [1.0, 0.0]
    assert await by_words("cup mug", pieces) == [0.5, 0.5]
    assert await by_words("?!", pieces) == [0.0, 0.0]


@pytest.mark.parametrize(
    ("hits", "text"),
    [
        ([("x:a", False)], "1 stored entry may answer this."),
        ([("x:a", True)], "1 stored entry may answer this, none of them surely."),
        ([("x:a", True), ("x:b", False)], "2 stored entries may answer this."),
        (
            [("x:a", False), ("x:a", False), ("x:b", False)],
            "3 stored entries of 2 items may answer this.",
        ),
    ],
)
async def test_text_counts_what_is_stored(hits: list[tuple[str, bool]], text: str) -> None:
    """Entries, items, and whether any is a sure one."""
    found = page(*(match(key, 5, NEAREST) for key in ("x:a", "x:b")))
    answer = await searching(archive_of(found)).search("a", QUERY)
    made = [answer.hits[0].model_copy(update={"key": k, "low_relevance": low}) for k, low in hits]

    assert answer_text(made, ["lid"], 9, narrowed=True) == text


async def test_words_that_nothing_holds_are_named() -> None:
    """Each once, as it is written, at most five; who wrote it sees what to leave out."""
    query = f"Sonos sonos batteries warm lid {'x' * 99} 4.5"
    answer = await searching(archive_of(page())).search("a", query)

    missing = ["Sonos", "batteries", "lid", "x" * 99, "4", "5"]
    assert unmatched_words(query, {"warm": 3}) == missing
    assert unmatched_words("小米手环 the", {}) == []
    none = f"{WEAK} None of 1,000 stored entries holds `Sonos`, `batteries`, "
    assert answer.text.startswith(none)
    assert answer_text([], missing, 1000, narrowed=False) == f"{none}`lid`, `{'x' * 40}`, `4`."


@pytest.mark.parametrize(
    ("missing", "entries", "narrowed", "text"),
    [
        (["lid"], 0, True, "No real post is stored yet."),
        (["lid"], 1, False, f"{WEAK} None of 1 stored entry holds `lid`."),
        (["lid"], 20_000, True, f"{WEAK} None of over 20,000 stored entries holds `lid`."),
        ([], 9, False, f"{WEAK} Ask with fewer words."),
        ([], 9, True, f"{WEAK} Ask with fewer words, or without filters."),
    ],
)
def test_nothing_found_says_what_is_stored(missing: list[str], entries: int, narrowed: bool, text: str) -> None:
    """And what to change; a filter is no reason where no entry at all holds a word."""
    assert answer_text([], missing, entries, narrowed=narrowed) == text


async def test_any_word_is_looked_for_where_somebody_searches() -> None:
    """What holds few words is shown, however far its meaning, all of them where that is there.

    What stands in quotation marks stays together; small talk is no search.
    """
    far = [match(key, 1, (60, 80), by_vector=False) for key in ("x:b", "x:c")]
    archive = archive_of(page(match("x:a", 0, NEAREST), *far))
    search = replace(searching(archive), retrieval=RetrievalSettings())
    word = WORDS[0]

    two, quoted, three = " ".join(WORDS[:2]), f'"{WORDS[0]} {WORDS[1]}"', " ".join(WORDS[:3])
    guided, hits, scattered, phrase, weak = [
        await search.search("a", text, terse=terse)
        for text, terse in ((word, False), (word, True), (two, True), (quoted, True), (three, True))
    ]
    hello = await search.search("a", "hello", terse=True)

    assert (guided.hits, guided.retrieval) == ((), Retrieval())
    assert guided.guidance
    assert [hit.key for hit in hits.hits] == ["x:b", "x:c"]
    assert hits.text == "2 stored entries may answer this, none of them surely."
    assert [hit.key for hit in scattered.hits] == ["x:b", "x:c"]
    assert scattered.text.endswith(SCATTERED)
    assert (phrase.hits, weak.hits, weak.guidance) == ((), (), "")
    assert (hello.hits, bool(hello.guidance)) == ((), True)
    asked = [" ".join(words) for _, words, _ in archive.searches]
    assert asked == [word, two, two, three]


async def test_a_language_leaves_what_may_be_in_it() -> None:
    """By what its file said, else by an entry's own small words; a title alone counts where there is no text."""
    archive = archive_of(page(match("x:a", 5, NEAREST), match("x:b", 5, NEAREST), match("x:c", 5, NEAREST)))
    archive.items["x:c"] = facts("x:c", body="Leaks, leaks.", language="fi")
    archive.items["x:a"] = facts("x:a", body="Der Deckel ist nicht dicht, und das ist mir zu teuer.")
    archive.items["x:b"] = facts("x:b", body="It leaks when the lid of it tips over in a bag.")

    hits = {}
    for language in ("de", "en", "fi"):
        answer = await searching(archive).search("t", QUERY, ArchiveFilters(language=language))
        hits[language] = [hit.key for hit in answer.hits]

    assert hits == {"de": ["x:a"], "en": ["x:b"], "fi": ["x:c"]}
