"""What one answer counts for."""

from __future__ import annotations

from typing import Any

import pytest

from api.features.analyses.store_ports import SourceTally, Tally
from tests.features.analyses.counted_runs import OPEN, attempt
from tests.store.made import dropped, finding, item, report, source, typed


def tally(**fields: Any) -> SourceTally:
    """Of a source that found ten items, eight of them fit, two of these relevant."""
    found = source() | {"fetched": 10, "fit": 8, "kept": 2, "yield_ratio": 0.25}
    return SourceTally.model_validate(found | fields)


@pytest.mark.parametrize(
    ("fields", "judged", "relevant", "degraded"),
    [
        ({}, 8, 2, False),
        ({"kept": 0, "yield_ratio": 0}, 8, 0, False),
        ({"fit": 0, "kept": 0, "yield_ratio": 1}, 0, 0, False),
        (OPEN, 0, 0, True),
        ({"gate": {"status": "skipped", "reason": None, "model": None}}, 0, 0, False),
        ({"outcome": "timed_out"} | OPEN, 0, 0, False),
    ],
)
def test_only_a_sound_verdict_counts(fields: dict[str, Any], judged: int, relevant: int, degraded: bool) -> None:
    """What passed unjudged, was not asked, or had nothing to judge says nothing of a yield."""
    counted = tally(**fields)

    assert (counted.judged, counted.relevant, counted.degraded) == (judged, relevant, degraded)


@pytest.mark.parametrize(("kept", "yield_ratio", "judged"), [(2, 0.25, 8), (0, 0.0, 10), (0, 1.0, 0), (3, 0.0, 10)])
def test_of_an_older_report_it_is_worked_out(kept: int, yield_ratio: float, judged: int) -> None:
    """From the yield; where nothing was relevant, what was found is the most that was judged."""
    assert tally(fit=None, kept=kept, yield_ratio=yield_ratio).judged == judged


def test_the_first_reason_of_failing_open_counts() -> None:
    """A refetch that could not be made left nothing unjudged."""
    ok, late = attempt("ok", 5), attempt("degraded", 0, "rate_limited")
    worse = [attempt("degraded", 3, "refused"), attempt("degraded", 2, "timeout")]

    assert tally(attempts=[ok, late]).open_reason is None
    assert tally(attempts=[ok, late, *worse]).open_reason == "refused"
    assert tally(attempts=[attempt("degraded", 1)]).open_reason == "unknown"


def test_a_report_counts_the_same_here_and_stored() -> None:
    """Its sources together; each cited item once; one degraded source makes the run degraded."""
    unfit = dropped("reddit:c") | {"dropped_by": "unfit"}
    out = [dropped("youtube:v1"), dropped("youtube:v2"), dropped("youtube:v3")]
    sources = {
        "reddit": source(unfit, kept=2) | {"yield_ratio": 1},
        "youtube": source(*out) | {"yield_ratio": 0},
    }
    findings = [finding("both", "reddit:a", "reddit:b"), finding("one", "reddit:a")]
    whole = report("r1", item("reddit:a"), item("reddit:b"), findings=findings, sources=sources)
    counted = Tally.of(typed(whole))
    opened = Tally.of(typed(whole | {"sources": {**sources, "amazon": source() | OPEN}}))

    assert Tally.model_validate(counted.model_dump(mode="json")) == counted
    assert (counted.judged, counted.relevant, counted.items, counted.cited) == (5, 2, 2, 2)
    assert (counted.degraded, opened.degraded) == (False, True)


def test_a_price_is_that_of_asking() -> None:
    """Guidance is free and no analysis to divide by; a price may be unknown."""
    paid = {"cost": {"usd": 0.5, "tokens": 9, "upstream_calls": 3}}

    assert Tally.of(typed(report("r1", **paid))).price == 0.5
    assert Tally.of(typed(report("r1"))).price is None
    assert Tally.of(typed(report("r1", sources={}, **paid))).price is None
