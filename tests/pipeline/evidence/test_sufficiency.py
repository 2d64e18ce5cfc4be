"""The decision table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from api.choices import DepthName
from api.core.domain import Decision
from api.pipeline.evidence.sufficiency import Counts, decide
from api.settings import DeepDepth, Depth, QuickDepth, StandardDepth

DEPTHS: dict[DepthName, Depth] = {
    "quick": QuickDepth(), "standard": StandardDepth(), "deep": DeepDepth(),
}  # fmt: skip
FULL, SHORT, NONE = Decision.FULL, Decision.SHORT, Decision.INSUFFICIENT


def counts(scored: int, survived: int, depth: DepthName = "standard", **others: Any) -> Counts:
    """Counts with all sources asked and some judge alive."""
    known: dict[str, Any] = {"answered": 3, "wanted": 3, "anything_judged": True} | others
    return Counts(total_scored=scored, total_survived=survived, depth_name=depth, depth=DEPTHS[depth], **known)


@pytest.mark.parametrize(
    ("depth", "scored", "survived", "decision"),
    [
        ("quick", 5, 0, NONE), ("quick", 5, 1, SHORT), ("quick", 5, 2, SHORT),
        ("quick", 3, 3, FULL), ("quick", 9, 4, FULL),
        ("standard", 0, 0, NONE), ("standard", 5, 0, NONE), ("standard", 7, 1, NONE),
        ("standard", 7, 2, SHORT), ("standard", 7, 3, SHORT), ("standard", 6, 3, SHORT),
        ("standard", 7, 4, FULL), ("standard", 7, 7, FULL), ("standard", 10, 5, FULL),
        ("deep", 9, 1, NONE), ("deep", 9, 2, SHORT), ("deep", 9, 4, SHORT),
        ("deep", 9, 5, FULL), ("deep", 60, 60, FULL),
    ],
)  # fmt: skip
def test_every_boundary(depth: DepthName, scored: int, survived: int, decision: Decision) -> None:
    """Survivors against the depth's two thresholds decide, and nothing else."""
    decided = decide(counts(scored, survived, depth))

    assert decided.decision is decision
    assert (decided.disclaimer is not None) is (decision is SHORT)
    graded = f": {survived} of {scored} posts about it say enough, graded 3 of 5 or better"
    assert (graded if scored else ": nothing that is about it; ") in decided.rationale


def test_the_thresholds_are_the_depths_own() -> None:
    """
    Changed settings change decision and words.
    """
    depth = StandardDepth(min_sources_full_report=6, min_sources_short_report=5, relevance_cutoff=4)
    four = Counts(
        total_scored=9, total_survived=4, depth_name="standard", depth=depth, answered=1, wanted=1,
        anything_judged=True,
    )  # fmt: skip

    assert decide(four).rationale == (
        "Too little was found for a report: 4 of 9 posts about it say enough, graded 4 "
        "of 5 or better; a short one needs 5"
    )


def test_the_disclaimer_counts_what_the_gate_stopped() -> None:
    """
    Three survivors of three graded and eight stopped items are three of eleven found.
    """
    short = decide(replace(counts(3, 3), dropped={"gate": 8}))

    assert (short.disclaimer or "").startswith("Only 3 of 11 posts found were relevant")


def test_the_texts() -> None:
    """
    Disclaimer and rationale word for word.
    """
    short = decide(counts(7, 2))

    assert decide(counts(7, 4)).rationale == (
        "Enough was found for a full report: 4 of 7 posts about it say enough, graded 3 of 5 or better"
    )
    assert short.disclaimer == (
        "Only 2 of 7 posts found were relevant to your question. "
        "Consider this a starting point, not a comprehensive answer."
    )
    assert short.rationale == (
        "Enough was found for a short report only: 2 of 7 posts about it say enough, graded 3 "
        "of 5 or better; a full one needs 4"
    )
    assert decide(counts(7, 4, grading_on=False, defaulted=7)).rationale == (
        "Enough was found for a full report: 4 of 7 posts were judged to be about it"
    )
    assert decide(counts(7, 4)).notes == ()


