"""The shapes of answers and errors as the OpenAPI document shows them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal, Self, cast

from pydantic import BaseModel

from api.choices import DepthName
from api.core.domain import Decision, Status
from api.core.items import Gated
from api.features.analyses.analysis_job import AnalysisTask
from api.features.analyses.store_ports import AnalysisSummary, State, StoredAnalysis
from api.interfaces.shared.requests import OwnItem
from api.reports.report import Report, Share

Format = Literal["json", "html", "markdown", "csv", "events"]


class ErrorDetail(BaseModel):
    """An error: `code` is for programs and stable, `message` for people."""

    code: str
    message: str
    trace_id: str


class ErrorBody(BaseModel):
    """The JSON object of an error, the same on every route."""

    error: ErrorDetail


class Done(Report):
    """A finished analysis: its report and its state."""

    state: Literal["done"]


class Pending(BaseModel):
    """An analysis under way, or one that failed and why."""

    id: str
    state: Literal["running", "failed"]
    query: str
    created_at: datetime | None
    reason: str | None = None

    @classmethod
    def of(cls, kept: AnalysisTask | StoredAnalysis) -> Self:
        """Build it from a running task, or from a stored analysis without a report."""
        if isinstance(kept, AnalysisTask):
            return cls(id=kept.id, state="running", query=kept.query, created_at=kept.began)
        return cls(
            id=kept.id,
            state="failed" if kept.state == "failed" else "running",
            query=kept.query,
            created_at=kept.created_at,
            reason=kept.reason,
        )


class ListedAnalysis(BaseModel):
    """One analysis in a list, with the parts of its report that a table needs."""

    id: str
    state: State
    query: str
    created_at: datetime
    about: str | None
    reason: str | None
    decision: Decision | None
    depth: DepthName | None
    sample: bool | None
    fetched: int | None
    """Found by all sources together."""
    kept: int | None
    """Items that the report kept in the end, after grading and removal of copies."""
    total_survived: int | None
    """The same number under its name in the report."""

    @classmethod
    def of(cls, listed: AnalysisSummary) -> Self:
        """Build it from the store's summary."""
        summary = listed.summary
        sources = summary.sources.values() if summary else ()
        return cls(
            id=listed.id,
            state=listed.state,
            query=listed.query,
            created_at=listed.created_at,
            about=summary.about if summary else None,
            reason=listed.reason,
            decision=summary.decision if summary else None,
            depth=summary.depth if summary else None,
            sample=summary.sample if summary else None,
            fetched=sum(source.fetched for source in sources) if summary else None,
            kept=summary.total_survived if summary else None,
            total_survived=summary.total_survived if summary else None,
        )


class AnalysesPage(BaseModel):
    """Analyses, newest first; `cursor` asks for the next page and is null on the last."""

    analyses: list[ListedAnalysis]
    cursor: str | None


class Relevance(BaseModel):
    """Your items as they came, in order; with a degraded gate all are relevant."""

    relevant: list[OwnItem]
    dropped: list[OwnItem]
    yield_ratio: Share
    status: Status
    reason: str | None

    @classmethod
    def of(cls, items: Sequence[dict[str, Any]], gated: Gated) -> Self:
        """The items, split by their verdicts, and the yield."""
        pairs = list(zip(cast(Sequence[OwnItem], items), gated.verdicts, strict=True))
        relevant = [item for item, verdict in pairs if verdict.relevant]
        return cls(
            relevant=relevant,
            dropped=[item for item, verdict in pairs if not verdict.relevant],
            yield_ratio=len(relevant) / len(pairs) if pairs else 1.0,
            status=gated.status,
            reason=gated.reason,
        )


class SourceState(BaseModel):
    """A source, and whether it can be asked."""

    name: str
    configured: bool
    reason: str | None


class SourceList(BaseModel):
    """All sources, with whether each can be asked."""

    sources: list[SourceState]
    sample: bool


class Health(BaseModel):
    """Answer of a process that runs."""

    status: Literal["ok"]


class Readiness(BaseModel):
    """The database answers; `product` says whether a first request waits for libraries."""

    status: Literal["ready"]
    product: Literal["loading", "loaded"]
    sample: bool
