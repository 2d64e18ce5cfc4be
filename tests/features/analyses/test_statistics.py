"""Sums, means and rates over many analyses."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from api.errors import UsageError
from api.features.analyses.statistics import ThumbStats, YieldStats, since_of
from api.features.analyses.store_ports import Counted, Thumbs
from tests.features.analyses.counted_runs import MONTH, NOW, OPEN, asked, attempt, run, stats
from tests.store.made import finding, item


async def test_yields_are_pooled_and_averaged() -> None:
    """A run of many items weighs more in the one, and as much as another in the other."""
    figures = await stats(
        run("r1", sources={"reddit": asked(90, 9)}),
        run("r2", sources={"reddit": asked(10, 5), "youtube": asked(10, 10)}),
    )

    assert figures.sources["reddit"].yields == YieldStats(
        runs=2, judged=100, relevant=14, pooled=0.14, mean=0.3, degraded=0
    )
    assert figures.yields.pooled == 24 / 110
    assert figures.yields.mean == pytest.approx((0.1 + 15 / 20) / 2)
    assert (figures.items.judged, figures.items.relevant) == (110, 24)


async def test_degraded_runs_are_counted_and_in_no_yield() -> None:
    """Neither is what found nothing to judge; failing open has a reason, and a rate of answers."""
    opened = asked(7, 7, attempts=[attempt("degraded", 7, "timeout")], **OPEN)
    away = asked(0, 0, outcome="blocked", upstream_calls=2)
    figures = await stats(
        run("r1", sources={"reddit": opened, "youtube": asked(4, 1)}),
        run("r2", sources={"reddit": asked(4, 2), "youtube": away}),
        run("r3", sources={"reddit": asked(0, 0), "youtube": opened}),
    )

    reddit, youtube = figures.sources["reddit"], figures.sources["youtube"]
    assert reddit.yields == YieldStats(runs=1, judged=4, relevant=2, pooled=0.5, mean=0.5, degraded=1)
    assert (reddit.answered, reddit.fail_open, reddit.fail_open_rate) == (3, 1, 1 / 3)
    assert reddit.fail_open_reasons == {"timeout": 1}
    assert (youtube.runs, youtube.answered, youtube.outcomes) == (3, 2, {"ok": 2, "blocked": 1})
    assert youtube.upstream_calls == 4
    assert figures.yields == YieldStats(runs=1, judged=4, relevant=2, pooled=0.5, mean=0.5, degraded=2)
    assert figures.items.judged == 8


async def test_refetches_have_a_rate_and_a_gain() -> None:
    """Of answers, and of refetches; without any the gain of one is unknown, not nought."""
    more = {"refetched": True, "refetch_gain": 3}
    figures = await stats(
        run("r1", sources={"reddit": asked(4, 1, **more), "youtube": asked(4, 1)}),
        run("r2", sources={"reddit": asked(4, 1, refetched=True)}),
        run("r3", sources={"reddit": asked(4, 1)}),
        run("r4", sources={"reddit": asked(4, 1)}),
    )

    reddit, youtube = figures.sources["reddit"], figures.sources["youtube"]
    assert (reddit.refetched, reddit.refetch_rate) == (2, 0.5)
    assert (reddit.refetch_gain, reddit.gain_per_refetch) == (3, 1.5)
    assert (youtube.refetch_rate, youtube.refetch_gain, youtube.gain_per_refetch) == (0.0, 0, None)


async def test_a_refetch_that_nobody_judged_has_no_gain() -> None:
    """It is a refetch, but not one that brought nothing."""
    batch = {"limit": 10, "fetched": 4, "new": 4, "relevant": 1, "requests": 1}
    unjudged = batch | {"relevant": 0, "status": "degraded", "reason": "http_error"}
    attempts = [batch | {"status": "ok", "reason": None}, unjudged]
    figures = await stats(
        run("r1", sources={"reddit": asked(4, 1, refetched=True, refetch_gain=3)}),
        run("r2", sources={"reddit": asked(4, 1, refetched=True, attempts=attempts)}),
    )

    reddit = figures.sources["reddit"]
    assert (reddit.refetched, reddit.refetch_gain, reddit.gain_per_refetch) == (2, 3, 3.0)


async def test_cost_is_that_of_analyses_whose_price_is_known() -> None:
    """Guidance asked nobody and is no analysis to divide by; requests likewise."""
    paid = {"usd": 0.3, "tokens": 5, "upstream_calls": 6}
    figures = await stats(
        run("r1", cost=paid, items=[item("reddit:1"), item("reddit:2")]),
        run("r2", cost=paid | {"usd": 0.1}, items=[]),
        run("r3", cost=paid | {"usd": None}, items=[item("reddit:1")] * 9),
        run("r4", cost=paid | {"usd": 0.0, "upstream_calls": 0}, sources={}, decision="clarify"),
    )

    cost = figures.cost
    assert (cost.usd, cost.priced, cost.unpriced) == (0.4, 2, 1)
    assert cost.per_analysis == pytest.approx(0.2)
    assert cost.per_kept_item == pytest.approx(0.2)
    assert (figures.upstream_calls, figures.calls_per_analysis) == (18, 6.0)
    assert figures.decisions == {"full_report": 3, "clarify": 1}
    assert figures.items.kept == 11


async def test_support_and_citations_are_summed() -> None:
    """A report that nobody checked is none of those with a check."""
    checked = {"status": "ok", "reason": None, "model": "m", "pairs": 4, "supported": 3}
    unchecked = checked | {"status": "skipped", "pairs": 0, "supported": 0}
    findings = [finding("f", "reddit:1"), finding("g", "reddit:1", "reddit:2")]
    figures = await stats(
        run("r1", support=checked, findings=findings),
        run("r2", support=unchecked, findings=findings),
    )

    assert (figures.support.reports, figures.support.pairs) == (1, 4)
    assert (figures.support.supported, figures.support.rate) == (3, 0.75)
    assert figures.items.cited == 4


async def test_samples_are_kept_apart() -> None:
    """They are counted as such, and in all figures on request alone."""
    analyses = run("r1", sources={"reddit": asked(4, 1)}), run("r2", sample=True)

    apart, together = await stats(*analyses), await stats(*analyses, with_samples=True)

    assert (apart.runs, apart.samples, apart.with_samples) == (1, 1, False)
    assert (together.runs, together.samples, together.with_samples) == (2, 1, True)
    assert set(apart.sources) == {"reddit"}
    assert set(together.sources) == {"reddit", "youtube"}


async def test_failed_ones_are_counted_and_running_ones_are_not() -> None:
    """Nothing of nothing is unknown."""
    figures = await stats(Counted("r1", "failed", NOW, None), Counted("r2", "running", NOW, None), cut=True)

    assert (figures.runs, figures.failed, figures.cut) == (0, 1, True)
    assert (figures.sources, figures.periods, figures.decisions) == ({}, (), {})
    assert figures.yields.pooled is figures.yields.mean is figures.support.rate is None
    assert figures.cost.per_analysis is figures.cost.per_kept_item is None
    assert figures.feedback == ThumbStats(up=0, down=0, share=None)


@pytest.mark.parametrize(("days", "unit"), [(31, "day"), (32, "week")])
async def test_periods_are_days_or_weeks(days: int, unit: str) -> None:
    """Weeks begin on Monday; a period without runs is not listed; who did not answer has none."""
    away = asked(0, 0, outcome="blocked")
    figures = await stats(
        run("r1", sources={"reddit": asked(4, 1), "youtube": away}),
        run("r2", 1, sources={"reddit": asked(6, 4)}),
        run("r3", days, sources={}),
    )

    days_of = {"day": ["2026-10-28", "2026-11-27", "2026-11-28"],
               "week": ["2026-10-26", "2026-11-23"]}  # fmt: skip
    assert figures.unit == unit
    assert [f"{period.start}" for period in figures.periods] == days_of[unit]
    last = figures.periods[-1].yields
    assert set(last) == {"reddit"}
    assert last["reddit"].pooled == (0.25 if unit == "day" else 0.5)
    assert [period.runs for period in figures.periods] == ([1, 1, 1] if unit == "day" else [1, 2])


async def test_what_no_source_answered_and_own_items_are_in_no_mean() -> None:
    """They are counted beside, with what they cost; what their sources did stays with those."""
    cost = {"usd": 0.5, "tokens": 9, "upstream_calls": 4}
    other = {"usd": 0.25, "tokens": 9, "upstream_calls": 2}
    away = asked(0, 0, outcome="blocked", upstream_calls=2)
    figures = await stats(
        run("r1", sources={"reddit": asked(4, 1), "youtube": away}, cost=cost),
        run("r2", sources={"reddit": away}, cost=other),
        run("r3", sources={"items": asked(4, 4)}, cost=other | {"upstream_calls": 0}),
        run("r4", decision="clarify", sources={}, cost=other | {"usd": 0.0, "upstream_calls": 0}),
    )

    assert (figures.runs, figures.own_items, figures.unanswered) == (4, 1, 1)
    assert (figures.upstream_calls, figures.calls_per_analysis) == (6, 4.0)
    assert (figures.cost.usd, figures.cost.left_out, figures.cost.priced) == (0.5, 0.5, 1)
    assert figures.cost.per_analysis == 0.5
    assert (figures.yields.runs, figures.yields.mean) == (1, 0.25)
    assert figures.sources["items"].yields.mean == 1.0


async def test_thumbs_are_shared_by_decision() -> None:
    """Those of reports that are counted; a decision that nobody rated is not listed."""
    figures = await stats(
        run("r1"), run("r2"), run("r3", decision="short_report"), run("r4", decision="clarify"),
        run("r5", sample=True),
        ratings={"r1": Thumbs(2, 1), "r2": Thumbs(1, 0), "r3": Thumbs(0, 1), "r5": Thumbs(9, 9)},
    )  # fmt: skip

    assert figures.feedback == ThumbStats(up=3, down=2, share=0.6)
    assert figures.feedback_by_decision == {
        "full_report": ThumbStats(up=3, down=1, share=0.75),
        "short_report": ThumbStats(up=0, down=1, share=0.0),
    }


@pytest.mark.parametrize(
    ("text", "since"),
    [
        ("30d", MONTH),
        (" 2W ", NOW - timedelta(days=14)),
        ("all", None),
        ("2026-03-01", datetime(2026, 3, 1, tzinfo=UTC)),
        ("2026-03-01T02:00:00+02:00", datetime(2026, 3, 1, tzinfo=UTC)),
    ],
)
def test_how_far_back_is_read(text: str, since: datetime | None) -> None:
    """Days, weeks, a date or time, or everything."""
    assert since_of(text, NOW) == since


@pytest.mark.parametrize(
    "text",
    ["", "soon", "0d", "-3d", "1e3d", "٣d", "999999w", "2026-13-01", "0001-01-01T00:00+23:59"],
)
def test_another_word_is_refused_with_the_remedy(text: str) -> None:
    """Also what lies before all time."""
    with pytest.raises(UsageError, match=r"`30d`, `12w`.*`2026-03-01`.*`%2B`.*`all`"):
        since_of(text, NOW)
