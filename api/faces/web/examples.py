"""The stream of an analysis, as the OpenAPI document shows it: made of what is really sent."""

from __future__ import annotations

from datetime import UTC, datetime

from api.faces.web.events import frame
from api.services.progress import SourceFetched, SourceKept, SourceStarted
from api.services.reporting.composing import Origin, clarified, source_report
from api.services.schemas import Decision, Gathered, Outcome

_QUERY, _ORIGIN = "plaud.ai", Origin("8c1f0d5e7b2a4963a1c4e8f7d2b60935", False, None)
_NOTHING = Gathered("reddit", _QUERY, Outcome.EMPTY)
_REPORT = clarified(_QUERY, "", "quick", "", _ORIGIN).model_copy(
    update={
        "decision": Decision.INSUFFICIENT,
        "decision_rationale": "No source had anything about it.",
        "explanation_text": None,
        "sources": {"reddit": source_report(_NOTHING, _ORIGIN)},
        "created_at": datetime(2026, 11, 2, 10, tzinfo=UTC),
    }
)
_MOMENTS = (
    SourceStarted(source="reddit", query=_QUERY, limit=10),
    SourceFetched(source="reddit", fetched=0),
    SourceKept.of(_NOTHING),
)
EVENTS = b"".join(
    (
        *(frame(each.kind, {"source": each.source, **each.data}) for each in _MOMENTS),
        frame("report", _REPORT.model_dump(mode="json")),
    )
).decode()
"""Of one source that had nothing, which is short."""
