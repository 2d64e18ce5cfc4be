"""The stream of an analysis, as the OpenAPI document shows it: made of what is really sent."""

from __future__ import annotations

from datetime import UTC, datetime

from api.faces.web.events import RETRY, frame
from api.faces.web.schemas import Pending
from api.services.progress import SourceFetched, SourceGathered, SourceKept, SourceStarted
from api.services.reporting.composing import Origin, clarified, source_report
from api.services.schemas import Decision, Gathered, Outcome

_ID, _QUERY = "8c1f0d5e7b2a4963a1c4e8f7d2b60935", "plaud.ai"
_BEGUN = datetime(2026, 11, 2, tzinfo=UTC)
_FIRST = int(_BEGUN.timestamp()) * 1_000_000
_ORIGIN = Origin(_ID, False, None)
_NOTHING = Gathered("reddit", _QUERY, Outcome.EMPTY)
_REPORT = clarified(_QUERY, "", "quick", "", _ORIGIN).model_copy(
    update={
        "since": "all",
        "decision": Decision.INSUFFICIENT,
        "decision_rationale": "No source had anything about it.",
        "explanation_text": None,
        "sources": {"reddit": source_report(_NOTHING, _ORIGIN)},
        "created_at": _BEGUN,
    }
)
_MOMENTS = (
    SourceStarted(source="reddit", query=_QUERY, limit=10),
    SourceFetched(source="reddit", query=_QUERY, fetched=0),
    SourceKept.of(_NOTHING),
    SourceGathered.of(_NOTHING),
)
_PENDING = Pending(id=_ID, state="running", query=_QUERY, created_at=_BEGUN)
EVENTS = b"".join(
    (
        frame("begun", _PENDING.model_dump(mode="json"), f"{_ID}:{_FIRST}", RETRY),
        *(
            frame(each.kind, {"source": each.source, **each.data}, f"{_ID}:{number}")
            for number, each in enumerate(_MOMENTS, _FIRST + 1)
        ),
        frame("report", _REPORT.model_dump(mode="json"), f"{_ID}:end"),
    )
).decode()
"""Of one source that had nothing, which is short."""
