"""A chat over what is stored: asked first where the product was heard of, and said so."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from api.core.items import Item
from api.core.words import index_tokens
from api.errors import StoreUnavailable
from api.evaluation.search_scores import sample_archive
from api.features.archive.index_words import chunked
from api.features.archive.search import ArchiveSearch
from api.features.archive.search_values import ArchiveFilters, Match, Matches
from api.features.chat.chat_agent import RECALLED, Chat
from api.features.chat.chat_turn import LookupEnded, LookupStarted, Turn
from api.features.chat.lookups import ENOUGH, KEPT
from api.models.local.word_vectors import embed
from api.reports.composition import kept_item
from api.settings import ChatSettings, RankingSettings, RetrievalSettings
from tests.features.chat.scripted_model import MUG, Script, ask, chat, fetch, heard, reddit
from tests.services.kit import assessed, kit, post


def stored(count: int) -> list[Item]:
    """Posts that an earlier report kept."""
    words = "The lid of my Ember mug leaks when it tips over"
    return [post(number, title=f"Lid {number}", body=f"{words}.") for number in range(count)]


@dataclass
class FakeArchive:
    """Holds a few items and finds them all by their words."""

    items: Sequence[Item]
    names: tuple[str, ...] = ("ember mug",)
    broken: str = ""
    """The method that fails."""
    asked_for: list[ArchiveFilters] = field(default_factory=list)

    async def queries(self, tenant: str, most: int) -> Sequence[str]:
        self._break("queries")
        return self.names

    async def facts(self, tenant: str, keys: Iterable[str]) -> Mapping[str, Item]:
        self._break("facts")
        wanted = set(keys)
        every = [kept_item(assessed(item)) for item in self.items]
        return {facts.key: facts for facts in every if facts.key in wanted}

    async def matches(
        self, tenant: str, words: Sequence[str], vector: bytes | None, filters: ArchiveFilters,
        most: int, model: str = "",
    ) -> Matches:  # fmt: skip
        self._break("matches")
        self.asked_for.append(filters)
        facts = await FakeArchive(self.items).facts(tenant, [item.key for item in self.items])
        found = [
            Match(chunk.id, chunk.key, tuple(index_tokens(chunk.full_text)), None, True, False)
            for item in facts.values()
            for chunk in chunked(item)
        ]
        return Matches(tuple(found), dict.fromkeys(words, 1), 100, vectors=False)

    def _break(self, method: str) -> None:
        if self.broken == method:
            raise StoreUnavailable("the database is busy")


def over(archive: FakeArchive, script: Script | None = None, **source: object) -> Chat:
    """A chat that knows what is stored."""
    retrieval = RetrievalSettings(score_floor=0.0)
    search = ArchiveSearch(archive, lambda texts: None, retrieval, RankingSettings())
    model = script.model if script else None
    return Chat(kit(reddit()), model, ChatSettings(), search)


async def test_what_was_heard_of_is_asked_first() -> None:
    """No place is asked; the person sees the search, and the answer says what it rests on."""
    archive = FakeArchive(stored(4))
    talk = over(archive)

    moments = await heard(talk, talk.begin("ada"), "does the lid of the Ember mug leak?")

    started, ended, *_, turn = moments
    assert isinstance(started, LookupStarted)
    assert started.tool == "search_archive"
    assert isinstance(ended, LookupEnded)
    assert ended.line == "The archive: 4 stored entries may answer this"
    assert isinstance(turn, Turn)
    assert {citation.key for citation in turn.citations} <= {item.key for item in stored(4)}
    assert turn.citations
    assert RECALLED in turn.notes
    assert set(archive.asked_for) == {KEPT}
    assert sum(isinstance(moment, LookupStarted) for moment in moments) == 1


@pytest.mark.parametrize("question", [MUG, "does the lid of the Ember mug leak?"])
async def test_too_little_is_no_answer(question: str) -> None:
    """The places are asked, and what was too little is cited by nobody; an entry that two searches find is one."""
    turn = await ask(over(FakeArchive(stored(ENOUGH - 1))), question)

    assert RECALLED not in turn.notes
    assert {citation.key for citation in turn.citations} <= {post(n).key for n in range(3)}
    assert turn.citations


async def test_what_was_never_asked_about_is_looked_up() -> None:
    """Whatever happens to be stored."""
    archive = FakeArchive(stored(4), names=("notion",))

    turn = await ask(over(archive), MUG)

    assert archive.asked_for == []
    assert RECALLED not in turn.notes


async def test_a_database_that_fails_costs_no_answer() -> None:
    """In any of its methods; the places are asked."""
    for method in ("queries", "matches", "facts"):
        turn = await ask(over(FakeArchive(stored(4), broken=method)), MUG)

        assert turn.citations, method
        assert RECALLED not in turn.notes


async def test_a_model_searches_what_is_stored() -> None:
    """By a tool of its own, which is no look-up and costs none; its hits can be cited."""
    script = Script([[("search_archive", {"query": "ember mug lid"})], "It leaks [E1]."])
    archive = FakeArchive(stored(2), names=())

    turn = await ask(over(archive, script), MUG)

    assert turn.text.startswith("It leaks")
    assert [citation.label for citation in turn.citations] == ["E1"]
    assert "The archive: 2 stored entries may answer this." in script.returns()[0]
    assert "leaks when it tips over" in script.returns()[0]


async def test_a_model_hears_that_nothing_is_stored() -> None:
    """In words, and goes on to ask a place."""
    script = Script([[("search_archive", {"query": "hello"})], [fetch("ember mug")], "It stays warm [E1]."])

    turn = await ask(over(FakeArchive([], names=()), script), MUG)

    assert turn.citations
    assert RECALLED not in turn.notes


async def test_without_an_archive_there_is_no_such_tool() -> None:
    """A chat over own items, or without a database."""
    script = Script([[("search_archive", {"query": "lid"})], [fetch("ember mug")], "Warm [E1]."])

    await ask(chat(script, kit(reddit())), MUG)

    assert "search_archive" in script.returns()[0]
    assert "Unknown tool" in script.returns()[0]


async def test_absence_is_not_claimed_from_the_few_best() -> None:
    """Of many posts with the product's name those are read that hold what is asked about; else places are asked."""
    async with sample_archive() as store:
        search = ArchiveSearch(store, embed, RetrievalSettings(), RankingSettings(), sample=True)
        source = reddit()
        talk = Chat(kit(source), None, ChatSettings(), search)
        session = talk.begin("sample")
        first = await ask(talk, "what do people say about plaud.ai?", session)
        second = await ask(talk, "and the battery?", session)
        asked_by_then = list(source.plans)
        third = await ask(talk, "does it have a headphone jack?", session)

    assert first.citations
    assert "battery" in second.text.casefold()
    assert "No " not in second.text.partition("\n\n")[2][:3]
    assert asked_by_then == []
    assert "No post that was found mentions headphone, jack." in third.text
    assert [plan.query for plan in source.plans] == ["plaud headphone jack"]


async def test_a_turn_finds_its_product_by_the_first_word_of_its_name() -> None:
    """`back to plaud` is about `plaud note`, which was asked about before the mug."""
    talk = Chat(kit(reddit()), None, ChatSettings())
    session = talk.begin("ada")
    await ask(talk, "What do people say about the Plaud Note?", session)
    await ask(talk, "What do people say about the Ember mug?", session)
    await ask(talk, "back to plaud", session)

    assert session.last_subjects == ["plaud note"]


async def test_sources_are_asked_for_the_name() -> None:
    """As `analyze` and `fetch` ask them, not for the sentence."""
    source = reddit()
    await ask(Chat(kit(source), None, ChatSettings()), "What do people say about the Plaud Note?")

    assert {plan.query for plan in source.plans} == {"Plaud Note"}