@pytest.mark.parametrize(("unjudged", "they"), [(1, "it was"), (7, "they were")])
def test_the_disclaimer_calls_nothing_relevant_that_nobody_judged(unjudged: int, they: str) -> None:
    """
    How many are kept, and of how many it is unknown.
    """
    assert decide(counts(7, 2, unjudged=unjudged)).disclaimer == (
        f"Only 2 of 7 posts found were kept, and of {unjudged} nobody judged whether {they} "
        "about your question. Consider this a starting point, not a comprehensive answer."
    )


@pytest.mark.parametrize(
    ("unjudged", "grading_on", "words"),
    [
        (7, True, ", which nobody judged, say enough, graded 3 of 5 or better"),
        (3, True, ", 3 of which nobody judged, say enough, graded 3 of 5 or better"),
        (7, False, ", which nobody judged, were kept"),
    ],
)
def test_what_nobody_judged_is_never_called_relevant(unjudged: int, grading_on: bool, words: str) -> None:
    """Posts that passed because the gate failed are not `about it` in any words."""
    decided = decide(counts(7, 4, unjudged=unjudged, grading_on=grading_on))

    assert decided.rationale == f"Enough was found for a full report: 4 of 7 posts{words}"


@pytest.mark.parametrize(("defaulted", "told"), [(0, False), (3, False), (4, True), (7, True)])
def test_defaulted_grades_are_named(defaulted: int, told: bool) -> None:
    """More than half by default is said in the rationale; any at all is a note."""
    decided = decide(counts(7, 7, defaulted=defaulted))
    words = f"{defaulted} of 7 grades are missing: the grader gave none, so a 3 stands in"

    assert decided.decision is FULL
    assert (words in decided.rationale) is told
    assert (f"{words}." in decided.notes) is (defaulted > 0)
    assert ("graded 3 of 5 or better" in decided.rationale) is (defaulted < 7)
    assert "5 of which nobody judged, were kept;" in decide(counts(7, 7, defaulted=7, unjudged=5)).rationale


def test_exactly_half_defaulted_is_not_most() -> None:
    """
    Three of six are not mostly defaulted.
    """
    assert "missing" not in decide(counts(6, 6, defaulted=3)).rationale


def test_a_degraded_gate_is_told_and_does_not_decide() -> None:
    """
    The path goes on, and the first note names source and cause.
    """
    decided = decide(counts(7, 4, gate_degraded=[("reddit", "timeout")], defaulted=1))

    assert decided.decision is FULL
    assert decided.notes[0] == (
        "Relevance could not be judged for reddit: no answer in time; `listenpost doctor` says why."
    )


def test_a_dead_source_is_told() -> None:
    """
    The others decide; the note says how many could be asked.
    """
    decided = decide(counts(7, 4, answered=2))

    assert (decided.decision, decided.notes) == (FULL, ("2 of 3 sources could be asked.",))


def test_what_was_dropped_is_counted_by_cause() -> None:
    """
    A short report says how many were dropped and why.
    """
    dropped = {"gate": 3, "cutoff": 1, "floor": 0, "duplicate": 2}

    assert decide(counts(7, 2, dropped=dropped)).notes == (
        "6 posts were dropped: 3 judged not to be about it, 1 graded too low to answer the "
        "question, 2 copies of others.",
    )


@pytest.mark.parametrize(
    ("wanted", "rationale"),
    [
        (1, "The only source could not be asked, so nothing was searched"),
        (3, "None of the 3 sources could be asked, so nothing was searched"),
        (0, "No source was chosen, so nothing was searched"),
    ],
)
def test_no_source_asked_is_no_data(wanted: int, rationale: str) -> None:
    """It comes before `unjudged` and never reads as if nobody talked about it."""
    decided = decide(counts(0, 0, answered=0, wanted=wanted, anything_judged=False))

    assert (decided.decision, decided.rationale, decided.notes) == (NONE, rationale, ())


def test_nothing_judged_claims_nothing() -> None:
    """
    Items without any model's answer are listed as found, whatever their number.
    """
    decided = decide(counts(7, 7, defaulted=7, anything_judged=False))

    assert decided.decision is Decision.UNJUDGED
    assert decided.disclaimer is None
    assert "none of the 7 items could be judged" in decided.rationale


def test_nothing_found_needs_no_judge() -> None:
    """
    Sources that answered with nothing are insufficient data, not an outage of the judge.
    """
    assert decide(counts(0, 0, anything_judged=False)).decision is NONE
