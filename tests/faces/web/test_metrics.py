"""What is counted of one source's answer."""

from __future__ import annotations

import pytest

from api.errors import Broken, SourceError
from api.faces.web.metrics import Metrics
from api.services.containment import translated
from api.services.gate.basket import failed
from api.services.reporting.composing import Origin, fetched
from tests.store.made import report, typed


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

    metrics.fetched(fetched(failed("youtube", "mug", error), (), (), Origin("", False, None)))

    counted = f'listenpost_sources_total{{outcome="{outcome}",source="youtube"}} 1.0'
    assert counted in metrics.page().decode()


@pytest.mark.parametrize(("with_samples", "apart"), [(False, 1), (True, 0)])
def test_sample_data_is_apart_on_a_live_server(with_samples: bool, apart: int) -> None:
    """It is in no figure but its own, unless there is nothing else."""
    metrics = Metrics(with_samples)

    metrics.ended(typed(report("r1", sample=True)), "")

    page = metrics.page().decode()
    assert f"listenpost_sample_analyses_total {apart}.0" in page
    assert ('listenpost_analyses_total{decision="full_report"} 1.0' in page) is with_samples
    assert ('listenpost_answers_total{source="reddit"}' in page) is with_samples
