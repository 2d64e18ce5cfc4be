"""Corrections on both databases: one for each question and item, gone with the item."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from api.core.domain import Correction, Question, Sense
from api.core.ports import SampledPost
from api.errors import NotFound, UsageError
from api.features.analyses.corrections import corrections_of, labelled_lines
from api.features.analyses.feedback import correct, withdraw
from api.features.analyses.rejudging import choose_sense, with_sense_and_corrections
from api.features.analyses.store_ports import Store
from api.services.product import Ask
from api.store import open_store
from tests.store.made import ODD, dropped, item, report, source, typed

GONE = dropped("reddit:t3_9")
QUESTION = Question("plaud.ai")


@pytest.fixture
async def store(store_url: str) -> AsyncIterator[Store]:
    """A store with two tenants' reports of one id."""
    opened = await open_store(store_url)
    for tenant in ("a", "b"):
        kept = item("reddit:t3_1"), item(f"reddit:{ODD}")
        stored = report("r1", *kept, out=[GONE], sources={"reddit": source(GONE, kept=2)})
        await opened.finish(tenant, typed(stored))
    yield opened
    await opened.aclose()


async def test_the_last_correction_of_an_item_stands(store: Store) -> None:
    """Of kept and dropped items, whatever their key, and for this tenant alone."""
    await correct(store, "a", "r1", "reddit:t3_1", relevant=True)
    await correct(store, "a", "r1", "reddit:t3_9", relevant=True)
    await correct(store, "a", "r1", f"reddit:{ODD}", relevant=False)
    await correct(store, "a", "r1", "reddit:t3_1", relevant=False)

    entries = await store.corrections("a")

    assert {entry.correction.key: entry.correction.relevant for entry in entries} == {
        "reddit:t3_1": False,
        "reddit:t3_9": True,
        f"reddit:{ODD}": False,
    }
    assert {entry.source for entry in entries} == {"reddit"}
    assert await store.corrections("b") == ()


async def test_another_spelling_of_the_question_finds_them(store: Store) -> None:
    """And another description or aim does not."""
    query = typed(report("r1")).query
    entry = await correct(store, "a", "r1", "reddit:t3_1", relevant=True)

    assert await corrections_of(store, "a", Question(query.upper())) == (entry.correction,)
    assert await corrections_of(store, "a", Question(query, "something else")) == ()
    assert await corrections_of(store, "a", Question(query, aim="mention")) == ()
    assert await corrections_of(store, "b", Question(query)) == ()


async def test_a_correction_is_taken_back_once(store: Store) -> None:
    """Then there is none; of an item that is not there neither."""
    await correct(store, "a", "r1", "reddit:t3_1", relevant=True)
    await withdraw(store, "a", "r1", "reddit:t3_1")

    assert await store.corrections("a") == ()
    for key in ("reddit:t3_1", "reddit:nowhere"):
        with pytest.raises(NotFound, match="has no correction"):
            await withdraw(store, "a", "r1", key)
    with pytest.raises(NotFound, match="has no item `reddit:nowhere`"):
        await correct(store, "a", "r1", "reddit:nowhere", relevant=True)


async def test_a_question_has_a_bounded_number(store: Store) -> None:
    """A change of one that is there is none more."""
    entry = await correct(store, "a", "r1", "reddit:t3_1", relevant=True)
    await store.put_correction("a", entry, 1)

    with pytest.raises(UsageError, match="has 1 corrections at most"):
        await store.put_correction("a", await correct(store, "b", "r1", "reddit:t3_9", True), 1)


async def test_an_item_that_is_gone_takes_its_words_along(store: Store) -> None:
    """Of every tenant."""
    for tenant in ("a", "b"):
        await correct(store, tenant, "r1", "reddit:t3_1", relevant=True)
        await correct(store, tenant, "r1", "reddit:t3_9", relevant=True)

    await store.forget(["reddit:t3_9"])

    for tenant in ("a", "b"):
        left = await store.corrections(tenant)
        assert [entry.correction.key for entry in left] == ["reddit:t3_1"]


async def test_corrections_are_labels_that_an_evaluation_reads(store: Store) -> None:
    """A line for each question and source."""
    from api.evaluation.labelled_items import read_labelled

    await correct(store, "a", "r1", "reddit:t3_1", relevant=True)
    await correct(store, "a", "r1", "reddit:t3_9", relevant=False)

    (query,) = read_labelled(labelled_lines(await store.corrections("a")), "corrections")

    assert [entry.relevant for entry in query.items] == [True, False]


