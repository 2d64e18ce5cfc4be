"""Feedback on a report (`/v1/analyses/{id}/feedback`), and corrections of the gate."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Self

from fastapi import APIRouter, FastAPI, Request
from pydantic import BaseModel, ConfigDict

from api.bootstrap.app_context import AppContext
from api.bootstrap.storage import feedback_sender
from api.choices import Rating
from api.core.context import current_caller
from api.features.analyses.analysis_job import missing_report
from api.features.analyses.corrections import StoredCorrection
from api.features.analyses.feedback import Given, Send, Watched, author_of, correct, give, withdraw
from api.features.analyses.store_ports import Feedback, Subject
from api.interfaces.http.access import Asker, OpenContext, metrics_of
from api.interfaces.http.errors_json import documented
from api.interfaces.shared.listing_requests import FeedbackRequest
from api.interfaces.shared.requests import RequestBody

router = APIRouter(prefix="/v1/analyses/{analysis_id}/feedback", tags=["feedback"])
_COMMON = (401, 403, 404, 422, 429, 500, 503)


class KeptFeedback(BaseModel):
    """Feedback as it is kept: the last word of its author on this subject."""

    analysis_id: str
    subject: Subject
    finding: int | None
    item_key: str | None
    rating: Rating
    comment: str
    author: str
    """Pseudonym of who gave it, the same for one user of a key."""
    created_at: datetime | None
    """When it was first given."""

    @classmethod
    def of(cls, feedback: Feedback) -> Self:
        """Build it from the stored feedback."""
        return cls(**{name: getattr(feedback, name) for name in KeptFeedback.model_fields})


class LangfuseState(BaseModel):
    """Whether Langfuse took it: `failed` has a reason, and the feedback is kept all the same."""

    status: Watched
    reason: str | None


class GivenFeedback(KeptFeedback):
    """Feedback just stored, and whether Langfuse accepted it."""

    langfuse: LangfuseState

    @classmethod
    def of_given(cls, given: Given) -> Self:
        """Build it from the result of giving feedback."""
        state = LangfuseState(status=given.watched, reason=given.why or None)
        return cls(**dict(KeptFeedback.of(given.feedback)), langfuse=state)


class FeedbackList(BaseModel):
    """Feedback on one analysis, oldest first."""

    feedback: list[KeptFeedback]


def sender_of(app: FastAPI, app_context: AppContext) -> Send | None:
    """The server's sender of ratings to Langfuse; None with tracing off."""
    if not hasattr(app.state, "send_feedback"):
        app.state.send_feedback = feedback_sender(app_context.settings)
    send: Send | None = app.state.send_feedback
    return send


_GIVEN: dict[int | str, dict[str, Any]] = documented(413, *_COMMON)


@router.post("", status_code=201, responses=_GIVEN, summary="Rate a report")
async def give_feedback(
    request: Request,
    analysis_id: str,
    body: FeedbackRequest,
    tenant: Asker,
    app_context: OpenContext,
) -> GivenFeedback:
    """A thumb up or down, with a comment; said again it replaces what was said before.

    Each key has one word on each subject, and so has each of its users that `X-Listenpost-User`
    names. It is kept, and while tracing is on it is also a score `user_feedback` in Langfuse.
    """
    app = request.app
    send, author = sender_of(app, app_context), author_of(tenant.id, current_caller().user)
    given = await give(app_context.store, tenant.id, author, analysis_id, body.vote(), send)
    metrics_of(app).rated(given)
    return GivenFeedback.of_given(given)


@router.get("", responses=documented(*_COMMON), summary="Read what was thought of a report")
async def list_feedback(analysis_id: str, tenant: Asker, app_context: OpenContext) -> FeedbackList:
    """List feedback on one of your analyses."""
    kept = await app_context.store.feedback(tenant.id, analysis_id)
    if not kept and await app_context.store.get(tenant.id, analysis_id) is None:
        raise missing_report(analysis_id)
    return FeedbackList(feedback=list(map(KeptFeedback.of, kept)))


corrections_router = APIRouter(prefix="/v1", tags=["corrections"])
_ITEM = "/analyses/{analysis_id}/items/{key:path}/correction"


class CorrectionRequest(RequestBody):
    """Whether the item is about the product of the question."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"relevant": False}]})
    relevant: bool


class KeptCorrection(BaseModel):
    """A correction with the question it belongs to."""

    key: str
    """Key of the corrected item."""
    relevant: bool
    title: str
    source: str
    query: str
    about: str
    created_at: datetime

    @classmethod
    def of(cls, entry: StoredCorrection) -> Self:
        """Build it from the stored correction."""
        correction = entry.correction
        return cls(
            key=correction.key, relevant=correction.relevant, title=correction.title,
            source=entry.source, query=entry.query, about=entry.about,
            created_at=entry.created_at,
        )  # fmt: skip


class CorrectionList(BaseModel):
    """Corrections of the key that asks, oldest first."""

    corrections: list[KeptCorrection]


@corrections_router.put(_ITEM, responses=documented(413, *_COMMON), summary="Correct the verdict on an item")
async def put_correction(
    analysis_id: str, key: str, body: CorrectionRequest, tenant: Asker, app_context: OpenContext
) -> KeptCorrection:
    """Correct the verdict on an item; later analyses of the same question learn from the last correction.

    A corrected item is never judged again: it is kept or dropped as you say.
    """
    entry = await correct(app_context.store, tenant.id, analysis_id, key, body.relevant)
    return KeptCorrection.of(entry)


@corrections_router.delete(_ITEM, status_code=204, responses=documented(*_COMMON), summary="Remove a correction")
async def remove_correction(analysis_id: str, key: str, tenant: Asker, app_context: OpenContext) -> None:
    """The item is judged again by the next analysis."""
    await withdraw(app_context.store, tenant.id, analysis_id, key)


@corrections_router.get("/corrections", responses=documented(401, 403, 422, 429, 500, 503), summary="List corrections")
async def list_corrections(tenant: Asker, app_context: OpenContext) -> CorrectionList:
    """Corrections of all your questions."""
    entries = await app_context.store.corrections(tenant.id)
    return CorrectionList(corrections=[KeptCorrection.of(entry) for entry in entries])
