"""One analysis: its lanes while it runs, then its report, its evidence and its files."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request
from fastapi.responses import RedirectResponse, Response

from api.errors import Conflict, NotFound
from api.faces import outline
from api.faces.web.access import Opened
from api.faces.web.analyses import is_possible, shown_as
from api.faces.web.pages.access import Ending, Guest
from api.faces.web.pages.composing import report_values
from api.faces.web.pages.files import as_file, kind_of
from api.faces.web.pages.following import LaneStream
from api.faces.web.pages.lanes import Lanes
from api.faces.web.pages.screen import PageRoute, Visitor, page
from api.services.keeping.analysis_flight import AnalysisFlight
from api.services.keeping.storage import Kept
from api.services.reporting.report import Report
from api.wiring.serving import House

router = APIRouter(prefix="/analyses", include_in_schema=False, route_class=PageRoute)
NO_ANALYSIS = "There is no such analysis, or it is not yours."
_FIRST = 20
"""Posts of a report that cites none."""


async def possible_id(analysis_id: str) -> str:
    """`AnalysisId`, as a dependency.

    Raises:
        NotFound: no analysis can have this id.
    """
    if not is_possible(analysis_id):
        raise NotFound(NO_ANALYSIS)
    return analysis_id


AnalysisId = Annotated[str, Depends(possible_id)]
"""The id in an address."""


@router.get("/{analysis_id}")
async def analysis_page(
    request: Request, analysis_id: AnalysisId, visitor: Guest, house: Opened
) -> Response:
    """The report; how far it is while it runs; or why there is none."""
    analysis = await house.runner.follow(visitor.tenant, analysis_id)
    if analysis is None:
        raise NotFound(NO_ANALYSIS)
    if isinstance(analysis, AnalysisFlight):
        lanes = Lanes.of(house, analysis)
        analysis.listen(lanes.hear)
        analysis.leave(lanes.hear)
        return _live(request, visitor, analysis, lanes)
    if analysis.report is not None:
        return _report(request, visitor, analysis.report)
    if analysis.state == "failed":
        reason = (analysis.reason or analysis.state).rstrip(".")
        title = outline.shortened(analysis.query, outline.LONGEST_HEADING)
        return page(request, visitor, "state.html", title=title, reason=reason)
    elsewhere = Lanes({}, "It waits for its turn, or another process works on it.")
    return _live(request, visitor, analysis, elsewhere)


@router.get("/{analysis_id}/live")
async def live(analysis_id: AnalysisId, visitor: Guest, house: Opened) -> Response:
    """The lanes as events, each with all of them, until the analysis is over."""
    analysis = await house.runner.follow(visitor.tenant, analysis_id)
    if analysis is None:
        raise NotFound(NO_ANALYSIS)
    return LaneStream(house, analysis)


@router.post("/{analysis_id}/cancel")
async def cancel(analysis_id: AnalysisId, form: Ending, house: Opened) -> Response:
    """End one that runs."""
    await house.runner.cancel(form.visitor.tenant, analysis_id)
    return RedirectResponse(f"/analyses/{analysis_id}", 303)


@router.get("/{analysis_id}/export/{form}")
async def export(analysis_id: AnalysisId, form: str, visitor: Guest, house: Opened) -> Response:
    """The report as a file."""
    kind = kind_of(form)
    answer = shown_as(await report_of(house, visitor, analysis_id), kind)
    return as_file(answer, f"analysis-{analysis_id}", kind)


async def report_of(house: House, visitor: Visitor, analysis_id: str) -> Report:
    """The report of a finished analysis.

    Raises:
        NotFound: the visitor has none of that id.
        Conflict: it runs, or has failed.
    """
    kept = await house.runner.kept(visitor.tenant.id, analysis_id)
    if kept is None:
        raise NotFound(NO_ANALYSIS)
    if kept.report is None:
        raise Conflict(kept.why_none)
    return kept.report


def _live(
    request: Request, visitor: Visitor, analysis: AnalysisFlight | Kept, lanes: Lanes
) -> Response:
    title = outline.shortened(analysis.query, outline.LONGEST_HEADING)
    return page(request, visitor, "live.html", title=title, id=analysis.id, **lanes.values)


def _report(request: Request, visitor: Visitor, report: Report) -> Response:
    """With the cited posts alone, or the first of all where nothing is cited."""
    values = report_values(report)
    items, cited = values["report"].items, values["passages"]
    return page(
        request, visitor, "report.html",
        title=outline.heading(report),
        listed=[item for item in items if item.key in cited] or items[:_FIRST],
        cited=bool(cited),
        can_ask=True,
        **values,
    )  # fmt: skip