def test_a_correction_is_hashable() -> None:
    """It is part of what makes two questions one."""
    assert len({Question("x", corrections=(Correction("k", True, "t"),)), QUESTION}) == 2


SENSES = (Sense(1, ("browser", "tabs"), ("A", "B"), 5), Sense(2, ("game", "map"), ("C", "D"), 4))


async def test_a_chosen_sense_is_taken_for_later_questions(store: Store) -> None:
    """In any spelling, of its tenant alone, where the question says nothing else; 0 forgets it."""
    made = typed(report("r7", query="Arc", about="")).model_copy(update={"senses": SENSES})
    await choose_sense(store, "a", made, 2)
    await choose_sense(store, "a", made, 1)

    taken = await with_sense_and_corrections(store, "a", Ask("what do people think of ARC?"))
    assert (taken.about, taken.not_about) == ("browser, tabs", ("game, map",))
    assert taken.chosen_before
    assert taken.digest == replace(taken, chosen_before=False).digest
    for ask in (Ask("arc", about="the lamp"), Ask("arc", again="r7"), Ask("bolt")):
        assert await with_sense_and_corrections(store, "a", ask) == ask
    assert await with_sense_and_corrections(store, "b", Ask("arc")) == Ask("arc")

    await choose_sense(store, "a", made, 0)
    assert await with_sense_and_corrections(store, "a", Ask("arc")) == Ask("arc")
    with pytest.raises(NotFound, match="no sense 3"):
        await choose_sense(store, "a", made, 3)


async def test_corrections_are_those_of_the_chosen_sense(store: Store) -> None:
    """What was corrected under a description counts where that description is taken."""
    asked = {"query": "Arc", "about": "browser, tabs"}
    await store.finish("a", typed(report("r7", item("reddit:t3_1"), **asked)))
    await correct(store, "a", "r7", "reddit:t3_1", relevant=True)
    described = typed(report("r8", query="Arc")).model_copy(update={"senses": SENSES})
    assert (await with_sense_and_corrections(store, "a", Ask("Arc"))).corrections == ()

    await choose_sense(store, "a", described, 1)

    taken = await with_sense_and_corrections(store, "a", Ask("Arc"))
    assert [correction.key for correction in taken.corrections] == ["reddit:t3_1"]


async def test_corrections_before_a_sense_was_chosen_carry_over(store: Store) -> None:
    """Of the same name and tenant; what is said of an item in the sense stands above."""
    made = typed(report("r7", item("reddit:t3_1"), item("reddit:t3_2"), query="Arc", about=""))
    await store.finish("a", made)
    await correct(store, "a", "r7", "reddit:t3_1", relevant=True)
    await correct(store, "a", "r7", "reddit:t3_2", relevant=False)
    await choose_sense(store, "a", made.model_copy(update={"senses": SENSES}), 1)
    await store.finish(
        "a", typed(report("r8", item("reddit:t3_2"), query="Arc", about="browser, tabs", not_about=("game, map",)))
    )
    await correct(store, "a", "r8", "reddit:t3_2", relevant=True)

    taken = await with_sense_and_corrections(store, "a", Ask("arc"))
    other = await with_sense_and_corrections(store, "a", Ask("arc", about="the lamp"))

    assert {entry.key: entry.relevant for entry in taken.corrections} == {"reddit:t3_1": True, "reddit:t3_2": True}
    assert other.corrections == ()


async def test_a_closed_store_takes_no_question_along(tmp_path: Path) -> None:
    """The question is asked as it is."""
    broken = await open_store(f"sqlite:///{tmp_path / 'gone.db'}")
    await broken.aclose()
    (tmp_path / "gone.db").unlink()
    (tmp_path / "gone.db").mkdir()

    assert await with_sense_and_corrections(broken, "a", Ask("Arc")) == Ask("Arc")


async def test_a_sample_of_two_judges_is_bounded(store: Store) -> None:
    """Each post once, the newest stay, and no tenant sees another's."""
    posts = [SampledPost(f"{number:03}", number / 1000, agrees=number % 2 == 0) for number in range(12)]

    assert await store.keep_agreement_sample("a", "q", posts[:8], 10) == 8
    assert await store.keep_agreement_sample("a", "q", posts[:8], 10) == 8
    assert await store.keep_agreement_sample("a", "q", posts[8:], 10) == 10

    newest = await store.agreement_sample("a", "q", 4)
    assert {post.digest for post in newest} == {"008", "009", "010", "011"}
    assert newest[0] == posts[8]
    assert len(await store.agreement_sample("a", "q", 100)) == 10
    assert await store.agreement_sample("b", "q", 100) == []
    assert await store.agreement_sample("a", "other", 100) == []
