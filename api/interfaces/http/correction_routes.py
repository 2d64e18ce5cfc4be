"""Corrections over HTTP: a person's verdict on one item of a stored analysis."""

from __future__ import annotations

from datetime import datetime
from typing import Self

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict

from api.features.analyses.corrections import StoredCorrection
from api.features.analyses.feedback import correct, withdraw
from api.interfaces.http.access import Asker, OpenContext
from api.interfaces.http.errors_json import documented
from api.interfaces.http.schemas import RequestBody

router = APIRouter(prefix="/v1", tags=["corrections"])
_ERRORS = (401, 403, 404, 422, 429, 500, 503)
_ITEM = "/analyses/{analysis_id}/items/{key:path}/correction"


class CorrectionRequest(RequestBody):
    """Whether the item is about the product of the question."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"relevant": False}]})
    relevant: bool


class KeptCorrection(BaseModel):
    """A correction with the question it belongs to."""

    key: str
    """Of the item."""
    relevant: bool
    title: str
    source: str
    query: str
    about: str
    created_at: datetime

    @classmethod
    def of(cls, entry: StoredCorrection) -> Self:
        """From what the store has of it."""
        said = entry.correction
        return cls(
            key=said.key, relevant=said.relevant, title=said.title, source=entry.source,
            query=entry.query, about=entry.about, created_at=entry.created_at,
        )  # fmt: skip


class CorrectionList(BaseModel):
    """Your corrections, oldest first."""

    corrections: list[KeptCorrection]


@router.put(_ITEM, responses=documented(413, *_ERRORS), summary="Correct the verdict on an item")
async def put_correction(
    analysis_id: str, key: str, body: CorrectionRequest, tenant: Asker, app_context: OpenContext
) -> KeptCorrection:
    """The last correction of an item stands; later analyses of the same question learn from it.

    A corrected item is never judged again: it is kept or dropped as you said.
    """
    entry = await correct(app_context.store, tenant.id, analysis_id, key, body.relevant)
    return KeptCorrection.of(entry)


@router.delete(
    _ITEM, status_code=204, responses=documented(*_ERRORS), summary="Remove a correction"
)
async def remove_correction(
    analysis_id: str, key: str, tenant: Asker, app_context: OpenContext
) -> None:
    """The item is judged again by the next analysis."""
    await withdraw(app_context.store, tenant.id, analysis_id, key)


@router.get(
    "/corrections", responses=documented(401, 403, 422, 429, 500, 503), summary="List corrections"
)
async def list_corrections(tenant: Asker, app_context: OpenContext) -> CorrectionList:
    """Of all your questions."""
    entries = await app_context.store.corrections(tenant.id)
    return CorrectionList(corrections=[KeptCorrection.of(entry) for entry in entries])
