"""Baselines: what each keeps, on pages small enough to work out by hand."""

from __future__ import annotations

import pytest

from api.core.domain import Question
from api.errors import ConfigurationError
from api.evaluation.judge_candidates import BASELINES, bm25, cosine, hybrid, name_strength, share_of_words
from api.models.local.word_vectors import vectors
from tests.models.items import item

NEEDS_VECTORS = pytest.mark.skipif(vectors() is None, reason="word vectors have no wheel here")
PAGE = [
    "my ember mug keeps coffee hot for an hour",
    "ember mug",
    "this mug is blue",
    "the ember of the fire",
    "nothing of the kind",
]


async def kept(name: str, query: str, *texts: str) -> list[bool]:
    """The verdicts of one baseline on titles."""
    judged = await BASELINES[name].judge(Question(query), [item(text) for text in texts], "reddit")
    assert judged.model == name
    assert {verdict.probability for verdict in judged.verdicts} <= {None}
    return [verdict.relevant for verdict in judged.verdicts]


async def test_keep_all_keeps_all() -> None:
    """Even what is empty."""
    assert await kept("keep_all", "mug", "x", " ", "") == [True] * 3


async def test_keyword_wants_every_word() -> None:
    """In any order, whole words alone, case and accents aside."""
    assert await kept("keyword", "Ember Múg", *PAGE) == [True, True, False, False, False]
    assert await kept("keyword", "ember mug", "mug by EMBER", "december mugs") == [True, False]


async def test_keyword_reads_scripts_without_blanks() -> None:
    """A Chinese name is found within a sentence."""
    assert await kept("keyword", "小米", "我買了小米手機", "我買了手機") == [True, False]


async def test_names_knows_the_spellings() -> None:
    """Run together, as a handle, without its web ending."""
    assert await kept("names", "plaud.ai", "My Plaud broke", "@plaud_ai hi", "applaud") == [
        True,
        True,
        False,
    ]


def test_bm25_prefers_rare_words_and_is_a_share_of_the_most() -> None:
    """All words beat one, a short text beats a long one, none is zero and none exceeds 1."""
    scores = bm25("ember mug", PAGE)

    assert scores[1] > scores[0] > scores[2] > scores[4] == 0
    assert max(scores) <= 1
    assert bm25("ember", ["", ""]) == [0, 0]
    assert bm25("", ["a"]) == [0]


def test_a_query_without_a_word_holds_nothing() -> None:
    """No division by nothing, no text kept for it."""
    assert share_of_words("?!", ["a", ""]) == [0, 0]
    assert name_strength("?!", ["a"]) == [0]


@NEEDS_VECTORS
def test_cosine_sees_the_topic_without_the_word() -> None:
    """Coffee is nearer to a mug than tax is."""
    near, far = cosine("coffee mug", ["a cup for hot drinks", "quarterly tax statement"])

    assert near > far + 0.1


@NEEDS_VECTORS
async def test_hybrid_always_crowns_someone() -> None:
    """On a page of off-topic texts the best one is kept: the reason not to filter with it."""
    assert any(await kept("hybrid", "ember mug", "tax law", "a hot cup", "football"))
    assert hybrid("ember mug", ["same", "same"]) == [0, 0]


def test_without_vectors_the_remedy_is_named() -> None:
    """Where the wheel does not exist, cosine cannot be measured, and says so."""
    with pytest.raises(ConfigurationError, match="install `wordllama`"):
        cosine("mug", ["a"], load=lambda: None)


@pytest.mark.parametrize("name", BASELINES)
async def test_an_empty_page_is_no_question(name: str) -> None:
    """No items, no verdicts, no failure."""
    assert await kept(name, "mug") == []


async def test_only_what_the_gate_shows_counts() -> None:
    """Title and the first 200 characters of the body."""
    late = item("review", "x " * 150 + "ember mug")
    judged = await BASELINES["keyword"].judge(Question("ember mug"), [late], "reddit")

    assert [verdict.relevant for verdict in judged.verdicts] == [False]
