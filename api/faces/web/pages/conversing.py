"""A conversation over the evidence of a report, turn by turn; without script, too."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from api.errors import UsageError
from api.faces import outline
from api.faces.web.access import Opened
from api.faces.web.chat import last_of
from api.faces.web.events import GONE, unless_gone
from api.faces.web.pages.access import Filled, Guest, Visitor
from api.faces.web.pages.reading import AnalysisId, report_of
from api.faces.web.pages.screen import PageRoute, page
from api.services.chatting.history import PastTurn, Transcript, read_chat
from api.services.chatting.turns import Turn
from api.services.question.query import LONGEST
from api.services.reporting.report import Report
from api.wiring.serving import House

router = APIRouter(prefix="/analyses", include_in_schema=False, route_class=PageRoute)


@router.get("/{analysis_id}/chat")
async def begin_chat(
    request: Request, analysis_id: AnalysisId, visitor: Guest, house: Opened
) -> Response:
    """Nothing has been said yet."""
    report = await report_of(house, visitor, analysis_id)
    return _shown(request, visitor, report, Transcript("", [], report.sample))


@router.get("/{analysis_id}/chat/{session_id}")
async def chat_page(
    request: Request, analysis_id: AnalysisId, session_id: str, visitor: Guest, house: Opened
) -> Response:
    """What has been said, and the field for what comes next."""
    report = await report_of(house, visitor, analysis_id)
    transcript = await read_chat(house.store, visitor.tenant.id, session_id)
    return _shown(request, visitor, report, transcript)


@router.post("/{analysis_id}/chat")
async def say(request: Request, analysis_id: AnalysisId, form: Filled, house: Opened) -> Response:
    """One turn; who hangs up ends it. Guidance, which is not kept, is shown at once."""
    report = await report_of(house, form.visitor, analysis_id)
    message, session_id = form.text("message"), form.text("session") or None
    if len(message) > LONGEST:
        raise UsageError(f"a question has at most {LONGEST} characters")
    turn = await unless_gone(request.receive, _turn(house, form, report, message, session_id))
    if turn is None:
        return Response(status_code=GONE)
    if turn.number is not None:
        place = f"/analyses/{report.id}/chat/{turn.session_id}#turn-{turn.number}"
        return RedirectResponse(place, 303)
    past: list[PastTurn] = []
    if session_id is not None:
        past = (await read_chat(house.store, form.visitor.tenant.id, session_id)).turns
    newest = PastTurn(message, turn.text, [], None, (), stopped=False, sample=turn.sample)
    transcript = Transcript(session_id or "", [*past, newest], turn.sample)
    return _shown(request, form.visitor, report, transcript)


async def _turn(
    house: House, form: Filled, report: Report, message: str, session_id: str | None
) -> Turn:
    """A session begins with what the report rests on."""
    begins = report.id if session_id is None else None
    tenant = form.visitor.tenant
    return await last_of(
        await house.turn(tenant, message, session_id, known=True, report_id=begins)
    )


def _shown(request: Request, visitor: Visitor, report: Report, transcript: Transcript) -> Response:
    return page(
        request, visitor, "chat.html",
        title=f"Ask on: {outline.heading(report)}",
        report=report,
        chat=transcript,
        longest=LONGEST,
    )  # fmt: skip
