"""A stored report beside its items judged again: the form with its price, and the differences."""

from __future__ import annotations

from collections.abc import Mapping

from fastapi import APIRouter, Request
from fastapi.responses import Response

from api.bootstrap.app_context import AppContext
from api.errors import LimitReached, UsageError
from api.features.analyses.rejudging import ask_again
from api.interfaces.http.access import OpenContext
from api.interfaces.http.event_stream import GONE, unless_gone
from api.interfaces.pages.analysis_page import AnalysisId, report_of
from api.interfaces.pages.forms import faults
from api.interfaces.pages.replay_form import ReplayForm
from api.interfaces.pages.screen import Filled, Guest, PageRoute, Visitor, page
from api.interfaces.shared import presentation
from api.reports.replay import Replay
from api.reports.report import Report

router = APIRouter(prefix="/analyses", include_in_schema=False, route_class=PageRoute)


@router.get("/{analysis_id}/replay")
async def replay_page(request: Request, analysis_id: AnalysisId, visitor: Guest, app_context: OpenContext) -> Response:
    """The form, empty, with the price."""
    report = await report_of(app_context, visitor, analysis_id)
    form = ReplayForm.of(report, {})
    price = await _price(app_context, report, form) if app_context.loaded else ""
    return _shown(request, visitor, report, form, price=price)


@router.post("/{analysis_id}/replay")
async def replay(request: Request, analysis_id: AnalysisId, form: Filled, app_context: OpenContext) -> Response:
    """The cost or the differences of a replay, by the button pressed; closing the connection ends it."""
    visitor = form.visitor
    report = await report_of(app_context, visitor, analysis_id)
    filled = ReplayForm.of(report, form.fields)
    try:
        wanted = filled.request
        ask = ask_again(report, **wanted.meaning)
        if form.text("step") == "estimate":
            return _shown(request, visitor, report, filled, price=await _price(app_context, report, filled))
        work = app_context.replay(visitor.tenant, report, ask, wanted.judge, wanted.model)
        answer = await unless_gone(request.receive, work)
    except (UsageError, LimitReached) as error:
        return _shown(request, visitor, report, filled, error.status, wrong=faults(error, filled.fields))
    return _shown(request, visitor, report, filled, answer=answer) if answer else Response(status_code=GONE)


def _shown(
    request: Request,
    visitor: Visitor,
    report: Report,
    form: ReplayForm,
    status: int = 200,
    *,
    answer: Replay | None = None,
    price: str = "",
    wrong: Mapping[str, str] | None = None,
) -> Response:
    return page(
        request, visitor, "replay.html", status,
        title=f"Judged again: {presentation.heading(report)}" if answer else "Judge again",
        report=report, form=form, answer=answer, price=price, wrong=wrong or {},
    )  # fmt: skip


async def _price(app_context: AppContext, report: Report, form: ReplayForm) -> str:
    """What it is likely to cost, and at most.

    Raises:
        UsageError: the form holds what cannot be asked.
    """
    wanted = form.request
    estimate = await app_context.replay_estimate(ask_again(report, **wanted.meaning), wanted.judge, wanted.model)
    likely, most = estimate.likely, estimate.most
    if report.sample:
        return "free with sample data."
    if not most["model_calls"]:
        return "nothing is spent, for no model is asked."
    if likely["usd"] is None or most["usd"] is None:
        return f"{likely['model_calls']} calls of a model, whose price nobody knows."
    return f"{likely['model_calls']} calls of a model, {likely['usd']:.3f} USD; at most {most['usd']:.3f} USD."
