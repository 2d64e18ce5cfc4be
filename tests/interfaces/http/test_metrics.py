"""What is counted of one source's answer."""

from __future__ import annotations

import pytest

from api.core.work import translated
from api.errors import Broken, SourceError
from api.features.analyses.feedback import Given
from api.features.analyses.store_ports import Feedback
from api.interfaces.http.prometheus_metrics import Metrics
from api.pipeline.gate.refetch import failed_source
from api.reports.composition import Origin, fetched
from tests.store.made import report, source, typed

REDDIT = {"reddit": source(kept=2)}
COST = {"usd": 0.5, "tokens": 9, "upstream_calls": 4}


async def stumbling() -> None:
    """What nobody foresaw."""
    raise OverflowError


@pytest.mark.parametrize("outcome", ["broken", "defect"])
async def test_a_defect_is_counted_as_one(outcome: str) -> None:
    """A source that is broken, and one over which this program stumbled, are told apart."""
    error: SourceError = Broken("youtube", "HTTP 418")
    if outcome == "defect":
        with pytest.raises(Broken) as caught:
            await translated(stumbling(), "asking youtube", lambda why: Broken("youtube", why))
        error = caught.value
    metrics = Metrics()

    metrics.fetched(fetched(failed_source("youtube", "mug", error), (), (), Origin("", False, None)))

    counted = f'listenpost_sources_total{{outcome="{outcome}",source="youtube"}} 1.0'
    assert counted in metrics.page().decode()


def test_what_alerts_ask_for_begins_at_nought() -> None:
    """Prometheus sees the first failed analysis and the first defect as an increase."""
    page = Metrics().page().decode()

    assert 'listenpost_analyses_total{decision="failed"} 0.0\n' in page
    assert 'listenpost_sources_total{outcome="defect",source="reddit"} 0.0\n' in page


def test_own_items_and_what_no_source_answered_are_in_no_mean() -> None:
    """They are counted beside."""
    metrics = Metrics()
    away = source(kept=0) | {"outcome": "blocked"}
    for number, asked in enumerate(({"items": source(kept=1)}, {"reddit": away}, REDDIT)):
        metrics.ended(typed(report(f"r{number}", sources=asked, cost=COST)), "")

    page = metrics.page().decode()
    for line in (
        "own_items_analyses_total 1.0", "unanswered_analyses_total 1.0", "cost_usd_total 0.5",
        "priced_analyses_total 1.0", "run_yield_count 1.0",
    ):  # fmt: skip
        assert f"listenpost_{line}\n" in page


@pytest.mark.parametrize(("sample", "repeated", "counted"), [(1, 0, 0), (0, 1, 0), (0, 0, 1)])
def test_a_thumb_is_counted_once_and_not_of_sample_data(sample: bool, repeated: bool, counted: int) -> None:
    """As statistics count it, for as long as nobody turns it."""
    metrics = Metrics()

    up = Feedback("r1", "ada", "report", "up")
    metrics.rated(Given(up, "full_report", "off", "", bool(sample), bool(repeated)))

    assert ('listenpost_feedback_total{decision="full_report",rating="up"} 1.0' in metrics.page().decode()) == bool(
        counted
    )


@pytest.mark.parametrize(("with_samples", "apart"), [(False, 1), (True, 0)])
def test_sample_data_is_apart_on_a_live_server(with_samples: bool, apart: int) -> None:
    """It is in no figure but its own, unless there is nothing else."""
    metrics = Metrics(with_samples)

    metrics.ended(typed(report("r1", sample=True)), "")

    page = metrics.page().decode()
    assert f"listenpost_sample_analyses_total {apart}.0" in page
    assert ('listenpost_analyses_total{decision="full_report"} 1.0' in page) is with_samples
    assert ('listenpost_answers_total{source="reddit"}' in page) is with_samples
