"""A report for whoever has its link: made, replaced, ended, and read without a key."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from api.faces import outline
from api.faces.web.access import Opened, authenticated
from api.faces.web.pages.access import Ending, Filled, Guest
from api.faces.web.pages.composing import report_values
from api.faces.web.pages.reading import AnalysisId, report_of
from api.faces.web.pages.screen import PageRoute, Visitor, page, server_of
from api.services.keeping.sharing import linked_report, open_link
from api.services.reporting.report import Report
from api.wiring.serving import House

router = APIRouter(include_in_schema=False, route_class=PageRoute)


@router.get("/analyses/{analysis_id}/share")
async def share_page(
    request: Request, analysis_id: AnalysisId, visitor: Guest, house: Opened
) -> Response:
    """Whether there is a link, and what it would show."""
    return await _shown(request, visitor, house, await report_of(house, visitor, analysis_id))


@router.post("/analyses/{analysis_id}/share")
async def share(request: Request, analysis_id: AnalysisId, form: Filled, house: Opened) -> Response:
    """A new link, shown this once; the one before shows nothing more."""
    report = await report_of(house, form.visitor, analysis_id)
    path = await open_link(house.store, form.visitor.tenant.id, analysis_id)
    return await _shown(request, form.visitor, house, report, path)


@router.post("/analyses/{analysis_id}/unshare")
async def unshare(analysis_id: AnalysisId, form: Ending, house: Opened) -> Response:
    """The link shows nothing from now on; the report stays."""
    await house.store.set_link(form.visitor.tenant.id, analysis_id, None)
    return RedirectResponse(f"/analyses/{analysis_id}/share", 303)


@router.get("/shared/{analysis_id}")
async def shared_page(
    request: Request, analysis_id: AnalysisId, house: Opened, token: str = ""
) -> Response:
    """The report and its evidence; there is nothing to do here but to read."""
    if not await house.keys.configured():
        await authenticated(house, request)
    report = await linked_report(house.store, house.keys, house.limits, analysis_id, token)
    answer = page(
        request, None, "shared.html",
        title=outline.heading(report), shared=True, **report_values(report),
    )  # fmt: skip
    answer.headers["X-Robots-Tag"] = "noindex, nofollow"
    return answer


async def _shown(
    request: Request, visitor: Visitor, house: House, report: Report, path: str = ""
) -> Response:
    return page(
        request, visitor, "share.html",
        title=f"Share: {outline.heading(report)}",
        id=report.id,
        linked=await house.store.has_link(visitor.tenant.id, report.id),
        path=path,
        server=server_of(request),
    )  # fmt: skip
