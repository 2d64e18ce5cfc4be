"""What somebody thought of a report, or of a turn of a chat, as a score on its trace.

Sent at once and not by the queue of the other scores, so that it is known whether it was taken.
"""

from __future__ import annotations

import json
from hashlib import sha256
from http import HTTPStatus
from typing import Any

import requests

from api.services.keeping.feedback import Rated, RatedReport, RatedTurn, source_of
from api.services.keeping.storage import Feedback
from api.services.ports import WRITTEN
from api.services.wire import REDIRECTS, TooLarge, no_connection, read_all
from api.settings import TracingSettings
from api.tracing.masking import mask
from api.tracing.sending import HomeSession, basic

NAME = "user_feedback"
SECONDS = 5.0
"""For the one request; whoever gave the feedback waits for it."""
_PIECE = 8_192


def score_of(rated: Rated, settings: TracingSettings) -> dict[str, Any]:
    """The score: true is a thumb up, so that its mean is the share of them.

    It stands on the span that judged the item or wrote the finding, where that is known, and else
    on the trace; `scope` says what it is about. What its author thinks later of the same takes its
    place, since id, name and day are the same. Where no words may leave there is no comment, and no
    key of an item.
    """
    metadata: dict[str, Any]
    feedback: Feedback | RatedTurn
    span = None
    if isinstance(rated, RatedReport):
        feedback, report = rated.feedback, rated.report
        trace_id, key = report.trace_id, feedback.item_key
        span = _span_of(rated)
        what = f"{feedback.subject}\n{feedback.finding}\n{key}\n{feedback.author}"
        metadata = {
            "scope": feedback.subject,
            "author": feedback.author,
            "decision": str(report.decision),
            "source": source_of(report, key) if key else None,
            "item_key": key if settings.trace_content else None,
            "finding": feedback.finding,
        }
    else:
        feedback, trace_id, what = rated, rated.trace_id, f"turn\n{rated.author}"
        metadata = {"scope": "turn", "author": rated.author, "turn": rated.number}
    digest = sha256(what.encode("utf-8", "replace")).hexdigest()[:16]
    score = {
        "id": f"{trace_id}-{NAME}-{digest}",
        "traceId": trace_id,
        "observationId": span,
        "name": NAME,
        "value": 1 if feedback.rating == "up" else 0,
        "dataType": "BOOLEAN",
        "comment": (mask(feedback.comment) or None) if settings.trace_content else None,
        "metadata": {name: mask(value) for name, value in metadata.items() if value is not None},
        "environment": settings.trace_environment,
        "timestamp": feedback.created_at.isoformat() if feedback.created_at else None,
    }
    return {name: value for name, value in score.items() if value is not None}


def _span_of(rated: RatedReport) -> str | None:
    """Where the item was judged, or the finding written; None of what no span alone is about."""
    feedback, report = rated.feedback, rated.report
    parts = {feedback.item_key}
    if feedback.finding is not None and report.findings[feedback.finding - 1].support != "counted":
        parts = set(WRITTEN)  # what is counted are themes, which nobody wrote
    spans = (span for span, keys in report.observations.items() if parts.intersection(keys))
    return next(spans, None)


def send_feedback(settings: TracingSettings, rated: Rated, seconds: float = SECONDS) -> str:
    """Send the score; blocks for one request. Empty when it was taken, else why it was not."""
    url = f"{settings.langfuse_base_url.rstrip('/')}/api/public/scores"
    headers = {"Authorization": basic(settings)}
    body = [score_of(rated, settings)]
    with HomeSession(settings) as session:
        session.max_redirects = REDIRECTS
        try:
            with session.post(
                url, json=body, headers=headers, timeout=seconds, stream=True
            ) as response:
                status = response.status_code
                rejected = status == HTTPStatus.MULTI_STATUS and _rejected(response)
        except requests.Timeout:
            return f"Langfuse gave no answer within {seconds:g} s"
        except (OSError, ValueError) as error:
            return f"Langfuse: {no_connection(error, url)}; check `LANGFUSE_BASE_URL`"
    if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        return "Langfuse refuses the keys; check `LANGFUSE_PUBLIC_KEY` and `LANGFUSE_SECRET_KEY`"
    if rejected or status not in {HTTPStatus.OK, HTTPStatus.ACCEPTED, HTTPStatus.MULTI_STATUS}:
        return f"Langfuse does not take the score (HTTP {status})"
    return ""


def _rejected(response: requests.Response) -> bool:
    """Whether a mixed answer says that the one score was not taken, or says nothing."""
    try:
        answer = json.loads(read_all(response.iter_content(_PIECE)))
        return bool(answer["rejected"])
    except (TooLarge, ValueError, TypeError, LookupError):
        return True
