"""A search as people ask: inflected, with words of asking, quoted, or word for word."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from api.evaluation.search_scores import sample_report
from api.features.archive.index_words import word_forms
from api.features.archive.search import ArchiveSearch, searched_words
from api.models.local.word_vectors import embed
from api.settings import RankingSettings, RetrievalSettings
from api.store import open_store
from tests.services.kit import post

POSTS = (
    ("Crash after crash", "Taskly closed itself three times today."),
    ("Taskly and my calendar", "The widget shows the wrong week."),
    ("A quiet keyboard", "It makes no noise at all."),
)


@asynccontextmanager
async def searching(folder: Path, posts: Sequence[tuple[str, str]]) -> AsyncIterator[ArchiveSearch]:
    """A search over a store that holds these titles and texts."""
    store = await open_store(f"sqlite:///{folder / 'archive.db'}", embed)
    items = [post(number, title=title, body=body) for number, (title, body) in enumerate(posts)]
    try:
        await store.finish("ada", sample_report("Taskly", items))
        yield ArchiveSearch(store, embed, RetrievalSettings(), RankingSettings(), sample=True)
    finally:
        await store.aclose()


@pytest.mark.parametrize(
    "question",
    ["does Taskly crash?", "is Taskly crashing", "Taskly crashes", "why has Taskly crashed?", "¿Taskly crash?"],
)
async def test_three_posts_answer_a_question(tmp_path: Path, question: str) -> None:
    """The words of asking count for nothing, and an inflection is the word."""
    async with searching(tmp_path, POSTS) as search:
        answer = await search.search("ada", question)

    assert [hit.title for hit in answer.hits][:1] == ["Crash after crash"], answer.text


@pytest.mark.parametrize("question", ["does Taskly sync with Outlook?", "does Notion crash?", "is Taskly waterproof?"])
async def test_three_posts_are_silent_of_what_is_not_there(tmp_path: Path, question: str) -> None:
    """The product alone, or the aspect alone, is no answer."""
    async with searching(tmp_path, POSTS) as search:
        answer = await search.search("ada", question)

    assert answer.hits == ()


async def test_the_words_in_order_stand_first(tmp_path: Path) -> None:
    """Before entries that hold the same words elsewhere, and more often."""
    others = [(f"Taskly widget {number}", "The calendar export of Taskly, and export error.") for number in range(300)]
    async with searching(tmp_path, [*others, ("Taskly export error in the calendar", "Since May.")]) as search:
        answer = await search.search("ada", "Taskly export error in the calendar")

    assert answer.hits[0].title == "Taskly export error in the calendar"


async def test_a_quotation_returns_only_what_holds_it(tmp_path: Path) -> None:
    """Word for word; nothing where nobody wrote so."""
    async with searching(tmp_path, POSTS) as search:
        held = await search.search("ada", 'who says "closed itself three times"?')
        unheld = await search.search("ada", 'who says "closed itself four times" of Taskly?')

    assert [hit.title for hit in held.hits] == ["Crash after crash"]
    assert unheld.hits == ()


def test_forms_of_a_word() -> None:
    """As the index writes them; a name that ends like an adverb has none."""
    assert {"crash", "crashe", "crashed", "crashing"} <= set(word_forms("crash"))
    assert {"charge", "charged"} <= set(word_forms("charging"))
    assert (word_forms("taskly"), word_forms("rtx4090"), word_forms("米手")) == (("taskly",), ("rtx4090",), ("米手",))


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("does the Rabbit r1 have a headphone jack?", ["rabbit", "r1", "headphone", "jack"]),
        ("Wie lange hält der Akku des Oura Ring 4?", ["akku", "oura", "ring", "4"]),
        ("小米手机怎么样？", ["小米", "米手", "手机"]),
        ("what annoys people about plaud?", ["annoy", "plaud"]),
        ("is it any good?", ["good"]),
        ("B0GK5BAAVQ", ["b0gk5baavq"]),
    ],
)
def test_words_of_asking_are_not_searched(query: str, words: list[str]) -> None:
    """In the language of the question; where nothing else is left, all are."""
    assert searched_words(query) == words
