"""A stored report asked again: what it holds is judged anew, and no source is asked."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from api.bootstrap import build_gate, load_settings
from api.bootstrap.storage import with_report_items
from api.core.domain import Correction, Outcome, Sense
from api.errors import NotFound, UsageError
from api.features.analyses.rejudging import ask_again
from api.reports.report import Report
from api.services.product import Ask, Product, analyze
from tests.store.made import dropped, item, report, source, typed

SENSES = (
    Sense(1, ("browser", "tabs"), ("Tabs", "Spaces"), 5, 4),
    Sense(2, ("raiders", "lobby"), ("Lobby", "Map"), 4),
)


@pytest.fixture
async def product() -> AsyncIterator[Product]:
    """The judge of this machine; its sources are never asked."""
    built = build_gate(load_settings())
    yield built
    await built.aclose()


def stored(**more: object) -> Report:
    """Of two sources, one of which was blocked; an item of each kind."""
    mug = "The Ember mug keeps coffee warm for an hour."
    made = report(
        "a1", item("reddit:t3_1", title="Ember mug after a year", body=mug),
        out=[
            dropped("reddit:t3_2") | {"title": "Wood fire", "snippet": "An ember of the fire."},
            dropped("reddit:t3_3") | {"dropped_by": "duplicate", "reason": "copy of reddit:t3_1"},
            dropped("reddit:t3_4", "removed") | {"dropped_by": "unfit", "verdict": None},
        ],
        query="ember mug",
    )  # fmt: skip
    blocked = source() | {
        "source": "lemmy", "outcome": "blocked", "reason": "asked too often; wait an hour",
        "retry_at": "2026-03-01T10:00:00Z",
    }  # fmt: skip
    made |= {"sources": {"reddit": source(kept=1), "lemmy": blocked}, **more}
    return typed(made)


async def test_what_a_report_holds_is_judged_again(product: Product) -> None:
    """Nothing is fetched or rewritten; a source that gave no answer says what it said."""
    before = stored()
    again = with_report_items(product, before)
    made = await analyze(again, ask_again(before))

    assert made.id != before.id
    assert (made.again_of, made.query, made.depth) == ("a1", "ember mug", before.depth)
    assert made.cost.upstream_calls == 0
    assert made.rewritten_queries == ("ember mug",)
    assert [kept.key for kept in made.items] == ["reddit:t3_1"]
    assert made.items[0].comments == before.items[0].comments
    assert {entry.key: entry.dropped_by for entry in made.dropped} == {
        "reddit:t3_2": "gate", "reddit:t3_4": "unfit",
    }  # fmt: skip
    lemmy = made.sources["lemmy"]
    assert (lemmy.outcome, lemmy.reason) == (Outcome.BLOCKED, "asked too often; wait an hour")
    assert lemmy.retry_at == before.sources["lemmy"].retry_at
    assert made.sources["reddit"].refetched is False
    assert ask_again(before).again_items == 4


async def test_a_correction_counts_at_once(product: Product) -> None:
    """Both ways, whatever the judge thinks."""
    before = stored()
    corrections = (
        Correction("reddit:t3_1", False, "Ember mug after a year"),
        Correction("reddit:t3_2", True, "Wood fire"),
    )
    ask = ask_again(before)
    made = await analyze(with_report_items(product, before), Ask.of(ask, corrections=corrections))

    assert [kept.key for kept in made.items] == ["reddit:t3_2"]
    assert made.items[0].judge == "correction"
    assert "reddit:t3_1" in {entry.key for entry in made.dropped}


def test_a_sense_becomes_description_and_exclusions() -> None:
    """The chosen words say what it is, those of the others what it is not."""
    ask = ask_again(stored().model_copy(update={"senses": SENSES}), sense=1)

    assert (ask.about, ask.not_about) == ("browser, tabs", ("raiders, lobby",))
    assert ask.again == "a1"


def test_what_is_not_named_stays() -> None:
    """The description, what it is not, the aim and how far back."""
    before = stored(about="a mug", not_about=["a fire"], aim="mention", since="week", limit=7)

    kept, changed = ask_again(before), ask_again(before, about="a cup", not_about=(), aim="about")

    assert (kept.about, kept.not_about, kept.aim) == ("a mug", ("a fire",), "mention")
    assert (kept.since, kept.limit) == ("week", 7)
    assert (changed.about, changed.not_about, changed.aim) == ("a cup", (), "about")


@pytest.mark.parametrize(
    ("wanted", "error", "words"),
    [
        ({"sense": 3}, NotFound, "no sense 3; there are 2"),
        ({"sense": 1, "about": "a mug"}, UsageError, "not both"),
        ({"sense": 1, "not_about": ["x"]}, UsageError, "not both"),
    ],
)
def test_what_cannot_be_chosen(wanted: dict[str, object], error: type, words: str) -> None:
    """Says what there is."""
    with pytest.raises(error, match=words):
        ask_again(stored().model_copy(update={"senses": SENSES}), **wanted)  # type: ignore[arg-type]


def test_a_report_of_nothing_cannot_be_asked_again() -> None:
    """A question that asked no source holds nothing."""
    with pytest.raises(UsageError, match="asked no source"):
        ask_again(stored(sources={}))
    with pytest.raises(NotFound, match="one group"):
        ask_again(stored(), sense=1)
