"""The keyless support check: conservative, by words, numbers, denial and leaning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from api.core.domain import Question, Usage
from api.core.ports import Claim, Support
from api.evaluation.labelled_items import read_claims
from api.reports.local_support import LocalSupport, SecondOpinion, carries, doubts
from tests.reports.unsupported import ONLY_A_MODEL, SUPPORTED, UNSUPPORTED, Pair

MUG = Question("Ember mug")
KEYLESS = Path(__file__).parents[2] / "docs" / "keyless.md"


def claim(pair: Pair) -> Claim:
    """The pair as the report path asks it."""
    return Claim(pair.sentence, pair.passage, f"{pair.item} {pair.passage}")


@pytest.mark.parametrize("pair", UNSUPPORTED, ids=lambda pair: pair.kind)
def test_what_the_passage_does_not_say_is_unsupported(pair: Pair) -> None:
    """Each kind of plausible sentence."""
    assert not carries(claim(pair), MUG)


@pytest.mark.parametrize("pair", ONLY_A_MODEL, ids=lambda pair: pair.kind)
def test_what_only_a_model_tells_is_said(pair: Pair) -> None:
    """The list of the documentation holds what is let by, and nothing that is not."""
    row = f"| {pair.kind} | {pair.sentence} | {pair.passage} | "

    assert row in KEYLESS.read_text("utf-8")
    assert carries(claim(pair), MUG)


@pytest.mark.parametrize("pair", SUPPORTED, ids=lambda pair: pair.kind)
def test_what_it_says_is_supported(pair: Pair) -> None:
    """In its own words, with other endings, or as an aspect."""
    assert carries(claim(pair), MUG)


def test_a_theme_that_the_passage_does_not_speak_of_is_unsupported() -> None:
    """Its count is ours, its name must be there; a summary's quotes are its findings', checked by themselves."""
    passage = "The charger is small."

    assert not carries(Claim("App: “The app is slow”", passage, "Ember mug"), MUG)
    assert carries(Claim("Most said: “The app is slow”.", passage, "Ember mug"), MUG)


async def test_claims_are_answered_in_order_and_cost_nothing() -> None:
    """One boolean each."""
    checker = LocalSupport()
    support = await checker.check(MUG, [claim(UNSUPPORTED[0]), claim(SUPPORTED[0])])

    assert support.supported == (False, True)
    assert (support.model, support.usage) == (checker.name, Usage())
    assert (await checker.check(MUG, [])).supported == ()


CAMERA = Claim(
    "It has a built-in camera and microphone.", "Is there support for the Spotify Android app?", "Anyone tried it?"
)


@dataclass(frozen=True)
class Agreeing:
    """A model that supports whatever it is asked about."""

    name: str = "agreeing"

    async def check(self, question: Question, claims: Sequence[Claim]) -> Support:
        """All of it."""
        return Support((True,) * len(claims), self.name)


@pytest.mark.parametrize(
    ("claim", "doubted"),
    [
        (CAMERA, True),
        (Claim("The battery lasts two days.", "The battery lasts two hours.", ""), False),
        (Claim("The battery lasts long.", "The battery lasts long.", ""), False),
        (Claim("Der Akku hält lange.", "Ich lade ihn einmal im Monat.", ""), False),
        (Claim("It lasts for weeks.", "充一次电可以用很久，非常满意。", ""), False),
    ],
)
async def test_what_a_model_supports_is_doubted_where_nothing_of_it_is_there(claim: Claim, doubted: bool) -> None:
    """What shares words with its passage is left to the model, as are other languages."""
    support = await SecondOpinion(Agreeing()).check(Question("Rabbit r1"), [claim])

    assert (support.supported, support.doubted) == ((True,), (doubted,))


def test_of_the_labelled_triples_hardly_a_sound_one_is_doubted() -> None:
    """205 of them, twice read; at most two of the sound ones may be lost."""
    file = Path(__file__).parents[2] / "evaluation" / "support" / "triples.jsonl"
    claims = read_claims(file.read_text("utf-8").split("\n"), str(file))
    lost = sum(labelled.supported and doubts(labelled.claim, labelled.question) for labelled in claims)

    assert len(claims) == 205
    assert lost <= 2
