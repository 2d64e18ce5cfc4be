"""What is counted of one source's answer."""

from __future__ import annotations

import pytest

from api.errors import Broken, SourceError
from api.faces.web.metrics import Metrics
from api.services.containment import translated
from api.services.gate.basket import failed
from api.services.reporting.composing import Origin, fetched


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
